"""BM25 without Java: an index of math-aware tokens, scored by ``bm25s``.

::

    post ──tokens──▶ words, symbols, pairs ──indexer──▶ postings on disk ──index──▶ weights ──retriever──▶ ranking
            lexer, symbols: of LaTeX                                            weighting   scorer: of given documents

The defaults are the strong form (stop words removed, stemming, pairs of neighbours, ``k1=2``, ``b=1``, logarithmic
query weights): a first stage worth reranking and a baseline worth beating. The plain form, for comparison::

    index.indexer(tokens=PLAIN_TOKENS).index(documents)
    index.retriever(k1=0.9, b=0.4, query_weights="linear")
"""

from __future__ import annotations

from .index import BM25Index as BM25Index
from .indexer import BM25Indexer as BM25Indexer
from .retriever import BM25Retriever as BM25Retriever
from .tokens import PLAIN_TOKENS as PLAIN_TOKENS
from .tokens import STRONG_TOKENS as STRONG_TOKENS
from .tokens import TokenOptions as TokenOptions
from .tokens import formula_tokens as formula_tokens
from .tokens import post_tokens as post_tokens
from .tokens import word_tokens as word_tokens
