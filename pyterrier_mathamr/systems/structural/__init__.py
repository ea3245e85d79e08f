"""Structural search over posts: the words and the formulas of one query, as Approach Zero answers questions.

::

    question ─┬─ words ────▶ BM25Index, by BM25+ ────────────────────────────┐
              └─ formulas ─▶ ApproachZeroIndex ─▶ the best of each document ─┴─▶ sum ─▶ ranking of documents
"""

from __future__ import annotations

from .retriever import StructuralSearch as StructuralSearch
