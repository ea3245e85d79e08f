"""Tangent-S: candidates by symbol pairs, re-ranked by how well whole trees align.

::

    trees ── counts ──▶ nodes that any two nodes would align ── alignment ──▶ scores ──▶ regression

The nodes that an alignment from (q, c) pairs are the ones that the alignments of their children pair, plus q with c.
So the counts of a query's node, for all nodes of all candidates, are sums of its children's counts at the places of the
candidates' children: one pass over the query's nodes from the leaves up, each a few operations on arrays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from mathamr_systems.errors import nothing_judged
from mathamr_systems.formula_trees import FormulaTrees
from pyterrier_mathamr.explain import AskedError
from pyterrier_mathamr.extending import (
    COUNT,
    FLAG,
    FormulaRetriever,
    Leaf,
    Packed,
    PackedTrees,
    Rule,
    ScoreTerm,
    TangentSnapshot,
    best_first,
    dice,
    pair_terms,
    query_trees,
)
from pyterrier_mathamr.formula import FormulaPair, FormulaStore, FormulaTree
from pyterrier_mathamr.sparse import TangentIndex
from pyterrier_mathamr.store import Rows

Int32s = npt.NDArray[np.int32]
NodePair = tuple[int, int]
NONE, EXACT, VARIABLE, CONSTANT = range(4)
"""The kind of a pair of nodes: not unifiable, of the same label, two variables, two constants."""

_SIZE = re.compile(r"(\d+)x(\d+)$")
_NEXT = {label: number for number, label in enumerate("naboucdwe")}
WITHIN, ELEMENT = _NEXT["w"], _NEXT["e"]


class TreeLabels:
    """The data of each label of some trees that the rules of unification need."""

    def __init__(self, names: Sequence[str]) -> None:
        self.numbers = {name: number for number, name in enumerate(names)}
        self.kinds = np.array([name[:2] if name[1:2] == "!" else "" for name in names], dtype="U2")
        self.lengths = np.array([len(name) for name in names], dtype=np.int32)
        self.floats = np.array([name[:2] == "N!" and _is_float(name[2:]) for name in names], dtype=np.bool_)
        self.starts = np.array([name[:3] for name in names], dtype="U3")
        sizes = [_size(name) if name[:2] == "M!" else (0, 0) for name in names]
        self.sizes = np.array(sizes, dtype=np.int32).reshape(-1, 2)

    def pairs_with(self, label: str) -> npt.NDArray[np.uint8]:
        """Return how each label pairs with one of the query's: uint8 ``[labels]``, :data:`NONE` to :data:`CONSTANT`."""
        found = np.zeros(len(self.kinds), dtype=np.uint8)
        kind = label[:2] if label[1:2] == "!" else ""
        if kind == "V!":
            short = (self.lengths != len(label)) & ((self.lengths == 3) | (len(label) == 3))
            found[(self.kinds == kind) & ~short] = VARIABLE
        elif kind == "N!":
            found[self.floats] = CONSTANT
        elif kind not in ("", "U!", "O!"):
            found[self.kinds == kind] = CONSTANT
        if kind != "V!" and label in self.numbers:
            found[self.numbers[label]] = EXACT
        return found


@dataclass(slots=True)
class QueryTree:
    """A query's tree as the alignment reads it: preorder lists."""

    nodes: tuple[str, ...]
    parents: list[int]
    children: list[list[tuple[int, int]]]  # edge number or position, node

    @classmethod
    def of_tree(cls, tree: FormulaTree, kind: Packed) -> QueryTree:
        numbered = [
            [(_NEXT[label] if kind == "slt" else place, node) for place, (label, node) in enumerate(below)]
            for below in tree.children()
        ]
        return cls(tree.nodes, [-1, *(parent for parent, _, _ in tree.edges)], numbered)


