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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.store import Appended, Array, DamagedError, Field, Rows, StoredPart, scratch_array

from .texts import TermVocabulary, Texts, TextsBuilder, ends_of, read_terms, text_fields, united
from .tokens import PAIR, STRUCTURE

_ARRAYS = ("offsets", "documents", "counts", "lengths")
_TERM_BYTES, _POSTING_BYTES = 120, 8  # of memory while counting
BLOCK = 1 << 20
"""Postings that are sorted or weighed at a time, whatever the size of the collection."""


def postings_fields(prefix: str = "", documents: str = "m") -> tuple[Field, ...]:
    """Declare the term counts of a part."""
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

    names: Texts
    offsets: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]

    @cached_property
    def terms(self) -> TermVocabulary:
        """The number of each term."""
        return TermVocabulary(self.names)

    @cached_property
    def single_terms(self) -> tuple[Texts, Rows]:
        """The terms that are neither pairs nor structures, and their numbers: int64 ``[len(texts)]``."""
        places = [np.zeros(0, np.int64)]
        for start in range(0, len(self.names), BLOCK):
            offsets = self.names.offsets[start : start + BLOCK + 1]
            data = np.asarray(self.names.data[offsets[0] : offsets[-1]])
            marks = np.flatnonzero((data == ord(PAIR)) | (data == ord(STRUCTURE)))
            single = np.ones(len(offsets) - 1, dtype=np.bool_)
            single[np.searchsorted(offsets, offsets[0] + marks, side="right") - 1] = False
            places.append(start + np.flatnonzero(single))
        numbers = np.concatenate(places)
        return self.names.take(numbers), numbers

    def documents_of(self, term: int) -> npt.NDArray[np.int32]:
        """Return the documents that have a term, ascending."""
        return self.documents[self.offsets[term] : self.offsets[term + 1]]

    def of_documents(self, documents: Rows) -> tuple[Rows, Rows, Rows]:
        """Find the postings of some documents, by document and then term; all postings are read once.

        Returns:
            The document, the term and the count of each posting: int64 ``[n]``.
        """
        wanted = np.zeros(len(self.lengths), dtype=np.bool_)
        wanted[documents] = True
        starts = range(0, len(self.documents), BLOCK)
        blocks = [start + np.flatnonzero(wanted[self.documents[start : start + BLOCK]]) for start in starts]
        places = np.concatenate([np.zeros(0, np.int64), *blocks])
        places = places[np.argsort(self.documents[places], kind="stable")]
        terms = np.searchsorted(self.offsets, places, side="right") - 1
        return self.documents[places].astype(np.int64), terms, self.counts[places].astype(np.int64)

    @classmethod
    def of_part(cls, part: StoredPart, prefix: str = "") -> Postings:
        """Memory-map the arrays of a part."""
        names = read_terms(part, f"{prefix}terms")
        counts, lengths = part[f"{prefix}counts"], part[f"{prefix}lengths"]
        if counts.min(initial=1) < 1 or lengths.min(initial=0) < 0:
            raise DamagedError(part.path, f"{prefix}counts or {prefix}lengths are negative")
        offsets, documents = part[f"{prefix}offsets"], part[f"{prefix}documents"]
        return cls(names, offsets, documents, counts, lengths)

    @classmethod
    def combined(
        cls, pieces: Sequence[Postings], numbers: Sequence[Rows], size: int, folder: Path | None = None
    ) -> Postings:
        """Combine collections into one of ``size`` documents, a block of terms at a time.

        ``numbers`` has an int64 ``[m]`` of each collection: the place of each document in the result, -1 to leave it
        out. With a folder, data that grows with the collections is stored there in files without names.
        """
        lengths = scratch_array(folder, size, np.dtype(np.int32))
        for piece, number in zip(pieces, numbers, strict=True):
            for start in range(0, len(number), BLOCK):
                some = number[start : start + BLOCK]
                lengths[some[some >= 0]] = piece.lengths[start : start + BLOCK][some >= 0]
        names, offsets = TextsBuilder(folder), Appended(folder, np.dtype(np.int64))
        documents, counts = (Appended(folder, np.dtype(np.int32)) for _ in range(2))
        offsets.append(np.zeros(1))
        end = 0
        for terms, places in united([piece.names for piece in pieces]):
            greatest = np.zeros(len(terms), dtype=np.int64)  # postings, including documents that are left out
            for piece, (start, in_block) in zip(pieces, places, strict=True):
                greatest[in_block] += np.diff(piece.offsets[start : start + len(in_block) + 1])
            ends, last = ends_of(greatest), 0
            while last < len(terms):  # runs of about BLOCK postings
                first, last = last, max(last + 1, int(np.searchsorted(ends, ends[last] + BLOCK, side="right")) - 1)
                keys, of_keys = _block(pieces, places, numbers, first, last, size)
                sizes = np.diff(np.searchsorted(keys, size * np.arange(1, last - first + 1)), prepend=0)
                occurs = np.flatnonzero(sizes)
                kept = [terms[first + term] for term in occurs.tolist()]
                data = np.frombuffer(b"".join(kept), dtype=np.uint8)
                names.add(Texts(data, ends_of(np.fromiter(map(len, kept), np.int64, len(kept)))))
                offsets.append(end + np.cumsum(sizes[occurs]))
                end += len(keys)
                documents.append(keys % max(1, size))
                counts.append(of_keys)
        return cls(names.texts(), offsets.array(), documents.array(), counts.array(), lengths)

    def arrays(self, prefix: str = "") -> dict[str, Array]:
        """Return the arrays that :func:`postings_fields` declares."""
        plain = {f"{prefix}{name}": getattr(self, name) for name in _ARRAYS}
        return plain | self.names.arrays(f"{prefix}terms")


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
            names=Texts.of(names),
            offsets=ends_of(np.bincount(terms, minlength=len(names))),
            documents=np.repeat(np.arange(len(self), dtype=np.int32), self._distinct)[order],
            counts=np.asarray(self._counts, dtype=np.int32)[order],
            lengths=np.asarray(self._lengths, dtype=np.int32),
        )


