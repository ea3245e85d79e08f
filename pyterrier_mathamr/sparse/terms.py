"""The distinct sub-expressions of a collection in a few arrays, and the expressions that contain each.

A term is stored once, whatever number of formulas have it; see :mod:`pyterrier_mathamr.formula.matching`::

    shapes        uint64 [t]      its shape: terms ascend by it, so that equal shapes are neighbors
    exact         uint64 [t]      its key; ascending for each shape
    labels        int32  [t]      the number of its label
    operands      int64  [t + 1]  term ``i`` has the operands ``args[operands[i]:operands[i + 1]]``
    args          int32  [a]      terms, in the order of writing
    weights       int32  [t]      its symbols
    owners        int64  [t + 1]  term ``i`` is in the expressions ``within[owners[i]:owners[i + 1]]``
    within        int32  [p]      expressions, ascending for each term
    places        uint8  [p]      the extent of the term in each: an :class:`Extent`
    symbols       int32  [x]      the symbols of each expression, 0 for one without operator tree
    label_names   texts  [l]      ascending

:meth:`SubExpressions.candidates` finds the terms that may match a pattern: for a pattern without wildcards the terms
of its shape, otherwise the terms whose operator and operands may match its own, from the leaves up. Each step is a few
array operations over the terms with one label.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.formula.located import line_trees
from pyterrier_mathamr.formula.matching import ASSOCIATIVE, Extent, Terms, is_wildcard, parts, read_terms
from pyterrier_mathamr.store import Array, DamagedError, Field, Rows, StoredPart, ranges

from .expression_parts import expression_kind
from .texts import ends_of, read_names, renumbered, text_arrays, text_fields

_REMEMBERED = 1 << 16
_ODD = 0x9E3779B97F4A7C15  # of a polynomial over operands
_COLUMNS = {
    **{"labels": "i", "args": "i", "weights": "i", "within": "i", "symbols": "i", "places": "B"},
    **{"shapes": "Q", "exact": "Q", "terms": "q", "counts": "q"},
}
"""What is collected in memory: the type codes of arrays, most of which are named as in the payload."""


class Taken(NamedTuple):
    """The terms of one expression, operands before operators."""

    labels: list[str]
    args: list[tuple[int, ...]]
    shapes: list[int]
    keys: list[int]
    sizes: list[int]
    places: list[int]  # -1 for a term that is not a sub-expression
    symbols: int


def take_terms(pair: FormulaPair) -> Taken | None:
    """List the sub-expressions of an expression; without an operator tree the list is empty."""
    if pair.opt is None:
        return None
    terms = read_terms(pair.opt, line_trees(pair.opt))
    symbols = terms.sizes[terms.root]
    extents = parts(terms)
    places = [int(extents.get(term, -1)) for term in range(len(terms))]
    return Taken(terms.labels, terms.args, terms.shapes, terms.keys, terms.sizes, places, symbols)


class TermsBuilder:
    """Collects the terms of expressions end to end; those that are equal become one in the payload."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._columns = {name: array(code) for name, code in _COLUMNS.items()}

    @property
    def nbytes(self) -> int:
        return 4 * sum(len(column) * column.itemsize for column in self._columns.values())  # uniting needs copies

    def add(self, taken: Taken | None) -> None:
        columns = self._columns
        number, first = len(columns["symbols"]), len(columns["labels"])
        columns["symbols"].append(0 if taken is None else taken.symbols)
        if taken is None:
            return
        columns["labels"].extend([self._names.setdefault(label, len(self._names)) for label in taken.labels])
        columns["shapes"].extend(taken.shapes)
        columns["exact"].extend(taken.keys)
        columns["weights"].extend(taken.sizes)
        columns["counts"].extend(map(len, taken.args))
        columns["args"].extend([first + arg for args in taken.args for arg in args])
        posted = [(first + term, place) for term, place in enumerate(taken.places) if place >= 0]
        columns["terms"].extend([term for term, _ in posted])
        columns["places"].extend([place for _, place in posted])
        columns["within"].extend([number] * len(posted))

    def payload(self) -> SubExpressions:
        columns: dict[str, Any] = {name: np.array(column) for name, column in self._columns.items()}
        terms, counts = columns.pop("terms"), columns.pop("counts")
        raw = SubExpressions(**columns, operands=ends_of(counts), owners=ends_of([]), label_names=list(self._names))
        numbers = np.arange(len(raw.symbols), dtype=np.int64)
        return _united(SubExpressions, [raw], [terms], [numbers], len(numbers))


