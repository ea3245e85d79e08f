"""`GraphStore`: the graphs of a collection on disk, by docno or qid, with its indexer and loader.

Each graph is one line of JSON, compressed, which is read ten times faster than Penman text. The fields of
``MathAMRGraph`` and ``AmrGraph`` are stored by name, without fields that have their default value. So a new field with
a default changes neither this file nor existing records. Large fields are stored in columns of small numbers, which
compress well::

    {"amr": {"labels": ["equal-01", "FORMULA_0", "-"],     (e / equal-01
             "variables": "e f ",                             :ARG1 (f / FORMULA_0)
             "edges": [[1, 2], [":ARG1", ":polarity"],        :polarity -)
                       [1, 1]]},
     "formula_ids": ["7"], "id": "154"}

Edge ``i`` is stored as its length (target − source), its role, and its target − ``i``, which is 1 throughout a tree
and decreases by one at each edge to a node that was written before.
"""

from __future__ import annotations

import gzip
import io
import json
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import fields, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import empty_output, is_missing, join_values
from pyterrier_mathamr._common.ids import identified, valid_id
from pyterrier_mathamr._common.parameters import COUNT, one_of
from pyterrier_mathamr._common.records import decompressed, parse_json
from pyterrier_mathamr._common.transformers import HELP_URL, ColumnAdder, Indexer, Transformer
from pyterrier_mathamr.amr import AmrError, AmrGraph
from pyterrier_mathamr.store import (
    Content,
    DamagedError,
    Field,
    Job,
    Kind,
    Mode,
    Parts,
    Rows,
    Snapshot,
    StoredArtifact,
    file_fingerprint,
    merge_ragged,
    replacing,
)

from .mathamr import MathAMRGraph
from .penman_files import KNOWN, SHOWN, ImportReport, PenmanReader, count_records
from .structure import GraphError

Side = Literal["auto", "query", "document", "both"]
"""Whose graphs are built; ``auto``: the queries' where the frame has any, else the documents'."""

_DEEPEST = 8  # lists in lists; a field has three


def pack(text: str) -> bytes:
    """Compress one graph's record; the same bytes each time."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 6)


def unpack(data: bytes) -> str:
    """Decompress a record: the inverse of :func:`pack`."""
    return decompressed(data).decode("utf-8", "surrogatepass")


def record_of(graph: MathAMRGraph) -> str:
    """Write a graph with all its fields."""
    amr = _changed(graph.amr)
    sources, roles, targets = zip(*graph.amr.edges, strict=True) if graph.amr.edges else ((), (), ())
    lengths = [target - source for source, target in zip(sources, targets, strict=True)]
    amr["variables"] = " ".join(graph.amr.variables)
    amr["edges"] = (lengths, roles, [target - i for i, target in enumerate(targets)])
    return json.dumps({**_changed(graph), "amr": amr}, ensure_ascii=False, separators=(",", ":"))


def graph_of(record: str) -> MathAMRGraph:
    """Read a graph: the inverse of :func:`record_of`."""
    content = parse_json(record)
    if not isinstance(content, dict):
        raise ValueError("no record")
    amr = content.pop("amr")
    variables = tuple(amr.pop("variables").split(" "))
    lengths, roles, offsets = amr.pop("edges")
    targets = [offset + i for i, offset in enumerate(offsets)]
    sources = [target - length for target, length in zip(targets, lengths, strict=True)]
    edges = tuple(zip(sources, roles, targets, strict=True))
    amr, content = ({name: _frozen(value) for name, value in values.items()} for values in (amr, content))
    return MathAMRGraph(AmrGraph(variables=variables, edges=edges, **amr), **content)


def _changed(values: MathAMRGraph | AmrGraph) -> dict[str, Any]:
    """List the fields that differ from their default value."""
    given = ((field.name, getattr(values, field.name), field.default) for field in fields(values))
    return {name: value for name, value, default in given if value != default}


def _frozen(value: Any, depth: int = 0) -> Any:
    """Convert JSON's lists to tuples; fields are nested a few levels deep, whatever the graph."""
    if not isinstance(value, list):
        return value
    if depth == _DEEPEST:
        raise ValueError("lists deeper than in any record")
    if list in set(map(type, value)):
        return tuple(_frozen(part, depth + 1) for part in value)
    return tuple(value)


