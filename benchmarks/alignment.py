"""The alignment of Tangent-S against its rules written plainly: milliseconds a pair, and whether both agree.

    python benchmarks/alignment.py DATA [--queries 12]

``DATA`` is a folder with ``tangent-s-scores/``. Each query is aligned with 491 candidates, packed once. CPU time of one
core; both run on the same pairs in turn.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from tree_pairs import collections, compare

from mathamr_systems.tangent_s import TreeLabels, align
from pyterrier_mathamr.formula import FormulaTree
from pyterrier_mathamr.formula.packed_trees import PackedTrees

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "systems" / "formulas" / "tangent_s"))
from tangent_s_plain import PlainAlignment


def plainly(query: FormulaTree, candidates: Sequence[FormulaTree]) -> list[tuple[float, float, float]]:
    """Align pair by pair."""
    return [PlainAlignment(query, candidate).scores() for candidate in candidates]


def main() -> None:
    """Print a line for each kind of tree."""
    for kind, queries, candidates in collections(__doc__, queries=12):
        packed = PackedTrees.of_trees(candidates, kind)
        ours = partial(align, trees=packed, rows=np.arange(len(candidates)), labels=TreeLabels(packed.names))
        compare(kind, queries, len(candidates), ours, partial(plainly, candidates=candidates), "plain")


if __name__ == "__main__":
    main()
