"""Why a document has its score: the virtual node that each node of the query met, and its contribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from .errors import QueryError
from .protocols import SearchableSnapshot
from .search.queries import check_document_weight, check_query, check_weights

if TYPE_CHECKING:
    from pyterrier_mathamr.graph import MathAMRGraph


class RowNames(NamedTuple):
    """The kind of each row of a query or document, the id of its formula and its text, empty where not known."""

    kinds: list[str]
    formula_ids: list[str]
    texts: list[str]

    def columns(self, side: str, rows: Any) -> dict[str, Any]:
        """Return the columns of some of the rows: ``query_row``, ``query_kind`` and so on."""
        named = {f"{side}_row": rows}
        for name, values in zip(("kind", "formula_id", "text"), self, strict=True):
            named[f"{side}_{name}"] = [values[row] for row in rows]
        return named


def name_rows(
    side: str,
    rows: int,
    formula_ids: Sequence[str] | None,
    graph: MathAMRGraph | None,
    texts: Sequence[str] | None,
) -> RowNames:
    """Name the rows: formulas first, then sentences, the document last.

    Args:
        side: ``query`` or ``document``, for errors.
        rows: how many there are, at least 1.
        formula_ids: of the first rows; by default those of the graph. Without either, the kind of all but the last
            row is ``formula or sentence``.
        graph: the graph of the rows; its LaTeX and sentences are the texts.
        texts: in place of those of the graph.

    Raises:
        QueryError: the graph has another number of virtual nodes.
        GraphError: the graph has no texts, and none are given.
    """
    formulas = None if formula_ids is None else min(len(formula_ids), rows - 1)
    if graph is not None:
        formulas, sentences = graph.n_formulas, graph.n_sentences
        if formulas + sentences + 1 != rows:
            nodes = f"{formulas} formulas, {sentences} sentences and the document"
            raise QueryError("explained", f"{side}_graph has {nodes}, but the {side} has {rows} rows")
        formula_ids = formula_ids if formula_ids is not None else graph.formula_ids
        texts = _texts_of(graph) if texts is None else texts
    if formulas is None:
        named = ["formula or sentence"] * (rows - 1)
    else:
        named = ["formula"] * formulas + ["sentence"] * (rows - 1 - formulas)
    return RowNames([*named, "document"], _filled(formula_ids, rows), _filled(texts, rows))


def explain(
    snapshot: SearchableSnapshot,
    query_embs: Any,
    docno: str,
    *,
    query_formula_ids: Sequence[str] | None = None,
    document_formula_ids: Sequence[str] | None = None,
    query_weights: Any = None,
    query_document_weight: float | None = None,
    query_graph: MathAMRGraph | None = None,
    document_graph: MathAMRGraph | None = None,
    query_texts: Sequence[str] | None = None,
    document_texts: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Split S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc into its terms (eq. 3.4); see ``MathAMRIndex.explain``."""
    query = check_query("explained", query_embs, snapshot).astype(np.float64)
    if not len(query):
        raise QueryError("explained", "query_embs has no rows")
    rows, _ = snapshot.rows(snapshot.find([docno]))
    weights = check_weights("explained", query_weights, len(query))
    similarities = query @ rows.astype(np.float64).T  # [q, n]
    met = similarities.argmax(axis=1)
    of_terms, terms = np.arange(len(query)), ["MaxSim"] * len(query)
    if query_document_weight is not None:
        of_terms, met = np.append(of_terms, len(query) - 1), np.append(met, len(rows) - 1)
        weights = np.append(weights, check_document_weight("explained", query_document_weight))
        terms.append("document")
    best = similarities[of_terms, met]
    columns = {
        "term": terms,
        **name_rows("query", len(query), query_formula_ids, query_graph, query_texts).columns("query", of_terms),
        **name_rows("document", len(rows), document_formula_ids, document_graph, document_texts).columns(
            "document", met
        ),
        "similarity": best,
        "weight": weights,
        "contribution": weights * best,
    }
    frame = pd.DataFrame(columns)
    result: pd.DataFrame = frame.sort_values("contribution", ascending=False, kind="stable", ignore_index=True)
    return result


def _texts_of(graph: MathAMRGraph) -> list[str]:
    """Return the text of each virtual node of a graph, in the order of its vectors."""
    from pyterrier_mathamr.graph import VirtualKind, row_texts  # loads torch, which opening an index does not need

    counts = {VirtualKind.FORMULA: graph.n_formulas, VirtualKind.SENTENCE: graph.n_sentences, VirtualKind.DOCUMENT: 1}
    return row_texts(graph, [kind for kind, count in counts.items() for _ in range(count)])


def _filled(names: Sequence[str] | None, rows: int) -> list[str]:
    """Return a name for each row, empty where it has none."""
    known = [] if names is None else [str(name) for name in names[:rows]]
    return known + [""] * (rows - len(known))
