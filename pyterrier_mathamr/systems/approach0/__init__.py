"""Approach Zero: formulas are found by the leaf-root paths of their operator trees, which form common sub-trees.

::

    operator tree ── rules, tree ──▶ canonical form ── paths ──▶ leaf-root paths ── sectors, payload ──▶ lists of paths
                                                          │                                                   │
    query's formula ──────────────────────────────────────┴── query ──▶ search ──▶ bounds ──▶ scoring ──▶ ranking
"""

from __future__ import annotations

from .explanation import tree_paths as tree_paths
from .index import ApproachZeroIndex as ApproachZeroIndex
from .index import ApproachZeroSnapshot as ApproachZeroSnapshot
from .indexer import ApproachZeroIndexer as ApproachZeroIndexer
from .query import PathQuery as PathQuery
from .query import path_query as path_query
from .retriever import ApproachZeroRetriever as ApproachZeroRetriever
from .scorer import ApproachZeroScorer as ApproachZeroScorer
