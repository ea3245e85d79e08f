"""The transformers over an index: the retrievers of MathAMR+ (section 3.5.2), the scorer and the loaders.

::

    retrievers   queries → ranking       read, select, score, rank
    scorer       ranking → ranking       exact MaxSim of its documents
    loaders      documents → vectors, or the texts that the index stores

There is one retriever; the snapshot of an index (a folder, parts elsewhere, a Qdrant collection) is its backend, which
selects, scores and looks up documents (:class:`.backend.Backend`). Its strategies are::

    single vector   select by VIRTUAL_DOCUMENT       rank by VIRTUAL_DOCUMENT
    doc-VN          select by VIRTUAL_DOCUMENT       rank by all rows (MaxSim)
    ColBERT         select by all rows               rank by all rows

All retrievers and the scorer need ``query_embs`` (float32 ``[q, d]``). With ``query_weights`` (a number for each row)
or ``query_document_weight`` (a number a), MaxSim is S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc. A query without
rows finds nothing.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import (
    QUERY_ROWS,
    empty_output,
    is_missing,
    ordered_by_score,
    ranking_frame,
    with_objects,
)
from pyterrier_mathamr._common.parameters import COUNT, FLAG, Rule
from pyterrier_mathamr._common.running.resources import return_free_memory
from pyterrier_mathamr._common.transformers import ColumnAdder, Leaf, Transformer
from pyterrier_mathamr.explain import Asked, Explanation, QueryRow, read_asked
from pyterrier_mathamr.explain.maxsim import Nodes, Side, maxsim_parts
from pyterrier_mathamr.posts.topics import distinct_queries, with_query

from .backend import NO_HITS, Backend, Field, Hits, How, Numbers, QueryBatch, query_batch
from .parts import TEXTS, stored_formula_ids
from .search.maxsim import best_of
from .subsets import Subset, check_where, kept_columns, read_where

Class = TypeVar("Class", bound=type)

Docnos = Iterable[str] | pd.DataFrame
"""Documents that are searched: docnos, or a frame with ``docno`` and, for each query by itself, ``qid``."""

_MANY = 32
"""Queries in one call after which free memory is returned to the system; for few queries this is not worth it."""


_OPTION = re.compile(r"^ {4}(\w+): .*\n(?: {5,}.*\n)*", re.MULTILINE)


def explained(cls: Class) -> Class:
    """Complete ``Args``, which ends a class's docstring, with the options that only its bases explain."""
    if cls.__doc__ is None:  # python -OO
        return cls
    docstrings = [inspect.cleandoc(base.__doc__ or "") + "\n" for base in reversed(cls.__mro__)]
    explanations = {option[1]: option[0] for docstring in docstrings for option in _OPTION.finditer(docstring)}
    options = "".join(explanations[name] for name in inspect.signature(cls).parameters)
    description, _, _ = docstrings[-1].partition("Args:\n")
    cls.__doc__ = f"{description.rstrip()}\n\nArgs:\n{options}".rstrip()
    return cls


def check_device(device: object) -> str | None:
    if device in (None, "cpu"):
        return None
    if not isinstance(device, str) or not re.fullmatch(r"cuda(:\d+)?", device):
        raise ConfigError("device", device, "None, 'cpu' or 'cuda'")
    import torch

    devices = torch.cuda.device_count()
    if int(device.partition(":")[2] or 0) >= devices:
        raise ConfigError("device", device, f"None or 'cpu': torch finds {devices} CUDA devices here")
    return device


