"""From a PyTerrier frame to a batch of queries, each distinct query once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.frames import MissingValueError, first_values
from pyterrier_mathamr.index.errors import QueryError, check_model
from pyterrier_mathamr.index.protocols import Rows, Searched, Weights

from .maxsim import QueryBatch

MODEL_COLUMN = "query_model"
"""The identity of the model that made ``query_embs``; compared with the index's where a frame has the column."""

WEIGHTS_COLUMN = "query_weights"
"""A weight for each row of ``query_embs``; where a frame has the column, S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ."""

DOCUMENT_WEIGHT_COLUMN = "query_document_weight"
"""A number a; where a frame has the column, a (q_doc · d_doc) is added to S(Q, D)."""


def query_values(frame: pd.DataFrame, snapshot: Searched, column: str = "query_embs") -> dict[str, Any]:
    """The first value of each distinct query, in order of appearance.

    Raises:
        MissingValueError: a query has no value in any of its rows.
        ModelMismatchError: the frame says that another model than the index's made the vectors.
    """
    values = first_values(frame, column)
    if missing := [qid for qid in dict.fromkeys(frame["qid"]) if qid not in values]:
        raise MissingValueError(column, "qid", missing)
    if MODEL_COLUMN in frame.columns:
        for model in first_values(frame, MODEL_COLUMN).values():
            check_model(snapshot.path, snapshot.meta.model, str(model))
    return values


def query_batch(frame: pd.DataFrame, snapshot: Searched, *, normalise: bool = False) -> QueryBatch:
    """All distinct queries of a frame in order of appearance, with their weights where it has columns of weights.

    Args:
        frame: at least one row, with ``qid`` and ``query_embs`` (empty cells are filled from the query's other rows).
        snapshot: the index that is searched.
        normalise: divide each score by the query's number of rows (MathAMR+, eq. 3.7).

    Raises:
        QueryError: the vectors of a query are not ``[q, d]`` finite numbers of the index's width, or its weights do
            not fit them.
        MissingValueError: as :func:`query_values`.
        ModelMismatchError: as :func:`query_values`.
    """
    values = query_values(frame, snapshot)
    rows = [check_query(qid, value, snapshot) for qid, value in values.items()]
    parts = np.array([len(of) if normalise else 1 for of in rows])
    weights = blend = None
    if WEIGHTS_COLUMN in frame.columns or normalise:
        given = first_values(frame, WEIGHTS_COLUMN) if WEIGHTS_COLUMN in frame.columns else {}
        of_rows = [check_weights(qid, given.get(qid), len(of)) for qid, of in zip(values, rows, strict=True)]
        weights = np.concatenate([of / part for of, part in zip(of_rows, parts, strict=True)])
    if DOCUMENT_WEIGHT_COLUMN in frame.columns:
        given = first_values(frame, DOCUMENT_WEIGHT_COLUMN)
        blend = np.array([check_document_weight(qid, given.get(qid)) for qid in values]) / parts
    return batch_of(rows, weights, blend)


def formula_batch(queries: pd.DataFrame, snapshot: Searched) -> QueryBatch:
    """The vector of the formula that each distinct query asks for, in order of appearance.

    Args:
        queries: ``qid``, ``query_embs``, ``query_formula_ids`` and ``query_formula_id``.
        snapshot: the index that is searched.

    Raises:
        MissingValueError: a query lacks one of them in all its rows.
        QueryError: the formula is not among the query's.
    """
    values = query_values(queries, snapshot)
    ids, asked = first_values(queries, "query_formula_ids"), first_values(queries, "query_formula_id")
    for name, found in (("query_formula_ids", ids), ("query_formula_id", asked)):
        if missing := [qid for qid in values if qid not in found]:
            raise MissingValueError(name, "qid", missing)
    rows = [formula_row(qid, check_query(qid, of, snapshot), ids[qid], asked[qid]) for qid, of in values.items()]
    return batch_of(rows)


def formula_row(qid: str, rows: Any, ids: Sequence[str], asked: str) -> Any:
    """The row of the formula that is asked for: float32 ``[1, d]``.

    Raises:
        QueryError: it is not among the query's formulas, or these are more than the rows.
    """
    known = [str(formula) for formula in ids]
    if str(asked) not in known:
        raise QueryError(qid, f"formula {asked!r} is not among its formulas: {', '.join(known[:5]) or 'it has none'}")
    row = known.index(str(asked))
    if row >= len(rows):
        raise QueryError(qid, f"formula {asked!r} is number {row}, but query_embs has {len(rows)} rows")
    return rows[row : row + 1]


def batch_of(
    rows: Sequence[Rows], weights: Weights | None = None, document_weights: Weights | None = None
) -> QueryBatch:
    """Lay the rows of queries end to end."""
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return QueryBatch(np.concatenate(rows), offsets, weights, document_weights)


def check_query(qid: str, value: Any, snapshot: Searched) -> Rows:
    """Take one query's embeddings as float32 rows of the index's width.

    Raises:
        QueryError: they are something else.
    """
    try:
        rows = np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise QueryError(qid, f"query_embs is not an array of numbers ({error})") from error
    if rows.ndim != 2 or 0 in rows.shape:
        raise QueryError(qid, f"query_embs has shape {rows.shape}, not [rows, dimensions] with at least one row")
    width = snapshot.meta.dimensions
    if width and rows.shape[1] != width:
        raise QueryError(qid, f"query_embs has {rows.shape[1]} dimensions, the index {snapshot.path} has {width}")
    with np.errstate(over="ignore"):
        if not np.isfinite(np.einsum("ij,ij->", rows, rows)):
            raise QueryError(qid, "query_embs holds NaN, infinity or numbers too large for float32")
    return rows


def check_weights(qid: str, value: Any, rows: int) -> Weights:
    """Take one query's weights as float64 ``[q]``; all are 1 where none are given.

    Raises:
        QueryError: there is not one finite number for each row.
    """
    if value is None:
        return np.ones(rows, dtype=np.float64)
    weights = np.asarray(value, dtype=np.float64)
    if weights.shape != (rows,) or not np.isfinite(weights).all():
        raise QueryError(qid, f"query_weights has shape {weights.shape}, not one finite number for each of {rows} rows")
    return weights


def check_document_weight(qid: str, value: Any) -> float:
    """Take what the product of the document vectors counts for one query; 0 where nothing is given.

    Raises:
        QueryError: it is no finite number.
    """
    try:
        weight = 0.0 if value is None else float(value)
    except (TypeError, ValueError) as error:
        raise QueryError(qid, f"{DOCUMENT_WEIGHT_COLUMN} is {value!r}, not a number") from error
    if not np.isfinite(weight):
        raise QueryError(qid, f"{DOCUMENT_WEIGHT_COLUMN} is {value!r}, not a finite number")
    return weight
