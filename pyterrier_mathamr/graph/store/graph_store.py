"""`GraphStore`: the graphs of a collection on disk, by docno or qid."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyterrier as pt

from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr._common.transformers import HELP_URL
from pyterrier_mathamr.amr import AmrError
from pyterrier_mathamr.graph.building.columns import Side
from pyterrier_mathamr.graph.mathamr import MathAMRGraph
from pyterrier_mathamr.store import DamagedError, Mode, Rows, Snapshot, StoredArtifact, replacing

from .import_penman import ImportReport, import_penman
from .records import GRAPHS, graph_of, packed_records, unpack
from .transformers import GraphLoader, GraphStoreIndexer

_AT_ONCE = 256  # graphs that are looked up together when all are read


class GraphStore(StoredArtifact, pt.Indexer):  # type: ignore[misc]
    """The graphs of posts or topics by id, compressed (MathAMR+, section 3.1).

    A store is cheap to make and opens its files on first use; it can be pickled. A job that builds it can be killed and
    run again: it goes on after what it has stored.

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

    schematic = {"label": "GraphStore", "help_url": HELP_URL}  # noqa: RUF012

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self.import_report: ImportReport | None = None
        """What :meth:`from_penman` read, where this object did."""

    @staticmethod
    def example() -> GraphStore:
        """Give a store that is not built."""
        return GraphStore("graphs.mathamr")

    def indexer(
        self, mode: Mode = "create", *, shard_size: int = 1000, verbose: bool = False, total: int | None = None
    ) -> GraphStoreIndexer:
        """Give the transformer that stores graphs.

        Args:
            mode: ``create`` a store where there is none, ``overwrite`` what is there once the new one is whole, or
                ``append`` to it.
            shard_size: a job that is killed loses at most so many graphs.
            verbose: show progress.
            total: the number of graphs, for the progress bar.

        Returns:
            An indexer of dicts ``{docno, graph}`` or ``{qid, query_graph}``.
        """
        return GraphStoreIndexer(self, mode, shard_size=shard_size, verbose=verbose, total=total)

    def index(self, iter: Iterable[dict[str, Any]]) -> GraphStore:
        """Store graphs; the same as ``indexer().index(iter)``."""
        return self.indexer().index(iter)

    def index_inputs(self) -> list[list[str]]:
        """Say what the dicts of :meth:`index` hold."""
        return self.indexer().index_inputs()

    def loader(self, *, side: Side = "auto") -> GraphLoader:
        """Give the transformer that adds the stored graphs to a frame.

        Args:
            side: ``document`` adds ``graph`` by docno, ``query`` adds ``query_graph`` by qid, ``both`` both; ``auto``
                by docno where the frame has one, else by qid.
        """
        return GraphLoader(self, side=side)

    def get(self, id: str) -> MathAMRGraph:
        """Read one graph.

        Raises:
            UnknownIdError: the store does not have it.
        """
        return self.get_many([id])[0]

    def get_many(self, ids: Sequence[str]) -> list[MathAMRGraph]:
        """Read graphs in the order of ``ids``.

        Raises:
            UnknownIdError: the store does not have some of them; all are named.
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
        """List the ids in the order in which the graphs were stored."""
        return list(self)

    def get_corpus_iter(self, *, verbose: bool = False) -> Iterator[dict[str, Any]]:
        """Go through all graphs in the order in which they were stored.

        Args:
            verbose: show progress.

        Returns:
            An iterator of ``{docno, graph}``.
        """
        snapshot = self.snapshot()
        graphs = (
            graph
            for rows in np.split(snapshot.live, range(_AT_ONCE, len(snapshot), _AT_ONCE))
            for graph in _graphs(snapshot, snapshot.ids(rows), rows)
        )
        for graph in progress(graphs, "graphs", "graph", verbose=verbose, total=len(snapshot)):
            yield {"docno": graph.id, "graph": graph}

    def to_penman(self, file: str | Path) -> None:
        """Write all graphs as one Penman file, with a blank line after each; compressed where its name ends in .gz.

        Raises:
            WriteError: the file cannot be written; one that was there is unchanged.
        """
        path = Path(file)
        with replacing(path) as raw, _text_writer(raw, path) as out:
            for row in self.get_corpus_iter():
                out.write(row["graph"].to_penman() + "\n\n")

    def from_penman(self, file: str | Path, *, mode: Mode = "create", verbose: bool = False) -> GraphStore:
        """Build this store from a file of Penman records, in bounded memory.

        Args:
            file: the records, gzipped or not: the published MathAMR+ graphs and those of :meth:`to_penman`, plain
                ``.amr`` files with ``# ::id``, and MathAMR's own tables of ids and graphs. They are read leniently,
                see :func:`import_penman`; a warning says what was repaired, and one for each of the first records
                that had to be left out says why.
            mode: see :meth:`indexer`.
            verbose: show progress.

        Returns:
            The store; its ``import_report`` counts the records, the repairs and the refusals.
        """
        self.import_report = import_penman(file, self, mode=mode, verbose=verbose)
        return self


def _graphs(snapshot: Snapshot, ids: Sequence[str], rows: Rows) -> Iterator[MathAMRGraph]:
    """Read the graphs of some rows, whose ids are given for messages."""
    for name, record in zip(ids, packed_records(snapshot, rows), strict=True):
        try:
            graph = graph_of(unpack(record))
        except (zlib.error, ValueError, KeyError, TypeError, AttributeError, RecursionError, AmrError) as error:
            reason = f"the record of {name!r:.80} is no graph ({type(error).__name__}: {error!s:.200})"
            raise DamagedError(snapshot.path, reason) from error
        yield graph


def _text_writer(raw: IO[bytes], path: Path) -> io.TextIOWrapper:
    """Write text through gzip where the name asks for it, without the date and name that gzip would put in."""
    data = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else raw
    return io.TextIOWrapper(data, encoding="utf-8", errors="surrogatepass", newline="\n")
