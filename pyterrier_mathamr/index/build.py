"""Building: entries become shards beside the index, and the index changes in one step at the end.

::

    arqmath.mathamr/             what stands, untouched until the last step
    .arqmath.mathamr.building/   journal.json (which shards are whole) and index/ (the shards)
    .arqmath.mathamr.lock        who is writing

A docno that comes twice ends a build. A formula that stands in several posts does not: ARQMath has some, and its tables
list the first place, which counts here too; the others are left out with a warning.

A build holds one shard's rows in memory, however long the stream is. A new index is one rename; a change of one that
stands moves the new shards in, swaps ``pt_meta.json``, and only then removes what is no longer named.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from pyterrier_mathamr._common.errors import MathAMRWarning

from .disk import move, remove_folder, write_text, writing
from .errors import DuplicateDocnoError, EmbeddingError, IndexWriteError, MathAMRIndexError
from .files import FORMAT_VERSIONS, JOURNAL_NAME
from .meta import IndexMeta, ShardMeta, read_json, read_meta, write_meta
from .records import Entry
from .shard import Shard, write_shard
from .texts import hash_texts

SHARD_ROWS = 1 << 19
"""Rows after which a shard is closed: 64 MiB at 32 dimensions, so that a build needs about twice that."""

_LOOKED_UP = 1024
_SHARD_NAME = re.compile(r"shard-(\d{6,})")


def staging_path(path: Path) -> Path:
    """Where the index at ``path`` is built before it counts."""
    return path.with_name(f".{path.name}.building")


def clean(path: Path, meta: IndexMeta | None) -> None:
    """Remove shards that ``pt_meta.json`` does not name: what a writer that died left behind."""
    named = {shard.name for shard in meta.shards} if meta else set()
    for folder in path.glob("shard-*") if meta else ():
        if _SHARD_NAME.fullmatch(folder.name) and folder.name not in named:
            remove_folder(folder)


class Build:
    """One build in progress; :func:`write_index` drives it.

    Args:
        path: the index.
        target: the index to be; its shards are those that stand and stay in front.
        replaced: the index that stands already, so that the new shards are moved into it.
        resume: take over the whole shards of an earlier build of the same kind that died.
    """

    def __init__(self, path: Path, target: IndexMeta, *, replaced: IndexMeta | None, resume: bool) -> None:
        self.path, self.target, self.replaced, self.resume = path, target, replaced, resume
        self.folder = staging_path(path)
        self.dimensions = target.dimensions
        self.shards: list[ShardMeta] = []
        self._entries: list[Entry] = []
        self._again: list[str] = []
        self._rows = 0
        self._first = 1 + max((int(shard.name.partition("-")[2]) for shard in (replaced or target).shards), default=-1)
        self._stands = [self._shard(path, shard) for shard in target.shards]
        with writing(path):
            self._open()
        self._done = [self._shard(self.folder / "index", shard) for shard in self.shards]
        self._seen = [np.zeros(len(shard), dtype=np.bool_) for shard in self._done]

    def _shard(self, folder: Path, shard: ShardMeta) -> Shard:
        return Shard(folder / shard.name, self.target.layout, self.target.dtype, shard)

    def _header(self) -> dict[str, object]:
        base = [shard.name for shard in (self.replaced or self.target).shards]
        kept = len(self.target.shards)
        about = {"layout": self.target.layout, "dtype": self.target.dtype, "model": self.target.model}
        return {"format_version": FORMAT_VERSIONS[self.target.dtype], **about, "base": base, "kept": kept}

    def _open(self) -> None:
        """Start an empty build, or take over the whole shards of one that died."""
        journal = self.folder / JOURNAL_NAME
        if self.resume and journal.exists():
            found = read_json(journal)
            if found.get("header") == self._header():
                as_meta = {**self.target.to_dict(), "dimensions": found["dimensions"], "shards": found["shards"]}
                earlier = IndexMeta.from_dict(as_meta, self.folder)
                self.dimensions = earlier.dimensions
                for shard in earlier.shards:
                    if not (self.folder / "index" / shard.name).is_dir():
                        break
                    self.shards.append(shard)
        if not self.shards:
            remove_folder(self.folder)
            (self.folder / "index").mkdir(parents=True)
        clean(self.folder / "index", self.target.with_shards(tuple(self.shards)))

    def add_all(self, entries: Iterable[Entry]) -> None:
        """Add a stream of entries, closing a shard whenever it is full.

        Raises:
            EmbeddingError: an entry cannot be indexed.
            DuplicateDocnoError: a docno comes twice, or stands already.
            MathAMRWarning: formulas did, and were left out.
        """
        for entry in self._without_done(entries) if self._done else entries:
            if entry.rows.shape[1] != self.dimensions:
                self._set_dimensions(entry)
            self._entries.append(entry)
            self._rows += len(entry.rows)
            if self._rows >= SHARD_ROWS:
                self.close_shard()
        self.close_shard()
        if self._again:
            shown = ", ".join(sorted(set(self._again))[:5])
            text = f"{len(self._again)} formulas came again and were left out, the first place counts: {shown}"
            warnings.warn(MathAMRWarning(f"{self.path}: {text}"), stacklevel=2)

    def _set_dimensions(self, entry: Entry) -> None:
        width = entry.rows.shape[1]
        if self.dimensions:
            raise EmbeddingError(entry.docno, f"its rows have {width} dimensions, those of the index {self.dimensions}")
        self.dimensions = width

    def _without_done(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Leave out what the build that died had already put into whole shards."""
        stream = iter(entries)
        while some := list(islice(stream, _LOOKED_UP)):
            docnos = [entry.docno for entry in some]
            hashes = hash_texts(docnos)
            done = np.zeros(len(some), dtype=np.bool_)
            for shard, seen in zip(self._done, self._seen, strict=True):
                found = shard.find(docnos, hashes)
                for hit in np.flatnonzero(found >= 0).tolist():
                    if seen[found[hit]]:
                        self._refuse([docnos[hit]])
                    else:
                        seen[found[hit]] = True
                    done[hit] = True
            yield from (entry for entry, skipped in zip(some, done, strict=True) if not skipped)

    def close_shard(self) -> None:
        """Write what was gathered as a whole shard, and say so in the journal."""
        self._entries = self._first_places(self._entries)
        if not self._entries:
            self._rows = 0
            return
        name = f"shard-{self._first + len(self.shards):06d}"
        folder = self.folder / "index" / name
        with writing(self.path):
            meta = write_shard(folder, self.target.layout, self.target.dtype, self._entries)
            self.shards.append(meta)
            journal = {
                "header": self._header(),
                "dimensions": self.dimensions,
                "shards": self.target.with_shards(tuple(self.shards)).to_dict()["shards"],
            }
            write_text(self.folder / JOURNAL_NAME, json.dumps(journal))
        shard = self._shard(folder.parent, meta)
        self._done.append(shard)
        self._seen.append(np.broadcast_to(np.True_, len(shard)))  # one byte, however long the shard
        self._entries, self._rows = [], 0

    def _first_places(self, entries: list[Entry]) -> list[Entry]:
        """Leave out entries whose docno has come before, in a shard or among themselves."""
        docnos = [entry.docno for entry in entries]
        hashes = hash_texts(docnos)
        again = np.ones(len(entries), dtype=np.bool_)
        again[list({docno: place for place, docno in reversed(list(enumerate(docnos)))}.values())] = False
        for shard in (*self._stands, *self._done):
            again |= shard.find(docnos, hashes) >= 0
        if again.any():
            self._refuse([docnos[place] for place in np.flatnonzero(again)])
        return [entry for entry, twice in zip(entries, again, strict=True) if not twice]

    def _refuse(self, docnos: list[str]) -> None:
        """Take note of formulas that came again; refuse documents that did."""
        if self.target.layout != "formulas":
            raise DuplicateDocnoError(self.path, sorted(set(docnos)))
        self._again.extend(docnos)

    def commit(self) -> IndexMeta:
        """Make the new index the one that counts.

        Returns:
            What ``pt_meta.json`` now says.
        """
        shards = (*self.target.shards, *self.shards)
        meta = replace(self.target, dimensions=self.dimensions, shards=shards)
        try:
            with writing(self.path):
                if self.replaced is None:
                    write_meta(self.folder / "index", meta)
                    move(self.folder / "index", self.path)
                else:
                    self._move_in(meta)
        except IndexWriteError as error:
            if not self._counts(meta):
                raise
            raise IndexWriteError(error.path, error.reason, swapped=True) from error
        remove_folder(self.folder)
        return meta

    def _counts(self, meta: IndexMeta) -> bool:
        """Whether this is what a reader finds."""
        try:
            return read_meta(self.path) == meta
        except (MathAMRIndexError, OSError):
            return False

    def _move_in(self, meta: IndexMeta) -> None:
        try:
            for shard in self.shards:
                move(self.folder / "index" / shard.name, self.path / shard.name)
            write_meta(self.path, meta)
        finally:
            clean(self.path, read_meta(self.path))  # whichever meta counts now, what it does not name goes

    def leave(self) -> None:
        """Give up: whole shards stay for a build that resumes, anything else is removed."""
        if not (self.resume and self.shards):
            remove_folder(self.folder)
