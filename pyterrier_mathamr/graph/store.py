"""`GraphStore`: the graphs of a collection on disk, by docno or qid."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyterrier as pt

from pyterrier_mathamr._common.artifacts import META, check_artifact
from pyterrier_mathamr._common.links import HELP_URL
from pyterrier_mathamr._common.paths import ByPath
from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr.amr import AmrError

from .errors import DamagedStoreError, NotBuiltError, StoreFormatError, UnknownIdError
from .id_table import IdTable
from .import_penman import ImportReport, import_penman
from .loader import GraphLoader
from .mathamr import MathAMRGraph
from .reading import Side
from .record import graph_of
from .shard import unpack
from .store_index import GraphStoreIndexer
from .store_job import READABLE_FORMATS, STORE_KIND, StoreMode, partial_path, shard_name, unfinished_ids


class GraphStore(ByPath, pt.Artifact, pt.Indexer):  # type: ignore[misc]
    """The graphs of posts or topics by id, compressed (MathAMR+, section 3.1).

    A store is cheap to make and opens its files on first use; it can be pickled. A job that builds it can be killed and
    run again: it goes on after the last whole shard.

    Example::

        store = mathamr.GraphStore("arqmath-graphs.mathamr")
        (mathamr.GraphBuilder() >> store.indexer()).index(dataset.get_corpus_iter())
        pipeline = bm25 >> store.loader() >> model.text_scorer()

    Args:
        path: the folder of the store, built or not.
    """

    ARTIFACT_TYPE = "graph_store"
    ARTIFACT_FORMAT = "mathamr"
    ARTIFACT_PACKAGE_HINT = "pyterrier-mathamr"

    schematic = {"label": "GraphStore", "help_url": HELP_URL}  # noqa: RUF012

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._opened: _Opened | None = None
        self.import_report: ImportReport | None = None
        """What :meth:`from_penman` read, where this object did."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @staticmethod
    def example() -> GraphStore:
        """Give a store that is not built."""
        return GraphStore("graphs.mathamr")

    def built(self) -> bool:
        """Tell whether there is a finished store at the path."""
        return (Path(self.path) / META).is_file()

    def unfinished(self) -> int:
        """Count the graphs that a job which stopped half way has stored so far."""
        return len(self.unfinished_ids())

    def unfinished_ids(self) -> frozenset[str]:
        """List what a job that stopped half way has stored; its next run needs only the others.

        Example::

            done = store.unfinished_ids()
            (graphs >> store.indexer()).index(doc for doc in dataset.get_corpus_iter() if doc["docno"] not in done)
        """
        return unfinished_ids(Path(self.path))

    def discard(self) -> None:
        """Drop the work of a job that stopped half way; the store itself stays."""
        shutil.rmtree(partial_path(Path(self.path)), ignore_errors=True)

    def indexer(
        self, mode: StoreMode = "create", *, shard_size: int = 1000, verbose: bool = False, total: int | None = None
    ) -> GraphStoreIndexer:
        """Give the transformer that stores graphs.

        Args:
            mode: ``create`` a store where there is none, ``overwrite`` what is there once the new one is whole, or
                ``append`` to it.
            shard_size: graphs in a shard; a job that is killed loses at most one shard.
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
        """
        opened = self._open()
        rows = opened.ids.rows(ids)
        if (rows < 0).any():
            raise UnknownIdError(Path(self.path), [name for name, row in zip(ids, rows, strict=True) if row < 0])
        return [opened.graph(row) for row in rows.tolist()]

    def __getitem__(self, id: str) -> MathAMRGraph:
        return self.get(id)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and bool(self._open().ids.rows([id])[0] >= 0)

    def __bool__(self) -> bool:
        return True  # not by its length, which a store that is not built does not have

    def __len__(self) -> int:
        return len(self._open().ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._open().ids)

    def ids(self) -> list[str]:
        """List the ids in the order in which the graphs were stored."""
        return list(self._open().ids)

    def get_corpus_iter(self, *, verbose: bool = False) -> Iterator[dict[str, Any]]:
        """Go through all graphs in the order in which they were stored.

        Args:
            verbose: show progress.

        Returns:
            An iterator of ``{docno, graph}``.
        """
        opened = self._open()
        for row, name in enumerate(progress(opened.ids, "graphs", "graph", verbose=verbose, total=len(opened.ids))):
            yield {"docno": name, "graph": opened.graph(row)}

    def to_penman(self, file: str | Path) -> None:
        """Write all graphs as one Penman file, with a blank line after each; compressed where its name ends in .gz."""
        opened = self._open()
        path = Path(file)
        with open(path, "wb") as raw, _text_writer(raw, path) as out:
            for row in range(len(opened.ids)):
                out.write(opened.graph(row).to_penman() + "\n\n")

    def from_penman(self, file: str | Path, *, mode: StoreMode = "create", verbose: bool = False) -> GraphStore:
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

    def _open(self) -> _Opened:
        if self._opened is None:
            if not self.built():
                raise NotBuiltError(Path(self.path), self.unfinished())
            self._opened = _Opened(Path(self.path))
        return self._opened

    def _reopen(self) -> None:
        """Forget the opened files after a job has replaced them."""
        self._opened = None


class _Opened:
    """The files of a finished store, as they were when it was opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        check_artifact(path, STORE_KIND)
        meta = json.loads((path / META).read_text())
        if meta.get("version") not in READABLE_FORMATS:
            raise StoreFormatError(path, meta.get("version"), READABLE_FORMATS)
        for number, size in enumerate(meta["shards"]):
            shard = path / shard_name(number)
            if not shard.is_file() or shard.stat().st_size != size:
                raise DamagedStoreError(shard, f"the shard is missing or has not its {size} bytes")
        self.meta = meta
        self.ids = IdTable(path / meta["ids"], meta["count"])
        self.records: npt.NDArray[np.int64] = np.load(path / meta["records"], mmap_mode="r")
        if len(self.records) != meta["count"]:
            raise DamagedStoreError(path / meta["records"], f"{len(self.records)} records, not {meta['count']}")
        self.shards: dict[int, npt.NDArray[np.uint8]] = {}

    def graph(self, row: int) -> MathAMRGraph:
        """Read the graph of one row."""
        number, start, length = map(int, self.records[row])
        if number not in self.shards:
            self.shards[number] = np.memmap(self.path / shard_name(number), dtype=np.uint8, mode="r")
        shard = self.path / shard_name(number)
        text = unpack(self.shards[number][start : start + length].tobytes(), shard)
        try:
            return graph_of(text)
        except (ValueError, KeyError, TypeError, AttributeError, AmrError) as error:
            raise DamagedStoreError(shard, f"a record is no graph ({type(error).__name__}: {error})") from error


def _text_writer(raw: IO[bytes], path: Path) -> io.TextIOWrapper:
    """Write text through gzip where the name asks for it, without the date and name that gzip would put in."""
    data = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else raw
    return io.TextIOWrapper(data, encoding="utf-8", errors="surrogatepass", newline="\n")
