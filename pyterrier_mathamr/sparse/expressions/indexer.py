"""Building an index of expressions from the formulas of posts, or adding to one.

::

    posts ──▶ formulas ──▶ both trees of each ──take──▶ data of a payload          ReadPosts: here, or in workers
                                                              │
          a part of the job, when it is large enough ◀── Growing: equal trees are one expression

The :class:`Packing` of a system defines the stored data of an expression; all else is common to all formula indexes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.feedback import Overheard, Problem, gathered, overheard, report_problem
from pyterrier_mathamr._common.running.processes import Executor
from pyterrier_mathamr._common.types import DocNo, FormulaId
from pyterrier_mathamr.formula import (
    FormulaPair,
    FormulaStore,
    definitions,
    one_text,
    report_unknown_commands,
    trees_of_posts,
)
from pyterrier_mathamr.posts import PostFormula
from pyterrier_mathamr.sparse import index as sparse
from pyterrier_mathamr.sparse.texts import Texts
from pyterrier_mathamr.store import META, Job, Mode, file_fingerprint, row_fingerprint

from .parts import KEY_BYTES, Formulas, Payload, content_of, digests, expression_key

if TYPE_CHECKING:
    from .index import ExpressionIndex

_FORMULA_BYTES = 400  # of memory for a formula, besides the data of its expression
_SHOWN, _EXCERPT = 5, 60  # formulas without trees that a warning shows, and characters of each

Row = Mapping[str, Any]
Key = tuple[str, str]
"""The digests of both trees of an expression."""


class PayloadBuilder(Protocol):
    """A payload that grows by one expression after another."""

    @property
    def nbytes(self) -> int: ...  # its memory, approximately

    def add(self, taken: Any) -> None: ...  # what :attr:`Packing.take` has returned for an expression

    def payload(self) -> Payload: ...  # of all expressions


class CollectingBuilder:
    """Collects the data of expressions, and packs all of it into a payload at the end.

    Args:
        pack: makes the payload of all.
        size: the approximate memory of the data of one expression.
    """

    def __init__(self, pack: Callable[[list[Any]], Payload], size: Callable[[Any], int]) -> None:
        self._pack, self._size, self._taken = pack, size, list[Any]()
        self.nbytes = 0

    def add(self, taken: Any) -> None:
        self._taken.append(taken)
        self.nbytes += self._size(taken)

    def payload(self) -> Payload:
        return self._pack(self._taken)


def _both_trees(pair: FormulaPair) -> FormulaPair:
    return pair


@dataclass(frozen=True)
class Packing:
    """The stored data of expressions.

    Attributes:
        builder: makes an empty payload.
        take: computes the data of an expression for the payload; it is pickled for workers. By default both trees.
        details: options that all parts of an index share; its manifest records them.
        official: whether official trees are used if there are some; otherwise all are read from LaTeX.
    """

    builder: Callable[[], PayloadBuilder]
    take: Callable[[FormulaPair], Any] = _both_trees
    details: Mapping[str, Any] = field(default_factory=dict)
    official: bool = True


def formula_trees(
    formulas: Iterable[PostFormula], store: FormulaStore | None, macros: Iterable[str] | None = None
) -> list[FormulaPair]:
    """Read the official trees of formulas, and make missing ones from LaTeX."""
    formulas = list(formulas)
    ids = sorted({formula.id for formula in formulas if formula.id})
    official = store.get_many(ids) if store is not None else {}
    of_posts = [""] * len(formulas) if macros is None else macros
    pairs: list[FormulaPair] = []
    for defined, of_post in groupby(zip(formulas, of_posts, strict=True), key=itemgetter(1)):
        with one_text():
            for formula, _ in of_post:
                pair = official.get(formula.id, FormulaPair(None, None))
                if pair.slt is None or pair.opt is None:
                    made = trees_of_posts(formula.latex, defined)
                    pair = FormulaPair(slt=pair.slt or made.slt, opt=pair.opt or made.opt)
                pairs.append(pair)
    return pairs


class Expression(NamedTuple):
    """A formula of a post, and the expression that it is."""

    formula: PostFormula
    post_id: DocNo
    source: int  # a hash of the post
    key: Key | None  # None for a formula without trees
    taken: Any  # the data for a payload; the same object for equal expressions
    problems: tuple[Problem, ...]  # reported if the formula is the first of its id


class Unread(NamedTuple):
    """Posts to read: how many, the hashes of posts that an earlier run has stored, and the others with their hashes."""

    posts: int
    done: list[int]
    rest: list[tuple[Row, int]]


class Read(NamedTuple):
    """Posts that were read: how many, posts that were stored before, the formulas of the others, and warnings."""

    posts: int
    done: list[int]
    found: list[Expression]
    heard: Overheard | None


@dataclass(frozen=True, eq=False)
class ReadPosts:
    """Reads the formulas of posts, and computes the stored data of each expression; sent to workers."""

    bare_formulas: bool
    store: FormulaStore | None
    take: Callable[[FormulaPair], Any]

    def __call__(self, posts: Unread) -> Read:
        """Read posts in a worker, which returns its warnings to the parent process."""
        with overheard() as heard:
            read = self.read(posts)
        return read._replace(heard=heard)

    def read(self, posts: Unread, known: Container[Key] = ()) -> Read:
        """Read posts; the data of known expressions is not computed again."""
        formulas, macros = list[tuple[PostFormula, DocNo, int]](), list[str]()
        for row, source in posts.rest:
            of_post = sparse.document_or_empty(row, bare_formulas=self.bare_formulas).formulas
            macros += [definitions(formula.latex for formula in of_post)] * len(of_post)
            formulas += [(formula, row["docno"], source) for formula in of_post]
        trees = formula_trees((formula for formula, _, _ in formulas), self.store, macros)
        taken: dict[Key, Any] = {}
        expressions = []
        for (formula, post_id, source), pair in zip(formulas, trees, strict=True):
            if pair.slt is None and pair.opt is None:
                expressions.append(Expression(formula, post_id, source, None, None, ()))
                continue
            with gathered() as problems:
                report_unknown_commands(post_id, formula.latex, pair)
            key = digests(pair)
            if key not in taken:
                taken[key] = None if key in known else self.take(pair)
            expressions.append(Expression(formula, post_id, source, key, taken[key], tuple(problems)))
        return Read(posts.posts, posts.done, expressions, None)


class ExpressionIndexer(sparse.SparseIndexer):
    """Builds an index of the formulas of posts, or adds to one, in one step at the end.

    If an id comes twice, or is in the index already, the first place with a tree is kept, as in ARQMath's own
    tables. Building needs 0.2 to 0.3 ms for each formula.

    Finished parts are kept if the process is killed: the same call with ``resume=True`` continues after the last one. A
    post that differs from the earlier call's is then an error.

    Args:
        formula_index: the index.
        mode: ``create`` refuses an index that exists, ``overwrite`` replaces it, ``append`` adds to it.
        packing: the stored data of an expression; by default the index's.
        store: official trees by formula id; other formulas get their trees from LaTeX.
        visual_ids: formula id to visual id; missing formulas get the empty string. By default the store's.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``.
        resume: continue an earlier call that was interrupted.
        executor: where to read formulas, by default in this process; the index is the same.
        verbose: show a progress bar.

    Raises:
        ConfigError: the mode is unknown.
    """

    label = "Formula Indexer"

    def __init__(
        self,
        formula_index: ExpressionIndex[Any],
        mode: Mode = "create",
        *,
        packing: Packing | None = None,
        store: FormulaStore | None = None,
        visual_ids: Mapping[str, str] | None = None,
        bare_formulas: bool = False,
        resume: bool = False,
        executor: Executor | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.formula_index, self.mode, self.packing = formula_index, mode, packing
        self.store, self.visual_ids = store, visual_ids
        self.bare_formulas, self.resume, self.executor, self.verbose = bare_formulas, resume, executor, verbose

    def index(self, iter: pd.DataFrame | Iterable[Mapping[str, Any]]) -> Any:
        """Build the index, or add to it.

        Args:
            iter: a DataFrame or dictionaries with ``docno`` and ``html``, ``body`` or ``text`` (+ ``title``).

        Returns:
            The index. Formulas without any tree are left out, with a warning that counts them.

        Raises:
            ConfigError: the index that is added to was built with other options, or by another model.
            StoreError: anything else failed; nothing was changed.
        """
        work = self.reading()
        with self._part() as part:
            unread = map(part.unread, self.batches(iter))
            if self.executor is None:
                for posts in unread:
                    part.add(work.read(posts, part.numbers))
            else:
                with closing(self.executor.map(work, unread)) as batches:
                    for read in batches:
                        part.add(read)
        return self.formula_index

    def reading(self) -> ReadPosts:
        """Return what reads a batch of posts; it can be pickled."""
        packing = self.made_packing()
        return ReadPosts(self.bare_formulas, self.store if packing.official else None, packing.take)

    @contextmanager
    def adding(self) -> Iterator[Callable[[Read], None]]:
        """Build the index of posts that :meth:`reading` has read; pass them, in order, to the yielded function."""
        with self._part() as part:
            yield part.add

    def sources(self) -> dict[str, Any]:
        """Return what determines the formulas besides their posts."""
        path = self.store.path if self.store is not None else None
        file = path / META if path is not None and path.is_dir() else path
        return {
            "store": file_fingerprint(file) if file is not None and file.exists() else None,
            "visual_ids": row_fingerprint(self.visual_ids) if self.visual_ids is not None else None,
        }

    def made_packing(self) -> Packing:
        """Return the stored data of an expression."""
        return self.packing or self.formula_index.packing()

    @contextmanager
    def _part(self) -> Iterator[Growing]:
        """Publish the additions of the body; warn of formulas that have no trees, and where there are no formulas."""
        packing, index = self.made_packing(), self.formula_index
        with self.begun(index, packing.details, self.sources()) as job:
            part = Growing(job, self, packing)
            yield part
            part.write()
        text = ""
        if part.without:
            shown = ", ".join(part.first_without) + (", …" if part.without > _SHOWN else "")
            text = f"{part.without} of {part.seen} formulas have no trees and cannot be found, since their LaTeX "
            text += f"cannot be read: {shown}"
        elif part.posts and not part.seen and not len(index):
            text = f"none of {part.posts:,} posts has a formula between delimiters; "
            text += "bare_formulas=True reads others, too"
        if text:
            empty = "" if len(index) else "the index is empty: "
            warnings.warn(MathAMRWarning(f"{index.path}: {empty}{text}."), stacklevel=4)


class Growing:
    """Formulas whose expressions are computed, but not written yet.

    The formulas that an earlier run of the job has stored are recognized by the hash of their post.
    """

    def __init__(self, job: Job, indexer: ExpressionIndexer, packing: Packing) -> None:
        self._job, self._by, self.packing = job, indexer, packing
        self.posts = self.seen = self.without = 0  # posts, their formulas, and formulas without trees
        self.first_without: list[str] = []  # as displayed
        sources = sparse.sources_of(job.done)
        self._order = np.argsort(sources, kind="stable")
        self._sources, self._came = sources[self._order], np.zeros(len(sources), dtype=np.bool_)
        self._begin()

    def _begin(self) -> None:
        self.numbers: dict[Key, int] = {}  # of each expression
        self._payload = self.packing.builder()
        self._rows: dict[FormulaId, tuple[int, DocNo, str, int]] = {}  # expression, post, visual id, source

    def unread(self, posts: Sequence[Row]) -> Unread:
        """Choose the posts to read: posts that no earlier run has stored."""
        hashed = [(row, row_fingerprint(row)) for row in posts]
        done = [len(self._stored(source)) > 0 for _, source in hashed]
        return Unread(
            len(posts),
            [source for (_, source), stored in zip(hashed, done, strict=True) if stored],
            [post for post, stored in zip(hashed, done, strict=True) if not stored],
        )

    def add(self, read: Read) -> None:
        """Add the formulas of some posts, each id once; write a part when it is large enough."""
        for source in read.done:
            rows = self._stored(source)
            if not self._came[rows[0]]:
                self._job.rows_done(self._job.done.ids(rows))
                self._came[rows] = True
        if read.heard is not None:
            read.heard.repeat()
        self.posts += read.posts
        self.seen += len(read.found)
        ids = [expression.formula.id for expression in read.found]
        for name, row in zip(ids, self._job.done.look_up(ids).tolist(), strict=True):
            if row >= 0 and not self._came[row]:  # an earlier run stored it from a post with another content
                raise self._job.changed(name)
        stored = self._job.look_up(ids).tolist()
        new = [
            expression
            for expression, row in zip(read.found, stored, strict=True)
            if row < 0 and expression.formula.id not in self._rows
        ]
        visual_ids = self._by.visual_ids
        if visual_ids is None:
            store = self._by.store
            visual_ids = {} if store is None else store.visual_ids([expression.formula.id for expression in new])
        for expression in new:
            name = expression.formula.id
            if expression.key is None:
                self.without += 1
                if self.without <= _SHOWN:
                    self.first_without.append(f"{name} “{expression.formula.latex[:_EXCERPT]}”")
            elif name not in self._rows:  # else it came before in its batch
                for problem in expression.problems:
                    report_problem(*problem)
                if expression.key not in self.numbers:
                    self._payload.add(expression.taken)
                number = self.numbers.setdefault(expression.key, len(self.numbers))
                self._rows[name] = (number, expression.post_id, str(visual_ids.get(name, "")), expression.source)
        if self._payload.nbytes + _FORMULA_BYTES * len(self._rows) >= sparse.PART_BYTES:
            self.write()

    def write(self) -> None:
        """Write the formulas since the last part."""
        if not self._rows:
            return
        expressions, post_ids, visual_ids, sources = zip(*self._rows.values(), strict=True)
        formulas = Formulas(
            np.frombuffer(b"".join(map(expression_key, self.numbers)), dtype=f"S{KEY_BYTES}"),
            self._payload.payload(),
            np.asarray(expressions, dtype=np.int64),
            np.asarray(sources, dtype=np.uint64),
            {"ids": Texts.of(self._rows), "post_ids": Texts.of(post_ids), "visual_ids": Texts.of(visual_ids)},
        )
        self._job.add(content_of([formulas]))
        self._begin()

    def _stored(self, source: int) -> npt.NDArray[np.int64]:
        """Return the rows of a post that an earlier run has stored."""
        first, last = (int(np.searchsorted(self._sources, np.uint64(source), side)) for side in ("left", "right"))
        return self._order[first:last]
