"""An In+Out index: every document has one formula with a distinct id; some are the same expression."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import _formula_posts
import numpy as np

from mathamr_systems import InOutIndex
from pyterrier_mathamr.formula import FormulaTree


@dataclass(frozen=True)
class Labels:
    """A model that knows only labels."""

    identity: ClassVar[str] = "labels"
    kinds: ClassVar[tuple[str, ...]] = ("slt", "opt")

    def encode(self, trees: Sequence[FormulaTree | None], kind: str, *, distinct: bool = True) -> list[np.ndarray]:
        """Return the vectors of the nodes of each tree."""
        return [np.array([_row(label) for label in tree.nodes if tree]).reshape(-1, 4) for tree in trees if tree]


def _row(label: str) -> np.ndarray:
    row = np.random.default_rng(zlib.crc32(label.encode())).standard_normal(4)
    return (row / np.linalg.norm(row)).astype(np.float32)


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    _formula_posts.build(open(path), rows, mode, seed)


def read(path: Path) -> object:
    """All formulas with their posts, and what searches find."""
    index = open(path)
    found = [index.retriever(combine=combine).search("x^2+y") for combine in ("max", "rrf")]
    rows = [of[["docno", "rank"]].assign(score=of["score"].round(5)).values.tolist() for of in found]
    return [sorted(map(str, index.get_corpus_iter())), rows]


def open(path: Path) -> Any:
    """The artifact."""
    return InOutIndex(path, Labels())  # type: ignore[arg-type]
