"""An In+Out index: every document has one formula, of its own id; some are the same expression."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pyterrier_mathamr.formula import FormulaTree
from pyterrier_mathamr.sparse import index as sparse
from pyterrier_mathamr.systems import InOutIndex

NAME = "in_out"
PART = 2
LATEX = ("x^2+1", "a+b", r"\frac{x}{y}", "x^2")


@dataclass(frozen=True)
class Labels:
    """A model that knows labels alone."""

    identity: ClassVar[str] = "labels"
    kinds: ClassVar[tuple[str, ...]] = ("slt", "opt")

    def encode(self, trees: Sequence[FormulaTree | None], kind: str, *, distinct: bool = True) -> list[np.ndarray]:
        """Return the vectors of the nodes of each tree."""
        return [np.array([_row(label) for label in tree.nodes if tree]).reshape(-1, 4) for tree in trees if tree]


def _row(label: str) -> np.ndarray:
    row = np.random.default_rng(zlib.crc32(label.encode())).standard_normal(4)
    return (row / np.linalg.norm(row)).astype(np.float32)


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    """Write posts in parts of two; those of a run that died are recognised."""
    sparse.PART_BYTES, sparse.BATCH = 1, PART
    spans = ((i, f'<span class="math-container" id="d{i}">{LATEX[(i + seed) % 4]}</span>') for i in rows)
    posts = ({"docno": f"p{i}", "html": span} for i, span in spans)
    visual_ids = {f"d{i}": f"v{seed}-{i % 4}" for i in range(12)}
    open(path).indexer(mode, resume=True, visual_ids=visual_ids).index(posts)


def read(path: Path) -> object:
    """All formulas with their posts, and what searches find."""
    index = open(path)
    found = [index.retriever(combine=combine).search("x^2+y") for combine in ("max", "rrf")]
    rows = [of[["docno", "rank"]].assign(score=of["score"].round(5)).values.tolist() for of in found]
    return [sorted(map(str, index.get_corpus_iter())), rows]


def open(path: Path) -> Any:
    """The artifact."""
    return InOutIndex(path, Labels())  # type: ignore[arg-type]
