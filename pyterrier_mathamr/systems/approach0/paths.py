"""Leaf-root paths of a canonical operator tree, and what is counted of them below each node.

``x^2+1`` has three leaves; ``x`` begins these paths, each with the node where it ends::

    VAR/BASE             BASE
    VAR/BASE/SUBSUP      SUBSUP
    VAR/BASE/SUBSUP/ADD  ADD

All leaves below a node whose paths to it have the same tokens are a sector; in ``x^2+x`` that of the last path has
width 2 at the root. Where the order of operands has a meaning, their place is a token of the path, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container
from functools import lru_cache
from typing import NamedTuple

from .tree import OperatorTree

_NOT_COMPARED = frozenset({"BASE", "SUBSCRIPT", "SUPSCRIPT", "TAB_ROW", "TAB_COL", "SEP"})
_COMPARED = 4  # operators above a leaf


class Leaves(NamedTuple):
    """The leaves of a sector that have the same symbol.

    Attributes:
        symbol: of these leaves.
        first: the number of the formula's first leaf with this symbol, 0 to 63.
        width: how many leaves.
        operators: the fingerprint of the first: the symbols and signs of up to four operators above it.
    """

    symbol: str
    first: int
    width: int
    operators: str


class RootEnd(NamedTuple):
    """A node where paths end.

    Attributes:
        leaves: the number of leaves below it.
        sectors: key of a path to the leaves that it comes from, in the order of the formula.
    """

    leaves: int
    sectors: dict[int, list[Leaves]]


class FormulaPaths(NamedTuple):
    """The paths of a formula.

    Attributes:
        size: the number of its leaves.
        roots: the nodes where paths end, in depth-first order.
        symbols: symbol to the number of leaves that have it, in the order of the formula.
    """

    size: int
    roots: list[RootEnd]
    symbols: dict[str, int]


@lru_cache(maxsize=1 << 18)
def extended(key: int, token: str) -> int:
    """Return the key of a path with one more token: 64 bits that identify its tokens; 0 is the key of no tokens."""
    digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8, key=key.to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little")


def formula_paths(tree: OperatorTree, share: float = 0.0) -> FormulaPaths:
    """List the paths of a formula: the prefixes of two tokens and more of all leaf-root paths that end at a node."""
    below = _leaves_below(tree)
    least = share * len(tree.leaves)
    counted: list[dict[int, list[Leaves]]] = [{} for _ in below]
    marks = [("\t-" if sign < 0 else "\t+") + symbol for sign, symbol in zip(tree.signs, tree.symbols, strict=True)]
    firsts: dict[str, int] = {}
    for number, leaf in enumerate(tree.leaves):
        symbol = tree.symbols[leaf]
        first = firsts.setdefault(symbol, number)
        key, operators, compared = extended(0, tree.tokens[leaf]), "-" if tree.signs[leaf] < 0 else "", 0
        node, parent = leaf, tree.parents[leaf]
        if parent < 0:
            counted[node][key] = [Leaves(symbol, first, 1, operators)]
        while parent >= 0:
            if tree.ranks[node]:
                key = extended(key, f"RANK_{tree.ranks[node]}")
            node, token = parent, tree.tokens[parent]
            key, parent = extended(key, token), tree.parents[node]
            if compared < _COMPARED and token not in _NOT_COMPARED:
                operators += marks[node]
                compared += 1
            if below[node] > least:
                _count(counted[node].setdefault(key, []), symbol, first, operators)
    roots = [RootEnd(leaves, sectors) for leaves, sectors in zip(below, counted, strict=True) if sectors]
    symbols = [tree.symbols[leaf] for leaf in tree.leaves]
    return FormulaPaths(tree.size, roots, {symbol: symbols.count(symbol) for symbol in firsts})


def path_names(tree: OperatorTree, keys: Container[int]) -> dict[int, str]:
    """Spell some paths of a formula: their tokens from the leaf up, such as ``VAR/BASE/SUBSUP``."""
    names: dict[int, str] = {}
    for leaf in tree.leaves:
        tokens = [tree.tokens[leaf]]
        key, node = extended(0, tokens[0]), leaf
        while True:
            if key in keys and key not in names:
                names[key] = "/".join(tokens)
            if tree.parents[node] < 0:
                break
            rank = [f"RANK_{tree.ranks[node]}"] if tree.ranks[node] else []
            node = tree.parents[node]
            for token in (*rank, tree.tokens[node]):
                tokens.append(token)
                key = extended(key, token)
    return names


def _leaves_below(tree: OperatorTree) -> list[int]:
    """Count the leaves below each node; a leaf has itself."""
    below = [0] * len(tree.tokens)
    for leaf in tree.leaves:
        below[leaf] = 1
    for node in range(len(below) - 1, 0, -1):
        below[tree.parents[node]] += below[node]
    return below


def _count(sector: list[Leaves], symbol: str, first: int, operators: str) -> None:
    """Count one more leaf of a sector."""
    for place, same in enumerate(sector):
        if same.first == first:
            sector[place] = Leaves(symbol, first, same.width + 1, same.operators)
            return
    sector.append(Leaves(symbol, first, 1, operators))
