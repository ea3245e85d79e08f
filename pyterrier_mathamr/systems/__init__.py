"""Systems that MathAMR+ is compared with or built upon, each a transformer."""

from __future__ import annotations

from .blend import LinearBlend
from .bm25 import BM25Index
from .bm25_indexer import BM25Indexer
from .bm25_retriever import BM25Retriever
from .errors import BlendFileError, BlendNotFittedError, SystemsError
from .fusion import ZScoreFusion, fit_fusion_weight, fuse_rankings
from .tangent import PairOptions, TangentIndex, TangentIndexer, TangentRetriever
from .tokens import PLAIN_TOKENS, STRONG_TOKENS, TokenOptions, formula_tokens, post_tokens, word_tokens

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
