"""A formula search engine on symbol pairs, after the first stage of Tangent-S.

::

    formula ──pairs──▶ terms of both trees ──indexer──▶ content: postings of distinct expressions ──index
                                                                        │
    query's formula ──pairs──▶ terms ──retriever──▶ Dice's coefficients ┴──▶ ranking of formulas
"""

from __future__ import annotations

from .index import TangentIndex
from .indexer import TangentIndexer
from .pairs import PairOptions, formula_trees, pair_terms
from .retriever import TangentRetriever

__all__ = ["PairOptions", "TangentIndex", "TangentIndexer", "TangentRetriever", "formula_trees", "pair_terms"]
