"""Formulas stored once for each expression: the basis of every formula search engine.

::

    posts ── indexer ──▶ both trees of each formula ──▶ parts: payloads of distinct expressions, and their formulas
                                                          │
    queries ── index ──▶ both trees of each ──────────────┴──▶ ranking
"""

from __future__ import annotations

from .index import ExpressionIndex as ExpressionIndex
from .index import ExpressionSnapshot as ExpressionSnapshot
from .index import FormulaReranker as FormulaReranker
from .index import FormulaRetriever as FormulaRetriever
from .index import FormulaScoring as FormulaScoring
from .index import ScoreTerm as ScoreTerm
from .index import asked_formula as asked_formula
from .index import query_formula as query_formula
from .index import query_trees as query_trees
from .indexer import CollectingBuilder as CollectingBuilder
from .indexer import ExpressionIndexer as ExpressionIndexer
from .indexer import Packing as Packing
from .indexer import formula_trees as formula_trees
from .parts import BothTrees as BothTrees
from .parts import combined_runs as combined_runs
from .parts import expression_kind as expression_kind
