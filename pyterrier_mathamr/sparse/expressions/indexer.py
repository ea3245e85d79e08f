"""Building an index of expressions from the formulas of posts, or adding to one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, ClassVar, Protocol, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr._common.errors import EmptyIndexWarning, MathAMRWarning
from pyterrier_mathamr._common.feedback import tell
from pyterrier_mathamr._common.types import DocNo, FormulaId
from pyterrier_mathamr.formula import FormulaPair, FormulaStore, tell_unknown_commands
from pyterrier_mathamr.sparse import index as sparse
from pyterrier_mathamr.sparse.texts import Texts
from pyterrier_mathamr.store import META, Job, file_fingerprint, row_fingerprint

from .content import KEY_BYTES, Payload, digests, expression_key
from .joining import Formulas, content_of
from .reading import Expression, Found, PostReader, Read, ReadPosts, Taker, Unread

_FORMULA_BYTES = 400  # of memory for a formula, beside what is kept of its expression
_SHOWN, _EXCERPT = 5, 60  # formulas without trees that a warning shows, and characters of each


class PayloadBuilder(Protocol):
    """Takes expressions one after another."""

    @property
    def nbytes(self) -> int:
        """The memory that is taken, about."""

    def add(self, pair: FormulaPair) -> None:
        """Take an expression."""

    def payload(self) -> Payload:
        """Return what is kept of them."""


class _TakenBuilder(PayloadBuilder, Protocol):
    """Takes expressions of which a worker has computed what is kept."""

    def add_taken(self, taken: Any) -> None:
        """Take an expression."""


class ExpressionIndexer(sparse.SparseIndexer):
    """Builds an index of the formulas of posts, or adds to one, in one step at the end; subclasses say what is kept."""

    without_trees: ClassVar[str] = "cannot be found"
    """What becomes of formulas that have no trees."""
    store: FormulaStore | None
    visual_ids: Mapping[str, str] | None

    def begin(self) -> PayloadBuilder:
        """Return an empty payload that grows."""
        raise NotImplementedError

    def taker(self) -> Taker:
        """Return what computes what is kept of an expression; an indexer that has an executor has one."""
        raise NotImplementedError

    def reading(self) -> ReadPosts:
        """Return the work of a batch of posts; it can be pickled."""
        return ReadPosts(PostReader(self.bare_formulas, self.store), self.taker())

    def read(self, part: _Part, batches: Iterator[sparse.Batch]) -> Generator[Any, None, None]:
        """Read batches of posts on the executor, if there is one."""
        if self.executor is None:
            yield from batches
            return
        with closing(self.executor.map(self.reading(), map(part.unread, batches))) as read:
            yield from read

    def build_expressions(
        self, target: sparse.SparseIndex, posts: pd.DataFrame | Iterable[Mapping[str, Any]], details: sparse.Details
    ) -> None:
        """Build an index, or add to it."""
        self._tell(target, self.build(target, posts, details, self._sources(), lambda job: _Part(job, self)))

    @contextmanager
    def begun_expressions(
        self, target: sparse.SparseIndex, details: sparse.Details
    ) -> Iterator[Callable[[Read], None]]:
        """Build an index of what the body adds: posts that workers have read; see :meth:`build_expressions`."""
        with self.begun(target, details, self._sources(), lambda job: _Part(job, self)) as part:
            yield part.add
        self._tell(target, part)

    def _tell(self, target: sparse.SparseIndex, part: _Part) -> None:
        """Warn of formulas that have no trees, and where there are no formulas."""
        if part.without:
            shown = ", ".join(part.first_without) + (", …" if part.without > _SHOWN else "")
            text = f"{part.without} of {part.seen} formulas have no trees and {self.without_trees}, since their "
            _warn_of_formulas(target, f"{text}LaTeX cannot be read: {shown}")
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
        warnings.warn(MathAMRWarning(f"{target.path}: {text}."), stacklevel=5)
    else:
        warnings.warn(EmptyIndexWarning(f"{target.path}: the index is empty: {text}."), stacklevel=5)


class _Part:
    """Formulas whose expressions are taken and not written yet.

    Attributes:
        reader: of posts.
        posts: the number of posts so far.
        seen: that of their formulas.
        without: that of those without trees.
        first_without: the first of them, as they are shown.
    """

    def __init__(self, job: Job, indexer: ExpressionIndexer) -> None:
        self._job, self._by, self._earlier = job, indexer, _Earlier(job)
        self.reader = PostReader(indexer.bare_formulas, indexer.store)
        self.posts = self.seen = self.without = 0
        self.first_without: list[str] = []
        self._begin()

    def _begin(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self._payload = self._by.begin()
        self._rows: dict[FormulaId, tuple[int, DocNo, str, int]] = {}  # expression, post, visual id, source

    def add(self, posts: Sequence[Mapping[str, Any]] | Read) -> None:
        """Add the formulas of some posts, each id once; write a part when it is large enough."""
        if isinstance(posts, Read):
            self._add_read(posts)
        else:
            found = [of for post in posts for of in self._formulas(post)]
            new = [found[i] for i in self._new(len(posts), found)]
            visual = self._visual([of.formula.id for of in new])
            for of, pair in zip(new, self.reader.trees(new), strict=True):
                self._take(of, pair, str(visual.get(of.formula.id, "")))
        if self._nbytes >= sparse.PART_BYTES:
            self.write()

    def unread(self, posts: Sequence[Mapping[str, Any]]) -> Unread:
        """Choose what of some posts a worker reads: those that no earlier run has stored."""
        hashed = [(row, row_fingerprint(row)) for row in posts]
        known = [self._earlier.knows(source) for _, source in hashed]
        done = [source for (_, source), stored in zip(hashed, known, strict=True) if stored]
        return Unread(len(posts), done, [one for one, stored in zip(hashed, known, strict=True) if not stored])

    def _formulas(self, row: Mapping[str, Any]) -> list[Found]:
        """Read the formulas of a post, unless an earlier run has stored them."""
        source = row_fingerprint(row)
        return [] if self._earlier.has(source) else self.reader.found(row, source)

    def _new(self, posts: int, found: Sequence[Found]) -> list[int]:
        """Count posts and their formulas; return the places of those whose ids did not come before these posts."""
        self.posts += posts
        self.seen += len(found)
        ids = [of.formula.id for of in found]
        self._earlier.check(ids)
        stored = self._job.look_up(ids).tolist()
        return [i for i, name in enumerate(ids) if stored[i] < 0 and name not in self._rows]

    def _take(self, of: Found, pair: FormulaPair, visual_id: str) -> None:
        """Add one formula, unless it came before in its batch or has no tree."""
        if pair.slt is None and pair.opt is None:
            self._leave_out(of)
        elif of.formula.id not in self._rows:
            tell_unknown_commands(of.post_id, of.formula.latex, pair)
            key = digests(pair)
            if key not in self._numbers:
                self._payload.add(pair)
            self._own(of, key, visual_id)

    def _add_read(self, posts: Read) -> None:
        """Add what a worker has read."""
        for source in posts.done:
            self._earlier.has(source)
        posts.heard.repeat()
        new = self._new(posts.posts, posts.found)
        visual = self._visual([posts.found[i].formula.id for i in new])
        for i in new:
            of = posts.found[i]
            self._take_read(of, posts.expressions[i], str(visual.get(of.formula.id, "")))

    def _take_read(self, of: Found, expression: Expression, visual_id: str) -> None:
        """Add one formula as :meth:`_take` does."""
        if expression.key is None:
            self._leave_out(of)
        elif of.formula.id not in self._rows:
            for problem in expression.problems:
                tell(*problem)
            if expression.key not in self._numbers:
                cast("_TakenBuilder", self._payload).add_taken(expression.taken)
            self._own(of, expression.key, visual_id)

    def _leave_out(self, of: Found) -> None:
        """Count a formula without trees."""
        self.without += 1
        if self.without <= _SHOWN:
            self.first_without.append(f"{of.formula.id} “{of.formula.latex[:_EXCERPT]}”")

    def _own(self, of: Found, key: tuple[str, str], visual_id: str) -> None:
        """Note the expression of a formula."""
        number = self._numbers.setdefault(key, len(self._numbers))
        self._rows[of.formula.id] = (number, of.post_id, visual_id, of.source)

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

    def knows(self, source: int) -> bool:
        """Whether the formulas of a post are stored."""
        return len(self._rows_of(source)) > 0

    def has(self, source: int) -> bool:
        """Whether the formulas of a post are stored; if so it has come."""
        rows = self._rows_of(source)
        if len(rows) and not self._came[rows[0]]:
            self._job.rows_done(self._job.done.ids(rows))
            self._came[rows] = True
        return len(rows) > 0

    def _rows_of(self, source: int) -> npt.NDArray[np.int64]:
        first, last = (int(np.searchsorted(self._sources, np.uint64(source), side)) for side in ("left", "right"))
        return self._order[first:last]

    def check(self, ids: Sequence[FormulaId]) -> None:
        """Refuse formulas of new posts that an earlier run stored from a post with another content."""
        rows = self._job.done.look_up(ids)
        for row in rows[rows >= 0][~self._came[rows[rows >= 0]]]:
            raise self._job.changed(ids[int(np.flatnonzero(rows == row)[0])])
