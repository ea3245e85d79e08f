"""DataFrames of transformers: each query once, objects as a column, the empty frame.

Three properties of PyTerrier's frames are handled here and nowhere else::

    qid  query   query_graph  docno        after ``bm25 + mathamr`` and ``bm25 | mathamr`` the query's columns are
    1    "sum…"  NaN          d3           NaN on the rows of the other branch: take the first value;
    1    NaN     <graph>      d7           a ranking repeats its query in each row: encode it once, join it back;
    2    "lim…"  <graph>      d3           a column of arrays of one shape is stacked by pandas unless given as objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .errors import MathAMRError, listed

_DTYPES = {
    **dict.fromkeys(("score", "qq_score", "tag_overlap"), "float64"),
    **dict.fromkeys(("rank", "votes", "comments", "accepted"), "int64"),
    **dict.fromkeys(("docno", "post_id", "visual_id", "question_docno"), "str"),
}


class MissingValueError(MathAMRError):
    """A column that is needed has no value in any row of some queries or documents."""

    column: str
    key: str
    ids: Sequence[str]
    template = "column {column!r} is empty in every row of {shown}."
    advice = "Put the transformer that adds {column!r} before this one, in every branch of the pipeline."

    @property
    def shown(self) -> str:
        """The number and kind of the ids, and the first few."""
        return f"{len(self.ids)} {self.key}: {listed(self.ids)}"


def documents(stream: pd.DataFrame | Iterable[Mapping[Any, Any]]) -> Iterable[dict[str, Any]]:
    """Iterate over the rows of a frame, or over dictionaries."""
    if isinstance(stream, pd.DataFrame):
        return (dict(zip(stream.columns, row, strict=True)) for row in stream.itertuples(index=False, name=None))
    return stream  # type: ignore[return-value]


def is_missing(value: Any) -> bool:
    """Whether a cell is empty: ``None``, ``NaN``, ``NaT`` or ``pd.NA``; an array or another object never is."""
    return value is None or (pd.api.types.is_scalar(value) and bool(pd.isna(value)))


def first_values(frame: pd.DataFrame, column: str, key: str = "qid") -> dict[str, Any]:
    """Return the first value of each key that is not empty."""
    values: dict[str, Any] = {}
    for name, value in zip(frame[key].tolist(), frame[column].tolist(), strict=True):
        if values.get(name) is None:
            values[name] = None if is_missing(value) else value
    return {name: value for name, value in values.items() if value is not None}


def with_objects(frame: pd.DataFrame, **columns: Sequence[object] | str | float) -> pd.DataFrame:
    """Add columns of Python objects, one object a row, arrays included."""
    added: dict[str, Any] = {}
    for name, values in columns.items():
        if isinstance(values, str | float):
            added[name] = values
            continue
        cells = np.empty(len(values), dtype=object)
        for row, value in enumerate(values):  # a slice assignment would unpack arrays of one shape
            cells[row] = value
        added[name] = pd.Series(cells, index=frame.index, dtype=object)
    if any(name in frame.columns for name in added):
        result: pd.DataFrame = frame.assign(**added)
        return result
    # at once: `assign` would rebuild the index of the columns for each of them
    return pd.concat([frame, pd.DataFrame(added, index=frame.index)], axis=1)


def join_values(frame: pd.DataFrame, name: str, values: Mapping[str, object], key: str = "qid") -> pd.DataFrame:
    """Add to each row the object of its key."""
    _check_values(frame, name, key, values)
    return with_objects(frame, **{name: [values[wanted] for wanted in frame[key].tolist()]})


def given_values(frame: pd.DataFrame, column: str, key: str = "qid") -> dict[str, Any]:
    """Return the first value of each distinct key, which must have one."""
    values = first_values(frame, column, key)
    _check_values(frame, column, key, values)
    return values


def encoded_values(
    frame: pd.DataFrame, column: str, encode: Callable[[list[Any]], Sequence[object]], key: str = "qid"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Encode the value of each distinct key once; return key to value and key to result, for :func:`join_values`."""
    values = given_values(frame, column, key)
    results = encode(list(values.values())) if values else []
    return values, dict(zip(values, results, strict=True))


