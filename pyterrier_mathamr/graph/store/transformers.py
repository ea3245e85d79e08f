"""The indexer and the loader of a :class:`GraphStore`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import replace
from functools import partial
from itertools import filterfalse
from typing import TYPE_CHECKING, Any, get_args

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import documents, empty_output, is_missing, join_values
from pyterrier_mathamr._common.parameters import COUNT, one_of
from pyterrier_mathamr._common.transformers import ColumnAdder, Indexer, Transformer
from pyterrier_mathamr.graph.building.columns import Side
from pyterrier_mathamr.graph.errors import GraphError
from pyterrier_mathamr.graph.mathamr import MathAMRGraph
from pyterrier_mathamr.store import Job, Mode

from .records import GRAPHS, Record, content_of, pack, packed_records, record_of

if TYPE_CHECKING:
    from .graph_store import GraphStore

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
        """List the keys of the dictionaries that :meth:`index` takes."""
        return [list(names) for names in _INPUTS]

    def index(self, iter: pd.DataFrame | Iterable[dict[str, Any]]) -> GraphStore:
        """Store graphs, or resume an interrupted job of this mode, which must get the same graphs."""
        total = len(iter) if self.total is None and isinstance(iter, Sized) else self.total
        shown = progress(documents(iter), "storing", "graphs", verbose=self.verbose, total=total)
        return self.index_records(self._records(shown), {})

    def index_records(self, records: Iterable[Record], sources: Mapping[str, Any]) -> GraphStore:
        """Store packed graphs; otherwise as :meth:`index`."""
        with self.store.job(self.mode, sources) as job:
            self.write(job, records)
            job.commit({})
        return self.store

    def write(self, job: Job, records: Iterable[Record]) -> None:
        """Write the records that an earlier run of the job has not written; see :meth:`written`."""
        for _ in self.written(job, records):
            pass

    def written(self, job: Job, records: Iterable[Record]) -> Iterator[Record]:
        """Write records in parts of at most ``shard_size``, and pass them on."""
        part: list[Record] = []
        size = 0
        for record in filterfalse(partial(_is_done, job), records):
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


def _is_done(job: Job, record: Record) -> bool:
    """Whether an earlier run has stored the record; raises where it stored another one under this id."""
    row = job.rows_done([record.name])
    if row[0] < 0:
        return False
    if packed_records(job.done, row) != [record.data]:
        raise job.changed(record.name)
    return True


def record_of_row(row: Mapping[str, Any], source: int = 0) -> Record:
    """Make the record of a row with an id and a graph; the same bytes each time."""
    name, graph = _id_and_graph(row)
    graph = graph if graph.id == name else replace(graph, id=name)
    graph.check()
    return Record(name, pack(record_of(graph)), source)


def _id_and_graph(row: Mapping[str, Any]) -> tuple[str, MathAMRGraph]:
    """Find the id and the graph of a row."""
    for id_name, graph_name in _INPUTS:
        name, graph = row.get(id_name), row.get(graph_name)
        if isinstance(graph, MathAMRGraph) and not is_missing(name):
            return str(name), graph
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
        if self.side == "auto":
            keys = ["docno" if "docno" in inp.columns else "qid"]
        else:
            keys = {"document": ["docno"], "query": ["qid"], "both": ["docno", "qid"]}[self.side]
        if inp.empty:
            return empty_output(inp, [names[key] for key in keys])
        for key in keys:
            ids = list(dict.fromkeys(inp[key]))
            inp = join_values(inp, names[key], dict(zip(ids, self.store.get_many(ids), strict=True)), key)
        return inp