@dataclass(slots=True)
class Counts:
    """How many nodes an alignment from each pair of nodes has; ``n`` nodes of the query, ``g`` of all candidates.

    Each array is ``[n, g + 1]``; the last column is for no node, and is 0.
    """

    own: npt.NDArray[np.uint8]  # the kind of the pair itself
    total: npt.NDArray[np.int16]  # nodes
    exact: npt.NDArray[np.int16]  # nodes of the same label that are not variables
    same: npt.NDArray[np.int16]  # nodes of the same label
    edges: npt.NDArray[np.int16]  # edges of the query between such nodes
    children: Int32s  # [edges, g + 1], the candidates' children by edge or position; g for none
    special: dict[int, dict[int, list[NodePair]]] = field(default_factory=dict)
    """By nodes of the query and of the candidates: pairs of children that do not follow only from the edges."""

    def add(self, q: int, child: int | Int32s, places: Int32s, nodes: slice | Int32s = slice(None)) -> None:
        """Add the child's counts at ``places`` to the parent's at ``nodes``."""
        self.total[q, nodes] += self.total[child, places]
        self.exact[q, nodes] += self.exact[child, places]
        self.same[q, nodes] += self.same[child, places]
        self.edges[q, nodes] += self.edges[child, places]
        self.edges[q, nodes] += (self.own[q, nodes] != NONE) & (self.own[child, places] != NONE)

    def add_special(self, q: int, pairs: _Special) -> None:
        """Add the counts of special pairs of children, and remember the pairs."""
        for ours, theirs in zip(pairs.ours.T, pairs.theirs.T, strict=True):
            self.add(q, ours, theirs, pairs.nodes)
        both = np.stack([pairs.ours, pairs.theirs], axis=2).tolist()
        self.special.setdefault(q, {}).update(zip(pairs.nodes.tolist(), both, strict=True))


class _Special(NamedTuple):
    """Pairs of children for ``k`` nodes of the candidates."""

    nodes: Int32s  # [k]
    ours: Int32s  # [k, steps], a child of the query's node
    theirs: Int32s  # [k, steps], a child of the candidate's node; g for none


def count_pairs(query: QueryTree, candidates: PackedTrees, labels: TreeLabels) -> Counts:
    n, g = len(query.nodes), len(candidates.labels)
    of_label = {label: labels.pairs_with(label) for label in set(query.nodes)}
    kinds, same = np.zeros((n, g + 1), dtype=np.uint8), np.zeros((n, g + 1), dtype=np.int16)
    for q, label in enumerate(query.nodes):
        kinds[q, :g] = of_label[label][candidates.labels]
        same[q, :g] = candidates.labels == labels.numbers.get(label, -1)
    total, exact = (kinds != NONE).astype(np.int16), (kinds == EXACT).astype(np.int16)
    counts = Counts(kinds, total, exact, same, np.zeros_like(same), _children(candidates))
    matrices = labels.kinds[candidates.labels] == "M!"
    for q in range(n - 1, -1, -1):
        label = query.nodes[q]
        if candidates.kind == "slt":  # along each edge that both nodes have
            for edge, child in query.children[q]:
                if edge == ELEMENT or edge >= len(counts.children):
                    continue
                places = counts.children[edge]
                if edge == WITHIN and label[:2] == "M!":
                    places = np.where(np.append(matrices, True), g, places)
                    counts.add_special(q, _cells(counts, query, q, candidates, labels))
                counts.add(q, child, places)
        elif query.children[q]:  # in order, or below equal unordered nodes the best pairs first
            followed = np.ones(g + 1, dtype=np.bool_)
            if label[:2] == "M!":
                followed[:g] = ((labels.kinds != "M!") | (labels.starts == label[:3]))[candidates.labels]
            if label[:1] == "U" and label in labels.numbers:
                equal = candidates.labels == labels.numbers[label]
                followed[:g] = ~equal
                for pairs in _unordered(counts, query, q, np.flatnonzero(equal).astype(np.int32)):
                    counts.add_special(q, pairs)
            for place, child in query.children[q][: len(counts.children)]:
                counts.add(q, child, np.where(followed, counts.children[place], g))
    return counts


def _unordered(counts: Counts, query: QueryTree, q: int, nodes: Int32s) -> Iterator[_Special]:
    """Pair the children of an unordered node greedily: the pair that aligns most nodes first, then most equal ones."""
    ours = np.array([child for _, child in query.children[q]], dtype=np.int32)
    g = len(counts.own[0]) - 1
    arity = (counts.children[:, nodes] < g).sum(axis=0)
    for size in np.unique(arity[arity > 0]).tolist():
        some = nodes[arity == size]
        theirs = counts.children[:size, some].T  # [k, size]
        key = counts.total[ours][:, theirs].astype(np.int32) * 65536 + counts.exact[ours][:, theirs]
        key = key.transpose(1, 0, 2).copy()  # [k, ours, theirs]; the first of equal ones has the lower places
        every, picked = np.arange(len(some)), []
        for _ in range(min(len(ours), size)):
            first = key.reshape(len(some), -1).argmax(axis=1)
            a, b = first // size, first % size
            picked.append((ours[a], theirs[every, b]))
            key[every, a, :] = -1
            key[every, :, b] = -1
        yield _Special(some, np.stack([a for a, _ in picked], axis=1), np.stack([b for _, b in picked], axis=1))