GRAPHS = Kind(
    type="graph_store",
    version=3,  # 1: Penman texts; 2: records in shards of another form
    fields=(
        Field("records", "uint8", "r"),
        Field("offsets", "int64", "m+1", cuts="r"),  # record i is records[offsets[i]:offsets[i + 1]]
        Field("sources", "uint64", "m"),  # fingerprint of the document that a graph was built from; 0: unknown
    ),
    merge=merge_ragged,
    part_bytes=256 << 20,  # few large parts, since an id is looked up in one after another
    rebuild="mathamr graphs SOURCES -o {path}, or write its graphs with to_penman under the release that made it, and "
    "read that file: mathamr import-graphs FILE -o {path} --mode overwrite",
)


class Record(NamedTuple):
    """A packed graph."""

    name: str
    data: bytes
    source: int = 0  # fingerprint of the document that it was built from; 0: unknown


def content_of(records: Sequence[Record]) -> Content:
    """Concatenate records to one part."""
    data = b"".join(record.data for record in records)
    return Content(
        [record.name for record in records],
        {
            "records": np.frombuffer(data, dtype=np.uint8),
            "offsets": np.cumsum([0, *(len(record.data) for record in records)], dtype=np.int64),
            "sources": np.asarray([record.source for record in records], dtype=np.uint64),
        },
    )


def packed_records(parts: Parts, rows: Rows) -> list[bytes]:
    """Read the packed graphs of some rows, in the order of the rows."""
    packed = [b""] * len(rows)
    for part, positions, local in parts.by_part(rows):
        records, offsets = part["records"], part["offsets"]
        bounds = zip(positions.tolist(), offsets[local].tolist(), offsets[local + 1].tolist(), strict=True)
        for position, start, end in bounds:
            packed[position] = records[start:end].tobytes()
    return packed


_AT_ONCE = 256  # graphs that are read together by an iteration


