"""Building an index in parts: each part is an index that is built by itself, and the manifest names them at the end.

::

    arqmath.mathamr/
      pt_meta.json          the parts of the index that exists, untouched until the last step
      unfinished.json       what the new parts are made from, and their names; the same job goes on, another is refused
      part-000000/ …        parts of the index that exists, removed when the new one has replaced it
      part-000016/ …        new parts, each finished or in the work
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyterrier_mathamr.index.artifacts import MathAMRIndex
from pyterrier_mathamr.store import (
    META,
    OtherArtifactError,
    UnfinishedJobError,
    differences,
    read_signed,
    replace_file,
    signed,
    writer_lock,
    writing,
)

from .joining import join_parts
from .manifest import PART, read_parts

NOTE = "unfinished.json"
_OURS = re.compile(rf"({PART.pattern})|\.{PART.pattern}\.job")


@contextmanager
def filling(
    path: Path, parts: int, fingerprint: Mapping[str, Any], *, fresh: bool = False
) -> Iterator[list[MathAMRIndex]]:
    """Build the parts of an index, and make them the index in one step at the end of the block."""
    path = path.absolute()
    with writer_lock(path):
        with writing(path):
            old = _standing(path)
            names = None if fresh else _unfinished(path, {**fingerprint, "parts": parts}, old)
            if names is None:
                names = _begin(path, old, parts, fingerprint)
        yield [MathAMRIndex(path / name) for name in names]
        join_parts(path, names)
        with writing(path):
            (path / NOTE).unlink()
            _clean(path, names)


def _standing(path: Path) -> list[str]:
    """Return the parts of the index that exists."""
    if (path / META).exists():
        return [part.name for part in read_parts(path)]
    if path.is_file():
        raise OtherArtifactError(path, "it is a file, not an index in parts")
    foreign = [entry.name for entry in path.glob("[!.]*") if entry.name != NOTE and not PART.fullmatch(entry.name)]
    if foreign:
        raise OtherArtifactError(path, f"it has no {META}, and {foreign[0]!r:.80}, which is no part of an index")
    return []


def _unfinished(path: Path, fingerprint: Mapping[str, Any], old: Sequence[str]) -> list[str] | None:
    """Return the names of the parts of a job that was stopped, ``None`` where there is none."""
    if not (path / NOTE).exists():
        return None
    note = read_signed(path / NOTE)
    names: list[str] = note["names"]
    if names == old:  # killed after the manifest had named them
        return None
    if different := differences(note["fingerprint"], dict(fingerprint)):
        raise UnfinishedJobError(path, different)
    return names


def _begin(path: Path, old: Sequence[str], parts: int, fingerprint: Mapping[str, Any]) -> list[str]:
    """Remove what no manifest names, and write the note of a new job."""
    path.mkdir(parents=True, exist_ok=True)
    (path / NOTE).unlink(missing_ok=True)
    _clean(path, old)
    first = 1 + max((int(name.removeprefix("part-")) for name in old), default=-1)
    names = [f"part-{number:06d}" for number in range(first, first + parts)]
    replace_file(path / NOTE, signed({"fingerprint": {**fingerprint, "parts": parts}, "names": names}))
    return names


def _clean(path: Path, names: Sequence[str]) -> None:
    """Remove all parts but some, and unfinished work on any."""
    for entry in path.iterdir():
        if (match := _OURS.fullmatch(entry.name)) and match[1] not in names:
            shutil.rmtree(entry)
