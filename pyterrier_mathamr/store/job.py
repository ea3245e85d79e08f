"""Writing an artifact: finished parts accumulate next to it, and it changes in one step at the end.

::

    arqmath.mathamr/           the artifact, untouched until the last step
        pt_meta.json           names its parts; swapped in one step
        part-000000/           never changed after it was named
    .arqmath.mathamr.job/
        job.json               the fingerprint of the job, and its finished parts
        parts/                 the parts
        attempts/<random>/     a part that a worker is writing, and part.json, which describes it
        planned/000012/        a whole attempt, renamed in one step: the first one wins, and waits to be adopted
    .arqmath.mathamr.lock      held by the writer

A job that dies leaves its finished parts. The next job continues after them if it has the same fingerprint and its rows
begin with the same rows; any other job is refused, except that an overwrite discards parts that were to be appended to
the artifact that it replaces.

Workers may also write parts of a job, each perhaps in several attempts. A dead worker's attempt is ignored. A worker
wrongly presumed dead finds its part already written, or its folder gone, and stops.

The fingerprint has the inputs of the rows; with the state that the job starts from it is the job's header. In the
last step the parts are moved to the artifact, whose manifest is swapped.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyterrier_mathamr._common.errors import MathAMRWarning, is_refusal
from pyterrier_mathamr._common.running.processes import runs_within

from .errors import (
    DamagedError,
    DuplicateIdError,
    FormatError,
    NotBuiltError,
    UnfinishedJobError,
    WriteError,
    unreadable,
)
from .files import file_sum, move, remove, swap_file, sync_folder, write_file, writing
from .ids import Rows
from .manifest import META, Manifest, Mode, clean, read_manifest, read_parts, read_signed, signed, write_manifest
from .parts import Content, Kind, PartMeta, Parts, StoredPart, merged, parts_to_merge, write_part

JOB = "job.json"
_PART = "part.json"
_OURS = re.compile(r"(?:part|deleted)-([0-9]{6,12})(?:\.bin)?")
_WHOLE = 100 << 20  # bytes; of a larger file the ends are read
_END = 1 << 20


class Unfinished(NamedTuple):
    """Unfinished work: the header of a job, its finished parts, the checksum of the manifest being published."""

    header: Mapping[str, Any]
    parts: tuple[PartMeta, ...]
    published: str

    def continued_by(self, header: Mapping[str, Any], path: Path, kind: Kind, manifest: Manifest | None) -> bool:
        """Whether a job continues after these parts; an overwrite discards parts appended to the replaced artifact."""
        if self.published and manifest is not None and manifest.checksum(kind) == self.published:
            return False  # the job finished, and died while it cleaned up
        if self.header.get("base") and header["mode"] == "overwrite":
            return False
        if self.header != header and (self.parts or any(job_folder(path).glob("scratch-*"))):
            raise UnfinishedJobError(path, differences(self.header, header))
        return self.header == header


def job_folder(path: Path) -> Path:
    """Return the folder of an artifact's unfinished work."""
    return path.with_name(f".{path.name}.job")


def drop_job(path: Path) -> None:
    """Remove unfinished work, its note first, so that remains of it are never used."""
    remove(job_folder(path) / JOB)
    remove(job_folder(path))


def read_job(path: Path, kind: Kind) -> Unfinished | None:
    """Read the unfinished work of an artifact; ``None`` where there is none, or its note was damaged."""
    try:
        note = read_signed(job_folder(path.absolute()) / JOB)
        return Unfinished(note["header"], read_parts(note["parts"], kind), note["published"])
    except OSError as error:
        if is_refusal(error):
            raise unreadable(error, path) from error
        return None
    except (DamagedError, KeyError, TypeError, ValueError, AttributeError):
        return None


def changed_row(path: Path | str, name: str) -> UnfinishedJobError:
    """Return the error for the row ``name`` that an unfinished job at ``path`` has with another content."""
    return UnfinishedJobError(path, {f"row {name!r:.80}": ("one content", "another")})


