"""Posts: HTML or text with formulas to `MathPost`, and its sentences; files and folders of posts.

::

    text, Markdown, LaTeX, HTML ──reading (markdown, latex_document, bare_formulas)──┐
                                                                                     ▼
    row ──rows──▶ HTML ──html──▶ text with marks ──post, math_spans──▶ MathPost ──sentences──▶ sentences
                  text ─────────────────┘                                  unicode_math: typed x² and √2 as LaTeX
                                                                           rendered_math, mathml_latex: MathML as LaTeX

    dictionaries, .jsonl, folders of Markdown, HTML, LaTeX and text ──documents──▶ Document
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
