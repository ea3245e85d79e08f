"""Posts: HTML or text with formulas to `MathPost`, and its sentences; files and folders of posts.

::

    row, text, Markdown, LaTeX ──reading (markdown, latex_document)──▶ HTML or text
    macros, conditionals ──tex_expansion (tex_primitives, tex_machine, tex_macros)──▶ LaTeX of common commands
    HTML ──html (mathml_latex)──▶ text with marks ──post (math_spans)──▶ MathPost ──▶ sentences

    dictionaries, .jsonl ──own_posts──▶ Document; folders in BEIR's layout ──own_posts──▶ documents, queries, judgments
    files of notes ──files──▶ latex_units             ┐
                              other_markups, markdown ├──statements──▶ units ──note_files──▶ Document
                              lean                    │
                              HTML and text           ┘
    documents ──passages──▶ passages that cut no formula

Almost half of this layer is the reading of files of notes: people write statements, numbers and labels in many ways.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
