"""The structural alignment of Tangent-S: how much of a query's tree a candidate's tree has.

A trial begins at two nodes that can be unified and descends through both trees together. Of what it pairs, variables
are unified one to one, and the rest counts: of all trials of two trees, that with the greatest score is theirs.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaTree
from pyterrier_mathamr.formula.packed_trees import Packed, PackedTrees
from pyterrier_mathamr.store import Rows

from .counts import ELEMENT, EXACT, VARIABLE, WITHIN, Counts, Labels, Query, count_pairs

_CELLS = 1 << 23  # pairs of nodes that are counted together
Pair = tuple[int, int]


class AlignmentScores(NamedTuple):
    """What Tangent-S takes from an alignment; 0 where no two nodes can be unified."""

    mss: float
    """Maximum subtree similarity, 2re / (r + e), of the matched nodes' recall r and their edges' recall e."""
    precision: float
    """Matched nodes in the candidate's nodes."""
    exact_recall: float
    """Nodes matched by the same label in the query's nodes."""


_Score = tuple[float, int, int]  # MSS, matched nodes, those of the same label
_NOTHING: _Score = (0.0, 0, 0)


def alignment_scores(query: FormulaTree, candidate: FormulaTree) -> AlignmentScores:
    """Align two trees of the same kind as Tangent-S does.

    Zanibbi, Davila, Kane and Tompa, "Multi-stage math formula search", SIGIR 2016, section 3.3; wildcards are not
    supported.

    Args:
        query: a layout tree or an operator tree.
        candidate: one of the same kind.

    Returns:
        Three numbers between 0 and 1.

    Example::

        alignment_scores(*(trees_from_latex(latex).slt for latex in ("x^2+1", "y^2+1")))  # 1, 1, .75
    """
    kind: Packed = "slt" if (query if query.edges else candidate).is_slt else "opt"
    packed = PackedTrees.of_trees([candidate], kind)
    return AlignmentScores(*align(query, packed, np.zeros(1, dtype=np.int64))[0].tolist())


