"""A search engine over a person's own posts, of the parts of this package and nothing else.

::

    posts in any form ──read_posts─▶ Document ──building──▶ posts · graphs · bm25 · vectors · formulas
                                                               │
    question ──reader, ranking──▶ score ◀──────────────────────┤──▶ reader          one state of all indexes
                                           snippets ───────────┤──▶ search_engine   SearchEngine
                                                               │                    one folder (generations)
                                                               └──▶ page, mcp       `mathamr serve`, `mathamr mcp`

    building ──▶ one_pass ──▶ readers ──▶ worker    all indexes of a new engine in one pass, in several processes
    formula_ids                                     one id for each formula of all posts
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
