"""Features of the formulas of a ranking, for any learner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import empty_output, with_objects
from pyterrier_mathamr._common.parameters import COUNT, Rule, one_of
from pyterrier_mathamr._common.transformers import Leaf, Transformer
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.sparse.expressions import query_trees
from pyterrier_mathamr.systems.formula_trees import FormulaTrees

from .comparisons import COSINES, NAMES, Comparison, Costs, Matching

_Floats = npt.NDArray[np.float64]
_OF_COSINES = NAMES.index("variables")  # cosines come before the last group


class FormulaCosines(Protocol):
    """Vectors of formulas, such as a :class:`~pyterrier_mathamr.systems.TangentCFT` index."""

    def cosines(self, pair: FormulaPair, formulas: Sequence[str], /) -> _Floats:
        """Compare a formula with some others, by layout, operator, and both type trees: float64 ``[formulas, 4]``."""


class FormulaFeatures(Leaf, Transformer):
    r"""Computes how similar formulas are to the query's formula, in up to 29 ways, as a column ``features``.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 4.3.3; Mansouri,
    Zanibbi and Oard, "Learning to rank for mathematical formula retrieval", SIGIR 2021. Of layout trees, operator
    trees, and both with types in place of symbols: common symbol pairs (4 features), common symbols (4), edit distance
    as 1 - distance / nodes of both (4), the same with weighted costs (4), and cosines of Tangent-CFT vectors (4, where
    there are vectors). Of layout and operator trees: MSS of Tangent-S' alignment (2). And seven more: the shares of
    common variables, numbers and operators, and the differences of sizes, of the operator trees' depths and of how far
    the layout trees go from their baseline.

    Each feature is scaled to 0 … 1 among the candidates of a query, and 0 for all where it is the same for all. A
    candidate without the tree that a feature is about has 0.

    Args:
        formula_trees: the trees of the formulas that are ranked.
        cft: vectors of the same formulas, such as a Tangent-CFT index; without them there are 25 features.
        tuples: ``"dice"``, the harmonic mean of recall and precision with repetitions, as Tangent has it; ``"as-run"``,
            what the authors' program computes: 2PR / (P + R + 1), without repetitions, where a symbol pair is another
            at another place in the formula.
        nodes: ``"dice"``, the same of symbols; ``"as-run"``, exact recall and (of types) precision of the alignment.
        costs: of the weighted edit distance: ``"printed"``, or ``"as-run"`` in the authors' program.
        max_nodes: trees of more nodes are compared by their labels alone in edit distances.
        store: official trees of the queries' formulas, looked up by ``formula_id`` where queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        tangent, trees = TangentIndex("formulas.tangent"), FormulaTrees("formulas.trees")
        features = FormulaFeatures(trees)
        learner = PairwiseRanker(names=features.names)
        pipeline = TangentS(tangent, trees) >> features >> pt.ltr.apply_learned_model(learner, form="ltr")
    """

    label, help_url = "formula features", "https://doi.org/10.1145/3404835.3462956"
    checks: ClassVar[Mapping[str, Rule]] = {
        "tuples": one_of(*get_args(Matching)),
        "nodes": one_of(*get_args(Matching)),
        "costs": one_of(*get_args(Costs)),
        "max_nodes": COUNT,
    }

    def __init__(
        self,
        formula_trees: FormulaTrees,
        cft: FormulaCosines | None = None,
        *,
        tuples: Matching = "dice",
        nodes: Matching = "dice",
        costs: Costs = "printed",
        max_nodes: int = 400,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.formula_trees, self.cft, self.tuples, self.nodes = formula_trees, cft, tuples, nodes
        self.costs, self.max_nodes, self.store, self.verbose = costs, max_nodes, store, verbose

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature, in the order of the column."""
        return NAMES if self.cft is None else (*NAMES[:_OF_COSINES], *COSINES, *NAMES[_OF_COSINES:])

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``features`` to a ranking of formulas.

        Args:
            inp: ``qid``, ``docno`` (ids of formulas), and ``latex`` or ``query`` that is one formula.

        Returns:
            The same rows with ``features``, float64 ``[f]`` in the order of :attr:`names`.

        Raises:
            UnknownIdError: ``formula_trees`` or ``cft`` does not hold some of the formulas; it names them.
        """
        with pt.validate.any(inp, context=self) as validation:
            validation.result_frame(extra_columns=["latex"])
            validation.result_frame(extra_columns=["query"])
        if inp.empty:
            return empty_output(inp, ["features"])
        docnos = inp["docno"].astype(str).tolist()
        self.formula_trees.snapshot().expressions_of(docnos)  # an unknown id is told before anything is computed
        codes, _ = pd.factorize(inp["qid"])
        pairs = query_trees(inp.drop_duplicates("qid"), self.store)
        features = np.zeros((len(inp), len(self.names)))
        for number, pair in enumerate(progress(pairs, self.label, "query", verbose=self.verbose)):
            rows = np.flatnonzero(codes == number)
            features[rows] = scaled(self.values(pair, [docnos[row] for row in rows.tolist()]))
        return with_objects(inp, features=list(features))

    def values(self, pair: FormulaPair, formula_ids: Sequence[str]) -> _Floats:
        """Compare a formula with some formulas, without scaling.

        Args:
            pair: the formula's trees.
            formula_ids: of the formulas.

        Returns:
            float64 ``[formulas, f]`` in the order of :attr:`names`; NaN where one of two trees is missing.

        Raises:
            UnknownIdError: some are not there; it names them.
        """
        snapshot = self.formula_trees.snapshot()
        rows, back = np.unique(snapshot.expressions_of(formula_ids), return_inverse=True)
        trees = snapshot.expressions.payload
        comparison = Comparison(self.tuples, self.nodes, self.costs, self.max_nodes)
        found = comparison.values(pair, trees.slt.take(rows), trees.opt.take(rows))[back]
        if self.cft is None:
            return found
        cosines = self.cft.cosines(pair, formula_ids)
        missing = np.isnan(found[:, [NAMES.index(name) for name in ("SLT MSS", "OPT MSS")]])
        cosines = np.where(np.tile(missing, 2), np.nan, cosines)
        return np.concatenate([found[:, :_OF_COSINES], cosines, found[:, _OF_COSINES:]], axis=1)


def scaled(values: _Floats) -> _Floats:
    """Scale each column to 0 … 1; a column of one value, and what is NaN, becomes 0."""
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)  # NaN only where all are
    found: _Floats = np.nan_to_num((values - low) / np.where(high > low, high - low, np.inf))
    return found