_FIELDS = (
    Field("shapes", "uint64", "t"),
    Field("exact", "uint64", "t"),
    Field("labels", "int32", "t", below="l"),
    Field("operands", "int64", "t+1", cuts="a"),
    Field("args", "int32", "a", below="t"),
    Field("weights", "int32", "t"),
    Field("owners", "int64", "t+1", cuts="p"),
    Field("within", "int32", "p", below="x"),
    Field("places", "uint8", "p"),
    Field("symbols", "int32", "x"),
    *text_fields("label_names", "l"),
)
_ARRAYS = tuple(field.name for field in _FIELDS[:-2])


@dataclass(frozen=True, eq=False)
class SubExpressions:
    """The terms of ``x`` expressions; see the module for each array."""

    shapes: npt.NDArray[np.uint64]
    exact: npt.NDArray[np.uint64]
    labels: npt.NDArray[np.int32]
    operands: Rows
    args: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int32]
    owners: Rows
    within: npt.NDArray[np.int32]
    places: npt.NDArray[np.uint8]
    symbols: npt.NDArray[np.int32]
    label_names: Sequence[str]

    @classmethod
    def of_part(cls, part: StoredPart) -> Self:
        arrays: dict[str, Any] = {name: part[name] for name in _ARRAYS}
        made = cls(**arrays, label_names=read_names(part, "label_names"))
        shapes, keys = made.shapes, made.exact
        if bool(np.any((shapes[1:] < shapes[:-1]) | ((shapes[1:] == shapes[:-1]) & (keys[1:] <= keys[:-1])))):
            raise DamagedError(part.path, "its hashes do not ascend")
        above = np.repeat(made.weights, np.diff(made.operands))
        if bool(np.any(made.weights < 1)) or bool(np.any(made.weights[made.args] >= above)):
            raise DamagedError(part.path, "weights are not greater than their operands'")
        if made.places.max(initial=0) > max(Extent):
            raise DamagedError(part.path, "places are none of the four")
        return made

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        terms = [np.repeat(np.arange(len(piece.shapes)), np.diff(piece.owners)) for piece in pieces]
        return _united(cls, pieces, terms, numbers, size)

    def arrays(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in _ARRAYS} | text_arrays("label_names", self.label_names)

    def label(self, term: int) -> str:
        name: str = self.label_names[self.labels[term]]
        return name

    def operands_of(self, term: int) -> tuple[int, ...]:
        return tuple(self.args[self.operands[term] : self.operands[term + 1]].tolist())

    @cached_property
    def best_places(self) -> npt.NDArray[np.uint8]:
        """The greatest place that each term has in any expression: uint8 ``[t]``."""
        best = np.zeros(len(self.shapes), dtype=np.uint8)
        owned = np.flatnonzero(np.diff(self.owners))
        best[owned] = np.maximum.reduceat(self.places, self.owners[owned]) if len(owned) else 0
        return best

    @cached_property
    def by_label(self) -> tuple[Rows, Rows]:
        """The terms by their labels, ascending for each, and where each label begins."""
        order = np.argsort(self.labels, kind="stable")
        return order, ends_of(np.bincount(self.labels, minlength=len(self.label_names)))

    @cached_property
    def label_numbers(self) -> dict[str, int]:
        """The number of each label."""
        return {name: number for number, name in enumerate(self.label_names)}

    def of_shape(self, shape: int) -> tuple[int, int]:
        """Return the first term of a shape, and the one after its last."""
        first, last = (int(np.searchsorted(self.shapes, np.uint64(shape), side)) for side in ("left", "right"))
        return first, last

    def candidates(self, pattern: Terms, *, renamed: bool = True) -> Rows:
        """Find the terms that may match a pattern, ascending; all of them, or only with the same letters."""
        matching: list[Rows | None] = []
        for term in range(pattern.root + 1):
            matching.append(self._matching(pattern, term, matching, renamed))
        whole = matching[pattern.root]
        return np.zeros(0, dtype=np.int64) if whole is None else whole

    def _matching(self, pattern: Terms, term: int, matching: Sequence[Rows | None], renamed: bool) -> Rows | None:
        """Find the terms that may match a term of a pattern, from those for its operands; ``None`` is all."""
        label, args = pattern.labels[term], pattern.args[term]
        if is_wildcard(label):
            return None
        if not pattern.is_open[term]:
            terms = np.arange(*self.of_shape(pattern.shapes[term]))
            return terms if renamed else terms[self.exact[terms] == np.uint64(pattern.keys[term])]
        number = self.label_numbers.get(label)
        if number is None:
            return np.zeros(0, dtype=np.int64)
        order, starts = self.by_label
        terms = order[starts[number] : starts[number + 1]]
        counts = self.operands[terms + 1] - self.operands[terms]
        takes_more = label in ASSOCIATIVE and any(is_wildcard(pattern.labels[arg]) for arg in args)
        terms = terms[counts >= len(args) if takes_more else counts == len(args)]
        for place, arg in enumerate(args):
            known = matching[arg]
            if known is None or not len(terms):
                continue
            if label[:2] == "U!":
                sizes = self.operands[terms + 1] - self.operands[terms]
                inside = _among(self.args[ranges(self.operands[terms], sizes)], known)
                terms = terms[np.logical_or.reduceat(inside, ends_of(sizes)[:-1])]
            else:
                terms = terms[_among(self.args[self.operands[terms] + place], known)]
        return terms


