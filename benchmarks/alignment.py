"""The alignment of Tangent-S against its rules written plainly: milliseconds a pair, and whether both agree.

    python benchmarks/alignment.py DATA [--queries 12]

``DATA`` is a folder with ``tangent-s-scores/``. Each query is aligned with 491 candidates, packed once. CPU time of one
core; both run on the same pairs in turn.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyterrier_mathamr.formula import FormulaTree
from pyterrier_mathamr.systems.tangent_s import align
from pyterrier_mathamr.systems.tangent_s.counts import Labels
from pyterrier_mathamr.systems.trees import PackedTrees

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "systems" / "tangent_s"))
from tangent_s_plain import PlainAlignment


def read(data: Path, kind: Any) -> tuple[dict[str, FormulaTree], list[FormulaTree]]:
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


def plainly(query: FormulaTree, candidates: Sequence[FormulaTree]) -> list[tuple[float, float, float]]:
    """Align pair by pair."""
    return [PlainAlignment(query, candidate).scores() for candidate in candidates]


def timed(run: Callable[..., Any], *arguments: Any) -> tuple[float, np.ndarray[Any, Any]]:
    """Return seconds of CPU time and the result."""
    start = time.process_time()
    result = np.asarray(run(*arguments))
    return time.process_time() - start, result


def main() -> None:
    """Print a line for each kind of tree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--queries", type=int, default=12)
    arguments = parser.parse_args()
    for kind in ("slt", "opt"):
        queries, candidates = read(arguments.data, kind)
        packed = PackedTrees.of_trees(candidates, kind)
        labels, rows = Labels(packed.names), np.arange(len(candidates))
        ours = plain = differ = 0.0
        some = list(queries.values())[: arguments.queries]
        for query in some:
            seconds, fast = timed(align, query, packed, rows, labels)
            ours += seconds
            seconds, slow = timed(plainly, query, candidates)
            plain += seconds
            differ = max(differ, float(np.abs(fast - slow).max()))
        pairs = len(some) * len(candidates) / 1000
        print(
            f"{kind}  ours {ours / pairs:.3f} ms a pair  plain {plain / pairs:.3f} ms  {plain / ours:.1f} times  ",
            end="",
        )
        print(
            f"a query with {len(candidates)} candidates {1000 * ours / len(some):.0f} ms  largest difference {differ:g}"
        )


if __name__ == "__main__":
    main()
