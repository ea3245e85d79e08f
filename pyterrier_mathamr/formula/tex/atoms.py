"""The symbols of a LaTeX formula, each with its layout tree and its operator tree so far.

``math-core`` writes Presentation MathML for browsers; here it becomes rows of :class:`Atom` in the spelling of the
official MathML: one minus sign, groups and function applications spliced into the row around them, words for functions.
"""

from __future__ import annotations

from pyterrier_mathamr.formula import slt_symbol as slt
from pyterrier_mathamr.formula.mathml import clean
from pyterrier_mathamr.formula.opt import Node
from pyterrier_mathamr.formula.slt_symbol import Symbol

from .symbols import AST, FUNCTIONS, IFF, ITALIC, LIMITS, NAMED, OPERATORS, UNTYPED_FUNCTIONS, Role


class Atom:
    """One symbol, or one construct that stands for a symbol, in a row.

    ``symbol`` is its layout tree and ``end`` the last symbol of that row; ``node`` its operator tree (for an operator,
    the operator itself, with its scripts). ``raw`` are the atoms of a fence or a group.
    """

    __slots__ = ("end", "items", "node", "raw", "role", "scripts", "symbol", "text")

    def __init__(self, role: int, symbol: Symbol, node: Node, text: str = "", raw: list[Atom] | None = None) -> None:
        self.role, self.symbol, self.node, self.text = role, symbol, node, text
        self.end = symbol.tail or symbol
        self.raw: list[Atom] = [] if raw is None else raw
        self.items: list[Node] = []  # what a fence holds, one node for each element
        self.scripts: tuple[Atom | None, Atom | None, bool] = (None, None, False)  # of a closing fence: the fence's

    def loose(self) -> None:
        """Undo what linking the row did to the layout tree."""
        self.end.kids.pop("n", None)
        self.symbol.kids.pop("e", None)
        self.symbol.tail = None if self.end is self.symbol else self.end


_WHITE = str.maketrans({"\ufe00": None, "\ufe01": None})
_SAME = {"−": "-", "∗": "*", "∶": ":", "″": "′′", "‴": "′′′", "⁗": "′′′′", "∕": "/", "⊥": "⟂"}

_SPELLED = {
    "‖": "∥",
    "⨆": "⊔",
    IFF: "⇔",
    AST: "∗",
}  # the norm's bar looks like the sign of parallels and is another symbol


def operator(text: str) -> Atom:
    """Make the atom of an operator symbol."""
    if text in NAMED or text in LIMITS or text in FUNCTIONS:
        return identifier(text)
    text = _SAME.get(text, text)
    role, label = OPERATORS.get(text, (Role.ATOM, ""))
    spelled = clean(_SPELLED.get(text, text))
    return Atom(role, Symbol(spelled), Node("V!" + spelled if role == Role.ATOM else label), text)


def identifier(text: str, *, upright: bool = False) -> Atom:
    """Make the atom of a letter or a word."""
    text = " ".join(text.translate(_WHITE).split())
    if text in OPERATORS:
        return operator(text)
    if text in LIMITS:
        return Atom(Role.BIG, Symbol(text), Node(LIMITS[text]), text)
    if text in FUNCTIONS:
        return Atom(
            Role.FUNCTION, Symbol(text if text in UNTYPED_FUNCTIONS else "V!" + text), Node(FUNCTIONS[text]), text
        )
    if text in NAMED:
        layout, meaning = NAMED[text]
        return Atom(Role.ATOM, Symbol(layout), Node(meaning), text)
    label = "V!" + clean(text)
    return Atom(Role.ATOM, Symbol(label), Node(label if upright else ITALIC.get(text, label)), text)


def number(text: str) -> Atom:
    """Make the atom of a number."""
    label = "N!" + clean(text)
    return Atom(Role.ATOM, Symbol(label), Node(label), text)


def text(content: str) -> Atom:
    """Make the atom of text; the operator tree leaves its place empty."""
    content = clean(" ".join(content.split()))
    return Atom(Role.TEXT, Symbol("T!" + content), Node("W!"), content) if content else BLANK


BLANK = Atom(Role.BLANK, Symbol("W!"), Node("W!"))
"""What leaves nothing in the row."""


def chained(atoms: list[Atom]) -> Symbol | None:
    """Link the layout trees of a row."""
    return slt.chain([atom.symbol for atom in atoms])
