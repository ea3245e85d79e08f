"""The two indexes in Qdrant, of documents and of formulas: the database that the paper used."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Self

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr._common.feedback import Counted, counted
from pyterrier_mathamr._common.ids import identified
from pyterrier_mathamr._common.parameters import COUNT, at_least, method
from pyterrier_mathamr.index.errors import QdrantError
from pyterrier_mathamr.index.indexes import (
    DocumentVectorIndex,
    FormulaVectorIndex,
    VectorIndex,
    example_documents,
    example_folder,
    merged_model,
)
from pyterrier_mathamr.index.indexing import ArtifactIndexer, DocumentIndexer, FormulaIndexer, IndexPost
from pyterrier_mathamr.index.options import explained
from pyterrier_mathamr.index.parts import described_rows
from pyterrier_mathamr.store import Mode, WriteError

from .collection import Collection, CollectionOptions, Connection, point_id
from .snapshot import QdrantSnapshot
from .upload import Upload, discard

REMOVED = 1000
"""Points that one request of :meth:`QdrantBase.delete` removes."""


class QdrantIndexer(ArtifactIndexer):
    """Sends entries as points; readers see them in one step at the end.

    Args:
        mode: ``create`` refuses a collection that exists; ``overwrite`` replaces it and ``append`` adds to it, both in
            one step at the end.
        options: how the server keeps a new collection: shards, copies, on disk, int8 codes.
        resume: keep points if the upload is interrupted, and continue one that was, with the same documents and
            options; ``indexer.pending(documents)`` leaves out stored documents before they are encoded.
    """

    def __init__(
        self,
        index: Any,
        mode: Mode = "create",
        *,
        options: CollectionOptions | None = None,
        model: str | None = None,
        keep: Sequence[str] | None = None,
        resume: bool = False,
        sources: Mapping[str, Any] | None = None,
        verbose: bool = False,
        total: int | None = None,
    ) -> None:
        shared: dict[str, Any] = {"resume": resume, "sources": sources, "verbose": verbose, "total": total}
        super().__init__(index, mode, model=model, keep=keep, **shared)
        self.options = options or CollectionOptions()
        self._upload: Upload | None = None

    def write(self, posts: Iterator[IndexPost], model: str | None) -> None:
        """Upload the entries of documents."""
        entries = chain.from_iterable(post.entries for post in posts)
        upload, self._upload = self._upload or self._new_upload(), None
        upload.run(entries, self.options, model, self.kept())

    def _new_upload(self) -> Upload:
        return Upload(self._index.collection, self.mode, self.fingerprint() if self.resume else None)


@explained
class QdrantDocumentIndexer(QdrantIndexer, DocumentIndexer):
    """Stores ``{docno, doc_embs, (formula_ids)}``: each document with its vectors ``doc`` and ``all``."""

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int = 100) -> Iterator[Mapping[str, Any]]:
        """Leave out documents that an interrupted call has stored, so that they are not encoded again."""
        documents = identified(stream)
        if not self.resume:
            yield from documents
            return
        self._upload = self._new_upload()
        yield from self._upload.pending(documents, batch_size)


@explained
class QdrantFormulaIndexer(QdrantIndexer, FormulaIndexer):
    """Stores ``{docno, doc_embs, formula_ids}``: each formula with its own vector.

    Args:
        resume: keep points if the upload is interrupted, and continue one that was, with the same documents and
            options.
    """

    def __init__(
        self,
        index: Any,
        mode: Mode = "create",
        *,
        visual_ids: Mapping[str, str] | None = None,
        options: CollectionOptions | None = None,
        model: str | None = None,
        keep: Sequence[str] | None = None,
        resume: bool = False,
        sources: Mapping[str, Any] | None = None,
        verbose: bool = False,
        total: int | None = None,
    ) -> None:
        shared: dict[str, Any] = {"resume": resume, "sources": sources, "verbose": verbose, "total": total}
        super().__init__(index, mode, options=options, model=model, keep=keep, **shared)
        self.visual_ids = visual_ids

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int = 100) -> Iterator[Mapping[str, Any]]:
        """Return the whole corpus: which posts are stored completely is not known from their formulas."""
        return identified(stream)


class QdrantBase(Counted, VectorIndex):
    """An index in Qdrant. Constructing the object sends no request; the collection need not exist yet.

    Args:
        location: the URL of a server, or a folder for Qdrant's local mode, which is exact and allows one process at a
            time.
        collection: its name, without characters such as ``/`` and ``:``.
        api_key: of the server; by default the environment variable ``QDRANT_API_KEY``. It is never pickled.
        timeout: seconds to wait for the answer to a request, and for a peer of a cluster to show what was written.
        retries: how often a failed request is repeated where that can help, such as after a lost connection.
        pause: seconds before the first retry; each further one waits twice as long, at most 30 seconds.
    """

    def __init__(
        self,
        location: str | Path,
        collection: str = "mathamr",
        *,
        api_key: str | None = None,
        timeout: int = 60,
        retries: int = 6,
        pause: float = 0.5,
    ) -> None:
        super().__init__()
        COUNT.check("timeout", timeout)
        at_least(0).check("retries", retries)
        if not collection or set(collection) & set('<>:"/\\|?*\0\x1f'):
            raise ConfigError("collection", collection, 'a name without any of < > : " / \\ | ? *')
        self.location, self.name = str(location), collection
        self.timeout, self.retries, self.pause = timeout, retries, pause
        connection = Connection(self.location, api_key, timeout, retries, pause)
        self.collection = Collection(connection, collection, self.LAYOUT)

    @classmethod
    def example(cls) -> Self:
        """Return a small index of random vectors in local mode, in a temporary folder removed when Python ends."""
        return cls(example_folder(), "example").index(example_documents())

    @property
    def path(self) -> str:
        """The address and the collection."""
        return self.collection.address

    @property
    def nickname(self) -> str:
        """What the names of transformers call it."""
        return self.name

    def __reduce__(self) -> Any:
        options = {"timeout": self.timeout, "retries": self.retries, "pause": self.pause}
        return partial(type(self), **options), (self.location, self.name)  # without the key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QdrantBase) and other._identity() == self._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        remote = self.collection.connection.remote
        return type(self), self.location if remote else Path(self.location).absolute(), self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r}, {self.name!r})"

    def counts(self) -> list[str]:
        """List the number of points, and the width and dtype of their vectors; it asks the server."""
        snapshot = self.snapshot()
        what = "document" if self.LAYOUT == "documents" else "formula"
        return [counted(len(snapshot), what), described_rows(snapshot.meta.dimensions, "float32")]

    def built(self) -> bool:
        """Return whether the collection exists and is complete, unlike one of an unfinished upload."""
        return self.collection.read() is not None

    def snapshot(self) -> QdrantSnapshot:
        """Return the current state of the collection."""
        return QdrantSnapshot(self.collection)

    @classmethod
    def merge(
        cls,
        location: str | Path,
        collection: str,
        *indexes: QdrantBase,
        options: CollectionOptions | None = None,
        **connection: Any,
    ) -> Self:
        """Build a new collection of all entries of some others.

        Args:
            location: of the new collection: a URL or a folder.
            collection: its name; it must not exist.
            indexes: the collections to read, of the same class.
            options: how the server keeps the new collection: shards, copies, on disk, int8 codes.
            connection: further arguments of the class, such as ``api_key`` and ``timeout``.
        """
        index = cls(location, collection, **connection)
        for source in indexes:
            if type(source) is not cls:
                raise QdrantError(source.path, f"only a {cls.__name__} can be merged here")
        model = merged_model(index.path, indexes)
        entries = chain.from_iterable(source.snapshot().entries() for source in indexes)
        keep = dict.fromkeys(name for source in indexes for name in source.snapshot().meta.keep)
        Upload(index.collection, "create").run(entries, options or CollectionOptions(), model, tuple(keep))
        return index

    def discard(self) -> None:
        """Remove the points of an interrupted call; the collection that readers see is unchanged."""
        discard(self.collection)

    def delete(self, docnos: Iterable[str]) -> None:
        """Remove documents (or formulas, by their ids), a thousand at a time.

        After an interruption, repeat the call with the same ids: those that are gone are left out, with a warning that
        counts them.

        Raises:
            UnknownIdError: the collection has none of the ids; the error names them.
            QdrantError: the server did not answer; the error says how many of the ids are removed for certain.
        """
        names = list(dict.fromkeys(map(str, docnos)))
        snapshot = self.snapshot()
        present = [name for name, number in zip(names, snapshot.look_up(names), strict=True) if number >= 0]
        if not present:
            snapshot.find(names)
        models = self.collection.connection.models
        for start in range(0, len(present), REMOVED):
            ids = [point_id(name) for name in present[start : start + REMOVED]]
            try:
                snapshot.call("delete", "deleting", points_selector=models.PointIdsList(points=ids), wait=True)
            except (QdrantError, WriteError) as error:
                left = (
                    f"{start} of {len(present)} were removed, and perhaps more; call delete() with the same ids again"
                )
                raise QdrantError(self.path, f"{error.reason}; {left}", getattr(error, "status", 0)) from error
        if absent := sorted(set(names).difference(present)):
            text = f"{len(absent)} of {len(names)} ids were not there, perhaps since an earlier call removed them"
            shown = f"{', '.join(map(repr, absent[:5]))}{', …' if len(absent) > 5 else ''}"
            warnings.warn(MathAMRWarning(f"{self.path}: {text}: {shown}; the rest was removed."), stacklevel=2)


@explained
class QdrantIndex(DocumentVectorIndex, QdrantBase):
    """The vectors of all virtual nodes of each document in a Qdrant collection (MathAMR+, section 3.5.1).

    It has the methods and columns of ``MathAMRIndex``; in exact mode, its rankings and scores, too::

        index = QdrantIndex("http://localhost:6333", "arqmath")        # or a folder: Qdrant's local mode
        (graphs >> model.doc_encoder() >> index.indexer()).index(arqmath.get_corpus_iter())
        pipeline = graphs >> model.query_encoder() >> index.colbert(num_results=100)

    Called directly, it accepts queries as :meth:`retriever`, rankings as :meth:`scorer` and documents as
    :meth:`vec_loader`.
    """

    indexer = method(QdrantDocumentIndexer)


@explained
class QdrantFormulaIndex(FormulaVectorIndex, QdrantBase):
    """One vector for each formula virtual node in a Qdrant collection, for formula retrieval (ARQMath Task 2).

    It has the methods and columns of ``MathAMRFormulaIndex``; in exact mode, its rankings and scores, too::

        formulas = QdrantFormulaIndex("http://localhost:6333", "arqmath-formulas")
        (graphs >> model.doc_encoder() >> formulas.indexer()).index(arqmath.get_corpus_iter())
        pipeline = graphs >> model.query_encoder() >> formulas.retriever()
    """

    indexer = method(QdrantFormulaIndexer)
