"""Building an index of expressions from the formulas of posts, or adding to one."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.errors import EmptyIndexWarning, MathAMRWarning
from pyterrier_mathamr._common.types import DocNo, FormulaId
from pyterrier_mathamr.formula import FormulaPair, FormulaStore, definitions, tell_unknown_commands
from pyterrier_mathamr.posts import PostFormula
from pyterrier_mathamr.store import META, Job, file_fingerprint, row_fingerprint
from pyterrier_mathamr.systems.sparse import index as sparse
from pyterrier_mathamr.systems.sparse.reading import document_post
from pyterrier_mathamr.systems.sparse.texts import Texts

from .content import KEY_BYTES, Formulas, Payload, content_of, digests, expression_key
from .trees import formula_trees

_FORMULA_BYTES = 400  # of memory for a formula, beside what is kept of its expression


class PayloadBuilder(Protocol):
    """Takes expressions one after another."""

    @property
    def nbytes(self) -> int:
        """The memory that is taken, about."""

    def add(self, pair: FormulaPair) -> None:
        """Take an expression."""

    def payload(self) -> Payload:
        """Return what is kept of them."""


class ExpressionIndexer(sparse.SparseIndexer):
    """Builds an index of the formulas of posts, or adds to one, in one step at the end; subclasses say what is kept.

    Of an id that comes twice, or is in the index already, the first place with a tree is kept, as in ARQMath's own
    tables.
    """

    without_trees: ClassVar[str] = "cannot be found"
    """What becomes of formulas that have no trees."""
    store: FormulaStore | None
    visual_ids: Mapping[str, str] | None

    def begin(self) -> PayloadBuilder:
        """Return an empty payload that grows."""
        raise NotImplementedError

    def build_expressions(
        self, target: sparse.SparseIndex, posts: pd.DataFrame | Iterable[Mapping[str, Any]], details: sparse.Details
    ) -> None:
        """Build an index, or add to it.

        Args:
            target: the index.
            posts: a DataFrame or dictionaries with ``docno`` and ``html``, ``body`` or ``text`` (+ ``title``).
            details: the options; an index that is appended to must have the same.
        """
        part = self.build(target, posts, details, self._sources(), lambda job: _Part(job, self))
        if part.without:
            shown = ", ".join(f"{name} “{latex[:60]}”" for name, latex in part.without[:5])
            text = f"{len(part.without)} of {part.seen} formulas have no trees and {self.without_trees}, since their "
            more = ", …" if len(part.without) > 5 else ""
            _warn_of_formulas(target, f"{text}LaTeX cannot be read: {shown}{more}")
        elif part.posts and not part.seen and not len(target):
            text = (
                f"none of {part.posts:,} posts has a formula between delimiters; bare_formulas=True reads others, too"
            )
            _warn_of_formulas(target, text)

    def _sources(self) -> dict[str, Any]:
        """Return what determines the formulas beside their posts."""
        path = self.store.path if self.store is not None else None
        file = path / META if path is not None and path.is_dir() else path
        return {
            "store": file_fingerprint(file) if file is not None and file.exists() else None,
            "visual_ids": row_fingerprint(self.visual_ids) if self.visual_ids is not None else None,
        }


def _warn_of_formulas(target: sparse.SparseIndex, text: str) -> None:
    """Warn of formulas that were left out, or not there; say where the index is empty for that."""
    if len(target):
        warnings.warn(MathAMRWarning(f"{target.path}: {text}."), stacklevel=4)
    else:
        warnings.warn(EmptyIndexWarning(f"{target.path}: the index is empty: {text}."), stacklevel=4)


class _Found(NamedTuple):
    """A formula of a post."""

    formula: PostFormula
    post_id: DocNo
    source: int
    macros: str


class _Part:
    """Formulas whose expressions are taken and not written yet.

    Attributes:
        posts: the number of posts so far.
        seen: that of their formulas.
        without: the ids and LaTeX of those without trees.
    """

    def __init__(self, job: Job, indexer: ExpressionIndexer) -> None:
        self._job, self._by = job, indexer
        self._earlier = _Earlier(job)
        self.posts = self.seen = 0
        self.without: list[tuple[FormulaId, str]] = []
        self._begin()

    def _begin(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self._payload = self._by.begin()
        self._rows: dict[FormulaId, tuple[int, DocNo, str, int]] = {}  # expression, post, visual id, source

    def add(self, posts: Sequence[Mapping[str, Any]]) -> None:
        """Add the formulas of some posts, each id once; write a part when it is large enough.

        A part ends with a post, so that an earlier run has stored all of a post or nothing.
        """
        found = [of for post in posts for of in self._formulas(post)]
        self.posts += len(posts)
        self.seen += len(found)
        ids = [of.formula.id for of in found]
        self._earlier.check(ids)
        stored = self._job.look_up(ids).tolist()
        new = [of for of, row in zip(found, stored, strict=True) if row < 0 and of.formula.id not in self._rows]
        trees = formula_trees((of.formula for of in new), self._by.store, (of.macros for of in new))
        visual = self._visual([of.formula.id for of in new])
        for of, pair in zip(new, trees, strict=True):
            self._take(of, pair, str(visual.get(of.formula.id, "")))
        if self._nbytes >= sparse.PART_BYTES:
            self.write()

    def _formulas(self, row: Mapping[str, Any]) -> list[_Found]:
        """Read the formulas of a post, unless an earlier run has stored them."""
        source = row_fingerprint(row)
        if self._earlier.has(source):
            return []
        docno = str(row["docno"])
        formulas = document_post(row, bare_formulas=self._by.bare_formulas).formulas
        macros = definitions(formula.latex for formula in formulas)
        return [_Found(formula, docno, source, macros) for formula in formulas]

    def _take(self, of: _Found, pair: FormulaPair, visual_id: str) -> None:
        """Add one formula, unless it came before in its batch or has no tree."""
        if pair.slt is None and pair.opt is None:
            self.without.append((of.formula.id, of.formula.latex))
        elif of.formula.id not in self._rows:
            tell_unknown_commands(of.post_id, of.formula.latex, pair)
            key = digests(pair)
            if key not in self._numbers:
                self._numbers[key] = len(self._numbers)
                self._payload.add(pair)
            self._rows[of.formula.id] = (self._numbers[key], of.post_id, visual_id, of.source)

    @property
    def _nbytes(self) -> int:
        return self._payload.nbytes + _FORMULA_BYTES * len(self._rows)

    def write(self) -> None:
        """Write the formulas since the last part."""
        if not self._rows:
            return
        expressions, post_ids, visual_ids, sources = zip(*self._rows.values(), strict=True)
        formulas = Formulas(
            keys=np.frombuffer(b"".join(map(expression_key, self._numbers)), dtype=f"S{KEY_BYTES}"),
            payload=self._payload.payload(),
            expressions=np.asarray(expressions, dtype=np.int64),
            ids=Texts.of(self._rows),
            post_ids=Texts.of(post_ids),
            visual_ids=Texts.of(visual_ids),
            sources=np.asarray(sources, dtype=np.uint64),
        )
        self._job.add(content_of([formulas]))
        self._begin()

    def _visual(self, ids: list[FormulaId]) -> Mapping[str, str]:
        if self._by.visual_ids is not None:
            return self._by.visual_ids
        return self._by.store.visual_ids(ids) if self._by.store is not None else {}


class _Earlier:
    """The formulas that an earlier run of a job has stored, by the hash of their post."""

    def __init__(self, job: Job) -> None:
        self._job = job
        sources = sparse.sources_of(job.done)
        self._order = np.argsort(sources, kind="stable")
        self._sources = sources[self._order]
        self._came = np.zeros(len(sources), dtype=np.bool_)

    def has(self, source: int) -> bool:
        """Whether the formulas of a post are stored."""
        first, last = (int(np.searchsorted(self._sources, np.uint64(source), side)) for side in ("left", "right"))
        rows = self._order[first:last]
        if len(rows) and not self._came[rows[0]]:
            self._job.rows_done(self._job.done.ids(rows))
            self._came[rows] = True
        return first < last

    def check(self, ids: Sequence[FormulaId]) -> None:
        """Refuse formulas of new posts that an earlier run stored from a post with another content.

        Raises:
            UnfinishedJobError: there is one.
        """
        rows = self._job.done.look_up(ids)
        for row in rows[rows >= 0][~self._came[rows[rows >= 0]]]:
            raise self._job.changed(ids[int(np.flatnonzero(rows == row)[0])])
