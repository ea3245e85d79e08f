"""The edit distance of formula trees against apted: milliseconds a pair, and whether both agree.

    python benchmarks/edit_distance.py DATA [--queries 3]

``DATA`` is a folder with ``tangent-s-scores/``. Each query is compared with 491 candidates, packed once; apted gets its
trees made. CPU time of one core; both run on the same pairs in turn.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from tree_pairs import collections, compare

from mathamr_systems.formula_trees import EditCosts, tree_edit_distances
from pyterrier_mathamr.formula import FormulaTree
from pyterrier_mathamr.formula.packed_trees import PackedTrees

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "systems"))
from test_edit_distance import judged

COSTS = EditCosts(0.85, 0.54, 0.15)


def by_apted(query: FormulaTree, candidates: Sequence[FormulaTree]) -> list[float]:
    """Compare pair by pair."""
    return [judged(query, candidate, COSTS) for candidate in candidates]


def main() -> None:
    """Print a line for each kind of tree."""
    for kind, queries, candidates in collections(__doc__, queries=3):
        packed, rows = PackedTrees.of_trees(candidates, kind), np.arange(len(candidates))
        ours = partial(tree_edit_distances, trees=packed, rows=rows, costs=COSTS)
        compare(kind, queries, len(candidates), ours, partial(by_apted, candidates=candidates), "apted")


if __name__ == "__main__":
    main()
