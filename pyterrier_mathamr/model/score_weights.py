"""The weights of each kind of query row in MaxSim and of the product of the document vectors.

::

    S(Q, D) = Σᵢ w_kind(i) maxⱼ qᵢ · dⱼ  +  a q_doc · d_doc

Plain MaxSim (MathAMR+, eq. 3.4) is w = 1 and a = 0; with ``kind_means`` w is divided by the number of the query's rows
of the kind. Formulas are the most numerous rows of a question, so without weights they dominate the score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.graph import MathAMRGraph

from .config import MathAMRConfig


@dataclass(frozen=True, slots=True)
class ScoreWeights:
    """The numbers of the formula above.

    Attributes:
        formula, sentence, document: w of a query row of each kind.
        blend: a.
        means: divide w by the number of a query's rows of the kind.
    """

    formula: float = 1.0
    sentence: float = 1.0
    document: float = 1.0
    blend: float = 0.0
    means: bool = False

    @classmethod
    def of(cls, config: MathAMRConfig) -> ScoreWeights | None:
        """Return the weights that a model of this configuration searches with."""
        kinds, blend = config.score.kind_weights, config.score.document_blend
        if kinds == "none" and blend == "none" and not config.score.kind_means:
            return None
        formula, sentence, document = (1.0, 1.0, 1.0) if isinstance(kinds, str) else kinds
        number = (0.0 if blend == "none" else 1.0) if isinstance(blend, str) else blend
        return cls(float(formula), float(sentence), float(document), float(number), config.score.kind_means)

    def of_rows(self, kinds: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return the weight of each row of a query, given the kinds of its rows."""
        of = np.array(kinds, np.int64)
        weights = np.array([self.formula, self.sentence, self.document])[of]
        return weights / np.bincount(of)[of] if self.means else weights


def row_kinds(config: MathAMRConfig, graph: MathAMRGraph, rows: int) -> list[int]:
    """Determine the kind of each row of a query; empty for a blank one."""
    formulas = graph.n_formulas if config.formulas != "none" else 0
    documents = min(rows, int(config.virtual_nodes != "none"))
    return [0] * formulas + [1] * (rows - formulas - documents) + [2] * documents


def with_weights(config: MathAMRConfig, weights: ScoreWeights) -> MathAMRConfig:
    kinds = tuple(map(legible, (weights.formula, weights.sentence, weights.document)))
    return config.replace(kind_weights=kinds, document_blend=legible(weights.blend) if weights.blend else "none")


def legible(number: float) -> float:
    """Round to six digits: people read them."""
    return float(f"{number:.6g}")
