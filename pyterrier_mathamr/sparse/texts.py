"""Texts in arrays, and vocabularies of them.

A text is UTF-8 in one array with all others end to end, with offsets; that is lossless, and each costs its own length.
A vocabulary is ascending texts: its terms are read in place on the disk, looked up by bisection, and merged with
other vocabularies a block at a time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice, pairwise
from operator import lt
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.store import Appended, Array, DamagedError, Field, Rows, ranges

AT_ONCE = 1 << 16
"""Texts that are read, and terms that are united, at a time, whatever the size of the collection."""
_REMEMBERED = 1 << 16
_MOST_WIDTH = 64  # bytes of a text that is sorted by numbers


def ends_of(sizes: Any) -> Rows:
    """Return where each of consecutive pieces of these sizes begins, and where the last ends."""
    ends: Rows = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return ends


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
        stream, builder = iter(texts), TextsBuilder(folder)
        while some := list(islice(stream, AT_ONCE)):
            arrays = text_arrays("", some)
            builder.add(cls(arrays[""], arrays["_offsets"]))
        return builder.texts()

    def take(self, rows: Rows, folder: Path | None = None) -> Texts:
        """Return the texts of some rows, in the order of these, in memory or in a folder."""
        builder = TextsBuilder(folder)
        for start in range(0, len(rows), AT_ONCE):
            starts, ends = (self.offsets[rows[start : start + AT_ONCE] + more] for more in (0, 1))
            builder.add(Texts(self.data[ranges(starts, ends - starts)], np.append(0, np.cumsum(ends - starts))))
        return builder.texts()

    def between(self, start: int, stop: int) -> Texts:
        """Return neighboring texts, without copying them."""
        return Texts(self.data, self.offsets[start : stop + 1])

    @classmethod
    def joined(cls, pieces: Sequence[Texts]) -> Texts:
        """Put the texts of several one after another."""
        builder = TextsBuilder(None)
        for piece in pieces:
            builder.add(piece)
        return builder.texts()

    def arrays(self, name: str) -> dict[str, Array]:
        """Return the arrays that :func:`text_fields` declares."""
        return {name: self.data, f"{name}_offsets": self.offsets}

    def words(self) -> list[Array] | None:
        """Return arrays of unsigned integers that order the texts; ``None`` where some are long or contain a zero."""
        lengths = np.diff(self.offsets)
        width = -(-int(lengths.max(initial=0)) // 8) * 8
        if width > _MOST_WIDTH or not np.all(self.data):
            return None
        padded = np.zeros((len(self), width), dtype=np.uint8)
        for start in range(0, len(self), AT_ONCE):
            size = lengths[start : start + AT_ONCE]
            here = self.data[self.offsets[start] : self.offsets[start + len(size)]]
            padded.reshape(-1)[ranges(np.arange(start, start + len(size)) * width, size)] = here
        return [word.astype(np.uint64) for word in padded.view(">u8").T] if width else []

    def encoded(self, place: int) -> bytes:
        return bytes(self.data[self.offsets[place] : self.offsets[place + 1]])

    def all_encoded(self, start: int, stop: int) -> list[bytes]:
        offsets = self.offsets[start : stop + 1].tolist()
        data, first = bytes(self.data[offsets[0] : offsets[-1]]), offsets[0]
        return [data[begin - first : end - first] for begin, end in pairwise(offsets)]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, place: int) -> str:  # type: ignore[override]  # no slices
        return self.encoded(place).decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), AT_ONCE):
            offsets = self.offsets[start : start + AT_ONCE + 1]
            yield from _cut(np.asarray(self.data[offsets[0] : offsets[-1]]), offsets - offsets[0])


class TextsBuilder:
    """Texts that come in pieces."""

    def __init__(self, folder: Path | None) -> None:
        self._data, self._offsets = Appended(folder, np.dtype(np.uint8)), Appended(folder, np.dtype(np.int64))
        self._offsets.append(np.zeros(1))
        self._end = 0

    def add(self, texts: Texts) -> None:
        first, last = texts.offsets[[0, -1]].tolist()
        self._data.append(texts.data[first:last])
        self._offsets.append(texts.offsets[1:] + (self._end - first))
        self._end += last - first

    def texts(self) -> Texts:
        return Texts(self._data.array(), self._offsets.array())


class Arrays(Protocol):
    """A part of an artifact, or another file of arrays."""

    @property
    def path(self) -> Path: ...

    def __getitem__(self, name: str) -> Array: ...


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


class TermVocabulary(Mapping[str, int]):
    """Ascending terms and their numbers; the most recently used ones are cached."""

    def __init__(self, terms: Texts) -> None:
        self._terms = terms
        self._number = lru_cache(_REMEMBERED)(self._find)

    def _find(self, term: str) -> int | None:
        sought = term.encode("utf-8", "surrogatepass")
        place = bisect_left(range(len(self)), sought, key=self._terms.encoded)
        return place if place < len(self) and self._terms.encoded(place) == sought else None

    def __getitem__(self, term: str) -> int:
        if (number := self._number(term)) is None:
            raise KeyError(term)
        return number

    def __iter__(self) -> Iterator[str]:
        return iter(self._terms)

    def __len__(self) -> int:
        return len(self._terms)


def read_terms(part: Arrays, name: str) -> Texts:
    """Open the terms of a part."""
    terms = texts_of(part, name)
    for start in range(0, len(terms), AT_ONCE):
        some = terms.between(max(0, start - 1), min(start + AT_ONCE, len(terms)))  # the last one before is compared
        data, offsets = some.data[some.offsets[0] : some.offsets[-1]], some.offsets - some.offsets[0]
        try:
            data.tobytes().decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise DamagedError(part.path, f"{name} is not text ({error})") from error
        if bool(np.any(data[offsets[:-1][np.diff(offsets) > 0]] & 0xC0 == 0x80)):
            raise DamagedError(part.path, f"{name} is not text (one begins within a character)")
        if not _ascend(data, offsets):
            raise DamagedError(part.path, f"{name} do not ascend")
    return terms


def _ascend(data: Array, offsets: Rows) -> bool:
    """Whether each text is greater than the one before, by eight bytes of all at a time."""
    words = np.ndarray(len(data) + 1, ">u8", buffer=data.tobytes() + bytes(8), strides=(1,))  # from each byte on
    starts, lengths = offsets[:-1], np.diff(offsets)
    pairs, place = np.arange(1, len(lengths)), 0

    def word(texts: Rows) -> Array:
        """Return the eight bytes from the place on; those after the end of a text are 0."""
        left = np.clip(lengths[texts] - place, 0, 8)
        eight = words[np.minimum(starts[texts] + place, len(data))].astype(np.uint64)
        return np.where(left, eight & ~np.uint64(0) << (8 * (8 - np.maximum(left, 1))).astype(np.uint64), np.uint64(0))

    while len(pairs):
        before, after = word(pairs - 1), word(pairs)
        if bool(np.any(before > after)):
            return False
        pairs, place = pairs[before == after], place + 8
        ended = np.maximum(lengths[pairs - 1], lengths[pairs]) <= place
        if bool(np.any(lengths[pairs - 1][ended] >= lengths[pairs][ended])):  # the same, unless one goes on with zeros
            return False
        pairs = pairs[~ended]
    return True


Name = TypeVar("Name", int, str)


def read_names(part: Arrays, name: str) -> list[str]:
    """Read texts that ascend."""
    names = read_texts(part, name)
    if not all(map(lt, names, islice(names, 1, None))):
        raise DamagedError(part.path, f"{name} do not ascend")
    return names


def renumbered(
    names: Sequence[Sequence[Name]], used: Sequence[npt.NDArray[np.int32]]
) -> tuple[list[Name], npt.NDArray[np.int32]]:
    """Unite the names that occur in several tables, ascending, and return their numbers end to end."""
    occur = [np.unique(some).tolist() for some in used]
    union = sorted({table[number] for table, some in zip(names, occur, strict=True) for number in some})
    number_of = dict(zip(union, range(len(union)), strict=True))
    new_numbers = [np.zeros(0, dtype=np.int32)]
    for table, some, each in zip(names, occur, used, strict=True):
        numbers = np.zeros(len(table), dtype=np.int32)
        numbers[some] = [number_of[table[number]] for number in some]
        new_numbers.append(numbers[each])
    return union, np.concatenate(new_numbers)


def united(vocabularies: Sequence[Texts]) -> Iterator[tuple[list[bytes], list[tuple[int, Rows]]]]:
    """Unite vocabularies, a block of neighboring terms at a time.

    Of each vocabulary, a block has the number of its first term there, and the number of each in the block, ascending.
    """
    begins, step = [0] * len(vocabularies), max(1, AT_ONCE // max(1, len(vocabularies)))
    while True:
        stops = [min(begin + step, len(terms)) for begin, terms in zip(begins, vocabularies, strict=True)]
        runs = zip(begins, stops, vocabularies, strict=True)
        lasts = [terms.encoded(stop - 1) for begin, stop, terms in runs if begin < stop]
        if not lasts:
            return
        last = min(lasts)  # no vocabulary has a term up to this one beyond its step
        runs = zip(begins, stops, vocabularies, strict=True)
        ends = [bisect_right(range(stop), last, begin, key=terms.encoded) for begin, stop, terms in runs]
        runs = zip(begins, ends, vocabularies, strict=True)
        of_vocabularies = [terms.all_encoded(begin, end) for begin, end, terms in runs]
        block = list(dict.fromkeys(sorted(chain.from_iterable(of_vocabularies))))
        number = dict(zip(block, range(len(block)), strict=True)).__getitem__
        numbers = [np.fromiter(map(number, some), np.int64, len(some)) for some in of_vocabularies]
        yield block, list(zip(begins, numbers, strict=True))
        begins = ends


def nearest_terms(terms: Texts, word: str, most: int, ending: int = 0) -> Rows:
    """Find terms with at most some edits to a word of two or more characters, beginning with nearly the same two.

    An edit inserts, removes or changes a character, or swaps two neighbors. A stem has lost its ``ending``, so many
    characters, which a misspelled word still has: ``stabiliser`` begins with the stem of ``stabilizer``. The places are
    int64: by edits, then by the length of the missing ending, then in order.
    """
    near, costs = [np.zeros(0, np.int64)], [np.zeros(0, np.uint8)]
    for start in range(0, len(terms), AT_ONCE):
        places, of_places = _nearest(terms.between(start, min(start + AT_ONCE, len(terms))), word, most, ending)
        near.append(start + places)
        costs.append(of_places)
    return np.concatenate(near)[np.argsort(np.concatenate(costs), kind="stable")]


_EDIT = 16  # what an edit costs; a missing character of the ending costs 1


def _nearest(terms: Texts, word: str, most: int, ending: int) -> tuple[Rows, Array]:
    """Return the places of near terms, and the cost of each."""
    codes, offsets = _characters(terms)
    lengths = np.diff(offsets)
    shortest, longest = max(2, len(word) - ending - most), len(word) + most
    places = np.flatnonzero((lengths >= shortest) & (lengths <= longest))
    begins = np.isin(codes[offsets[places] + np.arange(2)[:, None]], list(map(ord, word[:2])))
    places = places[begins.any(axis=0)]
    places = places[np.argsort(lengths[places], kind="stable")]
    lengths = lengths[places]
    of_length = np.searchsorted(lengths, np.arange(longest + 2))
    padded = np.zeros((len(places), longest), dtype=codes.dtype)
    padded.reshape(-1)[ranges(np.arange(len(places)) * longest, lengths)] = codes[ranges(offsets[places], lengths)]
    letters = np.ascontiguousarray(padded.T)  # [longest, terms]
    far = np.full(len(places), most + 1, dtype=np.uint8)
    costs = np.full(len(places), 255, dtype=np.uint8)
    # rows[-1][j]: the edits from the first i characters of the word to the first j of each term, as far as i is near j
    rows: list[list[Array]] = [[np.minimum(far, j) for j in range(longest + 1)]]
    for i, letter in enumerate(map(ord, word), start=1):
        row = [np.minimum(far, i), *[far] * longest]
        for j in range(max(1, i - most), min(longest, i + most) + 1):
            edits = np.minimum(rows[-1][j - 1] + (letters[j - 1] != letter), np.minimum(rows[-1][j], row[j - 1]) + 1)
            if i > 1 and j > 1:
                swapped = (letters[j - 1] == ord(word[i - 2])) & (letters[j - 2] == letter)
                edits = np.where(swapped, np.minimum(edits, rows[-2][j - 2] + 1), edits)
            row[j] = np.minimum(edits, far)
            here = slice(of_length[j], of_length[j + 1])
            if (missing := len(word) - i) <= ending:
                costs[here] = np.minimum(costs[here], _EDIT * row[j][here] + missing)
        rows = [rows[-1], row]
    near = np.flatnonzero(costs < _EDIT * (most + 1))
    near = near[np.argsort(places[near])]
    return places[near], costs[near]


def _characters(terms: Texts) -> tuple[Array, Rows]:
    """Return the code points of texts, end to end, and where each text begins."""
    data, offsets = np.asarray(terms.data[terms.offsets[0] : terms.offsets[-1]]), terms.offsets - terms.offsets[0]
    if not (data & 0x80).any():
        return data, offsets
    text = data.tobytes().decode("utf-8", "surrogatepass")
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return codes, offsets - np.searchsorted(np.flatnonzero((data & 0xC0) == 0x80), offsets)