def _among(values: npt.NDArray[np.int32], ascending: Rows) -> npt.NDArray[np.bool_]:
    """Whether each value is one of some ascending ones."""
    if not len(ascending):
        return np.zeros(len(values), dtype=np.bool_)
    if ascending[-1] - ascending[0] == len(ascending) - 1:
        neighbors: npt.NDArray[np.bool_] = (values >= ascending[0]) & (values <= ascending[-1])
        return neighbors
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    is_among: npt.NDArray[np.bool_] = ascending[places] == values
    return is_among


S = TypeVar("S", bound=SubExpressions)


class StoredTerms:
    """The terms of an index as :func:`~pyterrier_mathamr.formula.matching.unify` reads them, which remembers them."""

    def __init__(self, stored: SubExpressions) -> None:
        self.stored = stored
        self._label, self._operands = lru_cache(_REMEMBERED)(stored.label), lru_cache(_REMEMBERED)(stored.operands_of)

    def label(self, term: int) -> str:
        return self._label(term)

    def operands(self, term: int) -> tuple[int, ...]:
        return self._operands(term)

    def identity(self, term: int) -> tuple[int, int]:
        return int(self.stored.shapes[term]), int(self.stored.exact[term])


def _united(
    kind: type[S], pieces: Sequence[SubExpressions], terms: Sequence[Rows], numbers: Sequence[Rows], size: int
) -> S:
    """Combine collections whose postings have these terms; -1 among ``numbers`` leaves an expression out."""
    kept = [number[piece.within] >= 0 for piece, number in zip(pieces, numbers, strict=True)]
    used = [_closed(piece, posted[keep]) for piece, posted, keep in zip(pieces, terms, kept, strict=True)]

    def of_used(arrays: Iterable[Array], dtype: Any) -> Any:
        """Put the values of the used terms end to end."""
        return _end_to_end([array[some] for array, some in zip(arrays, used, strict=True)], dtype)

    shapes = of_used((piece.shapes for piece in pieces), np.uint64)
    keys = of_used((piece.exact for piece in pieces), np.uint64)
    order = np.lexsort((of_used(map(_orders, pieces), np.uint64), keys, shapes))
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (shapes[order][1:] != shapes[order][:-1]) | (keys[order][1:] != keys[order][:-1])
    new = np.empty(len(order), dtype=np.int64)
    new[order] = np.cumsum(fresh) - 1
    first = order[fresh]
    names, labels = renumbered(
        [piece.label_names for piece in pieces],
        [piece.labels[some] for piece, some in zip(pieces, used, strict=True)],
    )
    counts, args, of_terms, within, places, base = [], [], [], [], [], 0
    symbols = np.zeros(size, dtype=np.int32)
    for piece, some, posted, number, keep in zip(pieces, used, terms, numbers, kept, strict=True):
        new_term = np.full(len(piece.shapes), -1, dtype=np.int64)
        new_term[some] = new[base : base + len(some)]
        base += len(some)
        counts.append(piece.operands[some + 1] - piece.operands[some])
        args.append(new_term[piece.args[ranges(piece.operands[some], counts[-1])]])
        of_terms.append(new_term[posted[keep]])
        within.append(number[piece.within[keep]])
        places.append(piece.places[keep])
        symbols[number[number >= 0]] = piece.symbols[number >= 0]
    sizes, of_term = _end_to_end(counts, np.int64), _end_to_end(of_terms, np.int64)
    expressions = _end_to_end(within, np.int64)
    by_term = np.lexsort((expressions, of_term))
    return kind(
        shapes=shapes[first],
        exact=keys[first],
        labels=labels[first],
        operands=ends_of(sizes[first]),
        args=_end_to_end(args, np.int64)[ranges(ends_of(sizes)[:-1][first], sizes[first])].astype(np.int32),
        weights=of_used((piece.weights for piece in pieces), np.int32)[first],
        owners=ends_of(np.bincount(of_term, minlength=len(first))),
        within=expressions[by_term].astype(np.int32),
        places=_end_to_end(places, np.uint8)[by_term],
        symbols=symbols,
        label_names=names,
    )


