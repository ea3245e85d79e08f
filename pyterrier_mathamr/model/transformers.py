"""The model as PyTerrier transformers: graphs in, vectors or scores out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import (
    empty_output,
    encode_distinct,
    encoded_values,
    first_values,
    ordered_by_score,
    with_objects,
    without_query_rows,
)
from pyterrier_mathamr._common.parameters import COUNT, Rule
from pyterrier_mathamr._common.transformers import ColumnAdder, Transformer
from pyterrier_mathamr.explain import Explanation, QueryRow, read_asked
from pyterrier_mathamr.explain.alignment import explain_maxsim
from pyterrier_mathamr.graph import MathAMRGraph

from .encoder.in_batches import Embeddings
from .encoder.maxsim import exact_maxsim
from .mathamr import MathAMR, vectors_by


class _GraphTransformer(Transformer):
    """What the three share: a model and the options of encoding."""

    checks: ClassVar[Mapping[str, Rule]] = {"batch_size": COUNT.or_none()}

    def __init__(
        self, model: MathAMR, *, device: str | None = None, batch_size: int | None = None, verbose: bool = False
    ) -> None:
        super().__init__()
        usual = 1024 if model.config.text.features == "text" else 64
        self.batch_size = usual if batch_size is None else batch_size
        self.model, self.device, self.verbose = model, device, verbose

    def _documents(self, graphs: list[MathAMRGraph]) -> list[Embeddings]:
        return self.model.encode(graphs, device=self.device, verbose=self.verbose)

    def _queries(self, graphs: list[MathAMRGraph]) -> list[Embeddings]:
        """Encode queries; one without text has no vectors, float32 ``[0, d]``."""
        encoded = iter(self._documents([graph for graph in graphs if not graph.is_empty]))
        none = np.empty((0, self.model.config.projection), np.float32)
        return [none if graph.is_empty else next(encoded) for graph in graphs]

    def _formula_ids(self, graph: MathAMRGraph) -> list[str]:
        """List the ids in the order of the rows; a model without formulas has no such rows."""
        return list(graph.formula_ids) if self.model.config.formulas != "none" else []

    def _row_weights(self, graph: MathAMRGraph, rows: int) -> npt.NDArray[np.float64] | None:
        """Return the weight of each row of a query, float64 ``[q]``; ``None`` if the model has none."""
        weights, has_document = self.model.score_weights, self.model.config.virtual_nodes != "none"
        return None if weights is None else weights.of_rows(rows, len(self._formula_ids(graph)), has_document)


class DocEncoder(ColumnAdder, _GraphTransformer):
    """Encode the ``graph`` of each document.

    Adds ``doc_embs``, float32 ``[n, d]`` with rows of unit length (formulas, sentences, document), ``formula_ids``, a
    list of text whose item ``i`` is the id of the formula in row ``i``, and ``doc_model``, the identity of the model,
    see :func:`~pyterrier_mathamr.model.vectors_by`. A document that is in several rows is encoded once.

    Example::

        (mathamr.GraphBuilder() >> model.doc_encoder() >> index.indexer()).index(dataset.get_corpus_iter())
    """

    label = "MathAMR Documents"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``doc_embs``, ``formula_ids`` and ``doc_model`` to rows with ``graph``.

        Raises:
            MissingValueError: documents without a graph; it names them.
        """
        pt.validate.columns(inp, includes=["graph"], context=self)
        if inp.empty:
            return empty_output(inp, ["doc_embs", "formula_ids", "doc_model"])
        frame = inp if "docno" in inp.columns else inp.assign(docno=range(len(inp)))
        graphs, vectors = encoded_values(frame, "graph", self._documents, "docno")
        names = frame["docno"].tolist()
        ids = [self._formula_ids(graphs[name]) for name in names]
        rows = [vectors[name] for name in names]
        return with_objects(inp, doc_embs=rows, formula_ids=ids, doc_model=vectors_by(self.model))


