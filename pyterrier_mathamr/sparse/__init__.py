"""One inverted index on disk: BM25 over words and formulas, Tangent over symbol pairs, patterns over sub-expressions.

::

    posts ──index──▶ (each system: terms) ──▶ postings, texts: parts on disk
                                                   │
    queries ──▶ (each system: scores) ──▶ ranking ◀┘

    tokens, bm25, bm25_search    words, symbols and pairs of neighbors
    expressions, tangent         formulas, stored once for equal trees (expression_parts: their data on disk)
    terms, patterns              their sub-expressions, matched with wildcards and under other letters

``expressions`` is more than Tangent needs: the indexes of formulas in :mod:`mathamr_systems` (Approach Zero,
Tangent-CFT, In+Out, formula trees) are built, merged, resumed and searched by it, with different payloads.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
