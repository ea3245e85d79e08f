"""Both trees of each formula of a collection on disk, for systems that compare whole trees; tree edit distance.

A part keeps the trees of each expression, packed::

    slt_offsets, slt_labels, slt_parents, slt_edges      arrays of :class:`PackedTrees`, x trees
    slt_names                                            the labels, ascending
    opt_…                                                likewise

Re-ranking by edit distance, as CFTED and CFT2TED do::

    packed trees ── postorder ──▶ keyroots, leftmost leaves ── distance ──▶ cost of changing the query into each

In postorder each node comes after all that is below it. A keyroot is a node that is not the first child of another: of
all nodes with the same leftmost leaf it is the highest. The algorithm is by Zhang and Shasha (1989), for all
candidates at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr.explain import AskedError, Explanation, Part, QueryRow
from pyterrier_mathamr.extending import (
    COUNT,
    FRACTION,
    BothTrees,
    CollectingBuilder,
    ConfigError,
    ExpressionIndex,
    ExpressionSnapshot,
    FormulaReranker,
    Packed,
    PackedTrees,
    Packing,
    Rule,
    asked_formula,
    combined_runs,
    expression_kind,
    formula_trees,
    method,
    one_of,
    ordered_by_score,
    query_trees,
    read_names,
    renumbered,
    text_arrays,
    text_fields,
)
from pyterrier_mathamr.formula import FormulaPair, FormulaStore, FormulaTree
from pyterrier_mathamr.fusion import reciprocal_ranks
from pyterrier_mathamr.store import Array, DamagedError, Field, Rows, StoredPart, ranges

_NODE_BYTES = 100  # of memory for a node of a tree that is not packed yet


def _fields(kind: Packed) -> tuple[Field, ...]:
    nodes, labels = f"{kind}_n", f"{kind}_l"
    return (
        Field(f"{kind}_offsets", "int64", "x+1", cuts=nodes),
        Field(f"{kind}_labels", "int32", nodes, below=labels),
        Field(f"{kind}_parents", "int32", nodes),
        Field(f"{kind}_edges", "int32", nodes),
        *text_fields(f"{kind}_names", labels),
    )


class StoredTrees(PackedTrees):
    """Packed trees in a part, and combined from several."""

    __slots__ = ()

    @classmethod
    def of_part(cls, part: StoredPart, prefix: str) -> PackedTrees:
        names, offsets = read_names(part, f"{prefix}names"), part[f"{prefix}offsets"]
        labels, parents, edges = (part[f"{prefix}{name}"] for name in ("labels", "parents", "edges"))
        places = ranges(np.zeros_like(offsets[1:]), np.diff(offsets))
        if bool(np.any(parents >= places)) or bool(np.any((parents < 0) != (places == 0))):
            raise DamagedError(part.path, f"{prefix}parents are not above their nodes")
        if bool(np.any((edges < 0) != (places == 0))) or edges.max(initial=0) > 0x10FFFF:
            raise DamagedError(part.path, f"{prefix}edges are not labels")
        return cls("slt" if prefix == "slt_" else "opt", names, offsets, labels, parents, edges)

    @classmethod
    def combined(
        cls, pieces: Sequence[PackedTrees], numbers: Sequence[Rows], size: int, folder: Path | None = None
    ) -> PackedTrees:
        kept = [piece.take(np.flatnonzero(number >= 0)) for piece, number in zip(pieces, numbers, strict=True)]
        names, labels = renumbered([piece.names for piece in kept], [piece.labels for piece in kept])
        offsets, order = combined_runs(
            [piece.offsets for piece in kept], [numbered[numbered >= 0] for numbered in numbers], size
        )
        nothing = np.zeros(0, dtype=np.int32)
        parents, edges = (
            np.concatenate([nothing, *(getattr(piece, name) for piece in kept)])[order] for name in ("parents", "edges")
        )
        return cls(pieces[0].kind, names, offsets, labels[order], parents, edges)

    def arrays(self, prefix: str) -> dict[str, Array]:
        plain = {f"{prefix}{name}": getattr(self, name) for name in ("offsets", "labels", "parents", "edges")}
        return plain | text_arrays(f"{prefix}names", self.names)


class TreePairs(BothTrees[PackedTrees]):
    """Both trees of ``x`` expressions."""

    OF = StoredTrees

    def __len__(self) -> int:
        return len(self.slt)

    def __iter__(self) -> Iterator[FormulaPair]:
        return map(self.pair, range(len(self)))

    def pair(self, row: int) -> FormulaPair:
        return FormulaPair(self.slt.tree(row), self.opt.tree(row))

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        return super().combined(pieces, numbers, size, folder) if pieces else cls.of_pairs([])

    @classmethod
    def of_pairs(cls, pairs: Sequence[FormulaPair]) -> Self:
        return cls(*(StoredTrees.of_trees([getattr(pair, kind) for pair in pairs], kind) for kind in get_args(Packed)))


def _nbytes(pair: FormulaPair) -> int:
    return _NODE_BYTES * sum(len(tree.nodes) for tree in pair if tree is not None)


TREES = expression_kind(
    TreePairs,
    *_fields("slt"),
    *_fields("opt"),
    type="formula_trees",
    format="mathamr",
    version=1,
    index="FormulaTrees('{path}')",
)


@dataclass(frozen=True, slots=True, eq=False)
class Postorder:
    """Some trees with ``n`` nodes in all, each tree's nodes in postorder, tree after tree."""

    labels: npt.NDArray[np.int32]  # [n]
    leftmost: Rows  # [n], the leftmost leaf below each node
    keyroots: Rows  # [k], ascending
    nesting: Rows  # [k], how many keyroots of its tree a keyroot is below
    roots: Rows  # [trees], -1 for a tree without nodes

    @classmethod
    def of(cls, trees: PackedTrees) -> Self:
        n, parents = len(trees.labels), trees.above
        nodes = np.arange(n)
        first = (parents >= 0) & (parents == nodes - 1)  # in preorder, a first child follows its parent
        depths, nesting, sizes = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)
        below = trees.levels()[1:]
        for level in below:
            depths[level] = depths[parents[level]] + 1
            nesting[level] = nesting[parents[level]] + ~first[level]
        for level in reversed(below):
            np.add.at(sizes, parents[level], sizes[level])
        number = nodes + sizes - 1 - depths  # before a node come all before it in preorder that are not above it
        leaves = np.where(sizes == 1, nodes, n)
        leftmost = np.minimum.accumulate(leaves[::-1])[::-1]  # the next leaf in preorder
        order = np.empty(n, dtype=np.int64)
        order[number] = nodes
        tops = np.flatnonzero(~first[order])
        roots = np.where(trees.sizes > 0, trees.offsets[1:] - 1, -1)
        return cls(trees.labels[order], number[leftmost[order]], tops, nesting[order][tops], roots)


