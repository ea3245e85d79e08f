r"""Twins: a text in which one formula is another one, with the same letters.

::

    operator    a + b ──▶ a - b            script    x^2 ──▶ x_2
    relation    a \le b ──▶ a \ge b        order     a - b ──▶ b - a,  \frac{a}{b} ──▶ \frac{b}{a}
    bound       \sum_{i=1}^n a_i ──▶ \sum_{j=1}^n a_i

Each change is one of the LaTeX, and is checked on the operator trees: both are read without a guess, and differ.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from studies.formulas.patterns import tree_of

from .letters import FORMULA, TOKEN, formulas_of

LEAST_NODES = 4
"""Operator trees with fewer nodes are not changed: they say too little."""


class Change(NamedTuple):
    """A formula and what it was changed to."""

    latex: str
    changed: str
    how: str


class Twin(NamedTuple):
    """A text in which every occurrence of one formula is changed."""

    text: str
    change: Change


_OPERATORS = {"+": "-", "-": "+", r"\cdot": "+", r"\times": "+", r"\cup": r"\cap", r"\cap": r"\cup"}
_OPERATORS |= {r"\wedge": r"\vee", r"\vee": r"\wedge", r"\land": r"\lor", r"\lor": r"\land", r"\otimes": r"\oplus"}
_RELATIONS = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le", r"\leq": r"\geq", r"\geq": r"\leq", "=": r"\ne"}
_RELATIONS |= {r"\ne": "=", r"\neq": "=", r"\in": r"\notin", r"\subset": r"\supset", r"\subseteq": r"\supseteq"}
_BINDERS = {r"\sum", r"\prod", r"\int", r"\bigcup", r"\bigcap", r"\lim", r"\forall", r"\exists"}
_SIDES = frozenset({*_OPERATORS, *_RELATIONS, ",", ";", r"\\", "&", "{", "}", "(", ")", "[", "]", "|", r"\to"})


def changes(latex: str, seed: str) -> Iterator[Change]:
    """Change a formula in one place, in each way that it allows, in an order that depends on the seed."""
    source = tree_of(latex)
    if source is None or len(source.nodes) < LEAST_NODES:
        return
    tokens = TOKEN.findall(latex)
    made = [(how, changed) for how, change in WAYS.items() for changed in change(tokens)]
    for how, changed in random.Random(f"{seed}\n{latex}").sample(made, len(made)):
        tree = tree_of(changed)
        if tree is not None and (tree.nodes, tree.edges) != (source.nodes, source.edges):
            yield Change(latex, changed, how)


def twin_of(text: str, seed: str, first: Sequence[str] = ()) -> Twin | None:
    """Change one formula of a text: one of ``first`` if there is one, else a longer one before a shorter one."""
    wanted = frozenset(first)
    found = sorted(dict.fromkeys(formulas_of(text)), key=lambda latex: (latex not in wanted, -len(latex), latex))
    change = next((change for latex in found for change in changes(latex, seed)), None)
    if change is None:
        return None
    return Twin(
        FORMULA.sub(
            lambda match: match[0].replace(change.latex, change.changed) if match[2] == change.latex else match[0], text
        ),
        change,
    )


def _replaced(others: dict[str, str]) -> Callable[[Sequence[str]], Iterator[str]]:
    """Return a function that replaces one sign outside groups: inside they are bounds and indices."""

    def change(tokens: Sequence[str]) -> Iterator[str]:
        depth = 0
        for at, token in enumerate(tokens):
            depth += (token == "{") - (token == "}")
            if token in others and depth == 0:
                new = others[token]
                yield "".join([*tokens[:at], new + " " if new[0] == "\\" else new, *tokens[at + 1 :]])

    return change


def _other_script(tokens: Sequence[str]) -> Iterator[str]:
    """Raise a lower script, or lower an upper one, where the base has no other."""
    for at, token in enumerate(tokens):
        if token in "^_" and at > 0 and not tokens[at - 1].isspace():
            end = _after(tokens, at + 1)
            alone = "".join(tokens[end : end + 1]) not in ("^", "_") and tokens[at - 1] not in ("}", "'", *_BINDERS)
            if alone:
                yield "".join([*tokens[:at], "_" if token == "^" else "^", *tokens[at + 1 :]])


def _other_order(tokens: Sequence[str]) -> Iterator[str]:
    """Exchange the sides of a difference, of a quotient, and of a fraction."""
    for at, token in enumerate(tokens):
        if token in ("-", "/"):
            low, high = at, at + 1
            while low and tokens[low - 1] not in _SIDES | {"/"}:
                low -= 1
            while high < len(tokens) and tokens[high] not in _SIDES | {"/"}:
                high += 1
            left, right = ("".join(side).strip() for side in (tokens[low:at], tokens[at + 1 : high]))
            if left and right and left != right:
                yield "".join([*tokens[:low], right, token, left, *tokens[high:]])
        elif token in (r"\frac", r"\dfrac", r"\tfrac"):
            middle = _after(tokens, at + 1)
            end = _after(tokens, middle)
            above, below = "".join(tokens[at + 1 : middle]), "".join(tokens[middle:end])
            if above.startswith("{") and below.startswith("{") and above != below:
                yield "".join([*tokens[: at + 1], below, above, *tokens[end:]])


def _freed(tokens: Sequence[str]) -> Iterator[str]:
    """Give a binder another variable, so that the one that it bound is free."""
    letters = [token for token in tokens if re.fullmatch("[a-z]", token)]
    for at, token in enumerate(tokens):
        if token not in _BINDERS:
            continue
        start = next((i for i in range(at + 1, min(at + 6, len(tokens))) if re.fullmatch("[a-z]", tokens[i])), None)
        if start is not None and letters.count(tokens[start]) > 1:
            new = next(letter for letter in "kjmnrst" if letter not in letters)
            yield "".join([*tokens[:start], new, *tokens[start + 1 :]])


def _after(tokens: Sequence[str], at: int) -> int:
    """Return the place after an argument: one piece, or a group in braces."""
    while at < len(tokens) and tokens[at].isspace():
        at += 1
    depth = 0
    for end in range(at, len(tokens)):
        depth += (tokens[end] == "{") - (tokens[end] == "}")
        if depth == 0:
            return end + 1
    return len(tokens)


WAYS: dict[str, Callable[[Sequence[str]], Iterator[str]]] = {
    "operator": _replaced(_OPERATORS),
    "relation": _replaced(_RELATIONS),
    "script": _other_script,
    "order": _other_order,
    "bound": _freed,
}
