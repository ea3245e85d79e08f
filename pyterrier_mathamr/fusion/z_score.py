"""The weighted sum of the standard scores of several systems, and its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.listwise import Group, fit_listwise
from pyterrier_mathamr._common.parameters import FRACTION, Rule, between, list_of
from pyterrier_mathamr._common.transformers import Retriever
from pyterrier_mathamr.explain import Explanation, Ranked

from .base import Fusion, aligned, ranked
from .blend import grouped
from .explaining import explain_standard

_WEIGHTS = list_of(between(0))


class StandardFusion(Fusion):
    """A fusion by the standard scores of its parts."""

    def joined(self, rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """Return ``qid``, ``docno`` and ``0``, ``1``, …: the standard score of each system."""
        return standard_scores(rankings)

    def explained_part(self, docno: str, system: str, answer: Ranked, weight: float) -> Explanation:
        """Explain the weighted standard score."""
        scores = answer.ranking["score"].to_numpy(np.float64)
        return explain_standard(docno, system, scores, answer.explanation, weight)


class ZScoreFusion(StandardFusion):
    """Ranks by the weighted sum of the systems' scores, standardised for each query.

    The scores of BM25 and of MaxSim have no common scale; after the subtraction of their mean and the division by
    their standard deviation they have. A document that a system did not find gets that system's lowest score.

    Args:
        systems: each takes queries and returns a ranking.
        weight: of two systems, the weight of the second, 0 to 1; the first has the rest. Of several, a list with the
            weight of each. By default all have the same.
        num_results: the number of documents for each query.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        ZScoreFusion(bm25, encode >> index.colbert(), weight=0.4)
    """

    label = "z-score fusion"
    checks: ClassVar[Mapping[str, Rule]] = {
        **Retriever.checks,
        "weight": Rule(
            "a number between 0 and 1 for two systems, or a list of numbers, 0 or more, one for each system",
            lambda weight: weight is None or FRACTION.holds(weight) or _WEIGHTS.holds(weight),
        ),
    }

    def __init__(
        self, *systems: pt.Transformer, weight: float | Sequence[float] | None = None, num_results: int = 1000
    ) -> None:
        super().__init__(systems, num_results)
        self.weight = weight
        len(self.weights)  # refuses another number of weights

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each system.

        Raises:
            ConfigError: there are not as many as systems.
        """
        count = len(self.systems)
        if self.weight is None:
            return (1 / count,) * count
        given = self.weight
        weights = tuple(given) if isinstance(given, Sequence) else (1 - float(given), float(given))
        if len(weights) != count:
            raise ConfigError("weight", self.weight, f"a list of {count} numbers, one for each system")
        return weights


def fuse_rankings(left: pd.DataFrame, right: pd.DataFrame, weight: float, num_results: int = 1000) -> pd.DataFrame:
    """Merge two rankings by the weighted sum of their standardised scores.

    Args:
        left: ``qid``, ``docno``, ``score``.
        right: the same of the other system.
        weight: 0 to 1; the weight of ``right``, ``left`` has the rest.
        num_results: the number of documents for each query.

    Returns:
        ``qid``, ``docno``, ``score``, ``rank``, best first for each query, equal scores by ``docno``; a document that
        one ranking lacks has that ranking's lowest standardised score of the query, 0 where it has no row.
    """
    return ranked(standard_scores([left, right]), (1 - weight, weight), num_results)


