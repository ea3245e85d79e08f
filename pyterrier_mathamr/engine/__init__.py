"""A search engine over a person's own posts, of the parts of this package and nothing else.

::

    posts in any form ──read_posts─▶ Document ──building──▶ posts · graphs · bm25 · vectors · formulas
                                                               │
    question ──reader, ranking──▶ score ◀──────────────────────┤──▶ search_engine   SearchEngine
                                           snippets ───────────┤                    one folder (generations)
                                                               └──▶ page, mcp       `mathamr serve`, `mathamr mcp`
"""

from pyterrier_mathamr.explain import Explanation

from .ranking import BlendedRetriever
from .search_engine import SearchEngine

__all__ = ["BlendedRetriever", "Explanation", "SearchEngine"]
