"""A formula search engine on pairs of symbols, after the first stage of Tangent-S."""

from __future__ import annotations

from .index import TangentIndex
from .indexer import TangentIndexer
from .pairs import PairOptions, formula_trees, pair_terms
from .retriever import TangentRetriever

__all__ = ["PairOptions", "TangentIndex", "TangentIndexer", "TangentRetriever", "formula_trees", "pair_terms"]
