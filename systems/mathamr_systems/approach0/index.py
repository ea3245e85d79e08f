"""An index of Approach Zero on disk, searching it, scoring given formulas with it, and why a formula has its score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.frames import ordered_by_score
from pyterrier_mathamr._common.parameters import FRACTION, Rule, method
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.sparse.expressions import (
    CollectingBuilder,
    ExpressionIndex,
    ExpressionSnapshot,
    FormulaReranker,
    FormulaRetriever,
    FormulaScoring,
    Packing,
    ScoreTerm,
    query_trees,
)
from pyterrier_mathamr.sparse.index import Found, SparseIndex, warn_of_queries
from pyterrier_mathamr.store import Rows

from .path_lists import APPROACH0, PathLists, PathQuery, indexed_paths, nbytes, path_query
from .search import Constants, PathSearch, common_paths, score_expressions
from .tree import FormulaPaths, canonical_tree, formula_paths, path_names

_CONSTANTS: Mapping[str, Rule] = {"eta": FRACTION, "b1": FRACTION, "b2": FRACTION}
_PAPER = "https://doi.org/10.1007/978-3-030-45439-5_47"


def asked_paths(queries: pd.DataFrame, store: FormulaStore | None) -> list[FormulaPaths]:
    """List the paths of the formula of each query; without an operator tree the list is empty."""
    pairs = query_trees(queries, store)
    without = [qid for qid, pair in zip(queries["qid"], pairs, strict=True) if pair.slt is not None and not pair.opt]
    warn_of_queries(without, "queries without an operator tree", "Search for them with TangentIndex.")
    return [tree_paths(pair) for pair in pairs]


def tree_paths(pair: FormulaPair) -> FormulaPaths:
    """List the paths of a formula; without an operator tree the list is empty."""
    return FormulaPaths(0, [], {}) if pair.opt is None else formula_paths(canonical_tree(pair.opt))


class _Scoring(FormulaScoring):
    """The common part of retriever and scorer: the constants of the score, and its explanation."""

    label, help_url = "Approach Zero", _PAPER
    approach_zero_index: ApproachZeroIndex
    eta: float
    b1: float
    b2: float

    @property
    def _constants(self) -> Constants:
        return Constants(self.eta, self.b1, self.b2)

    def snapshot(self) -> ApproachZeroSnapshot:
        return self.approach_zero_index.snapshot()

    def terms(self, snapshot: ApproachZeroSnapshot, pair: FormulaPair, docno: str) -> Iterator[ScoreTerm]:
        """Compute the contribution of each path that a formula shares with the query to its score."""
        rows, index = snapshot.expressions_of([docno]), snapshot.expressions.payload
        sought = path_query(tree_paths(pair), index)
        scored = score_expressions(sought, index.of, rows, self._constants)
        if pair.opt is not None and scored.ends[0] >= 0:
            factor = float(scored.symbols[0] * self._constants.penalties(index.of.leaves[rows])[0])
            gained = common_paths(sought, index.of, int(scored.roots[0]), int(scored.ends[0]))
            names = path_names(canonical_tree(pair.opt), gained)
            for key, weight in gained.items():
                yield ScoreTerm(f"path {names[key]}", weight * factor)


class ApproachZeroRetriever(_Scoring, FormulaRetriever):
    r"""Ranks formulas by the greatest common sub-structure of operator trees, as Approach Zero.

    The score is w* · S_sym · P (equation 5 of the paper): the summed PathIDF of the paths that two sub-trees share,
    for the best two (equation 2); how well their symbols agree (equation 3); a length penalty (equation 4).
    Formulas with equal scores are in order of their ids. A query is ``latex``, or ``query`` that is one formula in
    LaTeX, with or without dollars. Other queries find nothing, with a warning.

    The search is exact: lists of paths are skipped only if they cannot change the results. Two details are not in the
    paper: if several pairs of sub-trees are equally good, the best symbol score counts; symbols that occur equally
    often are in the order of the formula.

    Args:
        approach_zero_index: the index.
        num_results: the number of formulas for each query; formulas without a common path are left out.
        eta: how much long formulas are penalized, 0 to 1.
        b1: points of two leaves with the same symbol below other operators, 0 to 1.
        b2: points of two leaves with different symbols, 0 to 1.
        store: official trees of the queries' formulas, looked up by ``formula_id`` if queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        pipeline = ApproachZeroIndex("formulas.a0").retriever(num_results=100)
    """

    checks: ClassVar[Mapping[str, Rule]] = {**FormulaRetriever.checks, **_CONSTANTS}

    def __init__(
        self,
        approach_zero_index: ApproachZeroIndex,
        num_results: int = 1000,
        *,
        eta: float = 0.3,
        b1: float = 0.94,
        b2: float = 0.9,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.approach_zero_index, self.num_results = approach_zero_index, num_results
        self.eta, self.b1, self.b2, self.store, self.verbose = eta, b1, b2, store, verbose

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row; ``docno`` is the formula's id."""
        snapshot = self.snapshot()

        def find(paths: FormulaPaths) -> Found:
            return self.find(snapshot, path_query(paths, snapshot.expressions.payload))

        return self.rank_each(queries, asked_paths(queries, self.store), snapshot, find)

    def find(self, snapshot: ApproachZeroSnapshot, query: PathQuery) -> Found:
        """Find the formulas of an index with the best scores for one query."""
        index, constants = snapshot.expressions.payload, self._constants
        penalties = constants.penalties(index.of.leaves)
        search = PathSearch(query, index, snapshot.sizes, penalties, constants, self.num_results)
        return snapshot.expressions.best(search.run(), self.num_results, snapshot.formula_ids)