_UNIT = 1_000_000
_CELLS = 1 << 22  # of the tables of one keyroot of the query, kept at once
_BLOCK = 1 << 40  # between tables that lie end to end: more than any distance


class EditCosts(NamedTuple):
    """The cost of each operation, in steps of a millionth.

    Attributes:
        delete: to remove a node of the query.
        insert: to add a node of the candidate.
        rename: to change a label into another.
    """

    delete: float = 1.0
    insert: float = 1.0
    rename: float = 1.0


UNIT_COSTS = EditCosts()


def tree_edit_distance(query: FormulaTree, candidate: FormulaTree, costs: EditCosts = UNIT_COSTS) -> float:
    """Compute the cost of the cheapest way from one tree to the other; labels are compared whole, edges are not.

    Zhang and Shasha, "Simple fast algorithms for the editing distance between trees and related problems", SIAM
    Journal on Computing 18(6), 1989.

    Args:
        query: a tree.
        candidate: another.
        costs: of the operations.

    Example::

        tree_edit_distance(*(trees_from_latex(latex).opt for latex in ("x^2+1", "x^2")))  # 2, the sum and the 1
    """
    packed = PackedTrees.of_trees([candidate], "opt")
    return float(tree_edit_distances(query, packed, np.zeros(1, dtype=np.int64), costs)[0])


