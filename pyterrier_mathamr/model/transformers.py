"""The model as PyTerrier transformers: graphs in, vectors or scores out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import (
    MissingValueError,
    empty_output,
    encode_distinct,
    first_values,
    with_objects,
)
from pyterrier_mathamr._common.transformers import Transformer
from pyterrier_mathamr.graph import MathAMRGraph

from .encoder.maxsim import exact_maxsim
from .identity import vectors_by
from .mathamr import MathAMR


class _GraphTransformer(Transformer):
    """What the three share: a model, options by keyword, equality by both."""

    def __init__(
        self, model: MathAMR, *, device: str | None = None, batch_size: int = 64, verbose: bool = False
    ) -> None:
        super().__init__()
        self.model, self.device, self.batch_size, self.verbose = model, device, batch_size, verbose

    def _encode(self, graphs: list[MathAMRGraph]) -> list[Any]:
        return list(self.model.encode(graphs, device=self.device, verbose=self.verbose))

    def _formula_ids(self, graph: MathAMRGraph) -> list[str]:
        """List the ids in the order of the rows; a model without formulas has no such rows."""
        return list(graph.formula_ids) if self.model.config.formulas != "none" else []

    def _row_weights(self, graph: MathAMRGraph, rows: int) -> npt.NDArray[np.float64] | None:
        """Give the weight of each row of a query, float64 ``[q]``; ``None`` where the model has none."""
        weights, has_document = self.model.score_weights, self.model.config.virtual_nodes != "none"
        return None if weights is None else weights.of_rows(rows, len(self._formula_ids(graph)), has_document)


class DocEncoder(_GraphTransformer):
    """Encode the ``graph`` of each document.

    Adds ``doc_embs``, float32 ``[n, d]`` with rows of unit length (formulas, sentences, document), ``formula_ids``, a
    list of text whose item ``i`` is the id of the formula in row ``i``, and ``doc_model``, who made the vectors, see
    :func:`~pyterrier_mathamr.model.vectors_by`. A document that is in several rows is encoded once.

    Args:
        model: the model.
        device: where to compute.
        batch_size: documents that an indexing pipeline hands over at once.
        verbose: show progress.

    Example::

        (mathamr.GraphBuilder() >> model.doc_encoder() >> index.indexer()).index(dataset.get_corpus_iter())
    """

    label = "MathAMR Documents"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``doc_embs``, ``formula_ids`` and ``doc_model``.

        Args:
            inp: rows with ``graph``.

        Raises:
            MissingValueError: documents without a graph; it names them.
        """
        pt.validate.columns(inp, includes=["graph"], context=self)
        if inp.empty:
            return empty_output(inp, ["doc_embs", "formula_ids", "doc_model"])
        key = "docno" if "docno" in inp.columns else "row"
        frame = inp if key == "docno" else inp.assign(row=range(len(inp)))
        frame = encode_distinct(frame, "graph", "doc_embs", self._encode, key)
        graphs = first_values(frame, "graph", key)
        frame = with_objects(frame, formula_ids=[self._formula_ids(graphs[name]) for name in frame[key]])
        encoded: pd.DataFrame = frame.assign(doc_model=vectors_by(self.model))
        return encoded if key == "docno" else encoded.drop(columns="row")

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer:
        """Cut before encoding: the rows that are left are the same."""
        return pt.RankCutoff(k) >> self


