"""A formula that is searched for, in the numbers of an index.

    weights      float64 [t]      PathIDF of each path that query and index have
    paths        int64   [t]      its number in the index, ascending
    offsets      int64   [t + 1]  path ``i`` occurs at the sectors ``offsets[i]:offsets[i + 1]`` of the query
    roots        int64   [s]      the root end of each sector
    widths       int64   [s]      its leaves
    entries      int64   [s + 1]  sector ``j`` owns the entries ``entries[j]:entries[j + 1]``, one for each symbol
    ranks        int64   [e]      the symbol of an entry: its place in the order in which symbols are matched
    symbols      int64   [e]      its number in the index, -1 for none
    operators    int64   [e]      its fingerprint, likewise
    counts       int64   [e]      its leaves
    leaves       int64   [m]      the leaves below each root end

Root ends that cannot be told apart, by paths, symbols and fingerprints, are one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.store import Rows

from .paths import FormulaPaths, Leaves
from .payload import PathLists

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PathQuery:
    """The paths of a query that an index has; see the module for each array."""

    weights: Floats
    paths: Rows
    offsets: Rows
    roots: Rows
    widths: Rows
    entries: Rows
    ranks: Rows
    symbols: Rows
    operators: Rows
    counts: Rows
    leaves: Rows

    @cached_property
    def terms(self) -> Rows:
        """The path of each sector, as a place in ``paths``: int64 ``[s]``."""
        found: Rows = np.repeat(np.arange(len(self.paths)), np.diff(self.offsets))
        return found

    @cached_property
    def most(self) -> Floats:
        """What each sector contributes to the common structure at most: float64 ``[s]``."""
        found: Floats = self.widths * self.weights[self.terms]
        return found

    @property
    def bound(self) -> float:
        """The greatest common structure that any formula can have."""
        return float(np.bincount(self.roots, self.most).max(initial=0.0))


def path_query(formula: FormulaPaths, index: PathLists) -> PathQuery:
    """Look up the paths of a formula."""
    roots = list(dict.fromkeys(map(_content, formula.roots)))
    rows = [(key, number, found) for number, (_, sectors) in enumerate(roots) for key, found in sectors]
    number_of = _numbers(index.of.path_keys, {key for key, _, _ in rows})
    rows = sorted((row for row in rows if row[0] in number_of), key=lambda row: row[:2])
    paths = np.array(sorted({number_of[key] for key, _, _ in rows}), dtype=np.int64)
    numbers = np.array([number_of[key] for key, _, _ in rows], dtype=np.int64)
    found_in = index.offsets[paths + 1] - index.offsets[paths]
    entries = [leaves for _, _, found in rows for leaves in found]
    order = sorted(formula.symbols, key=lambda symbol: -formula.symbols[symbol])  # stable: by first occurrence
    rank_of = dict(zip(order, range(len(order)), strict=True))
    return PathQuery(
        weights=np.log(len(index.roots) / found_in),
        paths=paths,
        offsets=np.append(np.searchsorted(numbers, paths), len(numbers)).astype(np.int64),
        roots=_ints(number for _, number, _ in rows),
        widths=_ints(sum(leaves.width for leaves in found) for _, _, found in rows),
        entries=np.cumsum([0, *(len(found) for _, _, found in rows)]).astype(np.int64),
        ranks=_ints(rank_of[leaves.symbol] for leaves in entries),
        symbols=_ints(_number(index.of.symbol_names, leaves.symbol) for leaves in entries),
        operators=_ints(_number(index.of.operator_names, leaves.operators) for leaves in entries),
        counts=_ints(leaves.width for leaves in entries),
        leaves=_ints(leaves for leaves, _ in roots),
    )


_Content = tuple[int, tuple[tuple[int, tuple[Leaves, ...]], ...]]


def _content(root: tuple[int, dict[int, list[Leaves]]]) -> _Content:
    leaves, sectors = root
    return leaves, tuple((key, tuple(found)) for key, found in sorted(sectors.items()))


def _numbers(keys: npt.NDArray[np.uint64], wanted: set[int]) -> dict[int, int]:
    """Look up the paths that an index has."""
    asked = np.array(sorted(wanted), dtype=np.uint64)
    places = np.searchsorted(keys, asked)
    places[places == len(keys)] = 0
    known = keys[places] == asked if len(keys) else np.zeros(len(asked), dtype=np.bool_)
    return dict(zip(asked[known].tolist(), places[known].tolist(), strict=True))


def _number(names: Sequence[str], name: str) -> int:
    """Look up one of ascending names; -1 for none."""
    place = bisect_left(names, name)
    return place if place < len(names) and names[place] == name else -1


def _ints(values: Iterable[int]) -> Rows:
    return np.array(list(values), dtype=np.int64)