class IndexTransformer(Leaf, Transformer):
    """A transformer over an index, which is opened when the first row comes.

    Args:
        index: the index.
    """

    checks: ClassVar[Mapping[str, Rule]] = {
        "num_results": COUNT,
        "batch_size": COUNT,
        "candidates": COUNT,
        "hits": COUNT,
        "hnsw_ef": COUNT,
        "exact": FLAG,
    }

    def __init__(self, index: Any) -> None:
        super().__init__()
        self.index = index

    def __setattr__(self, name: str, value: object) -> None:
        if name == "device":
            check_device(value)
        elif name == "subset":
            value = Subset.of(value)
        elif name == "where" and value is not None:
            read_where(value)
        elif name == "exact" and value is None:
            value = True
        elif name == "exact" and value is False and not self.index.APPROXIMATE:
            raise ConfigError("exact", value, "True: an index in parts supports exact search only")
        super().__setattr__(name, value)

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Return the transformer that keeps ``k`` documents, itself where it keeps no more, ``None`` below 1."""
        kept = getattr(self, "num_results", None)
        if kept is not None and kept <= k:
            return self
        return pt.inspect.transformer_apply_attributes(self, num_results=k) if k >= 1 else None


class Scoring(IndexTransformer):
    """The common part of retrievers and the scorer: reading queries, and explaining a score.

    Args:
        normalise: divide scores by the query's number of rows (eq. 3.7), to compare queries; the order of documents is
            the same.
        subset: only these documents (or formulas): docnos, or a frame of ``qid`` and ``docno`` with those of each
            query.
        where: only documents (or formulas) whose kept columns meet a condition, such as
            ``year >= 2015 & 'algebra' in tags``; see ``keep`` of the indexer.
        verbose: show a progress bar over batches of queries.
        batch_size: queries computed together, in one request to the parts of a ``ShardedIndex``; the results are the
            same.
        device: no effect; retrievers and the scorer share these options.
    """

    needs: ClassVar[tuple[str, ...]] = ("query_embs",)

    normalise = False

    def __init__(
        self,
        index: Any,
        exact: bool = True,
        subset: Any = None,
        where: str | None = None,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        super().__init__(index)
        self.exact, self.subset, self.where = exact, subset, where
        self.verbose, self.batch_size, self.device = verbose, batch_size, device

    @property
    def field(self) -> Field:
        raise NotImplementedError

    def read(self, frame: pd.DataFrame, backend: Backend) -> QueryBatch:
        return query_batch(frame, backend, normalise=self.normalise, formulas="query_formula_id" in self.needs)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the contribution of each virtual node of a query to the score of a document (eq. 3.4)."""
        asked = read_asked(query, docno, self.label, self.needs)
        backend = self.index.snapshot()
        numbers = backend.find([asked.docno])
        batch = self.read(asked.frame(), backend)
        readings = asked.query_reading(), asked.document_reading()
        if not len(batch):  # a blank query
            return Explanation.of(asked.docno, [], *readings)
        compared = batch.last_rows() if self.field == "doc" else batch
        sides = self._query_side(compared, asked), self._document_side(numbers, asked, backend)
        blend = None if compared.document_weights is None else float(compared.document_weights[0])
        return Explanation.of(asked.docno, maxsim_parts(self.label, *sides, compared.weights, blend), *readings)

    def _query_side(self, compared: QueryBatch, asked: Asked) -> Side:
        """Name the compared vectors of a query by their rows in ``query_embs``."""
        given: Any = asked.row.get("query_formula_ids")
        ids, count = None if is_missing(given) else list(map(str, given)), len(asked.row["query_embs"])
        nodes, rows = Nodes.of(count, ids, asked.graph("query_graph")), range(count)
        if "query_formula_id" in self.needs:
            row = (ids or []).index(str(asked.row["query_formula_id"]))
            rows = range(row, row + 1)
        return Side(compared.rows, rows[-len(compared.rows) :], nodes)

    def _document_side(self, numbers: Numbers, asked: Asked, backend: Backend) -> Side:
        """Name the compared vectors of a document by their rows in the index; a formula by its row in its post."""
        rows, _ = backend.rows(numbers)
        if "query_formula_id" in self.needs:
            row, latex = asked.formula()
            before = [""] * row
            return Side(rows, [row], Nodes(["formula"] * (row + 1), [*before, asked.docno], [*before, latex]))
        ids = stored_formula_ids(backend.texts("formula_ids", numbers)[0], backend.path)
        compared = slice(-1 if self.field == "doc" else 0, None)
        return Side(rows[compared], range(len(rows))[compared], Nodes.of(len(rows), ids, asked.graph("graph")))


