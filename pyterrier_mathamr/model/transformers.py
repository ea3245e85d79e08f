"""Models as PyTerrier transformers: posts in, rows or scores out.

::

    frame ──PostRows.queries, .documents──▶ one value for each row of the frame, each post encoded once
              DocEncoder, QueryEncoder  add these as columns
              TextScorer                scores them: PostRows.score

All three are shared by the models that turn posts into rows (MathAMR, ColBERT, MaRF). The model's `PostRows` defines
the columns it reads and adds, and how it encodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import reported_once
from pyterrier_mathamr._common.frames import (
    empty_output,
    ordered_by_score,
    with_objects,
    without_query_rows,
)
from pyterrier_mathamr._common.parameters import COUNT, Rule
from pyterrier_mathamr._common.recent import Recent
from pyterrier_mathamr._common.transformers import HELP_URL, ColumnAdder, Leaf, Transformer
from pyterrier_mathamr.explain import Explanation, QueryRow

from .exact import exact_maxsim

Columns = dict[str, Sequence[object] | str | float]
"""Column to its values: one for each row of a frame, or the same for all."""

Side = Literal["queries", "documents", "ranking"]
"""The posts read from a frame; a ranking has both queries and documents."""

_AT_ONCE = 2048  # documents of a ranking whose vectors are in memory


class PostRows(ABC):
    """How a model reads the posts of a frame and turns them into rows.

    A model returns one from ``post_rows(device=…, verbose=…, **options)``, which checks the options; it is made for
    each frame, so making it costs nothing.
    """

    label: ClassVar[str]  # the name of the system in drawings
    batch_size: int = 64  # documents that an indexing pipeline encodes together by default
    doc_columns: Sequence[str] = ("doc_embs", "doc_model")  # that `documents` adds, in order
    query_columns: Sequence[str] = ("query_embs", "query_model")  # that `queries` adds, in order

    @abstractmethod
    def check(self, frame: pd.DataFrame, side: Side, stage: pt.Transformer) -> None:
        """Raise an error for a frame without the columns of a side's posts, on behalf of ``stage``."""

    @abstractmethod
    def read_queries(self, frame: pd.DataFrame) -> dict[Any, Any]:
        """Read the graph or text of each query, by qid."""

    @abstractmethod
    def key(self, queries: Sequence[Any]) -> Hashable:
        """Return all that the columns of queries depend on: model, options, graphs or texts, but no qid."""

    @abstractmethod
    def of_queries(self, queries: Sequence[Any]) -> list[dict[str, Any]]:
        """Encode graphs or texts of queries, and return the columns of each; one without text has no rows."""

    def queries(self, frame: pd.DataFrame, recent: Recent) -> Columns:
        """Encode queries, each qid once, unless a recent call had the same."""
        read = self.read_queries(frame)
        key = self.key(list(read.values()))
        encoded = recent.get(key)
        if encoded is None:
            encoded = self.of_queries(list(read.values()))
            recent.keep(key, encoded)
        by_qid = {  # copies, since the arrays of a frame may be changed in place
            qid: {name: copy(value) for name, value in columns.items()}
            for qid, columns in zip(read, encoded, strict=True)
        }
        rows = [by_qid[qid] for qid in frame["qid"].tolist()]
        return {
            name: rows[0][name] if isinstance(rows[0][name], str | float) else [row[name] for row in rows]
            for name in self.query_columns
        }

    @abstractmethod
    def documents(self, frame: pd.DataFrame, *, of_ranking: bool = False) -> Columns:
        """Encode documents, each docno once; the title of a ranking is the query's."""

    def score(self, query: Mapping[str, Any], documents: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """Score documents against a query, given their columns: float64 ``[m]``."""
        rows = documents["doc_embs"]
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        blend = query.get("query_document_weight") or None
        return exact_maxsim(query["query_embs"], np.concatenate(rows), offsets, query.get("query_weights"), blend)

    @abstractmethod
    def explain(self, query: QueryRow, docno: str | None) -> Explanation:
        """Explain the score of a document; see :meth:`TextScorer.explain`."""


class PostModel(Protocol):
    """A model that turns posts into rows."""

    @property
    def post_rows(self) -> Callable[..., PostRows]:
        """Return the model's `PostRows`, under ``device``, ``verbose`` and its other options."""


class _PostTransformer(Leaf, Transformer):
    """A model and the options of encoding."""

    checks: ClassVar[Mapping[str, Rule]] = {"batch_size": COUNT}
    role: ClassVar[str]

    def __init__(
        self,
        model: PostModel,
        *,
        device: str | None = None,
        batch_size: int | None = None,
        verbose: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        self.model, self.device, self.verbose, self.options = model, device, verbose, options
        self.batch_size = self.posts.batch_size if batch_size is None else batch_size
        self._recent = Recent()

    @property
    def posts(self) -> PostRows:
        return self.model.post_rows(device=self.device, verbose=self.verbose, **self.options)

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        return {"label": f"{self.posts.label} {self.role}", "help_url": HELP_URL}


class DocEncoder(ColumnAdder, _PostTransformer):
    """Encode each document; one that is in several rows is encoded once.

    Adds ``doc_embs``, float32 ``[n, d]`` with rows of unit length, and ``doc_model``, the identity of the model. What
    the rows are is the model's: formulas, sentences and the document of MathAMR+, which also adds ``formula_ids``, a
    list of text whose item ``i`` is the id of the formula in row ``i``; tokens in order, ``[CLS]`` last, of ColBERT.
    MaRF adds ``doc_views`` and ``doc_formulas`` instead of ``doc_embs``.

    Args:
        model: of MathAMR+, or any other that turns posts into rows.
        device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
        batch_size: documents that an indexing pipeline encodes together.
        verbose: show progress.
        options: of the model, such as ``precision`` of ColBERT and MaRF.

    Example::

        (mathamr.GraphBuilder() >> model.doc_encoder() >> index.indexer()).index(dataset.get_corpus_iter())
    """

    role = "documents"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the model's columns of documents.

        Raises:
            MissingValueError: documents without a graph; the error names them.
        """
        posts = self.posts
        posts.check(inp, "documents", self)
        if inp.empty:
            return empty_output(inp, posts.doc_columns)
        with reported_once():
            return with_objects(inp, **posts.documents(inp))


class QueryEncoder(ColumnAdder, _PostTransformer):
    """Encode each query, once for all rows of a ranking.

    Adds ``query_embs``, float32 ``[q, d]`` with rows of unit length, as in :class:`DocEncoder` (no rows for a blank
    query), and ``query_model``, the identity of the model: an index of another model's rows refuses them. MathAMR+ also
    adds ``query_formula_ids``, an array of text whose item ``i`` is the id of the formula in row ``i``.

    The vectors of recent queries are kept by content, so that a transformer that asks again for the same query, such
    as ``pyterrier_adaptive.GAR``, does not encode it again.

    A model with weights in the score (see ``MathAMR.score_weights``) adds ``query_weights``, float64 ``[q]``, and
    ``query_document_weight``, a number; an index then scores by Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc.

    Args:
        model: of MathAMR+, or any other that turns posts into rows.
        device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU. MathAMR+ of only text stays on the
            CPU.
        batch_size: no effect on queries: all queries of a frame are encoded together.
        verbose: show progress.
        options: of the model, such as ``precision`` of ColBERT and MaRF.

    Example::

        mathamr.GraphBuilder() >> model.query_encoder() >> index.retriever()
    """

    role = "queries"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the model's columns of queries to queries or a ranking.

        Args:
            inp: ``query_graph`` may be empty in some rows of a query, as after ``+`` and ``|``.

        Raises:
            MissingValueError: queries without a graph in any row; the error names them.
        """
        posts = self.posts
        posts.check(inp, "queries", self)
        inp = without_query_rows(inp)
        if inp.empty:
            return empty_output(inp, posts.query_columns)
        with reported_once():
            return with_objects(inp, **posts.queries(inp, self._recent))


class TextScorer(_PostTransformer):
    """Score the document of each row against the query by MaxSim (MathAMR+, eq. 3.4), without an index.

    The scores equal ``index.scorer()`` for the same vectors, with the model's score weights if it has any. Each
    query and each document is encoded once. Rows are ordered by query, descending score and docno; for documents with
    the same graph, rounding in the encoder may make the scores differ (docs/how-it-works.md).

    Args:
        model: of MathAMR+, or any other that turns posts into rows.
        device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
        batch_size: no effect on a ranking: all its documents are encoded together, 2,048 at a time.
        verbose: show progress.
        options: of the model, such as ``precision`` of ColBERT and MaRF.

    Example::

        bm25 >> dataset.text_loader(["text"]) >> mathamr.GraphBuilder(side="both") >> model.text_scorer()
        bm25 >> dataset.text_loader(["text"]) >> colbert.text_scorer()
    """

    role = "scorer"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Replace ``score`` and ``rank`` of a ranking with the graphs or texts of queries and documents.

        Raises:
            MissingValueError: queries or documents without a graph in any row; the error names them.
        """
        posts = self.posts
        posts.check(inp, "ranking", self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        query_numbers, numbers = (pd.factorize(inp[name], use_na_sentinel=False)[0] for name in ("qid", "docno"))
        scores = np.empty(len(inp), np.float64)
        with reported_once():
            queries = posts.queries(inp, self._recent)
            for start in range(0, int(numbers.max()) + 1, _AT_ONCE):
                block = np.flatnonzero((numbers >= start) & (numbers < start + _AT_ONCE))  # rows of the frame
                documents = posts.documents(inp.iloc[block], of_ranking=True)
                for query_number in np.unique(query_numbers[block]).tolist():
                    in_block = np.flatnonzero(query_numbers[block] == query_number)
                    rows = block[in_block]
                    query = {name: values[0] for name, values in _values_of(queries, rows[:1]).items()}
                    scores[rows] = posts.score(query, _values_of(documents, in_block))
        return ordered_by_score(inp, scores)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the contribution of each row of a query to the score of a document.

        Args:
            query: a row with the graphs or texts of a query and a document, or a frame of one query.
            docno: the document; by default the one in the row.

        Raises:
            AskedError: a graph or text is missing, or no document is named.
        """
        return self.posts.explain(query, docno)


def _values_of(columns: Columns, rows: npt.NDArray[np.int64]) -> dict[str, list[Any]]:
    return {
        name: [values] * len(rows) if isinstance(values, float | str) else [values[row] for row in rows.tolist()]
        for name, values in columns.items()
    }
