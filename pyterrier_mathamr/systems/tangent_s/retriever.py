"""The whole of Tangent-S: candidates by symbol pairs, alignment of their trees, a regression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.parameters import COUNT, FLAG, Rule
from pyterrier_mathamr._common.transformers import Leaf
from pyterrier_mathamr.explain import AskedError, Explanation, Part, QueryRow
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.formula.packed_trees import Packed
from pyterrier_mathamr.sparse.expressions import FormulaRetriever, asked_formula, formula_trees, query_trees
from pyterrier_mathamr.sparse.ranking import best_first
from pyterrier_mathamr.sparse.tangent import TangentIndex, TangentSnapshot, dice, pair_terms
from pyterrier_mathamr.store import Rows
from pyterrier_mathamr.systems.errors import NothingJudgedError
from pyterrier_mathamr.systems.formula_trees import FormulaTrees, TreesSnapshot

from .alignment import align
from .counts import Labels

TANGENT_S_WEIGHTS = (0.2930, 0.0861, -0.1694, 1.8469, 0.9657, -0.0153, -0.3301)
"""A constant, then MSS, precision and exact recall of the layout trees, then of the operator trees; fitted by the
authors on NTCIR-12."""
_PARTS = (
    "constant",
    *(f"{tree} tree, {name}" for tree in ("layout", "operator") for name in ("MSS", "precision", "exact recall")),
)


class TangentS(Leaf, FormulaRetriever, pt.Estimator):  # type: ignore[misc]
    r"""Finds formulas by their symbol pairs, and ranks them by how well whole trees align.

    Zanibbi, Davila, Kane and Tompa, "Multi-stage math formula search: using appearance-based similarity metrics at
    scale", SIGIR 2016; Davila and Zanibbi, "Layout and semantics: combining representations for mathematical formula
    search", SIGIR 2017. The best expressions by layout trees and, apart, by operator trees are aligned with the query's
    tree of that kind; a linear regression makes one score of both alignments' three. In the ARQMath runs an expression
    of one list only has zeros for the other kind of tree.

    Args:
        tangent_index: finds the candidates; the authors' has ``PairOptions(window=4, ends="small")``.
        formula_trees: the trees of the same formulas.
        num_results: the number of formulas for each query.
        candidates: expressions of each of the two lists.
        weights: seven numbers; see :data:`TANGENT_S_WEIGHTS`. :meth:`fit` finds others.
        complete: align both kinds of trees of every candidate, also of one that is in one list only.
        store: official trees of the queries' formulas, looked up by ``formula_id`` where queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        pipeline = TangentS(TangentIndex("formulas.tangent"), FormulaTrees("formulas.trees"))
    """

    label, help_url = "Tangent-S", "https://doi.org/10.1145/3077136.3080748"
    checks: ClassVar[Mapping[str, Rule]] = {
        **FormulaRetriever.checks,
        "candidates": COUNT,
        "complete": FLAG,
        "weights": Rule("seven numbers", lambda weights: len(weights) == 7 and bool(np.isfinite(weights).all())),
    }

    def __init__(
        self,
        tangent_index: TangentIndex,
        formula_trees: FormulaTrees,
        *,
        num_results: int = 1000,
        candidates: int = 1000,
        weights: Sequence[float] = TANGENT_S_WEIGHTS,
        complete: bool = False,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.tangent_index, self.formula_trees = tangent_index, formula_trees
        self.num_results, self.candidates, self.weights = num_results, candidates, tuple(weights)
        self.complete, self.store, self.verbose = complete, store, verbose

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row; ``docno`` is the formula's id.

        Raises:
            UnknownIdError: a candidate has no trees in ``formula_trees``; it names some.
        """
        snapshot = self.tangent_index.snapshot()

        def score(pair: FormulaPair) -> npt.NDArray[np.float64]:
            numbers, features = self.features(snapshot, pair)
            scores = np.full(len(snapshot.expressions.payload.slt.lengths), -np.inf)
            scores[numbers] = self.weights[0] + features @ np.array(self.weights[1:])
            return scores

        return self.rank_scores(queries, snapshot, score, above=-np.inf)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what each number of the alignment of both trees contributes to the score of a candidate.

        Args:
            query: a row with ``latex`` or ``query``, or a frame of one query. With the ``graph`` of the post the parts
                name the formula that is found.
            docno: the id of a formula; by default the ``docno`` of the row.

        Raises:
            AskedError: the row has no query, no formula is named, or the formula is no candidate of the query.
            UnknownIdError: the index does not hold the formula.
        """
        (asked, formula), snapshot = asked_formula(query, docno, self.label), self.tangent_index.snapshot()
        expression = snapshot.expressions_of([asked.docno])[0]
        numbers, features = self.features(snapshot, formula_trees([formula], self.store)[0])
        place = np.flatnonzero(numbers == expression)
        if not len(place):
            why = f"{asked.docno} is not among the candidates, which alone have a score"
            raise AskedError(self.label, why, "Ask for a formula that the query finds, or give more candidates=.")
        row, latex = asked.formula()
        values = zip(_PARTS, (1.0, *features[place[0]].tolist()), self.weights, strict=True)
        parts = [
            Part(self.label, name, formula.latex, "formula", latex, value, weight, weight * value, 0, row)
            for name, value, weight in values
        ]
        return asked.explained(parts)

    def features(self, snapshot: TangentSnapshot, pair: FormulaPair) -> tuple[Rows, npt.NDArray[np.float64]]:
        """Find the candidates of a formula, and align them.

        Args:
            snapshot: the index.
            pair: the formula's trees.

        Returns:
            Expressions of the index, int64 ``[c]``, and for each MSS, precision and exact recall of its layout tree and
            of its operator tree, float64 ``[c, 6]``.
        """
        lists = [self._best_expressions(snapshot, pair, kind) for kind in get_args(Packed)]
        numbers = np.union1d(*lists)
        trees = self.formula_trees.snapshot()
        rows = trees.expressions_of(snapshot.formula_ids(snapshot.expressions.firsts[numbers]))
        found = np.zeros((len(numbers), 6))
        for place, (kind, some) in enumerate(zip(get_args(Packed), lists, strict=True)):
            query = getattr(pair, kind)
            if query is not None:
                chosen = np.arange(len(numbers)) if self.complete else np.searchsorted(numbers, some)
                columns = slice(3 * place, 3 * place + 3)
                packed = getattr(trees.expressions.payload, kind)
                labels = self._labels(trees, kind)
                found[chosen, columns] = align(query, packed, rows[chosen], labels)
        return numbers, found

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame,
        qrels_tr: pd.DataFrame,
        topics_or_res_va: pd.DataFrame | None = None,
        qrels_va: pd.DataFrame | None = None,
    ) -> None:
        """Find the weights by least squares on the grades of judged candidates.

        Args:
            topics_or_res_tr: queries, as :meth:`transform` takes them.
            qrels_tr: ``qid``, ``docno`` (a formula's id or its visual id), ``label``.
            topics_or_res_va: not used.
            qrels_va: not used.

        Raises:
            NothingJudgedError: no candidate is judged.
        """
        snapshot, rows, grades = self.tangent_index.snapshot(), [np.zeros((0, 7))], list[float]()
        queries = topics_or_res_tr.drop_duplicates("qid")
        for qid, pair in zip(queries["qid"], query_trees(queries, self.store), strict=True):
            judged = qrels_tr[qrels_tr["qid"] == qid].drop_duplicates("docno").set_index("docno")["label"]
            numbers, features = self.features(snapshot, pair)
            owned = snapshot.expressions.formulas_of(numbers)
            for names in (snapshot.formula_ids, snapshot.visual_ids):
                row_of = {name: row for row, some in enumerate(owned) for name in names(some)}
                known = [name for name in row_of if name in judged.index]
                rows.append(np.column_stack([np.ones(len(known)), features[[row_of[name] for name in known]]]))
                grades += judged[known].tolist()
        if not grades:
            raise NothingJudgedError(len(queries))
        self.weights = tuple(np.linalg.lstsq(np.concatenate(rows), np.array(grades), rcond=None)[0].tolist())

    def _best_expressions(self, snapshot: TangentSnapshot, pair: FormulaPair, kind: Packed) -> Rows:
        """Return the best expressions by one kind of tree, ascending."""
        terms = Counter(pair_terms(getattr(pair, kind), snapshot.pairs))
        if not terms:
            return np.zeros(0, dtype=np.int64)
        scores = dice(getattr(snapshot.expressions.payload, kind), terms)
        some, firsts = np.flatnonzero(scores > 0), snapshot.expressions.firsts
        best, _ = best_first(some, scores[some], self.candidates, lambda found: snapshot.formula_ids(firsts[found]))
        return np.sort(best)

    def _labels(self, trees: TreesSnapshot, kind: Packed) -> Labels:
        """Read what the alignment asks of labels, once for all queries."""
        name = f"Tangent-S: {kind} labels"
        if name not in trees.caches:
            trees.caches[name] = Labels(getattr(trees.expressions.payload, kind).names)
        labels: Labels = trees.caches[name]
        return labels
