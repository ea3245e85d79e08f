"""Tangent: every document has one formula with a distinct id; some are the same expression."""

from pathlib import Path

import _formula_posts
import pandas as pd

from pyterrier_mathamr.sparse import TangentIndex

open = TangentIndex


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    _formula_posts.build(TangentIndex(path), rows, mode, seed)


def read(path: Path) -> object:
    """All formulas with their posts, all pairs, and a ranking."""
    index = TangentIndex(path)
    pairs = index.snapshot().expressions.payload
    found = index.retriever()(pd.DataFrame({"qid": ["1"], "latex": ["x^2+b"]}))
    return [
        index.pair_options().to_dict(),
        sorted(map(str, index.get_corpus_iter())),
        [(list(of.names), of.documents.tolist(), of.counts.tolist()) for of in (pairs.slt, pairs.opt)],
        found[["docno", "post_id", "visual_id", "score", "rank"]].round(5).to_numpy().tolist(),
    ]
