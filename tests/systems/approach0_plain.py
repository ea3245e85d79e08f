"""The score of Approach Zero written plainly: paths as tuples of tokens, dictionaries, all pairs of root ends.

It shares nothing with the package but canonical trees.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from mathamr_systems.approach0.tree import OperatorTree

Sector = list[tuple[str, tuple[object, ...]]]
"""The symbol and the fingerprint of each leaf, in order."""
Paths = dict[int, dict[tuple[str, ...], Sector]]
"""Root end, then path."""
SILENT = ("BASE", "SUBSCRIPT", "SUPSCRIPT", "TAB_ROW", "TAB_COL", "SEP")


def paths(tree: OperatorTree) -> Paths:
    """List the leaves of each path below each node."""
    found: Paths = defaultdict(lambda: defaultdict(list))
    for leaf in tree.leaves:
        node, tokens = leaf, (tree.tokens[leaf],)
        operators: tuple[object, ...] = (tree.signs[leaf],)
        if tree.parents[leaf] < 0:
            found[leaf][tokens].append((tree.symbols[leaf], operators))
        while tree.parents[node] >= 0:
            if tree.ranks[node]:
                tokens = (*tokens, f"RANK_{tree.ranks[node]}")
            node = tree.parents[node]
            tokens = (*tokens, tree.tokens[node])
            if tree.tokens[node] not in SILENT and len(operators) < 5:
                operators = (*operators, (tree.symbols[node], tree.signs[node]))
            found[node][tokens].append((tree.symbols[leaf], operators))
    return found


def widths(sector: Sector) -> dict[str, tuple[int, tuple[object, ...]]]:
    """Count the leaves of each symbol of a sector, with the fingerprint of the first."""
    counted: dict[str, tuple[int, tuple[object, ...]]] = {}
    for symbol, operators in sector:
        times, first = counted.get(symbol, (0, operators))
        counted[symbol] = (times + 1, first)
    return counted


class PlainScorer:
    """Scores a collection against queries, pair by pair.

    Args:
        trees: of the collection.
        eta: the penalty of length.
        b1: points of leaves of the same symbol.
        b2: points of other leaves.
    """

    def __init__(self, trees: Sequence[OperatorTree], eta: float = 0.3, b1: float = 0.94, b2: float = 0.9) -> None:
        self.trees, self.eta, self.b1, self.b2 = trees, eta, b1, b2
        self.paths: list[Paths] = []
        for tree in trees:
            whole = paths(tree)
            below = {node: sum(map(len, sectors.values())) for node, sectors in whole.items()}
            self.paths.append({node: whole[node] for node in whole if below[node] > 0.2 * len(tree.leaves)})
        self.found_in = Counter(key for of in self.paths for sectors in of.values() for key in sectors)
        self.postings = self.found_in.total()

    def idf(self, key: tuple[str, ...]) -> float:
        """PathIDF."""
        return math.log(self.postings / self.found_in[key]) if self.found_in[key] else 0.0

    def scores(self, query: OperatorTree) -> list[float]:
        """Score each formula."""
        asked = paths(query)
        times = Counter(query.symbols[leaf] for leaf in query.leaves)
        return [self._score(asked, times, number) for number in range(len(self.trees))]

    def _score(self, asked: Paths, times: Counter[str], number: int) -> float:
        pairs = {
            (m, n): sum(
                min(len(sector), len(theirs[key])) * self.idf(key) for key, sector in ours.items() if key in theirs
            )
            for m, ours in asked.items()
            for n, theirs in self.paths[number].items()
        }
        most = max(pairs.values(), default=0.0)
        if not most:
            return 0.0
        best = max(
            self._symbols(asked[m], self.paths[number][n], times, self.trees[number])
            for (m, n), weight in pairs.items()
            if math.isclose(weight, most)
        )
        return most * best * (1 - self.eta + self.eta / math.log(1 + self.trees[number].size))

    def _symbols(
        self,
        ours: dict[tuple[str, ...], Sector],
        theirs: dict[tuple[str, ...], Sector],
        times: Counter[str],
        tree: OperatorTree,
    ) -> float:
        points: dict[tuple[str, str], float] = defaultdict(float)
        for key in ours.keys() & theirs.keys():
            for a, (width, operators) in widths(ours[key]).items():
                for c, (other, above) in widths(theirs[key]).items():
                    p = self.b2 if a != c else 1.0 if operators == above else self.b1
                    points[a, c] += p * min(width, other)
        left = list(dict.fromkeys(tree.symbols[leaf] for leaf in tree.leaves))
        total = 0.0
        for a in sorted(times, key=lambda symbol: -times[symbol]):
            taken = max((c for c in left if points[a, c] > 0), key=lambda c: points[a, c], default=None)
            if taken is not None:
                left.remove(taken)
                total += points[a, taken]
        share = total / sum(map(len, ours.values()))
        return 1 / (1 + (1 - share) ** 2)
