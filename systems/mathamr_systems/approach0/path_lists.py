"""The paths of expressions in a few arrays, the occurrences of each path, and the paths of a query in the same numbers.

:class:`Sectors`, expression by expression::

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

:class:`PathLists` adds an inverted index of them. A posting is a sector: a formula, a node of it, and how often a path
ends there::

    path_offsets  int64  [k + 1]  path ``i`` has the postings ``path_offsets[i]:path_offsets[i + 1]``
    path_roots    int32  [p]      the root end of each, ascending for each path
    path_widths   uint8  [p]      how many leaves it has there

:class:`PathQuery`, the formula of a query::

    weights      float64 [t]      PathIDF of each path that is in both query and index
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

Root ends of a query with the same paths, symbols and fingerprints are merged.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.extending import ends_of, expression_kind, read_names, renumbered, text_arrays, text_fields
from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.store import Array, DamagedError, Field, Rows, StoredPart, ranges

from .tree import MOST_LEAVES, FormulaPaths, Leaves, RootEnd, canonical_tree, formula_paths

N = TypeVar("N", bound=np.generic)
_MOST = np.iinfo(np.int32).max
_OF_SECTORS, _OF_ENTRIES = ("paths", "widths"), ("symbols", "firsts", "counts", "operators")


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
        columns = {name: getattr(self, name)[of_sectors] for name in _OF_SECTORS}
        columns |= {name: getattr(self, name)[of_entries] for name in _OF_ENTRIES}
        return replace(self, roots=roots, sectors=sectors, entries=entries, leaves=self.leaves[rows], **columns)


def joined(pieces: Sequence[Sectors]) -> Sectors:
    """Join the expressions of several collections; the tables hold the names that occur, ascending."""
    keys, paths = renumbered([piece.path_keys.tolist() for piece in pieces], [piece.paths for piece in pieces])
    symbol_names, symbols = renumbered([piece.symbol_names for piece in pieces], [piece.symbols for piece in pieces])
    operator_names, operators = renumbered([piece.operator_names for piece in pieces], [of.operators for of in pieces])
    columns: dict[str, Any] = {
        name: ends_of(_end_to_end([np.diff(getattr(piece, name)) for piece in pieces], np.int64))
        for name in ("roots", "sectors", "entries")
    }
    for name in ("widths", "firsts", "counts"):
        columns[name] = _end_to_end([getattr(piece, name) for piece in pieces], np.uint8)
    leaves = _end_to_end([piece.leaves for piece in pieces], np.int32)
    return Sectors(
        **columns,
        paths=paths,
        symbols=symbols,
        operators=operators,
        leaves=leaves,
        path_keys=np.array(keys, dtype=np.uint64),
        symbol_names=symbol_names,
        operator_names=operator_names,
    )


def packed(formulas: Iterable[FormulaPaths]) -> Sectors:
    roots, sectors, entries = [0], [0], [0]
    paths, widths, leaves = list[int](), list[int](), list[int]()
    symbols, firsts, counts, operators = list[int](), list[int](), list[int](), list[int]()
    keys, names, marks = dict[int, int](), dict[str, int](), dict[str, int]()
    for formula in formulas:
        leaves.append(min(formula.size, _MOST))
        for root in formula.roots:
            for key in sorted(root.sectors):
                leaves_of_path = root.sectors[key]
                paths.append(keys.setdefault(key, len(keys)))
                widths.append(sum(some.width for some in leaves_of_path))
                for symbol, first, width, above in leaves_of_path:
                    symbols.append(names.setdefault(symbol, len(names)))
                    firsts.append(first)
                    counts.append(width)
                    operators.append(marks.setdefault(above, len(marks)))
                entries.append(len(symbols))
            sectors.append(len(paths))
        roots.append(len(sectors) - 1)
    raw = Sectors(
        roots=np.array(roots, dtype=np.int64),
        sectors=np.array(sectors, dtype=np.int64),
        paths=np.array(paths, dtype=np.int32),
        widths=np.array(widths, dtype=np.uint8),
        entries=np.array(entries, dtype=np.int64),
        symbols=np.array(symbols, dtype=np.int32),
        firsts=np.array(firsts, dtype=np.uint8),
        counts=np.array(counts, dtype=np.uint8),
        operators=np.array(operators, dtype=np.int32),
        leaves=np.array(leaves, dtype=np.int32),
        path_keys=np.array(list(keys), dtype=np.uint64),
        symbol_names=list(names),
        operator_names=list(marks),
    )
    return joined([raw])  # keys and names ascend


def _taken(ends: Rows, rows: Rows) -> tuple[Rows, Rows]:
    """Return the ends of some rows, laid out one after another, and their entries."""
    sizes = ends[rows + 1] - ends[rows]
    return ends_of(sizes), ranges(ends[rows], sizes)


def _end_to_end(arrays: Sequence[Array], dtype: type[N]) -> npt.NDArray[N]:
    return np.concatenate([np.zeros(0, dtype=dtype), *arrays]).astype(dtype, copy=False)


INDEXED_SHARE = 0.2
"""Paths that end above no more than this share of a formula's leaves are not indexed."""

_LEAF_BYTES = 2000  # of memory for the paths of a leaf that are not packed yet

