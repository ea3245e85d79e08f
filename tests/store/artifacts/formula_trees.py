"""Formula trees: every document has one formula with a distinct id; some are the same expression."""

from pathlib import Path

import _formula_posts

from mathamr_systems import FormulaTrees

open = FormulaTrees


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    _formula_posts.build(FormulaTrees(path), rows, mode, seed)


def read(path: Path) -> object:
    """All formulas with their posts, and both trees of each."""
    trees = FormulaTrees(path)
    entries = sorted(map(str, trees.get_corpus_iter()))
    pairs = [trees.get(entry["docno"]) for entry in trees.get_corpus_iter()]
    packed = trees.snapshot().expressions.payload
    return [entries, sorted(map(str, pairs)), list(packed.slt.names), list(packed.opt.names)]
