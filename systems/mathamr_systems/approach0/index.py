"""An index of Approach Zero on disk, and the search in it: bounds, exact scores, rankings, explanations.

The exact score of some expressions (equations 1 to 5 of the paper)::

    expressions ─▶ their sectors that the query has, too ─▶ w of pairs of root ends ─▶ w*, and the pairs that have it
                                                                                          │
                         w* · symbol score · length penalty ◀── symbols matched greedily ◀┘

The search bounds scores by the lists of paths, then scores exactly, best bound first. A root end of the query bounds
its contribution to any expression by the sum of its paths' weights. Root ends are processed in descending order of that
bound, until none can lead into the results any more (GBP-LEN). For each, the lists of the heaviest paths are read;
lists that could not lead into the results by themselves are skipped (MaxScore), and their weights are added to the
bounds. The search stays exact: every expression whose bound reaches the results is scored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr.extending import (
    FRACTION,
    CollectingBuilder,
    ExpressionIndex,
    ExpressionSnapshot,
    FormulaReranker,
    FormulaRetriever,
    FormulaScoring,
    Found,
    Packing,
    Rule,
    ScoreTerm,
    SparseIndex,
    method,
    ordered_by_score,
    query_trees,
    warn_of_queries,
)
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.store import Rows, ranges

from .path_lists import APPROACH0, Floats, PathLists, PathQuery, Sectors, indexed_paths, nbytes, path_query, tree_paths
from .tree import MOST_LEAVES, FormulaPaths, canonical_tree, path_names

_TOGETHER = 1024  # expressions
_CELLS = 1 << 21  # of the tables of symbols that are matched together
_EQUAL = 1 - 1e-9  # sums of the same terms differ by rounding


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants of the score, as printed."""

    eta: float = 0.3  # how much a long formula is penalized
    b1: float = 0.94  # points of two leaves with the same symbol below other operators
    b2: float = 0.9  # points of two leaves with different symbols

    def penalties(self, leaves: npt.NDArray[np.int32]) -> Floats:
        """Compute 1 - η + η / ln(1 + L) (equation 4) of formulas with L leaves: above 1 for a single leaf."""
        penalties: Floats = 1 - self.eta + self.eta / np.log1p(np.maximum(leaves, 1))
        return penalties


class Scored(NamedTuple):
    """The scores of ``y`` expressions."""

    structure: Floats  # w*, 0 if the query has no path of the expression
    symbols: Floats  # the symbol score
    roots: Rows  # the root end of the query with the best pair, -1 for none
    ends: Rows  # that of the expression, as the index numbers root ends


