"""BM25 without Java, on tokens that know formulas."""

from __future__ import annotations

from .index import BM25Index
from .indexer import BM25Indexer
from .retriever import BM25Retriever
from .tokens import PLAIN_TOKENS, STRONG_TOKENS, TokenOptions, formula_tokens, post_tokens, word_tokens

__all__ = [
    "PLAIN_TOKENS",
    "STRONG_TOKENS",
    "BM25Index",
    "BM25Indexer",
    "BM25Retriever",
    "TokenOptions",
    "formula_tokens",
    "post_tokens",
    "word_tokens",
]
