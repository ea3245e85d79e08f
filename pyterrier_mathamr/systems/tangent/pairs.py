"""From a formula to its symbol pairs.

A symbol pair is an ancestor, a descendant and the path of edges between them, without its place in the formula, so that
a sub-expression matches anywhere. In ``x^2+1`` (layout tree, window 1)::

    V!x a N!2      V!x n +      + n N!1      N!2 n 0!      N!1 n 0!        0! is the end of a baseline

The ends of baselines are all that a formula of a single symbol has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.parameters import at_least
from pyterrier_mathamr._common.types import FormulaId
from pyterrier_mathamr.formula import FormulaPair, FormulaStore, FormulaTree, trees_from_latex
from pyterrier_mathamr.posts import PostFormula

# Half of a collection's formulas are repetitions.
_from_latex = lru_cache(maxsize=8192)(partial(trees_from_latex, lines="all"))


@dataclass(frozen=True, slots=True)
class PairOptions:
    """Which symbol pairs are taken.

    Attributes:
        window: longest distance between the two symbols, in edges; 0 for any distance. Tangent-CFT has 2.
        ends: include the ends of baselines (in an operator tree: the leaves).

    Raises:
        ConfigError: the window is no integer, or negative.
    """

    window: int = 2
    ends: bool = True

    def __post_init__(self) -> None:
        at_least(0).check("window", self.window)

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PairOptions:
        """Make options from plain values.

        Raises:
            ConfigError: a value is missing, of another type, or not an option.
        """
        if {name: type(value) for name, value in values.items()} != {"window": int, "ends": bool}:
            raise ConfigError("pairs", dict(values), "an integer as window and true or false as ends")
        return cls(**values)


def pair_terms(tree: FormulaTree | None, options: PairOptions) -> list[str]:
    """List the symbol pairs of one tree as terms of an index, with repetitions.

    Args:
        tree: a tree, or ``None``.
        options: which symbol pairs.

    Returns:
        One text for each, without line ends; none for no tree.
    """
    if tree is None:
        return []
    pairs = tree.tuples(options.window, options.ends)
    return ["\t".join((above, path, below)).replace("\n", " ") for above, below, path, _ in pairs]


def formula_trees(
    formulas: Iterable[PostFormula], store: FormulaStore | None, macros: Iterable[str] | None = None
) -> list[FormulaPair]:
    """Read the official trees of formulas, and make missing ones from LaTeX.

    Args:
        formulas: with ids, where the store has them.
        store: the official trees.
        macros: the commands that the post of each formula defines; see :func:`~pyterrier_mathamr.formula.definitions`.

    Returns:
        The two trees of each formula; a tree is ``None`` where the LaTeX cannot be read either.
    """
    formulas = list(formulas)
    ids = sorted({formula.id for formula in formulas if formula.id})
    official = store.get_many(ids) if store is not None else {}
    of_posts = [""] * len(formulas) if macros is None else macros
    return [_completed(formula, official, defined) for formula, defined in zip(formulas, of_posts, strict=True)]


def _completed(formula: PostFormula, official: Mapping[FormulaId, FormulaPair], macros: str) -> FormulaPair:
    pair = official.get(formula.id, FormulaPair(None, None))
    if pair.slt is not None and pair.opt is not None:
        return pair
    made = _from_latex(formula.latex, macros=macros)
    return FormulaPair(slt=pair.slt or made.slt, opt=pair.opt or made.opt)
