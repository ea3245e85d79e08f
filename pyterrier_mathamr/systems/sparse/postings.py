"""Term counts of a collection by term.

    offsets    int64  [t + 1]   term ``i`` owns the postings ``offsets[i]:offsets[i + 1]``
    documents  int32  [p]       the document of each posting, ascending for each term
    counts     int32  [p]       how often the term occurs in that document
    lengths    int32  [m]       the tokens of each document
    terms      texts  [t]       ascending; each occurs in some document

Counts are stored, not weights, so one index serves every weighting, and combining several collections equals
counting all their documents at once.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from operator import lt
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.store import Array, DamagedError, Field, Part, Rows, scratch_array

from .texts import read_texts, text_arrays, text_fields

_ARRAYS = ("offsets", "documents", "counts", "lengths")
_TERM_BYTES, _POSTING_BYTES = 120, 8  # of memory while counting
BLOCK = 1 << 22
"""Postings that are sorted or weighed at a time, whatever the size of the collection."""


def postings_fields(prefix: str = "", documents: str = "m") -> tuple[Field, ...]:
    """Declare the term counts of a part.

    Args:
        prefix: of the arrays' names.
        documents: the extent that the documents are numbered in.
    """
    terms, postings = f"{prefix}t", f"{prefix}p"
    return (
        Field(f"{prefix}offsets", "int64", f"{terms}+1", cuts=postings),
        Field(f"{prefix}documents", "int32", postings, below=documents),
        Field(f"{prefix}counts", "int32", postings),
        Field(f"{prefix}lengths", "int32", documents),
        *text_fields(f"{prefix}terms", terms),
    )


@dataclass(frozen=True, eq=False)
class Postings:
    """The term counts of ``m`` documents; see the module for each array."""

    names: Sequence[str]
    offsets: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]

    @cached_property
    def terms(self) -> dict[str, int]:
        """The number of each term."""
        return dict(zip(self.names, range(len(self.names)), strict=True))

    @classmethod
    def of_part(cls, part: Part, prefix: str = "") -> Postings:
        """Read the terms of a part and memory-map its arrays.

        Raises:
            DamagedError: they were changed since they were written.
        """
        names = read_texts(part, f"{prefix}terms")
        counts, lengths = part[f"{prefix}counts"], part[f"{prefix}lengths"]
        if not all(map(lt, names, islice(names, 1, None))):
            raise DamagedError(part.path, f"{prefix}terms do not ascend")
        if counts.min(initial=1) < 1 or lengths.min(initial=0) < 0:
            raise DamagedError(part.path, f"{prefix}counts or {prefix}lengths are negative")
        offsets, documents = part[f"{prefix}offsets"], part[f"{prefix}documents"]
        return cls(names, offsets, documents, counts, lengths)

    def arrays(self, prefix: str = "") -> dict[str, Array]:
        """Return the arrays that :func:`postings_fields` declares."""
        plain = {f"{prefix}{name}": getattr(self, name) for name in _ARRAYS}
        return plain | text_arrays(f"{prefix}terms", self.names)


class PostingsBuilder:
    """Counts the tokens of documents, one after another."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._terms, self._counts = array("i"), array("i")  # of each posting
        self._distinct, self._lengths = array("i"), array("i")  # of each document

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def nbytes(self) -> int:
        """Estimate the memory of the counts."""
        return _POSTING_BYTES * len(self._counts) + _TERM_BYTES * len(self._seen)

    def add(self, tokens: Sequence[str]) -> None:
        """Count one document."""
        seen, counts = self._seen, Counter(tokens)
        self._terms.fromlist([seen.setdefault(token, len(seen)) for token in counts])
        self._counts.fromlist(list(counts.values()))
        self._distinct.append(len(counts))
        self._lengths.append(len(tokens))

    def postings(self) -> Postings:
        """Return the counts, with documents in order of their addition."""
        names = sorted(self._seen)
        sorted_id = np.empty(len(names), dtype=np.int32)
        sorted_id[np.fromiter(map(self._seen.__getitem__, names), np.int32, len(names))] = np.arange(len(names))
        terms = sorted_id[np.asarray(self._terms, dtype=np.int32)]
        order = np.argsort(terms, kind="stable")  # stable: documents stay ascending for each term
        return Postings(
            names=names,
            offsets=_offsets(terms, len(names)),
            documents=np.repeat(np.arange(len(self), dtype=np.int32), self._distinct)[order],
            counts=np.asarray(self._counts, dtype=np.int32)[order],
            lengths=np.asarray(self._lengths, dtype=np.int32),
        )


