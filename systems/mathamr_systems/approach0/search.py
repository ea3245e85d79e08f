"""The score of Approach Zero, and the search for the expressions with the highest scores.

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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.store import Rows, ranges

from .path_lists import Floats, PathLists, PathQuery, Sectors
from .tree import MOST_LEAVES

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
        found: Floats = 1 - self.eta + self.eta / np.log1p(np.maximum(leaves, 1))
        return found


class Scored(NamedTuple):
    """The scores of ``y`` expressions."""

    structure: Floats  # w*, 0 if the query has no path of the expression
    symbols: Floats  # the symbol score
    roots: Rows  # the root end of the query with the best pair, -1 for none
    ends: Rows  # that of the expression, as the index numbers root ends


def score_expressions(query: PathQuery, index: Sectors, rows: Rows, constants: Constants) -> Scored:
    """Score some expressions against a query."""
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
    found = Scored(structure, np.zeros(len(rows)), np.full(len(rows), -1), np.full(len(rows), -1))
    order = np.lexsort((-scores, owners[places]))  # stable: the first pair of several, by root ends
    first = np.flatnonzero(np.diff(owners[places[order]], prepend=-1))
    chosen = order[first]
    at = owners[places[chosen]]
    found.symbols[at], found.roots[at], found.ends[at] = scores[chosen], roots[chosen], ends[places[chosen]]
    return found


def _common(query: PathQuery, index: Sectors, ends: Rows) -> _Common:
    """Find the sectors of some root ends whose path the query has; once for each root end of the query that has it."""
    sizes = index.sectors[ends + 1] - index.sectors[ends]
    sectors = ranges(index.sectors[ends], sizes)
    found = index.paths[sectors]
    terms = np.minimum(np.searchsorted(query.paths, found), max(len(query.paths) - 1, 0))
    known = query.paths[terms] == found if len(query.paths) else np.zeros(len(found), dtype=np.bool_)
    terms, sectors, places = terms[known], sectors[known], np.repeat(np.arange(len(ends)), sizes)[known]
    times = query.offsets[terms + 1] - query.offsets[terms]
    return _Common(np.repeat(places, times), np.repeat(sectors, times), ranges(query.offsets[terms], times))


def _gained(query: PathQuery, index: Sectors, common: _Common) -> Floats:
    """Compute the contribution of each common sector to the structure score of its root ends (equation 2)."""
    shared = np.minimum(query.widths[common.asked], index.widths[common.sectors])
    found: Floats = shared * query.weights[query.terms[common.asked]]
    return found


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
    of = np.repeat(np.arange(len(pairs)), both)
    place = ranges(np.zeros_like(both), both)
    mine = query.entries[asked][of] + place % ours[of]
    its = index.entries[sectors][of] + place // ours[of]
    same = query.symbols[mine] == index.symbols[its]
    alike = query.operators[mine] == index.operators[its]
    points = np.where(same, np.where(alike, 1.0, constants.b1), constants.b2)
    values = points * np.minimum(query.counts[mine], index.counts[its])
    symbols = int(query.ranks.max(initial=0)) + 1
    return (pairs[of] * symbols + query.ranks[mine]) * MOST_LEAVES + index.firsts[its], values


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
    """The search for one query; without pruning it reads all postings of the query's paths, for each root end."""

    def __init__(
        self,
        query: PathQuery,
        index: PathLists,
        sizes: Rows,
        penalties: Floats,
        constants: Constants,
        count: int,
        *,
        prune: bool = True,
    ) -> None:
        self._query, self._index, self._sizes, self._penalties = query, index, sizes, penalties
        self._constants, self._count, self._prune = constants, count, prune
        self._least = 0.0  # a lower bound of the score of the last result
        self._known = np.zeros(len(sizes), dtype=np.bool_)
        self._gained = np.zeros(len(index.of.sectors) - 1)  # by one root end of the query; zeros in between
        self.scores: Floats = np.zeros(len(sizes))
        self.read = self.scored = 0  # postings, and expressions that were scored exactly

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
        """Bound the score of each expression."""
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
            if self._prune and not self._least:
                likely = self._promising(self._by_expression(best))
                if (enough := self._enough(likely)) <= len(likely):
                    self._score(likely[:enough])
        return self._by_expression(best)

    def _by_expression(self, best: Floats) -> Floats:
        """Bound expressions by their root ends."""
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
        self.read += sum(map(len, read))

    def _promising(self, bounds: Floats) -> Rows:
        """Return the expressions that may be among the results and are not scored yet, the best bound first."""
        some = np.flatnonzero((bounds > 0) & (bounds >= self._least) & ~self._known)
        return some[np.argsort(-bounds[some], kind="stable")]

    def _enough(self, order: Rows) -> int:
        """Count how many expressions own as many formulas as there are results; one more than all where too few."""
        return int(np.searchsorted(np.cumsum(self._sizes[order]), self._count)) + 1

    def _score(self, rows: Rows) -> None:
        """Score expressions exactly, and update the score of the last of the results."""
        found = score_expressions(self._query, self._index.of, rows, self._constants)
        self.scores[rows] = found.structure * found.symbols * self._penalties[rows]
        self._known[rows] = True
        self.scored += len(rows)
        known = np.flatnonzero(self.scores > 0)
        order = known[np.argsort(-self.scores[known], kind="stable")]
        if (enough := self._enough(order)) <= len(order):
            self._least = float(self.scores[order[enough - 1]])
