"""The edit distance of formula trees against apted: milliseconds a pair, and whether both agree.

    python benchmarks/edit_distance.py DATA [--queries 3]

``DATA`` is a folder with ``tangent-s-scores/``. Each query is compared with 491 candidates, packed once; apted gets its
trees made. CPU time of one core; both run on the same pairs in turn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from alignment import read, timed

from pyterrier_mathamr.formula import FormulaTree
from pyterrier_mathamr.systems.edit_distance import EditCosts, tree_edit_distances
from pyterrier_mathamr.systems.trees import PackedTrees

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "systems" / "edit_distance"))
from test_edit_distance import judged

COSTS = EditCosts(0.85, 0.54, 0.15)


def by_apted(query: FormulaTree, candidates: Sequence[FormulaTree]) -> list[float]:
    """Compare pair by pair."""
    return [judged(query, candidate, COSTS) for candidate in candidates]


def main() -> None:
    """Print a line for each kind of tree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--queries", type=int, default=3)
    arguments = parser.parse_args()
    kinds: tuple[Any, ...] = ("slt", "opt")
    for kind in kinds:
        queries, candidates = read(arguments.data, kind)
        packed = PackedTrees.of_trees(candidates, kind)
        rows, some = np.arange(len(candidates)), list(queries.values())[: arguments.queries]
        ours = peer = differ = 0.0
        for query in some:
            seconds, fast = timed(tree_edit_distances, query, packed, rows, COSTS)
            ours += seconds
            seconds, slow = timed(by_apted, query, candidates)
            peer += seconds
            differ = max(differ, float(np.abs(fast - slow).max()))
        pairs = len(some) * len(candidates) / 1000
        print(
            f"{kind}  ours {ours / pairs:.3f} ms a pair  apted {peer / pairs:.2f} ms  {peer / ours:.0f} times  ", end=""
        )
        print(f"{len(some) * len(candidates)} pairs, largest difference {differ:.0e}")


if __name__ == "__main__":
    main()
