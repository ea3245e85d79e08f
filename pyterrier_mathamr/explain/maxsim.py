"""Which virtual nodes of a post contribute to its score: the best match of each of the query's.

MaxSim, S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc (MathAMR+, eq. 3.4), has a part for each node of the query::

    query                     document                   similarity   weight   contribution
    FORMULA_0  ∫ x ln x  ───▶ FORMULA_2  ∫ x ln x dx        0.98        1.0        0.98
    sentence 1           ───▶ sentence 3                    0.71        0.5        0.36
    document             ───▶ document                      0.80      1.0 + a      …

Where the query's document vector is nearest to the document's, both terms are one part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr.posts import MathPost, placeholder, plain_text

from .explanation import ExplainError, Explanation, Part, Reading

if TYPE_CHECKING:
    from pyterrier_mathamr.graph import MathAMRGraph

Embeddings = npt.NDArray[np.float32]


def misfit(post: str, reason: str) -> ExplainError:
    """Explain why vectors or weights do not belong to a graph."""
    return ExplainError(f"post {post!r}: {reason}. Give graphs and the vectors that one model computed from them.")


class Term(NamedTuple):
    """A term of a score: a node of the query, the most similar one of the document, and the factor of their cosine."""

    query_row: int
    document_row: int
    weight: float
    contribution: float


def maxsim_terms(
    cosines: npt.NDArray[np.float64], weights: npt.NDArray[np.float64] | None, document_weight: float | None
) -> list[Term]:
    """Split MaxSim into a term for each row of the query, and one of the document vectors if they are weighted."""
    factors = np.ones(len(cosines)) if weights is None else weights
    matched = cosines.argmax(axis=1)
    pairs = [(row, int(match), float(factor)) for row, (match, factor) in enumerate(zip(matched, factors, strict=True))]
    if document_weight is not None:
        pairs.append((len(cosines) - 1, cosines.shape[1] - 1, float(document_weight)))
    return [Term(row, match, factor, float(factor * cosines[row, match])) for row, match, factor in pairs]


class Nodes(NamedTuple):
    """The virtual nodes of a text, in the order of its vectors: kind, formula id and text of each."""

    kinds: list[str]
    formula_ids: list[str]
    texts: list[str]

    @classmethod
    def of(cls, rows: int, formula_ids: Sequence[str] | None = None, graph: MathAMRGraph | None = None) -> Nodes:
        if graph is not None:
            nodes = virtual_nodes(graph, rows, formulas=formula_ids is None or bool(len(formula_ids)))
            kinds, texts = nodes["kind"].tolist(), nodes["label"].tolist()
            if (reading := Reading.of_graph(graph)) is not None:
                written = [graph.text if kind == "document" else text for kind, text in zip(kinds, texts, strict=True)]
                texts = [
                    text if kind == "formula" else plain_text(replace(reading.post, text=text))
                    for kind, text in zip(kinds, written, strict=True)
                ]
            formula_ids = formula_ids if formula_ids is not None else graph.formula_ids
        else:
            named = min(len(formula_ids), rows - 1) if formula_ids is not None else 0
            other = "sentence" if formula_ids is not None else "formula or sentence"
            kinds, texts = ["formula"] * named + [other] * (rows - 1 - named) + ["document"], [""] * rows
        ids = [] if formula_ids is None else [str(name) for name in formula_ids[: kinds.count("formula")]]
        return cls(kinds, ids + [""] * (rows - len(ids)), texts)


class Side(NamedTuple):
    """Vectors of a query or of a document that are compared, float ``[p, d]``, and the node of each."""

    vectors: npt.NDArray[Any]
    rows: Sequence[int]
    nodes: Nodes


def maxsim_parts(
    system: str,
    query: Side,
    document: Side,
    weights: npt.NDArray[np.float64] | None = None,
    document_weight: float | None = None,
) -> list[Part]:
    """Split MaxSim into its parts."""
    cosines = query.vectors.astype(np.float64) @ document.vectors.astype(np.float64).T
    terms = maxsim_terms(cosines, weights, document_weight or None)
    if len(terms) > len(query.vectors) and terms[-1][:2] == terms[-2][:2]:  # two terms of the same vectors
        row, match, weight, _ = terms.pop()
        weight += terms.pop().weight
        terms.append(Term(row, match, weight, weight * float(cosines[row, match])))
    parts = []
    for term in terms:
        asked, matched = query.rows[term.query_row], document.rows[term.document_row]
        part = Part(
            system,
            query.nodes.kinds[asked],
            query.nodes.texts[asked],
            document.nodes.kinds[matched],
            document.nodes.texts[matched],
            float(cosines[term.query_row, term.document_row]),
            term.weight,
            term.contribution,
            asked,
            matched,
            query.nodes.formula_ids[asked],
            document.nodes.formula_ids[matched],
        )
        parts.append(part)
    return parts


def explain_maxsim(
    query_graph: MathAMRGraph,
    query_embs: Embeddings,
    doc_graph: MathAMRGraph,
    doc_embs: Embeddings,
    *,
    query_formula_ids: Sequence[str] | None = None,
    formula_ids: Sequence[str] | None = None,
    query_weights: npt.ArrayLike | None = None,
    query_document_weight: float | None = None,
    system: str = "MathAMR+",
) -> Explanation:
    """Explain MaxSim of a query and a document by their graphs and vectors (MathAMR+, eq. 3.4).

    Args:
        query_graph: graph of the query.
        query_embs: float32 ``[q, d]``, unit rows: formulas, sentences, document.
        doc_graph: graph of the document.
        doc_embs: float32 ``[n, d]``, the same of the document.
        query_formula_ids: the formulas that have rows; by default the graph's, none for a model without them.
        formula_ids: the document's formulas that have rows, likewise.
        query_weights: float ``[q]``, the weight of each row of the query; 1 by default.
        query_document_weight: the weight of the product of the two document vectors, added to MaxSim.
        system: the name of the system in the parts.

    Returns:
        The explanation; its score equals that of ``model.text_scorer()`` and of an index with these vectors.

    Raises:
        ExplainError: the rows do not fit their graph, the widths differ, or the document has no row.

    Example::

        query, document = graph_store.get_many(graph_store.ids()[:2])
        vectors = model.encode([query, document])
        print(explain.explain_maxsim(query, vectors[0], document, vectors[1]))
    """
    if not len(doc_embs) or query_embs.shape[1:] != doc_embs.shape[1:]:
        raise misfit(doc_graph.id, f"its vectors {doc_embs.shape} do not fit the query's {query_embs.shape}")
    weights = None if query_weights is None else np.asarray(query_weights, dtype=np.float64)
    if weights is not None and weights.shape != (len(query_embs),):
        raise misfit(query_graph.id, f"weights of shape {weights.shape} for {len(query_embs)} rows")
    readings = Reading.of_graph(query_graph), Reading.of_graph(doc_graph)
    if not len(query_embs):
        return Explanation.of(doc_graph.id, [], *readings)
    query = Side(query_embs, range(len(query_embs)), Nodes.of(len(query_embs), query_formula_ids, query_graph))
    document = Side(doc_embs, range(len(doc_embs)), Nodes.of(len(doc_embs), formula_ids, doc_graph))
    parts = maxsim_parts(system, query, document, weights, query_document_weight)
    return Explanation.of(doc_graph.id, parts, *readings)


def virtual_nodes(
    graph: MathAMRGraph, rows: int, post: MathPost | None = None, *, formulas: bool = True
) -> pd.DataFrame:
    """Name the virtual nodes of a graph in the order of its vectors.

    Args:
        graph: of a post.
        rows: the number of vectors of the post: its formulas and sentences, with or without the document.
        post: the text and LaTeX; by default from the graph. Without texts, formulas are named by placeholder and id,
            sentences by number.
        formulas: whether formulas have vectors.

    Returns:
        ``row``, ``kind`` (``formula``, ``sentence`` or ``document``), ``label``.

    Raises:
        ExplainError: the number of rows does not fit the graph.
    """
    first, sentences = graph.n_formulas if formulas else 0, graph.n_sentences
    if rows not in (first + sentences, first + sentences + 1):
        raise misfit(graph.id, f"{rows} vectors for {first} formulas, {sentences} sentences and the document")
    labels = []
    for number in range(first):
        label = placeholder(number)
        if post is not None and number < len(post.formulas):
            label = post.formulas[number].latex
        elif number < len(graph.latex) and graph.latex[number]:
            label = graph.latex[number]
        elif graph.formula_ids[number]:
            label = f"{label} ({graph.formula_ids[number]})"
        labels.append(("formula", label))
    texts: Sequence[str] = graph.sentence_texts if post is None else post.sentences
    if len(texts) != sentences:  # the parser did not keep their number
        texts = [f"sentence {number}" for number in range(1, sentences + 1)]
    labels += [("sentence", text) for text in texts]
    labels += [("document", graph.id or "document")] * (rows - len(labels))
    rows_named = [(row, kind, label) for row, (kind, label) in enumerate(labels)]
    table: pd.DataFrame = pd.DataFrame(rows_named, columns=["row", "kind", "label"])
    return table


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
        ExplainError: the vectors do not belong to the graphs, or their widths differ.
    """
    query_nodes = virtual_nodes(query_graph, len(query_embs), query_post)
    doc_nodes = virtual_nodes(doc_graph, len(doc_embs), doc_post)
    if query_embs.shape[1:] != doc_embs.shape[1:]:
        raise misfit(doc_graph.id, f"its vectors {doc_embs.shape} do not fit the query's {query_embs.shape}")
    cosines = np.asarray(query_embs, dtype=np.float64) @ np.asarray(doc_embs, dtype=np.float64).T
    table: pd.DataFrame = pd.DataFrame(
        cosines, pd.MultiIndex.from_frame(query_nodes), pd.MultiIndex.from_frame(doc_nodes)
    )
    return table
