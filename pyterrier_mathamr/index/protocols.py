"""The kinds of arrays in this room, and what searching requires of an index: a folder of parts or a database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

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


class IndexDescription(Protocol):
    """What an index says of itself."""

    @property
    def dimensions(self) -> int:
        """The width of its rows; 0 while it has none."""

    @property
    def model(self) -> str | None:
        """The identity of the model of its vectors, where known."""


class SearchableSnapshot(Protocol):
    """The state of an index when it was opened. Documents have numbers, which are valid within the snapshot alone."""

    @property
    def path(self) -> Path | str:
        """The folder, or the address of a database."""

    @property
    def meta(self) -> IndexDescription:
        """What the index says of itself."""

    @property
    def max_norm(self) -> float:
        """The length of the longest row, rounded up."""

    def __len__(self) -> int:
        """The number of documents (or formulas)."""

    def find(self, docnos: Sequence[str]) -> Numbers:
        """Return the number of each document; ``UnknownIdError`` names those that are not in the index."""

    def texts(self, name: str, numbers: Numbers) -> list[str]:
        """Return one text (``docno``, ``post_id`` …) of each document."""

    def lengths(self, numbers: Numbers, field: Field = "all") -> Numbers:
        """Return the number of rows of each document in one field: int64 ``[m]``."""

    def rows(self, numbers: Numbers, field: Field = "all") -> tuple[Rows, Numbers]:
        """Return the vectors of some documents end to end, float32 ``[r, d]``, and their offsets, int64 ``[m + 1]``."""


class SearchableIndex(Protocol):
    """The index of a transformer, which is opened when the first row comes."""

    def snapshot(self) -> Any:
        """Return the index as it is now: a :class:`SearchableSnapshot`."""
