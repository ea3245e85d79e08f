"""From a stream of posts to the parts of a Tangent index."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pyterrier_mathamr._common.types import DocNo, FormulaId
from pyterrier_mathamr.formula import FormulaPair, FormulaStore, FormulaTree
from pyterrier_mathamr.posts import PostFormula
from pyterrier_mathamr.store import Job, row_fingerprint
from pyterrier_mathamr.systems.sparse import index as sparse
from pyterrier_mathamr.systems.sparse.postings import PostingsBuilder
from pyterrier_mathamr.systems.sparse.reading import document_post

from .content import KEY_BYTES, Formulas, content_of
from .pairs import PairOptions, formula_trees, pair_terms

_digest = lru_cache(maxsize=8192)(FormulaTree.digest)  # half of a collection's formulas are repetitions
_FORMULA_BYTES = 400  # what a formula takes besides the pairs of its expression


class _Found(NamedTuple):
    """A formula of a post."""

    formula: PostFormula
    post_id: DocNo
    source: int


class PartBuilder:
    """Formulas that are taken apart and not written yet.

    Args:
        job: takes the parts.
        options: which pairs are taken.
        store: official trees.
        visual_ids: formula id to visual id; by default the store's.

    Attributes:
        without: how many formulas have no trees.
    """

    def __init__(
        self, job: Job, options: PairOptions, store: FormulaStore | None, visual_ids: Mapping[str, str] | None
    ) -> None:
        self._job, self._options, self._store, self._visual_ids = job, options, store, visual_ids
        self._earlier = _Earlier(job)
        self.without = 0
        self._begin()

    def _begin(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self._slt, self._opt = PostingsBuilder(), PostingsBuilder()
        self._rows: dict[FormulaId, tuple[int, DocNo, str, int]] = {}  # expression, post, visual id, source

    def add(self, posts: Sequence[Mapping[str, Any]]) -> None:
        """Take in the formulas of some posts, each id once; write a part where enough have come.

        A part ends with a post, so that an earlier run has done all of a post or nothing.
        """
        found = [
            _Found(formula, str(post["docno"]), source)
            for post, source in zip(posts, map(row_fingerprint, posts), strict=True)
            if not self._earlier.has(source)
            for formula in document_post(post).formulas
            if formula.id
        ]
        ids = [of.formula.id for of in found]
        self._earlier.check(ids)
        stored = self._job.look_up(ids).tolist()
        new = [of for of, row in zip(found, stored, strict=True) if row < 0 and of.formula.id not in self._rows]
        trees = formula_trees((of.formula for of in new), self._store)
        visual = self._visual([of.formula.id for of in new])
        for of, pair in zip(new, trees, strict=True):
            self._take(of, pair, str(visual.get(of.formula.id, "")))
        if self._nbytes >= sparse.PART_BYTES:
            self.write()

    def _take(self, of: _Found, pair: FormulaPair, visual_id: str) -> None:
        """Take in one formula, unless it came before in its batch or has no tree."""
        if pair.slt is None and pair.opt is None:
            self.without += 1
        elif of.formula.id not in self._rows:
            key = (_digest(pair.slt) if pair.slt else "", _digest(pair.opt) if pair.opt else "")
            number = self._numbers.setdefault(key, len(self._numbers))
            if number == len(self._slt):
                self._slt.add(pair_terms(pair.slt, self._options))
                self._opt.add(pair_terms(pair.opt, self._options))
            self._rows[of.formula.id] = (number, of.post_id, visual_id, of.source)

    @property
    def _nbytes(self) -> int:
        return self._slt.nbytes + self._opt.nbytes + _FORMULA_BYTES * len(self._rows)

    def write(self) -> None:
        """Write what was taken apart since the last part."""
        if not self._rows:
            return
        expressions, post_ids, visual_ids, sources = zip(*self._rows.values(), strict=True)
        formulas = Formulas(
            keys=np.frombuffer(b"".join(map(_key, self._numbers)), dtype=f"S{KEY_BYTES}"),
            postings=(self._slt.postings(), self._opt.postings()),
            expressions=np.asarray(expressions, dtype=np.int64),
            ids=list(self._rows),
            post_ids=post_ids,
            visual_ids=visual_ids,
            sources=np.asarray(sources, dtype=np.uint64),
        )
        self._job.add(content_of([formulas]))
        self._begin()

    def _visual(self, ids: list[FormulaId]) -> Mapping[str, str]:
        if self._visual_ids is not None:
            return self._visual_ids
        return self._store.visual_ids(ids) if self._store is not None else {}


class _Earlier:
    """The formulas that an earlier run of a job has stored, by the hash of their post."""

    def __init__(self, job: Job) -> None:
        self._job = job
        sources = sparse.sources_of(job.done)
        self._order = np.argsort(sources, kind="stable")
        self._sources = sources[self._order]
        self._came = np.zeros(len(sources), dtype=np.bool_)

    def has(self, source: int) -> bool:
        """Whether the formulas of a post that comes are stored."""
        first, last = (int(np.searchsorted(self._sources, np.uint64(source), side)) for side in ("left", "right"))
        rows = self._order[first:last]
        if len(rows) and not self._came[rows[0]]:
            self._job.rows_done(self._job.done.ids(rows))
            self._came[rows] = True
        return first < last

    def check(self, ids: Sequence[FormulaId]) -> None:
        """Refuse formulas of new posts that are stored by a post that has not come: it came with another content.

        Raises:
            UnfinishedJobError: there is one.
        """
        rows = self._job.done.look_up(ids)
        for row in rows[rows >= 0][~self._came[rows[rows >= 0]]]:
            raise self._job.changed(ids[int(np.flatnonzero(rows == row)[0])])


def _key(digests: tuple[str, str]) -> bytes:
    """A digest of two trees' digests."""
    return hashlib.blake2b("|".join(digests).encode(), digest_size=KEY_BYTES).digest()
