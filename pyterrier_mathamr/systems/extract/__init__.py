r"""Task 3: one answer for each topic, cut from the answers that Task 1 ranks.

::

    ranking of Task 1 ──▶ the first posts ── sentences ──▶ snippets ── scorer ──▶ the best one: qanswer, at most 1,200
                          (original, rerank, remap)        │                                    characters
                          snippets: windows and prefixes of sentences, which never cut a formula
    cosine                a scorer of texts: the cosine of their vectors
    extract_answer        the transformer
"""

from __future__ import annotations

from .cosine import CosineScorer as CosineScorer
from .extract_answer import ExtractAnswer as ExtractAnswer
from .snippets import Snippet as Snippet
from .snippets import longest_prefix as longest_prefix
from .snippets import snippets_of as snippets_of
from .snippets import windows as windows
