"""Approach Zero: every document has one formula with a distinct id; some are the same expression."""

from pathlib import Path

import _formula_posts
import pandas as pd

from mathamr_systems import ApproachZeroIndex

open = ApproachZeroIndex


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    _formula_posts.build(ApproachZeroIndex(path), rows, mode, seed)


def read(path: Path) -> object:
    """All formulas with their posts, all paths, and a ranking."""
    index = ApproachZeroIndex(path)
    found = index.retriever()(pd.DataFrame({"qid": ["1"], "latex": ["x^2+b"]}))
    return [
        sorted(map(str, index.get_corpus_iter())),
        {name: array.tolist() for name, array in index.snapshot().expressions.payload.arrays().items()},
        found[["docno", "post_id", "visual_id", "score", "rank"]].round(5).to_numpy().tolist(),
    ]