_FIELDS = (
    Field("roots", "int64", "x+1", cuts="r"),
    Field("sectors", "int64", "r+1", cuts="p"),
    Field("paths", "int32", "p", below="k"),
    Field("widths", "uint8", "p"),
    Field("entries", "int64", "p+1", cuts="e"),
    Field("symbols", "int32", "e", below="y"),
    Field("firsts", "uint8", "e"),
    Field("counts", "uint8", "e"),
    Field("operators", "int32", "e", below="f"),
    Field("leaves", "int32", "x"),
    Field("path_keys", "uint64", "k"),
    *text_fields("symbol_names", "y"),
    *text_fields("operator_names", "f"),
    Field("path_offsets", "int64", "k+1", cuts="p"),
    Field("path_roots", "int32", "p", below="r"),
    Field("path_widths", "uint8", "p"),
)
_NAMES = ("symbol_names", "operator_names")
_ARRAYS = tuple(name for name in Sectors.__slots__ if name not in _NAMES)


@dataclass(frozen=True, slots=True, eq=False)
class PathLists:
    """The paths of ``x`` expressions, and the postings of each path; see the module for each array."""

    of: Sectors
    offsets: Rows
    roots: npt.NDArray[np.int32]
    widths: npt.NDArray[np.uint8]

    @classmethod
    def of_part(cls, part: StoredPart) -> Self:
        arrays: dict[str, Any] = {name: part[name] for name in _ARRAYS}
        if bool(np.any(arrays["path_keys"][1:] <= arrays["path_keys"][:-1])):
            raise DamagedError(part.path, "path_keys do not ascend")
        if arrays["firsts"].max(initial=0) >= MOST_LEAVES:
            raise DamagedError(part.path, "firsts are not leaves")
        sectors = Sectors(**(arrays | {name: read_names(part, name) for name in _NAMES}))
        return cls(sectors, part["path_offsets"], part["path_roots"], part["path_widths"])

    @classmethod
    def of_paths(cls, formulas: Iterable[FormulaPaths]) -> Self:
        """Pack the paths of formulas, and list where each occurs."""
        return cls.of_sectors(packed(formulas))

    @classmethod
    def of_sectors(cls, sectors: Sectors) -> Self:
        order = np.argsort(sectors.paths, kind="stable")  # stable: root ends stay ascending for each path
        roots = np.repeat(np.arange(len(sectors.sectors) - 1, dtype=np.int32), np.diff(sectors.sectors))
        counts = np.bincount(sectors.paths, minlength=len(sectors.path_keys))
        return cls(sectors, ends_of(counts), roots[order], sectors.widths[order])

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        kept = [piece.of.take(np.flatnonzero(number >= 0)) for piece, number in zip(pieces, numbers, strict=True)]
        order = np.empty(size, dtype=np.int64)
        order[np.concatenate([np.zeros(0, dtype=np.int64), *(numbered[numbered >= 0] for numbered in numbers)])] = (
            np.arange(size)
        )
        return cls.of_sectors(joined(kept).take(order))

    def arrays(self) -> dict[str, Array]:
        arrays = {name: getattr(self.of, name) for name in _ARRAYS}
        for name in _NAMES:
            arrays |= text_arrays(name, getattr(self.of, name))
        return arrays | {"path_offsets": self.offsets, "path_roots": self.roots, "path_widths": self.widths}


def tree_paths(pair: FormulaPair, share: float = 0.0) -> FormulaPaths:
    """List the paths of a formula; without an operator tree the list is empty."""
    return FormulaPaths(0, [], {}) if pair.opt is None else formula_paths(canonical_tree(pair.opt), share)


indexed_paths = partial(tree_paths, share=INDEXED_SHARE)


def nbytes(paths: FormulaPaths) -> int:
    """Estimate the memory of the paths of an expression that are not packed yet."""
    return _LEAF_BYTES * min(paths.size, MOST_LEAVES)


APPROACH0 = expression_kind(
    PathLists, *_FIELDS, type="sparse_index", format="mathamr_approach0", version=1, index="ApproachZeroIndex('{path}')"
)

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
        terms: Rows = np.repeat(np.arange(len(self.paths)), np.diff(self.offsets))
        return terms

    @cached_property
    def most(self) -> Floats:
        """The maximum contribution of each sector to the common structure: float64 ``[s]``."""
        most: Floats = self.widths * self.weights[self.terms]
        return most

    @property
    def bound(self) -> float:
        """The greatest common structure that any formula can have."""
        return float(np.bincount(self.roots, self.most).max(initial=0.0))


def path_query(formula: FormulaPaths, index: PathLists) -> PathQuery:
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


def _content(root: RootEnd) -> tuple[int, tuple[tuple[int, tuple[Leaves, ...]], ...]]:
    return root.leaves, tuple((key, tuple(leaves)) for key, leaves in sorted(root.sectors.items()))


def _numbers(keys: npt.NDArray[np.uint64], wanted: set[int]) -> dict[int, int]:
    asked = np.array(sorted(wanted), dtype=np.uint64)
    places = np.searchsorted(keys, asked)
    candidates = zip(asked.tolist(), places.tolist(), strict=True)
    return {key: place for key, place in candidates if place < len(keys) and int(keys[place]) == key}


def _number(names: Sequence[str], name: str) -> int:
    """Look up one of ascending names; -1 for none."""
    place = bisect_left(names, name)
    return place if place < len(names) and names[place] == name else -1


def _ints(values: Iterable[int]) -> Rows:
    return np.array(list(values), dtype=np.int64)
