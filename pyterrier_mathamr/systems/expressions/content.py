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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaPair, FormulaTree
from pyterrier_mathamr.store import Array, Content, DamagedError, Field, Part, Rows, ranges
from pyterrier_mathamr.systems.sparse.ranking import Names, best_first
from pyterrier_mathamr.systems.sparse.texts import Texts, text_fields, texts_of

KEY_BYTES = 16


class Payload(Protocol):
    """What an index keeps of ``x`` expressions."""

    @classmethod
    def of_part(cls, part: Part) -> Self:
        """Open what a part has."""

    @classmethod
    def combined(cls, pieces: Sequence[Self], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> Self:
        """Combine several payloads.

        Args:
            pieces: the payloads.
            numbers: for each, int64 ``[x]``: the number of each of its expressions in the result, -1 for none; no
                number occurs twice.
            size: expressions of the result.
            folder: on whose disk the result may be kept; ``None`` for memory.
        """

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of a part."""


P = TypeVar("P", bound=Payload)
Q = TypeVar("Q", bound=Payload)


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


@dataclass(frozen=True, slots=True, eq=False)
class Formulas(Generic[P]):
    """Some ``f`` formulas of ``x`` expressions, on their way into a part.

    Attributes:
        keys: bytes ``[x]``, of the expressions.
        payload: what is kept of the expressions.
        expressions: int64 ``[f]``, the expression of each formula.
        ids: of the formulas.
        post_ids: of their posts.
        visual_ids: empty where they have none.
        sources: uint64 ``[f]``.
    """

    keys: Array
    payload: P
    expressions: Rows
    ids: Texts
    post_ids: Texts
    visual_ids: Texts
    sources: Array

    @classmethod
    def of_part(cls, part: Part, payload: type[P]) -> Formulas[P]:
        """Read the formulas of a part that were not deleted."""
        rows = np.flatnonzero(part.alive)
        return cls(
            keys=keys_of(part),
            payload=payload.of_part(part),
            expressions=np.searchsorted(part["owned"], rows, side="right") - 1,
            ids=Texts.of(part.ids if len(rows) == len(part) else part.ids.texts(rows)),
            post_ids=texts_of(part, "post_ids").take(rows),
            visual_ids=texts_of(part, "visual_ids").take(rows),
            sources=part["sources"][rows],
        )

    def having(self, payload: Q) -> Formulas[Q]:
        """Return the same formulas with another payload of their expressions."""
        rest = (self.expressions, self.ids, self.post_ids, self.visual_ids, self.sources)
        return Formulas(self.keys, payload, *rest)


def content_of(pieces: Sequence[Formulas[P]], folder: Path | None = None) -> Content:
    """Make one part of some formulas; it does not depend on how they are cut into pieces.

    Args:
        pieces: the formulas.
        folder: on whose disk the payload may be kept until it is written; ``None`` for memory.
    """
    owning = [np.bincount(piece.expressions, minlength=len(piece.keys)) > 0 for piece in pieces]
    keys, numbers = _unite([piece.keys for piece in pieces], owning)
    expressions = np.concatenate([number[piece.expressions] for number, piece in zip(numbers, pieces, strict=True)])
    ids = Texts.joined([piece.ids for piece in pieces])
    order = _order(expressions, ids)
    arrays = {
        **_combined([piece.payload for piece in pieces], numbers, len(keys), folder).arrays(),
        **Texts.joined([piece.post_ids for piece in pieces]).take(order).arrays("post_ids"),
        **Texts.joined([piece.visual_ids for piece in pieces]).take(order).arrays("visual_ids"),
        "keys": keys.view(np.uint8).reshape(-1, KEY_BYTES),
        "owned": _ends(np.bincount(expressions, minlength=len(keys))),
        "sources": np.concatenate([piece.sources for piece in pieces])[order],
    }
    return Content(ids.take(order), arrays)


def _order(expressions: Rows, ids: Texts) -> Rows:
    """Order formulas by their expression, then by their id: int64 ``[f]``."""
    words = ids.words()
    if words is not None:
        return np.lexsort((*reversed(words), expressions)).astype(np.int64, copy=False)
    names = list(ids)
    pairs = list(zip(expressions.tolist(), names, strict=True))
    return np.array(sorted(range(len(names)), key=pairs.__getitem__), dtype=np.int64)


def merging(payload: type[P]) -> Callable[[Sequence[Part]], Content]:
    """Return what makes one part of several, without the formulas that were deleted."""

    def merge(parts: Sequence[Part]) -> Content:
        return content_of([Formulas.of_part(part, payload) for part in parts], parts[0].path.parent)

    return merge


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
        keys, numbers = _unite([keys_of(part) for part in parts], [size > 0 for size in sizes])
        pieces = [payload.of_part(part) for part in parts]
        combined = _combined(pieces, numbers, len(keys)) if pieces else payload.combined([], [], 0)
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
        """Find the formulas with the highest scores: score descending, then formula id ascending.

        Args:
            scores: float64 ``[x]``, of the expressions.
            count: the number of formulas.
            ids: returns the ids of formulas by their numbers.
            above: scores that are not above this are left out.

        Returns:
            Their numbers, int64 ``[≤ count]``, and scores, float64 of the same length.
        """
        values = scores[self.numbers]  # [runs]
        found = np.flatnonzero(values > above)
        if len(found) > count:  # each run has a formula at least
            found = found[values[found] >= -np.partition(-values[found], count - 1)[count - 1]]
        sizes = np.minimum(self.owned[found + 1] - self.owned[found], count)  # the ids of a run ascend
        return best_first(ranges(self.owned[found], sizes), np.repeat(values[found], sizes), count, ids)


def keys_of(part: Part) -> Array:
    """The digests of a part's expressions: bytes ``[x]``, ascending.

    Raises:
        DamagedError: they are not as they were written.
    """
    found = np.ascontiguousarray(part["keys"]).view(f"S{KEY_BYTES}").reshape(-1)
    if bool(np.any(found[1:] <= found[:-1])):
        raise DamagedError(part.path, "its keys do not ascend")
    return found


def _unite(keys: Sequence[Array], owning: Sequence[npt.NDArray[np.bool_]]) -> tuple[Array, list[Rows]]:
    """Number the expressions of several pieces that own a formula; equal expressions have one number.

    Returns:
        The keys, bytes ``[x]``, ascending, and for each piece int64: the number of each of its expressions, -1 for one
        that owns nothing.
    """
    none = np.zeros(0, dtype=f"S{KEY_BYTES}")
    united = np.unique(np.concatenate([none, *(of[own] for of, own in zip(keys, owning, strict=True))]))
    return united, [np.where(own, np.searchsorted(united, of), -1) for of, own in zip(keys, owning, strict=True)]


def _combined(pieces: Sequence[P], numbers: Sequence[Rows], size: int, folder: Path | None = None) -> P:
    """Combine several payloads; a common expression is taken from the first."""
    known = np.zeros(size, dtype=np.bool_)
    first: list[Rows] = []
    for number in numbers:
        fresh = number >= 0
        fresh[fresh] = ~known[number[fresh]]
        known[number[fresh]] = True
        first.append(np.where(fresh, number, -1))
    return type(pieces[0]).combined(pieces, first, size, folder)


def _ends(sizes: Any) -> Rows:
    """Return where each of neighbours of these sizes begins, and where the last ends."""
    ends: Rows = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return ends