class ApproachZeroScorer(_Scoring, FormulaReranker):
    """Re-ranks the formulas of any ranking by the score of Approach Zero.

    The rows come back by query (in order of appearance), descending score, ascending docno, with all their columns. A
    formula without a common path scores 0.

    Example::

        TangentIndex("formulas.tangent").retriever() >> ApproachZeroIndex("formulas.a0").scorer()

    Args:
        approach_zero_index: the index.
        eta: how much long formulas are penalized, 0 to 1.
        b1: points of two leaves with the same symbol below other operators, 0 to 1.
        b2: points of two leaves with different symbols, 0 to 1.
        store: official trees of the queries' formulas, looked up by ``formula_id`` if queries have it.
        verbose: show a progress bar.
    """

    checks: ClassVar[Mapping[str, Rule]] = _CONSTANTS

    def __init__(
        self,
        approach_zero_index: ApproachZeroIndex,
        *,
        eta: float = 0.3,
        b1: float = 0.94,
        b2: float = 0.9,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.approach_zero_index, self.eta, self.b1, self.b2 = approach_zero_index, eta, b1, b2
        self.store, self.verbose = store, verbose

    def rerank(self, ranking: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking of formulas."""
        snapshot, constants = self.snapshot(), self._constants
        index, rows = snapshot.expressions.payload, snapshot.expressions_of(ranking["docno"].astype(str).tolist())
        penalties = constants.penalties(index.of.leaves)
        scores = np.zeros(len(ranking))
        for places, paths in self.by_query(ranking, asked_paths):
            found = score_expressions(path_query(paths, index), index.of, rows[places], constants)
            scores[places] = found.structure * found.symbols * penalties[rows[places]]
        return ordered_by_score(ranking, scores)


class ApproachZeroSnapshot(ExpressionSnapshot[PathLists]):
    """An index of Approach Zero as it was when it was opened."""

    @cached_property
    def sizes(self) -> Rows:
        """How many formulas each expression owns: int64 ``[x]``."""
        of = self.expressions
        found = np.zeros(len(of.payload.of.leaves), dtype=np.int64)
        np.add.at(found, of.numbers, np.diff(of.owned))
        return found


class ApproachZeroIndex(ExpressionIndex[ApproachZeroSnapshot], SparseIndex):
    r"""An inverted index over leaf-root paths of operator trees, after the formula search of Approach Zero.

    Zhong, Xie and Lin, "Applying structural and dense semantic matching for the ARQMath Lab 2022", CLEF 2022; Zhong,
    Rohatgi, Wu, Giles and Zanibbi, "Accelerating substructure similarity search for formula retrieval", ECIR 2020.
    Formulas are ranked by their greatest common sub-structure with the query, how well its symbols agree, and their
    length. The text around formulas is not used. Called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.

    Example::

        formulas = ApproachZeroIndex("formulas.a0")
        formulas.index(dataset.get_corpus_iter())
        formulas.search(r"\int_0^\infty e^{-x^2}\,dx")
    """

    KIND, PAYLOAD, SNAPSHOT = APPROACH0, PathLists, ApproachZeroSnapshot

    schematic: ClassVar[dict[str, str]] = {"label": "Approach Zero Index", "help_url": _PAPER}

    @staticmethod
    def example() -> ApproachZeroIndex:
        """Return an index that is not built."""
        return ApproachZeroIndex("index.a0")

    retriever = method(ApproachZeroRetriever)
    scorer = method(ApproachZeroScorer)

    def packing(self) -> Packing:
        """Describe the stored data of an expression: the paths of its operator tree."""
        return Packing(partial(CollectingBuilder, PathLists.of_paths, nbytes), indexed_paths)