def _orders(piece: SubExpressions) -> Array:
    """Compute a number of each term's operands in their order: equal terms are kept in the order with the least one."""
    places = ranges(np.zeros(len(piece.labels), dtype=np.int64), np.diff(piece.operands))
    powers = np.ones(int(places.max(initial=0)) + 1, dtype=np.uint64)
    powers[1:] = np.multiply.accumulate(np.full(len(powers) - 1, _ODD, dtype=np.uint64))
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(piece.exact[piece.args] * powers[places])])
    orders: Array = sums[piece.operands[1:]] - sums[piece.operands[:-1]]
    return orders


def _closed(piece: SubExpressions, terms: Rows) -> Rows:
    """Return some terms, each once and ascending, with their operands and the operands of those."""
    known = np.zeros(len(piece.shapes), dtype=np.bool_)
    known[terms] = True
    new = np.flatnonzero(known)
    while len(new):
        below = piece.args[ranges(piece.operands[new], piece.operands[new + 1] - piece.operands[new])]
        new = np.unique(below[~known[below]])
        known[new] = True
    return np.flatnonzero(known)


def _end_to_end(arrays: Sequence[Array], dtype: Any) -> Any:
    return np.concatenate([np.zeros(0, dtype=dtype), *arrays]).astype(dtype, copy=False)


TERMS = expression_kind(
    SubExpressions,
    *_FIELDS,
    type="sparse_index",
    format="mathamr_patterns",
    version=1,
    index="PatternIndex('{path}')",
)
