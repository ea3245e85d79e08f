r"""A formula as somebody half remembers it: one variable has another name throughout, or a piece of it is missing.

Both alterations change the LaTeX, since that is what any system reads, and are checked on the layout trees: a renamed
formula differs in that variable alone, and of a cut one a single run of symbols is gone (a sub-tree; in ``a+b+c`` the
term ``+b``)::

    x^2+y  ──renamed──▶  x^2+k          x^{2n}+y  ──cut──▶  x+y    x^{2n}
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from string import ascii_letters
from typing import Literal, NamedTuple, TypeVar

from pyterrier_mathamr.formula import FormulaPair, FormulaTree, trees_from_latex

T = TypeVar("T")
Alteration = Literal["renamed", "cut"]

LEAST_NODES = 6
"""Layout trees with fewer nodes are not altered: too many formulas look like what is left."""
_LEAST_LEFT = 0.5  # of the nodes after a cut
_TOKEN = re.compile(r"\\[A-Za-z]+\s*|\\.|\s+|.", re.DOTALL)
_SIGNS = ("+", "-", "=", "<", ">", ",")
_RELATIONS = (r"\le", r"\leq", r"\ge", r"\geq", r"\to", r"\in", r"\subset", r"\approx", r"\equiv", r"\sim")
_OPERATORS = frozenset((*_SIGNS, *_RELATIONS, r"\cdot", r"\times", r"\pm"))


class Altered(NamedTuple):
    """An altered formula.

    Attributes:
        latex: of it.
        how: it was altered.
        trees: its own.
    """

    latex: str
    how: Alteration
    trees: FormulaPair


def alterations(latex: str) -> Iterator[Altered]:
    """Alter a formula, in an order that depends on its LaTeX alone."""
    source = trees_from_latex(latex, lines="all").slt
    if source is None or source.partial or len(source.nodes) < LEAST_NODES:
        return
    tokens = _TOKEN.findall(latex)
    ways: list[Iterator[Altered]] = [_renamed(latex, tokens, source), _cut(latex, tokens, source)]
    if _number(latex) % 2:
        ways.reverse()
    while ways:
        way = ways.pop(0)
        found = next(way, None)
        if found is not None:
            ways.append(way)
            yield found


def _renamed(latex: str, tokens: Sequence[str], source: FormulaTree) -> Iterator[Altered]:
    """Rename one variable to a letter that the formula does not have."""
    labels = set(source.nodes)
    letters = [letter for letter in ascii_letters if f"V!{letter}" in labels]
    free = [letter for letter in ascii_letters if letter not in latex]
    for old in _shuffled(letters, latex):
        same_case = [letter for letter in free if letter.isupper() == old.isupper()]
        for new in _shuffled(same_case, latex + old)[:1]:
            made = "".join(new if token == old else token for token in tokens)
            trees = trees_from_latex(made, lines="all")
            wanted = tuple(f"V!{new}" if label == f"V!{old}" else label for label in source.nodes)
            if trees.slt is not None and trees.opt is not None and trees.slt.nodes == wanted:
                yield Altered(made, "renamed", trees)


def _cut(latex: str, tokens: Sequence[str], source: FormulaTree) -> Iterator[Altered]:
    """Cut a script, or an operator and what follows it up to the next one."""
    nodes = source.nodes
    for start, end in _shuffled(list(_pieces(tokens)), latex):
        made = "".join([*tokens[:start], " ", *tokens[end:]]).strip()
        trees = trees_from_latex(made, lines="all")
        if trees.slt is None or trees.opt is None or trees.slt.partial:
            continue
        left = trees.slt.nodes
        if _LEAST_LEFT * len(nodes) <= len(left) < len(nodes) and _run_is_gone(nodes, left):
            yield Altered(made, "cut", trees)


def _pieces(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Find the scripts, and the operators with what follows them, as ranges of tokens."""
    for start, token in enumerate(tokens):
        if token in "^_":
            yield start, _after_argument(tokens, start + 1)
        elif token.strip() in _OPERATORS:
            end, depth = start + 1, 0
            while end < len(tokens) and (depth or tokens[end].strip() not in _OPERATORS):
                depth += (tokens[end] in "{([") - (tokens[end] in "})]")
                if depth < 0:
                    break
                end += 1
            yield start, end


def _after_argument(tokens: Sequence[str], place: int) -> int:
    """Return the place after an argument: one token, or what is in braces."""
    depth = 0
    for end in range(place, len(tokens)):
        depth += (tokens[end] == "{") - (tokens[end] == "}")
        if depth <= 0 and not tokens[end].isspace():
            return end + 1
    return len(tokens)


def _run_is_gone(whole: Sequence[str], left: Sequence[str]) -> bool:
    """Whether one sequence is the other without a single run."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(whole, left, strict=False)))
    after = len(left) - same
    return not after or tuple(whole[-after:]) == tuple(left[-after:])


def _shuffled(values: Sequence[T], latex: str) -> list[T]:
    """Order values by sha-256 of the formula and their place."""
    return [values[place] for place in sorted(range(len(values)), key=lambda place: _number(f"{latex}\n{place}"))]


def _number(text: str) -> int:
    return int(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), 16)