def tree_edit_distances(
    query: FormulaTree, trees: PackedTrees, rows: Rows, costs: EditCosts = UNIT_COSTS, max_nodes: int = 400
) -> npt.NDArray[np.float64]:
    if not all(np.isfinite(cost) and cost >= 0 for cost in costs):
        raise ConfigError("costs", costs, "three numbers, 0 or more")
    sizes = trees.offsets[rows + 1] - trees.offsets[rows]
    distances = np.zeros(len(rows), dtype=np.int64)
    small = (sizes <= max_nodes) & (len(query.nodes) <= max_nodes)
    for place in np.flatnonzero(~small).tolist():
        distances[place] = _least(query, trees, int(rows[place]), costs)
    ours = PackedTrees.of_trees([query], trees.kind)
    read = Postorder.of(ours)
    numbers = {name: number for number, name in enumerate(trees.names)}
    labels = [numbers.get(ours.names[number], -1) for number in read.labels.tolist()]
    order = np.flatnonzero(small)[np.argsort(sizes[small], kind="stable")]  # tables of one size are together
    work = np.cumsum(sizes[order] * len(labels)) * 4 // _CELLS
    for some in np.split(order, np.flatnonzero(np.diff(work, prepend=0))):
        if len(some):
            distances[some] = _Distances(read, labels, Postorder.of(trees.take(rows[some])), costs).compute()
    return distances / _UNIT


class _Level(NamedTuple):
    """The tables of keyroots that are equally deep, ``c`` cells in a row; a table begins with the empty prefix."""

    cells: Rows  # [m], the cells of non-empty prefixes
    nodes: Rows  # [m], the last node of each prefix
    before: Rows  # [m], the cell of the prefix that ends before that node's sub-tree
    whole: npt.NDArray[np.bool_]  # [m], whether the prefix is one whole sub-tree
    inserted: Rows  # [c], the cost of inserting each prefix
    steps: Rows  # [c], the same and a block for each table before it


class _Distances:
    def __init__(self, query: Postorder, labels: list[int], candidates: Postorder, costs: EditCosts) -> None:
        self._query, self._labels, self._candidates = query, labels, candidates
        self._delete, self._insert, self._rename = (round(cost * _UNIT) for cost in costs)
        self._trees = np.zeros((len(labels), len(candidates.labels)), dtype=np.int64)  # distances of sub-trees
        deepest = int(candidates.nesting.max(initial=-1))
        self._levels = [self._level(candidates.keyroots[candidates.nesting == k]) for k in range(deepest, -1, -1)]

    def compute(self) -> Rows:
        """Return the distance of each candidate, in millionths."""
        candidates = self._candidates
        for keyroot in self._query.keyroots.tolist():
            for level in self._levels:
                self._fill(keyroot, level)
        nothing = len(self._labels) * self._delete
        distances = np.full(len(candidates.roots), nothing, dtype=np.int64)
        distances[candidates.roots >= 0] = self._trees[-1, candidates.roots[candidates.roots >= 0]]
        return distances

    def _level(self, keyroots: Rows) -> _Level:
        leftmost = self._candidates.leftmost
        lengths = keyroots - leftmost[keyroots] + 1
        empty = np.cumsum(lengths + 1) - lengths - 1
        cells, nodes = ranges(empty + 1, lengths), ranges(leftmost[keyroots], lengths)
        firsts = np.repeat(leftmost[keyroots], lengths)
        before = np.repeat(empty, lengths) + leftmost[nodes] - firsts
        inserted = self._insert * ranges(np.zeros_like(empty), lengths + 1)
        steps = inserted + _BLOCK * np.repeat(np.arange(len(empty)), lengths + 1)
        return _Level(cells, nodes, before, leftmost[nodes] == firsts, inserted, steps)

    def _fill(self, keyroot: int, level: _Level) -> None:
        """Compute the rows of all tables of a level for a keyroot of the query."""
        first = int(self._query.leftmost[keyroot])
        rows = np.empty((keyroot - first + 2, len(level.steps)), dtype=np.int64)
        rows[0] = level.inserted
        labels, base = self._candidates.labels[level.nodes], np.empty_like(level.steps)
        for node in range(first, keyroot + 1):
            above, start = rows[node - first], int(self._query.leftmost[node])
            kept = rows[start - first][level.before] + self._trees[node, level.nodes]
            if start == first:
                renamed = above[level.cells - 1] + np.where(labels == self._labels[node], 0, self._rename)
                kept = np.where(level.whole, renamed, kept)
            np.add(above, self._delete, out=base)
            base[level.cells] = np.minimum(base[level.cells], kept)
            row = rows[node - first + 1]
            np.minimum.accumulate(base - level.steps, out=row)  # less in each later table, by a block
            row += level.steps
            if start == first:
                self._trees[node, level.nodes[level.whole]] = row[level.cells[level.whole]]


