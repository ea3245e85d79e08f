"""The time of a query, from its text to its ranking: encoding, search, and their sum."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt

TIMED_QUERIES = 50


class Way(NamedTuple):
    """A system in the two parts that are timed.

    Attributes:
        search: from topics, encoded if there is an encoder, to a ranking.
        encode: from topics to encoded topics; ``None`` for a system that reads the text itself, such as BM25.
    """

    search: pt.Transformer
    encode: pt.Transformer | None = None


def time_queries(ways: Mapping[str, Way], topics: pd.DataFrame, *, most: int = TIMED_QUERIES) -> pd.DataFrame:
    """Answer queries one at a time with each system."""
    queries = [topics.iloc[[row]] for row in range(min(most, len(topics)))]
    encoders = {id(way.encode): way.encode for way in ways.values() if way.encode is not None}
    encoded = {key: _timed(encoder, queries) for key, encoder in encoders.items()}
    plain = queries, np.zeros(len(queries))
    rows = []
    for name, way in ways.items():
        inputs, encoding = encoded[id(way.encode)] if way.encode is not None else plain
        _, searching = _timed(way.search, inputs)
        total = encoding + searching
        if len(queries):
            half, most_of_them = np.percentile(total, (50, 95))
            rows.append((name, len(queries), encoding.mean(), searching.mean(), total.mean(), half, most_of_them))
    columns = ["name", "queries", "encoding ms", "search ms", "ms per query", "p50 ms", "p95 ms"]
    table: pd.DataFrame = pd.DataFrame(rows, columns=columns)
    return table


def _timed(transformer: pt.Transformer, queries: list[pd.DataFrame]) -> tuple[list[pd.DataFrame], np.ndarray]:
    """Transform queries one at a time, and return the results and the milliseconds of each: float64 ``[queries]``."""
    if queries:
        transformer(queries[0])  # opens files and builds what is built on first use
    found, times = [], []
    for query in queries:
        start = time.perf_counter()
        found.append(transformer(query))
        times.append(1000 * (time.perf_counter() - start))
    return found, np.array(times, dtype=np.float64)
