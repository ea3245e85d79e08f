"""MaxSim taken apart: the cosine of each part of a query with each part of a document, and the terms of the score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr.explain.alignment import Embeddings, virtual_nodes
from pyterrier_mathamr.explain.asking_errors import AlignmentError
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.posts import MathPost


class Term(NamedTuple):
    """A term of a score.

    Attributes:
        query_row: the virtual node of the query.
        document_row: the most similar one of the document; of the last term, the document's own.
        weight: the factor of their cosine.
        contribution: the product.
    """

    query_row: int
    document_row: int
    weight: float
    contribution: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two posts, part by part.

    Attributes:
        query_id: of the query.
        document_id: of the document.
        query: ``row``, ``kind`` and ``label`` of each virtual node of the query.
        document: the same of the document.
        cosines: float64 ``[q, n]``.
        terms: one for each row of the query, and one for the product of the two document vectors if it is weighted.
    """

    query_id: str
    document_id: str
    query: pd.DataFrame
    document: pd.DataFrame
    cosines: npt.NDArray[np.float64]
    terms: list[Term]

    @property
    def score(self) -> float:
        """S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc, the sum of the terms (eq. 3.4)."""
        return math.fsum(term.contribution for term in self.terms)


def similarities(
    query_graph: MathAMRGraph,
    query_embs: Embeddings,
    doc_graph: MathAMRGraph,
    doc_embs: Embeddings,
    *,
    query_post: MathPost | None = None,
    doc_post: MathPost | None = None,
) -> pd.DataFrame:
    """Compute the cosine of each virtual node of a query with each of a document.

    Args:
        query_graph: graph of the query.
        query_embs: float32 ``[q, d]``, unit rows: formulas, sentences, document.
        doc_graph: graph of the document.
        doc_embs: float32 ``[n, d]``, the same of the document.
        query_post: the query's text and LaTeX for the labels, where its graph does not have them.
        doc_post: the document's.

    Returns:
        ``[q, n]`` floats; rows and columns are indexed by ``(row, kind, label)``.

    Raises:
        AlignmentError: the vectors do not belong to the graphs, or their widths differ.
    """
    query_nodes = virtual_nodes(query_graph, len(query_embs), query_post)
    doc_nodes = virtual_nodes(doc_graph, len(doc_embs), doc_post)
    if query_embs.shape[1:] != doc_embs.shape[1:]:
        raise AlignmentError(doc_graph.id, f"its vectors {doc_embs.shape} do not fit the query's {query_embs.shape}")
    cosines = np.asarray(query_embs, dtype=np.float64) @ np.asarray(doc_embs, dtype=np.float64).T
    table: pd.DataFrame = pd.DataFrame(
        cosines, pd.MultiIndex.from_frame(query_nodes), pd.MultiIndex.from_frame(doc_nodes)
    )
    return table


def compare(
    table: pd.DataFrame,
    query_id: str,
    document_id: str,
    query_weights: npt.ArrayLike | None = None,
    query_document_weight: float | None = None,
) -> Comparison:
    """Take the score of a document apart."""
    cosines = table.to_numpy()
    for post, count in ((query_id, cosines.shape[0]), (document_id, cosines.shape[1])):
        if not count:
            raise AlignmentError(post, "it has no vectors")
    weights = np.ones(len(cosines)) if query_weights is None else np.asarray(query_weights, dtype=np.float64)
    if weights.shape != (len(cosines),):
        raise AlignmentError(query_id, f"weights of shape {weights.shape} for {len(cosines)} rows")
    best = cosines.argmax(axis=1)
    terms = [
        Term(row, int(met), float(weight), float(weight * cosines[row, met]))
        for row, (met, weight) in enumerate(zip(best, weights, strict=True))
    ]
    if query_document_weight is not None:
        last = (len(cosines) - 1, cosines.shape[1] - 1)
        terms.append(Term(*last, float(query_document_weight), float(query_document_weight * cosines[last])))
    query, document = table.index.to_frame(index=False), table.columns.to_frame(index=False)
    return Comparison(query_id, document_id, query, document, cosines, terms)


def rounded(values: Sequence[float], digits: int) -> list[float]:
    """Round numbers so that their sum is the rounded sum: those whose rest is largest are rounded up."""
    unit = 10.0**-digits
    parts = [math.floor(value / unit) for value in values]
    missing = round(round(math.fsum(values), digits) / unit) - sum(parts)
    order = sorted(range(len(values)), key=lambda i: parts[i] - values[i] / unit)
    for i in order[:missing]:
        parts[i] += 1
    return [round(part * unit, digits) for part in parts]
