"""The transformers over an index: the retrievers of MathAMR+ (section 3.5.2), the scorer and the loaders.

A query goes one way through a retriever, each step one function::

    transform   read      frame → QueryBatch                  search.queries
                select    → candidates of each query          search.exact, search.approximate
                rank      → exact scores, best k              search.ranking
                ranking   → frame with docno, score, rank

All retrievers and the scorer take ``query_embs`` (float32 ``[q, d]``). With ``query_weights`` (a number for each row)
or ``query_document_weight`` (a number a), MaxSim is S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc. A query without
rows finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import distinct_queries, empty_output, with_objects
from pyterrier_mathamr._common.parameters import COUNT, Rule, one_of
from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr._common.transformers import Retriever, Transformer

from .building.entries import TEXTS, stored_formula_ids
from .protocols import ExactScores, Field, Numbers, SearchableIndex, SearchableSnapshot
from .search.approximate import document_candidates, token_candidates
from .search.exact import select
from .search.queries import QueryBatch, formula_batch, query_batch
from .search.ranking import NO_HITS, Hits, exact_scores, rank

if TYPE_CHECKING:
    from .snapshot import Snapshot

Search = Literal["exact", "approximate"]
Vectors = Literal["all", "document"]
"""What a scorer compares: all rows by MaxSim, or the two VIRTUAL_DOCUMENTs."""

P = ParamSpec("P")
T = TypeVar("T")

_SEARCHES = {None: None, "exact": "exact", "approximate": "approximate", "hnsw": "approximate"}


def method(kind: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return the method of an index that constructs a transformer over it, with the options and docstring of its class.

    Args:
        kind: a class whose constructor takes the index first.
    """

    def construct(index: Any, /, *args: P.args, **options: P.kwargs) -> T:
        return kind(index, *args, **options)

    construct.__doc__, construct.__wrapped__ = kind.__doc__, kind  # type: ignore[attr-defined]
    return construct


def search_of(exact: bool | None, search: str | None) -> Search:
    """Read the two options for exact or approximate search.

    Args:
        exact: ``True`` (as ``search='exact'``), ``False`` (as ``search='approximate'``) or ``None``.
        search: ``exact``, ``approximate``, its other name ``hnsw``, or ``None``.

    Returns:
        The search; ``exact`` where neither is given.

    Raises:
        ConfigError: ``search`` is something else, or the two contradict.
    """
    if search not in _SEARCHES:
        raise ConfigError("search", search, "'exact' or 'approximate'")
    asked: Search | None = _SEARCHES[search]  # type: ignore[assignment]
    if exact is not None:
        from_exact: Search = "exact" if exact else "approximate"
        if asked not in (None, from_exact):
            raise ConfigError("search", search, f"the same as exact={exact}, or only one of the two")
        return from_exact
    return asked or "exact"


def check_device(device: object) -> str | None:
    """Read the option ``device``.

    Args:
        device: ``None`` or ``cpu`` for the CPU; ``cuda`` or ``cuda:1`` for a GPU.

    Returns:
        The GPU, or ``None`` for the CPU.

    Raises:
        ConfigError: it is something else, or torch finds no such GPU.
    """
    if device in (None, "cpu"):
        return None
    if not isinstance(device, str) or not re.fullmatch(r"cuda(:\d+)?", device):
        raise ConfigError("device", device, "None, 'cpu' or 'cuda'")
    import torch

    found = torch.cuda.device_count()
    if int(device.partition(":")[2] or 0) >= found:
        raise ConfigError("device", device, f"None or 'cpu': torch finds {found} CUDA devices here")
    return device


