"""The work that a dead job leaves beside its artifact, and how it is identified.

The fingerprint of a job says what determines its rows; with the state it starts from it is the job's header. A job only
continues after the finished parts of a job with the same header.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.store.errors import DamagedError, ExistsError, FormatError, NotBuiltError, UnfinishedJobError
from pyterrier_mathamr.store.files import file_sum, remove
from pyterrier_mathamr.store.kind import Kind, Mode
from pyterrier_mathamr.store.manifest import Manifest, PartMeta, read_manifest, read_parts, read_signed
from pyterrier_mathamr.store.parts.part import Part
from pyterrier_mathamr.store.snapshot import Parts

JOB = "job.json"
_OURS = re.compile(r"(?:part|deleted)-([0-9]{6,12})(?:\.bin)?")
_WHOLE = 100 << 20  # bytes; of a larger file the ends are read
_END = 1 << 20


class Unfinished(NamedTuple):
    """Unfinished work: the header of a job, its finished parts, the checksum of the manifest that it was publishing."""

    header: Mapping[str, Any]
    parts: tuple[PartMeta, ...]
    published: str

    def published_by(self, manifest: Manifest | None, kind: Kind) -> bool:
        """Whether the job finished, and died while it cleaned up."""
        return bool(self.published) and manifest is not None and manifest.checksum(kind) == self.published

    def continued_by(self, header: Mapping[str, Any], path: Path, kind: Kind, manifest: Manifest | None) -> bool:
        """Whether a job continues after these parts; an overwrite discards those appended to what it replaces."""
        if self.published_by(manifest, kind):
            return False
        if self.header.get("base") and header["mode"] == "overwrite":
            return False
        if self.header != header and (self.parts or any(job_folder(path).glob("scratch-*"))):
            raise UnfinishedJobError(path, differences(self.header, header))
        return self.header == header


def job_folder(path: Path) -> Path:
    """Return the folder of an artifact's unfinished work."""
    return path.with_name(f".{path.name}.job")


def drop_job(path: Path) -> None:
    """Remove unfinished work, its note first, so that a rest of it is never used."""
    remove(job_folder(path) / JOB)
    remove(job_folder(path))


def read_job(path: Path, kind: Kind) -> Unfinished | None:
    """Read the unfinished work of an artifact; ``None`` where there is none, or its note cannot be read."""
    try:
        note = read_signed(job_folder(path.absolute()) / JOB)
        return Unfinished(note["header"], read_parts(note["parts"], kind), note["published"])
    except (OSError, DamagedError, KeyError, TypeError, ValueError, AttributeError):
        return None


def unfinished_parts(path: Path, kind: Kind, mode: Mode, fingerprint: Mapping[str, Any]) -> Parts:
    """Open the finished parts after which :func:`open_job` with these arguments would continue, without a lock.

    Raises:
        StoreError: as :func:`open_job`.
    """
    path = path.absolute()
    replaced, first = existing(path, kind, mode)
    header, found = job_header(kind, mode, replaced, first, fingerprint), read_job(path, kind)
    going_on = found is not None and found.continued_by(header, path, kind, replaced)
    return Parts(sound_parts(found.parts, kind, path) if found and going_on else ())


def changed_row(path: Path | str, name: str) -> UnfinishedJobError:
    """Return the error for a row that an unfinished job has with another content."""
    return UnfinishedJobError(path, {f"row {name!r:.80}": ("one content", "another")})


def job_header(
    kind: Kind, mode: Mode, replaced: Manifest | None, first: int, fingerprint: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what identifies a job: the state it starts from, and what determines its rows."""
    base = replaced.checksum(kind) if replaced and mode == "append" else None
    about = {"version": kind.version, "mode": mode, "base": base, "first": first, **fingerprint}
    header: dict[str, Any] = json.loads(json.dumps(about))  # in the form in which it is read: a tuple becomes a list
    return header


def sound_parts(metas: Sequence[PartMeta], kind: Kind, path: Path) -> list[Part]:
    """Open the parts of unfinished work, up to the first damaged one; they may have been moved already."""
    parts: list[Part] = []
    for meta in metas:
        place = job_folder(path) / "parts"
        try:
            part = Part(place if (place / meta.name).exists() else path, meta, kind, path)
            if fault := next(part.faults(), None):
                raise fault
        except (DamagedError, OSError) as error:
            text = f"{error} This part of the unfinished work, and those after it, are computed again."
            warnings.warn(MathAMRWarning(text), stacklevel=2)
            break
        parts.append(part)
    return parts


def differences(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, tuple[object, object]]:
    """Return the values that differ in two fingerprints."""
    names = dict.fromkeys([*kept, *wanted])
    return {name: (kept.get(name), wanted.get(name)) for name in names if kept.get(name) != wanted.get(name)}


def existing(path: Path, kind: Kind, mode: Mode) -> tuple[Manifest | None, int]:
    """Return the manifest of the artifact at the path before a job, and the number of its next part."""
    try:
        found = read_manifest(path, kind)
    except NotBuiltError:
        return None, 0
    except (DamagedError, FormatError):
        if mode != "overwrite":
            raise
        numbers = [int(match[1]) for entry in path.iterdir() if (match := _OURS.fullmatch(entry.name))]
        return None, max(numbers, default=-1) + 1
    if mode == "create":
        raise ExistsError(path, f"there is a {kind.name} already")
    return found, found.next


def file_fingerprint(path: str | Path) -> list[object]:
    """Return what identifies the content of a file: its size and SHA-256.

    Above 100 MB: its size, the time of its last change, and the SHA-256 of its first and last megabyte.

    Raises:
        OSError: the file cannot be read.
    """
    path = Path(path)
    found = path.stat()
    if found.st_size <= _WHOLE:
        return list(file_sum(path))
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read(_END))
        file.seek(-_END, 2)
        digest.update(file.read(_END))
    return [found.st_size, found.st_mtime_ns, digest.hexdigest()]


def row_fingerprint(row: Mapping[str, Any]) -> int:
    """Hash a document of a corpus to 64 bits, independent of the order of its keys."""
    text = json.dumps({str(name): value for name, value in row.items()}, sort_keys=True, default=repr)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
