"""A Tangent-CFT index with a trained encoder: every document has one formula with a distinct id."""

from pathlib import Path

import _formula_posts
import numpy as np

from mathamr_systems import TangentCFT

open = TangentCFT
TRAINED = Path(__file__).resolve().parents[2] / "data" / "cft-format-1"


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    _formula_posts.build(TangentCFT(path), rows, mode, seed, model=TangentCFT(TRAINED))


def read(path: Path) -> object:
    """All formulas with their posts and vectors, and the encoder's vector of a new one."""
    cft = TangentCFT(path)
    entries = sorted(cft.get_corpus_iter(), key=lambda entry: entry["docno"])
    expressions = cft.snapshot().expressions_of([entry["docno"] for entry in entries])
    vectors = [rows[expressions].tolist() for rows in cft.snapshot().expressions.payload.rows.values()]
    encoder = cft.snapshot().encoder() if entries else None
    words = [np.asarray(of.vectors).tolist() for of in encoder.words.values()] if encoder else []
    return [list(map(str, entries)), vectors, words]