def _check_values(frame: pd.DataFrame, column: str, key: str, values: Mapping[str, object]) -> None:
    if missing := [wanted for wanted in dict.fromkeys(frame[key].tolist()) if wanted not in values]:
        raise MissingValueError(column, key, missing)


def ordered_by_score(frame: pd.DataFrame, scores: Any) -> pd.DataFrame:
    """Give the rows of a ranking new scores, and order them: by query in order, score descending, then docno."""
    queries, docnos = pd.factorize(frame["qid"])[0], pd.factorize(frame["docno"])
    names, by_name = docnos[1].tolist(), np.empty(len(docnos[1]), dtype=np.int64)
    by_name[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    scores = np.asarray(scores)
    order = np.lexsort((by_name[docnos[0]], -scores, queries))
    starts = np.searchsorted(queries[order], queries[order])
    ranks = np.arange(len(order), dtype=np.int64) - starts
    return frame.iloc[order].reset_index(drop=True).assign(score=scores[order], rank=ranks)


def best_places(scores: Any, count: int, names: Callable[[Any], list[str]]) -> Any:
    """Find the rows of the best ``count`` scores: the greatest first, equal ones by docno.

    ``names`` returns the docnos of rows; it is asked only about rows whose scores are tied.
    """
    rows = np.arange(len(scores))
    if len(scores) > count:
        least = len(scores) - count
        rows = np.flatnonzero(scores >= np.partition(scores, least)[least])
    ordered = rows[np.argsort(-scores[rows], kind="stable")]
    equal = scores[ordered[1:]] == scores[ordered[:-1]]
    if equal.any():
        tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        among = ordered[tied]
        keys = [name.encode("utf-8", "surrogatepass") for name in names(among)]
        by_name = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
        ordered[tied] = among[by_name[np.argsort(-scores[among[by_name]], kind="stable")]]
    return ordered[:count]


def ranking_frame(
    queries: pd.DataFrame, results: Sequence[tuple[Any, Any]], **texts: Callable[[Any], Any]
) -> pd.DataFrame:
    """Repeat each query's row for each of its ``results``, pairs of numbers and scores; ``texts`` read the numbers."""
    lengths, numbers = [len(hits) for hits, _ in results], np.concatenate([hits for hits, _ in results])
    repeated = queries.iloc[np.repeat(np.arange(len(queries)), lengths)].reset_index(drop=True)
    if not len(numbers):
        return empty_output(repeated, [*texts, "score", "rank"])
    return repeated.assign(
        **{column: _texts(read(numbers)) for column, read in texts.items()},
        score=np.concatenate([scores for _, scores in results]).astype(np.float64),
        rank=np.concatenate([np.arange(length, dtype=np.int64) for length in lengths]),
    )


def _texts(texts: Sequence[str]) -> pd.Series[str]:
    """Make a column of texts, also of ids with lone surrogates, which pandas' texts refuse."""
    try:
        return pd.Series(texts)
    except UnicodeEncodeError:
        return pd.Series(texts, dtype=object)


def empty_output(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Add to an empty frame the columns that a transformer would add, so that inspection sees them."""
    added = {name: pd.Series([], dtype=_DTYPES.get(name, "object")) for name in columns}
    result: pd.DataFrame = frame.assign(**added)
    return result


QUERY_ROWS = ("query_embs", "query_model", "query_formula_ids", "query_weights", "query_document_weight")
"""The vectors of queries and what describes them."""


def without_query_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out the rows of queries that another encoder added, with their weights and the names of their formulas."""
    return frame.drop(columns=[name for name in QUERY_ROWS if name in frame.columns])