class QueryEncoder(_GraphTransformer):
    """Encode the ``query_graph`` of each query, once for all rows of a ranking.

    A model with score weights (see ``MathAMR.score_weights``) also adds ``query_weights``, float64 ``[q]``, and
    ``query_document_weight``, a number, and an index scores by Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc.

    Adds ``query_embs``, float32 ``[q, d]`` with rows of unit length (formulas, sentences, document),
    ``query_formula_ids``, a list of text whose item ``i`` is the id of the formula in row ``i``, and ``query_model``,
    who made the vectors: an index of another model's vectors refuses them.

    Args:
        model: the model.
        device: where to compute.
        batch_size: rows that a pipeline hands over at once.
        verbose: show progress.

    Example::

        mathamr.GraphBuilder() >> model.query_encoder() >> index.retriever()
    """

    label = "MathAMR Queries"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``query_embs``, ``query_formula_ids`` and ``query_model``.

        Args:
            inp: queries or a ranking with ``query_graph``; it may be empty in some rows of a query, as after
                ``+`` and ``|``.

        Raises:
            MissingValueError: queries without a graph in any row; it names them.
        """
        pt.validate.columns(inp, includes=["qid", "query_graph"], context=self)
        weights = self.model.score_weights
        if inp.empty:
            added = [] if weights is None else ["query_weights", "query_document_weight"]
            return empty_output(inp, ["query_embs", "query_formula_ids", "query_model", *added])
        frame = encode_distinct(inp, "query_graph", "query_embs", self._encode)
        graphs = first_values(frame, "query_graph")
        frame = with_objects(frame, query_formula_ids=[self._formula_ids(graphs[qid]) for qid in frame["qid"]])
        encoded: pd.DataFrame = frame.assign(query_model=vectors_by(self.model))
        if weights is None:
            return encoded
        sized = zip(frame["qid"], frame["query_embs"], strict=True)
        frame = with_objects(encoded, query_weights=[self._row_weights(graphs[qid], len(rows)) for qid, rows in sized])
        weighted: pd.DataFrame = frame.assign(query_document_weight=weights.blend)
        return weighted

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer:
        """Cut before encoding: the rows that are left are the same."""
        return pt.RankCutoff(k) >> self


class TextScorer(_GraphTransformer):
    """Score each row's ``graph`` against its ``query_graph`` by MaxSim (MathAMR+, eq. 3.4), without an index.

    A model with score weights scores with them. Each query and each document is encoded once. Rows come out by query,
    best first, equal scores by docno; of documents with the same graph, rounding may set the scores apart
    (docs/exactness.md).

    Args:
        model: the model.
        device: where to compute.
        batch_size: rows that a pipeline hands over at once.
        verbose: show progress.

    Example::

        bm25 >> dataset.text_loader(["text"]) >> mathamr.GraphBuilder(side="both") >> model.text_scorer()
    """

    label = "MathAMR Scorer"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Replace ``score`` and ``rank``.

        Args:
            inp: a ranking with ``query_graph`` and ``graph``.

        Raises:
            MissingValueError: queries or documents without a graph in any row; it names them.
        """
        pt.validate.result_frame(inp, extra_columns=["query_graph", "graph"], context=self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        graphs, weights = first_values(inp, "query_graph"), self.model.score_weights
        queries = self._embeddings(inp, "query_graph", "qid")
        documents = self._embeddings(inp, "graph", "docno")
        scores = np.empty(len(inp), np.float64)
        for qid, query in queries.items():
            places = np.flatnonzero(inp["qid"] == qid)
            rows = [documents[name] for name in inp["docno"].iloc[places]]
            offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
            of_rows = self._row_weights(graphs[qid], len(query))
            blend = weights.blend or None if weights else None
            scores[places] = exact_maxsim(query, np.concatenate(rows), offsets, of_rows, blend)
        order = inp["qid"].map({qid: i for i, qid in enumerate(queries)})
        frame = inp.assign(score=scores, _order=order)
        frame = frame.sort_values(["_order", "score", "docno"], ascending=[True, False, True], kind="stable")
        ranked: pd.DataFrame = pt.model.add_ranks(frame.drop(columns="_order").reset_index(drop=True))
        return ranked

    def _embeddings(self, frame: pd.DataFrame, column: str, key: str) -> dict[str, Any]:
        """Encode the graph of each distinct query or document."""
        graphs = first_values(frame, column, key)
        missing = [name for name in dict.fromkeys(frame[key]) if name not in graphs]
        if missing:
            raise MissingValueError(column, key, missing)
        return dict(zip(graphs, self._encode(list(graphs.values())), strict=True))
