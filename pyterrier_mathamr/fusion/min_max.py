"""Scores of a query brought to 0 … 1, and the weighted sum of systems by them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.parameters import FRACTION, Rule, between, list_of
from pyterrier_mathamr._common.transformers import Retriever
from pyterrier_mathamr.explain import Explanation, Part, Ranked

from .base import Fusion, System, side_by_side
from .explaining import sole_name


class MinMax(NamedTuple):
    """The scale (score - lowest) · factor + constant.

    Attributes:
        lowest: of the scores.
        factor: 1 / (highest - lowest); 0 where all are equal.
        constant: what equal scores become; 0 where they differ.
    """

    lowest: float
    factor: float
    constant: float = 0.0

    @classmethod
    def of(cls, scores: npt.NDArray[np.float64], constant: float = 0.0) -> MinMax:
        """Return the scale of the scores of a query, float64 ``[n]``; all of them become ``constant`` if equal."""
        if not len(scores):
            return cls(0.0, 0.0)
        lowest, highest = float(scores.min()), float(scores.max())
        return cls(lowest, 1 / (highest - lowest)) if highest > lowest else cls(lowest, 0.0, constant)

    def apply(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Scale scores, float64 ``[n]``."""
        return (scores - self.lowest) * self.factor + self.constant

    def explained(self, docno: str, system: str, found: Explanation, weight: float) -> Explanation:
        """Explain a scaled score times a weight, by the explanation of the score itself."""
        if not self.factor:
            return Explanation.of(docno, [Part(system, "all scores are equal", contribution=weight * self.constant)])
        shift = Part(system, "lowest score", contribution=-weight * self.factor * self.lowest)
        return found.scaled(weight * self.factor, sole_name(found, system)).plus(shift)


def min_max(ranking: pd.DataFrame, constant: float = 0.0) -> npt.NDArray[np.float64]:
    """Bring the scores of each query of a ranking to 0 … 1."""
    scores, found = ranking["score"].to_numpy(np.float64), np.zeros(len(ranking))
    for rows in ranking.groupby("qid").indices.values():
        found[rows] = MinMax.of(scores[rows], constant).apply(scores[rows])
    return found


_WEIGHTS = list_of(between(0))


class ConvexFusion(Fusion):
    r"""Ranks by α · ŝ of one system + (1 - α) · ŝ of another, ŝ the score brought to 0 … 1 among the query's documents.

    Zhong, Xie and Lin, "Applying Structural and Dense Semantic Matching for the ARQMath Lab 2022" (CLEF 2022), equation
    7. A document that a system did not find has 0 there, and so has each document of a system whose
    scores of the query are all equal; the paper does not say which of the two, the published program does.

    Args:
        dense: takes queries and returns a ranking; or a ranking.
        other: likewise, or a list of several.
        alpha: the weight of ``dense``, 0 to 1; the others share the rest equally. Or a list with the weight of each
            system, ``dense`` first, which sum to 1.
        num_results: the number of documents for each query.
        constant: what a score becomes in a system whose scores of the query are all equal, 0 to 1.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        ConvexFusion(encode >> index.colbert(), bm25, alpha=0.3)
    """

    label = "convex fusion"
    checks: ClassVar[Mapping[str, Rule]] = {
        **Retriever.checks,
        "alpha": Rule(
            "a number between 0 and 1, or a list of numbers, 0 or more, one for each system, that sum to 1",
            lambda alpha: FRACTION.holds(alpha) or (_WEIGHTS.holds(alpha) and math.isclose(math.fsum(alpha), 1)),
        ),
        "constant": FRACTION,
    }

    def __init__(
        self,
        dense: System,
        other: System | Sequence[System],
        alpha: float | Sequence[float] = 0.5,
        num_results: int = 1000,
        constant: float = 0.0,
    ) -> None:
        others = tuple(other) if isinstance(other, (list, tuple)) else (other,)
        super().__init__((dense, *others), num_results)
        self.dense, self.other = self.systems[0], self.systems[1:] if len(others) != 1 else self.systems[1]
        self.alpha, self.constant = alpha, constant
        if isinstance(alpha, Sequence) and len(alpha) != len(self.systems):
            raise ConfigError("alpha", alpha, f"a list of {len(self.systems)} numbers, one for each system")

    @property
    def weights(self) -> tuple[float, ...]:
        """α and 1 - α, or the weights of several systems."""
        if isinstance(self.alpha, Sequence):
            return tuple(self.alpha)
        count = len(self.systems) - 1
        return (self.alpha, *[(1 - self.alpha) / count] * count)

    def joined(self, rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """Return ``qid``, ``docno`` and ``0``, ``1``, …: the scaled scores, 0 for what a system did not find."""
        parts = [
            ranking[["qid", "docno"]].assign(**{str(number): min_max(ranking, self.constant)})
            for number, ranking in enumerate(rankings)
        ]
        return side_by_side(parts).fillna(dict.fromkeys(map(str, range(len(parts))), 0.0))

    def explained_part(self, docno: str, system: str, answer: Ranked, weight: float) -> Explanation:
        """Explain the weighted scaled score."""
        if answer.explanation is None:
            return Explanation.of(docno, [])
        scale = MinMax.of(answer.ranking["score"].to_numpy(np.float64), self.constant)
        return scale.explained(docno, system, answer.explanation, weight)
