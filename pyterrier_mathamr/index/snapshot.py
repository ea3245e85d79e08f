"""An index as it was when it was opened, whatever is written meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyterrier_mathamr.store import DamagedError, Kind, detail
from pyterrier_mathamr.store import Snapshot as StoredSnapshot

from .records import DTYPES, DType
from .shard import VectorParts


@dataclass(frozen=True, slots=True)
class IndexMeta:
    """What the index is: dimensions, the model of its vectors, how rows are stored."""

    dimensions: int
    model: str | None
    dtype: DType

    @classmethod
    def read(cls, details: Mapping[str, Any], path: Path) -> IndexMeta:
        """Take what the manifest says.

        Raises:
            DamagedError: something is missing or impossible.
        """
        dimensions, name = detail(details, "dimensions", int, path), detail(details, "dtype", str, path)
        model = None if details.get("model") is None else detail(details, "model", str, path)
        dtype = next((known for known in DTYPES if known == name), None)
        if dtype is None or dimensions < 1:
            raise DamagedError(path, f"rows of {dimensions} numbers of {name!r:.80}")
        return cls(dimensions, model, dtype)


class Snapshot(StoredSnapshot, VectorParts):
    """All parts of an index; documents are numbered from 0 through all of them, deleted ones included.

    Args:
        path: the index's folder.
        kind: what it keeps.

    Raises:
        NotBuiltError: there is no finished index.
        OtherArtifactError: something else is there.
        FormatError: it has a format that this release does not read.
        DamagedError: a file is missing, truncated or was changed.
    """

    def __init__(self, path: Path, kind: Kind) -> None:
        super().__init__(path, kind)
        self.meta = IndexMeta.read(self.manifest.details, path)
        for shard in self.shards:
            rows = shard.part["rows"]
            if rows.shape[1] != self.meta.dimensions or rows.dtype.name != self.meta.dtype:
                raise DamagedError(shard.part.path, f"its rows are {rows.dtype}{list(rows.shape)}, not {self.meta}")