def _least(query: FormulaTree, trees: PackedTrees, row: int, costs: EditCosts) -> int:
    """Bound a distance from below: labels that both have are kept, and the others changed at the least cost."""
    delete, insert, rename = (round(cost * _UNIT) for cost in costs)
    here = trees.labels[trees.offsets[row] : trees.offsets[row + 1]].tolist()
    ours, theirs = Counter(query.nodes), Counter(trees.names[number] for number in here)
    missing, extra = (ours - theirs).total(), (theirs - ours).total()
    changed = min(missing, extra)
    return changed * min(rename, delete + insert) + (missing - changed) * delete + (extra - changed) * insert


TreeCombine = Literal["rrf", "weighted"]
CostNames = Literal["printed", "swapped", "unit"]

EDIT_COSTS: dict[CostNames, dict[Packed, EditCosts]] = {
    "printed": {"slt": EditCosts(0.85, 0.54, 0.15), "opt": EditCosts(0.28, 0.225, 0.185)},
    "swapped": {"slt": EditCosts(0.85, 0.15, 0.54), "opt": EditCosts(0.28, 0.185, 0.225)},
    "unit": {"slt": UNIT_COSTS, "opt": UNIT_COSTS},
}
"""Costs by name and kind of tree: as printed for CFTED; with insertion and renaming swapped, the order in the authors'
library, and better on the judgments of both years; and 1."""

_NAMES = ("layout tree", "operator tree")


