"""An index of expressions on disk, its opened state for readers, and the common part of every search in it.

::

    queries ──▶ both trees of each ──(a system: scores of all expressions)──▶ the best formulas, by name
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from math import nan
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import counted, progress
from pyterrier_mathamr._common.frames import empty_output, is_missing, ranking_frame
from pyterrier_mathamr._common.parameters import method
from pyterrier_mathamr._common.transformers import Leaf, Transformer
from pyterrier_mathamr.explain import Asked, AskedError, Explanation, Part, QueryRow, read_asked
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.posts import PostFormula, is_formula, strip_delimiters
from pyterrier_mathamr.posts.reading import check_topic
from pyterrier_mathamr.sparse.index import BuiltOnce, Found, Remembered, SparseRetriever, warn_of_queries
from pyterrier_mathamr.sparse.texts import read_texts
from pyterrier_mathamr.store import Kind, Rows, Snapshot

from .indexer import ExpressionIndexer, Packing, formula_trees
from .parts import KEY_BYTES, Expressions, P, digests, expression_key, keys_of

_AT_ONCE = 4096


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
