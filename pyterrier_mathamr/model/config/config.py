"""The configuration of a model as one frozen, checked, storable value (MathAMR+, Tables 4.5 and 4.18)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr._common.types import FormulaMode
from pyterrier_mathamr.graph import Auxiliary, VirtualNodes

from .contradictions import check_together
from .earlier import without_removed
from .options import (
    Count,
    MaybeCount,
    Natural,
    Options,
    ScoreOptions,
    TextOptions,
    TrainingOptions,
    VocabularyOptions,
    rules,
)

Initialisation = Literal["zero", "random", "mean"]
Learned = Literal["none", "embedding", "projection", "typed_projection"]

_GROUPS: dict[str, type[Options]] = {
    "score": ScoreOptions,
    "text": TextOptions,
    "training": TrainingOptions,
    "vocabulary": VocabularyOptions,
}
_GROUP_OF = {name: group for group, cls in _GROUPS.items() for name in rules(cls)}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class MathAMRConfig(Options):
    """The paper's model, and what is added to it in groups; the defaults are those of the paper's experiments.

    An option of a group can also be given, read and stored by its own name, without the group::

        MathAMRConfig(layers=2, training=TrainingOptions(beta=0.3))
        MathAMRConfig(layers=2, beta=0.3)      # the same: config.beta is config.training.beta

    Attributes:
        formulas: the formula trees in the graph (section 4.3.1).
        virtual_nodes: ``hierarchy`` of formula, sentence and document nodes (3.2); ``none``: placeholders and sentence
            roots stand for the post; ``global``: these and one node joined to all (4.3.2). The paper's "global VN,
            single vector" is ``global`` with ``beta=0`` and a search by ``single_vector()``.
        auxiliary: extra edges between sentence and formula virtual nodes (4.3.3).
        initialisation: first value of a virtual node: zeros, Xavier-uniform, or the mean of its members (4.3.4).
        learned: what is learned about it: nothing, the vector itself (added to the mean), one linear map, or one for
            each kind of virtual node.
        layers: R-GCN layers L; 0 leaves message passing out.
        hidden: d of equation 3.1.
        projection: d_p of equation 3.3.
        bases: B of the basis decomposition, or ``None`` for a matrix of its own for each relation.
        edge_attributes: each relation also has a learned vector, added to the normalised state of the source before
            the relation's transformation; one table for all layers. The paper says that layers receive "learned edge
            attribute vectors from a separate edge embedding table" (3.3.2) and not how they enter; this is the
            reading that gives them an effect without changing the form of equation 2.4.
        score: weights in the score.
        text: features from a text encoder.
        training: how the model is trained.
        vocabulary: the labels and relations that have weights of their own.

    Raises:
        ConfigError: an option does not exist, has a value that it cannot have, or does not go with another.
    """

    formulas: FormulaMode
    virtual_nodes: VirtualNodes
    auxiliary: Auxiliary
    initialisation: Initialisation
    learned: Learned
    layers: Natural
    hidden: Count
    projection: Count
    bases: MaybeCount
    edge_attributes: bool
    score: ScoreOptions
    text: TextOptions
    training: TrainingOptions
    vocabulary: VocabularyOptions

    def __init__(
        self,
        /,
        *,
        formulas: FormulaMode = "both",
        virtual_nodes: VirtualNodes = "hierarchy",
        auxiliary: Auxiliary = "none",
        initialisation: Initialisation = "zero",
        learned: Learned = "embedding",
        layers: int = 4,
        hidden: int = 64,
        projection: int = 32,
        bases: int | None = 64,
        edge_attributes: bool = True,
        score: ScoreOptions | Mapping[str, Any] | None = None,
        text: TextOptions | Mapping[str, Any] | None = None,
        training: TrainingOptions | Mapping[str, Any] | None = None,
        vocabulary: VocabularyOptions | Mapping[str, Any] | None = None,
        **flat: Any,
    ) -> None:
        given = locals()  # the parameters by name
        flat = without_removed(flat)
        if unknown := sorted(set(flat) - set(_GROUP_OF)):
            raise ConfigError("options", unknown, ", ".join([*rules(MathAMRConfig), *_GROUP_OF]))
        for name in rules(MathAMRConfig):
            object.__setattr__(self, name, given[name])
        for name in _GROUPS:
            changes = {option: value for option, value in flat.items() if _GROUP_OF[option] == name}
            object.__setattr__(self, name, _group(name, given[name], changes))
        self.__post_init__()
        check_together(self)

    if not TYPE_CHECKING:  # the package reads options by their groups

        def __getattr__(self, name: str) -> Any:
            """Read an option of a group by its own name."""
            if name not in _GROUP_OF:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return getattr(getattr(self, _GROUP_OF[name]), name)

    def __repr__(self) -> str:
        return f"MathAMRConfig({', '.join(f'{name}={value!r}' for name, value in self.choices().items())})"

    @classmethod
    def paper_experiments(cls, **changes: Any) -> MathAMRConfig:
        """Return the settings of the paper's experiments (Table 4.5), with changes by name."""
        return cls.from_dict(changes)

    @classmethod
    def paper_benchmark(cls, **changes: Any) -> MathAMRConfig:
        """Return the settings of the paper's benchmark run (Table 4.18), with changes by name.

        They are those of the experiments with 256 bases, batches of 16, a learning rate of 5e-4 and β = 0.3.
        """
        return cls.from_dict({"bases": 256, "batch_size": 16, "learning_rate": 5e-4, "beta": 0.3, **changes})

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> MathAMRConfig:
        """Build a configuration from options by name, flat or in groups; those not given keep their defaults.

        Raises:
            ConfigError: an option does not exist, has a value that it cannot have, or does not go with another.
        """
        return cls(**options)

    def to_dict(self) -> dict[str, Any]:
        """Return all options by name, flat: the form of stored models, which every release reads."""
        options: dict[str, Any] = {}
        for name, value in dataclasses.asdict(self).items():
            options.update(value if name in _GROUPS else {name: value})
        return options

    @property
    def essence(self) -> dict[str, Any]:
        """The options by which models are told apart, as :meth:`choices`; a model keeps the identity that it had."""
        found = self.choices()
        if self.text.features == "text":
            context = found.pop("text_context", "windows")
            found |= {"windows": {"text_context": context}, "passages": {"text_passages": True}}.get(context, {})
        return found

    def choices(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, flat; a later release with more options agrees."""
        usual = MathAMRConfig().to_dict()
        return {name: value for name, value in self.to_dict().items() if value != usual[name]}

    @classmethod
    def from_json(cls, text: str) -> MathAMRConfig:
        """Read what :meth:`to_json` wrote, or any JSON object of options.

        Raises:
            ConfigError: the text is no JSON object, or an option is refused.
        """
        try:
            options = parse_json(text)
        except ValueError as error:
            raise ConfigError("configuration", text[:80], f"a JSON object ({error})") from error
        if not isinstance(options, dict):
            raise ConfigError("configuration", options, "a JSON object")
        return cls.from_dict(options)

    @classmethod
    def from_yaml(cls, text: str) -> MathAMRConfig:
        """Read options from YAML, one ``name: value`` a line, or in groups.

        Raises:
            ConfigError: the text is no YAML mapping, or an option is refused.
        """
        import yaml

        try:
            options = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError) as error:
            raise ConfigError("configuration", text[:80], f"a YAML mapping ({error})") from error
        if not isinstance(options, dict):
            raise ConfigError("configuration", options, "a YAML mapping")
        return cls.from_dict(_numbers(options))

    @classmethod
    def from_file(cls, path: str | Path) -> MathAMRConfig:
        """Read options from a file: YAML where its name ends in ``.yaml`` or ``.yml``, else JSON.

        Raises:
            ConfigError: the file does not hold options, or one is refused.
        """
        text = Path(path).read_text(encoding="utf-8")
        return cls.from_yaml(text) if Path(path).suffix in (".yaml", ".yml") else cls.from_json(text)

    def to_json(self) -> str:
        """Write all options as JSON, one a line; the same configuration has the same text."""
        return json.dumps(self.to_dict(), indent=2) + "\n"

    def replace(self, **changes: Any) -> MathAMRConfig:
        """Return a copy with other values for some options, flat or in groups, checked again."""
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return type(self)(**{**own, **changes})


def _group(name: str, given: Any, changes: dict[str, Any]) -> Options:
    """Make a group from what was given for it and the options given by their own names."""
    cls = _GROUPS[name]
    if isinstance(given, cls):
        given = {option: getattr(given, option) for option in rules(cls)}
    elif not isinstance(given, Mapping | None):
        raise ConfigError(name, given, f"{cls.__name__}(…) or a mapping of options")
    options = {**without_removed(given or {}), **changes}
    if unknown := sorted(set(options) - set(rules(cls))):
        raise ConfigError(f"options of {name}", unknown, ", ".join(rules(cls)))
    return cls(**options)


def _numbers(value: Any) -> Any:
    """Read ``1e-4`` as a number, which is a string in YAML 1.1."""
    if isinstance(value, dict):
        return {str(name): _numbers(item) for name, item in value.items()}
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
