"""Finding the best expressions: bounds by the lists of paths, then exact scores, best bound first.

A root end of the query bounds what any expression gains by it: the sum of its paths' weights. Root ends are taken in
descending order of that bound, until none can lead into the results any more (GBP-LEN). Of each, the lists of the paths
that weigh most are read; those that could not lead into the results by themselves are not (MaxScore), and what they
could add is added to the bounds. Nothing is lost by this: an expression whose bound reaches the results is scored
exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyterrier_mathamr.store import Rows

from .payload import PathLists
from .query import Floats, PathQuery
from .scoring import Constants, score_expressions

_ROUNDING = 1 + 1e-9
_TOGETHER = 512  # expressions that are scored at a time


@dataclass
class Effort:
    """What a search has read.

    Attributes:
        postings: those in the lists of the query's paths, for each root end with that path.
        read: those that were read.
        scored: the expressions that were scored exactly.
    """

    postings: int = 0
    read: int = 0
    scored: int = 0


class Search:
    """The search for one query."""

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
        self._least = 0.0  # the score of the last of the results, as far as it is known
        self._known = np.zeros(len(sizes), dtype=np.bool_)
        self._gained = np.zeros(len(index.of.sectors) - 1)  # by one root end of the query; zeros in between
        self.scores: Floats = np.zeros(len(sizes))
        self.effort = Effort()

    def run(self) -> Floats:
        """Return the scores of all expressions that may be among the results, and 0 of the others: float64 ``[x]``."""
        bounds = self._bounds()
        order = self._promising(bounds)
        first = 0 if self._least else self._enough(order)
        for some in np.split(order, range(first, len(order), _TOGETHER)):
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
        sizes = np.diff(index.offsets)[query.paths]
        self.effort.postings = int(sum(sizes[query.terms[some]].sum() for some in order))
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
        """Read the lists of one root end of the query, those that weigh most first."""
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
        self.effort.read += sum(map(len, read))

    def _promising(self, bounds: Floats) -> Rows:
        """Return the expressions that may be among the results and are not scored yet, the best bound first."""
        some = np.flatnonzero((bounds > 0) & (bounds >= self._least) & ~self._known)
        return some[np.argsort(-bounds[some], kind="stable")]

    def _enough(self, order: Rows) -> int:
        """Count how many expressions own as many formulas as there are results; one more than all where too few."""
        return int(np.searchsorted(np.cumsum(self._sizes[order]), self._count)) + 1

    def _score(self, rows: Rows) -> None:
        """Score expressions exactly, and find the last of the results anew."""
        found = score_expressions(self._query, self._index.of, rows, self._constants)
        self.scores[rows] = found.structure * found.symbols * self._penalties[rows]
        self._known[rows] = True
        self.effort.scored += len(rows)
        known = np.flatnonzero(self.scores > 0)
        order = known[np.argsort(-self.scores[known], kind="stable")]
        if (enough := self._enough(order)) <= len(order):
            self._least = float(self.scores[order[enough - 1]])
