"""`GraphStore`: the graphs of a collection on disk, by docno or qid."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.transformers import HELP_URL
from pyterrier_mathamr.amr import AmrError
from pyterrier_mathamr.graph.building.columns import Side
from pyterrier_mathamr.graph.mathamr import MathAMRGraph
from pyterrier_mathamr.store import DamagedError, Mode, Rows, Snapshot, StoredArtifact, replacing

from .import_penman import ImportReport, import_penman
from .records import GRAPHS, graph_of, packed_records, unpack
from .transformers import GraphLoader, GraphStoreIndexer

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

    ARTIFACT_TYPE = "graph_store"
    ARTIFACT_FORMAT = "mathamr"
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
        """List the keys of the dictionaries that :meth:`index` takes."""
        return self.indexer().index_inputs()

    def loader(self, *, side: Side = "auto") -> GraphLoader:
        """Return the transformer that adds stored graphs to a frame; see :class:`GraphLoader`."""
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
            DamagedError: a record is no graph.
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
        """Iterate over all graphs as ``{docno, graph}``, in the order of storing."""
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
        path = Path(file)
        with replacing(path) as raw, _text_writer(raw, path) as out:
            for row in self.get_corpus_iter():
                out.write(row["graph"].to_penman() + "\n\n")

    def from_penman(self, file: str | Path, *, mode: Mode = "create", verbose: bool = False) -> GraphStore:
        """Build this store from a file of Penman records, in bounded memory.

        Args:
            file: the published MathAMR+ graphs, files of :meth:`to_penman`, plain ``.amr`` files with ``# ::id``, or
                MathAMR's own tables of ids and graphs, gzipped or not. They are read leniently, with warnings of
                repairs and of skipped records; see :func:`import_penman`.
            mode: see :meth:`indexer`.
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
            reason = f"the record of {name!r:.80} is no graph ({type(error).__name__}: {error!s:.200})"
            raise DamagedError(snapshot.path, reason) from error
        yield graph


def _text_writer(raw: IO[bytes], path: Path) -> io.TextIOWrapper:
    """Open a text writer, through gzip for a name in .gz, without the date and name that gzip would add."""
    data = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else raw
    return io.TextIOWrapper(data, encoding="utf-8", errors="surrogatepass", newline="\n")