def _block(
    pieces: Sequence[Postings],
    places: Sequence[tuple[int, Rows]],
    numbers: Sequence[Rows],
    first: int,
    last: int,
    size: int,
) -> tuple[Rows, npt.NDArray[np.int32]]:
    """Take the postings of neighboring terms from all pieces: term · size + document, ascending, and the counts."""
    keys, counts_of_keys = [], []
    for piece, (base, in_block), number in zip(pieces, places, numbers, strict=True):
        start, stop = np.searchsorted(in_block, (first, last)).tolist()
        offsets = piece.offsets[base + start : base + stop + 1]
        here = slice(offsets[0], offsets[-1])
        documents = number[piece.documents[here]]
        key = np.repeat(in_block[start:stop] - first, np.diff(offsets)) * size + documents
        keys.append(key[documents >= 0])
        counts_of_keys.append(piece.counts[here][documents >= 0])
    together, counts = np.concatenate(keys), np.concatenate(counts_of_keys)
    if bool(np.all(together[:-1] <= together[1:])):  # of one term that most documents have: it is not cut
        return together, counts
    order = np.argsort(together, kind="stable")  # fast on runs that are sorted already
    return together[order], counts[order]


def postings_of(parts: Sequence[StoredPart], folder: Path | None = None) -> Postings:
    """Return the term counts of all documents that are not deleted: memory-mapped from one part, else combined."""
    if len(parts) == 1 and not len(parts[0].deleted):
        return Postings.of_part(parts[0])
    numbers, size = list[Rows](), 0
    for part in parts:
        number = scratch_array(folder, len(part), np.dtype(np.int64))  # of each row, -1 for a deleted one
        for start in range(0, len(part), BLOCK):
            alive = part.alive[start : start + BLOCK]
            number[start : start + BLOCK] = np.where(alive, size + np.cumsum(alive) - 1, -1)
            size += int(np.count_nonzero(alive))
        numbers.append(number)
    return Postings.combined([Postings.of_part(part) for part in parts], numbers, size, folder)
