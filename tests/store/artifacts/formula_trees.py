"""Formula trees: every document has one formula, of its own id; some are the same expression."""

from pathlib import Path
from typing import Any

from pyterrier_mathamr.systems import FormulaTrees
from pyterrier_mathamr.systems.sparse import index as sparse

NAME = "formula_trees"
PART = 2
LATEX = ("x^2+1", "a+b", r"\frac{x}{y}", "x^2")


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    """Write posts in parts of two; those of a run that died are recognised."""
    sparse.PART_BYTES, sparse.BATCH = 1, PART
    spans = ((i, f'<span class="math-container" id="d{i}">{LATEX[(i + seed) % 4]}</span>') for i in rows)
    posts = ({"docno": f"p{i}", "html": span} for i, span in spans)
    visual_ids = {f"d{i}": f"v{seed}-{i % 4}" for i in range(12)}
    FormulaTrees(path).indexer(mode, resume=True, visual_ids=visual_ids).index(posts)  # type: ignore[arg-type]


def read(path: Path) -> object:
    """All formulas with their posts, and both trees of each."""
    trees = FormulaTrees(path)
    entries = sorted(map(str, trees.get_corpus_iter()))
    pairs = [trees.get(entry["docno"]) for entry in trees.get_corpus_iter()]
    packed = trees.snapshot().expressions.payload
    return [entries, sorted(map(str, pairs)), list(packed.slt.names), list(packed.opt.names)]


def open(path: Path) -> Any:
    """The artifact."""
    return FormulaTrees(path)
