"""What a fence means: interval, vector, set, norm, absolute value, by its two ends and what is in between."""

from __future__ import annotations

from pyterrier_mathamr.formula.opt.nodes import Node

from .atoms import Atom
from .factors import Unparsed
from .grammar import RELATING, formula, listed, pieces, statement
from .symbols import Role

_ENDS = {"(": "O", "[": "C", ")": "O", "]": "C"}


def fence_node(opening: str, inner: list[Atom], closing: str) -> tuple[Node, list[Node]]:
    """Read a fence by its kind: the node it is, and its elements where a function takes them as arguments."""
    if inner[0].role == Role.MOD and len(inner) > 1:
        node = Node("F!pmod", [statement(inner[1:])])
        return node, [node]
    if opening == "{" and condition(inner):
        return _conditional_set(inner)
    if any(atom.text == ";" for atom in inner):
        node = listed([formula(part) for part in pieces(inner, Role.PUNCTUATION)])
        return node, [node]
    if opening == "{" and any(atom.role in RELATING for atom in inner):
        node = statement(inner)
        return Node("M!S-1", [node]), [node]
    parts = pieces(inner, Role.PUNCTUATION)
    if any(not part for part in parts):
        raise Unparsed
    items = [formula(part) for part in parts]
    return _by_kind(opening, items, closing), items if opening in _ARGUMENTS else []


_ARGUMENTS = frozenset("([{")


def condition(inner: list[Atom]) -> int:
    """Find the sign before the condition of a set; 0 for none."""
    for place, atom in enumerate(inner):
        if atom.role == Role.BETWEEN or (atom.role == Role.COLON and atom.text == ":"):
            return place
    return 0


def _conditional_set(inner: list[Atom]) -> tuple[Node, list[Node]]:
    """``{ pattern : condition }``."""
    place = condition(inner)
    if place == len(inner) - 1:
        raise Unparsed
    parts = [statement(inner[:place]), statement(inner[place + 1 :])]
    return Node("O!conditional-set", parts), [Node("F!:", list(parts))]


def _by_kind(opening: str, items: list[Node], closing: str) -> Node:
    """Make the node of a fence from its elements."""
    count, pair = len(items), opening + closing
    if opening in "([" and closing in ")]":
        if count == 1 and (pair == "()" or items[0].label == "O!matrix"):
            return items[0]
        if count == 2:
            return Node(f"O!interval({_ENDS[opening]}-{_ENDS[closing]})", items)
        if pair == "()":
            return Node(f"M!V-{count}", items)
        if pair == "[]":
            return Node("M!D-lsqb;&rsqb;", items) if count == 1 else listed(items)
        raise Unparsed
    if pair == "{}":
        return Node(f"M!S-{count}", items)
    if pair == "⟨⟩":
        return Node(f"M!L-{count}", items) if count > 1 else Node("M!D-⟩", items)
    if pair == "||" and items[0].label == "O!matrix":
        return Node("F!det", items)
    label = {"||": "F!abs", "‖‖": "O!norm", "||||": "O!norm", "⌊⌋": "F!floor", "⌈⌉": "F!ceiling"}.get(pair)
    if label is None:
        raise Unparsed
    return Node(label, [listed(items)])
