"""Systems that MathAMR+ is compared with or built upon, each a transformer.

::

    sparse/  reading, postings, index, ranking: what the sparse systems share
      bm25/      posts with formulas ──▶ BM25Index, BM25Retriever            ┐
      tangent/   formulas ─────────────▶ TangentIndex, TangentRetriever      ├──▶ fusion   several rankings in one
    index/   MathAMR+'s own retrievers and scorers                           ┘     blend    a learned sum of scores
"""

from __future__ import annotations

from .blend import LinearBlend
from .bm25 import (
    PLAIN_TOKENS,
    STRONG_TOKENS,
    BM25Index,
    BM25Indexer,
    BM25Retriever,
    TokenOptions,
    formula_tokens,
    post_tokens,
    word_tokens,
)
from .errors import BlendFileError, BlendNotFittedError, SystemsError
from .fusion import ZScoreFusion, fit_fusion_weight, fuse_rankings
from .tangent import PairOptions, TangentIndex, TangentIndexer, TangentRetriever

__all__ = [
    "PLAIN_TOKENS",
    "STRONG_TOKENS",
    "BM25Index",
    "BM25Indexer",
    "BM25Retriever",
    "BlendFileError",
    "BlendNotFittedError",
    "LinearBlend",
    "PairOptions",
    "SystemsError",
    "TangentIndex",
    "TangentIndexer",
    "TangentRetriever",
    "TokenOptions",
    "ZScoreFusion",
    "fit_fusion_weight",
    "formula_tokens",
    "fuse_rankings",
    "post_tokens",
    "word_tokens",
]