def fit_fusion_weight(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> float:
    """Find the weight of a fusion under which right documents are most likely among all that either system found.

    All questions with a right document in one of the rankings are used, not only those whose first ten change, so a
    system that helps some questions does not get the weight 0 because a coarse measure did not see it.

    Args:
        left: ``qid``, ``docno``, ``score``.
        right: the same of the other system; it should not have been trained on these questions.
        qrels: ``qid``, ``docno``, ``label``; right is what has a label above 0.

    Returns:
        0 to 1, the weight of ``right`` in :class:`ZScoreFusion`; 0 where neither system helps.

    Raises:
        NothingToFitError: no question has both a right and a wrong document.

    Example::

        colbert = encode >> index.colbert()
        pipeline = ZScoreFusion(bm25, colbert, weight=fit_fusion_weight(bm25(topics), colbert(topics), qrels))
    """
    of_left, of_right = fit_listwise(_examples(standard_scores([left, right]), 2, qrels)).tolist()
    return of_right / (of_left + of_right) if of_right else 0.0


def fit_fusion_weights(
    rankings: Sequence[pd.DataFrame], qrels: pd.DataFrame, *, ridge: float = 10.0, judged_only: bool = False
) -> tuple[float, ...]:
    """Find the weights of a fusion of several systems on graded judgments of a few queries.

    For each grade above 0, what has at least this grade should be likely among all that any system found; see
    :func:`fit_fusion_weight`. Similar systems hardly determine single weights, so large ones are penalized: the more,
    the closer each comes to the distance that its system alone puts between right and wrong.

    Args:
        rankings: ``qid``, ``docno``, ``score`` of each system, which should not have been trained on these queries.
        qrels: ``qid``, ``docno``, ``label``.
        ridge: the factor of half the squared length of the weights.
        judged_only: learn from judged documents alone, as nDCG' looks at them alone; else what is not judged is wrong.

    Returns:
        A weight for each system, 0 or more, for :class:`ZScoreFusion`.

    Raises:
        NothingToFitError: no query has both a document of a grade above 0 and another one.
    """
    scores, grades = standard_scores(rankings), sorted(set(qrels.loc[qrels["label"] > 0, "label"]))
    if judged_only:
        scores = scores.merge(qrels[["qid", "docno"]].drop_duplicates(), on=["qid", "docno"])
    least = [qrels[qrels["label"] >= grade] for grade in grades] or [qrels]
    groups = [group for right in least for group in _examples(scores, len(rankings), right)]
    return tuple(fit_listwise(groups, ridge=ridge).tolist())


def _examples(scores: pd.DataFrame, systems: int, qrels: pd.DataFrame) -> list[Group]:
    """Split the standard scores of systems by query, and tell which documents are right."""
    return grouped(scores, scores[list(map(str, range(systems)))].to_numpy(), qrels)


def standard_scores(rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Standardise the scores of rankings within each query, for all documents of any of them.

    Args:
        rankings: ``qid``, ``docno``, ``score``.

    Returns:
        ``qid``, ``docno`` and ``0``, ``1``, …: the standard score of each ranking, 0 where its scores are all the same,
        its lowest of the query where it lacks the document, 0 where it has no row.
    """
    known = aligned(rankings)
    queries = int(known.query.max(initial=-1)) + 1
    joined = {}
    for number, (ranking, rows) in enumerate(zip(rankings, known.rows, strict=True)):
        scores, lowest = _standardised(known.query[rows], ranking["score"].to_numpy(np.float64), queries)
        found = known.column(rows, scores)
        joined[str(number)] = np.where(np.isnan(found), lowest[known.query], found)
    return known.documents.assign(**joined)


def _standardised(
    query: npt.NDArray[np.int64], scores: npt.NDArray[np.float64], queries: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Standardise the scores of a ranking."""
    there = ~np.isnan(scores)
    own, given = query[there], scores[there]
    count = np.maximum(np.bincount(own, minlength=queries), 1)
    away = given - (np.bincount(own, given, queries) / count)[own]
    spread = np.sqrt(np.bincount(own, away**2, queries) / count)
    least, most = np.full(queries, np.inf), np.full(queries, -np.inf)
    np.minimum.at(least, own, given)
    np.maximum.at(most, own, given)
    standard = np.full(len(scores), np.nan)
    differ = least < most  # else rounding might leave a distance to the mean, and the same as the spread
    standard[there] = np.where(differ[own], away / np.where(differ, spread, 1.0)[own], 0.0)
    lowest = np.zeros(queries)
    np.minimum.at(lowest, own, standard[there])  # the lowest of a query is never above its mean, 0
    return standard, lowest
