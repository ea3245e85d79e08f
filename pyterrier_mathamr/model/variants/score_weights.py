"""What each kind of query virtual node counts in MaxSim, and what the document vectors count beside it.

::

    S(Q, D) = Σᵢ w_kind(i) maxⱼ qᵢ · dⱼ  +  a q_doc · d_doc

Plain MaxSim (MathAMR+, eq. 3.4) is w = 1 and a = 0. Formulas are the most numerous rows of a question, so that without
weights they outvote the sentences and the document.

Training learns what the configuration calls ``learned``; the model that it gives has the numbers in its configuration,
so they are saved, shown and part of the identity like every other option.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pyterrier_mathamr.model.config import MathAMRConfig
from pyterrier_mathamr.model.errors import ShapeError


@dataclass(frozen=True, slots=True)
class ScoreWeights:
    """The numbers of the formula above.

    Attributes:
        formula, sentence, document: what a query row of each kind counts.
        blend: a, what the product of the two document vectors counts.
    """

    formula: float = 1.0
    sentence: float = 1.0
    document: float = 1.0
    blend: float = 0.0

    @classmethod
    def of(cls, config: MathAMRConfig) -> ScoreWeights | None:
        """Read the weights that a model of this configuration searches with.

        Args:
            config: what is ``learned`` and was not trained yet has the value that training starts from.

        Returns:
            ``None`` where the configuration asks for plain MaxSim.
        """
        kinds, blend = config.score.kind_weights, config.score.document_blend
        if kinds == "none" and blend == "none":
            return None
        formula, sentence, document = (1.0, 1.0, 1.0) if isinstance(kinds, str) else kinds
        number = (0.0 if blend == "none" else 1.0) if isinstance(blend, str) else blend
        return cls(float(formula), float(sentence), float(document), float(number))

    def of_rows(self, rows: int, formulas: int, document: bool = True) -> npt.NDArray[np.float64]:
        """Give the weight of each row of a query.

        Args:
            rows: how many there are.
            formulas: how many of them, the first ones, are formulas.
            document: whether the last one is the document.

        Returns:
            float64 ``[rows]``.
        """
        weights = np.full(rows, self.sentence)
        weights[:formulas] = self.formula
        if document:
            weights[-1:] = self.document
        return weights


class LearnedWeights(nn.Module):
    """The weights in training: those that are learned start from 1 and stay above 0, numbers stay as they are.

    Args:
        config: ``kind_weights`` and ``document_blend``.
    """

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        start = ScoreWeights.of(config) or ScoreWeights()
        for name, option, value in (
            ("kinds", config.score.kind_weights, [start.formula, start.sentence, start.document]),
            ("blend", config.score.document_blend, start.blend),
        ):
            learned = nn.Parameter(torch.tensor(value).log()) if option == "learned" else None
            self.register_parameter(f"log_{name}", learned)
            fixed = None if isinstance(option, str) else torch.tensor(value)
            self.register_buffer(f"fixed_{name}", fixed, persistent=False)

    def of_rows(self, kinds: Tensor | None) -> Tensor | None:
        """Give the weight of each query row, with gradient where it is learned.

        Args:
            kinds: int64 ``[q_total]``, the kind of each row: 0 formula, 1 sentence, 2 document.

        Returns:
            float32 ``[q_total]``, or ``None`` where each is 1.

        Raises:
            ShapeError: there are weights, and ``kinds`` is not given.
        """
        weights = self._value("kinds")
        if weights is None:
            return None
        if kinds is None:
            raise ShapeError("kinds", None, "[q_total], the kind of each query row, which has a weight")
        return weights[kinds]

    @property
    def blend(self) -> Tensor | None:
        """a, a scalar, or ``None`` where the document vectors do not count beside MaxSim."""
        return self._value("blend")

    def _value(self, name: str) -> Tensor | None:
        logarithm: Tensor | None = getattr(self, f"log_{name}")
        fixed: Tensor | None = getattr(self, f"fixed_{name}")
        return fixed if logarithm is None else logarithm.exp()


def trained_config(config: MathAMRConfig, state: Mapping[str, Tensor]) -> MathAMRConfig:
    """Put the numbers that training found in place of ``learned``.

    Args:
        config: of the training run.
        state: tensors by name, among them those of :class:`LearnedWeights`, whatever stands before their names.
    """
    changes: dict[str, object] = {}
    for name, tensor in state.items():
        if name.endswith("weights.log_kinds"):
            changes["kind_weights"] = tuple(map(_legible, tensor.exp().tolist()))
        elif name.endswith("weights.log_blend"):
            changes["document_blend"] = _legible(tensor.exp().item())
    return config.replace(**changes) if changes else config


def with_weights(config: MathAMRConfig, weights: ScoreWeights) -> MathAMRConfig:
    """Give the configuration other weights.

    Args:
        config: of a model.
        weights: six digits of each are kept.
    """
    kinds = tuple(map(_legible, (weights.formula, weights.sentence, weights.document)))
    return config.replace(kind_weights=kinds, document_blend=_legible(weights.blend) if weights.blend else "none")


def _legible(number: float) -> float:
    """Six digits: more say nothing, and people read them."""
    return float(f"{number:.6g}")
