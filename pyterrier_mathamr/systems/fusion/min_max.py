"""Scores of a query brought to 0 … 1, and the weighted sum of two systems by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.parameters import FRACTION, Rule
from pyterrier_mathamr._common.transformers import Retriever
from pyterrier_mathamr.explanation import Explanation, Part, Ranked
from pyterrier_mathamr.systems.standard_scores import sole_name

from .base import Fusion, side_by_side


class MinMax(NamedTuple):
    """The scale (score - lowest) · factor.

    Attributes:
        lowest: of the scores.
        factor: 1 / (highest - lowest); 0 where all are equal.
    """

    lowest: float
    factor: float

    @classmethod
    def of(cls, scores: npt.NDArray[np.float64]) -> MinMax:
        """Return the scale of the scores of a query, float64 ``[n]``."""
        if not len(scores):
            return cls(0.0, 0.0)
        lowest, highest = float(scores.min()), float(scores.max())
        return cls(lowest, 1 / (highest - lowest) if highest > lowest else 0.0)

    def apply(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Scale scores, float64 ``[n]``."""
        return (scores - self.lowest) * self.factor

    def explained(self, docno: str, system: str, found: Explanation, weight: float) -> Explanation:
        """Explain a scaled score times a weight, by the explanation of the score itself.

        Args:
            docno: the document.
            system: the system's name.
            found: explains its score.
            weight: the factor of the scaled score.
        """
        shift = Part(system, "lowest score", contribution=-weight * self.factor * self.lowest)
        return found.scaled(weight * self.factor, sole_name(found, system)).plus(shift)


def min_max(ranking: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Bring the scores of each query of a ranking to 0 … 1; equal scores become 0.

    Args:
        ranking: ``qid``, ``docno``, ``score``.

    Returns:
        float64 ``[rows]``.
    """
    scores, found = ranking["score"].to_numpy(np.float64), np.zeros(len(ranking))
    for rows in ranking.groupby("qid").indices.values():
        found[rows] = MinMax.of(scores[rows]).apply(scores[rows])
    return found


class ConvexFusion(Fusion):
    r"""Ranks by α · ŝ of one system + (1 - α) · ŝ of another, ŝ the score brought to 0 … 1 among the query's documents.

    Zhong, Xie and Lin, "Applying Structural and Dense Semantic Matching for the ARQMath Lab 2022" (CLEF 2022), equation
    7. A document that a system did not find has 0 there, and so has each document of a system whose
    scores of the query are all equal; the paper does not say which of the two, the published program does.

    Args:
        dense: takes queries and returns a ranking.
        other: likewise.
        alpha: the weight of ``dense``, 0 to 1.
        num_results: the number of documents for each query.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        ConvexFusion(encode >> index.colbert(), bm25, alpha=0.3)
    """

    label = "convex fusion"
    checks: ClassVar[Mapping[str, Rule]] = {**Retriever.checks, "alpha": FRACTION}

    def __init__(
        self, dense: pt.Transformer, other: pt.Transformer, alpha: float = 0.5, num_results: int = 1000
    ) -> None:
        super().__init__((dense, other), num_results)
        self.dense, self.other, self.alpha = dense, other, alpha

    @property
    def weights(self) -> tuple[float, ...]:
        """α and 1 - α."""
        return (self.alpha, 1 - self.alpha)

    def joined(self, rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """Return ``qid``, ``docno``, ``0`` and ``1``: the scaled scores, 0 for what a system did not find."""
        parts = [
            ranking[["qid", "docno"]].assign(**{str(number): min_max(ranking)})
            for number, ranking in enumerate(rankings)
        ]
        return side_by_side(parts).fillna({"0": 0.0, "1": 0.0})

    def explained_part(self, docno: str, system: str, answer: Ranked, weight: float) -> Explanation:
        """Explain the weighted scaled score."""
        if answer.explanation is None:
            return Explanation.of(docno, [])
        scale = MinMax.of(answer.ranking["score"].to_numpy(np.float64))
        return scale.explained(docno, system, answer.explanation, weight)
