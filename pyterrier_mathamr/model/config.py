"""Every condition of the paper's experiments as one frozen, checked, storable value (MathAMR+, Tables 4.5 and 4.18)."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.types import FORMULA_MODES, FormulaMode
from pyterrier_mathamr.graph import Auxiliary, VirtualNodes

from .errors import UnknownOptionError

Initialisation = Literal["zero", "random", "mean"]
Learned = Literal["none", "embedding", "projection", "typed_projection"]


@dataclass(frozen=True, slots=True)
class MathAMRConfig:
    """Model, training and vocabulary of one MathAMR+ model; the defaults are those of the paper's experiments.

    Graph:
        formulas: the formula trees in the graph (section 4.3.1).
        virtual_nodes: ``hierarchy`` of formula, sentence and document nodes (3.2); ``none``: placeholders and sentence
            roots stand for the post; ``global``: these and one node joined to all (4.3.2). The paper's "global VN,
            single vector" is ``global`` with ``beta=0`` and a search by ``single_vector()``.
        auxiliary: extra edges between sentence and formula virtual nodes (4.3.3).
    Model:
        initialisation: first value of a virtual node: zeros, Xavier-uniform, or the mean of its members (4.3.4).
        learned: what is learned about it: nothing, the vector itself (added to the mean), one linear map, or one for
            each kind of virtual node.
        layers: R-GCN layers L; 0 leaves message passing out. hidden: d of equation 3.1. projection: d_p of 3.3.
        bases: B of the basis decomposition, or ``None`` for a matrix of its own for each relation.
        edge_attributes: each relation also has a learned vector, added to the normalised state of the source before
            the relation's transformation; one table for all layers. The paper says that layers receive "learned edge
            attribute vectors from a separate edge embedding table" (3.3.2) and not how they enter; this is the
            reading that gives them an effect without changing the form of equation 2.4.
    Training (3.4):
        node_mask, edge_dropout: probabilities; virtual nodes and their edges are never touched.
        temperature: first value of the learnable tau. normalise_scores: equation 3.7. beta: weight of MaxSim
            against the document loss (4.2); 1 leaves the document loss out.
        batch_size: pairs, for each of the processes that train together. epochs, learning_rate, min_learning_rate
            (end of the cosine), weight_decay, clip (norm of the gradient), patience (epochs without a lower validation
            loss), validation_share, seed.
        node_budget: most nodes encoded at once, or ``None``; a larger batch is encoded in parts, each twice, which
            bounds memory and leaves the loss as it is. A graph is never cut.
    Vocabulary:
        vocabulary_size: most frequent node labels kept. min_number_count: rarer numbers become one token.
            min_role_count: rarer roles become one unknown relation; a few long posts and wide matrices have more than
            a thousand of their own (``:snt100``, ``:op80``), each of which costs a matrix. The paper keeps all (1).
    """

    formulas: FormulaMode = "both"
    virtual_nodes: VirtualNodes = "hierarchy"
    auxiliary: Auxiliary = "none"
    initialisation: Initialisation = "zero"
    learned: Learned = "embedding"
    layers: int = 4
    hidden: int = 64
    projection: int = 32
    bases: int | None = 64
    edge_attributes: bool = True
    node_mask: float = 0.1
    edge_dropout: float = 0.1
    temperature: float = 0.05
    normalise_scores: bool = True
    beta: float = 1.0
    batch_size: int = 32
    node_budget: int | None = None
    epochs: int = 7
    learning_rate: float = 1e-4
    min_learning_rate: float = 1e-5
    weight_decay: float = 1e-3
    clip: float = 1.0
    patience: int = 3
    validation_share: float = 0.1
    seed: int = 42
    vocabulary_size: int = 20_000
    min_number_count: int = 5
    min_role_count: int = 5

    def __post_init__(self) -> None:
        for name, (holds, allowed) in _RULES.items():
            value = getattr(self, name)
            if not holds(value):
                raise ConfigError(name, value, allowed)
        if self.virtual_nodes == "none" and self.beta != 1:
            raise ConfigError("beta", self.beta, "1 with virtual_nodes='none', which has no document vector")
        if self.auxiliary != "none" and self.virtual_nodes != "hierarchy":
            raise ConfigError("auxiliary", self.auxiliary, f"'none' with virtual_nodes={self.virtual_nodes!r}")
        if self.min_learning_rate > self.learning_rate:
            raise ConfigError("min_learning_rate", self.min_learning_rate, "at most learning_rate")

    @classmethod
    def paper_experiments(cls, **changes: Any) -> MathAMRConfig:
        """Give the settings of the paper's experiments (Table 4.5).

        Args:
            changes: options that differ, by name.
        """
        return cls.from_dict(changes)

    @classmethod
    def paper_benchmark(cls, **changes: Any) -> MathAMRConfig:
        """Give the settings of the paper's benchmark run (Table 4.18): 256 bases, batches of 16, beta 0.3.

        Args:
            changes: options that differ, by name.
        """
        table: dict[str, Any] = {"bases": 256, "batch_size": 16, "learning_rate": 5e-4, "beta": 0.3}
        return cls.from_dict({**table, **changes})

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> MathAMRConfig:
        """Build a configuration from options by name; those not given keep their defaults.

        Raises:
            UnknownOptionError: an option does not exist; all such are named.
            ConfigError: an option has a value that it cannot have.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise UnknownOptionError(unknown, known)
        return cls(**options)

    def to_dict(self) -> dict[str, Any]:
        """Give all options by name, in the order of the class."""
        return dataclasses.asdict(self)

    def choices(self) -> dict[str, Any]:
        """Give the options that differ from their defaults: what a later release, with more options, says alike."""
        usual = MathAMRConfig().to_dict()
        return {name: value for name, value in self.to_dict().items() if value != usual[name]}

    @classmethod
    def from_json(cls, text: str) -> MathAMRConfig:
        """Read what :meth:`to_json` wrote, or any JSON object of options.

        Raises:
            ConfigError: the text is no JSON object.
            UnknownOptionError: an option does not exist.
        """
        try:
            options = json.loads(text)
        except json.JSONDecodeError as error:
            raise ConfigError("configuration", text[:80], f"a JSON object ({error})") from error
        if not isinstance(options, dict):
            raise ConfigError("configuration", options, "a JSON object")
        return cls.from_dict(options)

    def to_json(self) -> str:
        """Write all options as JSON, one a line, always the same text for the same configuration."""
        return json.dumps(self.to_dict(), indent=2) + "\n"

    def replace(self, **changes: Any) -> MathAMRConfig:
        """Give a copy with other values for some options, checked again."""
        return self.from_dict({**self.to_dict(), **changes})


