"""Which formulas are the same expression, and what an index keeps of each expression.

    …                           the payload: what the index keeps of each expression, in the order of the keys
    keys     uint8  [x, 16]     a digest of each expression's trees, ascending; it identifies the expression
    owned    int64  [x + 1]     expression ``i`` owns the formulas ``owned[i]:owned[i + 1]``
    ids                         of the formulas, ascending for each expression
    post_ids, visual_ids        texts [m]
    sources  uint64 [m]         a hash of each formula's post

Half of the formulas of a collection repeat another one, so a payload is stored and scored once for all formulas with
the same trees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaPair, FormulaTree
from pyterrier_mathamr.sparse.ranking import Names, best_first
from pyterrier_mathamr.sparse.texts import text_fields
from pyterrier_mathamr.store import Appended, Array, DamagedError, Field, Part, Rows, ranges

KEY_BYTES = 16
BLOCK = 1 << 16
"""Expressions that are united at a time, whatever the size of the collection."""


class Payload(Protocol):
    """What an index keeps of ``x`` expressions."""

    @classmethod
    def of_part(cls, part: Part) -> Self:
        """Open what a part has."""

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        """Combine several payloads."""

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of a part."""


P = TypeVar("P", bound=Payload)


_digest = lru_cache(maxsize=8192)(FormulaTree.digest)  # half of a collection's formulas are repetitions


def digests(pair: FormulaPair) -> tuple[str, str]:
    """Digest both trees of a formula; a missing one has the empty text."""
    return _digest(pair.slt) if pair.slt else "", _digest(pair.opt) if pair.opt else ""


def expression_key(of: tuple[str, str]) -> bytes:
    """Digest two trees' digests: what identifies their expression in a part."""
    return hashlib.blake2b("|".join(of).encode(), digest_size=KEY_BYTES).digest()


def expression_fields(*payload: Field) -> tuple[Field, ...]:
    """Declare the arrays of a part: those of a payload, whose expressions are the extent ``x``, and the formulas."""
    return (
        *payload,
        Field("keys", "uint8", f"x {KEY_BYTES}"),
        Field("owned", "int64", "x+1", cuts="m"),
        *text_fields("post_ids", "m"),
        *text_fields("visual_ids", "m"),
        Field("sources", "uint64", "m"),
    )


@dataclass(frozen=True, eq=False)
class Expressions(Generic[P]):
    """``x`` expressions and the ``f`` formulas that they own.

    Formulas are numbered in the order of their rows, without those that were deleted. A run is some neighbouring
    formulas of one expression, ids ascending; an index of one part has one run for each expression.

    Attributes:
        payload: what is kept of the expressions.
        numbers: int64 ``[runs]``, the expression of each run.
        owned: int64 ``[runs + 1]``; run ``i`` has the formulas ``owned[i]:owned[i + 1]``.
    """

    payload: P
    numbers: Rows
    owned: Rows

    @classmethod
    def of_parts(cls, parts: Sequence[Part], payload: type[P]) -> Self:
        """Open what was not deleted: memory-mapped from one part, else combined."""
        if len(parts) == 1 and not len(parts[0].deleted):
            return cls(payload.of_part(parts[0]), np.arange(len(parts[0]["keys"])), parts[0]["owned"])
        sizes = [np.diff(_ends(part.alive)[part["owned"]]) for part in parts]  # formulas of each expression
        keys, numbers = unite([keys_of(part) for part in parts], [size > 0 for size in sizes])
        pieces = [payload.of_part(part) for part in parts]
        combined = combine_payloads(pieces, numbers, len(keys)) if pieces else payload.combined([], [], 0)
        every = np.concatenate([np.zeros(0, dtype=np.int64), *numbers])
        owned = _ends(np.concatenate([np.zeros(0, np.int64), *sizes])[every >= 0])
        return cls(combined, every[every >= 0], owned)

    @cached_property
    def firsts(self) -> Rows:
        """The first formula of each expression: int64 ``[x]``."""
        found = np.zeros(int(self.numbers.max(initial=-1)) + 1, dtype=np.int64)
        found[self.numbers[::-1]] = self.owned[:-1][::-1]
        return found

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
        found = np.flatnonzero(values > above)
        if len(found) > count:  # each run has a formula at least
            found = found[values[found] >= -np.partition(-values[found], count - 1)[count - 1]]
        sizes = np.minimum(self.owned[found + 1] - self.owned[found], count)  # the ids of a run ascend
        return best_first(ranges(self.owned[found], sizes), np.repeat(values[found], sizes), count, ids)


def keys_of(part: Part) -> Array:
    """The digests of a part's expressions: bytes ``[x]``, ascending."""
    found = np.ascontiguousarray(part["keys"]).view(f"S{KEY_BYTES}").reshape(-1)
    if bool(np.any(found[1:] <= found[:-1])):
        raise DamagedError(part.path, "its keys do not ascend")
    return found


def unite(
    keys: Sequence[Array], owning: Sequence[npt.NDArray[np.bool_]], folder: Path | None = None
) -> tuple[Array, list[Rows]]:
    """Number the expressions of several pieces that own a formula; equal expressions have one number."""
    parts = 1 if folder is None else 1 + sum(map(len, keys)) // BLOCK
    bounds = np.array([((i << 32) // parts).to_bytes(4) for i in range(1, parts)], dtype=f"S{KEY_BYTES}")
    cuts = [[0, *np.searchsorted(of, bounds).tolist(), len(of)] for of in keys]
    united, size = Appended(folder, bounds.dtype), 0
    numbers = [Appended(folder, np.dtype(np.int64)) for _ in keys]
    for part in range(parts):
        here = [slice(*cut[part : part + 2]) for cut in cuts]
        some = [of[cut][own[cut]] for of, own, cut in zip(keys, owning, here, strict=True)]
        block = np.unique(np.concatenate([bounds[:0], *some]))
        united.append(block)
        for number, of, own, cut in zip(numbers, keys, owning, here, strict=True):
            number.append(np.where(own[cut], size + np.searchsorted(block, of[cut]), -1))
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


def _ends(sizes: Any) -> Rows:
    """Return where each of neighbours of these sizes begins, and where the last ends."""
    ends: Rows = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return ends
