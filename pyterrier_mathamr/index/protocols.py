"""The kinds of arrays in this room, and what searching asks of an index: a folder of parts or a database."""

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
"""Vectors as a file holds them, ``[r, d]``; what is computed with them is float32 or double."""

Codes = npt.NDArray[np.int8]
"""Vectors as bytes, int8 ``[r, d]``."""

Scores = npt.NDArray[np.float32]
"""Similarities, float32."""

Numbers = npt.NDArray[np.int64]
"""Documents by number, or offsets, int64."""

Sources = npt.NDArray[np.uint64]
"""Documents of a corpus, uint64 ``[s, 2]``: a hash of the docno, and one of the document."""

Weights = npt.NDArray[np.float64]
"""Weights of query rows, or bounds, float64."""

Field = Literal["all", "doc"]
"""Which vectors are read: all of a document, or its VIRTUAL_DOCUMENT alone (MathAMR+, section 3.5.1)."""


class SearchedMeta(Protocol):
    """What an index says of itself."""

    @property
    def dimensions(self) -> int:
        """The width of its rows; 0 while it is empty."""

    @property
    def model(self) -> str | None:
        """The identity of the model that made its vectors, where it was given."""


class Searched(Protocol):
    """An index as it was when it was opened; its documents have numbers, which mean nothing outside."""

    @property
    def path(self) -> Path | str:
        """Where it lies: a folder or an address."""

    @property
    def meta(self) -> SearchedMeta:
        """What it says of itself."""

    @property
    def max_norm(self) -> float:
        """The length of the longest row, rounded up."""

    def __len__(self) -> int:
        """How many documents (or formulas) it holds."""

    def find(self, docnos: Sequence[str]) -> Numbers:
        """The number of each document; ``UnknownIdError`` names those that are not there."""

    def texts(self, name: str, numbers: Numbers) -> list[str]:
        """One text (``docno``, ``post_id`` …) of each document."""

    def lengths(self, numbers: Numbers, field: Field = "all") -> Numbers:
        """The number of rows of each document in one field: int64 ``[m]``."""

    def rows(self, numbers: Numbers, field: Field = "all") -> tuple[Rows, Numbers]:
        """The vectors of some documents end to end, float32 ``[r, d]``, and their bounds, int64 ``[m + 1]``."""


class SearchedIndex(Protocol):
    """What a transformer keeps: an index that is opened when the first row comes."""

    def snapshot(self) -> Any:
        """The index as it is now: a :class:`Searched`."""
