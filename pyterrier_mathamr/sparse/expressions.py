"""Indexes of formulas, each stored once for all equal ones: the basis of every formula search engine.

::

    posts ──▶ formulas ──▶ both trees of each ──take──▶ data of a payload          ReadPosts: here, or in workers
                                                              │
              a part of the job, when it is large enough ◀── Growing: equal trees are one expression
                                  │
    queries ──▶ both trees of each ──(a system: scores of all expressions)──▶ the best formulas, by name

The :class:`Packing` of a system defines the stored data of an expression; all else is common to all formula indexes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby
from math import nan
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.feedback import (
    Overheard,
    Problem,
    counted,
    gathered,
    overheard,
    progress,
    report_problem,
)
from pyterrier_mathamr._common.frames import empty_output, is_missing, ranking_frame
from pyterrier_mathamr._common.parameters import method
from pyterrier_mathamr._common.running.processes import Executor
from pyterrier_mathamr._common.transformers import Leaf, Transformer
from pyterrier_mathamr._common.types import DocNo, FormulaId
from pyterrier_mathamr.explain import Asked, AskedError, Explanation, Part, QueryRow, read_asked
from pyterrier_mathamr.formula import (
    FormulaPair,
    FormulaStore,
    definitions,
    one_text,
    report_unknown_commands,
    trees_of_posts,
)
from pyterrier_mathamr.posts import PostFormula, is_formula, strip_delimiters
from pyterrier_mathamr.posts.reading import check_topic
from pyterrier_mathamr.store import META, Job, Kind, Mode, Rows, Snapshot, file_fingerprint, row_fingerprint

from . import index as sparse
from .expression_parts import (
    KEY_BYTES,
    Expressions,
    Formulas,
    P,
    Payload,
    content_of,
    digests,
    expression_key,
    keys_of,
)
from .index import BuiltOnce, Found, Remembered, SparseIndexer, SparseRetriever, warn_of_queries
from .texts import Texts, read_texts

_AT_ONCE = 4096  # rows whose texts are read together
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
    """Collects the data of expressions, each of some ``size`` in memory, and packs all of it at the end."""

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
    """The stored data of expressions."""

    builder: Callable[[], PayloadBuilder]  # makes an empty payload
    take: Callable[[FormulaPair], Any] = _both_trees  # computes the data of an expression; pickled for workers
    details: Mapping[str, Any] = field(default_factory=dict)  # options of all parts, recorded in the manifest
    official: bool = True  # whether official trees are used if there are some; otherwise all are read from LaTeX


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


class ExpressionIndexer(SparseIndexer):
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
        self._job, self._indexer, self._packing = job, indexer, packing
        self.posts = self.seen = self.without = 0  # posts, their formulas, and formulas without trees
        self.first_without: list[str] = []  # as displayed
        sources = sparse.sources_of(job.done)
        self._order = np.argsort(sources, kind="stable")
        self._sources, self._came = sources[self._order], np.zeros(len(sources), dtype=np.bool_)
        self._begin()

    def _begin(self) -> None:
        self.numbers: dict[Key, int] = {}  # of each expression
        self._payload = self._packing.builder()
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
        visual_ids = self._indexer.visual_ids
        if visual_ids is None:
            store = self._indexer.store
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


class ExpressionSnapshot(Snapshot, Generic[P]):
    """An index of expressions as it was when it was opened; formulas are numbered as in :class:`Expressions`."""

    def __init__(self, path: Path, kind: Kind, payload: type[P]) -> None:
        super().__init__(path, kind)
        self._payload = payload
        self.formula_ids = Remembered(self, lambda snapshot, numbers: snapshot.ids(snapshot.live[numbers]))
        self.post_ids = Remembered(self, lambda snapshot, numbers: snapshot.texts("post_ids", numbers))
        self.visual_ids = Remembered(self, lambda snapshot, numbers: snapshot.texts("visual_ids", numbers))

    @cached_property
    def expressions(self) -> Expressions[P]:
        """The expressions and their formulas."""
        return Expressions.of_parts(self.parts, self._payload)

    def holds(self, pair: FormulaPair) -> bool:
        """Whether a formula with these trees is among them, or was before it was deleted."""
        key = np.frombuffer(expression_key(digests(pair)), dtype=f"S{KEY_BYTES}")[0]
        places = ((keys, int(np.searchsorted(keys, key))) for keys in map(keys_of, self.parts))
        return any(place < len(keys) and keys[place] == key for keys, place in places)

    def expressions_of(self, formula_ids: Sequence[str]) -> Rows:
        """Look up the expression of each formula: int64 ``[ids]``."""
        numbers = np.searchsorted(self.live, self.find(formula_ids))
        runs = np.searchsorted(self.expressions.owned, numbers, side="right") - 1
        expressions: Rows = self.expressions.numbers[runs]
        return expressions

    def texts(self, name: str, numbers: Rows) -> list[str]:
        texts = np.empty(len(numbers), dtype=object)
        for part, places, rows in self.by_part(self.live[numbers]):
            texts[places] = read_texts(part, name, rows)
        return list(texts)


S = TypeVar("S", bound=ExpressionSnapshot[Any])


class ExpressionIndex(BuiltOnce, Generic[S]):
    """An index of the formulas of posts, stored once for each expression."""

    KEEPS_FIRST = True
    HOLDS = "formula"
    PAYLOAD: ClassVar[type[Any]]
    SNAPSHOT: ClassVar[type[Any]] = ExpressionSnapshot

    indexer = method(ExpressionIndexer)

    def packing(self) -> Packing:
        """Describe the stored data of an expression."""
        raise NotImplementedError

    def snapshot(self) -> S:
        """Return the current state; an index of several parts is combined in memory, until it is compacted."""
        return cast("S", super().snapshot())

    def open_snapshot(self) -> Snapshot:
        opened: Snapshot = self.SNAPSHOT(self.path, self.KIND, self.PAYLOAD)
        return opened

    def more_counts(self) -> list[str]:
        return [counted(sum(len(part["keys"]) for part in self.snapshot().parts), "expression")]

    def get_corpus_iter(self) -> Iterator[dict[str, str]]:
        """Yield ``docno`` (the formula's id), ``post_id`` and ``visual_id`` of each formula."""
        for part in self.snapshot().parts:
            rows = np.flatnonzero(part.alive)
            for some in np.split(rows, range(_AT_ONCE, len(rows), _AT_ONCE)):
                texts = part.ids.texts(some), read_texts(part, "post_ids", some), read_texts(part, "visual_ids", some)
                for docno, post_id, visual_id in zip(*texts, strict=True):
                    yield {"docno": docno, "post_id": post_id, "visual_id": visual_id}


def query_trees(queries: pd.DataFrame, store: FormulaStore | None) -> list[FormulaPair]:
    """Read the formula of each query: official trees where the store has its ``formula_id``."""
    trees = formula_trees([query_formula(row) for row in queries.to_dict("records")], store)
    unread = [qid for qid, pair in zip(queries["qid"], trees, strict=True) if pair.slt is None and pair.opt is None]
    warn_of_queries(unread, "queries that are not formulas", "Give each a formula in LaTeX, in `latex` or `query`.")
    return trees


def asked_formula(query: QueryRow, docno: str | None, system: str) -> tuple[Asked, PostFormula]:
    """Read the query and formula that an explanation of a formula's score is about."""
    asked = read_asked(query, docno, system)
    if all(is_missing(asked.row.get(name)) for name in ("latex", "query")):
        raise AskedError(system, "the row has no formula", "Give it `latex`, or `query`.")
    return asked, query_formula(asked.row)


def query_formula(query: Mapping[Any, Any]) -> PostFormula:
    """Read the formula of a query, from ``latex`` or ``query``; blank if it is not a formula."""
    check_topic(query)
    text, formula_id = (
        next((str(query[name]) for name in names if not is_missing(query.get(name))), "")
        for names in (("latex", "query"), ("formula_id",))
    )
    return PostFormula(strip_delimiters(text) if is_formula(text) else "", formula_id)


class ScoreTerm(NamedTuple):
    """One term of the score of a formula, and the part of the query's formula that it is about, if it is not all."""

    name: str
    contribution: float
    similarity: float = nan
    weight: float = nan
    text: str = ""


class FormulaScoring:
    """Explains the score of a formula by its terms."""

    label: ClassVar[str]
    store: FormulaStore | None

    def snapshot(self) -> Any:
        """Return the current state of the index."""
        raise NotImplementedError

    def terms(self, snapshot: Any, pair: FormulaPair, docno: str) -> Iterable[ScoreTerm]:
        """List the terms of the score of a formula of the index for the trees of a query."""
        raise NotImplementedError

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the score of a formula.

        Args:
            query: a row with ``latex`` or ``query``, or a frame of one query. With the ``graph`` of the post the parts
                name the formula that is found.
            docno: the id of a formula; by default the ``docno`` of the row.

        Raises:
            AskedError: the row has no query, no formula is named, or the formula has no score for this query.
            UnknownIdError: the index does not hold the formula.
        """
        asked, formula = asked_formula(query, docno, self.label)
        terms = self.terms(self.snapshot(), formula_trees([formula], self.store)[0], asked.docno)
        row, latex = asked.formula()
        parts = [
            Part(self.label, name, text or formula.latex, "formula", latex, similarity, weight, contribution, 0, row)
            for name, contribution, similarity, weight, text in terms
        ]
        return asked.explained(parts)


Q = TypeVar("Q")
"""A query in the form of a system: its trees, or data made from them."""


class FormulaRetriever(FormulaScoring, SparseRetriever):
    """Ranks the formulas of an index of expressions for the formula of each query."""

    inputs = (("latex",), ("query",))
    outputs: ClassVar[tuple[str, ...]] = ("docno", "post_id", "visual_id", "score", "rank")
    above: ClassVar[float] = 0.0
    """Formulas whose score is not above it are left out."""
    num_results: int
    verbose: bool

    def scores(self, snapshot: Any, pair: FormulaPair) -> npt.NDArray[np.float64]:
        """Score all expressions of the index for the trees of one formula: float64 ``[x]``."""
        raise NotImplementedError

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row; ``docno`` is the formula's id."""
        snapshot = self.snapshot()
        return self.rank_each(queries, query_trees(queries, self.store), snapshot, partial(self.best, snapshot))

    def best(self, snapshot: Any, pair: FormulaPair) -> Found:
        """Find the best formulas of ``snapshot`` for the trees ``pair`` of a formula."""
        scores = self.scores(snapshot, pair)
        formulas: Found = snapshot.expressions.best(scores, self.num_results, snapshot.formula_ids, above=self.above)
        return formulas

    def rank_each(
        self, queries: pd.DataFrame, read: Sequence[Q], snapshot: ExpressionSnapshot[Any], find: Callable[[Q], Found]
    ) -> pd.DataFrame:
        """Rank for each query, as read.

        Args:
            queries: a frame of at least one query, each in one row.
            read: the same queries in the form of the system, such as pairs of trees.
            snapshot: of the index.
            find: finds the best expressions for one of them.
        """
        rankings = [find(query) for query in progress(read, self.label, "queries", verbose=self.verbose)]
        names = {"docno": snapshot.formula_ids, "post_id": snapshot.post_ids, "visual_id": snapshot.visual_ids}
        return ranking_frame(queries, rankings, **names)


class FormulaReranker(Leaf, Transformer):
    """Computes columns for each formula of a ranking, from it and the formula of its query."""

    added: ClassVar[tuple[str, ...]] = ("score", "rank")
    store: FormulaStore | None
    verbose: bool

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add columns to a ranking of formulas.

        Args:
            inp: ``qid``, ``docno`` (ids of formulas), and ``latex`` or ``query`` that is one formula.

        Returns:
            The same rows; where they have a new ``score``, ordered by it, with ``rank``.

        Raises:
            UnknownIdError: the index does not hold some of the formulas; the error names them.
        """
        with pt.validate.any(inp, context=self) as validation:
            validation.result_frame(extra_columns=["latex"])
            validation.result_frame(extra_columns=["query"])
        return empty_output(inp, self.added) if inp.empty else self.rerank(inp)

    def rerank(self, ranking: pd.DataFrame) -> pd.DataFrame:
        """Add columns to a ranking that is not empty."""
        raise NotImplementedError

    def by_query(
        self, ranking: pd.DataFrame, read: Callable[[pd.DataFrame, FormulaStore | None], Sequence[Q]]
    ) -> Iterator[tuple[Rows, Q]]:
        """Yield the rows of each query of a ``ranking``, and the query as ``read`` converts it for the system."""
        codes, _ = pd.factorize(ranking["qid"])
        asked = read(ranking.drop_duplicates("qid"), self.store)
        for number, each in enumerate(progress(asked, self.label, "queries", verbose=self.verbose)):
            yield np.flatnonzero(codes == number), each