_Rule = tuple[Callable[[Any], bool], str]


def _one_of(*values: str) -> _Rule:
    return lambda value: isinstance(value, str) and value in values, " or ".join(map(repr, values))


def _whole(least: int) -> _Rule:
    return (
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least,
        f"a whole number of at least {least}",
    )


def _real(low: float, high: float = math.inf, *, open_low: bool = False, open_high: bool = False) -> _Rule:
    def holds(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return False
        return (value > low if open_low else value >= low) and (value < high if open_high else value <= high)

    left = f"above {low:g}" if open_low else f"from {low:g}"
    right = "" if high == math.inf else (f" and below {high:g}" if open_high else f" to {high:g}")
    return holds, f"a number {left}{right}"


_FLAG: _Rule = (lambda value: isinstance(value, bool), "True or False")
_COUNT_HOLDS, _COUNT_TEXT = _whole(1)

_RULES: dict[str, _Rule] = {
    "formulas": _one_of(*FORMULA_MODES),
    "virtual_nodes": _one_of("hierarchy", "none", "global"),
    "auxiliary": _one_of("none", "sequential", "circular", "full"),
    "initialisation": _one_of("zero", "random", "mean"),
    "learned": _one_of("none", "embedding", "projection", "typed_projection"),
    "layers": _whole(0),
    "hidden": _whole(1),
    "projection": _whole(2),
    "bases": (lambda value: value is None or _COUNT_HOLDS(value), f"None or {_COUNT_TEXT}"),
    "edge_attributes": _FLAG,
    "node_mask": _real(0, 1),
    "edge_dropout": _real(0, 1, open_high=True),
    "temperature": _real(0, open_low=True),
    "normalise_scores": _FLAG,
    "beta": _real(0, 1),
    "batch_size": _whole(2),
    "node_budget": (lambda value: value is None or _COUNT_HOLDS(value), f"None or {_COUNT_TEXT}"),
    "epochs": _whole(1),
    "learning_rate": _real(0, open_low=True),
    "min_learning_rate": _real(0),
    "weight_decay": _real(0),
    "clip": _real(0, open_low=True),
    "patience": _whole(1),
    "validation_share": _real(0, 1, open_high=True),
    "seed": _whole(0),
    "vocabulary_size": _whole(1),
    "min_number_count": _whole(1),
    "min_role_count": _whole(1),
}
