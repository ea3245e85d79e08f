"""The transformers over an index: the retrievers of section 3.5.2 of MathAMR+, the exact scorer and the vector loader.

Retrievers and scorers take ``qid`` and ``query_embs`` (float32 ``[q, d]``) and return the query's columns with
``docno``, ``score`` and ``rank``. With ``query_weights`` (a number for each row) or ``query_document_weight`` (a number
a), MaxSim is S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import empty_output, first_values, with_objects
from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr._common.transformers import Transformer

from .protocols import Field, Numbers, Searched, SearchedIndex
from .search.approximate import document_candidates, token_candidates
from .search.exact import search_exact
from .search.maxsim import QueryBatch
from .search.queries import formula_batch, query_batch
from .search.ranking import Hits, rank, score
from .snapshot import Snapshot

if TYPE_CHECKING:
    from .formula import MathAMRFormulaIndex
    from .multi_vector import MathAMRIndex

Search = Literal["exact", "approximate"]

_HIDDEN = {"search": "_search"}  # every transformer has a method of that name, which an attribute would hide


def search_of(exact: bool | None, search: str | None) -> Search:
    """Read the two ways to ask for exact or approximate search.

    Args:
        exact: ``True`` (as ``search='exact'``), ``False`` (as ``search='approximate'``) or ``None``.
        search: ``exact``, ``approximate``, its other name ``hnsw``, or ``None``.

    Returns:
        What is asked for; ``exact`` where neither is given.

    Raises:
        ConfigError: ``search`` is something else, or the two contradict.
    """
    given = {None: None, "exact": "exact", "approximate": "approximate", "hnsw": "approximate"}
    if search not in given:
        raise ConfigError("search", search, "'exact' or 'approximate'")
    asked: Search | None = given[search]  # type: ignore[assignment]
    if exact is not None:
        from_exact: Search = "exact" if exact else "approximate"
        if asked not in (None, from_exact):
            raise ConfigError("search", search, f"the same as exact={exact}, or give one of the two")
        return from_exact
    return asked or "exact"


def check_count(option: str, value: object) -> None:
    """Refuse a count that is not a whole number of at least 1.

    Raises:
        ConfigError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ConfigError(option, value, "a whole number of at least 1")


class IndexTransformer(Transformer):
    """A transformer over an index, with options that are checked once.

    Args:
        index: the index; it is opened when the first row comes.
        options: the constructor's keyword options, in its order; each becomes an attribute, ``search`` as ``_search``.
    """

    def __init__(self, index: SearchedIndex, **options: Any) -> None:
        super().__init__()
        self.index = index
        for name, value in options.items():
            setattr(self, _HIDDEN.get(name, name), value)
        for count in ("num_results", "batch_size", "candidates", "hits"):
            if options.get(count) is not None:
                check_count(count, options[count])
        self._card = check_device(options.get("device"))

    def subtransformers(self) -> dict[str, pt.Transformer]:
        """None: the index is a store, not a stage."""
        return {}

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """The same transformer cut at rank ``k``; itself where it already returns no more."""
        current = getattr(self, "num_results", None)
        if current is not None and current <= k:
            return self
        if k < 1:
            return None
        return pt.inspect.transformer_apply_attributes(self, num_results=k)


