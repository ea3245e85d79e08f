"""Graphs into a :class:`GraphStore`: the indexer."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pyterrier as pt

from pyterrier_mathamr._common.artifacts import META
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr._common.links import HELP_URL
from pyterrier_mathamr._common.parameters import ByParameters
from pyterrier_mathamr._common.progress import progress

from .errors import GraphError
from .mathamr import MathAMRGraph
from .record import record_of
from .shard import pack
from .store_job import StoreJob, StoreMode

if TYPE_CHECKING:
    from .store import GraphStore

Record = tuple[str, bytes]
"""A graph's id and its packed record."""

_INPUTS = (("docno", "graph"), ("qid", "query_graph"), ("qid", "graph"))


class GraphStoreIndexer(ByParameters, pt.Indexer):  # type: ignore[misc]
    """Stores graphs by docno or qid; see :meth:`GraphStore.indexer`.

    Example::

        (mathamr.GraphBuilder() >> store.indexer(verbose=True)).index(dataset.get_corpus_iter())

    Args:
        store: where the graphs go.
        mode: ``create``, ``overwrite`` or ``append``.
        shard_size: graphs in a shard.
        verbose: show progress.
        total: the number of graphs, for the progress bar.

    Raises:
        ConfigError: ``mode`` is none of these, or ``shard_size`` is not positive.
    """

    schematic = {"label": "GraphStore indexer", "help_url": HELP_URL}  # noqa: RUF012

    def __init__(
        self,
        store: GraphStore,
        mode: StoreMode = "create",
        *,
        shard_size: int = 1000,
        verbose: bool = False,
        total: int | None = None,
    ) -> None:
        super().__init__()
        if mode not in get_args(StoreMode):
            raise ConfigError("mode", mode, "one of " + ", ".join(map(repr, get_args(StoreMode))))
        if shard_size < 1:
            raise ConfigError("shard_size", shard_size, "a positive number")
        self.store = store
        self.mode: StoreMode = mode
        self.shard_size = shard_size
        self.verbose = verbose
        self.total = total

    def index_inputs(self) -> list[list[str]]:
        """Say what the dicts of :meth:`index` hold."""
        return [list(names) for names in _INPUTS]

    def index(self, iter: Iterable[dict[str, Any]]) -> GraphStore:
        """Store graphs, after those of a job of this mode that stopped half way.

        Args:
            iter: dicts with an id and a graph; those that the earlier job has stored may be left out.

        Returns:
            The store, which then holds all of them.

        Raises:
            StoreExistsError: there is a store already and the mode is ``create``.
            DuplicateIdError: an id came twice.
            ChangedGraphError: a graph differs from that of the unfinished job.
            UnfinishedJobError: a job of another mode stopped half way.
        """
        return self.index_records(self._records(iter))

    def index_records(self, records: Iterable[Record]) -> GraphStore:
        """Store graphs that are packed already; otherwise as :meth:`index`.

        Args:
            records: ids and what :func:`record_of_row` made of their graphs.
        """
        path = Path(self.store.path)
        base, base_ids = {}, frozenset[str]()
        if self.mode == "append" and self.store.built():
            base_ids = frozenset(self.store.ids())  # also checks the store
            base = json.loads((path / META).read_text())
        job = StoreJob(path, self.mode, self.shard_size, base, base_ids)
        for name, record in progress(records, "storing graphs", "graph", verbose=self.verbose, total=self.total):
            job.add(name, record)
        job.finish(
            {
                "type": self.store.ARTIFACT_TYPE,
                "format": self.store.ARTIFACT_FORMAT,
                "package_hint": self.store.ARTIFACT_PACKAGE_HINT,
            }
        )
        self.store._reopen()
        return self.store

    def _records(self, iter: Iterable[dict[str, Any]]) -> Iterator[Record]:
        """Check the first row and pack all, one at a time."""
        rows = pt.utils.peekable(iter)
        with pt.validate.any_iter(rows, context=self) as check:
            check.empty()
            for names in _INPUTS:
                check.columns(includes=list(names))
        yield from map(record_of_row, rows)


def record_of_row(row: Mapping[Hashable, Any]) -> Record:
    """Make the record of a dict with an id and a graph; the same bytes each time.

    Raises:
        GraphError: there is no id with a graph.
        AmrError: the graph has no form in Penman notation, so it could never be written to a file again.
    """
    name, graph = _id_and_graph(row)
    graph = replace(graph, id=name)
    graph.to_penman()
    return name, pack(record_of(graph))


def _id_and_graph(row: Mapping[Hashable, Any]) -> tuple[str, MathAMRGraph]:
    """Take the id and the graph out of one dict."""
    for id_name, graph_name in _INPUTS:
        name, graph = row.get(id_name), row.get(graph_name)
        if isinstance(graph, MathAMRGraph) and not is_missing(name):
            if "\0" in str(name):
                raise GraphError(f"the id {name!r} holds a NUL character, which no table of ids can keep.")
            return str(name), graph
    columns = sorted(map(str, row))
    raise GraphError(f"a row with the columns {columns} has no id with a MathAMRGraph; build it with GraphBuilder.")
