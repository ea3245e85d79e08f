"""Approach Zero: formulas are found by the leaf-root paths of their operator trees, which form common sub-trees.

::

    operator tree ── tree ──▶ canonical form, leaf-root paths ── path_lists ──▶ lists of paths on disk
                                          │                                          │
    query's formula ──────────────────────┴── index: bounds, exact scores ───────────┴──▶ ranking
"""

from __future__ import annotations

from .index import ApproachZeroIndex as ApproachZeroIndex
from .index import ApproachZeroRetriever as ApproachZeroRetriever
from .index import ApproachZeroScorer as ApproachZeroScorer
from .path_lists import PathQuery as PathQuery
from .path_lists import path_query as path_query
from .path_lists import tree_paths as tree_paths
