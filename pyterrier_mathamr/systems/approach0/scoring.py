"""The score of Approach Zero, exactly, of some expressions of an index (equations 1 to 5 of the paper).

::

    expressions ─▶ their sectors that the query has, too ─▶ w of pairs of root ends ─▶ w*, and the pairs that have it
                                                                                          │
                         w* · symbol score · length penalty ◀── symbols matched greedily ◀┘
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.store import Rows, ranges

from .query import Floats, PathQuery
from .rules import MOST_LEAVES
from .sectors import Sectors

_TOGETHER = 1024  # expressions
_CELLS = 1 << 21  # of the tables of symbols that are matched together
_EQUAL = 1 - 1e-9  # sums of the same terms differ by rounding


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants of the score, as printed.

    Attributes:
        eta: how much a long formula is penalized, 0 to 1.
        b1: points of two leaves with the same symbol below other operators.
        b2: points of two leaves with different symbols.
    """

    eta: float = 0.3
    b1: float = 0.94
    b2: float = 0.9

    def penalties(self, leaves: npt.NDArray[np.int32]) -> Floats:
        """Compute 1 - η + η / ln(1 + L) (equation 4) of formulas with L leaves: above 1 for a single leaf."""
        found: Floats = 1 - self.eta + self.eta / np.log1p(np.maximum(leaves, 1))
        return found


class Scored(NamedTuple):
    """The scores of ``y`` expressions.

    Attributes:
        structure: w*, float64 ``[y]``; 0 where the query has no path of the expression.
        symbols: the symbol score, float64 ``[y]``.
        roots: the root end of the query with the best pair, int64 ``[y]``; -1 for none.
        ends: that of the expression, as the index numbers root ends; -1 for none.
    """

    structure: Floats
    symbols: Floats
    roots: Rows
    ends: Rows


def score_expressions(query: PathQuery, index: Sectors, rows: Rows, constants: Constants) -> Scored:
    """Score some expressions against a query."""
    parts = [_scored(query, index, some, constants) for some in np.split(rows, range(_TOGETHER, len(rows), _TOGETHER))]
    return Scored(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def common_paths(query: PathQuery, index: Sectors, root: int, end: int) -> dict[int, float]:
    """Say what each path contributes to the common structure of one pair of root ends."""
    common = _common(query, index, np.array([end]))
    kept = query.roots[common.asked] == root
    terms, gained = query.terms[common.asked[kept]], _gained(query, index, common)[kept]
    return dict(zip(index.path_keys[query.paths[terms]].tolist(), gained.tolist(), strict=True))


class _Common(NamedTuple):
    """Sectors of expressions with the same path as a sector of the query.

    Attributes:
        places: int64 ``[c]``, the root end of the expression, as a place among those that are scored.
        sectors: int64 ``[c]``, of the index.
        asked: int64 ``[c]``, of the query.
    """

    places: Rows
    sectors: Rows
    asked: Rows


def _scored(query: PathQuery, index: Sectors, rows: Rows, constants: Constants) -> Scored:
    sizes = index.roots[rows + 1] - index.roots[rows]
    ends, owners = ranges(index.roots[rows], sizes), np.repeat(np.arange(len(rows)), sizes)
    common = _common(query, index, ends)
    width = max(1, len(query.leaves))
    codes = common.places * width + query.roots[common.asked]
    table = np.bincount(codes, _gained(query, index, common), minlength=len(ends) * width).reshape(
        -1, width
    )  # w of each pair
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
    """Compute what each common sector adds to the structure score of its root ends (equation 2)."""
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
        points[start:stop] = _mark_and_cross(
            np.bincount(cells, values, math.prod(shape)).astype(np.float64).reshape(shape)
        )
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
    """Pair symbols greedily: each of the query, in order, takes the symbol with the most points that is left."""
    total, every = np.zeros(len(table)), np.arange(len(table))
    for symbol in range(table.shape[1]):
        best = table[:, symbol].argmax(axis=1)  # the first of several: in the order of the expression
        total += table[every, symbol, best]
        taken = table[every, symbol, best] > 0
        table[every[taken], :, best[taken]] = 0
    return total
