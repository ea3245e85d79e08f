"""The folder of an index in parts: the manifest that names them; building parts one by one, and joining built ones."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr.index.indexes import MathAMRIndex
from pyterrier_mathamr.index.search.folder import FolderSnapshot
from pyterrier_mathamr.store import (
    META,
    DamagedError,
    DuplicateIdError,
    Kind,
    NotBuiltError,
    OtherArtifactError,
    UnfinishedJobError,
    differences,
    read_details,
    read_signed,
    replace_file,
    signed,
    write_details,
    writer_lock,
    writing,
)

from .snapshot import joint_meta

PARTS = Kind("sharded_index", 1, rebuild="mathamr index GRAPHS MODEL -o {path} --parts N")
PART = re.compile(r"part-[0-9]{6,12}")


@dataclass(frozen=True, slots=True)
class PartRecord:
    """One part as the manifest knows it."""

    name: str  # of its folder
    identity: str  # the checksum of its manifest
    documents: int


def read_parts(path: Path) -> list[PartRecord]:
    """Read the manifest of an index in parts."""
    details = read_details(path, PARTS)
    try:
        parts = [PartRecord(**entry) for entry in details["parts"]]
        if not parts or not all(
            PART.fullmatch(part.name) and isinstance(part.identity, str) and part.documents >= 0 for part in parts
        ):
            raise ValueError("no part, or one of an impossible name, identity or size")
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(path / META, f"a key is missing or wrong ({error!r:.200})") from error
    return parts


def write_parts(path: Path, parts: Sequence[PartRecord]) -> None:
    """Write the manifest, durably and in one step."""
    write_details(path, PARTS, sum(part.documents for part in parts), {"parts": [asdict(part) for part in parts]})


def join_parts(path: Path, names: Sequence[str] | None = None) -> None:
    """Write the manifest of the parts in a folder."""
    if names is None:
        there = (entry for entry in path.glob("part-*") if PART.fullmatch(entry.name) and (entry / META).exists())
        names = sorted(entry.name for entry in there)
    parts = [MathAMRIndex(path / name).snapshot() for name in names]
    if not parts:
        raise NotBuiltError(path, "there is no part-000000 here, nor any other part of an index")
    joint_meta([part.path for part in parts], [part.meta for part in parts])
    _check_distinct(path, parts)
    with writing(path):
        write_parts(path, [PartRecord(part.path.name, part.identity, len(part)) for part in parts])


def _check_distinct(path: Path, parts: Sequence[FolderSnapshot]) -> None:
    """Raise an error for a document in two parts, with eight bytes of memory for each document."""
    together = np.sort(np.concatenate([_hash(part) for part in parts]))
    equal = together[1:][together[1:] == together[:-1]]
    if not len(equal):
        return
    times = Counter(docno for part in parts for docno in part if _hash([docno])[0] in equal)
    if twice := sorted(docno for docno, count in times.items() if count > 1):
        raise DuplicateIdError(path, twice)


def _hash(docnos: Iterable[str]) -> npt.NDArray[np.uint64]:
    names = np.array([docno.encode("utf-8", "surrogatepass") for docno in docnos], dtype=object)
    return pd.util.hash_array(names, categorize=False)


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
        raise OtherArtifactError(path, f"it has no {META}, and {foreign[0]!r:.80}, which is not a part of an index")
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
    """Remove files that no manifest names, and write the note of a new job."""
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
