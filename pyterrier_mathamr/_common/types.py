"""Names that several layers share. Imports nothing of the package."""

from __future__ import annotations

from typing import Literal

DocNo = str
"""Identifier of a document: an ARQMath post id as text."""

QueryId = str
"""Identifier of a query: an ARQMath topic number such as ``A.301``."""

FormulaId = str
"""Identifier of a formula in its collection, or the empty string for a formula without one."""

FormulaMode = Literal["both", "opt", "slt", "none"]
"""Which formula trees a graph carries (MathAMR+, section 4.3.1)."""

GraphPart = Literal["text", "trees", "amr"]
"""A part of a post's graph: its texts, the trees of its formulas, or the AMR of its sentences."""

FORMULA_MODES: tuple[FormulaMode, ...] = ("both", "opt", "slt", "none")