class QueryEncoder(ColumnAdder, _GraphTransformer):
    """Encode the ``query_graph`` of each query, once for all rows of a ranking.

    Adds ``query_embs``, float32 ``[q, d]`` with rows of unit length (formulas, sentences, document; none for a blank
    query), ``query_formula_ids``, a list of text whose item ``i`` is the id of the formula in row ``i``, and
    ``query_model``, the identity of the model: an index of another model's vectors refuses them.

    A model with score weights (see ``MathAMR.score_weights``) also adds ``query_weights``, float64 ``[q]``, and
    ``query_document_weight``, a number; an index then scores by Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc.

    Example::

        mathamr.GraphBuilder() >> model.query_encoder() >> index.retriever()
    """

    label = "MathAMR Queries"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``query_embs``, ``query_formula_ids`` and ``query_model`` to queries or a ranking with ``query_graph``.

        Args:
            inp: ``query_graph`` may be empty in some rows of a query, as after ``+`` and ``|``.

        Raises:
            MissingValueError: queries without a graph in any row; it names them.
        """
        pt.validate.columns(inp, includes=["qid", "query_graph"], context=self)
        inp, weights = without_query_rows(inp), self.model.score_weights
        if inp.empty:
            added = [] if weights is None else ["query_weights", "query_document_weight"]
            return empty_output(inp, ["query_embs", "query_formula_ids", "query_model", *added])
        graphs, vectors = encoded_values(inp, "query_graph", self._queries)
        qids = inp["qid"].tolist()
        ids = [self._formula_ids(graphs[qid]) for qid in qids]
        rows = [vectors[qid] for qid in qids]
        weighing: dict[str, Any] = {}
        if weights is not None:
            sized = zip(qids, rows, strict=True)
            weighing["query_weights"] = [self._row_weights(graphs[qid], len(own)) for qid, own in sized]
            weighing["query_document_weight"] = float(weights.blend)
        by = vectors_by(self.model)
        return with_objects(inp, query_embs=rows, query_formula_ids=ids, query_model=by, **weighing)


class TextScorer(_GraphTransformer):
    """Score each row's ``graph`` against its ``query_graph`` by MaxSim (MathAMR+, eq. 3.4), without an index.

    The scores are those of ``index.scorer()`` for the same vectors, with the model's score weights if it has any. Each
    query and each document is encoded once. Rows are ordered by query, descending score and docno; for documents with
    the same graph, rounding in the encoder may make the scores differ (docs/exactness.md).

    Example::

        bm25 >> dataset.text_loader(["text"]) >> mathamr.GraphBuilder(side="both") >> model.text_scorer()
    """

    label = "MathAMR Scorer"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Replace ``score`` and ``rank`` of a ranking with ``query_graph`` and ``graph``.

        Raises:
            MissingValueError: queries or documents without a graph in any row; it names them.
        """
        pt.validate.result_frame(inp, extra_columns=["query_graph", "graph"], context=self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        graphs, weights = first_values(inp, "query_graph"), self.model.score_weights
        queries = encode_distinct(inp, "query_graph", "vectors", self._queries)["vectors"]
        documents = encode_distinct(inp, "graph", "vectors", self._documents, "docno")["vectors"].to_numpy()
        blend = weights.blend or None if weights else None
        codes, qids = pd.factorize(inp["qid"])
        scores = np.empty(len(inp), np.float64)
        for code, qid in enumerate(qids):
            places = np.flatnonzero(codes == code)
            query, rows = queries.iloc[places[0]], documents[places]
            offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
            of_rows = self._row_weights(graphs[qid], len(query))
            scores[places] = exact_maxsim(query, np.concatenate(rows), offsets, of_rows, blend)
        return ordered_by_score(inp, scores)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what each virtual node of a query contributes to the score of a document.

        Args:
            query: a row with ``query_graph`` and ``graph``, or a frame of one query.
            docno: the document; by default that of the row.

        Raises:
            AskedError: a graph is missing, or no document is named.
        """
        asked = read_asked(query, docno, self.label, ["query_graph", "graph"])
        graphs, weights = (asked.row["query_graph"], asked.row["graph"]), self.model.score_weights
        rows, document = self._queries(list(graphs[:1]))[0], self._documents(list(graphs[1:]))[0]
        found = explain_maxsim(
            graphs[0],
            rows,
            graphs[1],
            document,
            query_formula_ids=self._formula_ids(graphs[0]),
            formula_ids=self._formula_ids(graphs[1]),
            query_weights=self._row_weights(graphs[0], len(rows)),
            query_document_weight=weights.blend if weights else None,
        )
        return replace(found, docno=asked.docno)
