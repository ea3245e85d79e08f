"""What searching asks of an index, wherever it lies: a folder of shards, or a database behind a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from .arrays import Field, Numbers, Rows


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
