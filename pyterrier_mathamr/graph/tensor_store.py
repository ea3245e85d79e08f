"""`TensorStore`: the tensors of many graphs in ragged, memory-mapped arrays on disk.

Each file is one array end to end over all graphs; ``counts.npy`` says how much of each belongs to whom::

    nodes             uint16 or int32  vocabulary ids
    sources, targets  uint16 or int32  edges
    relations         int16            their relations
    virtual           uint16 or int32  nodes of the retrieval vectors
    kinds             int8             their VirtualKinds
    features          float16          text features of the vectors, where the graphs have any
    counts            int64 [m, 4]     nodes, edges, vectors, mirrored

Where the second half of a graph's edges is the first turned round, with relations one higher, as ``graph_tensors``
makes them, only the first half is kept (``mirrored`` is 1). A column begins narrow and is widened when a value asks
for it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyterrier as pt

from pyterrier_mathamr._common.artifacts import OtherArtifactError, check_writable

from .errors import (
    DamagedStoreError,
    NotBuiltError,
    StoreExistsError,
    StoreFormatError,
    UnknownIdError,
)
from .id_table import IdTable
from .tensor_files import COLUMN_OF, COUNTS, FEATURES, IDS, META, READABLE_TENSOR_FORMATS, TensorFile, write_tensors
from .tensors import GraphTensors


class TensorStore:
    """Tensors by row or by id, read from disk as they are asked for.

    Args:
        path: a folder that :meth:`build` made.

    Raises:
        NotBuiltError: there is no store.
        StoreFormatError: it has a format that this release does not read.
        DamagedStoreError: a file has not its length.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / META).is_file():
            raise NotBuiltError(self.path)
        meta = json.loads((self.path / META).read_text())
        if meta.get("version") not in READABLE_TENSOR_FORMATS:
            raise StoreFormatError(self.path, meta.get("version"), READABLE_TENSOR_FORMATS)
        self._counts: npt.NDArray[np.int64] = np.load(self.path / COUNTS)
        if len(self._counts) != meta["count"]:
            raise DamagedStoreError(self.path / COUNTS, f"{len(self._counts)} graphs, not {meta['count']}")
        stored = self._counts[:, :3].copy()
        stored[:, 1] >>= self._counts[:, 3]  # a mirrored graph keeps half of its edges
        self._starts = np.concatenate([np.zeros((1, 3), dtype=np.int64), np.cumsum(stored, axis=0)])
        ends = self._starts[-1].tolist()
        self._arrays = [
            self._map(file.value[0], meta["dtypes"][file.name], ends[column])
            for file, column in zip(TensorFile, COLUMN_OF, strict=True)
        ]
        self._width = int(meta.get("features", 0))  # stores of format 1 have none
        self._features = self._map(*FEATURES, ends[2] * self._width) if self._width else None

    def __reduce__(self) -> tuple[type[TensorStore], tuple[Path]]:
        return TensorStore, (self.path,)

    def __repr__(self) -> str:
        return f"TensorStore({str(self.path)!r})"

    @classmethod
    def build(
        cls, path: str | Path, items: Iterable[tuple[str, GraphTensors]], *, overwrite: bool = False
    ) -> TensorStore:
        """Write tensors in the order in which they come; the store appears when it is whole.

        Args:
            path: the folder to make.
            items: ids and tensors, in a stream.
            overwrite: replace a store that is there.

        Raises:
            StoreExistsError: there is something at ``path`` and ``overwrite`` is not set.
            OtherArtifactError: what is there is no such store. NotWritableError: nothing can be written there.
            DuplicateIdError: an id came twice.
            TensorsError: some graphs have text features and others none, or wider ones.
        """
        path = Path(path).absolute()
        if path.exists() and not overwrite:
            raise StoreExistsError(path)
        if path.exists() and not (path / META).is_file():
            raise OtherArtifactError(path, f"no {META}", "store of tensors")
        check_writable(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with pt.io.finalized_directory(str(path)) as folder:
            write_tensors(Path(folder), path, items)
            if path.exists():
                shutil.rmtree(path)
        return cls(path)

    def __len__(self) -> int:
        return len(self._counts)

    def __getitem__(self, key: int | str) -> GraphTensors:
        """Read one graph by row or id.

        Raises:
            IndexError: no such row.
            UnknownIdError: no such id.
        """
        row = self.row(key) if isinstance(key, str) else key + len(self) * (key < 0)
        if not 0 <= row < len(self):
            raise IndexError(f"row {key} of {len(self)} graphs")
        nodes, sources, targets, relations, virtual, kinds = (
            array[self._starts[row, column] : self._starts[row + 1, column]]
            for array, column in zip(self._arrays, COLUMN_OF, strict=True)
        )
        edges = np.stack([sources, targets]).astype(np.int32)
        relations = np.asarray(relations, dtype=np.int16)
        if self._counts[row, 3]:
            edges = np.concatenate([edges, edges[::-1]], axis=1)
            relations = np.concatenate([relations, relations + np.int16(1)])
        return GraphTensors(
            nodes=nodes.astype(np.int32),
            edges=edges,
            relations=relations,
            virtual=virtual.astype(np.int32),
            kinds=np.array(kinds, dtype=np.int8),
            features=self._features_of(row),
        )

    def __iter__(self) -> Iterator[GraphTensors]:
        return (self[row] for row in range(len(self)))

    def row(self, id: str) -> int:
        """Find the row of an id.

        Raises:
            UnknownIdError: the store does not have it.
        """
        row = int(self._table.rows([id])[0])
        if row < 0:
            raise UnknownIdError(self.path, [id])
        return row

    @property
    def ids(self) -> list[str]:
        """The ids in the order of the rows."""
        return list(self._table)

    @property
    def node_counts(self) -> npt.NDArray[np.int64]:
        """Nodes of each graph, virtual ones included: int64 ``[m]``."""
        return self._counts[:, 0]

    @property
    def edge_counts(self) -> npt.NDArray[np.int64]:
        """Edges of each graph, inverse ones included: int64 ``[m]``."""
        return self._counts[:, 1]

    @property
    def virtual_counts(self) -> npt.NDArray[np.int64]:
        """Retrieval vectors of each graph: int64 ``[m]``."""
        return self._counts[:, 2]

    @cached_property
    def _table(self) -> IdTable:
        return IdTable(self.path / IDS, len(self))

    def _features_of(self, row: int) -> npt.NDArray[np.float16] | None:
        """Read the text features of one graph, or ``None`` where the store has none."""
        if self._features is None:
            return None
        start, end = self._starts[row : row + 2, 2].tolist()
        return np.array(self._features[start * self._width : end * self._width]).reshape(-1, self._width)

    def _map(self, name: str, dtype: str, total: int) -> npt.NDArray[Any]:
        """Map one array, after comparing its length with the counts."""
        path = self.path / name
        wanted = total * np.dtype(dtype).itemsize
        if not path.is_file() or path.stat().st_size != wanted:
            raise DamagedStoreError(path, f"the file is missing or has not its {wanted} bytes")
        return np.memmap(path, dtype=dtype, mode="r", shape=(total,)) if total else np.zeros(0, dtype=dtype)
