"""The terms of postings in their order: read where they lie on the disk, looked up by halving, and united by blocks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from pyterrier_mathamr.store import Array, DamagedError, Rows

from .texts import Arrays, Texts, texts_of

AT_ONCE = 1 << 16
"""Terms that are united at a time, whatever the size of the vocabularies."""
_REMEMBERED = 1 << 16


class Vocabulary(Mapping[str, int]):
    """Terms and their numbers; those that were sought last are remembered.

    Args:
        terms: ascending.
    """

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
    """Tell whether each text is greater than the one before, by eight bytes of all at a time."""
    words = np.ndarray(len(data) + 1, ">u8", buffer=data.tobytes() + bytes(8), strides=(1,))  # from each byte on
    starts, lengths = offsets[:-1], np.diff(offsets)
    pairs, place = np.arange(1, len(lengths)), 0

    def word(texts: Rows) -> Array:
        """Return the eight bytes from the place on; those after the end of a text are 0."""
        left = np.clip(lengths[texts] - place, 0, 8)
        found = words[np.minimum(starts[texts] + place, len(data))].astype(np.uint64)
        return np.where(left, found & ~np.uint64(0) << (8 * (8 - np.maximum(left, 1))).astype(np.uint64), np.uint64(0))

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


class Place(NamedTuple):
    """Where neighbours of a vocabulary are in a block of the united one.

    Attributes:
        first: the number of the first of them in their vocabulary.
        numbers: int64, ascending; the number of each in the block.
    """

    first: int
    numbers: Rows


def united(vocabularies: Sequence[Texts]) -> Iterator[tuple[list[bytes], list[Place]]]:
    """Unite vocabularies, a block of neighbouring terms at a time."""
    begins, step = [0] * len(vocabularies), max(1, AT_ONCE // max(1, len(vocabularies)))
    while True:
        stops = [min(begin + step, len(of)) for begin, of in zip(begins, vocabularies, strict=True)]
        lasts = [
            of.encoded(stop - 1) for begin, stop, of in zip(begins, stops, vocabularies, strict=True) if begin < stop
        ]
        if not lasts:
            return
        last = min(lasts)  # no vocabulary has a term up to this one beyond its step
        ends = [
            bisect_right(range(stop), last, begin, key=of.encoded)
            for begin, stop, of in zip(begins, stops, vocabularies, strict=True)
        ]
        here = [of.all_encoded(begin, end) for begin, end, of in zip(begins, ends, vocabularies, strict=True)]
        terms = list(dict.fromkeys(sorted(chain.from_iterable(here))))
        number = dict(zip(terms, range(len(terms)), strict=True)).__getitem__
        yield (
            terms,
            [
                Place(begin, np.fromiter(map(number, some), np.int64, len(some)))
                for begin, some in zip(begins, here, strict=True)
            ],
        )
        begins = ends
