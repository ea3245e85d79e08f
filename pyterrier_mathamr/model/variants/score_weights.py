"""The weights of each kind of query row in MaxSim, and of the product of the document vectors beside it.

::

    S(Q, D) = Σᵢ w_kind(i) maxⱼ qᵢ · dⱼ  +  a q_doc · d_doc

Plain MaxSim (MathAMR+, eq. 3.4) is w = 1 and a = 0; with ``kind_means`` w is divided by the number of the query's rows
of the kind. Formulas are the most numerous rows of a question, so that without
weights they dominate the score.

Training learns what the configuration calls ``learned``. The trained model has the numbers in its configuration, so
they are saved, shown and part of the identity like every other option.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pyterrier_mathamr.model.config.config import MathAMRConfig
from pyterrier_mathamr.model.errors import ShapeError


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
        """Return the weights that a model of this configuration searches with.

        Args:
            config: a weight that is ``learned`` and not trained yet has the value that training starts from.

        Returns:
            ``None`` for plain MaxSim.
        """
        kinds, blend = config.score.kind_weights, config.score.document_blend
        if kinds == "none" and blend == "none" and not config.score.kind_means:
            return None
        formula, sentence, document = (1.0, 1.0, 1.0) if isinstance(kinds, str) else kinds
        number = (0.0 if blend == "none" else 1.0) if isinstance(blend, str) else blend
        return cls(float(formula), float(sentence), float(document), float(number), config.score.kind_means)

    def of_rows(self, rows: int, formulas: int, document: bool = True) -> npt.NDArray[np.float64]:
        """Return the weight of each row of a query.

        Args:
            rows: how many there are.
            formulas: how many of them, the first ones, are formulas.
            document: whether the last one is the document.

        Returns:
            float64 ``[rows]``.
        """
        last = min(rows, int(document))
        counts = np.array([formulas, rows - formulas - last, last])
        weights = np.repeat([self.formula, self.sentence, self.document], counts)
        return weights / np.repeat(counts, counts) if self.means else weights


class LearnedWeights(nn.Module):
    """The weights in training: those that are learned start at 1 and remain positive, numbers are fixed."""

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.means = config.score.kind_means
        start = ScoreWeights.of(config) or ScoreWeights()
        for name, option, value in (
            ("kinds", config.score.kind_weights, [start.formula, start.sentence, start.document]),
            ("blend", config.score.document_blend, start.blend),
        ):
            learned = nn.Parameter(torch.tensor(value).log()) if option == "learned" else None
            self.register_parameter(f"log_{name}", learned)
            fixed = None if isinstance(option, str) else torch.tensor(value)
            self.register_buffer(f"fixed_{name}", fixed, persistent=False)

    def of_rows(self, kinds: Tensor | None, offsets: Tensor) -> Tensor | None:
        """Return the weight of each query row, with gradient if it is learned."""
        weights = self._value("kinds")
        if weights is None and not self.means:
            return None
        if kinds is None:
            raise ShapeError("kinds", None, "[q_total], the kind of each query row, which has a weight")
        of_kinds = torch.ones(3, device=kinds.device) if weights is None else weights
        if not self.means:
            return of_kinds[kinds]
        sizes = offsets.diff()
        group = 3 * torch.repeat_interleave(torch.arange(len(sizes), device=kinds.device), sizes) + kinds
        return of_kinds[kinds] / torch.bincount(group, minlength=3 * len(sizes))[group]

    @property
    def blend(self) -> Tensor | None:
        """a, a scalar, or ``None`` if the score is MaxSim alone."""
        return self._value("blend")

    def _value(self, name: str) -> Tensor | None:
        logarithm: Tensor | None = getattr(self, f"log_{name}")
        fixed: Tensor | None = getattr(self, f"fixed_{name}")
        return fixed if logarithm is None else logarithm.exp()


def trained_config(config: MathAMRConfig, state: Mapping[str, Tensor]) -> MathAMRConfig:
    """Replace ``learned`` by the numbers that training found."""
    changes: dict[str, object] = {}
    for name, tensor in state.items():
        if name.endswith("weights.log_kinds"):
            changes["kind_weights"] = tuple(map(_legible, tensor.exp().tolist()))
        elif name.endswith("weights.log_blend"):
            changes["document_blend"] = _legible(tensor.exp().item())
    return config.replace(**changes) if changes else config


def with_weights(config: MathAMRConfig, weights: ScoreWeights) -> MathAMRConfig:
    """Return the configuration with other weights."""
    kinds = tuple(map(_legible, (weights.formula, weights.sentence, weights.document)))
    return config.replace(kind_weights=kinds, document_blend=_legible(weights.blend) if weights.blend else "none")


def _legible(number: float) -> float:
    """Round to six digits: people read them."""
    return float(f"{number:.6g}")
