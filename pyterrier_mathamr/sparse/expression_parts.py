"""Formulas grouped by expression, the data of each expression in a part, and how parts are made of parts.

    …                           the payload: the data of each expression, in the order of the keys
    keys     uint8  [x, 16]     a digest of each expression's trees, ascending; it identifies the expression
    owned    int64  [x + 1]     expression ``i`` owns the formulas ``owned[i]:owned[i + 1]``
    ids                         of the formulas, ascending for each expression
    post_ids, visual_ids        texts [m]
    sources  uint64 [m]         a hash of each formula's post

Half of the formulas of a collection repeat another one, so a payload is stored and scored once for all formulas with
the same trees. Parts are merged a block of expressions at a time, and data that grows with the formulas is on the disk
of the new part, in files without names: an index of 28 million formulas needs the memory of a block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaPair, FormulaTree
from pyterrier_mathamr.store import Appended, Array, Content, DamagedError, Field, Kind, Rows, StoredPart, ranges

from .index import UNBOUNDED, Names, best_first
from .texts import Texts, TextsBuilder, ends_of, text_fields, texts_of

KEY_BYTES = 16
BLOCK = 1 << 16
"""Expressions that are united at a time, whatever the size of the collection."""


class Payload(Protocol):
    """The stored data of ``x`` expressions."""

    @classmethod
    def of_part(cls, part: StoredPart) -> Self:
        """Memory-map the payload of one part."""

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        """Combine payloads into one of ``size`` expressions; large arrays may be kept in a folder.

        ``numbers`` has an int64 ``[x]`` of each payload: the place of each expression in the result, -1 to omit it.
        """

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of a part."""


P = TypeVar("P", bound=Payload)


_digest = lru_cache(maxsize=8192)(FormulaTree.digest)  # half of a collection's formulas are repetitions


def digests(pair: FormulaPair) -> tuple[str, str]:
    """Digest both trees of a formula; a missing one has the empty text."""
    return _digest(pair.slt) if pair.slt else "", _digest(pair.opt) if pair.opt else ""


def expression_key(of_trees: tuple[str, str]) -> bytes:
    """Digest two trees' digests: what identifies their expression in a part."""
    return hashlib.blake2b("|".join(of_trees).encode(), digest_size=KEY_BYTES).digest()


def expression_kind(payload: type[Payload], *fields: Field, type: str, format: str, version: int, index: str) -> Kind:
    """Declare an index of expressions by the fields of its payload, whose expressions are the extent ``x``."""

    def merge(parts: Sequence[StoredPart]) -> Content:
        folder = parts[0].path.parent
        return content_of([Formulas.of_part(part, payload, folder) for part in parts], folder)

    of_formulas = (
        Field("keys", "uint8", f"x {KEY_BYTES}"),
        Field("owned", "int64", "x+1", cuts="m"),
        *text_fields("post_ids", "m"),
        *text_fields("visual_ids", "m"),
        Field("sources", "uint64", "m"),
    )
    rebuild = f"{index}.indexer(mode='overwrite').index(posts)"
    return Kind(type, version, rebuild, (*fields, *of_formulas), merge=merge, part_bytes=UNBOUNDED, format=format)


T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class BothTrees(Generic[T]):
    """A payload of two: the data of the layout trees of expressions, and of their operator trees."""

    OF: ClassVar[Any]
    """The class of each: it has ``of_part(part, prefix)``, ``combined`` as a payload, and ``arrays(prefix)``."""

    slt: T
    opt: T

    @classmethod
    def of_part(cls, part: StoredPart) -> Self:
        return cls(cls.OF.of_part(part, "slt_"), cls.OF.of_part(part, "opt_"))

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        kinds = ([getattr(piece, kind) for piece in pieces] for kind in ("slt", "opt"))
        return cls(*(cls.OF.combined(of_kind, numbers, size, folder) for of_kind in kinds))

    def arrays(self) -> dict[str, Array]:
        slt, opt = cast(Any, self.slt), cast(Any, self.opt)
        return {**slt.arrays("slt_"), **opt.arrays("opt_")}


