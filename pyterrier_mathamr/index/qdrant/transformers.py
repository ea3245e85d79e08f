"""The retrievers over a Qdrant collection and the indexers that fill it (MathAMR+, section 3.5.2).

Their columns are those of the transformers over a folder, and exact search returns the rankings and scores of
``MathAMRIndex``; see :mod:`.search` for why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.index.building.entries import Post
from pyterrier_mathamr.index.building.indexers import ArtifactIndexer, DocumentIndexer, FormulaIndexer
from pyterrier_mathamr.index.protocols import Field, SearchedIndex
from pyterrier_mathamr.index.search.queries import formula_batch, query_batch
from pyterrier_mathamr.index.search.ranking import Hits, rank
from pyterrier_mathamr.index.transformers import IndexRetriever, Search, check_count
from pyterrier_mathamr.store import Mode

from .collection import CollectionOptions
from .search import search
from .snapshot import QdrantSnapshot
from .upload import stored_ids, upload


class QdrantRetriever(IndexRetriever):
    """Ranks documents by one of the collection's vectors; subclasses say by which.

    Args:
        index: the index.
        num_results: documents for each query.
        search: ``exact``, or ``approximate`` by Qdrant's HNSW.
        hnsw_ef: how broadly the graph is walked in approximate search; the paper's is 128.
        normalise: divide scores by the query's number of rows (eq. 3.7).
        verbose: show a progress bar.
        batch_size: queries taken at once.
        device: ``None`` or ``cpu``.
    """

    field: ClassVar[Field]
    _search: Search
    hnsw_ef: int
    normalise: bool

    def __init__(
        self,
        index: SearchedIndex,
        *,
        num_results: int = 1000,
        search: Search = "exact",
        hnsw_ef: int = 128,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        check_count("hnsw_ef", hnsw_ef)
        options = {"num_results": num_results, "search": search, "hnsw_ef": hnsw_ef, "normalise": normalise}
        super().__init__(index, **options, verbose=verbose, batch_size=batch_size, device=device)

    def find_hits(self, queries: pd.DataFrame, snapshot: QdrantSnapshot) -> list[Hits]:
        """The best documents of each distinct query."""
        batch = query_batch(queries, snapshot, normalise=self.normalise)
        qids = list(dict.fromkeys(queries["qid"]))
        return search(snapshot, batch, qids, self.num_results, self.field, self._search, self.hnsw_ef)


class QdrantSingleVectorRetriever(QdrantRetriever):
    """Ranks documents by the product of their VIRTUAL_DOCUMENT with the query's, its last row.

    ``index.single_vector()`` makes one::

        graphs >> model.query_encoder() >> index.single_vector(num_results=1000)
    """

    label = "Qdrant single"
    field = "doc"


class QdrantColBERTRetriever(QdrantRetriever):
    """Ranks documents by MaxSim, S(Q, D) = Σᵢ maxⱼ qᵢ · dⱼ (eq. 3.4), by Qdrant's multivector search.

    ``index.colbert()`` makes one, and so does ``index.retriever()``::

        graphs >> model.query_encoder() >> index.colbert(num_results=1000)
    """

    label = "Qdrant ColBERT"
    field = "all"


class QdrantDocVNRetriever(QdrantRetriever):
    """Takes candidates by the VIRTUAL_DOCUMENT and ranks them by exact MaxSim over all rows.

    ``index.doc_vn()`` makes one::

        graphs >> model.query_encoder() >> index.doc_vn(candidates=5000)

    Args:
        index: the index.
        candidates: documents of the first stage for each query.
        num_results: documents for each query.
        search: how the first stage searches; the second is always exact.
        hnsw_ef: how broadly the graph is walked in approximate search.
        normalise: divide scores by the query's number of rows (eq. 3.7).
        verbose: show a progress bar.
        batch_size: queries taken at once.
        device: ``None`` or ``cpu``.
    """

    label = "Qdrant doc-VN"
    field = "doc"
    candidates: int

    def __init__(
        self,
        index: SearchedIndex,
        *,
        candidates: int = 5000,
        num_results: int = 1000,
        search: Search = "exact",
        hnsw_ef: int = 128,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        check_count("candidates", candidates)
        self.candidates = candidates
        options = {"num_results": num_results, "search": search, "hnsw_ef": hnsw_ef, "normalise": normalise}
        super().__init__(index, **options, verbose=verbose, batch_size=batch_size, device=device)  # type: ignore[arg-type]

    def find_hits(self, queries: pd.DataFrame, snapshot: QdrantSnapshot) -> list[Hits]:
        """The best documents of each distinct query among its candidates."""
        batch = query_batch(queries, snapshot, normalise=self.normalise)
        qids = list(dict.fromkeys(queries["qid"]))
        found = search(snapshot, batch, qids, self.candidates, "doc", self._search, self.hnsw_ef)
        return [rank(snapshot, batch.one(i), np.sort(of.numbers), self.num_results) for i, of in enumerate(found)]


class QdrantFormulaRetriever(QdrantRetriever):
    """Ranks formulas by the similarity of their VIRTUAL_FORMULA with that of the query's formula (section 3.5.2).

    ``formula_index.retriever()`` makes one::

        graphs >> model.query_encoder() >> formula_index.retriever(num_results=1000)
    """

    label = "Qdrant formulas"
    field = "doc"
    needs = ("query_embs", "query_formula_ids", "query_formula_id")
    gives = ("docno", "post_id", "visual_id")

    def find_hits(self, queries: pd.DataFrame, snapshot: QdrantSnapshot) -> list[Hits]:
        """The best formulas of each distinct query."""
        batch, qids = formula_batch(queries, snapshot), list(dict.fromkeys(queries["qid"]))
        return search(snapshot, batch, qids, self.num_results, "doc", self._search, self.hnsw_ef)


class QdrantIndexer(ArtifactIndexer):
    """What the two indexers share: how a collection is created, and that points are sent to it.

    Args:
        index: the index.
        mode: ``create`` refuses a collection that is there, ``overwrite`` replaces it, ``append`` adds to it.
        options: how a new collection is created.
        others: as for :class:`~..building.indexers.ArtifactIndexer`; ``dtype`` is a folder's alone.

    Raises:
        ConfigError: ``dtype`` is given: a collection stores float32, and a smaller code by ``options``.
    """

    def __init__(
        self, index: Any, mode: Mode = "create", *, options: CollectionOptions | None = None, **others: Any
    ) -> None:
        super().__init__(index, mode, **others)
        if self.dtype is not None:
            raise ConfigError(
                "dtype",
                self.dtype,
                "None: a collection stores float32, and codes beside them by CollectionOptions(quantise=True)",
            )
        self.others = others
        self.options = options or CollectionOptions()

    def write(self, posts: Iterator[Post], model: str | None) -> None:
        """Send entries as points; readers see them in one step at the end."""
        entries = chain.from_iterable(post.entries for post in posts)
        upload(self._index.collection, self.mode, entries, self.options, model=model, resume=self.resume)


class QdrantDocumentIndexer(QdrantIndexer, DocumentIndexer):
    """Stores ``{docno, doc_embs, (formula_ids)}``: each document with its vectors ``doc`` and ``all``."""

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int = 100) -> Iterator[Mapping[str, Any]]:
        """Leave out of a corpus whole batches that a call that died has stored already.

        Args:
            stream: dictionaries with ``docno``.
            batch_size: as for :meth:`~..building.indexers.ArtifactIndexer.pending`.
        """
        records = iter(stream)
        while some := list(islice(records, batch_size)):
            docnos = [str(record["docno"]) for record in some]
            done = stored_ids(self._index.collection, docnos, self.mode) if self.resume else ()
            if not all(docno in done for docno in docnos):
                yield from some


class QdrantFormulaIndexer(QdrantIndexer, FormulaIndexer):
    """Stores ``{docno, doc_embs, formula_ids}``: each formula that has an id with its own vector."""

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int = 100) -> Iterator[Mapping[str, Any]]:
        """All of the corpus: which posts are whole is not known from their formulas."""
        return iter(stream)
