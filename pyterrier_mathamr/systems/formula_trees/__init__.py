"""The trees of a collection's formulas, packed, for systems that compare whole trees.

::

    formulas ── payload ──▶ FormulaTrees, on disk ── packed ──▶ PackedTrees: thousands of trees in a few arrays
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
