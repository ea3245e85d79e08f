"""Tangent-CFT and CFT2: vectors of formulas by fastText, over symbol pairs.

::

    trees ── word_vectors ──▶ sentences of symbol pairs, trained word vectors
                                         │
    posts ── index ─────────────▶ five int8 vectors an expression ──▶ cosines, fused by rank
"""

from __future__ import annotations

from .index import TangentCFT as TangentCFT
from .index import TangentCFTIndexer as TangentCFTIndexer
from .index import TangentCFTRetriever as TangentCFTRetriever
from .word_vectors import FastTextOptions as FastTextOptions
