"""What an In+Out model is and how it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.parameters import Rule, at_least, one_of
from pyterrier_mathamr.model.config.options import Count, Natural, Options, rules

from .pairings import PAIRINGS, Condition


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")


_Positive = Annotated[float, Rule("a number above 0", _positive)]
_Share = Annotated[float, Rule("a number above 0 and below 1", lambda value: _positive(value) and value < 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class InOutOptions(Options):
    """The options of an In+Out model; the paper prints ``condition``, ``temperature`` and ``width``.

    Attributes:
        condition: which graphs of a formula are paired in training; one of the six of section 3.
        layers: R-GCN layers; 0 leaves message passing out.
        width: of the vectors, of the label embeddings and between the layers.
        least_count: rarer labels share a vector for each type.
        temperature: τ of equation 2.
        positive_in_sum: add the positive to the sum of equation 2, which the paper does not; the loss is then not
            below 0.
        batch_size: formulas in a batch.
        learning_rate: of AdamW.
        epochs: how many at most.
        patience: epochs without a lower loss of the held-out formulas before training stops.
        held_out: share of the formulas that are held out for that.
        seed: of everything that is random.

    Raises:
        ConfigError: an option has a value that it cannot have.
    """

    condition: Annotated[Condition, one_of(*PAIRINGS)] = "inner+outer"
    layers: Natural = 2
    width: Count = 100
    least_count: Count = 2
    temperature: _Positive = 0.1
    positive_in_sum: bool = False
    batch_size: Annotated[int, at_least(2)] = 256
    learning_rate: _Positive = 1e-3
    epochs: Count = 20
    patience: Count = 3
    held_out: _Share = 0.05
    seed: Natural = 42

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> InOutOptions:
        """Build from options by name; those not given keep their defaults.

        Raises:
            ConfigError: an option does not exist, or has a value that it cannot have.
        """
        if unknown := sorted(set(options) - set(rules(cls))):
            raise ConfigError("options", unknown, ", ".join(rules(cls)))
        return cls(**options)
