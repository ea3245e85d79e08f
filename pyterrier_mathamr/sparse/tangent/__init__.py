"""A formula search engine on symbol pairs, after the first stage of Tangent-S.

::

    formula ──pairs──▶ terms of both trees ──indexer──▶ content: postings of distinct expressions ──index
                                                                        │
    query's formula ──pairs──▶ terms ──retriever──▶ Dice's coefficients ┴──▶ ranking of formulas
"""

from __future__ import annotations

from .content import dice as dice
from .index import TangentIndex as TangentIndex
from .index import TangentSnapshot as TangentSnapshot
from .indexer import TangentIndexer as TangentIndexer
from .pairs import PairOptions as PairOptions
from .pairs import pair_terms as pair_terms
from .retriever import TangentRetriever as TangentRetriever
