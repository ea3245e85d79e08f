"""Approach Zero: every document has one formula, of its own id; some are the same expression."""

from pathlib import Path
from typing import Any

import pandas as pd

from pyterrier_mathamr.sparse import index as sparse
from pyterrier_mathamr.systems import ApproachZeroIndex

NAME = "approach0"
PART = 2
LATEX = ("x^2+1", "a+b", r"\frac{x}{y}", "x^2")


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    """Write posts in parts of two; those of a run that died are recognised."""
    sparse.PART_BYTES, sparse.BATCH = 1, PART
    spans = ((i, f'<span class="math-container" id="d{i}">{LATEX[(i + seed) % 4]}</span>') for i in rows)
    posts = ({"docno": f"p{i}", "html": span} for i, span in spans)
    visual_ids = {f"d{i}": f"v{seed}-{i % 4}" for i in range(12)}
    ApproachZeroIndex(path).indexer(mode, resume=True, visual_ids=visual_ids).index(posts)  # type: ignore[arg-type]


def read(path: Path) -> object:
    """All formulas with their posts, all paths, and a ranking."""
    index = ApproachZeroIndex(path)
    found = index.retriever()(pd.DataFrame({"qid": ["1"], "latex": ["x^2+b"]}))
    return [
        sorted(map(str, index.get_corpus_iter())),
        {name: array.tolist() for name, array in index.snapshot().expressions.payload.arrays().items()},
        found[["docno", "post_id", "visual_id", "score", "rank"]].round(5).to_numpy().tolist(),
    ]


def open(path: Path) -> Any:
    """The artifact."""
    return ApproachZeroIndex(path)
