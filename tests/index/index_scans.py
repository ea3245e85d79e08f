"""Single steps of a search, as tests call them."""

import numpy as np
import torch

from pyterrier_mathamr.index.search.compiled import Columns, CompiledScan, compiled
from pyterrier_mathamr.index.search.int8 import CodeScan, Memory


def score_codes(codes, offsets, coded, queries) -> np.ndarray:
    """Score all documents of one part by its codes."""
    scores = np.empty((len(queries), len(offsets) - 1), dtype=np.float32)
    CodeScan(torch.from_numpy(codes), offsets, coded, queries, Memory()).fill(0, scores.shape[1], scores)
    return scores


def score_codes_compiled(codes, offsets, coded, queries) -> np.ndarray:
    """Score all documents of one part by the compiled scan."""
    scores = np.empty((len(queries), len(offsets) - 1), dtype=np.float32)
    scan = CompiledScan(compiled(codes.shape[1]), codes, offsets, coded, Columns(queries))
    scan.fill(0, scores.shape[1], scores)
    return scores
