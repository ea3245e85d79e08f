"""What a BM25 index keeps: term counts of its documents, and what identifies each document's content."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pyterrier_mathamr._common.extras import require
from pyterrier_mathamr.store import Content, Field, Kind, Part, Rows, Snapshot, live_ids
from pyterrier_mathamr.systems.sparse.index import UNBOUNDED, read_options
from pyterrier_mathamr.systems.sparse.postings import Postings, combine, postings_fields
from pyterrier_mathamr.systems.sparse.ranking import Remembered

from .tokens import TokenOptions


def merge_parts(parts: Sequence[Part]) -> Content:
    """Make one part of several, without the documents that were deleted."""
    sources = np.concatenate([part["sources"][part.alive] for part in parts])
    return Content(live_ids(parts), {**postings_of(parts).arrays(), "sources": sources})


def postings_of(parts: Sequence[Part]) -> Postings:
    """The term counts of all documents that are not deleted, in order: memory-mapped from one part, else combined."""
    if len(parts) == 1 and not len(parts[0].deleted):
        return Postings.of_part(parts[0])
    numbers: list[Rows] = []
    size = 0
    for part in parts:
        numbers.append(np.where(part.alive, size + np.cumsum(part.alive) - 1, -1))
        size += int(np.count_nonzero(part.alive))
    return combine([Postings.of_part(part) for part in parts], numbers, size)


BM25 = Kind(
    type="sparse_index",
    format="mathamr_bm25",
    version=2,
    fields=(*postings_fields(), Field("sources", "uint64", "m")),
    merge=merge_parts,
    rebuild="BM25Index('{path}').indexer(mode='overwrite').index(documents)",
    part_bytes=UNBOUNDED,
)


class BM25Snapshot(Snapshot):
    """A BM25 index as it was when it was opened.

    Args:
        path: the index's folder.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, BM25)
        self.docnos = Remembered(lambda numbers: self.ids(self.live[numbers]))
        self._engine: tuple[tuple[float, float], Any] | None = None

    @cached_property
    def tokens(self) -> TokenOptions:
        """How the documents were cut."""
        return read_options(self, "tokens", TokenOptions.from_dict)

    @cached_property
    def postings(self) -> Postings:
        """The term counts of the documents, which are numbered in order without those that were deleted."""
        return postings_of(self.parts)

    def engine(self, k1: float, b: float) -> Any:
        """Give the ``bm25s.BM25`` that holds the weights of ``k1`` and ``b``; the last one is kept.

        Raises:
            MissingExtraError: ``bm25s`` is not installed.
        """
        if self._engine is None or self._engine[0] != (k1, b):
            engine = require("bm25s", "bm25").BM25(method="lucene", k1=k1, b=b)
            engine.scores = {
                "data": self.postings.weights(k1, b),
                "indices": self.postings.documents,
                "indptr": self.postings.offsets,
                "num_docs": len(self),
            }
            engine.nonoccurrence_array = None  # only BM25L and BM25+ have one; bm25s's own load sets both attributes
            self._engine = ((k1, b), engine)
        return self._engine[1]
