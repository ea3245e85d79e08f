"""From a formula to its symbol pairs.

A symbol pair is an ancestor, a descendant and the path of edges between them, without its place in the formula, so that
a sub-expression matches anywhere. In ``x^2+1`` (layout tree, window 1)::

    V!x a N!2      V!x n +      + n N!1      N!2 n 0!      N!1 n 0!        0! is the end of a baseline

The ends of baselines are all that a formula of a single symbol has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.parameters import at_least, one_of
from pyterrier_mathamr.formula import FormulaTree
from pyterrier_mathamr.formula.tree import LONGEST_PAIR, SPELLED_PATH


@dataclass(frozen=True, slots=True)
class PairOptions:
    """Which symbol pairs are taken.

    Attributes:
        window: longest distance between the two symbols, in edges; 0 for any distance. Tangent-CFT has 2.
        ends: include the ends of baselines (in an operator tree: the leaves); ``"small"``: only of trees without a
            second level below the root, as the ARQMath runs of Tangent-S did, with a window of 4.

    Raises:
        ConfigError: the window is no integer, or negative, or the ends are none of the three.
    """

    window: int = 2
    ends: bool | Literal["small"] = True

    def __post_init__(self) -> None:
        at_least(0).check("window", self.window)
        one_of(True, False, "small").check("ends", self.ends)

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PairOptions:
        """Make options from plain values.

        Raises:
            ConfigError: a value is missing, of another type, or not an option.
        """
        if values.keys() != {"window", "ends"} or type(values["window"]) is not int:
            raise ConfigError("pairs", dict(values), "an integer as window, and ends")
        return cls(**values)


def pair_terms(tree: FormulaTree | None, options: PairOptions) -> list[str]:
    """List the symbol pairs of one tree as terms of an index, with repetitions."""
    if tree is None:
        return []
    small = all(parent == 0 for parent, _, _ in tree.edges)
    ends = small if options.ends == "small" else bool(options.ends)
    if _all_are_short(tree, options.window):
        terms = _short_terms(tree, options.window, ends)
    else:
        terms = [f"{above}\t{path}\t{below}" for above, below, path, _ in tree.tuples(options.window, ends)]
    return [term.replace("\n", " ") for term in terms] if any("\n" in node for node in tree.nodes) else terms


def _all_are_short(tree: FormulaTree, window: int) -> bool:
    """Whether no symbol pair can be left out for its length, and no path is run-length encoded, wherever they are."""
    place = max(SPELLED_PATH, 2 * len(tree.nodes))
    longest = 2 * max(map(len, tree.nodes), default=0) + window + place + 3
    return 0 < window <= SPELLED_PATH and longest <= LONGEST_PAIR and all(len(label) == 1 for _, _, label in tree.edges)


def _short_terms(tree: FormulaTree, window: int, ends: bool) -> list[str]:
    """List the terms from each node upwards, faster than by subtrees, which also tell each pair's place."""
    nodes, above, edge = tree.nodes, [-1] * len(tree.nodes), [""] * len(tree.nodes)
    for parent, child, label in tree.edges:
        above[child], edge[child] = parent, label
    terms = []
    for parent, child, path in tree.edges:
        below = f"\t{nodes[child]}"
        terms.append(f"{nodes[parent]}\t{path}{below}")
        for _ in range(window - 1):
            path, parent = edge[parent] + path, above[parent]
            if parent < 0:
                break
            terms.append(f"{nodes[parent]}\t{path}{below}")
    if ends:
        last = "n" if tree.is_slt else "0"
        going_on = {parent for parent, _, label in tree.edges if not tree.is_slt or label == "n"}
        terms += [f"{node}\t{last}\t0!" for i, node in enumerate(nodes) if i not in going_on]
    return terms