class IndexRetriever(Scoring):
    """Queries in, a ranking out; subclasses state the vectors that select documents, and ``field``, that ranks them.

    Args:
        num_results: the most documents returned for a query.
        exact: ``False`` searches an HNSW graph: faster in a large index, but it may miss some of the best documents. A
            ``ShardedIndex`` has no graph.
        hnsw_ef: with ``exact=False``, candidates that the search in the graph keeps (efSearch, 128 in the paper): more
            miss less and take longer.
    """

    field: ClassVar[Field]
    selected_by: ClassVar[Field]
    gives: ClassVar[tuple[str, ...]] = ("docno",)
    """The texts of an entry that become columns."""

    hits = 0  # of an approximate search by all rows, which ColBERT has

    def __init__(
        self,
        index: Any,
        *,
        num_results: int = 1000,
        exact: bool = True,
        hnsw_ef: int = 128,
        subset: Docnos | None = None,
        where: str | None = None,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        super().__init__(index, exact, subset, where, verbose, batch_size, device)
        self.num_results, self.hnsw_ef = num_results, hnsw_ef

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rank documents for each distinct query."""
        pt.validate.query_frame(inp, extra_columns=list(self.needs), context=self)
        columns = [*self.gives, "score", "rank"]
        queries = with_query(distinct_queries(inp, columns))
        if queries.empty:
            return empty_output(queries, columns)
        backend: Backend = self.index.snapshot()
        asked = self.read(queries, backend)
        if self.where is not None:
            check_where(self.where, backend)
        if self.subset is not None:
            asked = replace(asked, among=self.subset.numbers(backend, asked.qids))
        hits: dict[str, Hits] = {}
        for batch in progress(asked.of_size(self.batch_size), self.label, "batches", verbose=self.verbose):
            hits.update(zip(batch.qids, self.best(batch, backend), strict=True))
        in_order = [hits.get(qid, NO_HITS) for qid in queries["qid"]]
        result = ranking_frame(queries, in_order, **{name: partial(backend.texts, name) for name in self.gives})
        if len(queries) >= _MANY:
            return_free_memory()
        return result

    def best(self, queries: QueryBatch, backend: Backend) -> list[Hits]:
        """Select the best documents of each query; score them again where they are ranked by other vectors."""
        device, scored = check_device(self.device), self.selected_by == self.field
        how = How(self.exact, self.hnsw_ef, self.hits, device, scored, self.where)
        if scored:
            return backend.select(queries, self.num_results, self.field, how)
        nearest = backend.select(queries, getattr(self, "candidates", self.num_results), self.selected_by, how)
        numbers = [np.sort(hits.numbers) for hits in nearest]
        scores = backend.score(queries, numbers, self.field)
        return [best_of(backend, *of_query, self.num_results) for of_query in zip(numbers, scores, strict=True)]


@explained
class SingleVectorRetriever(IndexRetriever):
    """Ranks documents by the product of their VIRTUAL_DOCUMENT with the query's, its last row.

    ``index.single_vector()`` constructs one.

    Example::

        graphs >> model.query_encoder() >> index.single_vector(num_results=1000)
    """

    label = "MathAMR single"
    selected_by = field = "doc"


@explained
class FormulaVectorRetriever(SingleVectorRetriever):
    """Ranks formulas by the similarity of their VIRTUAL_FORMULA with the query formula's (section 3.5.2).

    The query's vector is the row of ``query_embs`` at the place of ``query_formula_id`` in ``query_formula_ids``.
    ``formula_index.retriever()`` constructs one.

    Example::

        graphs >> model.query_encoder() >> formula_index.retriever(num_results=1000)

    Args:
        num_results: the most formulas returned for a query.
        device: ``cuda`` or ``cuda:1`` scans an int8 index in a folder on that GPU, with the same results.
    """

    label = "MathAMR formulas"
    needs = ("query_embs", "query_formula_ids", "query_formula_id")
    gives = ("docno", "post_id", "visual_id")


@explained
class DocVNRetriever(IndexRetriever):
    """Selects candidates by the VIRTUAL_DOCUMENT and ranks them by exact MaxSim over all rows.

    ``index.doc_vn()`` constructs one.

    Example::

        graphs >> model.query_encoder() >> index.doc_vn(candidates=5000)

    Args:
        candidates: documents kept by the first stage, from which ``num_results`` are returned: more miss less and take
            longer.
        exact: ``False`` finds the candidates in an HNSW graph: faster in a large index, but it may miss some. They are
            scored exactly either way. A ``ShardedIndex`` has no graph.
        hnsw_ef: with ``exact=False``, candidates that the search in the graph keeps (efSearch, 128 in the paper), in a
            folder at least ``candidates``: more miss less and take longer.
    """

    label = "MathAMR doc-VN"
    selected_by, field = "doc", "all"

    def __init__(
        self,
        index: Any,
        candidates: int = 5000,
        *,
        num_results: int = 1000,
        exact: bool = True,
        hnsw_ef: int = 128,
        normalise: bool = False,
        subset: Docnos | None = None,
        where: str | None = None,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        shared: dict[str, Any] = {"subset": subset, "where": where, "verbose": verbose, "batch_size": batch_size}
        super().__init__(index, num_results=num_results, exact=exact, hnsw_ef=hnsw_ef, device=device, **shared)
        self.candidates, self.normalise = candidates, normalise


@explained
class ColBERTRetriever(IndexRetriever):
    """Ranks documents by MaxSim, S(Q, D) = Σᵢ maxⱼ qᵢ · dⱼ (eq. 3.4).

    ``index.colbert()`` constructs one, and so does ``index.retriever()``.

    Example::

        graphs >> model.query_encoder() >> index.colbert(num_results=1000)

    Args:
        index: the index. In Qdrant, ``query_weights`` must not be negative.
        exact: ``False`` scores only documents with one of the nearest rows in an HNSW graph: faster in a large index,
            but it may miss some of the best. A ``ShardedIndex`` has no graph.
        hits: with ``exact=False`` in a folder, nearest rows found for each row of the query, or as many more as
            ``num_results`` documents need: more miss less and take longer.
        hnsw_ef: with ``exact=False``, candidates that the search in the graph keeps (efSearch, 128 in the paper), in a
            folder at least ``hits``: more miss less and take longer.
        device: ``cuda`` or ``cuda:1`` scans an index in a folder on that GPU, with the same results.
    """

    label = "MathAMR ColBERT"
    selected_by = field = "all"

    def __init__(
        self,
        index: Any,
        *,
        num_results: int = 1000,
        exact: bool = True,
        hits: int = 128,
        hnsw_ef: int = 128,
        normalise: bool = False,
        subset: Docnos | None = None,
        where: str | None = None,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        shared: dict[str, Any] = {"subset": subset, "where": where, "verbose": verbose, "batch_size": batch_size}
        super().__init__(index, num_results=num_results, exact=exact, hnsw_ef=hnsw_ef, device=device, **shared)
        self.hits, self.normalise = hits, normalise


@explained
class MaxSimScorer(Scoring):
    """Scores each document of a ranking by exact MaxSim (eq. 3.4) with the vectors of the index.

    ``index.scorer()`` constructs one.

    Example::

        bm25 >> graphs >> model.query_encoder() >> index.scorer()

    The rows come back by query (in order of appearance), score descending, docno ascending, with all their columns; a
    docno that occurs twice for a query is scored twice. The documents of a query without rows score 0.

    Args:
        num_results: the most documents kept for a query; ``None`` keeps all.
        vectors: ``all`` for MaxSim, or ``document`` for only the product of the two VIRTUAL_DOCUMENTs.
        exact: always ``True``: a scorer has no approximation.
    """

    label = "MathAMR scorer"
    checks: ClassVar[Mapping[str, Rule]] = {
        **IndexTransformer.checks,
        "num_results": COUNT.or_none(),
        "exact": Rule("True: a scorer knows no approximation", lambda value: value is True),
        "vectors": Rule("'all' or 'document'", lambda value: value in ("all", "document")),
    }

    def __init__(
        self,
        index: Any,
        *,
        num_results: int | None = None,
        vectors: Literal["all", "document"] = "all",
        exact: bool = True,
        normalise: bool = False,
        subset: Docnos | None = None,
        where: str | None = None,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        super().__init__(index, exact, subset, where, verbose, batch_size, device)
        self.num_results, self.vectors, self.normalise = num_results, vectors, normalise

    @property
    def field(self) -> Field:
        return "doc" if self.vectors == "document" else "all"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking.

        Args:
            inp: ``qid``, ``docno`` and ``query_embs``; cells of ``query_embs`` may be empty on some rows of a query.

        Returns:
            The rows of ``inp``, ordered, with ``score`` and ``rank``.

        Raises:
            UnknownIdError: the index does not contain some of the documents; the error names them.
        """
        pt.validate.result_frame(inp, extra_columns=["query_embs"], context=self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        backend: Backend = self.index.snapshot()
        if self.subset is not None:
            inp = inp[self.subset.has(list(map(str, inp["qid"])), list(map(str, inp["docno"])))]
        numbers = backend.find(list(map(str, inp["docno"])))
        if self.where is not None:
            condition = check_where(self.where, backend)
            kept = map(kept_columns, backend.texts("kept", numbers))
            passing = np.array(list(map(condition.holds, kept)), dtype=np.bool_)
            numbers, inp = numbers[passing], inp[passing]
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        scores = np.zeros(len(inp))
        rows_of = inp.groupby("qid", sort=False).indices
        batches = self.read(inp, backend).of_size(self.batch_size)
        for batch in progress(batches, self.label, "batches", verbose=self.verbose):
            rows = [rows_of[qid] for qid in batch.qids]
            documents = [np.unique(numbers[rows_of_query], return_inverse=True) for rows_of_query in rows]
            exact_scores = backend.score(batch, [distinct for distinct, _ in documents], self.field)
            for rows_of_query, exact, (_, places) in zip(rows, exact_scores, documents, strict=True):
                scores[rows_of_query] = exact[places]
        result = ordered_by_score(inp, scores)
        return result if self.num_results is None else result[result["rank"] < self.num_results].reset_index(drop=True)


class VectorLoader(ColumnAdder, IndexTransformer):
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
            UnknownIdError: the index does not contain some of the documents; the error names them.
        """
        pt.validate.columns(inp, includes=["docno"], context=self)
        if inp.empty:
            return empty_output(inp, ["doc_embs"])
        snapshot = self.index.snapshot()
        of_row, docnos = pd.factorize(inp["docno"], use_na_sentinel=False)
        rows, offsets = snapshot.rows(snapshot.find([str(docno) for docno in docnos]))
        vectors = [rows[start:end] for start, end in pairwise(offsets.tolist())]
        return with_objects(inp, doc_embs=[vectors[number] for number in of_row])


class DropVectors(ColumnAdder, Leaf, Transformer):
    """Drops vectors and the columns that describe them, so that results are small; cells of others stay as they are.

    :func:`drop_query_embs` and :func:`drop_doc_embs` construct one.

    Args:
        columns: the columns to drop, of which the first must be there.
    """

    label = "Drop vectors"

    def __init__(self, columns: Sequence[str]) -> None:
        super().__init__()
        self.columns = tuple(columns)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Drop the columns."""
        pt.validate.columns(inp, includes=[self.columns[0]], context=self)
        return inp.drop(columns=[name for name in self.columns if name in inp.columns])


def drop_query_embs() -> DropVectors:
    """Return the transformer that drops ``query_embs`` and the columns that describe its rows.

    Example::

        encode >> index.retriever() >> mathamr.drop_query_embs()
    """
    return DropVectors(QUERY_ROWS)


def drop_doc_embs() -> DropVectors:
    """Return the transformer that drops ``doc_embs`` and the columns that describe its rows.

    Example::

        bm25 >> index.vec_loader() >> mathamr.drop_doc_embs()
    """
    return DropVectors(("doc_embs", "doc_model", "formula_ids"))


class TextLoader(ColumnAdder, IndexTransformer):
    """Adds the texts that an index stores of each document or formula.

    An index of documents stores ``formula_ids``, one of formulas ``post_id`` and ``visual_id``. The posts themselves
    are in the collection; load them with ``dataset.text_loader()``, or their graphs with ``GraphStore.loader()``.
    ``index.text_loader()`` constructs one.

    Example::

        formula_index.text_loader(["visual_id"])

    Args:
        index: the index.
        fields: a field, several, or ``*`` for all that are stored.
        verbose: no effect; ``pt.text.get_text`` passes it.

    Raises:
        ConfigError: a field is not stored.
    """

    label = "MathAMR texts"

    def __init__(self, index: Any, fields: str | Sequence[str] = "*", *, verbose: bool = False) -> None:
        super().__init__(index)
        self.verbose = verbose
        stored = TEXTS[index.LAYOUT][1:]
        self.fields = stored if fields == "*" else (fields,) if isinstance(fields, str) else tuple(fields)
        if unknown := [name for name in self.fields if name not in stored]:
            allowed = f"{' or '.join(map(repr, stored))}; a collection loads its posts by dataset.text_loader()"
            raise ConfigError("fields", unknown[0], allowed)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the fields to documents or a ranking, by ``docno``.

        Raises:
            UnknownIdError: the index does not contain some of the documents; the error names them.
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
