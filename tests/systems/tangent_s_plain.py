"""Tangent-S' alignment as its rules are written, without memory or pruning: slow, and easy to check by reading."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from pyterrier_mathamr.formula import FormulaTree

Pair = tuple[int, int]


class Lists(NamedTuple):
    """The pairs of one alignment: nodes of the query with nodes of the candidate."""

    exact: list[Pair]
    variables: list[Pair]
    constants: list[Pair]

    def __len__(self) -> int:
        return len(self.exact) + len(self.variables) + len(self.constants)

    def add(self, other: Lists) -> None:
        for mine, more in zip(self, other, strict=True):
            mine.extend(more)


def unifiable(query: str, candidate: str) -> bool:
    if query == candidate:
        return True
    kind = query[:2]
    if query[1:2] != "!" or candidate[:2] != kind or kind in ("U!", "O!"):
        return False
    if kind == "N!":
        try:
            float(candidate[2:])
        except ValueError:
            return False
    return not (kind == "V!" and len(query) != len(candidate) and 3 in (len(query), len(candidate)))


class PlainAlignment:
    def __init__(self, query: FormulaTree, candidate: FormulaTree) -> None:
        self.trees = query, candidate
        self.children = query.children(), candidate.children()
        self.slt = query.is_slt if len(query.nodes) > 1 else candidate.is_slt

    def scores(self) -> tuple[float, float, float]:
        best, matched = (0.0, 0.0, 0.0), set[Pair]()
        for q, query in enumerate(self.trees[0].nodes):
            for c, candidate in enumerate(self.trees[1].nodes):
                if unifiable(query, candidate) and (q, c) not in matched:
                    scores, pairs = self.trial(q, c)
                    matched |= pairs
                    best = max(best, scores)
        return best

    def trial(self, q: int, c: int) -> tuple[tuple[float, float, float], set[Pair]]:
        query, candidate = self.trees
        lists = self.align(q, c)
        names = Counter((query.nodes[a], candidate.nodes[b]) for a, b in lists.variables)
        partner: dict[str, str] = {}
        for (a, b), _ in sorted(names.items(), key=lambda item: (item[1], item[0][0] == item[0][1], item[0]))[::-1]:
            if a not in partner and b not in partner.values():
                partner[a] = b
        kept = [pair for pair in lists.variables if partner.get(query.nodes[pair[0]]) == candidate.nodes[pair[1]]]
        exact = lists.exact + [pair for pair in kept if query.nodes[pair[0]] == candidate.nodes[pair[1]]]
        pairs = {*lists.exact, *kept, *lists.constants}
        nodes = {a for a, _ in pairs}
        n = len(query.nodes)
        r = len(pairs) / n
        edges = sum(parent in nodes and child in nodes for parent, child, _ in query.edges)
        e = 1.0 if n == 1 else (edges or 0.5) / (n - 1)
        mss = 2 * r * e / (r + e) if pairs else 0.0
        return (mss, len(pairs) / len(candidate.nodes), len(exact) / n), pairs

    def align(self, q: int, c: int) -> Lists:
        query, candidate = self.trees[0].nodes[q], self.trees[1].nodes[c]
        lists = Lists([], [], [])
        if query[:2] == candidate[:2] == "V!":
            if unifiable(query, candidate):
                lists.variables.append((q, c))
        elif query == candidate:
            lists.exact.append((q, c))
        elif unifiable(query, candidate):
            lists.constants.append((q, c))
        (self._layout if self.slt else self._operators)(lists, q, c)
        return lists

    def _layout(self, lists: Lists, q: int, c: int) -> None:
        ours, theirs = dict(reversed(self.children[0][q])), dict(reversed(self.children[1][c]))
        matrices = self.trees[0].nodes[q][:2] == self.trees[1].nodes[c][:2] == "M!"
        for edge in "nabouwcd":
            if edge in ours and edge in theirs and not (edge == "w" and matrices):
                lists.add(self.align(ours[edge], theirs[edge]))
        if matrices:
            for a, b in self._cells(q, c):
                lists.add(self.align(a, b))

    def _cells(self, q: int, c: int) -> list[Pair]:
        elements: list[list[int]] = []
        sizes: list[tuple[int, int]] = []
        for children, node in zip(self.children, (q, c), strict=True):
            cells, edge = list[int](), "w"
            while edge in (below := dict(reversed(children[node]))):
                node, edge = below[edge], "e"
                cells.append(node)
            elements.append(cells)
        for tree, node in zip(self.trees, (q, c), strict=True):
            found = re.search(r"([0-9]+)x([0-9]+)$", tree.nodes[node])
            sizes.append((int(found[1]), int(found[2])) if found else (1, 1))
        if all(1 in size for size in sizes):
            return list(zip(*elements, strict=False))
        pairs = []
        for row in range(min(size[0] for size in sizes)):
            for column in range(min(size[1] for size in sizes)):
                a, b = (row * size[1] + column for size in sizes)
                if a >= len(elements[0]) or b >= len(elements[1]):
                    return pairs
                pairs.append((elements[0][a], elements[1][b]))
        return pairs

    def _operators(self, lists: Lists, q: int, c: int) -> None:
        query, candidate = self.trees[0].nodes[q], self.trees[1].nodes[c]
        ours, theirs = ([child for _, child in of[node]] for of, node in zip(self.children, (q, c), strict=True))
        if query[:2] == candidate[:2] == "M!":
            if query[:3] != candidate[:3]:
                return
            for a, b in zip(ours, theirs, strict=False):
                lists.add(self.align(a, b))
        elif query == candidate and query[:1] == "U":
            found = [(a, b, self.align(a, b)) for a in ours for b in theirs]
            used: tuple[set[int], set[int]] = set(), set()
            for a, b, below in sorted(found, key=lambda of: (-len(of[2]), -len(of[2].exact))):
                if a not in used[0] and b not in used[1]:
                    used[0].add(a)
                    used[1].add(b)
                    lists.add(below)
        else:
            for a, b in zip(ours, theirs, strict=False):
                lists.add(self.align(a, b))
