"""A Tangent-CFT index, encoded by one that was trained: every document has one formula, of its own id."""

from pathlib import Path
from typing import Any

import numpy as np

from pyterrier_mathamr.sparse import index as sparse
from pyterrier_mathamr.systems import TangentCFT

NAME = "cft"
PART = 2
LATEX = ("x^2+1", "a+b", r"\frac{x}{y}", "x^2")
TRAINED = Path(__file__).resolve().parents[2] / "data" / "cft-format-1"


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    """Write posts in parts of two; those of a run that died are recognised."""
    sparse.PART_BYTES, sparse.BATCH = 1, PART
    spans = ((i, f'<span class="math-container" id="d{i}">{LATEX[(i + seed) % 4]}</span>') for i in rows)
    posts = ({"docno": f"p{i}", "html": span} for i, span in spans)
    visual_ids = {f"d{i}": f"v{seed}-{i % 4}" for i in range(12)}
    indexer = TangentCFT(path).indexer(mode, model=TangentCFT(TRAINED), resume=True, visual_ids=visual_ids)  # type: ignore[arg-type]
    indexer.index(posts)


def read(path: Path) -> object:
    """All formulas with their posts and vectors, and what the encoder says of a new one."""
    cft = TangentCFT(path)
    entries = sorted(cft.get_corpus_iter(), key=lambda entry: entry["docno"])
    expressions = cft.snapshot().expressions_of([entry["docno"] for entry in entries])
    vectors = [rows[expressions].tolist() for rows in cft.snapshot().expressions.payload.rows.values()]
    encoder = cft.snapshot().encoder() if entries else None
    words = [np.asarray(of.vectors).tolist() for of in encoder.words.values()] if encoder else []
    return [list(map(str, entries)), vectors, words]


def open(path: Path) -> Any:
    """The artifact."""
    return TangentCFT(path)