def align(query: FormulaTree, trees: PackedTrees, rows: Rows, labels: Labels | None = None) -> npt.NDArray[np.float64]:
    """Align a query with many trees."""
    labels = labels or Labels(trees.names)
    read = Query.of_tree(query, trees.kind)
    found = np.zeros((len(rows), 3), dtype=np.float64)
    sizes = np.cumsum((trees.offsets[rows + 1] - trees.offsets[rows]) * len(query.nodes))
    pieces = np.flatnonzero(np.diff(sizes // _CELLS, prepend=0)) if len(rows) else sizes
    for some in np.split(np.arange(len(rows)), pieces):
        if len(some) and read.nodes:
            candidates = trees.take(rows[some])
            found[some] = _Trials(read, candidates, count_pairs(read, candidates, labels)).best()
    return found


class _Trials:
    """The trials of one query in some candidates."""

    def __init__(self, query: Query, candidates: PackedTrees, counts: Counts) -> None:
        self._query, self._candidates, self._counts = query, candidates, counts
        edges = len(counts.children)
        self._layout = candidates.kind == "slt"
        last = ELEMENT if self._layout else edges  # elements of a matrix are found from the matrix
        self._children = [[of for of in below if of[0] < min(last, edges)] for below in query.children]
        self._edges = 1 + max((place for below in self._children for place, _ in below), default=-1)

    def best(self) -> npt.NDArray[np.float64]:
        """Find the greatest scores of each candidate: float64 ``[candidates, 3]``."""
        counts, offsets = self._counts, self._candidates.offsets
        n = len(self._query.nodes)
        r, e = counts.total / n, np.where(counts.edges, counts.edges, 0.5) / max(n - 1, 1) if n > 1 else 1.0
        limits = np.divide(2 * r * e, r + e, out=np.zeros_like(r), where=counts.total > 0)
        found = np.zeros((len(offsets) - 1, 3))
        for row, (start, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
            places = np.flatnonzero(counts.own[:, start:end])
            if len(places):
                mss, matched, exact = self._candidate(start, end, places, limits[:, start:end].ravel()[places])
                found[row] = mss, matched / (end - start), exact / n
        return found

    def _candidate(self, start: int, end: int, places: Rows, limits: npt.NDArray[np.float64]) -> _Score:
        """Try the pairs of nodes in order, the query's first; each that no earlier trial matched."""
        counts, here, size = self._counts, slice(start, end), end - start
        tree = _Candidate(
            start,
            counts.own[:, here].tolist(),
            counts.children[: self._edges, here].T.tolist(),
            [self._candidates.names[number] for number in self._candidates.labels[here].tolist()],
        )
        first = int(limits.argmax())  # likely the best: it tells which of those before it need not be tried
        known = self._trial(divmod(int(places[first]), size), tree)
        for least in (known[0][0], 0.0):
            best, matched, some = _NOTHING, set[Pair](), np.flatnonzero(limits >= least)
            nodes = (of[:, here].ravel()[places[some]].tolist() for of in (counts.total, counts.same))
            for place, *bound in zip(places[some].tolist(), limits[some].tolist(), *nodes, strict=True):
                if tuple(bound) > best and (pair := divmod(place, size)) not in matched:
                    score, pairs = known if place == places[first] else self._trial(pair, tree)
                    matched.update(pairs)
                    best = max(best, score)
            if best[0] >= least:
                break
        return best

    def _pairs(self, first: Pair, tree: _Candidate) -> list[Pair]:
        """Descend from two nodes through both trees together; nodes that pair nothing are passed as well."""
        special, start, end, found = self._counts.special, tree.start, tree.start + len(tree.names), [first]
        for a, b in found:  # grows
            given = special[a].get(start + b) if a in special else None
            if given is not None:
                found += [(x, y - start) for x, y in given if y < end]
                if not self._layout:
                    continue
            elif not self._layout and self._apart(a, tree.names[b]):
                continue
            theirs = tree.children[b]
            for place, child in self._children[a]:
                below = theirs[place]
                if below < end and (given is None or place != WITHIN):
                    found.append((child, below - start))
        return found

    def _apart(self, node: int, candidate: str) -> bool:
        """Whether two operators are matrices or fences of different kinds, whose operands are not compared."""
        label = self._query.nodes[node]
        return label[:2] == "M!" == candidate[:2] and label[:3] != candidate[:3]

    def _trial(self, start: Pair, tree: _Candidate) -> tuple[_Score, list[Pair]]:
        """Align from two nodes, unify the variables, and score what is matched."""
        nodes, names, parents = self._query.nodes, tree.names, self._query.parents
        matched, variables, exact = [], [], 0
        for pair in self._pairs(start, tree):
            kind = tree.own[pair[0]][pair[1]]
            if kind == VARIABLE:
                variables.append(pair)
            elif kind:
                matched.append(pair)
                exact += kind == EXACT
        if variables:
            unified = _unify([(nodes[a], names[b]) for a, b in variables])
            for pair in variables:
                if unified.get(ours := nodes[pair[0]]) == (theirs := names[pair[1]]):
                    matched.append(pair)
                    exact += ours == theirs
        found = {a for a, _ in matched}
        edges = len([a for a in found if parents[a] in found])
        return (_similarity(len(matched), edges, len(nodes)), len(matched), exact), matched


class _Candidate(NamedTuple):
    """A candidate's tree, its nodes counted from 0."""

    start: int
    """Its first node in all of them."""
    own: list[list[int]]
    """What each pair with a node of the query is."""
    children: list[list[int]]
    """The children of its nodes in all of them."""
    names: list[str]


def _unify(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Choose a partner for each variable, one to one: pairs that occur most first, then the same name."""
    names = Counter(pairs)
    if len(names) == 1:
        return dict(pairs[:1])
    chosen: dict[str, str] = {}
    taken = set[str]()
    for _, _, (ours, theirs) in sorted(((times, a == b, (a, b)) for (a, b), times in names.items()), reverse=True):
        if ours not in chosen and theirs not in taken:
            chosen[ours] = theirs
            taken.add(theirs)
    return chosen


def _similarity(matched: int, edges: int, nodes: int) -> float:
    """Compute MSS of matched nodes and matched edges of a query."""
    r = matched / nodes
    e = 1.0 if nodes == 1 else (edges or 0.5) / (nodes - 1)
    return 2 * r * e / (r + e) if matched else 0.0
