"""What a Tangent index holds: the symbol pairs of distinct expressions, and which formulas are which expression.

    slt_…, opt_…  Postings      the symbol pairs of each expression's layout tree and operator tree
    keys     uint8  [x, 16]     a digest of each expression's trees, ascending; it identifies the expression
    owned    int64  [x + 1]     expression ``i`` owns the formulas ``owned[i]:owned[i + 1]``
    ids                         of the formulas, ascending for each expression
    post_ids, visual_ids        texts [m]
    sources  uint64 [m]         a hash of each formula's post

Half of the formulas of a collection repeat another one, so symbol pairs are stored and scored once for all formulas
with the same trees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.store import Array, Content, DamagedError, Field, Kind, Part, Rows, ranges
from pyterrier_mathamr.systems.sparse.index import UNBOUNDED
from pyterrier_mathamr.systems.sparse.postings import Postings, combine, postings_fields
from pyterrier_mathamr.systems.sparse.ranking import Names, best_first
from pyterrier_mathamr.systems.sparse.texts import read_texts, text_arrays, text_fields

KEY_BYTES = 16


@dataclass(frozen=True, slots=True, eq=False)
class Formulas:
    """Some ``f`` formulas of ``x`` expressions, on their way into a part.

    Attributes:
        keys: bytes ``[x]``, of the expressions.
        postings: the symbol pairs of their layout trees and of their operator trees.
        expressions: int64 ``[f]``, the expression of each formula.
        ids: of the formulas.
        post_ids: of their posts.
        visual_ids: empty where they have none.
        sources: uint64 ``[f]``.
    """

    keys: Array
    postings: tuple[Postings, Postings]
    expressions: Rows
    ids: Sequence[str]
    post_ids: Sequence[str]
    visual_ids: Sequence[str]
    sources: Array

    @classmethod
    def of_part(cls, part: Part) -> Formulas:
        """Read the formulas of a part that were not deleted."""
        rows = np.flatnonzero(part.alive)
        return cls(
            keys=_keys(part),
            postings=_postings(part),
            expressions=np.searchsorted(part["owned"], rows, side="right") - 1,
            ids=part.ids.texts(rows),
            post_ids=read_texts(part, "post_ids", rows),
            visual_ids=read_texts(part, "visual_ids", rows),
            sources=part["sources"][rows],
        )


def content_of(pieces: Sequence[Formulas]) -> Content:
    """Make one part of some formulas; it does not depend on how they are cut into pieces."""
    owning = [np.bincount(piece.expressions, minlength=len(piece.keys)) > 0 for piece in pieces]
    keys, numbers = _unite([piece.keys for piece in pieces], owning)
    expressions = np.concatenate([number[piece.expressions] for number, piece in zip(numbers, pieces, strict=True)])
    ids = [name for piece in pieces for name in piece.ids]
    order = sorted(range(len(ids)), key=list(zip(expressions.tolist(), ids, strict=True)).__getitem__)
    post_ids = [name for piece in pieces for name in piece.post_ids]
    visual_ids = [name for piece in pieces for name in piece.visual_ids]
    slt, opt = _combined([piece.postings for piece in pieces], numbers, len(keys))
    arrays = {
        **slt.arrays("slt_"),
        **opt.arrays("opt_"),
        **text_arrays("post_ids", map(post_ids.__getitem__, order)),
        **text_arrays("visual_ids", map(visual_ids.__getitem__, order)),
        "keys": keys.view(np.uint8).reshape(-1, KEY_BYTES),
        "owned": _ends(np.bincount(expressions, minlength=len(keys))),
        "sources": np.concatenate([piece.sources for piece in pieces])[order],
    }
    return Content([ids[row] for row in order], arrays)


def merge_parts(parts: Sequence[Part]) -> Content:
    """Make one part of several, without the formulas that were deleted."""
    return content_of([Formulas.of_part(part) for part in parts])


TANGENT = Kind(
    type="sparse_index",
    format="mathamr_tangent",
    version=2,
    fields=(
        *postings_fields("slt_", "x"),
        *postings_fields("opt_", "x"),
        Field("keys", "uint8", f"x {KEY_BYTES}"),
        Field("owned", "int64", "x+1", cuts="m"),
        *text_fields("post_ids", "m"),
        *text_fields("visual_ids", "m"),
        Field("sources", "uint64", "m"),
    ),
    merge=merge_parts,
    rebuild="TangentIndex('{path}').indexer(mode='overwrite').index(posts)",
    part_bytes=UNBOUNDED,
)


@dataclass(frozen=True, slots=True, eq=False)
class TangentContent:
    """``x`` expressions and the ``f`` formulas that they own.

    Formulas are numbered in the order of their rows, without those that were deleted. A run is some neighbouring
    formulas of one expression, ids ascending; an index of one part has one run for each expression.

    Attributes:
        slt: the symbol pairs of the layout trees.
        opt: the symbol pairs of the operator trees.
        expressions: int64 ``[runs]``, the expression of each run.
        owned: int64 ``[runs + 1]``; run ``i`` has the formulas ``owned[i]:owned[i + 1]``.
    """

    slt: Postings
    opt: Postings
    expressions: Rows
    owned: Rows

    @classmethod
    def of_parts(cls, parts: Sequence[Part]) -> TangentContent:
        """Open what was not deleted: memory-mapped from one part, else combined."""
        if len(parts) == 1 and not len(parts[0].deleted):
            return cls(*_postings(parts[0]), np.arange(len(parts[0]["keys"])), parts[0]["owned"])
        sizes = [np.diff(_ends(part.alive)[part["owned"]]) for part in parts]  # formulas of each expression
        keys, numbers = _unite([_keys(part) for part in parts], [size > 0 for size in sizes])
        slt, opt = _combined([_postings(part) for part in parts], numbers, len(keys))
        every = np.concatenate([np.zeros(0, dtype=np.int64), *numbers])
        return cls(slt, opt, every[every >= 0], _ends(np.concatenate([np.zeros(0, np.int64), *sizes])[every >= 0]))

    def best(self, scores: npt.NDArray[np.float64], count: int, ids: Names) -> tuple[Rows, npt.NDArray[np.float64]]:
        """Find the formulas with the highest scores: score descending, then formula id ascending.

        Args:
            scores: float64 ``[x]``, of the expressions; those that are 0 are left out.
            count: the number of formulas.
            ids: returns the ids of formulas by their numbers.

        Returns:
            Their numbers, int64 ``[≤ count]``, and scores, float64 of the same length.
        """
        values = scores[self.expressions]  # [runs]
        found = np.flatnonzero(values > 0)
        if len(found) > count:  # each run has a formula at least
            found = found[values[found] >= -np.partition(-values[found], count - 1)[count - 1]]
        sizes = np.minimum(self.owned[found + 1] - self.owned[found], count)  # the ids of a run ascend
        return best_first(ranges(self.owned[found], sizes), np.repeat(values[found], sizes), count, ids)


def dice(postings: Postings, terms: Counter[str]) -> npt.NDArray[np.float64]:
    """Score all expressions by the symbol pairs that they share with the query.

    With s common symbol pairs (each as often as both have it), recall s/q and precision s/d of a query of q and an
    expression of d symbol pairs, the score is their harmonic mean, 2s / (q + d): 1 for the same pairs, 0 for none.

    Args:
        postings: the expressions' symbol pairs.
        terms: the query's, with how often each occurs.

    Returns:
        float64 ``[x]``, 0 to 1.
    """
    shared = np.zeros(len(postings.lengths), dtype=np.int64)
    for term, times in terms.items():
        number = postings.terms.get(term)
        if number is not None:
            here = slice(postings.offsets[number], postings.offsets[number + 1])
            shared[postings.documents[here]] += np.minimum(postings.counts[here], times)
    sizes = postings.lengths + max(1, terms.total())
    score: npt.NDArray[np.float64] = 2 * shared / sizes
    return score


def _postings(part: Part) -> tuple[Postings, Postings]:
    return Postings.of_part(part, "slt_"), Postings.of_part(part, "opt_")


def _keys(part: Part) -> Array:
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


def _combined(pieces: Sequence[tuple[Postings, Postings]], numbers: Sequence[Rows], size: int) -> list[Postings]:
    """Combine the symbol pairs of several pieces; those of a common expression are taken from the first."""
    known = np.zeros(size, dtype=np.bool_)
    first: list[Rows] = []
    for number in numbers:
        fresh = number >= 0
        fresh[fresh] = ~known[number[fresh]]
        known[number[fresh]] = True
        first.append(np.where(fresh, number, -1))
    return [combine([piece[tree] for piece in pieces], first, size) for tree in (0, 1)]


def _ends(sizes: Any) -> Rows:
    """Return where each of neighbours of these sizes begins, and where the last ends."""
    ends: Rows = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return ends
