"""Texts in arrays: UTF-8 end to end, with offsets; lossless, and each costs its own length."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np

from pyterrier_mathamr.store import Array, DamagedError, Field, Rows, ranges


def text_fields(name: str, count: str) -> tuple[Field, Field]:
    """Declare ``count`` texts of a part."""
    return Field(name, "uint8", f"{name}_bytes"), Field(f"{name}_offsets", "int64", f"{count}+1", cuts=f"{name}_bytes")


def text_arrays(name: str, texts: Iterable[str]) -> dict[str, Array]:
    """Convert texts to the arrays that :func:`text_fields` declares; lone surrogates are kept."""
    texts = list(texts)
    text = "".join(texts)
    data = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    if len(data) > len(text):  # from offsets of characters to offsets of bytes
        offsets = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))[offsets]
    return {name: data, f"{name}_offsets": offsets}


class Arrays(Protocol):
    """A part of an artifact, or another file of arrays."""

    @property
    def path(self) -> Path:
        """Where they lie."""

    def __getitem__(self, name: str) -> Array:
        """Return an array by its name."""


def read_texts(part: Arrays, name: str, rows: Rows | None = None) -> list[str]:
    """Read the texts of some rows of a part, or all of them.

    Raises:
        DamagedError: they are not UTF-8.
    """
    data, offsets = part[name], part[f"{name}_offsets"]
    try:
        if rows is not None:
            lengths = offsets[rows + 1] - offsets[rows]
            data, offsets = data[ranges(offsets[rows], lengths)], np.append(0, np.cumsum(lengths))
        return _cut(data, offsets)
    except UnicodeDecodeError as error:
        raise DamagedError(part.path, f"{name} is not text ({error})") from error


def _cut(data: Array, offsets: Rows) -> list[str]:
    """Decode all texts at once, which is several times faster than one by one."""
    text = data.tobytes().decode("utf-8", "surrogatepass")
    if len(text) < len(data):  # from offsets of bytes to offsets of characters
        offsets = offsets - np.searchsorted(np.flatnonzero((data & 0xC0) == 0x80), offsets)
    return [text[start:end] for start, end in pairwise(offsets.tolist())]