@dataclass(frozen=True, eq=False)
class Expressions(Generic[P]):
    """``x`` expressions and the ``f`` formulas that they own.

    Formulas are numbered in the order of their rows, without deleted ones. A run is some neighboring
    formulas of one expression, ids ascending; an index of one part has one run for each expression.
    """

    payload: P  # the data of the expressions
    numbers: Rows  # int64 ``[runs]``, the expression of each run
    owned: Rows  # int64 ``[runs + 1]``; run ``i`` has the formulas ``owned[i]:owned[i + 1]``

    @classmethod
    def of_parts(cls, parts: Sequence[StoredPart], payload: type[P]) -> Self:
        """Open the rows that were not deleted: memory-mapped from one part, else combined."""
        if len(parts) == 1 and not len(parts[0].deleted):
            return cls(payload.of_part(parts[0]), np.arange(len(parts[0]["keys"])), parts[0]["owned"])
        sizes = [np.diff(ends_of(part.alive)[part["owned"]]) for part in parts]  # formulas of each expression
        keys, numbers = unite([keys_of(part) for part in parts], [size > 0 for size in sizes])
        pieces = [payload.of_part(part) for part in parts]
        combined = combine_payloads(pieces, numbers, len(keys)) if pieces else payload.combined([], [], 0)
        every = np.concatenate([np.zeros(0, dtype=np.int64), *numbers])
        owned = ends_of(np.concatenate([np.zeros(0, np.int64), *sizes])[every >= 0])
        return cls(combined, every[every >= 0], owned)

    @cached_property
    def firsts(self) -> Rows:
        """The first formula of each expression: int64 ``[x]``."""
        firsts = np.zeros(int(self.numbers.max(initial=-1)) + 1, dtype=np.int64)
        firsts[self.numbers[::-1]] = self.owned[:-1][::-1]
        return firsts

    def formulas_of(self, expressions: Rows) -> list[Rows]:
        """List the formulas of each of some expressions, ascending."""
        order = np.argsort(self.numbers, kind="stable")
        ends = [np.searchsorted(self.numbers[order], expressions, side) for side in ("left", "right")]
        return [
            np.concatenate([np.arange(self.owned[run], self.owned[run + 1]) for run in order[start:end].tolist()])
            for start, end in zip(*(side.tolist() for side in ends), strict=True)
        ]

    def best(
        self, scores: npt.NDArray[np.float64], count: int, ids: Names, above: float = 0.0
    ) -> tuple[Rows, npt.NDArray[np.float64]]:
        """Find the formulas with the highest scores: score descending, then formula id ascending."""
        values = scores[self.numbers]  # [runs]
        runs = np.flatnonzero(values > above)
        if len(runs) > count:  # each run has a formula at least
            runs = runs[values[runs] >= -np.partition(-values[runs], count - 1)[count - 1]]
        sizes = np.minimum(self.owned[runs + 1] - self.owned[runs], count)  # the ids of a run ascend
        return best_first(ranges(self.owned[runs], sizes), np.repeat(values[runs], sizes), count, ids)


def keys_of(part: StoredPart) -> Array:
    """The digests of a part's expressions: bytes ``[x]``, ascending."""
    keys = np.ascontiguousarray(part["keys"]).view(f"S{KEY_BYTES}").reshape(-1)
    if bool(np.any(keys[1:] <= keys[:-1])):
        raise DamagedError(part.path, "its keys do not ascend")
    return keys


