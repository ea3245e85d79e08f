"""Formula trees: MathML or LaTeX to symbol layout trees and operator trees, and the store of official trees.

::

    Presentation MathML ──mathml, slt ──▶ SLT ┐                      formula_store  official tables; trees by id
    Content MathML      ──mathml, opt ──▶ OPT ├─▶ tree: FormulaTree
    LaTeX ──latex, tex/──▶ both trees         ┘                      display/       formulas for people

    packed_trees: many trees in a few arrays
    matching:     sub-expressions, equal up to renaming or instances of a pattern; `located`: in LaTeX

``tex/`` is a third of this layer: the official trees are LaTeXML's, and no library for Python reads LaTeX as it does.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