def _cells(counts: Counts, query: QueryTree, q: int, candidates: PackedTrees, labels: TreeLabels) -> _Special:
    """Pair the elements of two matrices: in order if both have one row or one column, else by row and column."""
    nodes = np.flatnonzero(labels.kinds[candidates.labels] == "M!").astype(np.int32)
    ours, element, edge = list[int](), q, WITHIN
    while (child := dict(query.children[element]).get(edge)) is not None:
        ours.append(child)
        element, edge = child, ELEMENT
    g, chains = len(counts.own[0]) - 1, [_column(counts, WITHIN, nodes)]
    while bool((chains[-1] < g).any()):
        chains.append(_column(counts, ELEMENT, chains[-1]))
    theirs = np.stack([*chains[:-1], np.full(len(nodes), g, np.int32)], axis=1)  # [k, elements + 1]
    rows, columns = _size(query.nodes[q])
    sizes = labels.sizes[candidates.labels[nodes]]
    linear = (1 in (rows, columns)) & (sizes == 1).any(axis=1)
    steps = len(ours)
    paired = np.full((len(nodes), steps), g, dtype=np.int32)
    width = min(steps, theirs.shape[1])
    paired[:, :width] = theirs[:, :width]
    for k in np.flatnonzero(~linear).tolist():
        paired[k] = g
        height, breadth = sizes[k].tolist()
        grid = ((row, column) for row in range(min(rows, height)) for column in range(min(columns, breadth)))  # lazy
        for row, column in grid:
            a, b = row * columns + column, row * breadth + column
            if a >= steps or b >= theirs.shape[1] or theirs[k, b] == g:
                break
            paired[k, a] = theirs[k, b]
    return _Special(nodes, np.broadcast_to(np.array(ours, dtype=np.int32), paired.shape), paired)


def _column(counts: Counts, number: int, nodes: Int32s) -> Int32s:
    """Return the child of each node by an edge; ``g`` where there is none."""
    if number >= len(counts.children):
        return np.full_like(nodes, len(counts.own[0]) - 1)
    column: Int32s = counts.children[number][nodes]
    return column


def _children(trees: PackedTrees) -> Int32s:
    """Return the child of each node by edge number (layout) or position (operators), int32 ``[edges, g + 1]``."""
    g = len(trees.labels)
    below = np.flatnonzero(trees.parents >= 0)[::-1]  # the first of children with the same edge is kept
    parents = trees.above[below]
    if trees.kind == "slt":
        places = np.zeros(128, dtype=np.int64)
        for label, number in _NEXT.items():
            places[ord(label)] = number
        places = places[trees.edges[below]]
    else:  # the place of each child among those of its parent, in preorder
        ascending = np.argsort(parents[::-1], kind="stable")
        owners = parents[::-1][ascending]
        places = np.empty(len(parents), dtype=np.int64)
        places[ascending] = np.arange(len(parents)) - np.searchsorted(owners, owners, side="left")
        places = places[::-1]
    children = np.full((int(places.max(initial=-1)) + 1, g + 1), g, dtype=np.int32)
    children[places, parents] = below
    return children


def _size(label: str) -> tuple[int, int]:
    match = _SIZE.search(label)
    return (int(match[1]), int(match[2])) if match else (1, 1)


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_CELLS = 1 << 23  # pairs of nodes that are counted together


class AlignmentScores(NamedTuple):
    """Scores of Tangent-S from an alignment; 0 if no two nodes can be unified.

    Attributes:
        mss: maximum subtree similarity, 2re / (r + e), of the matched nodes' recall r and their edges' recall e.
        precision: matched nodes in the candidate's nodes.
        exact_recall: nodes matched by the same label in the query's nodes.
    """

    mss: float
    precision: float
    exact_recall: float