def job_header(
    kind: Kind, mode: Mode, replaced: Manifest | None, first: int, fingerprint: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the header of a job: the state that it starts from, and the inputs of its rows."""
    base = replaced.checksum(kind) if replaced and mode == "append" else None
    about = {"version": kind.version, "mode": mode, "base": base, "first": first, **fingerprint}
    header: dict[str, Any] = json.loads(json.dumps(about))  # as it will be read back: a tuple becomes a list
    return header


def sound_parts(metas: Sequence[PartMeta], kind: Kind, path: Path) -> list[StoredPart]:
    """Open the parts of unfinished work, up to the first damaged one; they may have been moved already."""
    parts: list[StoredPart] = []
    for meta in metas:
        folder = job_folder(path) / "parts"
        try:
            part = StoredPart(folder if (folder / meta.name).exists() else path, meta, kind, path)
            if fault := next(part.faults(), None):
                raise fault
        except (DamagedError, OSError) as error:
            if isinstance(error, OSError) and is_refusal(error):
                raise unreadable(error, path) from error
            text = f"{error} This part of the unfinished work, and those after it, are computed again."
            warnings.warn(MathAMRWarning(text), stacklevel=2)
            break
        parts.append(part)
    return parts


def differences(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, tuple[object, object]]:
    """Return the values that differ between the ``kept`` and the ``wanted`` fingerprint: pairs by name."""
    names = dict.fromkeys([*kept, *wanted])
    return {name: (kept.get(name), wanted.get(name)) for name in names if kept.get(name) != wanted.get(name)}


def existing(path: Path, kind: Kind, mode: Mode) -> tuple[Manifest | None, int]:
    """Return the manifest of the artifact at the path before a job, and the number of its next part."""
    try:
        manifest = read_manifest(path, kind)
    except NotBuiltError:
        return None, 0
    except (DamagedError, FormatError):
        if mode != "overwrite":
            raise
        numbers = [int(match[1]) for entry in path.iterdir() if (match := _OURS.fullmatch(entry.name))]
        return None, max(numbers, default=-1) + 1
    if mode == "create":
        choice = "Use mode='overwrite' to replace it, mode='append' to add to it, or another path"
        raise WriteError(path, f"there is a {kind.name} already. {choice}")
    return manifest, manifest.next


def file_fingerprint(path: str | Path) -> list[object]:
    """Return a fingerprint of the content of a file: its size and SHA-256.

    Above 100 MB: its size, the time of its last change, and the SHA-256 of its first and last megabyte.
    """
    path = Path(path)
    status = path.stat()
    if status.st_size <= _WHOLE:
        return list(file_sum(path))
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read(_END))
        file.seek(-_END, 2)
        digest.update(file.read(_END))
    return [status.st_size, status.st_mtime_ns, digest.hexdigest()]


def row_fingerprint(row: Mapping[str, Any]) -> int:
    """Hash a document of a corpus to 64 bits, independent of the order of its keys."""
    text = json.dumps({str(name): value for name, value in row.items()}, sort_keys=True, default=repr)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


class Job:
    """One job that writes; :meth:`.StoredArtifact.job` makes it.

    Args:
        path: of the artifact.
        kind: its kind.
        mode: ``create`` refuses an artifact that exists, ``overwrite`` replaces it, ``append`` adds to it.
        fingerprint: the inputs of the rows, as plain JSON values.
        resume: continue an unfinished job, which must have the same mode and fingerprint, and keep the finished parts
            of this one if it is interrupted; otherwise they are discarded.

    Attributes:
        base: the manifest of the artifact to append to, ``None`` for a new one.
        parts: all parts that the artifact will have.
        done: parts that an earlier run of this job had finished, before any merge.
    """

    def __init__(self, path: Path, kind: Kind, mode: Mode, fingerprint: Mapping[str, Any], resume: bool) -> None:
        self.path, self.kind, self.mode, self.resume = path, kind, mode, resume
        self.folder = job_folder(path)
        self._replaced, self._next = existing(path, kind, mode)
        self.base = self._replaced if mode == "append" else None
        self._header = job_header(kind, mode, self._replaced, self._next, fingerprint)
        try:
            self.parts = [StoredPart(path, part, kind, path) for part in self.base.parts] if self.base else []
        except OSError as error:
            raise unreadable(error, path) from error
        self._standing = len(self.parts)
        self._noted: list[dict[str, Any]] = []
        self.done = Parts(self._take_over())
        self._noted = [asdict(part.meta) for part in self.done.parts]
        self._again = np.zeros(int(self.done.bases[-1]), dtype=np.bool_)
        self._missing = len(self._again)
        self.parts += self.done.parts
        self._merge(self._standing)

    def _take_over(self) -> list[StoredPart]:
        """Open the finished parts of an earlier run, or begin with none."""
        earlier = read_job(self.path, self.kind)
        folder = self.folder / "parts"
        if earlier and self.resume and earlier.continued_by(self._header, self.path, self.kind, self._replaced):
            folder.mkdir(exist_ok=True)
            for meta in earlier.parts:
                self._next = max(self._next, int(meta.name.removeprefix("part-")) + 1)
                if not (folder / meta.name).exists() and (self.path / meta.name).exists():
                    move(self.path / meta.name, folder / meta.name)  # that run died before the manifest was swapped
            return sound_parts(earlier.parts, self.kind, self.path)
        if earlier is None and any(self.folder.glob("parts/part-*")):
            text = f"{self.folder}: its {JOB} cannot be read, so its unfinished work is discarded"
            warnings.warn(MathAMRWarning(text), stacklevel=2)
        drop_job(self.path)
        try:
            folder.mkdir(parents=True)
            self._note()
        except OSError:
            drop_job(self.path)
            raise
        return []

    def _note(self, published: str = "") -> None:
        """Write down the finished parts, or the manifest that is being published; its last merge is not noted."""
        if not published:
            self._noted = [asdict(part.meta) for part in self.parts[self._standing :]]
        note = {"header": self._header, "parts": self._noted, "published": published}
        swap_file(self.folder / JOB, signed(note))

    def rows_done(self, ids: Sequence[str]) -> Rows:
        """Find the rows that an earlier run has finished; the caller compares their content.

        Returns:
            int64 ``[len(ids)]``, rows of :attr:`done`, -1 for a new id; one that comes twice is a ``DuplicateIdError``.
        """
        if not self._missing:  # all came again; a duplicate is found when its part is added
            return np.full(len(ids), -1, dtype=np.int64)
        rows = self.done.look_up(ids)
        hits, times = np.unique(rows[rows >= 0], return_counts=True)
        if len(twice := hits[(times > 1) | self._again[hits]]):
            raise DuplicateIdError(self.path, self.done.ids(twice))
        self._again[hits] = True
        self._missing -= len(hits)
        return rows

    def came_again(self, rows: Rows) -> None:
        """Mark rows of :attr:`done` that the caller has found by something other than their ids."""
        self._again[rows] = True
        self._missing = int(np.count_nonzero(~self._again))

    def changed(self, name: str) -> UnfinishedJobError:
        """Return the error for a row that comes again with another content."""
        return changed_row(self.path, name)

    def scratch(self, name: str) -> Path:
        """Return the path of a file that several runs of this job fill, and that becomes part of the artifact."""
        return self.folder / f"scratch-{name}"

    def look_up(self, ids: Sequence[str]) -> Rows:
        """Look up ids in the artifact that is appended to and in the parts of this job: -1 for a new one."""
        return Parts(self.parts).look_up(ids)

    def add(self, content: Content) -> None:
        """Write one more part, whose ids must be new; from then on it is kept if this process dies."""
        self._add(list(content.ids), lambda: self.write(content))

    def plan(self) -> None:
        """Make the folders in which workers write parts, and remove attempts of a job that was killed."""
        remove(self.folder / "attempts")
        for name in ("attempts", "planned"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def adopt(self, number: int, meta: PartMeta) -> None:
        """Like :meth:`add`, but take over the part ``meta`` that :func:`write_planned` wrote as ``number``."""
        part = StoredPart(self.folder / "planned" / f"{number:06d}", meta, self.kind, self.path)

        def moved() -> StoredPart:
            folder, renamed = self.folder / "parts", replace(meta, name=f"part-{self._next:06d}")
            remove(folder / renamed.name)  # of a job that was killed here
            move(part.path, folder / renamed.name)
            self._next += 1
            return StoredPart(folder, renamed, self.kind, self.path)

        self._add(part.ids.texts(np.arange(len(part))), moved)

    def _add(self, ids: list[str], write: Callable[[], StoredPart]) -> None:
        if again := [name for name, row in zip(ids, self.look_up(ids).tolist(), strict=True) if row >= 0]:
            raise DuplicateIdError(self.path, again)
        if len(set(ids)) < len(ids):
            raise DuplicateIdError(self.path, [name for name, times in Counter(ids).items() if times > 1])
        with writing(self.path):
            self.parts.append(write())
            self._note()
            self._merge(self._standing)

    def write(self, content: Content) -> StoredPart:
        """Write a part without adding it."""
        folder = self.folder / "parts"
        meta = write_part(folder / f"part-{self._next:06d}", content, self.kind)
        self._next += 1
        sync_folder(folder)
        return StoredPart(folder, meta, self.kind, self.path)

    def _merge(self, first: int, *, noted: bool = True) -> None:
        """Merge the neighbors that have accumulated among the parts from ``first`` on."""
        while self.kind.merge is not None:
            sizes = [part.meta.size for part in self.parts[first:]]
            if (run := parts_to_merge(sizes, self.kind.part_bytes)) is None:
                return
            self._join(first + run.start, first + run.stop, noted=noted)

    def _join(self, start: int, stop: int, *, noted: bool = True) -> None:
        """Merge neighbors into one part; remove them once the note names it."""
        old = self.parts[start:stop]
        self.parts[start:stop] = [self.write(merged(old))]
        if noted:
            self._note()
            for part in old:
                remove(part.path)

    def commit(self, details: Mapping[str, Any], *, whole: bool = True, compact: bool = False) -> Manifest:
        """Turn the parts into the artifact, in one step.

        Args:
            details: of its kind.
            whole: require that all rows of an earlier run came again; otherwise that run was another job.
            compact: merge the parts of a new artifact into full ones first.

        Raises:
            UnfinishedJobError: some did not. WriteError: the artifact is unchanged.
        """
        if whole and self._missing:
            missing = self.done.ids(np.flatnonzero(~self._again)[:5])
            raise UnfinishedJobError(self.path, {"rows": (f"{missing} and perhaps more", "rows without these")})
        with writing(self.path):
            sizes = [part.meta.size for part in self.parts] if compact and self.kind.merge else []
            for run in reversed(runs_within(sizes, self.kind.part_bytes)):
                if len(run) > 1:
                    self._join(run.start, run.stop)
            self._merge(0, noted=False)  # the note names the unmerged parts until the swap
            return self.publish(details)

    def publish(self, details: Mapping[str, Any]) -> Manifest:
        """Move the parts to the artifact, swap the manifest, and remove files that it does not name."""
        path, folder = self.path, self.folder / "parts"
        manifest = Manifest(details, tuple(part.meta for part in self.parts), self._next)
        self._note(published=manifest.checksum(self.kind))
        try:
            if self._replaced is None and not (path / META).exists():
                # The folder of the parts becomes the artifact, which did not exist, by one renaming.
                write_manifest(folder, manifest, self.kind)
                named = {part.name for part in manifest.parts}
                for stray in folder.glob("part-*"):
                    if stray.name not in named:
                        remove(stray)
                if path.exists():
                    path.rmdir()
                move(folder, path)
            else:
                # No manifest names the parts that are moved until it is swapped.
                for part in self.parts:
                    if part.path.parent == folder:
                        remove(path / part.meta.name)  # moved by a job that was killed, and named by no manifest
                        move(part.path, path / part.meta.name)
                write_manifest(path, manifest, self.kind)
                clean(path, manifest)
        except OSError as error:
            try:
                published = (path / META).read_bytes() == manifest.to_bytes(self.kind)
            except OSError:
                published = False
            if not published:
                raise
            text = f"{path}: the new artifact is in place, but a power cut may undo it ({error.strerror or error})"
            warnings.warn(MathAMRWarning(text), stacklevel=3)
        drop_job(path)
        return manifest

    def leave(self, error: BaseException) -> None:
        """End without a commit: finished parts are kept for a job that resumes, and the error mentions it."""
        rows = sum(map(len, self.parts[self._standing :]))
        if self.resume and (rows or any(any(self.folder.glob(name)) for name in ("scratch-*", "planned/*"))):
            error.add_note(f"{rows:,} finished rows are kept in {self.folder}" if rows else f"work in {self.folder}")
        else:
            drop_job(self.path)


def write_planned(
    folder: Path, number: int, of: str, make: Callable[[], Content], kind: Kind, *, root: Path
) -> PartMeta:
    """Write a part that a job has planned, in a worker, unless an earlier attempt has; :meth:`Job.adopt` takes it over.

    Args:
        folder: of the job, which has called :meth:`Job.plan`; without it the job is over, which is a ``WriteError``.
        number: of the part among those planned.
        of: identifies the sources of the part; a part of other sources is not taken.
        make: computes the content.
        kind: its declaration.
        root: the artifact, for errors.
    """
    target = folder / "planned" / f"{number:06d}"
    if (planned := _planned(target, number, of, kind)) is not None:
        return planned.meta
    content = make()
    attempt = folder / "attempts" / uuid.uuid4().hex
    with writing(root):
        attempt.mkdir()  # not its parents: they are gone when the job is over
        try:
            meta = write_part(attempt / f"part-{number:06d}", content, kind)
            write_file(attempt / _PART, (signed({"of": of, "part": asdict(meta)}),))
            sync_folder(attempt)
            if target.exists() and _planned(target, number, of, kind) is None:
                remove(target)  # of an earlier plan, or damaged
            move(attempt, target)
        except OSError:
            if (planned := _planned(target, number, of, kind)) is None:
                raise
            return planned.meta  # another attempt was first
        finally:
            remove(attempt)
    return meta


def _planned(target: Path, number: int, of: str, kind: Kind) -> StoredPart | None:
    """Open a planned part; ``None`` where it is not written, damaged, or made of something else."""
    try:
        about = read_signed(target / _PART)
        if about["of"] != of:
            return None
        [meta] = read_parts([about["part"]], kind)
        part = StoredPart(target, meta, kind, target)
        return None if meta.name != f"part-{number:06d}" or next(part.faults(), None) else part
    except (OSError, DamagedError, KeyError, TypeError, ValueError, AttributeError):
        return None
