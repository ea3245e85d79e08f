"""The base of all artifacts, also of members of another one, such as a search engine or an index in parts.

A member that is missing, was changed, or is another artifact of the same kind is a named error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pyterrier_mathamr._common.feedback import Counted, counted, counted_progress, size_of
from pyterrier_mathamr._common.running.processes import runs_within

from .errors import DamagedError, NotBuiltError, StoreError, UnfinishedJobError, unreadable
from .files import sync_folder, write_file, writer_lock, writing
from .hub import SharedArtifact
from .job import Job, drop_job, existing, job_folder, job_header, read_job, sound_parts
from .manifest import META, Manifest, Mode, Snapshot, clean, has_manifest, read_manifest, signature, write_manifest
from .parts import MARKS, PACKAGE, Kind, Marks, PartMeta, Parts, StoredPart, merged


class StoredArtifact(Counted, SharedArtifact):
    """An artifact in a folder.

    Args:
        path: the folder; it need not exist yet, and is not read before it is used.
    """

    ARTIFACT_PACKAGE_HINT = PACKAGE
    KIND: ClassVar[Kind]
    HOLDS: ClassVar[str] = "row"
    """The noun for a row."""
    path: Path

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "KIND" in vars(cls):
            cls.ARTIFACT_TYPE, cls.ARTIFACT_FORMAT = cls.KIND.type, cls.KIND.format

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._snapshot: Snapshot | None = None
        self._pinned: bool | None = None  # whether it was built when it was pinned

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_snapshot": None}

    def __bool__(self) -> bool:
        return True  # not by its length, which an artifact that is not built does not have

    def __len__(self) -> int:
        return len(self.snapshot())

    def counts(self) -> list[str]:
        """List the number of rows, further counts, and the size in bytes; ``print`` shows them."""
        size = sum(part.meta.size for part in self.snapshot().parts)
        return [counted(len(self), self.HOLDS), *self.more_counts(), size_of(size)]

    def more_counts(self) -> list[str]:
        """List counts other than the number of rows; subclasses override it."""
        return []

    def __contains__(self, id: object) -> bool:
        return id in self.snapshot()

    def built(self) -> bool:
        """Whether there is a finished artifact at the path, or was when it was pinned."""
        return has_manifest(self.path) if self._pinned is None else self._pinned

    def snapshot(self) -> Snapshot:
        """Return the current state, opened on first use and again when it was changed.

        Raises:
            NotBuiltError: it is not built; reports the progress of an interrupted job.
            OtherArtifactError, FormatError, DamagedError: something else is at the path, or it cannot be read.
        """
        if self._pinned is False:
            raise NotBuiltError(self.path, f"there was no {self.KIND.name} when this state was opened")
        snapshot = self._snapshot  # read once: other threads may replace it
        if snapshot is None or not (self._pinned or snapshot.signature == signature(self.path)):
            try:
                snapshot = self.open_snapshot()
            except NotBuiltError as error:
                if not (rows := self.unfinished()):
                    raise
                reason = f"{error.reason}; an interrupted job has finished {rows:,} rows, run it again to continue"
                raise NotBuiltError(self.path, reason) from error
            self._snapshot = snapshot
        return snapshot

    def pin(self, *, built: bool = True) -> None:
        """Answer from the current state from now on, even if the folder is changed or removed.

        Where it is not ``built``, it stays so, whatever is written to its path later.
        """
        if built:
            self.snapshot()
        self._pinned = built

    def open_snapshot(self) -> Snapshot:
        """Open the artifact; subclasses return snapshots that know more."""
        return Snapshot(self.path, self.KIND)

    @contextmanager
    def job(self, mode: Mode, fingerprint: Mapping[str, Any], *, resume: bool = True) -> Iterator[Job]:
        """Open the artifact for writing; only :meth:`Job.commit` changes it.

        Args:
            mode: ``create`` refuses an artifact that exists, ``overwrite`` replaces it, ``append`` adds to it.
            fingerprint: determines the rows, as plain JSON values: sources, options, model.
            resume: continue after the finished parts of a job that died, and keep them if this one is interrupted;
                parts of a job with another mode or fingerprint are refused. Otherwise they are discarded.

        Raises:
            WriteError, OtherArtifactError, UnfinishedJobError: nothing was changed.
        """
        path = self.path.absolute()
        with writer_lock(path):
            with writing(path):
                job = Job(path, self.KIND, mode, fingerprint, resume)
            try:
                yield job
            except BaseException as error:
                job.leave(error)
                raise

    def verify(self) -> None:
        """Read the whole artifact, compare every checksum, and raise the first fault; ``mathamr verify`` lists all."""
        for fault in self.faults():
            raise fault

    def faults(self, *, verbose: bool = False) -> Iterator[StoreError]:
        """Read the whole artifact, compare every checksum, and yield the faults; with a bar if it is ``verbose``."""
        try:
            manifest = read_manifest(self.path, self.KIND)
        except StoreError as error:
            yield error
            return
        total = sum(written.size for meta in manifest.parts for written in meta.files.values())
        with counted_progress(f"verifying {self.path.name}", "B", total, verbose=verbose) as read:
            for meta in manifest.parts:
                try:
                    part = StoredPart(self.path, meta, self.KIND, self.path)
                except DamagedError as error:
                    yield error
                except OSError as error:
                    yield unreadable(error, self.path)
                else:
                    yield from part.faults(read)

    def check_member(self, identity: str, whole: Path) -> None:
        """Check that this is the state ``identity`` that the manifest of ``whole``, an artifact of several, names."""
        try:
            snapshot = self.snapshot()
        except NotBuiltError as error:
            raise DamagedError(self.path, f"{whole / META} names it, and it is missing") from error
        if snapshot.identity != identity:
            raise DamagedError(self.path, f"it is not the part that {whole / META} names")

    def member_faults(self, identity: str, whole: Path, *, verbose: bool = False) -> Iterator[StoreError]:
        """Read all of it, compare every checksum and at last its identity, and yield the faults.

        Args:
            identity: the state of this artifact that the other one names.
            whole: the path of the artifact that consists of this and others.
            verbose: show a progress bar over the bytes.
        """
        sound = True
        for fault in self.faults(verbose=verbose):
            sound = False
            yield fault
        if sound:
            try:
                self.check_member(identity, whole)
            except StoreError as error:
                yield error

    def unfinished_parts(self, mode: Mode, fingerprint: Mapping[str, Any]) -> Parts:
        """Open the finished parts that :meth:`job` with this ``mode`` and ``fingerprint`` would continue, unlocked."""
        path, kind = self.path.absolute(), self.KIND
        replaced, first = existing(path, kind, mode)
        header, earlier = job_header(kind, mode, replaced, first, fingerprint), read_job(path, kind)
        going_on = earlier is not None and earlier.continued_by(header, path, kind, replaced)
        return Parts(sound_parts(earlier.parts, kind, path) if earlier and going_on else ())

    def unfinished(self) -> int:
        """Count the rows that an interrupted job has finished."""
        job = read_job(self.path, self.KIND)
        return sum(part.count for part in job.parts) if job else 0

    def discard(self) -> None:
        """Remove the work of an interrupted job, which must not be running; the artifact itself stays."""
        path = self.path.absolute()
        if job_folder(path).exists():
            with writer_lock(path):
                drop_job(path)

    def delete(self, ids: Iterable[str]) -> None:
        """Remove rows by their ids, in one step; :meth:`compact` frees their bytes. All ids must be known."""
        path, kind = self.path.absolute(), self.KIND
        if not kind.fields:
            raise StoreError(path, f"rows of a {kind.name} cannot be deleted; build it again without them")
        with writer_lock(path):
            snapshot = Snapshot(path, kind)
            metas = {part.meta.name: part.meta for part in snapshot.parts}
            number = snapshot.manifest.next
            with writing(path):
                for part, _, rows in snapshot.by_part(np.unique(snapshot.find(list(dict.fromkeys(ids))))):
                    name, deleted = f"deleted-{number:06d}.bin", np.union1d(part.deleted, rows).astype(MARKS)
                    (path / name).unlink(missing_ok=True)  # of a job that was killed here
                    written = write_file(path / name, (deleted.tobytes(),))
                    marks = Marks(name, len(deleted), written.sha256)
                    metas[part.meta.name] = replace(part.meta, deleted=marks)
                    number += 1
                sync_folder(path)
                left = tuple(meta for meta in metas.values() if meta.live)
                manifest = Manifest(snapshot.manifest.details, left, number)
                write_manifest(path, manifest, kind)
                clean(path, manifest)

    def compact(self, share: float = 0.0) -> None:
        """Rewrite parts without their deleted rows, in one step.

        Args:
            share: rewrite the parts of which at least this share was deleted; by default all, merged into full ones.

        Raises:
            UnfinishedJobError: an interrupted job has finished parts, which this would discard.
        """
        path, kind = self.path, self.KIND

        def is_due(meta: PartMeta) -> bool:
            return meta.count - meta.live >= max(1, share * meta.count)

        if kind.merge is None or (share and not any(is_due(part.meta) for part in self.snapshot().parts)):
            return
        if (left := read_job(path, kind)) and left.parts and not left.published:
            raise UnfinishedJobError(path, {"job": (dict(left.header), "compact")})
        with self.job("append", {"job": "compact"}, resume=False) as job, writing(path):
            old, parts = job.parts, []
            sizes = [part.meta.size * part.meta.live // max(1, part.meta.count) for part in old]
            runs = [range(i, i + 1) for i in range(len(old))] if share else runs_within(sizes, kind.part_bytes)
            for run in runs:
                neighbors = old[run.start : run.stop]
                stays = len(neighbors) == 1 and not is_due(neighbors[0].meta)
                parts.append(neighbors[0] if stays else job.write(merged(neighbors)))
            job.parts = parts
            job.publish(job.base.details if job.base else {})