def combine(pieces: Sequence[Postings], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Postings:
    """Combine the counts of several collections into one, a block of terms at a time.

    Beside its terms, the result is all that grows with the collections: 8 bytes for each posting.

    Args:
        pieces: the collections.
        numbers: for each, int64 ``[m]``: the number of each of its documents in the result, -1 for none; no number
            occurs twice.
        size: documents of the result.
        folder: on whose disk the postings of the result are kept; ``None`` for memory.

    Returns:
        The counts of the documents of the result, without terms that none of them has.
    """
    names = list(dict.fromkeys(sorted(chain.from_iterable(piece.names for piece in pieces))))
    number_of = dict(zip(names, range(len(names)), strict=True))
    terms = [np.fromiter(map(number_of.__getitem__, of.names), np.int64, len(of.names)) for of in pieces]
    sizes = np.zeros(len(names), dtype=np.int64)
    lengths = np.zeros(size, dtype=np.int32)
    for piece, of, number in zip(pieces, terms, numbers, strict=True):
        sizes[of] += np.diff(piece.offsets)
        lengths[number[number >= 0]] = piece.lengths[number >= 0]
    documents, counts = (scratch_array(folder, int(sizes.sum()), np.dtype(np.int32)) for _ in range(2))
    end = 0
    for first, last in term_blocks(_ends(sizes)):
        place, count = _block(pieces, terms, numbers, first, last, size)
        term, document = np.divmod(place, max(1, size))
        sizes[first:last] = np.bincount(term, minlength=last - first)
        here = slice(end, end + len(place))
        documents[here], counts[here], end = document, count, here.stop
    occurs = np.flatnonzero(sizes)
    return Postings(
        names=[names[term] for term in occurs.tolist()],
        offsets=_ends(sizes[occurs]),
        documents=documents[:end],
        counts=counts[:end],
        lengths=lengths,
    )


def term_blocks(offsets: Rows) -> Iterator[tuple[int, int]]:
    """Cut terms into neighbours with about :data:`BLOCK` postings; yield the first term and the one after the last.

    Args:
        offsets: int64 ``[t + 1]``; where the postings of each term begin, and where the last ones end.
    """
    first = 0
    while first < len(offsets) - 1:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + BLOCK, side="right")) - 1)
        yield first, last
        first = last


def _block(
    pieces: Sequence[Postings], terms: Sequence[Rows], numbers: Sequence[Rows], first: int, last: int, size: int
) -> tuple[Rows, npt.NDArray[np.int32]]:
    """Take the postings of some neighbouring terms from all pieces.

    Returns:
        int64 ``[p]``, ``term · size + document``, ascending, the first term being 0; and int32 ``[p]``, the counts.
    """
    places, counts = [], []
    for piece, of, number in zip(pieces, terms, numbers, strict=True):
        start, stop = np.searchsorted(of, (first, last)).tolist()
        here = slice(piece.offsets[start], piece.offsets[stop])
        documents = number[piece.documents[here]]
        place = np.repeat(of[start:stop] - first, np.diff(piece.offsets[start : stop + 1])) * size + documents
        places.append(place[documents >= 0])
        counts.append(piece.counts[here][documents >= 0])
    together = np.concatenate(places)
    order = np.argsort(together, kind="stable")  # fast on runs that are sorted already
    return together[order], np.concatenate(counts)[order]


def _offsets(terms: Array, count: int) -> Rows:
    """Return where the postings of each term begin: int64 ``[t + 1]``."""
    return _ends(np.bincount(terms, minlength=count))


def _ends(sizes: Array) -> Rows:
    """Return where each of neighbours of these sizes begins, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