class GraphStore(StoredArtifact, pt.Indexer):  # type: ignore[misc]
    """The graphs of posts or topics by id, compressed (MathAMR+, section 3.1).

    A store opens its files on first use and can be pickled. An interrupted indexing job resumes when it is run again.

    Example::

        store = mathamr.GraphStore("arqmath-graphs.mathamr")
        (mathamr.GraphBuilder() >> store.indexer()).index(dataset.get_corpus_iter())
        pipeline = bm25 >> store.loader() >> model.text_scorer()

    Args:
        path: the folder of the store, built or not.
    """

    KIND = GRAPHS
    HOLDS = "graph"

    schematic = {"label": "GraphStore", "help_url": HELP_URL}  # noqa: RUF012

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self.import_report: ImportReport | None = None
        """The report of this object's last :meth:`from_penman`."""

    @staticmethod
    def example() -> GraphStore:
        """Return a store that is not built."""
        return GraphStore("graphs.mathamr")

    def indexer(
        self, mode: Mode = "create", *, shard_size: int = 1000, verbose: bool = False, total: int | None = None
    ) -> GraphStoreIndexer:
        """Return the indexer of dictionaries ``{docno, graph}`` or ``{qid, query_graph}``.

        Args:
            mode: ``create`` a new store, ``overwrite`` an existing one when the new one is complete, or ``append``.
            shard_size: the most graphs that a killed job loses.
            verbose: show progress.
            total: the number of graphs, for the progress bar.
        """
        return GraphStoreIndexer(self, mode, shard_size=shard_size, verbose=verbose, total=total)

    def index(self, iter: pd.DataFrame | Iterable[dict[str, Any]]) -> GraphStore:
        """Store graphs; the same as ``indexer().index(iter)``."""
        return self.indexer().index(iter)

    def index_inputs(self) -> list[list[str]]:
        """List the keys of the dictionaries that :meth:`index` accepts."""
        return self.indexer().index_inputs()

    def loader(self, *, side: Side = "auto") -> GraphLoader:
        """Return the transformer that adds stored graphs to a frame.

        Args:
            side: ``document`` for ``graph`` by ``docno``, ``query`` for ``query_graph`` by ``qid``, or ``both``;
                ``auto`` is ``document`` where there is a ``docno``, else ``query``.
        """
        return GraphLoader(self, side=side)

    def get(self, id: str) -> MathAMRGraph:
        """Read one graph.

        Raises:
            UnknownIdError: the id is unknown.
        """
        return self.get_many([id])[0]

    def get_many(self, ids: Sequence[str]) -> list[MathAMRGraph]:
        """Read graphs in the order of ``ids``.

        Raises:
            UnknownIdError: some ids are unknown; names all of them.
            NotBuiltError: there is no finished store.
            DamagedError: a record is not a graph.
        """
        snapshot = self.snapshot()
        return list(_graphs(snapshot, ids, snapshot.find(ids)))

    def __getitem__(self, id: str) -> MathAMRGraph:
        return self.get(id)

    def __iter__(self) -> Iterator[str]:
        return iter(self.snapshot())

    def ids(self) -> list[str]:
        """List the ids in the order of storing."""
        return list(self)

    def get_corpus_iter(self, *, verbose: bool = False) -> Iterator[dict[str, Any]]:
        """Iterate over all graphs as ``{docno, graph}``, in the order of storing; ``verbose`` shows a progress bar."""
        snapshot = self.snapshot()
        graphs = (
            graph
            for rows in np.split(snapshot.live, range(_AT_ONCE, len(snapshot), _AT_ONCE))
            for graph in _graphs(snapshot, snapshot.ids(rows), rows)
        )
        for graph in progress(graphs, "reading", "graphs", verbose=verbose, total=len(snapshot)):
            yield {"docno": graph.id, "graph": graph}

    def to_penman(self, file: str | Path) -> None:
        """Write all graphs to a Penman file, with a blank line after each; compressed where its name ends in .gz.

        Raises:
            WriteError: the file cannot be written; an existing one is unchanged.
        """
        with replacing(Path(file)) as raw:
            # without the date and name that gzip would add
            data = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if Path(file).suffix == ".gz" else raw
            with io.TextIOWrapper(data, encoding="utf-8", errors="surrogatepass", newline="\n") as out:
                for row in self.get_corpus_iter():
                    out.write(row["graph"].to_penman() + "\n\n")

    def from_penman(self, file: str | Path, *, mode: Mode = "create", verbose: bool = False) -> GraphStore:
        """Build this store from a file of Penman records, in bounded memory.

        Args:
            file: the published MathAMR+ graphs, files of :meth:`to_penman`, plain ``.amr`` files with ``# ::id``, or
                MathAMR's own tables of ids and graphs, gzipped or not. They are read leniently, with warnings of
                repairs and of skipped records; see :func:`import_penman`.
            mode: ``create`` refuses a store that exists, ``overwrite`` replaces it when the new one is complete,
                ``append`` adds to it.
            verbose: show progress.

        Returns:
            The store, with the counts of records, repairs and refusals as ``import_report``.
        """
        self.import_report = import_penman(file, self, mode=mode, verbose=verbose)
        return self


def _graphs(snapshot: Snapshot, ids: Sequence[str], rows: Rows) -> Iterator[MathAMRGraph]:
    """Read the graphs of some rows; ``ids`` are for messages."""
    for name, record in zip(ids, packed_records(snapshot, rows), strict=True):
        try:
            graph = graph_of(unpack(record))
        except (zlib.error, ValueError, KeyError, TypeError, AttributeError, RecursionError, AmrError) as error:
            reason = f"the record of {name!r:.80} is not a graph ({type(error).__name__}: {error!s:.200})"
            raise DamagedError(snapshot.path, reason) from error
        yield graph


