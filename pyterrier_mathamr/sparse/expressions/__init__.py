"""Formulas stored once for each expression: what every formula search engine is built upon.

::

    posts ── reading ──▶ formulas ── trees ──▶ both trees of each
                                                    │ indexer (joining, ragged: parts, a block at a time)
                                                    ▼
                                   content: a payload of distinct expressions, and the formulas that they own
                                                    │ index: opened for a reader
                                                    ▼
    queries ── queries ──▶ both trees of each ── retriever ──▶ ranking
"""

from __future__ import annotations

from .content import Expressions as Expressions
from .content import Payload as Payload
from .content import expression_fields as expression_fields
from .index import ExpressionIndex as ExpressionIndex
from .index import ExpressionSnapshot as ExpressionSnapshot
from .indexer import ExpressionIndexer as ExpressionIndexer
from .joining import merging as merging
from .queries import asked_formula as asked_formula
from .queries import query_formula as query_formula
from .queries import query_trees as query_trees
from .ragged import combined_runs as combined_runs
from .retriever import FormulaRetriever as FormulaRetriever
from .trees import formula_trees as formula_trees
