"""Documents to a :class:`GraphStore` in several processes or on a cluster: the same bytes for any number of processes.

::

    documents ──batches by position──▶ worker: read, parse, attach, pack ──records in order──▶ this process: parts
                    └── batches that an earlier run has completed: their documents are only compared

A neural parser has one process in each worker of a cluster, on the device that the worker was given; the worker keeps
it from batch to batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import Overheard, overheard, progress, reported_once
from pyterrier_mathamr._common.ids import identified
from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr._common.running.ray_cluster import RayCluster
from pyterrier_mathamr._version import __version__
from pyterrier_mathamr.amr import AmrParser, DependencyAmrParser, SentenceParser, WorkerParser
from pyterrier_mathamr.store import META, Job, Mode, file_fingerprint, row_fingerprint

from .building import GraphBuilder
from .store import GraphStore, GraphStoreIndexer, Record, record_of_row

Batch = list[dict[str, Any]]


class Built(NamedTuple):
    """The packed graphs of a batch, the warnings about its posts, and how many texts the embedded parser parsed."""

    records: list[Record]
    heard: Overheard
    embedded: int


def build_store(
    documents: pd.DataFrame | Iterable[dict[str, Any]],
    builder: GraphBuilder,
    store: GraphStore,
    *,
    sources: Mapping[str, Any] | None = None,
    mode: Mode = "create",
    workers: int | None = 1,
    executor: Executor | None = None,
    shard_size: int = 1000,
    verbose: bool = False,
    total: int | None = None,
) -> GraphStore:
    """Build graphs of documents or queries in several processes and store them.

    The graphs are the same as from ``(builder >> store.indexer(mode)).index(documents)``; the bytes of the store are
    the same for any number of processes, also after a kill. A resumed job must get the same documents: it compares
    them and builds the missing graphs only. Memory holds a few batches for each process and the records of one part.

    Example::

        if __name__ == "__main__":
            mathamr.graph.build_store(dataset.get_corpus_iter(), mathamr.GraphBuilder(), store, workers=None)

    Args:
        documents: a DataFrame or dictionaries for the builder, in batches of ``builder.batch_size``.
        builder: makes the graphs; with several workers it is pickled.
        store: the store to build.
        sources: identity of the documents' and trees' sources by name, in plain JSON values, such as from
            ``file_fingerprint``; an interrupted job resumes only if they are unchanged.
        mode: ``create`` refuses a store that exists, ``overwrite`` replaces it when the new one is complete, ``append``
            adds to it.
        workers: number of processes; ``None``: all usable cores with the embedded parser, one with any other, which
            may start its own processes or use devices.
        executor: where to build the graphs instead, such as a :class:`~pyterrier_mathamr.RayCluster`; a store begun
            on one executor can be completed on another. On a cluster a neural parser uses a GPU for each piece of work,
            unless the cluster's ``resources`` specify otherwise.
        shard_size: the most finished graphs that a killed job loses.
        verbose: show progress.
        total: the number of documents, for the progress bar; by default ``len(documents)`` if it is defined.

    Returns:
        The store.

    Raises:
        ConfigError: ``workers`` is not a positive number, or the parser starts its own processes and cannot run in
            several processes of this machine.
        UnfinishedJobError: an interrupted job had other documents, sources, parser or trees.
        StoreError: see :meth:`GraphStoreIndexer.index`; WorkerDiedError, ClusterError: a process was killed, or the
            cluster cannot do the work. Stored graphs are kept and the next run resumes.
    """
    if total is None and isinstance(documents, Sized):
        total = len(documents)
    with begun_store(builder, store, sources, mode, workers, executor, shard_size) as begun:
        batches = begun.batches(documents)
        missing = None if total is None else max(total - sum(map(len, begun.job.done.parts)), 0)
        with closing(begun.executor.map(begun.build, _pending(begun.job, batches))) as built:
            bar: dict[str, Any] = {"verbose": verbose, "total": missing, "note": begun.executor.doing}
            records = progress(begun.records(built), "building graphs", "graphs", **bar)
            for _ in begun.indexer.written(begun.job, records):
                pass
    return store


@dataclass(frozen=True, eq=False)
class BegunStore:
    """A store whose graphs are being built."""

    job: Job
    indexer: GraphStoreIndexer
    parser: AmrParser  # counts the texts that the embedded parser parsed instead
    builder: GraphBuilder  # perhaps with a parser for each worker
    executor: Executor

    @property
    def build(self) -> Callable[[Batch], Built]:
        """The function that builds and packs the graphs of a batch of documents; it can be pickled."""
        return partial(_build_batch, self.builder)

    def batches(self, documents: pd.DataFrame | Iterable[dict[str, Any]]) -> Iterator[Batch]:
        """Cut documents into the batches that are built."""
        stream = identified(documents, "docno", "qid")
        return iter(lambda: list(islice(stream, self.builder.batch_size)), [])

    def records(self, built: Iterable[Built]) -> Iterator[Record]:
        """Repeat the warnings of the processes, count what their embedded parsers parsed, and yield their records."""
        parser, embedded = self.parser, _embedded(self.parser)
        for batch in built:
            batch.heard.repeat()
            embedded += batch.embedded
            if isinstance(parser, WorkerParser):
                parser.embedded_count = embedded
            yield from batch.records


@contextmanager
def begun_store(
    builder: GraphBuilder,
    store: GraphStore,
    sources: Mapping[str, Any] | None = None,
    mode: Mode = "create",
    workers: int | None = 1,
    executor: Executor | None = None,
    shard_size: int = 1000,
) -> Iterator[BegunStore]:
    """Open a job of a store, and publish the output of the body; for the arguments see :func:`build_store`."""
    parser = builder.used_parser
    if executor is None:
        executor = processes_for(parser, workers)
    made_by = {
        "release": __version__,
        "parser": [parser.name],
        "formulas": builder.formulas,
        "reads": [*builder.reads],
        "side": builder.side,
        "queries": builder.queries,
        "bare_formulas": builder.bare_formulas,
        "context": builder.context,
    }
    if sources is None:
        path = None if builder.store is None else builder.store.path
        sources = {"trees": None if path is None else file_fingerprint(path / META if path.is_dir() else path)}
    if isinstance(parser, WorkerParser):
        made_by["parser"] = [parser.name, parser.model, parser.unit, dict(parser.options)]
        if executor != Processes(1):  # a parser in each worker of a cluster, on the worker's device
            if not isinstance(executor, RayCluster):
                allowed = f"Processes(1): the parser {parser.name} starts its own processes"
                raise ConfigError("executor", executor, allowed)
            on_processor = bool(parser.devices) and all(device.startswith("cpu") for device in parser.devices)
            single, builder = copy(parser), copy(builder)
            single.devices, single.cache = ("cpu",) if on_processor else (), None
            builder.parser = single
            if executor.resources is None and not on_processor:
                executor = replace(executor, resources={"GPU": 1})
    indexer = store.indexer(mode, shard_size=shard_size)
    with reported_once(), store.job(mode, {**made_by, **sources}) as job:
        yield BegunStore(job, indexer, parser, builder, executor)
        job.commit({})


def processes_for(parser: AmrParser, workers: int | None) -> Processes:
    """Return where a parser's graphs are built: see ``workers`` of :func:`build_store`."""
    embedded = isinstance(parser, (DependencyAmrParser, SentenceParser))
    return Processes(1 if workers is None and not embedded else workers)


