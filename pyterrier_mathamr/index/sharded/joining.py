"""Finished parts become one index: they are compared with each other, and the manifest names them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr.index.artifacts import MathAMRIndex
from pyterrier_mathamr.index.base import merged_model
from pyterrier_mathamr.index.errors import EmbeddingError
from pyterrier_mathamr.store import META, DuplicateIdError, NotBuiltError, writing

from .manifest import PART, PartRecord, write_parts


def join_parts(path: Path, names: Sequence[str] | None = None) -> None:
    """Write the manifest of the parts in a folder."""
    found = sorted(
        entry.name for entry in path.glob("part-*") if PART.fullmatch(entry.name) and (entry / META).exists()
    )
    parts = [MathAMRIndex(path / name) for name in (found if names is None else names)]
    if not parts:
        raise NotBuiltError(path, "there is no part-000000 here, nor any other part of an index")
    merged_model(str(path), parts)
    _same_width(parts)
    _distinct(path, parts)
    records = []
    for part in parts:
        snapshot = part.snapshot()
        records.append(PartRecord(part.path.name, snapshot.identity, len(snapshot)))
    with writing(path):
        write_parts(path, records)


def _same_width(parts: Sequence[MathAMRIndex]) -> None:
    widths = [(part.snapshot().meta.dimensions, part.path) for part in parts if len(part)]
    for (one, path), (other, there) in pairwise(widths):
        if one != other:
            raise EmbeddingError(str(there), f"its rows have {other} dimensions, those of {path} {one}")


def _distinct(path: Path, parts: Sequence[MathAMRIndex]) -> None:
    """Refuse a document that is in two parts: eight bytes of memory for each document."""
    hashes = [_hash(part.snapshot()) for part in parts if len(part)]
    together = np.sort(np.concatenate([np.empty(0, dtype=np.uint64), *hashes]))
    equal = together[1:][together[1:] == together[:-1]]
    if not len(equal):
        return
    times = Counter(docno for part in parts if len(part) for docno in part.snapshot() if _hash([docno])[0] in equal)
    if twice := sorted(docno for docno, count in times.items() if count > 1):
        raise DuplicateIdError(path, twice)


def _hash(docnos: Iterable[str]) -> npt.NDArray[np.uint64]:
    names = np.array([docno.encode("utf-8", "surrogatepass") for docno in docnos], dtype=object)
    return pd.util.hash_array(names, categorize=False)
