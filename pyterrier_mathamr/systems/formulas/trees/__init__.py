"""The trees of a collection's formulas, packed, for systems that compare whole trees.

::

    formulas ── payload ──▶ FormulaTrees, on disk ── packed ──▶ PackedTrees: thousands of trees in a few arrays
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyterrier_mathamr._common.lazy import lazy_names

if TYPE_CHECKING:  # the artifact constructs rerankers, which need packed trees
    from pyterrier_mathamr.formula.packed_trees import Packed as Packed
    from pyterrier_mathamr.formula.packed_trees import PackedTrees as PackedTrees

    from .artifact import FormulaTrees as FormulaTrees
    from .artifact import FormulaTreesIndexer as FormulaTreesIndexer
    from .artifact import TreesSnapshot as TreesSnapshot

__getattr__, __dir__, __all__ = lazy_names(__name__)