class IndexRetriever(IndexTransformer):
    """Queries in, a ranking out; subclasses say how some queries are searched.

    The ranking keeps the query's columns, drops the document's, and is ordered by query (as they come), then by score
    falling, then by docno rising; ``rank`` counts from 0 and ``score`` has the precision of float32.
    """

    needs: ClassVar[tuple[str, ...]] = ("query_embs",)
    gives: ClassVar[tuple[str, ...]] = ("docno",)
    """The texts of an entry that become columns."""

    num_results: int
    batch_size: int
    verbose: bool

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rank documents for each distinct query.

        Args:
            inp: ``qid`` and what :attr:`needs` names.

        Returns:
            The query columns, then ``docno`` (and what else :attr:`gives` names), ``score`` and ``rank``.
        """
        pt.validate.query_frame(inp, extra_columns=list(self.needs), context=self)
        kept = set(pt.model.query_columns(inp))
        queries = inp[[column for column in inp.columns if column in kept]]
        if queries.empty:
            return empty_output(queries, [*self.gives, "score", "rank"])
        snapshot = self.index.snapshot()
        first = queries.drop_duplicates(subset="qid").reset_index(drop=True)
        gaps = {name: first_values(queries, name) for name in queries.columns if queries[name].isna().any()}
        filled = {name: [values.get(qid) for qid in first["qid"]] for name, values in gaps.items()}
        hits = list(self._in_batches(queries, snapshot))
        return ranking(with_objects(first, **filled), hits, snapshot, self.gives)

    def _in_batches(self, queries: pd.DataFrame, snapshot: Searched) -> Iterator[Hits]:
        qids = list(dict.fromkeys(queries["qid"]))
        parts: Sequence[list[str]] = [qids[at : at + self.batch_size] for at in range(0, len(qids), self.batch_size)]
        for part in progress(parts, self.label, "batch", verbose=self.verbose, total=len(parts)):
            some = queries if len(parts) == 1 else queries[queries["qid"].isin(part)]
            yield from self.find_hits(some, snapshot)

    def find_hits(self, queries: pd.DataFrame, snapshot: Any) -> list[Hits]:
        """The best documents of each distinct query of a frame, in order of appearance."""
        raise NotImplementedError


def ranking(queries: pd.DataFrame, hits: Sequence[Hits], snapshot: Searched, texts: Sequence[str]) -> pd.DataFrame:
    """Lay the hits of all queries out as one frame.

    Args:
        queries: one row for each query.
        hits: one for each row of ``queries``.
        snapshot: where the numbers were found.
        texts: the texts of each entry that become columns, ``docno`` first.
    """
    counts = [len(found.numbers) for found in hits]
    frame = queries.loc[np.repeat(np.arange(len(queries)), counts)].reset_index(drop=True)
    numbers = np.concatenate([found.numbers for found in hits])
    columns: dict[str, Any] = {name: snapshot.texts(name, numbers) for name in texts}
    columns["score"] = np.concatenate([found.scores for found in hits]).astype(np.float64)
    columns["rank"] = np.concatenate([np.arange(count, dtype=np.int64) for count in counts])
    result: pd.DataFrame = frame.drop(columns=[name for name in columns if name in frame]).assign(**columns)
    return result


def check_device(device: object) -> str | None:
    """Read the option ``device``.

    Args:
        device: ``None`` or ``cpu`` for the processor; ``cuda`` or ``cuda:1`` for a card.

    Returns:
        The card, or ``None`` for the processor.

    Raises:
        ConfigError: it is something else, or torch finds no such card.
    """
    if device in (None, "cpu"):
        return None
    if not isinstance(device, str) or not re.fullmatch(r"cuda(:\d+)?", device):
        raise ConfigError("device", device, "None, 'cpu' or 'cuda'")
    import torch

    cards = torch.cuda.device_count()
    if int(device.partition(":")[2] or 0) >= cards:
        raise ConfigError("device", device, f"None or 'cpu': torch finds {cards} CUDA devices here")
    return device


NO_HITS = Hits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))


class SingleVectorRetriever(IndexRetriever):
    """Ranks documents by the product of their VIRTUAL_DOCUMENT with the query's, its last row.

    ``index.single_vector()`` makes one::

        graphs >> model.query_encoder() >> index.single_vector(num_results=1000)

    Args:
        index: the index.
        num_results: documents for each query.
        search: ``exact``, or ``approximate`` by HNSW.
        verbose: show a progress bar.
        batch_size: queries scored in one pass over the data.
        device: accepted as everywhere; the processor computes this.
    """

    label = "MathAMR single"
    _search: Search

    def __init__(
        self,
        index: MathAMRIndex,
        *,
        num_results: int = 1000,
        search: Search = "exact",
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        options = {"num_results": num_results, "search": search, "verbose": verbose}
        super().__init__(index, **options, batch_size=batch_size, device=device)

    def find_hits(self, queries: pd.DataFrame, snapshot: Snapshot) -> list[Hits]:
        """The best documents of each distinct query by one vector."""
        return nearest(snapshot, query_batch(queries, snapshot), self.num_results, self._search)


def nearest(snapshot: Snapshot, queries: QueryBatch, k: int, search: Search) -> list[Hits]:
    """The ``k`` entries whose own vector is nearest to each query's last row.

    Args:
        snapshot: the index, of documents or formulas.
        queries: the queries.
        k: how many, at least 1.
        search: ``exact``, or ``approximate`` by HNSW.
    """
    if not len(snapshot):
        return [NO_HITS] * len(queries)
    if search == "exact":
        return search_exact(snapshot, queries, k, "doc")
    queries = queries.last_rows()
    found = document_candidates(snapshot, queries, k)
    return [rank(snapshot, queries.one(i), of, k, "doc") for i, of in enumerate(found)]


class DocVNRetriever(IndexRetriever):
    """Takes candidates by the VIRTUAL_DOCUMENT and ranks them by exact MaxSim over all rows.

    ``index.doc_vn()`` makes one::

        graphs >> model.query_encoder() >> index.doc_vn(candidates=5000)

    Args:
        index: the index.
        candidates: documents of the first stage for each query; never fewer than ``num_results``.
        num_results: documents for each query.
        search: how the first stage searches, ``exact`` or ``approximate`` by HNSW; the second is always exact.
        normalise: divide scores by the query's number of rows (eq. 3.7).
        verbose: show a progress bar.
        batch_size: queries scored in one pass over the data.
        device: accepted as everywhere; the processor computes this.
    """

    label = "MathAMR doc-VN"
    candidates: int
    _search: Search
    normalise: bool

    def __init__(
        self,
        index: MathAMRIndex,
        *,
        candidates: int = 5000,
        num_results: int = 1000,
        search: Search = "exact",
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        options = {"candidates": candidates, "num_results": num_results, "search": search, "normalise": normalise}
        super().__init__(index, **options, verbose=verbose, batch_size=batch_size, device=device)

    def find_hits(self, queries: pd.DataFrame, snapshot: Snapshot) -> list[Hits]:
        """The best documents of each distinct query among its candidates."""
        batch = query_batch(queries, snapshot, normalise=self.normalise)
        if not len(snapshot):
            return [NO_HITS] * len(batch)
        if self._search == "exact":
            found = [hits.numbers for hits in search_exact(snapshot, batch, self.candidates, "doc")]
        else:
            found = document_candidates(snapshot, batch, self.candidates)
        return [rank(snapshot, batch.one(i), np.sort(of), self.num_results) for i, of in enumerate(found)]


class ColBERTRetriever(IndexRetriever):
    """Ranks documents by MaxSim, S(Q, D) = Σᵢ maxⱼ qᵢ · dⱼ (eq. 3.4): all of them, or those that some row finds.

    ``index.colbert()`` makes one, and so does ``index.retriever()``::

        graphs >> model.query_encoder() >> index.colbert(num_results=1000)

    Args:
        index: the index.
        num_results: documents for each query.
        search: ``exact`` scans every document; ``approximate`` scores those that own one of the nearest rows.
        hits: the nearest rows taken for each row of the query in approximate search.
        normalise: divide scores by the query's number of rows (eq. 3.7).
        verbose: show a progress bar.
        batch_size: queries scored in one pass over the data.
        device: ``cuda`` for a card that keeps the bytes and scans them; else the processor.
    """

    label = "MathAMR ColBERT"
    _search: Search
    hits: int
    normalise: bool

    def __init__(
        self,
        index: MathAMRIndex,
        *,
        num_results: int = 1000,
        search: Search = "exact",
        hits: int = 128,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        options = {"num_results": num_results, "search": search, "hits": hits, "normalise": normalise}
        super().__init__(index, **options, verbose=verbose, batch_size=batch_size, device=device)

    def find_hits(self, queries: pd.DataFrame, snapshot: Snapshot) -> list[Hits]:
        """The best documents of each distinct query by MaxSim."""
        batch = query_batch(queries, snapshot, normalise=self.normalise)
        if not len(snapshot):
            return [NO_HITS] * len(batch)
        if self._search == "exact":
            return search_exact(snapshot, batch, self.num_results, "all", self._card)
        found = token_candidates(snapshot, batch, self.hits)
        return [rank(snapshot, batch.one(i), of, self.num_results) for i, of in enumerate(found)]


Vectors = Literal["all", "document"]
"""What a scorer compares: all rows by MaxSim, or the two VIRTUAL_DOCUMENTs."""


class MaxSimScorer(IndexTransformer):
    """Scores each document of a ranking by exact MaxSim (eq. 3.4) with the vectors of the index.

    ``index.scorer()`` makes one::

        bm25 >> graphs >> model.query_encoder() >> index.scorer()

    With ``vectors="document"`` the score is the product of the two VIRTUAL_DOCUMENTs alone.

    The rows come back by query (as they come), score falling, docno rising, with all their columns; a docno that comes
    twice for a query is scored twice.

    Args:
        index: the index.
        num_results: documents kept for each query; ``None`` keeps all.
        vectors: ``all``, or ``document`` for the VIRTUAL_DOCUMENTs.
        search: ``exact``; a scorer has no other way, and the option is there because retrievers have it.
        normalise: divide scores by the query's number of rows (eq. 3.7).
        verbose: show a progress bar.
        batch_size: queries checked at once.
        device: accepted as everywhere; the processor computes this.
    """

    label = "MathAMR scorer"
    num_results: int | None
    vectors: Vectors
    normalise: bool
    verbose: bool

    def __init__(
        self,
        index: SearchedIndex,
        *,
        num_results: int | None = None,
        vectors: Vectors = "all",
        search: Search = "exact",
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        if search != "exact":
            raise ConfigError("search", search, "'exact': a scorer scores the documents it is given")
        if vectors not in get_args(Vectors):
            raise ConfigError("vectors", vectors, "'all' or 'document'")
        options = {"num_results": num_results, "vectors": vectors, "search": search, "normalise": normalise}
        super().__init__(index, **options, verbose=verbose, batch_size=batch_size, device=device)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking.

        Args:
            inp: ``qid``, ``docno`` and ``query_embs``; cells of ``query_embs`` may be empty on some rows of a query.

        Returns:
            The same rows, ordered, with ``score`` and ``rank``.

        Raises:
            UnknownIdError: the index does not hold some of the documents; it names them.
        """
        pt.validate.result_frame(inp, extra_columns=["query_embs"], context=self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        snapshot = self.index.snapshot()
        codes, qids = pd.factorize(inp["qid"])
        documents, docnos = pd.factorize(inp["docno"], use_na_sentinel=False)
        names = [str(docno) for docno in docnos]
        numbers = snapshot.find(names)
        batch = query_batch(inp, snapshot, normalise=self.normalise)
        if self.vectors == "document":
            batch = batch.last_rows()
        scores = self._scores(codes, numbers[documents], batch, snapshot)
        by_name = np.empty(len(names), dtype=np.int64)
        by_name[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        order = np.lexsort((by_name[documents], -scores, codes))
        starts = np.searchsorted(codes[order], np.arange(len(qids)))
        ranks = np.arange(len(order), dtype=np.int64) - starts[codes[order]]
        result = inp.iloc[order].assign(score=scores[order].astype(np.float64), rank=ranks)
        if self.num_results is not None:
            result = result[result["rank"] < self.num_results]
        ordered: pd.DataFrame = result.reset_index(drop=True)
        return ordered

    def _scores(self, codes: Numbers, numbers: Numbers, batch: QueryBatch, snapshot: Searched) -> Any:
        """The score of each row of the ranking: float32."""
        scores = np.empty(len(codes), dtype=np.float32)
        field: Field = "doc" if self.vectors == "document" else "all"
        by_query = np.argsort(codes, kind="stable")
        parts = np.split(by_query, np.cumsum(np.bincount(codes, minlength=len(batch)))[:-1])
        for query, rows in enumerate(progress(parts, self.label, "q", verbose=self.verbose, total=len(parts))):
            distinct, places = np.unique(numbers[rows], return_inverse=True)
            scores[rows] = score(snapshot, batch.one(query), distinct, field)[places]
        return scores


class VectorLoader(IndexTransformer):
    """Adds the vectors of each document from the index.

    ``index.vec_loader()`` makes one::

        bm25 >> index.vec_loader()

    Args:
        index: the index.
        verbose: accepted as everywhere; there is nothing to show.
    """

    label = "MathAMR vectors"

    def __init__(self, index: SearchedIndex, *, verbose: bool = False) -> None:
        super().__init__(index, verbose=verbose)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``doc_embs``.

        Args:
            inp: documents or a ranking, with ``docno``.

        Returns:
            The same rows with ``doc_embs``, float32 ``[n, d]``.

        Raises:
            UnknownIdError: the index does not hold some of the documents; it names them.
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
        """Cut first, then load only what is left."""
        return pt.RankCutoff(k) >> self


class FormulaRetriever(IndexRetriever):
    """Ranks formulas by the similarity of their VIRTUAL_FORMULA with that of the query's formula (section 3.5.2).

    The query's vector is the row of ``query_embs`` whose number ``query_formula_id`` has in ``query_formula_ids``.
    ``formula_index.retriever()`` makes one::

        graphs >> model.query_encoder() >> formula_index.retriever(num_results=1000)

    Args:
        index: the index.
        num_results: formulas for each query.
        search: ``exact``, or ``approximate`` by HNSW.
        verbose: show a progress bar.
        batch_size: queries scored in one pass over the data.
        device: accepted as everywhere; the processor computes this.
    """

    label = "MathAMR formulas"
    needs = ("query_embs", "query_formula_ids", "query_formula_id")
    gives = ("docno", "post_id", "visual_id")
    _search: Search

    def __init__(
        self,
        index: MathAMRFormulaIndex,
        *,
        num_results: int = 1000,
        search: Search = "exact",
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        options = {"num_results": num_results, "search": search, "verbose": verbose}
        super().__init__(index, **options, batch_size=batch_size, device=device)

    def find_hits(self, queries: pd.DataFrame, snapshot: Snapshot) -> list[Hits]:
        """The best formulas of each distinct query."""
        return nearest(snapshot, formula_batch(queries, snapshot), self.num_results, self._search)
