"""Tangent-CFT and CFT2: vectors of formulas by fastText, over symbol pairs.

::

    trees ── words ──▶ sentences of symbol pairs ── training (gensim) ──▶ word_vectors
               │                                                              │
               └──────────────────── encoder ◀────────────────────────────────┘
                                        │
    posts ── indexer ── payload ──▶ five int8 vectors an expression ── retriever ──▶ cosines, fused by rank
"""

from __future__ import annotations

from .encoder import FormulaEncoder as FormulaEncoder
from .index import TangentCFT as TangentCFT
from .indexer import TangentCFTIndexer as TangentCFTIndexer
from .options import FastTextOptions as FastTextOptions
from .retriever import TangentCFTRetriever as TangentCFTRetriever
