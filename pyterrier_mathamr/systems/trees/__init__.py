"""The trees of a collection's formulas, packed, for systems that compare whole trees.

::

    formulas ── payload ──▶ FormulaTrees, on disk ── packed ──▶ PackedTrees: thousands of trees in a few arrays
"""

from __future__ import annotations

from .artifact import FormulaTrees as FormulaTrees
from .artifact import FormulaTreesIndexer as FormulaTreesIndexer
from .artifact import TreesSnapshot as TreesSnapshot
from .packed import Packed as Packed
from .packed import PackedTrees as PackedTrees