_INPUTS = (("docno", "graph"), ("qid", "query_graph"), ("qid", "graph"))


class GraphStoreIndexer(Indexer):
    """Stores graphs by docno or qid; see :meth:`GraphStore.indexer`."""

    label = "GraphStore indexer"
    checks = {"mode": one_of(*get_args(Mode)), "shard_size": COUNT}  # noqa: RUF012

    def __init__(
        self,
        store: GraphStore,
        mode: Mode = "create",
        *,
        shard_size: int = 1000,
        verbose: bool = False,
        total: int | None = None,
    ) -> None:
        super().__init__()
        self.store = store
        self.mode: Mode = mode
        self.shard_size = shard_size
        self.verbose = verbose
        self.total = total

    def index_inputs(self) -> list[list[str]]:
        """List the keys of the dictionaries that :meth:`index` accepts."""
        return [list(names) for names in _INPUTS]

    def index(self, iter: pd.DataFrame | Iterable[dict[str, Any]]) -> GraphStore:
        """Store graphs, or resume an interrupted job of this mode, which must get the same graphs."""
        total = len(iter) if self.total is None and isinstance(iter, Sized) else self.total
        shown = progress(identified(iter, "docno", "qid"), "storing", "graphs", verbose=self.verbose, total=total)
        return self.index_records(self._records(shown), {})

    def index_records(self, records: Iterable[Record], sources: Mapping[str, Any]) -> GraphStore:
        """Like :meth:`index`, but of packed graphs."""
        with self.store.job(self.mode, sources) as job:
            for _ in self.written(job, records):
                pass
            job.commit({})
        return self.store

    def written(self, job: Job, records: Iterable[Record]) -> Iterator[Record]:
        """Write the records that an earlier run has not written, in parts of at most ``shard_size``; yield each."""
        part: list[Record] = []
        size = 0
        for record in records:
            row = job.rows_done([record.name])
            if row[0] >= 0:
                if packed_records(job.done, row) != [record.data]:  # another one under this id
                    raise job.changed(record.name)
                continue
            yield record
            if part and size + len(record.data) > GRAPHS.part_bytes:
                job.add(content_of(part))
                part, size = [], 0
            part.append(record)
            size += len(record.data)
            if len(part) == self.shard_size:
                job.add(content_of(part))
                part, size = [], 0
        if part:
            job.add(content_of(part))

    def _records(self, iter: Iterable[dict[str, Any]]) -> Iterator[Record]:
        """Check the first row, and pack all rows one at a time."""
        rows = pt.utils.peekable(iter)
        with pt.validate.any_iter(rows, context=self) as check:
            check.empty()
            for names in _INPUTS:
                check.columns(includes=list(names))
        yield from map(record_of_row, rows)


def record_of_row(row: Mapping[str, Any], source: int = 0) -> Record:
    """Make the record of a row with an id and a graph; the same bytes each time."""
    for id_name, graph_name in _INPUTS:
        name, graph = row.get(id_name), row.get(graph_name)
        if isinstance(graph, MathAMRGraph) and not is_missing(name):
            name = valid_id(name, "a row with a graph", id_name)
            graph = graph if graph.id == name else replace(graph, id=name)
            graph.check()
            return Record(graph.id, pack(record_of(graph)), source)
    columns = sorted(map(str, row))
    raise GraphError(f"a row with the columns {columns}", "no id with a MathAMRGraph; build one with GraphBuilder")


