"""Documents straight into a :class:`GraphStore`, over all cores: the same bytes for any number of processes.

documents ──batches──▶ process: read, parse, attach, pack ──records in order──▶ this process: shards on disk
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

import pandas as pd

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.processes import map_in_processes, usable_cores
from pyterrier_mathamr.amr import DependencyAmrParser, WorkerParser, get_parser

from .builder import GraphBuilder
from .store import GraphStore
from .store_index import Record, record_of_row
from .store_job import StoreMode


class Built(NamedTuple):
    """What became of a batch.

    Attributes:
        records: the packed graphs with their ids.
        warnings: text and category of what was said of bad posts.
    """

    records: list[Record]
    warnings: list[tuple[str, type[Warning]]]


def build_store(
    documents: Iterable[dict[str, Any]],
    builder: GraphBuilder,
    store: GraphStore,
    *,
    mode: StoreMode = "create",
    workers: int | None = 1,
    shard_size: int = 1000,
    verbose: bool = False,
    total: int | None = None,
) -> GraphStore:
    """Build graphs of documents or queries in several processes and store them.

    The same as ``(builder >> store.indexer(mode)).index(documents)``, to the byte, also after a kill. Memory holds a
    few batches for each process and one shard, whatever the number of documents.

    Example::

        if __name__ == "__main__":
            mathamr.graph.build_store(dataset.get_corpus_iter(), mathamr.GraphBuilder(), store, workers=None)

    Args:
        documents: what the builder takes, in batches of ``builder.batch_size``.
        builder: makes the graphs; with several workers it is pickled.
        store: where they go.
        mode: see :meth:`GraphStore.indexer`.
        workers: number of processes; ``None``: all usable cores with the embedded parser, one with any other, which
            may have processes or devices of its own.
        shard_size: graphs in a shard.
        verbose: show progress.
        total: the number of documents, for the progress bar.

    Returns:
        The store.

    Raises:
        ConfigError: ``workers`` is no positive number, or more than one with a parser that has processes of its own.
        StoreError: see :meth:`GraphStoreIndexer.index`; WorkerDiedError: a process was killed. What is in whole shards
            is kept and the next run goes on after it.
    """
    parser = get_parser(builder.parser)
    if workers is None:
        workers = usable_cores() if isinstance(parser, DependencyAmrParser) else 1
    if workers > 1 and isinstance(parser, WorkerParser):
        raise ConfigError("workers", workers, f"1: the parser {parser.name} has processes of its own, one a device")
    batches = _batches(iter(documents), builder.batch_size)
    indexer = store.indexer(mode, shard_size=shard_size, verbose=verbose, total=total)
    with closing(map_in_processes(BuildBatch(builder), batches, workers)) as built:
        return indexer.index_records(_told(built))


class BuildBatch:
    """Builds and packs the graphs of a batch; runs in a worker process, so it keeps its warnings for the caller.

    Args:
        builder: makes the graphs.
    """

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder

    def __call__(self, batch: list[dict[str, Any]]) -> Built:
        """Build the graphs of a batch of documents or queries."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            frame = self.builder.transform(pd.DataFrame(batch))
            records = [record_of_row(row) for row in frame.to_dict("records")]
        return Built(records, [(str(warning.message), warning.category) for warning in caught])


def _batches(documents: Iterator[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    while batch := list(islice(documents, size)):
        yield batch


def _told(batches: Iterable[Built]) -> Iterator[Record]:
    """Say here what the processes warned of, and go on with their records."""
    for built in batches:
        for text, category in built.warnings:
            warnings.warn(text, category, stacklevel=2)
        yield from built.records