class IndexTransformer(Transformer):
    """A transformer over an index, which is opened when the first row comes; options are checked whenever they are set.

    Args:
        index: the index.
    """

    checks: ClassVar[Mapping[str, Rule]] = {
        "num_results": COUNT,
        "batch_size": COUNT,
        "candidates": COUNT,
        "hits": COUNT,
        "hnsw_ef": COUNT,
        "search": one_of("exact", "approximate"),
        "vectors": one_of("all", "document"),
    }

    def __init__(self, index: SearchableIndex) -> None:
        super().__init__()
        self.index = index

    def __setattr__(self, name: str, value: object) -> None:
        if name == "exact" and value is not None:
            name, value = "search", "exact" if value else "approximate"
        if name == "search":  # an attribute of that name would hide the method of every transformer
            name, value = "_search", _SEARCHES.get(value, value)  # type: ignore[call-overload]
        if name == "device":
            check_device(value)
        super().__setattr__(name, value)

    @property
    def exact(self) -> bool:
        """Whether the search is exact; setting it sets the option ``search``."""
        return bool(vars(self).get("_search") == "exact")

    def subtransformers(self) -> dict[str, pt.Transformer]:
        """None: the index is a store, not a stage."""
        return {}


class IndexRetriever(IndexTransformer, Retriever):
    """Queries in, a ranking out; subclasses select candidates and say by which vectors these are ranked.

    The ranking keeps the columns of the queries and is ordered by query (in order of appearance), then by score
    descending, then by docno ascending; ``rank`` starts at 0 and ``score`` has the precision of float32.

    Args:
        index: the index.
        num_results: documents for each query at most.
        exact: ``True`` for exact search (the default), ``False`` for approximate search by HNSW.
        search: the same by name: ``exact`` or ``approximate``.
        verbose: show a progress bar.
        batch_size: queries that share passes over the data.
        device: ``cuda`` for a GPU that holds and scans the int8 codes, which only ``colbert`` uses; default the CPU.
    """

    needs: ClassVar[tuple[str, ...]] = ("query_embs",)
    gives: ClassVar[tuple[str, ...]] = ("docno",)
    """The texts of an entry that become columns."""
    field: ClassVar[Field] = "all"
    """The vectors that candidates are ranked by."""
    _search: Search

    def __init__(
        self,
        index: SearchableIndex,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        super().__init__(index)
        self.num_results, self._search, self._exact = num_results, search_of(exact, search), None
        self.verbose, self.batch_size, self.device = verbose, batch_size, device

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rank documents for each distinct query.

        Args:
            inp: ``qid`` and the columns of :attr:`needs`.

        Returns:
            The columns of the queries, then ``docno`` (and the other columns of :attr:`gives`), ``score``, ``rank``.
        """
        pt.validate.query_frame(inp, extra_columns=list(self.needs), context=self)
        columns = [*self.gives, "score", "rank"]
        queries = distinct_queries(inp, columns)
        if queries.empty:
            return empty_output(queries, columns)
        snapshot = self.index.snapshot()
        batches = self.read(queries, snapshot).of_size(self.batch_size)
        hits: dict[str, Hits] = {}
        for batch in progress(batches, self.label, "batch", verbose=self.verbose, total=len(batches)):
            hits.update(zip(batch.qids, self.find(batch, snapshot), strict=True))
        return ranking(queries, hits, snapshot, self.gives)

    def read(self, queries: pd.DataFrame, snapshot: SearchableSnapshot) -> QueryBatch:
        """Read the vectors of all distinct queries."""
        return query_batch(queries, snapshot, normalise=getattr(self, "normalise", False))

    def find(self, queries: QueryBatch, snapshot: Any) -> list[Hits]:
        """Find the best documents of each query."""
        ones = map(queries.one, range(len(queries)))
        selected = zip(ones, self.select(queries, snapshot), strict=True)
        return [rank(snapshot, query, numbers, self.num_results, self.field) for query, numbers in selected]

    def select(self, queries: QueryBatch, snapshot: Snapshot) -> list[Numbers]:
        """Select the candidates of each query: int64 numbers, ascending."""
        raise NotImplementedError

    def _nearest(self, queries: QueryBatch, snapshot: Snapshot, k: int) -> list[Numbers]:
        """Select the documents (or formulas) whose own vector is nearest to each query's last row."""
        if self._search == "approximate":
            return document_candidates(snapshot, queries, k)
        return select(snapshot, queries, k, "doc")


class SingleVectorRetriever(IndexRetriever):
    """Ranks documents by the product of their VIRTUAL_DOCUMENT with the query's, its last row.

    ``index.single_vector()`` constructs one; the options are those of :class:`IndexRetriever`.

    Example::

        graphs >> model.query_encoder() >> index.single_vector(num_results=1000)
    """

    label = "MathAMR single"
    field = "doc"

    def select(self, queries: QueryBatch, snapshot: Snapshot) -> list[Numbers]:
        """Select by the product of the document vectors."""
        return self._nearest(queries, snapshot, self.num_results)


class FormulaRetriever(SingleVectorRetriever):
    """Ranks formulas by the similarity of their VIRTUAL_FORMULA with that of the query's formula (section 3.5.2).

    The query's vector is the row of ``query_embs`` at the place of ``query_formula_id`` in ``query_formula_ids``.
    ``formula_index.retriever()`` constructs one; the options are those of :class:`IndexRetriever`.

    Example::

        graphs >> model.query_encoder() >> formula_index.retriever(num_results=1000)
    """

    label = "MathAMR formulas"
    needs = ("query_embs", "query_formula_ids", "query_formula_id")
    gives = ("docno", "post_id", "visual_id")

    def read(self, queries: pd.DataFrame, snapshot: SearchableSnapshot) -> QueryBatch:
        """Read the vector of the formula that each distinct query asks for."""
        return formula_batch(queries, snapshot)


class DocVNRetriever(IndexRetriever):
    """Selects candidates by the VIRTUAL_DOCUMENT and ranks them by exact MaxSim over all rows.

    ``index.doc_vn()`` constructs one.

    Example::

        graphs >> model.query_encoder() >> index.doc_vn(candidates=5000)

    Args:
        index: the index.
        candidates: documents of the first stage for each query, which ``exact`` and ``search`` are about; the second
            is always exact.
        num_results: and the others, as for :class:`IndexRetriever`.
        normalise: divide scores by the query's number of rows (eq. 3.7).
    """

    label = "MathAMR doc-VN"

    def __init__(
        self,
        index: SearchableIndex,
        candidates: int = 5000,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        shared: dict[str, Any] = {"verbose": verbose, "batch_size": batch_size, "device": device}
        super().__init__(index, num_results=num_results, exact=exact, search=search, **shared)
        self.candidates, self.normalise = candidates, normalise

    def select(self, queries: QueryBatch, snapshot: Snapshot) -> list[Numbers]:
        """Select the best by the product of the document vectors."""
        nearest = self._nearest(queries, snapshot, self.candidates)
        if self._search == "exact":  # those that are proven to contain the best; ranked, the best alone
            of_query = (rank(snapshot, queries.one(i), of, self.candidates, "doc") for i, of in enumerate(nearest))
            nearest = [np.sort(hits.numbers) for hits in of_query]
        return nearest


class ColBERTRetriever(IndexRetriever):
    """Ranks documents by MaxSim, S(Q, D) = Σᵢ maxⱼ qᵢ · dⱼ (eq. 3.4).

    ``index.colbert()`` constructs one, and so does ``index.retriever()``.

    Example::

        graphs >> model.query_encoder() >> index.colbert(num_results=1000)

    Args:
        index: the index.
        num_results: and the others, as for :class:`IndexRetriever`. Exact search scans every document; approximate
            search scores the documents that own one of the nearest rows.
        hits: the nearest rows found for each row of the query in approximate search.
        normalise: divide scores by the query's number of rows (eq. 3.7).
    """

    label = "MathAMR ColBERT"

    def __init__(
        self,
        index: SearchableIndex,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        hits: int = 128,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        shared: dict[str, Any] = {"verbose": verbose, "batch_size": batch_size, "device": device}
        super().__init__(index, num_results=num_results, exact=exact, search=search, **shared)
        self.hits, self.normalise = hits, normalise

    def select(self, queries: QueryBatch, snapshot: Snapshot) -> list[Numbers]:
        """Select by the scan of all documents, or by HNSW over all rows."""
        if self._search == "approximate":
            return token_candidates(snapshot, queries, self.hits)
        return select(snapshot, queries, self.num_results, "all", check_device(self.device))


def ranking(
    queries: pd.DataFrame, hits: Mapping[str, Hits], snapshot: SearchableSnapshot, texts: Sequence[str]
) -> pd.DataFrame:
    """Lay the hits of all queries out as one frame.

    Args:
        queries: one row for each query.
        hits: of each query by ``qid``; those that are absent found nothing.
        snapshot: the index that the numbers belong to.
        texts: the texts of each entry that become columns, ``docno`` first.
    """
    found = [hits.get(qid, NO_HITS) for qid in queries["qid"]]
    lengths = [len(of.numbers) for of in found]
    repeated = queries.iloc[np.repeat(np.arange(len(queries)), lengths)].reset_index(drop=True)
    if not len(repeated):
        return empty_output(repeated, [*texts, "score", "rank"])
    numbers = np.concatenate([of.numbers for of in found])
    result: pd.DataFrame = repeated.assign(
        **{name: snapshot.texts(name, numbers) for name in texts},
        score=np.concatenate([of.scores for of in found]),
        rank=np.concatenate([np.arange(length, dtype=np.int64) for length in lengths]),
    )
    return result


class MaxSimScorer(IndexTransformer):
    """Scores each document of a ranking by exact MaxSim (eq. 3.4) with the vectors of the index.

    ``index.scorer()`` constructs one.

    Example::

        bm25 >> graphs >> model.query_encoder() >> index.scorer()

    The rows come back by query (in order of appearance), score descending, docno ascending, with all their columns; a
    docno that occurs twice for a query is scored twice. The documents of a query without rows score 0.

    Args:
        index: the index.
        num_results: documents kept for each query; ``None`` keeps all.
        vectors: ``all``, or ``document`` for the product of the two VIRTUAL_DOCUMENTs alone.
        exact: ``True`` or ``None``.
        search: ``exact`` or ``None``; a scorer knows no approximation.
        normalise: divide scores by the query's number of rows (eq. 3.7).
        verbose: show a progress bar.
        batch_size: no effect, like ``device``: queries are scored one by one on the CPU. Both are there so that one set
            of options serves retrievers and scorers.
        device: ``None``, ``cpu`` or ``cuda``.
    """

    label = "MathAMR scorer"
    checks: ClassVar[Mapping[str, Rule]] = {
        **IndexTransformer.checks,
        "num_results": COUNT.or_none(),
        "search": one_of("exact"),
    }

    def __init__(
        self,
        index: SearchableIndex,
        *,
        num_results: int | None = None,
        vectors: Vectors = "all",
        exact: bool | None = None,
        search: str | None = None,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        super().__init__(index)
        self.num_results, self.vectors, self.normalise = num_results, vectors, normalise
        self._search, self._exact = search_of(exact, search), None
        self.verbose, self.batch_size, self.device = verbose, batch_size, device

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking.

        Args:
            inp: ``qid``, ``docno`` and ``query_embs``; cells of ``query_embs`` may be empty on some rows of a query.

        Returns:
            The rows of ``inp``, ordered, with ``score`` and ``rank``.

        Raises:
            UnknownIdError: the index does not contain some of the documents; it names them.
        """
        pt.validate.result_frame(inp, extra_columns=["query_embs"], context=self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        snapshot = self.index.snapshot()
        queries, qids = pd.factorize(inp["qid"])
        docnos, distinct = pd.factorize(inp["docno"], use_na_sentinel=False)
        names = [str(docno) for docno in distinct]
        by_name = np.empty(len(names), dtype=np.int64)
        by_name[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        scores = self._scores(inp, snapshot.find(names)[docnos], snapshot)
        order = np.lexsort((by_name[docnos], -scores, queries))
        starts = np.searchsorted(queries[order], np.arange(len(qids)))
        ranks = np.arange(len(order), dtype=np.int64) - starts[queries[order]]
        result = inp.iloc[order].assign(score=scores[order], rank=ranks)
        if self.num_results is not None:
            result = result[result["rank"] < self.num_results]
        ordered: pd.DataFrame = result.reset_index(drop=True)
        return ordered

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Return the scorer that keeps ``k`` documents, itself where it keeps no more, ``None`` for a ``k`` below 1."""
        if self.num_results is not None and self.num_results <= k:
            return self
        return pt.inspect.transformer_apply_attributes(self, num_results=k) if k >= 1 else None

    def _scores(self, inp: pd.DataFrame, numbers: Numbers, snapshot: SearchableSnapshot) -> ExactScores:
        """Score each row of a ranking, whose documents have the given numbers, int64 ``[r]``."""
        batch = query_batch(inp, snapshot, normalise=self.normalise)
        field: Field = "doc" if self.vectors == "document" else "all"
        scores = np.zeros(len(inp))
        rows_of = inp.groupby("qid", sort=False).indices
        for i, qid in enumerate(progress(batch.qids, self.label, "q", verbose=self.verbose, total=len(batch))):
            rows = rows_of[qid]
            distinct, of_row = np.unique(numbers[rows], return_inverse=True)
            scores[rows] = exact_scores(snapshot, batch.one(i), distinct, field)[of_row]
        return scores


class VectorLoader(IndexTransformer):
    """Adds ``doc_embs``, the vectors of each document, float32 ``[n, d]``, from the index.

    ``index.vec_loader()`` constructs one.

    Example::

        bm25 >> index.vec_loader()

    Args:
        index: the index.
    """

    label = "MathAMR vectors"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``doc_embs`` to documents or a ranking, by ``docno``.

        Raises:
            UnknownIdError: the index does not contain some of the documents; it names them.
        """
        pt.validate.columns(inp, includes=["docno"], context=self)
        if inp.empty:
            return empty_output(inp, ["doc_embs"])
        snapshot = self.index.snapshot()
        places, docnos = pd.factorize(inp["docno"], use_na_sentinel=False)
        rows, offsets = snapshot.rows(snapshot.find([str(docno) for docno in docnos]))
        vectors = [rows[start:end] for start, end in pairwise(offsets.tolist())]
        return with_objects(inp, doc_embs=[vectors[place] for place in places])

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Cut first, then load only the remaining documents."""
        return pt.RankCutoff(k) >> self


class TextLoader(IndexTransformer):
    """Adds the texts that an index stores of each document or formula.

    An index of documents stores ``formula_ids``, one of formulas ``post_id`` and ``visual_id``. The posts themselves
    are in the collection; load them with ``dataset.text_loader()``, or their graphs with ``GraphStore.loader()``.
    ``index.text_loader()`` constructs one.

    Example::

        formula_index.text_loader(["visual_id"])

    Args:
        index: the index.
        fields: a field, several, or ``*`` for all that are stored.

    Raises:
        ConfigError: a field is not stored.
    """

    label = "MathAMR texts"

    def __init__(self, index: Any, fields: str | Sequence[str] = "*") -> None:
        super().__init__(index)
        stored = TEXTS[index.LAYOUT][1:]
        self.fields = stored if fields == "*" else (fields,) if isinstance(fields, str) else tuple(fields)
        if unknown := [name for name in self.fields if name not in stored]:
            allowed = f"{' or '.join(map(repr, stored))}; a collection loads its posts by dataset.text_loader()"
            raise ConfigError("fields", unknown[0], allowed)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the fields to documents or a ranking, by ``docno``.

        Raises:
            UnknownIdError: the index does not contain some of the documents; it names them.
        """
        pt.validate.columns(inp, includes=["docno"], context=self)
        if inp.empty:
            return empty_output(inp, self.fields)
        snapshot = self.index.snapshot()
        numbers = snapshot.find([str(docno) for docno in inp["docno"]])
        texts = {name: snapshot.texts(name, numbers) for name in self.fields}
        if "formula_ids" in texts:
            ids = [stored_formula_ids(text, snapshot.path) for text in texts.pop("formula_ids")]
            inp = with_objects(inp, formula_ids=ids)
        result: pd.DataFrame = inp.assign(**texts)
        return result

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Cut first, then load only the remaining documents."""
        return pt.RankCutoff(k) >> self
