"""Code shared by benchmarks over pairs of formula trees: their data, and the comparison with a plain implementation."""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pyterrier_mathamr.formula import FormulaTree

Kind = Literal["slt", "opt"]
Scored = Callable[[FormulaTree], Any]
"""A query to the scores of all candidates."""


def collections(about: str | None, queries: int) -> Iterator[tuple[Kind, list[FormulaTree], list[FormulaTree]]]:
    """Read the arguments of a command, then layout trees and operator trees: the queries and all candidates.

    Args:
        about: the help of the command.
        queries: the number of queries, unless ``--queries`` sets it.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--queries", type=int, default=queries)
    arguments = parser.parse_args()
    kinds: tuple[Kind, ...] = ("slt", "opt")
    for kind in kinds:
        by_topic, candidates = _read(arguments.data, kind)
        yield kind, list(by_topic.values())[: arguments.queries], candidates


def compare(kind: Kind, queries: Sequence[FormulaTree], pairs: int, ours: Scored, plain: Scored, name: str) -> None:
    """Time both on the same queries in turn, and print CPU times and the largest difference.

    Args:
        kind: of the trees.
        queries: at least one.
        pairs: candidates of each.
        ours: the package's.
        plain: the implementation to compare with.
        name: its name.
    """
    seconds, differ = np.zeros(2), 0.0
    for query in queries:
        spent, scores = zip(*(_timed(run, query) for run in (ours, plain)), strict=True)
        seconds += spent
        differ = max(differ, float(np.abs(scores[0] - scores[1]).max()))
    fast, slow = 1000 * seconds / len(queries)
    print(
        f"{kind}  ours {fast / pairs:.3f} ms a pair  {name} {slow / pairs:.3f} ms  {slow / fast:.1f} times  "
        f"a query with {pairs} candidates {fast:.0f} ms  largest difference {differ:g}"
    )


def _read(data: Path, kind: Kind) -> tuple[dict[str, FormulaTree], list[FormulaTree]]:
    """Read the queries by topic, and the candidates."""
    queries, candidates = {}, []
    with gzip.open(data / "tangent-s-scores" / f"{kind}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            query, candidate = (
                FormulaTree(tuple(row[side]["nodes"]), tuple(map(tuple, row[side]["edges"])), kind=kind)
                for side in ("query", "candidate")
            )
            queries[row["topic"]] = query
            candidates.append(candidate)
    return queries, candidates


def _timed(run: Scored, query: FormulaTree) -> tuple[float, np.ndarray[Any, Any]]:
    """Return seconds of CPU time and the scores."""
    start = time.process_time()
    scores = np.asarray(run(query))
    return time.process_time() - start, scores