class EditDistanceReranker(FormulaReranker):
    r"""Re-ranks formulas by tree edit distance to the query.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 4.3: the
    similarity of two trees is 1 / (d + 1) of their edit distance d. CFTED adds the similarities of layout and operator
    trees, weighted (equation 4.5); CFT2TED fuses two rankings by modified reciprocal rank fusion, the sum of similarity
    / (60 + rank). A formula that lacks a tree has similarity 0 there. Rows come back by query, descending score,
    ascending docno, with all their columns.

    Args:
        formula_trees: the trees of the formulas to rank.
        combine: ``"rrf"`` as in CFT2TED, ``"weighted"`` as in CFTED.
        costs: of deleting, inserting and renaming a node: ``printed`` for CFTED, ``swapped`` (insertion and renaming,
            as in the authors' library) or ``unit``, 1 each.
        slt_weight: of layout trees in the weighted sum, 0 to 1.
        max_nodes: larger trees are compared only by their labels.
        store: official trees of the queries' formulas, looked up by ``formula_id`` if queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        tangent, trees = TangentIndex("formulas.tangent"), FormulaTrees("formulas.trees")
        pipeline = tangent.retriever() >> EditDistanceReranker(trees)
    """

    label = "Tree edit distance"
    checks: ClassVar[Mapping[str, Rule]] = {
        "combine": one_of(*get_args(TreeCombine)),
        "costs": one_of(*get_args(CostNames)),
        "slt_weight": FRACTION,
        "max_nodes": COUNT,
    }

    def __init__(
        self,
        formula_trees: FormulaTrees,
        *,
        combine: TreeCombine = "rrf",
        costs: CostNames = "swapped",
        slt_weight: float = 0.95,
        max_nodes: int = 400,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.formula_trees, self.combine, self.costs, self.slt_weight = formula_trees, combine, costs, slt_weight
        self.max_nodes, self.store, self.verbose = max_nodes, store, verbose

    def rerank(self, ranking: pd.DataFrame) -> pd.DataFrame:
        docnos = ranking["docno"].astype(str).to_numpy(dtype=object)
        rows = self.formula_trees.snapshot().expressions_of(docnos.tolist())
        scores = np.zeros(len(ranking))
        for places, pair in self.by_query(ranking, query_trees):
            similarities = self.similarities(pair, rows[places])
            scores[places] = (similarities * self._weights(similarities, docnos[places])).sum(axis=1)
        return ordered_by_score(ranking, scores)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the contribution of the similarity of either tree to the score of a formula.

        Args:
            query: the ranking of one query, as for :meth:`transform`; with ``combine="weighted"``, where the score does
                not depend on other formulas, also a row with ``latex`` or ``query``.
            docno: a formula of the ranking; by default the ``docno`` of the row.

        Raises:
            AskedError: the row has no query, no formula is named, or it is not in a ranking that gives it a rank.
            UnknownIdError: ``formula_trees`` does not hold the formula.
        """
        asked, formula = asked_formula(query, docno, self.label)
        if isinstance(query, pd.DataFrame) and "docno" in query.columns:
            docnos = query["docno"].astype(str).to_numpy(dtype=object)
        else:
            docnos = np.array([asked.docno] if self.combine == "weighted" else [], dtype=object)
        places = np.flatnonzero(docnos == asked.docno)
        if not len(places):
            why = f"{asked.docno!r} is not in a ranking of the query, which gives it a rank"
            raise AskedError(self.label, why, "Give the frame that is ranked, or use explain.explain_score.")
        row, latex = asked.formula()
        rows = self.formula_trees.snapshot().expressions_of(docnos.tolist())
        similarities = self.similarities(formula_trees([formula], self.store)[0], rows)
        values = zip(_NAMES, similarities[places[0]], self._weights(similarities, docnos)[places[0]], strict=True)
        parts = [
            Part(self.label, name, formula.latex, "formula", latex, value, weight, value * weight, 0, row)
            for name, value, weight in ((name, float(value), float(weight)) for name, value, weight in values)
        ]
        return asked.explained(parts)

    def similarities(self, pair: FormulaPair, expressions: Rows) -> npt.NDArray[np.float64]:
        """Compare the trees ``pair`` of a formula with some ``expressions`` of ``formula_trees``.

        Returns:
            float64 ``[y, 2]``, of layout and of operator trees: 0 without a tree, else at most 1.
        """
        payload, similarities = self.formula_trees.snapshot().expressions.payload, np.zeros((len(expressions), 2))
        distinct, back = np.unique(expressions, return_inverse=True)
        for column, (kind, query) in enumerate(zip(get_args(Packed), pair, strict=True)):
            if query is not None:
                trees = getattr(payload, kind)
                distances = tree_edit_distances(query, trees, distinct, EDIT_COSTS[self.costs][kind], self.max_nodes)
                present = trees.offsets[distinct + 1] > trees.offsets[distinct]
                similarities[:, column] = np.where(present, 1 / (distances + 1), 0.0)[back]
        return similarities

    def _weights(
        self, similarities: npt.NDArray[np.float64], docnos: npt.NDArray[np.object_]
    ) -> npt.NDArray[np.float64]:
        """Return the weights of similarities: float64 ``[y, 2]``."""
        if self.combine == "weighted":
            return np.full(similarities.shape, (self.slt_weight, 1 - self.slt_weight))
        return np.stack([reciprocal_ranks(column, docnos) for column in similarities.T], axis=1)


class FormulaTrees(ExpressionIndex[ExpressionSnapshot[TreePairs]]):
    r"""Both trees of each formula of a collection, once for each expression.

    Systems that re-rank candidates by whole trees read them from here: the alignment of Tangent-S, the edit distance.

    Args:
        path: the folder; it need not exist yet.

    Example::

        trees = FormulaTrees("formulas.trees")
        trees.index(dataset.get_corpus_iter())
    """

    KIND, PAYLOAD = TREES, TreePairs

    @staticmethod
    def example() -> FormulaTrees:
        """Return trees that are not built."""
        return FormulaTrees("formulas.trees")

    edit_distance = method(EditDistanceReranker)

    def get(self, formula_id: str) -> FormulaPair:
        """Return both trees of a formula.

        Raises:
            UnknownIdError: there is no such formula.
        """
        snapshot = self.snapshot()
        return snapshot.expressions.payload.pair(int(snapshot.expressions_of([formula_id])[0]))

    def packed(self, kind: Packed) -> PackedTrees:
        """Return the trees of one kind, of each distinct formula."""
        trees = self.snapshot().expressions.payload
        return trees.slt if kind == "slt" else trees.opt

    def packing(self) -> Packing:
        """Describe the stored data of an expression: both trees."""
        return Packing(partial(CollectingBuilder, TreePairs.of_pairs, _nbytes))
