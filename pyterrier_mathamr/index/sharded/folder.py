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

from pyterrier_mathamr.index.errors import EmbeddingError, check_model
from pyterrier_mathamr.index.indexes import MathAMRIndex
from pyterrier_mathamr.index.parts import IndexMeta
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


def joint_meta(paths: Sequence[Path], metas: Sequence[IndexMeta]) -> IndexMeta:
    """Combine the descriptions of some parts; an empty part has none."""
    filled = [(path, meta) for path, meta in zip(paths, metas, strict=True) if meta.dimensions]
    for path, meta in filled[1:]:
        if meta.dimensions != filled[0][1].dimensions:
            other = f"but {filled[0][0]} has {filled[0][1].dimensions}"
            raise EmbeddingError(str(path), f"its rows have {meta.dimensions} dimensions, {other}")
    models = [(path, meta.model) for path, meta in zip(paths, metas, strict=True) if meta.model]
    for path, model in models[1:]:
        check_model(path, model, models[0][1])
    width, dtype = (filled[0][1].dimensions, filled[0][1].dtype) if filled else (0, "float32")
    keep = dict.fromkeys(name for meta in metas for name in meta.keep)
    return IndexMeta(width, models[0][1] if models else None, dtype, tuple(keep))


def join_parts(path: Path, names: Sequence[str] | None = None) -> None:
    """Write the manifest of the parts in a folder."""
    if names is None:
        there = (entry for entry in path.glob("part-*") if PART.fullmatch(entry.name) and (entry / META).exists())
        names = sorted(entry.name for entry in there)
    parts = [MathAMRIndex(path / name).snapshot() for name in names]
    if not parts:
        raise NotBuiltError(path, "there is no part-000000 here, nor any other part of an index")
    joint_meta([part.path for part in parts], [part.meta for part in parts])
    hashes = np.sort(np.concatenate([_hash(part) for part in parts]))  # eight bytes of memory for each document
    if len(equal := hashes[1:][hashes[1:] == hashes[:-1]]):
        times = Counter(docno for part in parts for docno in part if _hash([docno])[0] in equal)
        if twice := sorted(docno for docno, count in times.items() if count > 1):
            raise DuplicateIdError(path, twice)
    with writing(path):
        records = [asdict(PartRecord(part.path.name, part.identity, len(part))) for part in parts]
        write_details(path, PARTS, sum(map(len, parts)), {"parts": records})


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
    path, fingerprint = path.absolute(), {**fingerprint, "parts": parts}
    with writer_lock(path):
        with writing(path):
            names = _parts_to_fill(path, fingerprint, fresh)
        yield [MathAMRIndex(path / name) for name in names]
        join_parts(path, names)
        with writing(path):
            (path / NOTE).unlink()
            _clean(path, names)


def _parts_to_fill(path: Path, fingerprint: Mapping[str, Any], fresh: bool) -> list[str]:
    """Return the names of the parts of a job: of one that was stopped, or of a new one, whose note is written."""
    old: list[str] = []  # the parts of the index that exists
    if (path / META).exists():
        old = [part.name for part in read_parts(path)]
    elif path.is_file():
        raise OtherArtifactError(path, "it is a file, not an index in parts")
    elif foreign := [file.name for file in path.glob("[!.]*") if file.name != NOTE and not PART.fullmatch(file.name)]:
        raise OtherArtifactError(path, f"it has no {META}, and {foreign[0]!r:.80}, which is not a part of an index")
    if (path / NOTE).exists() and not fresh:
        note = read_signed(path / NOTE)
        stopped: list[str] = note["names"]
        if stopped != old:  # otherwise it was killed after the manifest had named them
            if different := differences(note["fingerprint"], dict(fingerprint)):
                raise UnfinishedJobError(path, different)
            return stopped
    path.mkdir(parents=True, exist_ok=True)
    (path / NOTE).unlink(missing_ok=True)
    _clean(path, old)
    first = 1 + max((int(name.removeprefix("part-")) for name in old), default=-1)
    names = [f"part-{first + number:06d}" for number in range(fingerprint["parts"])]
    replace_file(path / NOTE, signed({"fingerprint": dict(fingerprint), "names": names}))
    return names


def _clean(path: Path, names: Sequence[str]) -> None:
    """Remove all parts but some, and unfinished work on any."""
    for entry in path.iterdir():
        if (match := _OURS.fullmatch(entry.name)) and match[1] not in names:
            shutil.rmtree(entry)
