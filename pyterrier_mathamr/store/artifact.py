"""What all artifacts of the package share: a folder that PyTerrier loads and packages, and that this room writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

import pyterrier as pt

from pyterrier_mathamr._common.parameters import ByPath

from .changes import compact, delete_rows, faults
from .errors import NotBuiltError
from .job import Job, open_job
from .kind import META, PACKAGE, Kind, Mode
from .lock import writer_lock
from .snapshot import Snapshot, signature
from .unfinished import drop_job, job_folder, read_job


class StoredArtifact(ByPath, pt.Artifact):  # type: ignore[misc]
    """An artifact in a folder. Making the object reads nothing; the folder need not exist yet.

    Args:
        path: the folder.
    """

    ARTIFACT_PACKAGE_HINT = PACKAGE
    KIND: ClassVar[Kind]
    path: Path

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._snapshot: Snapshot | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_snapshot": None}

    def __bool__(self) -> bool:
        return True  # not by its length, which an artifact that is not built does not have

    def __len__(self) -> int:
        return len(self.snapshot())

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and bool(self.snapshot().look_up([id])[0] >= 0)

    def built(self) -> bool:
        """Whether there is a finished artifact at the path."""
        return bool((self.path / META).is_file())

    def snapshot(self) -> Snapshot:
        """The artifact as it is now, opened on first use and again when it was changed.

        Raises:
            NotBuiltError: it is not built; says how much a job that stopped half way has done.
            FormatError: it has a format that this release does not read.
            DamagedError: a file is missing, truncated or was changed.
            OtherArtifactError: something else is at the path.
        """
        if self._snapshot is None or self._snapshot.signature != signature(self.path):
            self._snapshot = None
            try:
                self._snapshot = self.open_snapshot()
            except NotBuiltError as error:
                if not (rows := self.unfinished()):
                    raise
                reason = f"{error.reason}; a job that was stopped has finished {rows:,} rows, run it again to go on"
                raise NotBuiltError(self.path, reason) from error
        return self._snapshot

    def open_snapshot(self) -> Snapshot:
        """Open the artifact; subclasses give snapshots that know more."""
        return Snapshot(self.path, self.KIND)

    def job(self, mode: Mode, fingerprint: Mapping[str, Any], *, resume: bool = True) -> AbstractContextManager[Job]:
        """Hold the artifact for writing; see :func:`open_job`."""
        return open_job(self.path, self.KIND, mode, fingerprint, resume=resume)

    def verify(self) -> None:
        """Read the whole artifact and compare every checksum.

        Raises:
            StoreError: the first fault; ``mathamr verify`` lists all of them.
        """
        for fault in faults(self.path, self.KIND):
            raise fault

    def unfinished(self) -> int:
        """Count the rows that a job which stopped half way has finished."""
        found = read_job(self.path, self.KIND)
        return sum(part.count for part in found.parts) if found else 0

    def discard(self) -> None:
        """Remove the work of a job that stopped half way; the artifact itself stays.

        Raises:
            LockedError: the job is still running.
        """
        path = self.path.absolute()
        if job_folder(path).exists():
            with writer_lock(path):
                drop_job(path)

    def delete(self, ids: Iterable[str]) -> None:
        """Remove rows by their ids, in one step; :meth:`compact` frees their bytes.

        Raises:
            UnknownIdError: some are not there; it names them, and nothing is removed.
        """
        delete_rows(self.path, self.KIND, list(dict.fromkeys(ids)))

    def compact(self) -> None:
        """Merge all parts into full ones, without what was deleted, in one step."""
        compact(self.path, self.KIND)
