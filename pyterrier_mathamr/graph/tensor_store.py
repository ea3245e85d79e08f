"""`TensorStore`: the tensors of many graphs in ragged, memory-mapped arrays on disk.

Where the second half of a graph's edges is the first reversed, with relations one higher (as of ``graph_tensors``),
only the first half is stored. A part stores numbers in two bytes where all of them fit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.store import (
    Content,
    DamagedError,
    Field,
    FormatError,
    Kind,
    Mode,
    OtherArtifactError,
    Snapshot,
    StoredArtifact,
    merge_ragged,
)

from .structure import GraphError
from .tensors import GraphTensors

TENSORS = Kind(
    type="tensor_store",
    version=3,  # 1 and 2 had no pt_meta.json
    fields=(
        Field("nodes", "uint16 int32", "n"),  # vocabulary ids, the nodes of all graphs end to end
        Field("sources", "uint16 int32", "e"),  # edges, numbers of the graph's own nodes
        Field("targets", "uint16 int32", "e"),
        Field("relations", "int16", "e"),
        Field("virtual", "uint16 int32", "v"),  # nodes of the retrieval vectors
        Field("kinds", "int8", "v"),  # their VirtualKinds
        Field("features", "float16", "v f"),  # their text features; f is 0 for graphs without features
        Field("node_offsets", "int64", "m+1", cuts="n"),
        Field("edge_offsets", "int64", "m+1", cuts="e"),
        Field("virtual_offsets", "int64", "m+1", cuts="v"),
        Field("mirrored", "uint8", "m"),  # 1: half of the edges are kept
    ),
    merge=merge_ragged,
    rebuild="remove {path}; training or TensorStore.build writes it again",
)

_OLD_META = "meta.json"  # of formats 1 and 2
_OFFSETS = {"node_offsets": "nodes", "edge_offsets": "relations", "virtual_offsets": "virtual"}


class TensorStore(StoredArtifact):
    """Tensors by row or by id, read from disk on demand.

    Args:
        path: a folder that :meth:`build` made.
    """

    KIND = TENSORS

    @classmethod
    def build(
        cls, path: str | Path, items: Iterable[tuple[str, GraphTensors]], *, mode: Mode = "create"
    ) -> TensorStore:
        """Write tensors in the order of ``items``; the store appears when it is complete.

        Args:
            path: the folder to make.
            items: ids and tensors.
            mode: ``create`` a new store, ``overwrite`` an existing one when the new one is complete, or ``append``.

        Raises:
            WriteError: the store exists, and the mode is ``create``.
            OtherArtifactError: ``path`` is something else. WriteError: nothing can be written there.
            DuplicateIdError: an id occurs twice.
            GraphError: some graphs have text features and others none, or wider ones.
        """
        store = cls(path)
        with store.job(mode, {}, resume=False) as job:
            widths = {part["features"].shape[1] for part in job.parts}
            ids: list[str] = []
            rows: list[dict[str, npt.NDArray[Any]]] = []
            size = 0  # of the rows of a part
            for name, graph in items:
                row = _row(graph)
                widths.add(row["features"].shape[1])
                if len(widths) > 1:
                    reason = f"{name!r} has text features of another width than the graphs before it"
                    raise GraphError(str(store.path), reason)
                needed = sum(array.nbytes for array in row.values())
                if ids and size + needed > TENSORS.part_bytes:
                    job.add(_content(ids, rows))
                    ids, rows, size = [], [], 0
                ids.append(name)
                rows.append(row)
                size += needed
            if ids:
                job.add(_content(ids, rows))
            job.commit({})
        return store

    def open_snapshot(self) -> Snapshot:
        """Open the store; name an earlier format."""
        try:
            return super().open_snapshot()
        except OtherArtifactError as error:
            if (self.path / _OLD_META).is_file():
                rebuild = TENSORS.rebuild.format(path=self.path)
                raise FormatError(
                    self.path, f"it has a format before {TENSORS.version}. Rebuild it: {rebuild}"
                ) from error
            raise

    def __getitem__(self, key: int | str) -> GraphTensors:
        """Read one graph by row or id."""
        if isinstance(key, str):
            return self.get_many([key])[0]
        snapshot = self.snapshot()
        if not -len(snapshot) <= key < len(snapshot):
            raise IndexError(f"row {key} of {len(snapshot)} graphs")
        return _read(snapshot, int(snapshot.live[key]))

    def get_many(self, ids: Sequence[str]) -> list[GraphTensors]:
        """Read graphs in the order of ``ids``.

        Raises:
            UnknownIdError: some ids are unknown; names all of them.
            DamagedError: an array is damaged.
        """
        snapshot = self.snapshot()
        return [_read(snapshot, row) for row in snapshot.find(ids).tolist()]

    def __iter__(self) -> Iterator[GraphTensors]:
        snapshot = self.snapshot()
        return (_read(snapshot, row) for row in snapshot.live.tolist())

    @property
    def ids(self) -> list[str]:
        """The ids in the order of the rows."""
        return list(self.snapshot())


def _read(snapshot: Snapshot, row: int) -> GraphTensors:
    number = bisect_right(snapshot.bases, row) - 1
    part, row = snapshot.parts[number], row - int(snapshot.bases[number])
    nodes, edges, virtual = (slice(*part[name][row : row + 2].tolist()) for name in _OFFSETS)
    ends = np.stack([part["sources"][edges], part["targets"][edges]]).astype(np.int32)
    relations = np.array(part["relations"][edges])
    if part["mirrored"][row]:
        ends = np.concatenate([ends, ends[::-1]], axis=1)
        relations = np.concatenate([relations, relations + np.int16(1)])
    features = part["features"]
    graph = GraphTensors(
        nodes=part["nodes"][nodes].astype(np.int32),
        edges=ends,
        relations=relations,
        virtual=part["virtual"][virtual].astype(np.int32),
        kinds=np.array(part["kinds"][virtual]),
        features=np.array(features[virtual]) if features.shape[1] else None,
    )
    for named in (graph.edges, graph.virtual):
        if named.size and int(named.view(np.uint32).max()) >= len(graph.nodes):  # a negative one is too large
            raise DamagedError(part.path, f"graph {row} of it names nodes that it does not have")
    return graph


def _row(graph: GraphTensors) -> dict[str, npt.NDArray[Any]]:
    """Make the arrays that are stored of a graph, by name."""
    half, odd = divmod(len(graph.relations), 2)
    mirrored = (
        not odd
        and np.array_equal(graph.edges[:, half:], graph.edges[::-1, :half])
        and np.array_equal(graph.relations[half:], graph.relations[:half] + 1)
    )
    kept = half if mirrored else len(graph.relations)
    sources, targets = graph.edges[:, :kept]
    features = np.zeros((len(graph.virtual), 0), np.float16) if graph.features is None else graph.features
    return {
        "nodes": _narrow(graph.nodes),
        "sources": _narrow(sources),
        "targets": _narrow(targets),
        "relations": graph.relations[:kept].astype(np.int16),
        "virtual": _narrow(graph.virtual),
        "kinds": graph.kinds.astype(np.int8),
        "features": features.astype(np.float16),
        "mirrored": np.asarray([mirrored], dtype=np.uint8),
    }


def _narrow(values: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
    """Convert numbers to two bytes where all of them fit, else to four; numpy joins both types to the wider one."""
    fits = not values.size or (values.min() >= 0 and values.max() <= 0xFFFF)
    return values.astype(np.uint16 if fits else np.int32)


def _content(ids: list[str], rows: list[dict[str, npt.NDArray[Any]]]) -> Content:
    arrays = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    for offsets, name in _OFFSETS.items():
        arrays[offsets] = np.cumsum([0, *(len(row[name]) for row in rows)], dtype=np.int64)
    return Content(ids, arrays)
