"""Changes of a finished artifact that bring no new rows: deleting, compacting; and looking for damage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from .errors import DamagedError, StoreError, UnfinishedJobError, unreadable
from .files import sync_folder, write_file, writing
from .ids import Rows
from .job import clean, open_job
from .kind import Kind
from .lock import writer_lock
from .manifest import Marks, PartMeta, read_manifest, write_manifest
from .merging import merged, neighbours
from .part import MARKS, Part
from .snapshot import Snapshot
from .unfinished import read_job


def delete_rows(path: Path, kind: Kind, ids: Sequence[str]) -> None:
    """Mark rows as deleted, in one step; their bytes are freed when their part is merged or the artifact compacted.

    Raises:
        UnknownIdError: some are not there; nothing is deleted.
        StoreError: another of its kinds; the artifact is unchanged.
    """
    path = path.absolute()
    if not kind.fields:
        raise StoreError(path, f"rows of a {kind.name} cannot be deleted; build it again without them")
    with writer_lock(path):
        snapshot = Snapshot(path, kind)
        metas = {part.meta.name: part.meta for part in snapshot.parts}
        number = snapshot.manifest.next
        with writing(path):
            for part, _, rows in snapshot.by_part(np.unique(snapshot.find(ids))):
                metas[part.meta.name] = _marked(path, part, rows, number)
                number += 1
            sync_folder(path)
            manifest = snapshot.manifest.with_parts(tuple(meta for meta in metas.values() if meta.live), number)
            write_manifest(path, manifest, kind)
            clean(path, manifest)


def _marked(path: Path, part: Part, rows: Rows, number: int) -> PartMeta:
    """Write which rows of a part are deleted now."""
    name = f"deleted-{number:06d}.bin"
    deleted = np.union1d(part.deleted, rows).astype(MARKS)
    (path / name).unlink(missing_ok=True)  # of a job that was killed here
    written = write_file(path / name, (deleted.tobytes(),))
    return replace(part.meta, deleted=Marks(name, len(deleted), written.sha256))


def compact(path: Path, kind: Kind) -> None:
    """Merge all parts into full ones, in one step, and free what was deleted.

    Raises:
        StoreError: one of its kinds; the artifact is unchanged.
    """
    if kind.merge is None:
        return
    if (found := read_job(path, kind)) and found.parts and not found.published:
        raise UnfinishedJobError(path, {"job": (dict(found.header), "compact")})
    with open_job(path, kind, "append", {"job": "compact"}, resume=False) as job, writing(path):
        old, parts = job.parts, []
        sizes = [part.meta.size * part.meta.live // max(1, part.meta.count) for part in old]
        for run in neighbours(sizes, kind.part_bytes):
            some = old[run.start : run.stop]
            whole = len(some) == 1 and not len(some[0].deleted)
            parts.append(some[0] if whole else job.write(merged(some)))
        job.parts = parts
        job.publish(job.base.details if job.base else {})


def faults(path: Path, kind: Kind) -> Iterator[StoreError]:
    """Read a whole artifact and compare every checksum; give what is wrong with it, nothing where all is well."""
    try:
        manifest = read_manifest(path, kind)
    except StoreError as error:
        yield error
        return
    for meta in manifest.parts:
        try:
            part = Part(path, meta, kind, path)
        except DamagedError as error:
            yield error
        except OSError as error:
            yield unreadable(error, path)
        else:
            yield from part.faults()