def unite(
    keys: Sequence[Array], owning: Sequence[npt.NDArray[np.bool_]], folder: Path | None = None
) -> tuple[Array, list[Rows]]:
    """Number the expressions of several pieces that own a formula; equal expressions have one number."""
    parts = 1 if folder is None else 1 + sum(map(len, keys)) // BLOCK
    bounds = np.array([((i << 32) // parts).to_bytes(4) for i in range(1, parts)], dtype=f"S{KEY_BYTES}")
    cuts = [[0, *np.searchsorted(ascending, bounds).tolist(), len(ascending)] for ascending in keys]
    united, size = Appended(folder, bounds.dtype), 0
    numbers = [Appended(folder, np.dtype(np.int64)) for _ in keys]
    for part in range(parts):
        runs = [slice(*cut[part : part + 2]) for cut in cuts]
        of_pieces = [(every[run], owns[run]) for every, owns, run in zip(keys, owning, runs, strict=True)]
        block = np.unique(np.concatenate([bounds[:0], *(some[owns] for some, owns in of_pieces)]))
        united.append(block)
        for number, (some, owns) in zip(numbers, of_pieces, strict=True):
            number.append(np.where(owns, size + np.searchsorted(block, some), -1))
        size += len(block)
    return united.array(), [number.array() for number in numbers]


def combine_payloads(pieces: Sequence[P], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> P:
    """Combine several payloads; a common expression is taken from the first."""
    known, first = np.zeros(size, dtype=np.bool_), list[Rows]()
    for number in numbers:
        kept = Appended(folder, np.dtype(np.int64))
        for start in range(0, len(number), BLOCK):
            some = number[start : start + BLOCK]
            fresh = some >= 0
            fresh[fresh] = ~known[some[fresh]]
            known[some[fresh]] = True
            kept.append(np.where(fresh, some, -1))
        first.append(kept.array())
    return type(pieces[0]).combined(pieces, first, size, folder)


def combined_runs(offsets: Sequence[Rows], numbers: Sequence[Rows], size: int) -> tuple[Rows, Rows]:
    """Lay out the runs of several pieces in the order of a result, as a payload is combined."""
    starts, sizes, base = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), 0
    for ends, number in zip(offsets, numbers, strict=True):
        kept = number >= 0
        starts[number[kept]], sizes[number[kept]] = base + ends[:-1][kept], np.diff(ends)[kept]
        base += int(ends[-1])
    return ends_of(sizes), ranges(starts, sizes)


_TEXTS = ("ids", "post_ids", "visual_ids")


@dataclass(frozen=True, slots=True, eq=False)
class Formulas(Generic[P]):
    """Some ``f`` formulas of ``x`` expressions, on their way into a part."""

    keys: Array  # bytes ``[x]``, of the expressions
    payload: P  # the data of the expressions
    expressions: Rows  # int64 ``[f]``, the expression of each formula
    sources: Array  # uint64 ``[f]``
    texts: Mapping[str, Texts]  # ids, ids of posts, and visual ids, each ``[f]``

    @classmethod
    def of_part(cls, part: StoredPart, payload: type[P], folder: Path | None = None) -> Formulas[P]:
        """Read the formulas of a part that were not deleted; temporary data may be stored in a folder."""
        texts = {"ids": Texts.of(part.ids, folder), **{name: texts_of(part, name) for name in _TEXTS[1:]}}
        owned, owners = part["owned"], Appended(folder, np.dtype(np.int64))
        for start in range(0, len(owned) - 1, BLOCK):
            cuts = owned[start : start + BLOCK + 1]
            owners.append(np.repeat(np.arange(start, start + len(cuts) - 1), np.diff(cuts)))
        whole = cls(keys_of(part), payload.of_part(part), owners.array(), part["sources"], texts)
        return whole.take(np.flatnonzero(part.alive), folder) if len(part.deleted) else whole

    def take(self, rows: Rows, folder: Path | None = None) -> Formulas[P]:
        """Return some of the formulas, of the same expressions."""
        texts = {name: column.take(rows, folder) for name, column in self.texts.items()}
        return replace(self, expressions=self.expressions[rows], sources=self.sources[rows], texts=texts)

    def between(self, first: int, last: int) -> Formulas[P]:
        """Return the formulas of the expressions from ``first`` to before ``last``, where the expressions ascend."""
        start, stop = np.searchsorted(self.expressions, (first, last)).tolist()
        run, texts = slice(start, stop), {name: column.between(start, stop) for name, column in self.texts.items()}
        return replace(self, expressions=self.expressions[run], sources=self.sources[run], texts=texts)


def content_of(pieces: Sequence[Formulas[P]], folder: Path | None = None) -> Content:
    """Make one part of some formulas; it does not depend on how they are cut into pieces."""
    owning = [np.zeros(len(piece.keys), dtype=np.bool_) for piece in pieces]
    for owns, piece in zip(owning, pieces, strict=True):
        owns[piece.expressions] = True
    keys, numbers = unite([piece.keys for piece in pieces], owning, folder)
    ascending = [_numbered(piece, number, folder) for piece, number in zip(pieces, numbers, strict=True)]
    payload = combine_payloads([piece.payload for piece in pieces], numbers, len(keys), folder)
    owned, sources = Appended(folder, np.dtype(np.int64)), Appended(folder, np.dtype(np.uint64))
    texts = {name: TextsBuilder(folder) for name in _TEXTS}
    owned.append(np.zeros(1))
    end = 0
    for first in range(0, len(keys), BLOCK):
        last = min(first + BLOCK, len(keys))
        some = [piece.between(first, last) for piece in ascending]
        expressions = np.concatenate([piece.expressions for piece in some]) - first
        joined = {name: Texts.joined([piece.texts[name] for piece in some]) for name in _TEXTS}
        order = _order(expressions, joined["ids"])
        for name, builder in texts.items():
            builder.add(joined[name].take(order))
        sources.append(np.concatenate([piece.sources for piece in some])[order])
        owned.append(end + np.cumsum(np.bincount(expressions, minlength=last - first)))
        end += len(expressions)
    arrays = {
        **payload.arrays(),
        **texts["post_ids"].texts().arrays("post_ids"),
        **texts["visual_ids"].texts().arrays("visual_ids"),
        "keys": keys.view(np.uint8).reshape(-1, KEY_BYTES),
        "owned": owned.array(),
        "sources": sources.array(),
    }
    return Content(texts["ids"].texts(), arrays)


def _numbered(piece: Formulas[P], number: Rows, folder: Path | None) -> Formulas[P]:
    """Return formulas with the new numbers of their expressions, ascending."""
    numbers, ascending, last = Appended(folder, np.dtype(np.int64)), True, 0
    for start in range(0, len(piece.expressions), BLOCK):
        some = number[piece.expressions[start : start + BLOCK]]
        ascending &= last <= some[0] and bool(np.all(some[:-1] <= some[1:]))
        last = some[-1]
        numbers.append(some)
    numbered = replace(piece, expressions=numbers.array())
    return numbered if ascending else numbered.take(np.argsort(numbered.expressions, kind="stable"), folder)


def _order(expressions: Rows, ids: Texts) -> Rows:
    """Order formulas by their expression, then by their id: int64 ``[f]``."""
    words = ids.words()
    if words is not None:
        return np.lexsort((*reversed(words), expressions)).astype(np.int64, copy=False)
    names = list(ids)
    pairs = list(zip(expressions.tolist(), names, strict=True))
    return np.array(sorted(range(len(names)), key=pairs.__getitem__), dtype=np.int64)
