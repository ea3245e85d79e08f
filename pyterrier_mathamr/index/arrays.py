"""The kinds of arrays in this room, and what searching requires of an index: a folder, parts elsewhere, a database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .search.queries import QueryBatch

Array = npt.NDArray[Any]

Rows = npt.NDArray[np.float32]
"""Vectors, float32 ``[r, d]``."""

StoredRows = npt.NDArray[np.float32] | npt.NDArray[np.float16]
"""Vectors as a file stores them, ``[r, d]``; all computation is in float32 or float64."""

Codes = npt.NDArray[np.int8]
"""Vectors quantised to int8 ``[r, d]``."""

Scores = npt.NDArray[np.float32]
"""Scores of a scan, float32, within a known error of the exact scores."""

ExactScores = npt.NDArray[np.float64]
"""Exact scores, float64, rounded to float32 precision."""

Numbers = npt.NDArray[np.int64]
"""Documents by number, or offsets, int64."""

Sources = npt.NDArray[np.uint64]
"""Documents of a corpus, uint64 ``[s, 2]``: a hash of the docno, and a hash of the document."""

Weights = npt.NDArray[np.float64]
"""Weights of query rows, or error bounds, float64."""

Field = Literal["all", "doc"]
"""Which vectors are read: all of a document, or its VIRTUAL_DOCUMENT alone (MathAMR+, section 3.5.1)."""


@dataclass(frozen=True)
class How:
    """How candidates are selected: exactly, on a GPU or not, or by HNSW graphs of the given effort."""

    exact: bool = True
    hnsw_ef: int = 128
    hits: int = 128
    device: str | None = None


class Candidates(NamedTuple):
    """Documents that may be among the best of one query, and their exact scores where they are known already."""

    numbers: Numbers
    scores: ExactScores | None = None


class IndexDescription(Protocol):
    """What an index says of itself."""

    @property
    def dimensions(self) -> int:
        """The width of its rows; 0 while it has none."""

    @property
    def model(self) -> str | None:
        """The identity of the model of its vectors, where known."""


class Backend(Protocol):
    """The state of an index when it was opened, wherever it is. Documents have numbers, valid within it only."""

    @property
    def path(self) -> Path | str:
        """The folder, or the address of a database."""

    @property
    def meta(self) -> IndexDescription:
        """What the index says of itself."""

    def __len__(self) -> int:
        """The number of documents (or formulas)."""

    def select(self, queries: QueryBatch, k: int, field: Field, how: How) -> list[Candidates]:
        """Select documents among which the best ``k`` of each query are, provably if the selection is exact."""

    def score(self, queries: QueryBatch, candidates: Sequence[Numbers], field: Field) -> list[ExactScores]:
        """Score some documents of each query exactly: float64 for each."""

    def look_up(self, docnos: Sequence[str]) -> Numbers:
        """Look up the number of each document: -1 for one that is not in the index."""

    def find(self, docnos: Sequence[str]) -> Numbers:
        """Return the number of each document; ``UnknownIdError`` names those that are not in the index."""

    def texts(self, name: str, numbers: Numbers) -> list[str]:
        """Return one text (``docno``, ``post_id`` …) of each document."""

    def lengths(self, numbers: Numbers, field: Field = "all") -> Numbers:
        """Return the number of rows of each document in one field: int64 ``[m]``."""

    def rows(self, numbers: Numbers, field: Field = "all") -> tuple[Rows, Numbers]:
        """Return the vectors of some documents end to end, float32 ``[r, d]``, and their offsets, int64 ``[m + 1]``."""


_AT_ONCE = 1 << 15  # numbers below which torch computes on the calling thread


def widened(rows: Array, out: Rows) -> Rows:
    """Copy rows into memory of float32; of float16 by torch, four times as fast as by numpy."""
    if rows.dtype == np.float32:
        out[:] = rows
        return out
    import torch

    step = max((_AT_ONCE - 1) // max(rows.shape[1], 1), 1)
    parts = (torch.split(torch.from_numpy(of), step) for of in (out, rows))
    for into, some in zip(*parts, strict=True):
        into.copy_(some)
    return out
