"""A drawing of a formula and its two trees."""

from __future__ import annotations

from pyterrier_mathamr._common.drawing import Canvas, Picture, Theme, TreeNode, palette
from pyterrier_mathamr.formula import FormulaPair, FormulaTree, opt_from_latex, trees_from_latex

from .boxes import formula_box, paint_box
from .key import key_of, paint_key
from .trees import tree_nodes

_MARGIN, _NARROWEST = 14.0, 560.0


def draw_formula(latex: str, *, theme: Theme = "light", trees: FormulaPair | None = None, width: int = 720) -> Picture:
    r"""Draw a formula with its operator tree and its symbol layout tree.

    Args:
        latex: LaTeX without delimiters.
        theme: ``light`` or ``dark`` background.
        trees: such as the official ones of a collection; by default those of the LaTeX.
        width: of a row of symbols before it is broken, in pixels.

    Raises:
        FormulaError: the LaTeX has no trees.
        ConfigError: there is no such theme.

    Example::

        explain.draw_formula(r'\frac{a}{b} = x^2').save('formula.svg')
    """
    colors, canvas = palette(theme), Canvas()
    pair = trees_from_latex(latex) if trees is None else trees
    if trees is None and pair.opt is None and pair.slt is None:
        opt_from_latex(latex)  # raises what is wrong, and where
    opt, slt = _nodes(pair.opt, "opt"), _nodes(pair.slt, "slt")
    box = formula_box("formula", latex, opt, slt, float(width))
    inner = max(box.width, _NARROWEST)
    top = paint_key(canvas, key_of([*opt, *slt], virtual=False), _MARGIN, _MARGIN, inner, colors) + 6
    paint_box(canvas, box, _MARGIN, top, colors)
    return canvas.picture(inner + 2 * _MARGIN, top + box.height + _MARGIN, colors.ground, latex)


def _nodes(tree: FormulaTree | None, kind: str) -> list[TreeNode]:
    return [] if tree is None else tree_nodes(tree, kind)
