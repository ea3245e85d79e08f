"""The learned ranking of Task 2: what Tangent-S finds, ordered by a learned sum of features."""

from __future__ import annotations

from collections.abc import Sequence

import pyterrier as pt

from pyterrier_mathamr.experiments.measuring import Way
from pyterrier_mathamr.experiments.search import FORMULA_DEPTH, distinct
from pyterrier_mathamr.experiments.tasks.formulas.parts import FormulaParts, Weights, examples
from pyterrier_mathamr.systems import FormulaFeatures, PairwiseRanker, TangentS

LTR_C = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""C of the pairwise ranker, chosen by five folds of the topics it is fitted on."""


def aligned(parts: FormulaParts) -> TangentS:
    """Align both trees of candidates by pairs of symbols."""
    shared = parts.shared
    return TangentS(shared.tangent, shared.formula_trees, num_results=FORMULA_DEPTH, complete=True, store=parts.trees)


def fit_ltr(years: Sequence[FormulaParts]) -> Weights:
    """Learn the weight of each feature from the order of pairs."""
    names = _features(years[0]).names
    ranker = PairwiseRanker(LTR_C, names=names).fit_judged(*examples(years, _candidates))
    return dict(zip(names, ranker.weights or (), strict=True))


def ltr(parts: FormulaParts) -> Way:
    """Rank what Tangent-S finds by the learned sum of features."""
    names = _features(parts).names
    ranker = PairwiseRanker(names=names, weights=[parts.weights[name] for name in names])
    return Way(distinct(_candidates(parts) >> pt.ltr.apply_learned_model(ranker, form="ltr")))


def _features(parts: FormulaParts) -> FormulaFeatures:
    return FormulaFeatures(parts.shared.formula_trees, store=parts.trees)


def _candidates(parts: FormulaParts) -> pt.Transformer:
    return aligned(parts) >> _features(parts)