def _build_batch(builder: GraphBuilder, batch: Batch) -> Built:
    """Build and pack the graphs of a batch in a worker process; warnings are collected for the caller."""
    parser = builder.used_parser
    before = _embedded(parser)
    with overheard() as heard:
        rows = zip(builder.build_rows(batch), batch, strict=True)
        records = [record_of_row(row, row_fingerprint(document)) for row, document in rows]
    return Built(records, heard, _embedded(parser) - before)


def _pending(job: Job, batches: Iterable[Batch]) -> Iterator[Batch]:
    """Skip the batches that an earlier run has completed."""
    sources = np.concatenate([np.zeros(0, dtype=np.uint64), *(part["sources"] for part in job.done.parts)])
    start = 0
    for batch in batches:
        done = np.arange(start, min(start + len(batch), len(sources)))
        start += len(batch)
        for row, document in zip(done.tolist(), batch, strict=False):
            if sources[row] != row_fingerprint(document):
                raise job.changed(job.done.ids(np.asarray([row]))[0])
        if len(done) == len(batch):
            job.rows_done(job.done.ids(done))
        else:
            yield batch


def _embedded(parser: AmrParser) -> int:
    """How many texts the embedded parser has parsed for another."""
    return parser.embedded_count if isinstance(parser, WorkerParser) else 0
