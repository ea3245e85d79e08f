"""Many graphs through a network, in batches whose states fit the CPU's cache."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import islice

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.running.resources import one_torch_thread
from pyterrier_mathamr.graph import GraphTensors, collate
from pyterrier_mathamr.model.inputs.batches_by_size import batches_by_size

from .pieces import joined, pieces_of

Embeddings = npt.NDArray[np.float32]
"""float32 ``[n, d]`` with rows of unit length: formulas in order, sentences in order, the document last."""

_NODE_BUDGET = 8_192  # of a batch, whose states fit the CPU's cache; twice as many take a fifth longer
_MOST_NODES = 65_536  # of a graph; a larger one, of some 100,000 words, is cut between its sentences


@torch.no_grad()
def encode_in_batches(
    network: nn.Module, graphs: Sequence[GraphTensors], place: torch.device, width: int, *, verbose: bool = False
) -> list[Embeddings]:
    """Encode graphs, those of similar sizes together."""
    cut = [pieces_of(graph, _MOST_NODES) for graph in graphs]
    pieces = [piece.graph for of_graph in cut for piece in of_graph]
    results: list[Embeddings] = [np.empty((0, width), np.float32)] * len(pieces)
    batches = batches_by_size([len(piece.nodes) for piece in pieces], _NODE_BUDGET)
    # The products of a batch are small: a second thread of a CPU takes more time than it saves.
    with one_torch_thread() if place.type == "cpu" else nullcontext():
        for members in progress(batches, "encoding", "batches", verbose=verbose):
            batch = collate([pieces[i] for i in members]).to(place)
            rows = network(batch).cpu().numpy()  # [r, d]
            for i, part in zip(members, np.split(rows, batch.offsets[1:-1].cpu().numpy()), strict=True):
                results[i] = np.ascontiguousarray(part)
    rest = iter(results)
    return [
        joined(of_graph, list(islice(rest, len(of_graph))), len(graph.virtual))
        for graph, of_graph in zip(graphs, cut, strict=True)
    ]
