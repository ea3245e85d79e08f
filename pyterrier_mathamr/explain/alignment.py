"""Which virtual nodes of a post contribute to its score: the best match of each of the query's.

A row for each virtual node of the query::

    query                     document                   similarity   share of the score
    FORMULA_0  ∫ x ln x  ───▶ FORMULA_2  ∫ x ln x dx        0.98         0.21
    sentence 1           ───▶ sentence 3                    0.71         0.15
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr.graph import MathAMRGraph, VirtualKind
from pyterrier_mathamr.posts import MathPost, placeholder

from .errors import AlignmentError

Embeddings = npt.NDArray[np.float32]


def alignment(
    query_graph: MathAMRGraph,
    query_embs: Embeddings,
    doc_graph: MathAMRGraph,
    doc_embs: Embeddings,
    *,
    query_post: MathPost | None = None,
    doc_post: MathPost | None = None,
    query_weights: npt.ArrayLike | None = None,
    query_document_weight: float | None = None,
) -> pd.DataFrame:
    """Align each virtual node of a query with the document's most similar one (MathAMR+, eq. 3.4).

    Args:
        query_graph: graph of the query.
        query_embs: float32 ``[q, d]``, unit rows: formulas, sentences, document.
        doc_graph: graph of the document.
        doc_embs: float32 ``[n, d]``, the same of the document.
        query_post: the query's text and LaTeX, for the labels.
        doc_post: the document's.
        query_weights: float ``[q]``, the weight of each row of the query; 1 by default.
        query_document_weight: the weight of the product of the two document vectors, added to MaxSim; it adds a last
            row to the table.

    Returns:
        A row for each virtual node of the query, in its order: ``query_row``, ``query_kind``, ``query_label``,
        ``doc_row``, ``doc_kind``, ``doc_label``, ``similarity`` (float, -1 to 1; of equal ones the first), and
        ``contribution`` (float), its weighted share of the score; the shares add up to 1, or are all 0 where the score
        is 0.

    Raises:
        AlignmentError: the rows are not those of the graph, the widths differ, or the document has no row.
    """
    query_nodes = virtual_nodes(query_graph, len(query_embs), query_post)
    doc_nodes = virtual_nodes(doc_graph, len(doc_embs), doc_post)
    if not len(doc_embs) or query_embs.shape[1:] != doc_embs.shape[1:]:
        raise AlignmentError(doc_graph.id, f"its vectors {doc_embs.shape} do not fit the query's {query_embs.shape}")
    similarities = query_embs @ doc_embs.T  # [q, n]
    best = similarities.argmax(axis=1)  # [q]
    rows, weights = np.arange(len(best)), np.ones(len(best)) if query_weights is None else np.asarray(query_weights)
    if weights.shape != rows.shape:
        raise AlignmentError(query_graph.id, f"weights of shape {weights.shape} for {len(rows)} rows")
    if query_document_weight is not None:
        rows, best = np.append(rows, len(query_embs) - 1), np.append(best, len(doc_embs) - 1)
        weights = np.append(weights, query_document_weight)
    similarity = similarities[rows, best].astype(np.float64)
    parts = similarity * weights
    score = parts.sum()
    asked = query_nodes.iloc[rows].reset_index(drop=True)
    matched = doc_nodes.iloc[best].reset_index(drop=True)
    result: pd.DataFrame = pd.concat([asked.add_prefix("query_"), matched.add_prefix("doc_")], axis="columns").assign(
        similarity=similarity, contribution=parts / score if score else 0.0
    )
    return result


def virtual_nodes(graph: MathAMRGraph, rows: int, post: MathPost | None = None) -> pd.DataFrame:
    """Name the virtual nodes of a graph in the order of its vectors.

    Args:
        graph: of a post.
        rows: the number of vectors of the post: its formulas and sentences, with or without the document.
        post: the text and LaTeX; by default those in the graph. Without texts formulas are named by placeholder and id,
            sentences by number.

    Returns:
        ``row``, ``kind`` (``formula``, ``sentence`` or ``document``), ``label``.

    Raises:
        AlignmentError: the number of rows does not fit the graph.
    """
    formulas, sentences = graph.n_formulas, graph.n_sentences
    if rows not in (formulas + sentences, formulas + sentences + 1):
        raise AlignmentError(
            graph.id, f"{rows} vectors for {formulas} formulas, {sentences} sentences and the document"
        )
    labels = [(VirtualKind.FORMULA, _formula_label(graph, number, post)) for number in range(formulas)]
    labels += [(VirtualKind.SENTENCE, text) for text in _sentence_labels(graph, sentences, post)]
    labels += [(VirtualKind.DOCUMENT, graph.id or "document")] * (rows - len(labels))
    rows_named = [(row, kind.name.lower(), label) for row, (kind, label) in enumerate(labels)]
    table: pd.DataFrame = pd.DataFrame(rows_named, columns=["row", "kind", "label"])
    return table


def _formula_label(graph: MathAMRGraph, number: int, post: MathPost | None) -> str:
    if post is not None and number < len(post.formulas):
        return post.formulas[number].latex
    if number < len(graph.latex) and graph.latex[number]:
        return graph.latex[number]
    formula_id = graph.formula_ids[number]
    return f"{placeholder(number)} ({formula_id})" if formula_id else placeholder(number)


def _sentence_labels(graph: MathAMRGraph, sentences: int, post: MathPost | None) -> list[str]:
    """Return the sentences of the text if the parser kept their number, else numbers."""
    texts = graph.sentence_texts if post is None else post.sentences
    if len(texts) == sentences:
        return list(texts)
    return [f"sentence {number}" for number in range(1, sentences + 1)]
