"""Why a document has its score: which virtual node of it each node of the query met, and what that gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .queries import check_document_weight, check_query, check_weights
from .searched import Searched


def kinds(rows: int, formulas: int | None) -> list[str]:
    """What each row is: formulas first, then sentences, the document last.

    Args:
        rows: how many rows, at least 1.
        formulas: how many of them are formulas; ``None`` where it is not known.

    Returns:
        ``formula``, ``sentence``, ``document``, or ``formula or sentence``, one for each row.
    """
    if formulas is None:
        return ["formula or sentence"] * (rows - 1) + ["document"]
    formulas = min(formulas, rows - 1)
    return ["formula"] * formulas + ["sentence"] * (rows - 1 - formulas) + ["document"]


def explain(
    snapshot: Searched,
    query_embs: Any,
    docno: str,
    *,
    query_formula_ids: Sequence[str] | None,
    document_formula_ids: Sequence[str] | None,
    query_weights: Any = None,
    query_document_weight: float | None = None,
    query_texts: Sequence[str] | None = None,
    document_texts: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Take S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc apart (MathAMR+, eq. 3.4); see ``MathAMRIndex.explain``."""
    query = check_query("explained", query_embs, snapshot).astype(np.float64)
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
    of_query = kinds(len(query), None if query_formula_ids is None else len(query_formula_ids))
    of_document = kinds(len(rows), None if document_formula_ids is None else len(document_formula_ids))
    columns: dict[str, Any] = {
        "term": terms,
        "query_row": of_terms,
        "query_kind": [of_query[row] for row in of_terms],
        "query_formula_id": _names(query_formula_ids, of_terms),
        "document_row": met,
        "document_kind": [of_document[row] for row in met],
        "document_formula_id": _names(document_formula_ids, met),
        "similarity": best,
        "weight": weights,
        "contribution": weights * best,
    }
    if query_texts is not None:
        columns["query_text"] = _names(query_texts, of_terms)
    if document_texts is not None:
        columns["document_text"] = _names(document_texts, met)
    frame = pd.DataFrame(columns)
    result: pd.DataFrame = frame.sort_values("contribution", ascending=False, kind="stable", ignore_index=True)
    return result


def _names(names: Sequence[str] | None, rows: Sequence[int] | Any) -> list[str]:
    """The name of each row, empty where it has none."""
    return [str(names[row]) if names is not None and row < len(names) else "" for row in rows]