_Score = tuple[float, int, int]  # MSS, matched nodes, matched nodes of the same label
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


def align(
    query: FormulaTree, trees: PackedTrees, rows: Rows, labels: TreeLabels | None = None
) -> npt.NDArray[np.float64]:
    labels = labels or TreeLabels(trees.names)
    read = QueryTree.of_tree(query, trees.kind)
    scores = np.zeros((len(rows), 3), dtype=np.float64)
    sizes = np.cumsum((trees.offsets[rows + 1] - trees.offsets[rows]) * len(query.nodes))
    pieces = np.flatnonzero(np.diff(sizes // _CELLS, prepend=0)) if len(rows) else sizes
    for some in np.split(np.arange(len(rows)), pieces):
        if len(some) and read.nodes:
            candidates = trees.take(rows[some])
            scores[some] = _Trials(read, candidates, count_pairs(read, candidates, labels)).best()
    return scores


class _Trials:
    """The trials of one query in some candidates."""

    def __init__(self, query: QueryTree, candidates: PackedTrees, counts: Counts) -> None:
        self._query, self._candidates, self._counts = query, candidates, counts
        edges = len(counts.children)
        self._layout = candidates.kind == "slt"
        last = ELEMENT if self._layout else edges  # elements of a matrix are found from the matrix
        self._children = [[child for child in below if child[0] < min(last, edges)] for below in query.children]
        self._edges = 1 + max((place for below in self._children for place, _ in below), default=-1)

    def best(self) -> npt.NDArray[np.float64]:
        """Find the greatest scores of each candidate: float64 ``[candidates, 3]``."""
        counts, offsets = self._counts, self._candidates.offsets
        n = len(self._query.nodes)
        r, e = counts.total / n, np.where(counts.edges, counts.edges, 0.5) / max(n - 1, 1) if n > 1 else 1.0
        limits = np.divide(2 * r * e, r + e, out=np.zeros_like(r), where=counts.total > 0)
        scores = np.zeros((len(offsets) - 1, 3))
        for row, (start, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
            places = np.flatnonzero(counts.own[:, start:end])
            if len(places):
                mss, matched, exact = self._candidate(start, end, places, limits[:, start:end].ravel()[places])
                scores[row] = mss, matched / (end - start), exact / n
        return scores

    def _candidate(self, start: int, end: int, places: Rows, limits: npt.NDArray[np.float64]) -> _Score:
        """Try the pairs of nodes in order, the query's first; each that no earlier trial matched."""
        counts, here, size = self._counts, slice(start, end), end - start
        tree = _Candidate(
            start,
            counts.own[:, here].tolist(),
            counts.children[: self._edges, here].T.tolist(),
            [self._candidates.names[number] for number in self._candidates.labels[here].tolist()],
        )
        first = int(limits.argmax())  # likely the best: its score rules out some of the candidates before it
        known = self._trial(divmod(int(places[first]), size), tree)
        for least in (known[0][0], 0.0):
            best, matched, some = _NOTHING, set[NodePair](), np.flatnonzero(limits >= least)
            nodes = (counted[:, here].ravel()[places[some]].tolist() for counted in (counts.total, counts.same))
            for place, *bound in zip(places[some].tolist(), limits[some].tolist(), *nodes, strict=True):
                if tuple(bound) > best and (pair := divmod(place, size)) not in matched:
                    score, pairs = known if place == places[first] else self._trial(pair, tree)
                    matched.update(pairs)
                    best = max(best, score)
            if best[0] >= least:
                break
        return best

    def _pairs(self, first: NodePair, tree: _Candidate) -> list[NodePair]:
        """Descend from two nodes through both trees together; nodes that pair nothing are passed as well."""
        special, start, end, found = self._counts.special, tree.start, tree.start + len(tree.names), [first]
        for a, b in found:  # grows
            given = special[a].get(start + b) if a in special else None
            if given is not None:
                found += [(x, y - start) for x, y in given if y < end]
                if not self._layout:
                    continue
            elif not self._layout:
                ours, other = self._query.nodes[a], tree.names[b]
                if ours[:2] == "M!" == other[:2] and ours[:3] != other[:3]:
                    continue  # matrices or fences of different kinds, whose operands are not compared
            theirs = tree.children[b]
            for place, child in self._children[a]:
                below = theirs[place]
                if below < end and (given is None or place != WITHIN):
                    found.append((child, below - start))
        return found

    def _trial(self, start: NodePair, tree: _Candidate) -> tuple[_Score, list[NodePair]]:
        """Align from two nodes, unify the variables, and score the matched nodes."""
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
        aligned = {a for a, _ in matched}
        edges = len([a for a in aligned if parents[a] in aligned])
        r = len(matched) / len(nodes)
        e = 1.0 if len(nodes) == 1 else (edges or 0.5) / (len(nodes) - 1)
        return (2 * r * e / (r + e) if matched else 0.0, len(matched), exact), matched


class _Candidate(NamedTuple):
    """A candidate's tree, its nodes counted from 0."""

    start: int  # its first node in all of them
    own: list[list[int]]  # the kind of each pair with a node of the query
    children: list[list[int]]  # the children of its nodes in all of them
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


TANGENT_S_WEIGHTS = (0.2930, 0.0861, -0.1694, 1.8469, 0.9657, -0.0153, -0.3301)
"""A constant, then MSS, precision and exact recall of the layout trees, then of the operator trees; fitted by the
authors on NTCIR-12."""
_PARTS = (
    "constant",
    *(f"{tree} tree, {name}" for tree in ("layout", "operator") for name in ("MSS", "precision", "exact recall")),
)


class TangentS(Leaf, FormulaRetriever, pt.Estimator):  # type: ignore[misc]
    r"""Finds formulas by their symbol pairs, and ranks them by how well whole trees align.

    Zanibbi, Davila, Kane and Tompa, "Multi-stage math formula search: using appearance-based similarity metrics at
    scale", SIGIR 2016; Davila and Zanibbi, "Layout and semantics: combining representations for mathematical formula
    search", SIGIR 2017. The best expressions by layout trees and, apart, by operator trees are aligned with the query's
    tree of that kind; a linear regression makes one score of both alignments' three. In the ARQMath runs an expression
    of one list only has zeros for the other kind of tree.

    Args:
        tangent_index: finds the candidates; the authors' has ``PairOptions(window=4, ends="small")``.
        formula_trees: the trees of the same formulas.
        num_results: the number of formulas for each query.
        candidates: expressions of each of the two lists.
        weights: seven numbers; see :data:`TANGENT_S_WEIGHTS`. :meth:`fit` finds others.
        complete: align both kinds of trees of every candidate, also of one that is in one list only.
        store: official trees of the queries' formulas, looked up by ``formula_id`` if queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        pipeline = TangentS(TangentIndex("formulas.tangent"), FormulaTrees("formulas.trees"))
    """

    label, help_url = "Tangent-S", "https://doi.org/10.1145/3077136.3080748"
    above = -np.inf
    checks: ClassVar[Mapping[str, Rule]] = {
        **FormulaRetriever.checks,
        "candidates": COUNT,
        "complete": FLAG,
        "weights": Rule("seven numbers", lambda weights: len(weights) == 7 and bool(np.isfinite(weights).all())),
    }

    def __init__(
        self,
        tangent_index: TangentIndex,
        formula_trees: FormulaTrees,
        *,
        num_results: int = 1000,
        candidates: int = 1000,
        weights: Sequence[float] = TANGENT_S_WEIGHTS,
        complete: bool = False,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.tangent_index, self.formula_trees = tangent_index, formula_trees
        self.num_results, self.candidates, self.weights = num_results, candidates, tuple(weights)
        self.complete, self.store, self.verbose = complete, store, verbose

    def snapshot(self) -> TangentSnapshot:
        return self.tangent_index.snapshot()

    def scores(self, snapshot: TangentSnapshot, pair: FormulaPair) -> npt.NDArray[np.float64]:
        """Score the candidates in ``snapshot`` for the trees ``pair`` of a formula; others have minus infinity.

        Raises:
            UnknownIdError: a candidate has no trees in ``formula_trees``; the error names some.
        """
        numbers, features = self.features(snapshot, pair)
        scores = np.full(len(snapshot.expressions.payload.slt.lengths), -np.inf)
        scores[numbers] = self.weights[0] + features @ np.array(self.weights[1:])
        return scores

    def terms(self, snapshot: TangentSnapshot, pair: FormulaPair, docno: str) -> Iterator[ScoreTerm]:
        """Compute the contribution of each number of the alignment of both trees to the score of a candidate.

        Args:
            snapshot: of the index.
            pair: the trees of the query's formula.
            docno: the formula whose score is explained.

        Raises:
            AskedError: the formula is not a candidate of the query.
        """
        numbers, features = self.features(snapshot, pair)
        place = np.flatnonzero(numbers == snapshot.expressions_of([docno])[0])
        if not len(place):
            why = f"{docno} is not among the candidates, and only candidates have a score"
            raise AskedError(self.label, why, "Ask for a formula that the query finds, or give more candidates=.")
        for name, value, weight in zip(_PARTS, (1.0, *features[place[0]].tolist()), self.weights, strict=True):
            yield ScoreTerm(name, weight * value, value, weight)

    def features(self, snapshot: TangentSnapshot, pair: FormulaPair) -> tuple[Rows, npt.NDArray[np.float64]]:
        """Find the candidates in ``snapshot`` for the trees ``pair`` of a formula, and align them.

        Returns:
            Expressions of the index, int64 ``[c]``, and for each MSS, precision and exact recall of its layout tree and
            of its operator tree, float64 ``[c, 6]``.
        """
        lists = [self._best_expressions(snapshot, pair, kind) for kind in get_args(Packed)]
        numbers = np.union1d(*lists)
        trees = self.formula_trees.snapshot()
        rows = trees.expressions_of(snapshot.formula_ids(snapshot.expressions.firsts[numbers]))
        features = np.zeros((len(numbers), 6))
        for place, (kind, some) in enumerate(zip(get_args(Packed), lists, strict=True)):
            query = getattr(pair, kind)
            if query is not None:
                chosen = np.arange(len(numbers)) if self.complete else np.searchsorted(numbers, some)
                columns = slice(3 * place, 3 * place + 3)
                packed = getattr(trees.expressions.payload, kind)
                cache = f"Tangent-S: {kind} labels"  # read once for all queries
                if cache not in trees.caches:
                    trees.caches[cache] = TreeLabels(packed.names)
                features[chosen, columns] = align(query, packed, rows[chosen], trees.caches[cache])
        return numbers, features

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame,
        qrels_tr: pd.DataFrame,
        topics_or_res_va: pd.DataFrame | None = None,
        qrels_va: pd.DataFrame | None = None,
    ) -> None:
        """Find the weights by least squares on the grades of judged candidates.

        Args:
            topics_or_res_tr: queries, as for :meth:`transform`.
            qrels_tr: ``qid``, ``docno`` (a formula's id or its visual id), ``label``.
            topics_or_res_va: not used.
            qrels_va: not used.

        Raises:
            SystemsError: no candidate is judged.
        """
        snapshot, rows, grades = self.tangent_index.snapshot(), [np.zeros((0, 7))], list[float]()
        queries = topics_or_res_tr.drop_duplicates("qid")
        for qid, pair in zip(queries["qid"], query_trees(queries, self.store), strict=True):
            judged = qrels_tr[qrels_tr["qid"] == qid].drop_duplicates("docno").set_index("docno")["label"]
            numbers, features = self.features(snapshot, pair)
            owned = snapshot.expressions.formulas_of(numbers)
            for names in (snapshot.formula_ids, snapshot.visual_ids):
                row_of = {name: row for row, some in enumerate(owned) for name in names(some)}
                known = [name for name in row_of if name in judged.index]
                rows.append(np.column_stack([np.ones(len(known)), features[[row_of[name] for name in known]]]))
                grades += judged[known].tolist()
        if not grades:
            raise nothing_judged(len(queries))
        self.weights = tuple(np.linalg.lstsq(np.concatenate(rows), np.array(grades), rcond=None)[0].tolist())

    def _best_expressions(self, snapshot: TangentSnapshot, pair: FormulaPair, kind: Packed) -> Rows:
        """Return the best expressions by one kind of tree, ascending."""
        terms = Counter(pair_terms(getattr(pair, kind), snapshot.pairs))
        if not terms:
            return np.zeros(0, dtype=np.int64)
        scores = dice(getattr(snapshot.expressions.payload, kind), terms)
        some, firsts = np.flatnonzero(scores > 0), snapshot.expressions.firsts
        best, _ = best_first(some, scores[some], self.candidates, lambda found: snapshot.formula_ids(firsts[found]))
        return np.sort(best)
