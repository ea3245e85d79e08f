"""A search engine over a person's own posts, of the parts of this package and nothing else.

::

    posts in any form ──read_posts─▶ Document ──building──▶ posts · graphs · bm25 · vectors · formulas
                                                └─ worker      │      one folder: generations
    question ──ranking──▶ score ◀──────────────────────────────┤──▶ reader, search_engine   SearchEngine
          snippets, matches, filters, duplicates, citations ───┴──▶ page, mcp    `mathamr serve`, `mathamr mcp`

Two fifths of this layer are the page and the server for assistants, which must survive any input.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
