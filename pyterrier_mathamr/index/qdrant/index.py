"""The two indexes in Qdrant, of documents and of formulas: the database that the paper used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr.index.base import DocumentFace, IndexFace, example_folder, merged_model
from pyterrier_mathamr.index.building.entries import Layout, stored_formula_ids
from pyterrier_mathamr.index.text_search import TypedFormulas
from pyterrier_mathamr.index.transformers import check_count, search_of
from pyterrier_mathamr.store import Mode

from .collection import Collection, CollectionOptions, point_id
from .connection import Connection
from .errors import QdrantCollectionError
from .snapshot import QdrantSnapshot
from .transformers import (
    QdrantColBERTRetriever,
    QdrantDocumentIndexer,
    QdrantDocVNRetriever,
    QdrantFormulaIndexer,
    QdrantFormulaRetriever,
    QdrantSingleVectorRetriever,
)
from .upload import upload


class QdrantBase(IndexFace):
    """An index in Qdrant. Making the object sends no request; the collection need not exist yet.

    Args:
        location: the URL of a server or cluster (``https://host:6333``), or a folder for Qdrant's local mode, which
            needs no server and is meant for some ten thousand documents. Local mode keeps its points as pickles: open
            only folders that you trust.
        collection: its name.
        api_key: the server's key; by default the environment variable ``QDRANT_API_KEY``. It is not shown, compared or
            pickled: a copy in another process takes it from its own environment.
        timeout: whole seconds to wait for an answer.
        retries: how often a request that failed for a passing reason is sent again.
        pause: seconds before it is sent again the first time; the pause doubles each time.
    """

    LAYOUT: ClassVar[Layout]

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
        check_count("timeout", timeout)
        if retries < 0:
            raise ConfigError("retries", retries, "a whole number of at least 0")
        if not collection or set(collection) & set('<>:"/\\|?*\0\x1f'):
            raise ConfigError("collection", collection, 'a name without any of < > : " / \\ | ? *')
        self.location, self.name = str(location), collection
        self.timeout, self.retries, self.pause = timeout, retries, pause
        self.collection = Collection(
            Connection(self.location, api_key, timeout, retries, pause), collection, self.LAYOUT
        )

    @property
    def path(self) -> str:
        """Where it lies, for errors: the address and the collection."""
        return self.collection.address

    def _options(self) -> dict[str, Any]:
        return {"timeout": self.timeout, "retries": self.retries, "pause": self.pause}

    def __reduce__(self) -> Any:
        return _rebuilt, (type(self), self.location, self.name, self._options())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QdrantBase):
            return NotImplemented
        return (type(other), other.location, other.name) == (type(self), self.location, self.name)

    def __hash__(self) -> int:
        return hash((type(self), self.location, self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r}, {self.name!r})"

    def built(self) -> bool:
        """Whether the collection is there and whole; an upload that is under way or died does not count.

        Raises:
            QdrantError: the server cannot be asked, or the collection is another's.
        """
        return self.collection.read() is not None

    def snapshot(self) -> QdrantSnapshot:
        """The collection as it is now.

        Raises:
            QdrantCollectionError: there is none, or it is of another kind.
            QdrantError: another of its kinds.
        """
        return QdrantSnapshot(self.collection)

    def subtransformers(self) -> dict[str, pt.Transformer]:
        """None: the index is a store, not a stage."""
        return {}

    @classmethod
    def merge(
        cls,
        location: str | Path,
        collection: str,
        *indexes: QdrantBase,
        options: CollectionOptions | None = None,
        **connection: Any,
    ) -> Self:
        """Build a new collection of all entries of some others, in their order; readers see it in one step at the end.

        Args:
            location: where the new collection lies: a URL, or a folder for Qdrant's local mode.
            collection: its name.
            indexes: what is merged, wherever it lies; one alone is copied.
            options: shards, replicas, disk and int8 quantisation of the new collection.
            connection: ``api_key``, ``timeout``, ``retries`` and ``pause`` of the new index.

        Raises:
            ExistsError: there is such a collection.
            DuplicateIdError: two of them hold the same document; of a formula the first is kept, with a warning.
            EmbeddingError: their dimensions differ.
            ModelMismatchError: their models differ.
            QdrantError: one of its kinds.
        """
        index = cls(location, collection, **connection)
        for source in indexes:
            if type(source) is not cls:
                raise QdrantCollectionError(source.path, f"only a {cls.__name__} can be merged here")
        model = merged_model(index.path, indexes)
        entries = chain.from_iterable(source.snapshot().entries() for source in indexes)
        upload(index.collection, "create", entries, options or CollectionOptions(), model=model, resume=False)
        return index

    def delete(self, docnos: Iterable[str]) -> None:
        """Remove documents (or formulas, by their ids).

        Args:
            docnos: what goes; one that comes twice counts once.

        Raises:
            UnknownIdError: the collection does not hold some of them; it names them, and nothing is removed.
        """
        names = list(dict.fromkeys(docnos))
        snapshot = self.snapshot()
        snapshot.find(names)
        models = self.collection.connection.models
        for start in range(0, len(names), 1000):
            ids = [point_id(name) for name in names[start : start + 1000]]
            snapshot.call("delete", "deleting", points_selector=models.PointIdsList(points=ids), wait=True)


def _rebuilt(kind: type[QdrantBase], location: str, name: str, options: Mapping[str, Any]) -> QdrantBase:
    """What a pickle calls; the key is not in it."""
    return kind(location, name, **options)


class QdrantIndex(DocumentFace, QdrantBase):
    """The vectors of all virtual nodes of each document in a Qdrant collection (MathAMR+, section 3.5.1).

    It has the methods of ``MathAMRIndex``, with the same columns; in exact mode the rankings and scores are the same
    too, equal scores by docno::

        index = QdrantIndex("http://localhost:6333", "arqmath")        # or a folder: Qdrant's local mode
        (graphs >> model.doc_encoder() >> index.indexer()).index(arqmath.get_corpus_iter())
        pipeline = graphs >> model.query_encoder() >> index.colbert(num_results=100)

    Called directly it takes queries as :meth:`retriever`, rankings as :meth:`scorer` and documents as
    :meth:`vec_loader`. The arguments are those of :class:`QdrantBase`.
    """

    LAYOUT = "documents"

    def indexer(
        self,
        mode: Mode = "create",
        *,
        options: CollectionOptions | None = None,
        model: str | None = None,
        resume: bool = False,
        verbose: bool = False,
        total: int | None = None,
    ) -> QdrantDocumentIndexer:
        """Consumes ``{docno, doc_embs, (formula_ids)}`` and fills, replaces or extends this collection.

        Args:
            mode: ``create`` refuses a collection that is there, ``overwrite`` replaces it, ``append`` adds to it.
            options: shards, replicas, disk and int8 quantisation of a new collection.
            model: the identity of the model that makes the vectors; by default what the records carry in ``doc_model``.
            resume: go on with what an earlier such call that died had stored, and leave it if this one dies too.
            verbose: show a progress bar.
            total: how many documents will come, for the bar.
        """
        others = {"model": model, "resume": resume, "verbose": verbose, "total": total}
        return QdrantDocumentIndexer(self, mode, options=options, **others)

    def single_vector(
        self,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        hnsw_ef: int = 128,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> QdrantSingleVectorRetriever:
        """Ranks documents by their VIRTUAL_DOCUMENT: ``query_embs`` to ``docno``, ``score``, ``rank``.

        Args:
            num_results: documents for each query.
            exact: ``True`` for exact search (the default), ``False`` for HNSW.
            search: the same by name: ``exact`` or ``approximate``.
            hnsw_ef: how broadly the graph is walked in approximate search.
            verbose: show a progress bar.
            batch_size: queries taken at once.
            device: ``None`` or ``cpu``.
        """
        return QdrantSingleVectorRetriever(
            self,
            num_results=num_results,
            search=search_of(exact, search),
            hnsw_ef=hnsw_ef,
            verbose=verbose,
            batch_size=batch_size,
            device=device,
        )

    def doc_vn(
        self,
        candidates: int = 5000,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        hnsw_ef: int = 128,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> QdrantDocVNRetriever:
        """Ranks the best by VIRTUAL_DOCUMENT by exact MaxSim: ``query_embs`` to ``docno``, ``score``, ``rank``.

        Args:
            candidates: documents of the first stage for each query.
            num_results: documents for each query.
            exact: whether the first stage is exact (the default) or HNSW; the second is always exact.
            search: the same by name: ``exact`` or ``approximate``.
            hnsw_ef: how broadly the graph is walked in approximate search.
            normalise: divide scores by the query's number of rows (eq. 3.7).
            verbose: show a progress bar.
            batch_size: queries taken at once.
            device: ``None`` or ``cpu``.
        """
        return QdrantDocVNRetriever(
            self,
            candidates=candidates,
            num_results=num_results,
            search=search_of(exact, search),
            hnsw_ef=hnsw_ef,
            normalise=normalise,
            verbose=verbose,
            batch_size=batch_size,
            device=device,
        )

    def colbert(
        self,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        hnsw_ef: int = 128,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> QdrantColBERTRetriever:
        """Ranks documents by MaxSim over all rows: ``query_embs`` to ``docno``, ``score``, ``rank``.

        ``query_weights`` must not be negative here, which Qdrant cannot search by; ``query_document_weight`` may.

        Args:
            num_results: documents for each query.
            exact: ``True`` searches every document (the default), ``False`` those that HNSW finds.
            search: the same by name: ``exact`` or ``approximate``.
            hnsw_ef: how broadly the graph is walked in approximate search.
            normalise: divide scores by the query's number of rows (eq. 3.7).
            verbose: show a progress bar.
            batch_size: queries taken at once.
            device: ``None`` or ``cpu``.
        """
        return QdrantColBERTRetriever(
            self,
            num_results=num_results,
            search=search_of(exact, search),
            hnsw_ef=hnsw_ef,
            normalise=normalise,
            verbose=verbose,
            batch_size=batch_size,
            device=device,
        )

    retriever = colbert

    def get_corpus_iter(self, *, verbose: bool = False) -> Iterator[dict[str, Any]]:
        """The documents in the order of their points, with the fields that ``MathAMRIndex`` gives."""
        snapshot = self.snapshot()
        made_by = {} if snapshot.meta.model is None else {"doc_model": snapshot.meta.model}
        for entry in progress(snapshot.entries(), "reading", "doc", verbose=verbose):
            docno, ids = entry.texts
            known = {"formula_ids": stored_formula_ids(ids, self.path)} if ids else {}
            yield {"docno": docno, "doc_embs": entry.rows, **known, **made_by}

    @staticmethod
    def example() -> QdrantIndex:
        """A small index of random vectors in local mode, in a temporary folder that is removed when Python ends."""
        random = np.random.default_rng(42)
        index = QdrantIndex(example_folder(), "example")
        rows = (random.standard_normal((n, 4)).astype(np.float32) for n in (3, 1, 5))
        unit = (of / np.linalg.norm(of, axis=1, keepdims=True) for of in rows)
        return index.index({"docno": f"d{i}", "doc_embs": of} for i, of in enumerate(unit, 1))


class QdrantFormulaIndex(TypedFormulas, QdrantBase):
    """One vector for each formula virtual node in a Qdrant collection, for formula retrieval (ARQMath Task 2).

    It has the methods of ``MathAMRFormulaIndex``, with the same columns; in exact mode the rankings are the same too::

        formulas = QdrantFormulaIndex("http://localhost:6333", "arqmath-formulas")
        (graphs >> model.doc_encoder() >> formulas.indexer()).index(arqmath.get_corpus_iter())
        pipeline = graphs >> model.query_encoder() >> formulas.retriever()

    The arguments are those of :class:`QdrantBase`.
    """

    LAYOUT = "formulas"

    def indexer(
        self,
        mode: Mode = "create",
        *,
        visual_ids: Mapping[str, str] | None = None,
        options: CollectionOptions | None = None,
        model: str | None = None,
        resume: bool = False,
        verbose: bool = False,
        total: int | None = None,
    ) -> QdrantFormulaIndexer:
        """Consumes ``{docno, doc_embs, formula_ids}`` and fills, replaces or extends this collection.

        Args:
            mode: ``create`` refuses a collection that is there, ``overwrite`` replaces it, ``append`` adds to it.
            visual_ids: formula id to visual id; formulas that are not in it get the empty string.
            options: shards, replicas, disk and int8 quantisation of a new collection.
            model: the identity of the model that makes the vectors; by default what the records carry in ``doc_model``.
            resume: go on with what an earlier such call that died had stored, and leave it if this one dies too.
            verbose: show a progress bar.
            total: how many documents will come, for the bar.
        """
        others = {"model": model, "resume": resume, "verbose": verbose, "total": total}
        return QdrantFormulaIndexer(self, mode, options=options, visual_ids=visual_ids, **others)

    def retriever(
        self,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        hnsw_ef: int = 128,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> QdrantFormulaRetriever:
        """Ranks formulas by one row of ``query_embs``, that of ``query_formula_id`` in ``query_formula_ids``.

        Args:
            num_results: formulas for each query.
            exact: ``True`` for exact search (the default), ``False`` for HNSW.
            search: the same by name: ``exact`` or ``approximate``.
            hnsw_ef: how broadly the graph is walked in approximate search.
            verbose: show a progress bar.
            batch_size: queries taken at once.
            device: ``None`` or ``cpu``.
        """
        return QdrantFormulaRetriever(
            self,
            num_results=num_results,
            search=search_of(exact, search),
            hnsw_ef=hnsw_ef,
            verbose=verbose,
            batch_size=batch_size,
            device=device,
        )

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The same as ``retriever()(inp)``."""
        result: pd.DataFrame = self.retriever()(inp)
        return result

    def get_corpus_iter(self, *, verbose: bool = False) -> Iterator[dict[str, Any]]:
        """The formulas: ``docno`` (its id), ``post_id``, ``visual_id`` and ``formula_vec``, float32 ``[d]``."""
        for entry in progress(self.snapshot().entries(), "reading", "formula", verbose=verbose):
            docno, post_id, visual_id = entry.texts
            yield {"docno": docno, "post_id": post_id, "visual_id": visual_id, "formula_vec": entry.rows[0]}