class GraphLoader(ColumnAdder, Transformer):
    """Adds ``graph`` by docno or ``query_graph`` by qid; see :meth:`GraphStore.loader`."""

    label = "GraphStore loader"
    checks = {"side": one_of(*get_args(Side))}  # noqa: RUF012

    def __init__(self, store: GraphStore, *, side: Side = "auto") -> None:
        super().__init__()
        self.store = store
        self.side: Side = side

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the graphs; each id is read once."""
        with pt.validate.any(inp, context=self) as check:
            if self.side in ("auto", "document"):
                check.columns(includes=["docno"])
            if self.side in ("auto", "query"):
                check.columns(includes=["qid"])
            if self.side == "both":
                check.columns(includes=["qid", "docno"])
        names = {"docno": "graph", "qid": "query_graph"}
        side = self.side if self.side != "auto" else "document" if "docno" in inp.columns else "query"
        keys = {"document": ["docno"], "query": ["qid"], "both": ["docno", "qid"]}[side]
        if inp.empty:
            return empty_output(inp, [names[key] for key in keys])
        for key in keys:
            ids = list(dict.fromkeys(inp[key]))
            inp = join_values(inp, names[key], dict(zip(ids, self.store.get_many(ids), strict=True)), key)
        return inp


def import_penman(
    file: str | Path, store: GraphStore, *, mode: Mode = "create", allow_empty: bool = True, verbose: bool = False
) -> ImportReport:
    """Store the graphs of a file, repaired where necessary; memory holds the records of one part.

    Valid Penman notation is read literally, except that lower-cased roles and placeholders (``:arg0``, ``formula_0``)
    are restored. Wrong or missing brackets, quotation marks, variables and roles are repaired; an unreadable formula
    map or text is dropped; a formula of the map without a node is attached to the root. A record without a graph,
    without ``# ::id`` or with a repeated id is refused.

    Args:
        file: of Penman records, or MathAMR's own tables of ids and graphs, gzipped or not.
        store: the store to build.
        mode: ``create`` refuses a store that exists, ``overwrite`` replaces it when the new one is complete, ``append``
            adds to it.
        allow_empty: make an empty store of a file without a graph, instead of an error.
        verbose: show progress.

    Returns:
        How many records were stored, repaired and refused, and why. A ``MathAMRWarning`` names each of the first
        refused records, and another sums up where any was repaired or none stored.

    Raises:
        StoreError: see :meth:`GraphStoreIndexer.index`; OSError: the file cannot be read.
        GraphError: the file has no graph, and ``allow_empty`` is false; nothing is written.
    """
    taken = set(store.ids()) if mode == "append" and store.built() else set()
    reader = PenmanReader(Path(file), taken)
    graphs = reader.graphs()
    if not allow_empty:  # before anything is written
        first = next(graphs, None)
        if first is None and KNOWN not in reader.reasons:
            report = reader.report()
            reason = f"none of its {report.records:,} records is a graph" if report.records else "it has no record"
            reason += f" ({report.refusals[0]})" if report.refusals else ""
            advice = "nothing was written; pass Penman records with '# ::id', or a table of ids and graphs"
            raise GraphError(str(file), f"{reason}; {advice}")
        graphs = chain(() if first is None else (first,), graphs)
    total = count_records(Path(file)) if verbose else None
    shown = progress(graphs, "storing", "graphs", verbose=verbose, total=total)
    records = (Record(graph.id, pack(record_of(graph))) for graph in shown)  # the reader has checked them
    store.indexer(mode).index_records(records, {"file": file_fingerprint(file)})
    report = reader.report()
    if not report.stored or report.repaired or report.refused > SHOWN:
        warnings.warn(f"{file}: {report}", MathAMRWarning, stacklevel=2)
    return report


class JoinedGraphs:
    """The graphs of several stores as one."""

    def __init__(self, stores: Sequence[GraphStore]) -> None:
        self._stores = tuple(stores)

    def __getitem__(self, key: str) -> MathAMRGraph:
        for store in self._stores[:-1]:
            if key in store:
                return store[key]
        return self._stores[-1][key]

    def __contains__(self, key: object) -> bool:
        return any(key in store for store in self._stores)
