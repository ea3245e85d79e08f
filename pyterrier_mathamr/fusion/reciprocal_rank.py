"""Reciprocal rank fusion: what a document has from a system becomes less with its rank there.

In the modified form the score of the system is the numerator, in the classic one it is 1::

    A = d1 .9, d2 .5      modified    d1 .9/61    d2 .5/62 + .8/61    d3 .4/62
    B = d2 .8, d3 .4      classic     d1  1/61    d2  1/62 +  1/61    d3  1/62
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.parameters import FLAG, Rule, between, one_of
from pyterrier_mathamr._common.transformers import Retriever
from pyterrier_mathamr.explain import Explanation, Part, Ranked

from .base import Fusion, System, side_by_side
from .explaining import distinct_names, sole_name
from .min_max import MinMax, min_max

Normalise = Literal["none", "min-max"]
RRF_K = 60
"""What is added to a rank: the value of Cormack and others (2009), and of all papers here."""


def reciprocal_ranks(
    scores: npt.NDArray[np.float64], names: npt.ArrayLike, k: float = RRF_K
) -> npt.NDArray[np.float64]:
    """Compute 1 / (k + rank) of each document of a ranking, ranks from 1.

    Args:
        scores: float64 ``[n]``.
        names: ``[n]``, which order equal scores, ascending: docnos, or numbers in their order.
        k: what is added to ranks.

    Returns:
        float64 ``[n]``.
    """
    by_name = np.argsort(np.asarray(names), kind="stable")
    order = by_name[np.argsort(-scores[by_name], kind="stable")]
    found = np.empty(len(scores))
    found[order] = 1 / (k + np.arange(1, len(scores) + 1))
    return found


class ModifiedRRF(Fusion):
    r"""Ranks by modified reciprocal rank fusion: Σ score / (k + rank) over the systems, ranks from 1.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), equation 4.2. A document
    that a system did not find has nothing from it. The lower a negative score ranks, the less it takes away: a warning
    names the system, whose scores ``normalise`` brings to 0 … 1.

    Args:
        systems: each takes queries and returns a ranking, or is a ranking.
        k: what is added to ranks.
        normalise: ``"min-max"`` brings the scores of a system to 0 … 1 for each query first.
        num_results: the number of documents for each query.
        classic: 1 in place of the score, as in Cormack and others (2009).

    Raises:
        ConfigError: an option is out of its range.

    Example::

        ModifiedRRF([bm25, encode >> index.colbert()], normalise="min-max")
    """

    label = "rank fusion"
    checks: ClassVar[Mapping[str, Rule]] = {
        **Retriever.checks,
        "k": between(0),
        "normalise": one_of(*get_args(Normalise)),
        "classic": FLAG,
    }

    def __init__(
        self,
        systems: Sequence[System],
        k: float = RRF_K,
        normalise: Normalise = "none",
        num_results: int = 1000,
        classic: bool = False,
    ) -> None:
        super().__init__(systems, num_results)
        self.k, self.normalise, self.classic = k, normalise, classic
        self._told: set[str] = set()

    def joined(self, rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """Return ``qid``, ``docno`` and ``0``, ``1``, …: what each system contributes, 0 for what it did not find."""
        if self.normalise == "none" and not self.classic:
            self._warn_of_negative(rankings)
        parts = [
            ranking[["qid", "docno"]].assign(**{str(number): self._numerators(ranking) * self._inverse_ranks(ranking)})
            for number, ranking in enumerate(rankings)
        ]
        return side_by_side(parts).fillna(dict.fromkeys(map(str, range(len(parts))), 0.0))

    def explained_part(self, docno: str, system: str, answer: Ranked, weight: float) -> Explanation:
        """Explain score / (k + rank)."""
        if answer.explanation is None:
            return Explanation.of(docno, [])
        here = (answer.ranking["docno"] == docno).to_numpy()
        weight *= float(self._inverse_ranks(answer.ranking)[here][0])
        if self.classic:
            return Explanation.of(docno, [Part(system, "1 / (k + rank)", contribution=weight)])
        if self.normalise == "min-max":
            scores = answer.ranking["score"].to_numpy(np.float64)
            return MinMax.of(scores).explained(docno, system, answer.explanation, weight)
        return answer.explanation.scaled(weight, sole_name(answer.explanation, system))

    def _numerators(self, ranking: pd.DataFrame) -> npt.NDArray[np.float64]:
        if self.classic:
            return np.ones(len(ranking))
        return min_max(ranking) if self.normalise == "min-max" else ranking["score"].to_numpy(np.float64)

    def _inverse_ranks(self, ranking: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Compute 1 / (k + rank) of each row."""
        scores, docnos = ranking["score"].to_numpy(np.float64), ranking["docno"].to_numpy(dtype=object)
        found = np.zeros(len(ranking))
        for rows in ranking.groupby("qid").indices.values():
            found[rows] = reciprocal_ranks(scores[rows], docnos[rows], self.k)
        return found

    def _warn_of_negative(self, rankings: Sequence[pd.DataFrame]) -> None:
        """Warn of each system with negative scores, once for this object."""
        names = distinct_names(self.systems)
        negative = [name for name, ranking in zip(names, rankings, strict=True) if bool((ranking["score"] < 0).any())]
        if told := [name for name in negative if name not in self._told]:
            self._told.update(told)
            text = f"negative scores of {', '.join(told)} take the less from a document, the lower it ranks"
            warnings.warn(MathAMRWarning(f"{text}. Give normalise='min-max'."), stacklevel=4)
