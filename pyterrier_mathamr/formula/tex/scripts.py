"""Scripts: on symbols of the layout tree, and on nodes of the operator tree in the order of writing."""

from __future__ import annotations

from pyterrier_mathamr.formula.opt.nodes import Node
from pyterrier_mathamr.formula.slt import symbols as slt
from pyterrier_mathamr.formula.slt.symbols import Symbol

from .atoms import Atom
from .symbols import Role


def scripted(base: Atom, below: Atom | None, above: Atom | None, *, limits: bool, super_first: bool = False) -> Atom:
    """Attach scripts to an atom, the one written first closest; an operator keeps its role."""
    labels = "u" * (below is not None) + "o" * (above is not None)
    letters = labels if limits else "b" * (below is not None) + "a" * (above is not None)
    symbol = slt.scripted([base.symbol, *(part.symbol for part in (below, above) if part is not None)], labels, letters)
    node = with_scripts(base.node, below, above, super_first)
    keeps = base.role not in (Role.FENCE, Role.TEXT, Role.CLOSE, Role.OPEN, Role.BAR, Role.ROW)
    made = Atom(base.role if keeps else Role.ATOM, symbol or Symbol("W!"), node, base.text)
    made.applies = base.applies
    return made


def with_scripts(node: Node, below: Atom | None, above: Atom | None, super_first: bool) -> Node:
    """Put a subscript and a superscript on an operator tree, the one written first closest."""
    scripts = [("O!SUB", below), ("O!SUP", above)]
    for label, script in reversed(scripts) if super_first else scripts:
        if script is not None:
            node = Node(label, [node, script.node])
    return node


def with_prescripts(empty: Atom, base: Atom) -> Atom:
    """Give the scripts of an empty base to the symbol after it: they stand before it."""
    scripts = empty.symbol.kids
    for edge, before in (("a", "c"), ("b", "d")):
        if edge in scripts:
            base.symbol.kids[before] = scripts[edge]
    below, above, super_first = empty.scripts
    base.node = with_scripts(base.node, below, above, super_first)
    return base
