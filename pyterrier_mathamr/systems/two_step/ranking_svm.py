"""The ranking SVM of the two-step search: SVM-rank's loss, solved by scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning, require
from pyterrier_mathamr._common.listwise import NothingToFitError
from pyterrier_mathamr._common.parameters import Rule, between
from pyterrier_mathamr.systems.formula_ltr.pairwise import Graded
from pyterrier_mathamr.systems.formula_ltr.ranker import LinearRanker

_Floats = npt.NDArray[np.float64]
_POSITIVE = Rule("a number above 0", lambda value: between(0).holds(value) and value > 0)
_ITERATIONS = 100_000


class RankingSVM(LinearRanker):
    r"""Learns to order pairs of candidates: SVM-rank with the hinge loss, as a learner of ``pt.ltr``.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 5.3.1; Joachims,
    "Training linear SVMs in linear time", KDD 2006. The weights minimise ½ w · w + (C / n) · Σ max(0, 1 - w · (x_i -
    x_j)) over all pairs of a query's candidates of which i has the higher grade; n is the number of queries, and there
    is no intercept. It is solved on the differences and their mirror images with C / (2 n), since each mirror image
    doubles a pair's loss.

    The dissertation prints neither C for this task (.01 is one of the two values that it has for formulas) nor how C
    is scaled; here it is scaled as in SVM-rank. Features are not normalised, as there.
    :class:`PairwiseRanker` minimises squared losses, and needs no extra.

    Args:
        C: the weight of the losses.
        tolerance: of the solver, relative.
        names: of the features, for explanations; a ranker with names takes as many features only.
        weights: of the features; ``None`` until :meth:`fit` finds them.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        svm = RankingSVM(C=.01, names=("QQSim", "QASim"))
        svm.fit([(.04, .9), (.05, .4), (.03, .1)], [3, 1, 0], group=[3])
        pipeline = pt.ltr.apply_learned_model(svm, form="ltr")
    """

    checks: ClassVar[Mapping[str, Rule]] = {**LinearRanker.checks, "C": _POSITIVE, "tolerance": _POSITIVE}

    def __init__(
        self,
        C: float = 0.01,  # noqa: N803  (as it is printed, and as scikit-learn has it)
        tolerance: float = 1e-3,
        *,
        names: Sequence[str] | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        self.C, self.tolerance = C, tolerance
        self._set(names, weights)

    def fit_ranking(self, ranking: pd.DataFrame, qrels: pd.DataFrame, *, judged_only: bool = True) -> Self:
        """Find the weights from a ranking and judgments.

        PyTerrier's ``pipeline.fit`` gives the grade 0 to whatever is not judged.

        Args:
            ranking: ``qid``, ``docno``, ``features``.
            qrels: ``qid``, ``docno``, ``label``.
            judged_only: leave out what is not judged; otherwise its grade is 0.

        Raises:
            NothingJudgedError: no row is judged.
            NothingToFitError: no query has candidates of different grades.
        """
        if judged_only:
            return self.fit_judged(ranking, qrels)
        grades = qrels.drop_duplicates(["qid", "docno"])[["qid", "docno", "label"]]
        rows = ranking[["qid", "docno", "features"]].merge(grades, on=["qid", "docno"], how="left")
        rows = rows.sort_values("qid", kind="stable")
        sizes = rows.groupby("qid", sort=False).size().to_numpy()
        return self.fit(np.stack(rows["features"].tolist()), rows["label"].fillna(0), group=sizes)

    def find(self, groups: Sequence[Graded]) -> _Floats:
        """Minimise the loss of the pairs of the groups.

        Raises:
            ConfigError: a feature is not finite.
            MissingExtraError: scikit-learn is not installed.
            NothingToFitError: there is no pair.
        """
        pairs = np.concatenate([_differences(features, grades) for features, grades in groups])
        if not len(pairs):
            raise NothingToFitError(len(groups))
        if not np.isfinite(pairs).all():
            raise ConfigError("features", "NaN or infinite", "finite numbers")
        svm: Any = require("sklearn.svm", "answers")
        cost = self.C / (2 * len(groups))
        solver = svm.LinearSVC(
            loss="hinge", C=cost, fit_intercept=False, tol=self.tolerance, max_iter=_ITERATIONS, random_state=0
        )
        sides = np.repeat([1, -1], len(pairs))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", require("sklearn.exceptions", "answers").ConvergenceWarning)
            solver.fit(np.concatenate([pairs, -pairs]), sides)
        if solver.n_iter_ >= _ITERATIONS:
            text = f"the ranking SVM stopped after {_ITERATIONS:,} steps; scale the features, or give a smaller C"
            warnings.warn(MathAMRWarning(text), stacklevel=2)
        weights: _Floats = solver.coef_[0].astype(np.float64)
        return weights


def _differences(features: _Floats, grades: _Floats) -> _Floats:
    """Subtract the features of each candidate from those of each with a higher grade: float64 ``[pairs, f]``."""
    higher, lower = np.nonzero(grades[:, None] > grades)
    return features[higher] - features[lower]
