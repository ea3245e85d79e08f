"""Parts that several workers write for one job, each planned part perhaps by several attempts.

::

    .arqmath.mathamr.job/
        attempts/<random>/part-000012/     written by one attempt; part.json describes it
        planned/000012/part-000012/        a whole attempt, renamed in one step; the first one wins
        parts/part-000012/                 adopted by the job, which alone holds the lock and writes the manifest

A worker that dies leaves its attempt, which nothing names; it is removed with the job's folder. A worker that was taken
for dead and goes on finds its part written, or no folder any more.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from .errors import DamagedError
from .files import move, remove, sync_folder, write_file, writing
from .manifest import Content, Kind, PartMeta, read_parts, read_signed, signed
from .parts import StoredPart, write_part

PLANNED = "planned/*"
"""Where finished parts wait to be adopted, in the folder of a job."""

_ABOUT = "part.json"


def write_planned(
    folder: Path, number: int, of: str, make: Callable[[], Content], kind: Kind, *, root: Path
) -> PartMeta:
    """Write a planned part, unless an earlier attempt has.

    Args:
        folder: of the job.
        number: of the part among those planned.
        of: identifies what the part is made of; one of something else is not taken.
        make: computes the content.
        kind: its declaration.
        root: the artifact, for errors.

    Returns:
        The description of the part that is there, which may be of another attempt.

    Raises:
        WriteError: the part cannot be written, or the job is over.
    """
    target = folder / "planned" / f"{number:06d}"
    if (found := finished(target, number, of, kind)) is not None:
        return found.meta
    content = make()
    attempt = folder / "attempts" / uuid.uuid4().hex
    with writing(root):
        attempt.mkdir()  # not its parents: they are gone when the job is over
        try:
            meta = write_part(attempt / _name(number), content, kind)
            write_file(attempt / _ABOUT, (signed({"of": of, "part": asdict(meta)}),))
            sync_folder(attempt)
            if target.exists() and finished(target, number, of, kind) is None:
                remove(target)  # of an earlier plan, or damaged
            move(attempt, target)
        except OSError:
            if (found := finished(target, number, of, kind)) is None:
                raise
            return found.meta  # another attempt was first
        finally:
            remove(attempt)
    return meta


def finished(target: Path, number: int, of: str, kind: Kind) -> StoredPart | None:
    """Open a planned part; ``None`` where it is not written, damaged, or made of something else."""
    try:
        about = read_signed(target / _ABOUT)
        if about["of"] != of:
            return None
        [meta] = read_parts([about["part"]], kind)
        part = StoredPart(target, meta, kind, target)
        return None if meta.name != _name(number) or next(part.faults(), None) else part
    except (OSError, DamagedError, KeyError, TypeError, ValueError, AttributeError):
        return None


def planned_part(folder: Path, number: int, meta: PartMeta, kind: Kind, *, root: Path) -> StoredPart:
    """Open a part that :func:`write_planned` wrote, to be adopted by the job."""
    return StoredPart(folder / "planned" / f"{number:06d}", meta, kind, root)


def begin_planned(folder: Path) -> None:
    """Make the folders of attempts and finished parts, without the attempts of a job that was killed."""
    remove(folder / "attempts")
    for name in ("attempts", "planned"):
        os.makedirs(folder / name, exist_ok=True)


def _name(number: int) -> str:
    return f"part-{number:06d}"
