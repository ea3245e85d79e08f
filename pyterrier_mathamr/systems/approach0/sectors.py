"""The paths of expressions in a few arrays, expression by expression.

    roots        int64  [x + 1]   expression ``i`` owns the root ends ``roots[i]:roots[i + 1]``
    sectors      int64  [r + 1]   root end ``j`` owns the sectors ``sectors[j]:sectors[j + 1]``
    paths        int32  [p]       the path of each sector, ascending for each root end
    widths       uint8  [p]       its leaves
    entries      int64  [p + 1]   sector ``s`` owns the entries ``entries[s]:entries[s + 1]``, one for each symbol
    symbols      int32  [e]       the symbol of some leaves of a sector
    firsts       uint8  [e]       the formula's first leaf with this symbol
    counts       uint8  [e]       how many leaves
    operators    int32  [e]       the fingerprint of the first
    leaves       int32  [x]       the leaves of each expression
    path_keys    uint64 [k]       ascending
    symbol_names, operator_names  texts, ascending

A posting of an inverted index is a sector here: a formula, a node of it, and how often a path ends there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.store import Array, Rows, ranges

from .paths import FormulaPaths

N = TypeVar("N", bound=np.generic)
_MOST = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True, eq=False)
class Sectors:
    """The paths of ``x`` expressions; see the module for each array."""

    roots: Rows
    sectors: Rows
    paths: npt.NDArray[np.int32]
    widths: npt.NDArray[np.uint8]
    entries: Rows
    symbols: npt.NDArray[np.int32]
    firsts: npt.NDArray[np.uint8]
    counts: npt.NDArray[np.uint8]
    operators: npt.NDArray[np.int32]
    leaves: npt.NDArray[np.int32]
    path_keys: npt.NDArray[np.uint64]
    symbol_names: Sequence[str]
    operator_names: Sequence[str]

    def take(self, rows: Rows) -> Sectors:
        """Return some expressions, in the order of ``rows`` (int64 ``[y]``); the tables stay."""
        roots, of_roots = _taken(self.roots, rows)
        sectors, of_sectors = _taken(self.sectors, of_roots)
        entries, of_entries = _taken(self.entries, of_sectors)
        return replace(
            self,
            roots=roots,
            sectors=sectors,
            paths=self.paths[of_sectors],
            widths=self.widths[of_sectors],
            entries=entries,
            symbols=self.symbols[of_entries],
            firsts=self.firsts[of_entries],
            counts=self.counts[of_entries],
            operators=self.operators[of_entries],
            leaves=self.leaves[rows],
        )


def joined(pieces: Sequence[Sectors]) -> Sectors:
    """Join the expressions of several collections; the tables are those of what occurs, ascending."""
    keys, paths = _united([piece.path_keys for piece in pieces], [piece.paths for piece in pieces])
    symbol_names, symbols = _named([piece.symbol_names for piece in pieces], [piece.symbols for piece in pieces])
    operator_names, operators = _named([piece.operator_names for piece in pieces], [of.operators for of in pieces])
    return Sectors(
        roots=_ends([np.diff(piece.roots) for piece in pieces]),
        sectors=_ends([np.diff(piece.sectors) for piece in pieces]),
        paths=paths,
        widths=_end_to_end([piece.widths for piece in pieces], np.uint8),
        entries=_ends([np.diff(piece.entries) for piece in pieces]),
        symbols=symbols,
        firsts=_end_to_end([piece.firsts for piece in pieces], np.uint8),
        counts=_end_to_end([piece.counts for piece in pieces], np.uint8),
        operators=operators,
        leaves=_end_to_end([piece.leaves for piece in pieces], np.int32),
        path_keys=keys,
        symbol_names=symbol_names,
        operator_names=operator_names,
    )


def combined(pieces: Sequence[Sectors], numbers: Sequence[Rows], size: int) -> Sectors:
    """Combine several collections."""
    kept = [piece.take(np.flatnonzero(number >= 0)) for piece, number in zip(pieces, numbers, strict=True)]
    places = np.concatenate([np.zeros(0, dtype=np.int64), *(number[number >= 0] for number in numbers)])
    order = np.empty(size, dtype=np.int64)
    order[places] = np.arange(size)
    return joined(kept).take(order)


def packed(formulas: Iterable[FormulaPaths]) -> Sectors:
    """Pack the paths of formulas."""
    roots, sectors, entries = [0], [0], [0]
    paths, widths, leaves = list[int](), list[int](), list[int]()
    symbols, firsts, counts, operators = list[int](), list[int](), list[int](), list[int]()
    keys, names, marks = dict[int, int](), dict[str, int](), dict[str, int]()
    for formula in formulas:
        leaves.append(min(formula.size, _MOST))
        for root in formula.roots:
            for key in sorted(root.sectors):
                found = root.sectors[key]
                paths.append(keys.setdefault(key, len(keys)))
                widths.append(sum(some.width for some in found))
                for symbol, first, width, above in found:
                    symbols.append(names.setdefault(symbol, len(names)))
                    firsts.append(first)
                    counts.append(width)
                    operators.append(marks.setdefault(above, len(marks)))
                entries.append(len(symbols))
            sectors.append(len(paths))
        roots.append(len(sectors) - 1)
    order = np.array(list(keys), dtype=np.uint64)
    ascending = np.argsort(order)
    renumbered = np.empty(len(order), dtype=np.int32)
    renumbered[ascending] = np.arange(len(order))
    raw = Sectors(
        roots=np.array(roots, dtype=np.int64),
        sectors=np.array(sectors, dtype=np.int64),
        paths=renumbered[np.array(paths, dtype=np.int64)],
        widths=np.array(widths, dtype=np.uint8),
        entries=np.array(entries, dtype=np.int64),
        symbols=np.array(symbols, dtype=np.int32),
        firsts=np.array(firsts, dtype=np.uint8),
        counts=np.array(counts, dtype=np.uint8),
        operators=np.array(operators, dtype=np.int32),
        leaves=np.array(leaves, dtype=np.int32),
        path_keys=order[ascending],
        symbol_names=list(names),
        operator_names=list(marks),
    )
    return joined([raw])  # names ascend


def _taken(ends: Rows, rows: Rows) -> tuple[Rows, Rows]:
    """Return the ends of some rows as neighbours, and what they own."""
    sizes = ends[rows + 1] - ends[rows]
    return _ends([sizes]), ranges(ends[rows], sizes)


def _united(
    keys: Sequence[npt.NDArray[np.uint64]], used: Sequence[npt.NDArray[np.int32]]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
    """Number the keys that occur in several tables anew."""
    occur = [np.unique(some) for some in used]
    union = np.unique(_end_to_end([of[some] for of, some in zip(keys, occur, strict=True)], np.uint64))
    numbers = []
    for of, some, each in zip(keys, occur, used, strict=True):
        renumbered = np.zeros(len(of), dtype=np.int32)
        renumbered[some] = np.searchsorted(union, of[some])
        numbers.append(renumbered[each])
    return union, _end_to_end(numbers, np.int32)


def _named(
    names: Sequence[Sequence[str]], used: Sequence[npt.NDArray[np.int32]]
) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Number the names that occur in several tables anew."""
    occur = [np.unique(some).tolist() for some in used]
    union = sorted({of[number] for of, some in zip(names, occur, strict=True) for number in some})
    number_of = dict(zip(union, range(len(union)), strict=True))
    numbers = []
    for of, some, each in zip(names, occur, used, strict=True):
        renumbered = np.zeros(len(of), dtype=np.int32)
        renumbered[some] = [number_of[of[number]] for number in some]
        numbers.append(renumbered[each])
    return union, _end_to_end(numbers, np.int32)


def _ends(sizes: Sequence[Array]) -> Rows:
    ends: Rows = np.concatenate([[0], np.cumsum(_end_to_end(sizes, np.int64))]).astype(np.int64)
    return ends


def _end_to_end(arrays: Sequence[Array], dtype: type[N]) -> npt.NDArray[N]:
    return np.concatenate([np.zeros(0, dtype=dtype), *arrays]).astype(dtype, copy=False)
