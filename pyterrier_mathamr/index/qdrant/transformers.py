"""The retrievers over a Qdrant collection (MathAMR+, section 3.5.2), and the indexers that fill it.

Their columns are those of the transformers over a folder, and exact search returns the rankings and scores of
``MathAMRIndex``; :mod:`.search` says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from pyterrier_mathamr.index.building.entries import Post
from pyterrier_mathamr.index.building.indexers import ArtifactIndexer, DocumentIndexer, FormulaIndexer
from pyterrier_mathamr.index.protocols import SearchableIndex
from pyterrier_mathamr.index.search.queries import QueryBatch
from pyterrier_mathamr.index.search.ranking import Hits, rank
from pyterrier_mathamr.index.transformers import FormulaRetriever, IndexRetriever
from pyterrier_mathamr.store import Mode

from .collection import CollectionOptions
from .journal import Journal
from .search import search
from .snapshot import QdrantSnapshot
from .upload import upload


class QdrantRetriever(IndexRetriever):
    """Ranks documents by one of the collection's vectors; subclasses say by which."""

    def __init__(
        self,
        index: SearchableIndex,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        hnsw_ef: int = 128,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        shared: dict[str, Any] = {"verbose": verbose, "batch_size": batch_size, "device": device}
        super().__init__(index, num_results=num_results, exact=exact, search=search, **shared)
        self.hnsw_ef = hnsw_ef

    def find(self, queries: QueryBatch, snapshot: QdrantSnapshot) -> list[Hits]:
        """Find the best documents of each query."""
        return search(snapshot, queries, self.num_results, self.field, self._search, self.hnsw_ef)


class QdrantSingleVectorRetriever(QdrantRetriever):
    """Ranks documents by the product of their VIRTUAL_DOCUMENT with the query's, its last row.

    ``index.single_vector()`` constructs one; the options are those of :class:`QdrantRetriever`.

    Example::

        graphs >> model.query_encoder() >> index.single_vector(num_results=1000)
    """

    label = "Qdrant single"
    field = "doc"


class QdrantFormulaRetriever(QdrantSingleVectorRetriever):
    """Ranks formulas by the similarity of their VIRTUAL_FORMULA with that of the query's formula (section 3.5.2).

    ``formula_index.retriever()`` constructs one; the options are those of :class:`QdrantRetriever`.

    Example::

        graphs >> model.query_encoder() >> formula_index.retriever(num_results=1000)
    """

    label = "Qdrant formulas"
    needs, gives, read = FormulaRetriever.needs, FormulaRetriever.gives, FormulaRetriever.read


class QdrantColBERTRetriever(QdrantRetriever):
    """Ranks documents by MaxSim, S(Q, D) = Σᵢ maxⱼ qᵢ · dⱼ (eq. 3.4), by Qdrant's multivector search.

    ``query_weights`` must not be negative, which Qdrant cannot search by; ``query_document_weight`` may.
    ``index.colbert()`` constructs one, and so does ``index.retriever()``.

    Example::

        graphs >> model.query_encoder() >> index.colbert(num_results=1000)

    Args:
        index: the index.
        num_results: and the others, as for :class:`QdrantRetriever`.
        normalise: divide scores by the query's number of rows (eq. 3.7).
    """

    label = "Qdrant ColBERT"

    def __init__(
        self,
        index: SearchableIndex,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        hnsw_ef: int = 128,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        shared: dict[str, Any] = {"verbose": verbose, "batch_size": batch_size, "device": device}
        super().__init__(index, num_results=num_results, exact=exact, search=search, hnsw_ef=hnsw_ef, **shared)
        self.normalise = normalise


class QdrantDocVNRetriever(QdrantRetriever):
    """Selects candidates by the VIRTUAL_DOCUMENT and ranks them by exact MaxSim over all rows.

    ``index.doc_vn()`` constructs one.

    Example::

        graphs >> model.query_encoder() >> index.doc_vn(candidates=5000)

    Args:
        index: the index.
        candidates: documents of the first stage for each query, which ``exact``, ``search`` and ``hnsw_ef`` are about;
            the second is always exact.
        num_results: and the others, as for :class:`QdrantRetriever`.
        normalise: divide scores by the query's number of rows (eq. 3.7).
    """

    label = "Qdrant doc-VN"

    def __init__(
        self,
        index: SearchableIndex,
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
    ) -> None:
        shared: dict[str, Any] = {"verbose": verbose, "batch_size": batch_size, "device": device}
        super().__init__(index, num_results=num_results, exact=exact, search=search, hnsw_ef=hnsw_ef, **shared)
        self.candidates, self.normalise = candidates, normalise

    def find(self, queries: QueryBatch, snapshot: QdrantSnapshot) -> list[Hits]:
        """Find the best documents of each query among its candidates."""
        found = search(snapshot, queries, self.candidates, "doc", self._search, self.hnsw_ef)
        return [rank(snapshot, queries.one(i), np.sort(of.numbers), self.num_results) for i, of in enumerate(found)]


class QdrantIndexer(ArtifactIndexer):
    """Sends entries as points; readers see them in one step at the end."""

    def __init__(
        self,
        index: Any,
        mode: Mode = "create",
        *,
        options: CollectionOptions | None = None,
        model: str | None = None,
        resume: bool = False,
        sources: Mapping[str, Any] | None = None,
        verbose: bool = False,
        total: int | None = None,
    ) -> None:
        super().__init__(index, mode, model=model, resume=resume, sources=sources, verbose=verbose, total=total)
        self.options = options or CollectionOptions()
        self._journal: Journal | None = None

    def write(self, posts: Iterator[Post], model: str | None) -> None:
        """Upload the entries of documents."""
        entries = chain.from_iterable(post.entries for post in posts)
        journal, self._journal = self._journal or (self._new_journal() if self.resume else None), None
        upload(self._index.collection, self.mode, entries, self.options, model=model, journal=journal)

    def _new_journal(self) -> Journal:
        return Journal(self._index.collection, self.mode, self.fingerprint())


class QdrantDocumentIndexer(QdrantIndexer, DocumentIndexer):
    """Stores ``{docno, doc_embs, (formula_ids)}``: each document with its vectors ``doc`` and ``all``.

    The options are those of :class:`QdrantIndexer`.
    """

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int = 100) -> Iterator[Mapping[str, Any]]:
        """Leave out of a corpus what an interrupted call has stored, so that it is not encoded again."""
        if not self.resume:
            yield from stream
            return
        self._journal = self._new_journal()
        yield from self._journal.pending(stream, batch_size)


class QdrantFormulaIndexer(QdrantIndexer, FormulaIndexer):
    """Stores ``{docno, doc_embs, formula_ids}``: each formula with its own vector.

    Args:
        index: the index.
        mode: and the others, as for :class:`QdrantIndexer`.
        visual_ids: formula id to visual id; others get the empty string.
    """

    def __init__(
        self,
        index: Any,
        mode: Mode = "create",
        *,
        visual_ids: Mapping[str, str] | None = None,
        options: CollectionOptions | None = None,
        model: str | None = None,
        resume: bool = False,
        sources: Mapping[str, Any] | None = None,
        verbose: bool = False,
        total: int | None = None,
    ) -> None:
        shared: dict[str, Any] = {"resume": resume, "sources": sources, "verbose": verbose, "total": total}
        super().__init__(index, mode, options=options, model=model, **shared)
        self.visual_ids = visual_ids
        self._posts = self._formulas = 0

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int = 100) -> Iterator[Mapping[str, Any]]:
        """Return the whole corpus: which posts are stored completely is not known from their formulas."""
        return iter(stream)
