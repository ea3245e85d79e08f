"""Posts: HTML or text with formulas to `MathPost`, and its sentences; files and folders of posts.

::

    text, Markdown, LaTeX, HTML ──reading (markdown, latex_document, bare_formulas)──┐
                                                                                     ▼
    row ──rows──▶ HTML ──html──▶ text with marks ──post, math_spans──▶ MathPost ──sentences──▶ sentences
                  text ─────────────────┘                                  unicode_math: typed x² and √2 as LaTeX
                                                                           rendered_math, mathml_latex: MathML as LaTeX

    dictionaries, .jsonl, folders of Markdown, HTML, LaTeX and text ──documents──▶ Document
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyterrier_mathamr._common.lazy import lazy_names

from .latex_document import text_from_latex
from .markdown import html_from_markdown, title_of_markdown
from .math_spans import is_formula, strip_delimiters
from .post import MathPost, PostFormula, formula_id, is_numbered, placeholder, plain_text
from .reading import (
    PostError,
    is_html,
    post_from_any,
    post_from_html,
    post_from_latex,
    post_from_markdown,
    post_from_text,
)
from .sentences import PLACEHOLDER, TOKEN, split_sentences
from .unicode_math import latex_of_unicode

if TYPE_CHECKING:  # needs pandas, which reading a single post does not
    from .documents.accepting import accepted_posts as accepted_posts
    from .documents.accepting import read_posts as read_posts
    from .documents.accepting import readable as readable
    from .documents.beir import BeirFolder as BeirFolder
    from .documents.document import Document as Document
    from .documents.document import in_latex as in_latex
    from .documents.sources import DocumentError as DocumentError
    from .documents.sources import Source as Source
    from .documents.sources import count_posts as count_posts
    from .documents.sources import json_lines as json_lines
    from .documents.sources import post_files as post_files
    from .rows import DOCUMENT_COLUMNS as DOCUMENT_COLUMNS
    from .rows import document_post as document_post
    from .rows import query_post as query_post

__getattr__, __dir__, _lazy = lazy_names(__name__)

__all__ = [
    "PLACEHOLDER",
    "TOKEN",
    "MathPost",
    "PostError",
    "PostFormula",
    "formula_id",
    "html_from_markdown",
    "is_formula",
    "is_html",
    "is_numbered",
    "latex_of_unicode",
    "placeholder",
    "plain_text",
    "post_from_any",
    "post_from_html",
    "post_from_latex",
    "post_from_markdown",
    "post_from_text",
    "split_sentences",
    "strip_delimiters",
    "text_from_latex",
    "title_of_markdown",
]
__all__ += _lazy
