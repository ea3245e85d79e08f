"""Texts in arrays: UTF-8 end to end, with offsets; lossless, and each costs its own length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Protocol, overload

import numpy as np

from pyterrier_mathamr.store import Appended, Array, DamagedError, Field, Rows, ranges

_AT_ONCE = 1 << 16
_MOST_WIDTH = 64  # bytes of a text that is sorted by numbers


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


class Texts(Sequence[str]):
    """Texts in two arrays, decoded when they are read."""

    def __init__(self, data: Array, offsets: Rows) -> None:
        self.data, self.offsets = data, offsets

    @classmethod
    def of(cls, texts: Iterable[str], folder: Path | None = None) -> Texts:
        """Store some texts, a block at a time, in memory or in a folder."""
        stream, found = iter(texts), TextsBuilder(folder)
        while some := list(islice(stream, _AT_ONCE)):
            arrays = text_arrays("", some)
            found.add(cls(arrays[""], arrays["_offsets"]))
        return found.texts()

    def take(self, rows: Rows, folder: Path | None = None) -> Texts:
        """Return the texts of some rows, in the order of these, in memory or in a folder."""
        found = TextsBuilder(folder)
        for start in range(0, len(rows), _AT_ONCE):
            starts, ends = (self.offsets[rows[start : start + _AT_ONCE] + more] for more in (0, 1))
            found.add(Texts(self.data[ranges(starts, ends - starts)], np.append(0, np.cumsum(ends - starts))))
        return found.texts()

    def between(self, start: int, stop: int) -> Texts:
        """Return neighbouring texts, without copying them."""
        return Texts(self.data, self.offsets[start : stop + 1])

    @classmethod
    def joined(cls, pieces: Sequence[Texts]) -> Texts:
        """Put the texts of several one after another."""
        found = TextsBuilder(None)
        for piece in pieces:
            found.add(piece)
        return found.texts()

    def arrays(self, name: str) -> dict[str, Array]:
        """Return the arrays that :func:`text_fields` declares."""
        return {name: self.data, f"{name}_offsets": self.offsets}

    def words(self) -> list[Array] | None:
        """Return arrays of unsigned integers, by which the texts are in order."""
        lengths = np.diff(self.offsets)
        width = -(-int(lengths.max(initial=0)) // 8) * 8
        if width > _MOST_WIDTH or not np.all(self.data):
            return None
        padded = np.zeros((len(self), width), dtype=np.uint8)
        for start in range(0, len(self), _AT_ONCE):
            size = lengths[start : start + _AT_ONCE]
            here = self.data[self.offsets[start] : self.offsets[start + len(size)]]
            padded.reshape(-1)[ranges(np.arange(start, start + len(size)) * width, size)] = here
        return [word.astype(np.uint64) for word in padded.view(">u8").T] if width else []

    def encoded(self, place: int) -> bytes:
        """Return a text in UTF-8."""
        return bytes(self.data[self.offsets[place] : self.offsets[place + 1]])

    def all_encoded(self, start: int, stop: int) -> list[bytes]:
        """Return some neighbouring texts in UTF-8."""
        offsets = self.offsets[start : stop + 1].tolist()
        data, first = bytes(self.data[offsets[0] : offsets[-1]]), offsets[0]
        return [data[here - first : there - first] for here, there in pairwise(offsets)]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            first = int(self.offsets[start])
            data = np.asarray(self.data[first : self.offsets[max(start, stop)]])
            return _cut(data, self.offsets[start : max(start, stop) + 1] - first)[::step]
        return self.encoded(place).decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self[start : start + _AT_ONCE]


class TextsBuilder:
    """Texts that come in pieces."""

    def __init__(self, folder: Path | None) -> None:
        self._data, self._offsets = Appended(folder, np.dtype(np.uint8)), Appended(folder, np.dtype(np.int64))
        self._offsets.append(np.zeros(1))
        self._end = 0

    def add(self, texts: Texts) -> None:
        """Add some at the end."""
        first, last = texts.offsets[[0, -1]].tolist()
        self._data.append(texts.data[first:last])
        self._offsets.append(texts.offsets[1:] + (self._end - first))
        self._end += last - first

    def texts(self) -> Texts:
        """Return all of them."""
        return Texts(self._data.array(), self._offsets.array())


class Arrays(Protocol):
    """A part of an artifact, or another file of arrays."""

    @property
    def path(self) -> Path:
        """Where they lie."""

    def __getitem__(self, name: str) -> Array:
        """Return an array by its name."""


def texts_of(part: Arrays, name: str) -> Texts:
    """Return the texts of a part, undecoded."""
    return Texts(part[name], part[f"{name}_offsets"])


def read_texts(part: Arrays, name: str, rows: Rows | None = None) -> list[str]:
    """Read the texts of some rows of a part, or all of them."""
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
