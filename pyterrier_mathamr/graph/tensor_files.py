"""The files of a :class:`TensorStore`, and how they are written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from .errors import DuplicateIdError, TensorsError
from .id_table import IdTable
from .tensors import GraphTensors

TENSOR_FORMAT = 2
READABLE_TENSOR_FORMATS = range(1, 3)


class TensorFile(Enum):
    """The arrays of a store: file name and the dtype they begin with."""

    NODES = ("nodes.bin", "<u2")
    SOURCES = ("sources.bin", "<u2")
    TARGETS = ("targets.bin", "<u2")
    RELATIONS = ("relations.bin", "<i2")
    VIRTUAL = ("virtual.bin", "<u2")
    KINDS = ("kinds.bin", "<i1")


FEATURES = ("features.bin", "<f2")
"""Text features, row by row as the vectors they belong to; the file is there where ``meta.json`` gives their width."""

META, COUNTS, IDS = "meta.json", "counts.npy", "ids.npids"
_WIDE = np.dtype("<i4")
COLUMN_OF = (0, 1, 1, 1, 2, 2)  # which column of the counts each TensorFile follows


class Column:
    """One array being written, widened when a value asks for it."""

    def __init__(self, folder: Path, file: tuple[str, str]) -> None:
        self.path = folder / file[0]
        self.dtype: np.dtype[Any] = np.dtype(file[1])
        self.out: IO[bytes] = open(self.path, "wb")  # noqa: SIM115 - closed by close()

    def append(self, values: npt.NDArray[Any]) -> None:
        """Write values at the end, after widening the file where one of them does not fit."""
        if self.dtype.kind == "u" and values.size and not 0 <= values.min() <= values.max() <= 0xFFFF:
            self.out.close()
            np.fromfile(self.path, dtype=self.dtype).astype(_WIDE).tofile(self.path)
            self.dtype, self.out = _WIDE, open(self.path, "ab")  # noqa: SIM115
        self.out.write(values.astype(self.dtype).tobytes())

    def close(self) -> None:
        """Close the file."""
        self.out.close()


def write_tensors(folder: Path, path: Path, items: Iterable[tuple[str, GraphTensors]]) -> None:
    """Write all files of a store into ``folder``; ``path`` names the store in messages."""
    columns = [Column(folder, file.value) for file in TensorFile]
    features = Column(folder, FEATURES)
    widths: set[int] = set()
    counts: list[tuple[int, int, int, int]] = []
    ids: dict[str, None] = {}
    try:
        for name, graph in items:
            if name in ids:
                raise DuplicateIdError(path, name)
            ids[name] = None
            mirrored = _is_mirrored(graph)
            kept = len(graph.relations) >> mirrored
            sources, targets = graph.edges[:, :kept]
            arrays = (graph.nodes, sources, targets, graph.relations[:kept], graph.virtual, graph.kinds)
            for column, values in zip(columns, arrays, strict=True):
                column.append(values)
            if graph.features is not None:
                features.append(graph.features)
            widths.add(0 if graph.features is None else graph.features.shape[1])
            if len(widths) > 1:
                raise TensorsError(str(path), f"{name!r} has text features of another width than the graphs before it")
            counts.append((len(graph.nodes), len(graph.relations), len(graph.virtual), int(mirrored)))
    finally:
        for column in (*columns, features):
            column.close()
    np.save(folder / COUNTS, np.array(counts, dtype=np.int64).reshape(-1, 4))
    IdTable.write(folder / IDS, list(ids))
    dtypes = {file.name: column.dtype.str for file, column in zip(TensorFile, columns, strict=True)}
    width = max(widths, default=0)
    if not width:
        features.path.unlink()
    meta = {"version": TENSOR_FORMAT, "count": len(counts), "dtypes": dtypes, "features": width}
    (folder / META).write_text(json.dumps(meta) + "\n")


def _is_mirrored(graph: GraphTensors) -> bool:
    """Tell whether the second half of the edges is the first turned round, with relations one higher."""
    half, odd = divmod(len(graph.relations), 2)
    return (
        not odd
        and np.array_equal(graph.edges[:, half:], graph.edges[::-1, :half])
        and np.array_equal(graph.relations[half:], graph.relations[:half] + 1)
    )
