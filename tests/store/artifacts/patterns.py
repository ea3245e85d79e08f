"""Patterns: every document has one formula with a distinct id; some are the same expression."""

from pathlib import Path

import _formula_posts

from pyterrier_mathamr.sparse import PatternIndex

open = PatternIndex


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    _formula_posts.build(PatternIndex(path), rows, mode, seed)


def read(path: Path) -> object:
    """All formulas with their posts, and what a pattern finds."""
    index = PatternIndex(path)
    found = index.retriever().search("?a+?b")
    return [sorted(map(str, index.get_corpus_iter())), found[["docno", "post_id", "visual_id"]].to_numpy().tolist()]
