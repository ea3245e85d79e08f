"""Building a store: whole shards pile up beside it, and become the store in one step at the end.

A job works in ``.<name>.partial`` beside the store. What was written as whole shards survives a kill: the next job of
the same mode goes on after them. ``pt_meta.json`` comes last and is swapped in one step, so a store is at any time
either as it was or as it shall be. ``append`` adds shards and a new table; the old shards are never touched.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pyterrier_mathamr._common.artifacts import META, check_artifact, check_writable
from pyterrier_mathamr._common.errors import MathAMRWarning

from .errors import (
    ChangedGraphError,
    DamagedStoreError,
    DuplicateIdError,
    StoreExistsError,
    StoreFormatError,
    UnfinishedJobError,
)
from .id_table import IdTable
from .shard import read_tail, write_shard

StoreMode = Literal["create", "overwrite", "append"]
STORE_KIND = "graph_store.mathamr"
"""Type and format of the artifact."""
STORE_FORMAT = 2
"""Format 1 kept Penman texts, 2 keeps the records of `record.py`."""
READABLE_FORMATS = range(2, 3)

_JOB = "job.json"


def partial_path(path: Path) -> Path:
    """Say where the unfinished work of a store lies."""
    return path.parent / f".{path.name}.partial"


def shard_name(number: int) -> str:
    """Name a shard by its number."""
    return f"shard-{number:05d}.bin"


def unfinished_ids(path: Path) -> frozenset[str]:
    """List the graphs in the whole shards of a job that stopped half way; none without one."""
    found: set[str] = set()
    for shard in sorted(partial_path(path).glob("shard-*.bin")):
        try:
            found.update(read_tail(shard).ids)
        except DamagedStoreError:
            break  # the job itself will cut it off, and say so
    return frozenset(found)


class StoreJob:
    """One job that builds a store or adds to it; begun anew or gone on with.

    Args:
        path: the store.
        mode: ``create``, ``overwrite`` or ``append``.
        shard_size: graphs in a shard.
        base: metadata of the store that is added to, empty for a new one.
        base_ids: its ids.

    Raises:
        OtherArtifactError: something else than a store is at ``path``.
        NotWritableError: nothing can be written there.
        StoreExistsError: the mode is ``create`` and there is a store.
        UnfinishedJobError: work of another mode lies beside the store.
        StoreFormatError: work of another format lies beside the store.
    """

    def __init__(
        self, path: Path, mode: StoreMode, shard_size: int, base: Mapping[str, Any], base_ids: frozenset[str]
    ) -> None:
        check_artifact(path, STORE_KIND)
        check_writable(path)
        if mode == "create" and (path / META).exists():
            raise StoreExistsError(path)
        self.path, self.mode, self.shard_size, self.base, self.base_ids = path, mode, shard_size, base, base_ids
        self.folder = partial_path(path)
        self.first_shard = len(base.get("shards", ()))
        self._begin()
        self.done: dict[str, tuple[int, int, int]] = {}
        """The graphs of an earlier run: id to shard, offset and length."""
        self.next_shard = self._resume()
        self._seen: set[str] = set()
        self._ids: list[str] = []
        self._records: list[bytes] = []

    def _begin(self) -> None:
        """Make the folder, or check that what is in it belongs to this job."""
        job = {"mode": self.mode, "format": STORE_FORMAT, "base": self.base.get("count", 0)}
        note = self.folder / _JOB
        if note.is_file():
            found = json.loads(note.read_text())
            if found.get("format") != STORE_FORMAT:
                raise StoreFormatError(self.folder, found.get("format"), READABLE_FORMATS)
            if found != job:
                raise UnfinishedJobError(self.path, str(found.get("mode")), self.mode)
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps(job))

    def _resume(self) -> int:
        """Take over the whole shards of an earlier run and cut off from the first that is torn."""
        for number in count(self.first_shard):
            shard = self.folder / shard_name(number)
            if not shard.exists():
                break
            try:
                tail = read_tail(shard, check_records=True)
            except DamagedStoreError as error:
                warnings.warn(f"{error.reason}: {shard} and what follows is built again.", MathAMRWarning, stacklevel=2)
                break
            starts = np.cumsum([0, *tail.lengths]).tolist()
            for name, start, length in zip(tail.ids, starts, tail.lengths, strict=False):
                self.done[name] = (number, start, length)
        kept = {shard_name(i) for i in range(self.first_shard, number)}
        for file in self.folder.glob("shard-*"):
            if file.name not in kept:
                file.unlink()
        return number

    def add(self, name: str, record: bytes) -> None:
        """Add one graph, or recognise it as done by an earlier run.

        Args:
            name: its id.
            record: its packed record.

        Raises:
            DuplicateIdError: the id came before.
            ChangedGraphError: an earlier run had another graph of this id.
        """
        if name in self._seen or name in self.base_ids:
            raise DuplicateIdError(self.path, name)
        self._seen.add(name)
        if name in self.done:
            shard, start, length = self.done[name]
            with open(self.folder / shard_name(shard), "rb") as file:
                file.seek(start)
                if file.read(length) != record:
                    raise ChangedGraphError(self.path, name)
            return
        self._ids.append(name)
        self._records.append(record)
        if len(self._ids) == self.shard_size:
            self._write_shard()

    def _write_shard(self) -> None:
        write_shard(self.folder / shard_name(self.next_shard), self._ids, self._records)
        self.next_shard += 1
        self._ids, self._records = [], []

    def finish(self, meta: Mapping[str, Any]) -> None:
        """Write the last shard, the tables and the metadata, and put them in place.

        Args:
            meta: keys of the artifact's metadata.
        """
        if self._ids:
            self._write_shard()
        generation = self.base.get("generation", -1) + 1
        ids_file, table_file = f"ids-{generation}.npids", f"records-{generation}.npy"
        folders = {i: self.path if i < self.first_shard else self.folder for i in range(self.next_shard)}
        tails = [read_tail(folder / shard_name(i)) for i, folder in folders.items()]
        ids = [name for tail in tails for name in tail.ids]
        (self.folder / ids_file).unlink(missing_ok=True)
        IdTable.write(self.folder / ids_file, ids)
        table = [
            (number, end - length, length)
            for number, tail in enumerate(tails)
            for end, length in zip(np.cumsum(tail.lengths).tolist(), tail.lengths, strict=True)
        ]
        np.save(self.folder / table_file, np.array(table, dtype=np.int64).reshape(-1, 3))
        sizes = [(folder / shard_name(i)).stat().st_size for i, folder in folders.items()]
        own = {"version": STORE_FORMAT, "count": len(ids), "generation": generation, "shards": sizes}
        text = json.dumps({**meta, **own, "ids": ids_file, "records": table_file}, indent=1)
        (self.folder / f"{META}.new").write_text(text + "\n")
        self._put_in_place(ids_file, table_file)

    def _put_in_place(self, ids_file: str, table_file: str) -> None:
        for name in (ids_file, table_file, f"{META}.new"):
            with open(self.folder / name, "rb") as file:
                os.fsync(file.fileno())
        if self.mode == "append" and self.base:
            for name in (*map(shard_name, range(self.first_shard, self.next_shard)), ids_file, table_file):
                shutil.copyfile(self.folder / name, self.path / name)  # not moved: until the swap they are the job's
            os.replace(self.folder / f"{META}.new", self.path / META)
            for name in (self.base["ids"], self.base["records"]):
                (self.path / name).unlink(missing_ok=True)
            shutil.rmtree(self.folder)
            return
        os.replace(self.folder / f"{META}.new", self.folder / META)
        old = self.path.parent / f".{self.path.name}.old"
        if self.path.exists() and any(self.path.iterdir()):
            os.replace(self.path, old)
        os.replace(self.folder, self.path)
        (self.path / _JOB).unlink()
        shutil.rmtree(old, ignore_errors=True)