def score_expressions(query: PathQuery, index: Sectors, rows: Rows, constants: Constants) -> Scored:
    parts = [_scored(query, index, some, constants) for some in np.split(rows, range(_TOGETHER, len(rows), _TOGETHER))]
    return Scored(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def common_paths(query: PathQuery, index: Sectors, root: int, end: int) -> dict[int, float]:
    """Compute the contribution of each path to the common structure of one pair of root ends."""
    common = _common(query, index, np.array([end]))
    kept = query.roots[common.asked] == root
    terms, gained = query.terms[common.asked[kept]], _gained(query, index, common)[kept]
    return dict(zip(index.path_keys[query.paths[terms]].tolist(), gained.tolist(), strict=True))


class _Common(NamedTuple):
    """Sectors of expressions with the same path as a sector of the query."""

    places: Rows  # the root end of the expression, as a place among the scored ones
    sectors: Rows  # of the index
    asked: Rows  # of the query


def _scored(query: PathQuery, index: Sectors, rows: Rows, constants: Constants) -> Scored:
    sizes = index.roots[rows + 1] - index.roots[rows]
    ends, owners = ranges(index.roots[rows], sizes), np.repeat(np.arange(len(rows)), sizes)
    common = _common(query, index, ends)
    width = max(1, len(query.leaves))
    codes = common.places * width + query.roots[common.asked]
    weights = np.bincount(codes, _gained(query, index, common), minlength=len(ends) * width)
    table = weights.reshape(-1, width)  # w of each pair
    structure = np.zeros(len(rows))
    np.maximum.at(structure, owners, table.max(axis=1, initial=0.0))
    best = (table > 0) & (table >= _EQUAL * structure[owners, None])
    places, roots = np.nonzero(best)
    pair_of = np.full(table.size, -1, dtype=np.int64)
    pair_of[places * width + roots] = np.arange(len(places))
    matched = _symbol_points(query, index, common, pair_of[codes], len(places), constants) / query.leaves[roots]
    scores = 1 / (1 + (1 - matched) ** 2)
    scored = Scored(structure, np.zeros(len(rows)), np.full(len(rows), -1), np.full(len(rows), -1))
    order = np.lexsort((-scores, owners[places]))  # stable: the first pair of several, by root ends
    first = np.flatnonzero(np.diff(owners[places[order]], prepend=-1))
    chosen = order[first]
    at = owners[places[chosen]]
    scored.symbols[at], scored.roots[at], scored.ends[at] = scores[chosen], roots[chosen], ends[places[chosen]]
    return scored


def _common(query: PathQuery, index: Sectors, ends: Rows) -> _Common:
    """Find the sectors of some root ends whose path the query has; once for each root end of the query that has it."""
    sizes = index.sectors[ends + 1] - index.sectors[ends]
    sectors = ranges(index.sectors[ends], sizes)
    paths = index.paths[sectors]
    terms = np.minimum(np.searchsorted(query.paths, paths), max(len(query.paths) - 1, 0))
    known = query.paths[terms] == paths if len(query.paths) else np.zeros(len(paths), dtype=np.bool_)
    terms, sectors, places = terms[known], sectors[known], np.repeat(np.arange(len(ends)), sizes)[known]
    times = query.offsets[terms + 1] - query.offsets[terms]
    return _Common(np.repeat(places, times), np.repeat(sectors, times), ranges(query.offsets[terms], times))


def _gained(query: PathQuery, index: Sectors, common: _Common) -> Floats:
    """Compute the contribution of each common sector to the structure score of its root ends (equation 2)."""
    shared = np.minimum(query.widths[common.asked], index.widths[common.sectors])
    gained: Floats = shared * query.weights[query.terms[common.asked]]
    return gained


def _symbol_points(
    query: PathQuery, index: Sectors, common: _Common, pairs: Rows, count: int, constants: Constants
) -> Floats:
    """Match the symbols below pairs of root ends."""
    kept = np.flatnonzero(pairs >= 0)
    kept = kept[np.argsort(pairs[kept], kind="stable")]
    pairs, sectors, asked = pairs[kept], common.sectors[kept], common.asked[kept]
    symbols = int(query.ranks.max(initial=0)) + 1
    step = max(1, _CELLS // (symbols * MOST_LEAVES))
    points = np.zeros(count)
    for start in range(0, count, step):
        stop = min(start + step, count)
        here = slice(*np.searchsorted(pairs, [start, stop]).tolist())
        cells, values = _cells(query, index, pairs[here] - start, sectors[here], asked[here], constants)
        shape = (stop - start, symbols, MOST_LEAVES)
        table = np.bincount(cells, values, math.prod(shape)).astype(np.float64)
        points[start:stop] = _mark_and_cross(table.reshape(shape))
    return points


def _cells(
    query: PathQuery, index: Sectors, pairs: Rows, sectors: Rows, asked: Rows, constants: Constants
) -> tuple[Rows, Floats]:
    """Compute the points of each symbol of the query with each of the expression, path by path."""
    theirs = index.entries[sectors + 1] - index.entries[sectors]
    ours = query.entries[asked + 1] - query.entries[asked]
    both = theirs * ours
    owners = np.repeat(np.arange(len(pairs)), both)
    place = ranges(np.zeros_like(both), both)
    mine = query.entries[asked][owners] + place % ours[owners]
    its = index.entries[sectors][owners] + place // ours[owners]
    same = query.symbols[mine] == index.symbols[its]
    alike = query.operators[mine] == index.operators[its]
    points = np.where(same, np.where(alike, 1.0, constants.b1), constants.b2)
    values = points * np.minimum(query.counts[mine], index.counts[its])
    symbols = int(query.ranks.max(initial=0)) + 1
    return (pairs[owners] * symbols + query.ranks[mine]) * MOST_LEAVES + index.firsts[its], values


def _mark_and_cross(table: Floats) -> Floats:
    """Pair symbols greedily: each symbol of the query, in order, gets the remaining symbol with the most points."""
    total, every = np.zeros(len(table)), np.arange(len(table))
    for symbol in range(table.shape[1]):
        best = table[:, symbol].argmax(axis=1)  # the first of several: in the order of the expression
        total += table[every, symbol, best]
        taken = table[every, symbol, best] > 0
        table[every[taken], :, best[taken]] = 0
    return total


_ROUNDING = 1 + 1e-9
_BEST_BOUNDS = 512  # expressions that are scored at a time


class PathSearch:
    """The search for one query."""

    def __init__(
        self,
        query: PathQuery,
        index: PathLists,
        sizes: Rows,
        penalties: Floats,
        constants: Constants,
        count: int,
    ) -> None:
        self._query, self._index, self._sizes, self._penalties = query, index, sizes, penalties
        self._constants, self._count = constants, count
        self._least = 0.0  # a lower bound of the score of the last result
        self._known = np.zeros(len(sizes), dtype=np.bool_)
        self._gained = np.zeros(len(index.of.sectors) - 1)  # by one root end of the query; zeros in between
        self.scores: Floats = np.zeros(len(sizes))

    def run(self) -> Floats:
        """Return the scores of all expressions that may be among the results, and 0 of the others: float64 ``[x]``."""
        bounds = self._bounds()
        order = self._promising(bounds)
        first = 0 if self._least else self._enough(order)
        for some in np.split(order, range(first, len(order), _BEST_BOUNDS)):
            if len(some) and bounds[some[0]] >= self._least:
                self._score(some)
        return self.scores

    def _bounds(self) -> Floats:
        query, index = self._query, self._index
        by_root = [np.flatnonzero(query.roots == root) for root in range(len(query.leaves))]
        distinct = {(tuple(query.terms[some]), tuple(query.widths[some])): some for some in by_root if len(some)}
        order = sorted(distinct.values(), key=lambda some: -query.most[some].sum())
        best = np.zeros(len(index.of.sectors) - 1)
        greatest = float(self._penalties.max(initial=1.0)) * _ROUNDING
        for some in order:
            if query.most[some].sum() * greatest < self._least:
                break
            self._read(some, best, greatest)
            if not self._least:
                likely = self._promising(self._by_expression(best))
                if (enough := self._enough(likely)) <= len(likely):
                    self._score(likely[:enough])
        return self._by_expression(best)

    def _by_expression(self, best: Floats) -> Floats:
        roots = self._index.of.roots
        bounds = np.zeros(len(roots) - 1)
        some = np.flatnonzero(roots[1:] > roots[:-1])
        if len(some):
            bounds[some] = np.maximum.reduceat(best, roots[some])
        return bounds * self._penalties * _ROUNDING

    def _read(self, sectors: Rows, best: Floats, greatest: float) -> None:
        """Read the lists of one root end of the query, heaviest first."""
        query, index = self._query, self._index
        sectors = sectors[np.argsort(-query.most[sectors], kind="stable")]
        rest = query.most[sectors].sum() - np.cumsum(query.most[sectors])  # after each list
        read = []
        for sector, after in zip(sectors.tolist(), np.maximum(rest, 0.0).tolist(), strict=True):
            path = query.paths[query.terms[sector]]
            here = slice(index.offsets[path], index.offsets[path + 1])
            read.append(index.roots[here])
            shared = np.minimum(index.widths[here], query.widths[sector])
            self._gained[read[-1]] += shared * query.weights[query.terms[sector]]
            if after * greatest < self._least:
                break
        for roots in read:
            best[roots] = np.maximum(best[roots], self._gained[roots] + after)
        for roots in read:
            self._gained[roots] = 0.0

    def _promising(self, bounds: Floats) -> Rows:
        """Return the expressions that may be among the results and are not scored yet, the best bound first."""
        some = np.flatnonzero((bounds > 0) & (bounds >= self._least) & ~self._known)
        return some[np.argsort(-bounds[some], kind="stable")]

    def _enough(self, order: Rows) -> int:
        """Count how many expressions own as many formulas as there are results; one more than all where too few."""
        return int(np.searchsorted(np.cumsum(self._sizes[order]), self._count)) + 1

    def _score(self, rows: Rows) -> None:
        """Score expressions exactly, and update the score of the last of the results."""
        scored = score_expressions(self._query, self._index.of, rows, self._constants)
        self.scores[rows] = scored.structure * scored.symbols * self._penalties[rows]
        self._known[rows] = True
        known = np.flatnonzero(self.scores > 0)
        order = known[np.argsort(-self.scores[known], kind="stable")]
        if (enough := self._enough(order)) <= len(order):
            self._least = float(self.scores[order[enough - 1]])


_CONSTANTS: Mapping[str, Rule] = {"eta": FRACTION, "b1": FRACTION, "b2": FRACTION}
_PAPER = "https://doi.org/10.1007/978-3-030-45439-5_47"


def asked_paths(queries: pd.DataFrame, store: FormulaStore | None) -> list[FormulaPaths]:
    """List the paths of the formula of each query; without an operator tree the list is empty."""
    pairs = query_trees(queries, store)
    without = [qid for qid, pair in zip(queries["qid"], pairs, strict=True) if pair.slt is not None and not pair.opt]
    warn_of_queries(without, "queries without an operator tree", "Search for them with TangentIndex.")
    return [tree_paths(pair) for pair in pairs]


class _Scoring(FormulaScoring):
    """The common part of retriever and scorer: the constants of the score, and its explanation."""

    label, help_url = "Approach Zero", _PAPER
    approach_zero_index: ApproachZeroIndex
    eta: float
    b1: float
    b2: float

    @property
    def _constants(self) -> Constants:
        return Constants(self.eta, self.b1, self.b2)

    def snapshot(self) -> ApproachZeroSnapshot:
        return self.approach_zero_index.snapshot()

    def terms(self, snapshot: ApproachZeroSnapshot, pair: FormulaPair, docno: str) -> Iterator[ScoreTerm]:
        """Compute the contribution of each path that a formula shares with the query to its score."""
        rows, index = snapshot.expressions_of([docno]), snapshot.expressions.payload
        sought = path_query(tree_paths(pair), index)
        scored = score_expressions(sought, index.of, rows, self._constants)
        if pair.opt is not None and scored.ends[0] >= 0:
            factor = float(scored.symbols[0] * self._constants.penalties(index.of.leaves[rows])[0])
            gained = common_paths(sought, index.of, int(scored.roots[0]), int(scored.ends[0]))
            names = path_names(canonical_tree(pair.opt), gained)
            for key, weight in gained.items():
                yield ScoreTerm(f"path {names[key]}", weight * factor)


class ApproachZeroRetriever(_Scoring, FormulaRetriever):
    r"""Ranks formulas by the greatest common sub-structure of operator trees, as Approach Zero.

    The score is w* · S_sym · P (equation 5 of the paper): the summed PathIDF of the paths that two sub-trees share,
    for the best two (equation 2); how well their symbols agree (equation 3); a length penalty (equation 4).
    Formulas with equal scores are in order of their ids. A query is ``latex``, or ``query`` that is one formula in
    LaTeX, with or without dollars. Other queries find nothing, with a warning.

    The search is exact: lists of paths are skipped only if they cannot change the results. Two details are not in the
    paper: if several pairs of sub-trees are equally good, the best symbol score counts; symbols that occur equally
    often are in the order of the formula.

    Args:
        approach_zero_index: the index.
        num_results: the number of formulas for each query; formulas without a common path are left out.
        eta: how much long formulas are penalized, 0 to 1.
        b1: points of two leaves with the same symbol below other operators, 0 to 1.
        b2: points of two leaves with different symbols, 0 to 1.
        store: official trees of the queries' formulas, looked up by ``formula_id`` if queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        pipeline = ApproachZeroIndex("formulas.a0").retriever(num_results=100)
    """

    checks: ClassVar[Mapping[str, Rule]] = {**FormulaRetriever.checks, **_CONSTANTS}

    def __init__(
        self,
        approach_zero_index: ApproachZeroIndex,
        num_results: int = 1000,
        *,
        eta: float = 0.3,
        b1: float = 0.94,
        b2: float = 0.9,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.approach_zero_index, self.num_results = approach_zero_index, num_results
        self.eta, self.b1, self.b2, self.store, self.verbose = eta, b1, b2, store, verbose

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row; ``docno`` is the formula's id."""
        snapshot = self.snapshot()

        def find(paths: FormulaPaths) -> Found:
            return self.find(snapshot, path_query(paths, snapshot.expressions.payload))

        return self.rank_each(queries, asked_paths(queries, self.store), snapshot, find)

    def find(self, snapshot: ApproachZeroSnapshot, query: PathQuery) -> Found:
        """Find the formulas of an index with the best scores for one query."""
        index, constants = snapshot.expressions.payload, self._constants
        penalties = constants.penalties(index.of.leaves)
        search = PathSearch(query, index, snapshot.sizes, penalties, constants, self.num_results)
        return snapshot.expressions.best(search.run(), self.num_results, snapshot.formula_ids)


class ApproachZeroScorer(_Scoring, FormulaReranker):
    """Re-ranks the formulas of any ranking by the score of Approach Zero.

    The rows come back by query (in order of appearance), descending score, ascending docno, with all their columns. A
    formula without a common path scores 0.

    Example::

        TangentIndex("formulas.tangent").retriever() >> ApproachZeroIndex("formulas.a0").scorer()

    Args:
        approach_zero_index: the index.
        eta: how much long formulas are penalized, 0 to 1.
        b1: points of two leaves with the same symbol below other operators, 0 to 1.
        b2: points of two leaves with different symbols, 0 to 1.
        store: official trees of the queries' formulas, looked up by ``formula_id`` if queries have it.
        verbose: show a progress bar.
    """

    checks: ClassVar[Mapping[str, Rule]] = _CONSTANTS

    def __init__(
        self,
        approach_zero_index: ApproachZeroIndex,
        *,
        eta: float = 0.3,
        b1: float = 0.94,
        b2: float = 0.9,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.approach_zero_index, self.eta, self.b1, self.b2 = approach_zero_index, eta, b1, b2
        self.store, self.verbose = store, verbose

    def rerank(self, ranking: pd.DataFrame) -> pd.DataFrame:
        snapshot, constants = self.snapshot(), self._constants
        index, rows = snapshot.expressions.payload, snapshot.expressions_of(ranking["docno"].astype(str).tolist())
        penalties = constants.penalties(index.of.leaves)
        scores = np.zeros(len(ranking))
        for places, paths in self.by_query(ranking, asked_paths):
            scored = score_expressions(path_query(paths, index), index.of, rows[places], constants)
            scores[places] = scored.structure * scored.symbols * penalties[rows[places]]
        return ordered_by_score(ranking, scores)


class ApproachZeroSnapshot(ExpressionSnapshot[PathLists]):
    """An index of Approach Zero as it was when it was opened."""

    @cached_property
    def sizes(self) -> Rows:
        """How many formulas each expression owns: int64 ``[x]``."""
        expressions = self.expressions
        sizes = np.zeros(len(expressions.payload.of.leaves), dtype=np.int64)
        np.add.at(sizes, expressions.numbers, np.diff(expressions.owned))
        return sizes


class ApproachZeroIndex(ExpressionIndex[ApproachZeroSnapshot], SparseIndex):
    r"""An inverted index over leaf-root paths of operator trees, after the formula search of Approach Zero.

    Zhong, Xie and Lin, "Applying structural and dense semantic matching for the ARQMath Lab 2022", CLEF 2022; Zhong,
    Rohatgi, Wu, Giles and Zanibbi, "Accelerating substructure similarity search for formula retrieval", ECIR 2020.
    Formulas are ranked by their greatest common sub-structure with the query, how well its symbols agree, and their
    length. The text around formulas is not used. Called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.

    Example::

        formulas = ApproachZeroIndex("formulas.a0")
        formulas.index(dataset.get_corpus_iter())
        formulas.search(r"\int_0^\infty e^{-x^2}\,dx")
    """

    KIND, PAYLOAD, SNAPSHOT = APPROACH0, PathLists, ApproachZeroSnapshot

    schematic: ClassVar[dict[str, str]] = {"label": "Approach Zero Index", "help_url": _PAPER}

    @staticmethod
    def example() -> ApproachZeroIndex:
        """Return an index that is not built."""
        return ApproachZeroIndex("index.a0")

    retriever = method(ApproachZeroRetriever)
    scorer = method(ApproachZeroScorer)

    def packing(self) -> Packing:
        """Describe the stored data of an expression: the paths of its operator tree."""
        return Packing(partial(CollectingBuilder, PathLists.of_paths, nbytes), indexed_paths)
