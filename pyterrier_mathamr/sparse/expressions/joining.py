"""From formulas to the content of a part, a block of expressions at a time.

All that grows with the formulas is on the disk of the part that is made, in files without names; so an index of
28 million formulas is merged with the memory of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from pyterrier_mathamr.sparse.texts import Texts, TextsBuilder, texts_of
from pyterrier_mathamr.store import Appended, Array, Content, Part, Rows

from . import content
from .content import KEY_BYTES, P, Payload, combine_payloads, keys_of, unite

Q = TypeVar("Q", bound=Payload)


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
    def of_part(cls, part: Part, payload: type[P], folder: Path | None = None) -> Formulas[P]:
        """Read the formulas of a part that were not deleted; what is not the part's own may be kept in a folder."""
        whole = cls(
            keys=keys_of(part),
            payload=payload.of_part(part),
            expressions=_owners(part["owned"], folder),
            ids=Texts.of(part.ids, folder),
            post_ids=texts_of(part, "post_ids"),
            visual_ids=texts_of(part, "visual_ids"),
            sources=part["sources"],
        )
        return whole.take(np.flatnonzero(part.alive), folder) if len(part.deleted) else whole

    def take(self, rows: Rows, folder: Path | None = None) -> Formulas[P]:
        """Return some of the formulas, of the same expressions."""
        return replace(
            self,
            expressions=self.expressions[rows],
            ids=self.ids.take(rows, folder),
            post_ids=self.post_ids.take(rows, folder),
            visual_ids=self.visual_ids.take(rows, folder),
            sources=self.sources[rows],
        )

    def between(self, first: int, last: int) -> Formulas[P]:
        """Return the formulas of the expressions from ``first`` to before ``last``, where the expressions ascend."""
        start, stop = np.searchsorted(self.expressions, (first, last)).tolist()
        return replace(
            self,
            expressions=self.expressions[start:stop],
            ids=self.ids.between(start, stop),
            post_ids=self.post_ids.between(start, stop),
            visual_ids=self.visual_ids.between(start, stop),
            sources=self.sources[start:stop],
        )

    def having(self, payload: Q) -> Formulas[Q]:
        """Return the same formulas with another payload of their expressions."""
        rest = (self.expressions, self.ids, self.post_ids, self.visual_ids, self.sources)
        return Formulas(self.keys, payload, *rest)


def content_of(pieces: Sequence[Formulas[P]], folder: Path | None = None) -> Content:
    """Make one part of some formulas; it does not depend on how they are cut into pieces."""
    owning = [np.zeros(len(piece.keys), dtype=np.bool_) for piece in pieces]
    for own, piece in zip(owning, pieces, strict=True):
        own[piece.expressions] = True
    keys, numbers = unite([piece.keys for piece in pieces], owning, folder)
    ascending = [_numbered(piece, number, folder) for piece, number in zip(pieces, numbers, strict=True)]
    payload = combine_payloads([piece.payload for piece in pieces], numbers, len(keys), folder)
    owned, sources = Appended(folder, np.dtype(np.int64)), Appended(folder, np.dtype(np.uint64))
    ids, post_ids, visual_ids = (TextsBuilder(folder) for _ in range(3))
    owned.append(np.zeros(1))
    end = 0
    for first in range(0, len(keys), content.BLOCK):
        last = min(first + content.BLOCK, len(keys))
        some = [piece.between(first, last) for piece in ascending]
        of = np.concatenate([piece.expressions for piece in some]) - first
        names = Texts.joined([piece.ids for piece in some])
        order = _order(of, names)
        ids.add(names.take(order))
        post_ids.add(Texts.joined([piece.post_ids for piece in some]).take(order))
        visual_ids.add(Texts.joined([piece.visual_ids for piece in some]).take(order))
        sources.append(np.concatenate([piece.sources for piece in some])[order])
        owned.append(end + np.cumsum(np.bincount(of, minlength=last - first)))
        end += len(of)
    arrays = {
        **payload.arrays(),
        **post_ids.texts().arrays("post_ids"),
        **visual_ids.texts().arrays("visual_ids"),
        "keys": keys.view(np.uint8).reshape(-1, KEY_BYTES),
        "owned": owned.array(),
        "sources": sources.array(),
    }
    return Content(ids.texts(), arrays)


def merging(payload: type[P]) -> Callable[[Sequence[Part]], Content]:
    """Return what makes one part of several, without the formulas that were deleted."""

    def merge(parts: Sequence[Part]) -> Content:
        folder = parts[0].path.parent
        return content_of([Formulas.of_part(part, payload, folder) for part in parts], folder)

    return merge


def _owners(owned: Rows, folder: Path | None) -> Rows:
    """Return the expression of each formula of a part."""
    found = Appended(folder, np.dtype(np.int64))
    for start in range(0, len(owned) - 1, content.BLOCK):
        cuts = owned[start : start + content.BLOCK + 1]
        found.append(np.repeat(np.arange(start, start + len(cuts) - 1), np.diff(cuts)))
    return found.array()


def _numbered(piece: Formulas[P], number: Rows, folder: Path | None) -> Formulas[P]:
    """Return formulas with the new numbers of their expressions, ascending."""
    found, ascending, last = Appended(folder, np.dtype(np.int64)), True, 0
    for start in range(0, len(piece.expressions), content.BLOCK):
        some = number[piece.expressions[start : start + content.BLOCK]]
        ascending &= last <= some[0] and bool(np.all(some[:-1] <= some[1:]))
        last = some[-1]
        found.append(some)
    numbered = replace(piece, expressions=found.array())
    return numbered if ascending else numbered.take(np.argsort(numbered.expressions, kind="stable"), folder)


def _order(expressions: Rows, ids: Texts) -> Rows:
    """Order formulas by their expression, then by their id: int64 ``[f]``."""
    words = ids.words()
    if words is not None:
        return np.lexsort((*reversed(words), expressions)).astype(np.int64, copy=False)
    names = list(ids)
    pairs = list(zip(expressions.tolist(), names, strict=True))
    return np.array(sorted(range(len(names)), key=pairs.__getitem__), dtype=np.int64)
