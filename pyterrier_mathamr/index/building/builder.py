"""Building: entries become parts of a job, which the store publishes in one step.

A docno that occurs twice ends a build. A formula may occur in several posts, as some of ARQMath do: its first
occurrence is indexed, as in ARQMath's tables, and the others are left out with a warning. A build holds the rows of one
part in memory, however long the stream is.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.index.errors import EmbeddingError, ModelMismatchError, check_model
from pyterrier_mathamr.index.snapshot import IndexMeta, VectorParts
from pyterrier_mathamr.store import Job, Rows, UnfinishedJobError

from .content import part_content
from .entries import TEXTS, DType, Entry, Layout, Post
from .resume import Corpus

PART_BYTES = 64 << 20
"""Bytes of float32 rows after which a part is closed; a build needs a few times that."""

_LOOKED_UP = 1024
_SAME = 1e-5
"""The greatest difference of a row that is resumed from the stored one."""


class Build:
    """One build of an index."""

    def __init__(self, job: Job, layout: Layout, corpus: Corpus, model: str | None, dtype: DType | None) -> None:
        self.job, self.layout, self.corpus = job, layout, corpus
        base = job.base and IndexMeta.read(job.base.details, job.path)
        if base:
            check_model(job.path, base.model, model)
            if dtype not in (None, base.dtype):
                copy = f"a copy with rows of {dtype} is made by merge(path, index, dtype={dtype!r})"
                raise ConfigError("dtype", dtype, f"None: {job.path} stores {base.dtype}; {copy}")
        self.model, self.dtype = (base and base.model) or model, base.dtype if base else dtype or "float32"
        self.dimensions = base.dimensions if base else 0
        self.done = VectorParts(job.done.parts)
        self._came = np.zeros(int(self.done.bases[-1]), dtype=np.bool_)
        for part in self.done.parts:
            self.dimensions = part["rows"].shape[1]
            self.model = self._same_model(part.meta.details.get("model"))
        self._entries: list[Entry] = []
        self._docnos: list[str] = []
        self._again: list[str] = []
        self._bytes = 0

    def _same_model(self, kept: str | None) -> str | None:
        try:
            check_model(self.job.path, kept, self.model)
        except ModelMismatchError as error:
            raise UnfinishedJobError(self.job.path, {"model": (kept, self.model)}) from error
        return kept or self.model

    def run(self, posts: Iterable[Post]) -> None:
        """Add all documents and make the result the index, in one step."""
        for post in self._without_done(posts) if self.done.parts else posts:
            for entry in post.entries:
                self._take(entry)
            self._docnos.append(post.docno)
            if self._bytes >= PART_BYTES:
                self._close_part()
        self._close_part()
        self.corpus.tell(self.job)
        self.job.commit(asdict(IndexMeta(self.dimensions, self.model, self.dtype)))
        warn_of_repeated(self.job.path, self._again)

    def _take(self, entry: Entry) -> None:
        width = entry.rows.shape[1]
        if width != self.dimensions:
            if self.dimensions:
                text = f"its rows have {width} dimensions, those of the index {self.dimensions}"
                raise EmbeddingError(entry.docno, text)
            self.dimensions = width
        self._entries.append(entry)
        self._bytes += entry.rows.nbytes

    def _close_part(self) -> None:
        """Write the gathered entries as one part; documents without an entry wait for the next part."""
        entries = self._first_places(self._entries) if self.layout == "formulas" else self._entries
        if entries:
            sources = self.corpus.sources(self._docnos)
            self.job.add(part_content(self.layout, self.dtype, entries, sources, self.model))
            self._docnos = []
        self._entries, self._bytes = [], 0

    def _first_places(self, entries: Sequence[Entry]) -> list[Entry]:
        """Leave out formulas that occurred before, in a part or among themselves."""
        first: dict[str, Entry] = {}
        for entry in entries:
            if first.setdefault(entry.docno, entry) is not entry:
                self._again.append(entry.docno)
        rows = self.job.look_up(list(first))
        self._again += [name for name, row in zip(first, rows.tolist(), strict=True) if row >= 0]
        return [entry for entry, row in zip(first.values(), rows.tolist(), strict=True) if row < 0]

    def _without_done(self, posts: Iterable[Post]) -> Iterator[Post]:
        """Leave out the entries in parts of an earlier run of the job, after comparing them."""
        stream = iter(posts)
        while some := list(islice(stream, _LOOKED_UP)):
            entries = [entry for post in some for entry in post.entries]
            done = iter(self._done(entries).tolist())
            for post in some:
                rest = [entry for entry in post.entries if not next(done)]
                if post.docno in self.corpus:  # the rest of it was left out before
                    self._leave_out(post.docno, [entry.docno for entry in rest])
                elif rest or not post.entries:
                    yield Post(post.docno, rest)

    def _leave_out(self, docno: str, names: Sequence[str]) -> None:
        if (self.job.look_up(names) < 0).any():
            raise self.job.changed(docno)
        self._again += names

    def _done(self, entries: Sequence[Entry]) -> npt.NDArray[np.bool_]:
        """Return which entries an earlier run has stored."""
        names = [entry.docno for entry in entries]
        if self.layout == "documents":
            rows = self.job.rows_done(names)
        else:  # a formula of another post, or repeated in this one, is new: it is left out later
            rows = self.done.look_up(names)
            known = np.flatnonzero(rows >= 0).tolist()
            rows[known] = self._same_place(rows[known], [entries[i] for i in known])
            self.job.came_again(rows[rows >= 0])
        done: npt.NDArray[np.bool_] = rows >= 0
        self._compare(rows[done], [entries[i] for i in np.flatnonzero(done).tolist()])
        return done

    def _same_place(self, rows: Rows, entries: Sequence[Entry]) -> Rows:
        """Return the rows whose formula comes first from the post that it was stored with; -1 for others."""
        _, first = np.unique(rows, return_index=True)
        stored = self.done.texts("post_id", rows)
        same = np.array([of == entry.texts[1] for of, entry in zip(stored, entries, strict=True)], dtype=np.bool_)
        same &= np.isin(np.arange(len(rows)), first) & ~self._came[rows]
        self._came[rows[same]] = True
        return np.where(same, rows, -1)

    def _compare(self, rows: Rows, entries: Sequence[Entry]) -> None:
        """Refuse entries that differ from the stored ones."""
        if not entries:
            return
        stored, offsets = self.done.rows(rows)
        shapes = zip(np.diff(offsets).tolist(), entries, strict=True)
        same = np.array([entry.rows.shape == (length, self.dimensions) for length, entry in shapes], dtype=np.bool_)
        for column, name in enumerate(TEXTS[self.layout][1:], 1):
            texts = zip(self.done.texts(name, rows), entries, strict=True)
            same &= np.array([text == entry.texts[column] for text, entry in texts], dtype=np.bool_)
        if same.all():
            room = _SAME * (1 + np.abs(stored))
            if self.dtype == "float16":
                room += np.spacing(np.abs(stored).astype(np.float16))
            close = np.abs(np.concatenate([entry.rows for entry in entries]) - stored) <= room
            same = np.logical_and.reduceat(close.all(axis=1), offsets[:-1])
        if not same.all():
            raise self.job.changed(entries[int(np.argmin(same))].docno)


def warn_of_repeated(path: Path | str, formulas: Sequence[str]) -> None:
    """Warn of formulas that occurred more than once, all but the first of which were left out."""
    if formulas:
        shown = ", ".join(sorted(set(formulas))[:5])
        text = f"{len(formulas)} formulas occurred again and were left out; the first occurrence is indexed: {shown}"
        warnings.warn(MathAMRWarning(f"{path}: {text}"), stacklevel=3)
