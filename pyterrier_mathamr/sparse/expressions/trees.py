"""The two trees of each formula: the official ones where there are any, else those of its LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter

from pyterrier_mathamr._common.types import FormulaId
from pyterrier_mathamr.formula import FormulaPair, FormulaStore, one_text, trees_of_posts
from pyterrier_mathamr.posts import PostFormula


def formula_trees(
    formulas: Iterable[PostFormula], store: FormulaStore | None, macros: Iterable[str] | None = None
) -> list[FormulaPair]:
    """Read the official trees of formulas, and make missing ones from LaTeX."""
    formulas = list(formulas)
    ids = sorted({formula.id for formula in formulas if formula.id})
    official = store.get_many(ids) if store is not None else {}
    of_posts = [""] * len(formulas) if macros is None else macros
    found: list[FormulaPair] = []
    for defined, of_post in groupby(zip(formulas, of_posts, strict=True), key=itemgetter(1)):
        with one_text():
            found += [_completed(formula, official, defined) for formula, _ in of_post]
    return found


def _completed(formula: PostFormula, official: Mapping[FormulaId, FormulaPair], macros: str) -> FormulaPair:
    pair = official.get(formula.id, FormulaPair(None, None))
    if pair.slt is not None and pair.opt is not None:
        return pair
    made = trees_of_posts(formula.latex, macros)
    return FormulaPair(slt=pair.slt or made.slt, opt=pair.opt or made.opt)
