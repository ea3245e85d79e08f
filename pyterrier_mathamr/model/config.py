"""The configuration of a model as one frozen, checked, storable value (MathAMR+, Tables 4.5 and 4.18).

`MathAMRConfig` has the options of the paper's model; additional options are in groups. The annotation of an
option is its rule: a ``Literal`` lists the values, ``Annotated`` carries a
:class:`~pyterrier_mathamr._common.parameters.Rule`.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args, get_origin, get_type_hints

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.parameters import BELOW_1, COUNT, FRACTION, POSITIVE, Rule, at_least, between, one_of
from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr._common.types import FormulaMode, GraphPart
from pyterrier_mathamr.graph import Auxiliary, VirtualNodes

_WEIGHT = between(0)
Count = Annotated[int, COUNT]
Natural = Annotated[int, at_least(0)]
MaybeCount = Annotated[int | None, COUNT.or_none()]
_Pairs = Annotated[int, at_least(2)]
_Share = Annotated[float, FRACTION]
_PartialShare = Annotated[float, BELOW_1]
Positive = Annotated[float, POSITIVE]
_Name = Annotated[str, Rule("the name or path of a model", lambda value: isinstance(value, str) and bool(value))]
KindWeights = Annotated[
    Literal["none", "learned"] | tuple[float, float, float],
    Rule(
        "'none', 'learned' or three numbers from 0",
        lambda value: (
            value in ("none", "learned")
            or (isinstance(value, tuple) and len(value) == 3 and all(map(_WEIGHT.holds, value)))
        ),
    ),
]
DocumentBlend = Annotated[
    Literal["none", "learned"] | float,
    Rule("'none', 'learned' or a number from 0", lambda value: value in ("none", "learned") or _WEIGHT.holds(value)),
]

RELATIONAL_CONV = "pyterrier_mathamr.model.RelationalGraphConv"  # the layer of the paper's model
_OF_PYG = re.compile(r"torch_geometric\.nn\.(?:\w+\.)*([A-Z]\w*)")


def conv_name(conv: str | type[Any]) -> str:
    """Return the dotted name of a convolution, as stored models have it."""
    name = f"{conv.__module__}.{conv.__qualname__}" if isinstance(conv, type) else conv
    if name.startswith("pyterrier_mathamr.model.") and name.endswith(".RelationalGraphConv"):
        return RELATIONAL_CONV
    return _OF_PYG.sub(r"torch_geometric.nn.\1", name)


def is_known_conv(name: object) -> bool:
    """Whether a stored model may name a convolution: ours, or one of torch-geometric, so that no other code is run."""
    return isinstance(name, str) and (name == RELATIONAL_CONV or _OF_PYG.fullmatch(name) is not None)


Conv = Annotated[
    str | type[Any],
    Rule(
        f"{RELATIONAL_CONV!r}, the name of a class such as 'torch_geometric.nn.RGATConv', or a class",
        lambda value: isinstance(value, type) or is_known_conv(value),
    ),
]


class Options:
    """The base of frozen dataclasses whose values are checked."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name, rule in rules(type(self)).items():
            value = getattr(self, name)
            plain = tuple(value) if isinstance(value, list) else value.item() if hasattr(value, "item") else value
            rule.check(name, plain)
            object.__setattr__(self, name, plain)  # JSON and YAML have no tuples, and JSON no numbers of numpy

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> Self:
        """Build from options by name; those not given keep their defaults, others are refused by a `ConfigError`."""
        if unknown := sorted(set(options) - set(rules(cls))):
            raise ConfigError("options", unknown, ", ".join(rules(cls)))
        return cls(**options)

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain values for JSON."""
        return dataclasses.asdict(self)  # type: ignore[call-overload, no-any-return]


_rules: dict[type, dict[str, Rule]] = {}


def rules(cls: type) -> dict[str, Rule]:
    """Return the rule of each option of a class by name, in order; groups of options have no rule."""
    if cls not in _rules:
        _rules[cls] = {}
        for name, hint in get_type_hints(cls, include_extras=True).items():
            if hint is bool:
                # Not NumPy's booleans, which JSON does not know.
                _rules[cls][name] = Rule("True or False", lambda value: isinstance(value, bool))
            elif get_origin(hint) is Literal:
                _rules[cls][name] = one_of(*get_args(hint))
            elif annotated := [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Rule)]:
                _rules[cls][name] = annotated[0]
    return _rules[cls]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions(Options):
    """Weights in the score of a query (not in the paper).

    Numbers are fixed in training, and a trained model has numbers. In-batch training moves these few scalars slowly:
    :func:`~pyterrier_mathamr.model.fit_score_weights` fits them for a trained model.

    Attributes:
        kind_weights: the weights of a query's formula, sentence and document rows in MaxSim: ``none`` for 1 each,
            ``learned``, or three numbers.
        document_blend: the weight of the product of the document vectors, added to MaxSim: ``none``, ``learned``, or a
            number.
        kind_means: whether the best matches of a kind's rows are averaged instead of added, so that a question of
            many sentences does not outweigh its document vector.
    """

    kind_weights: KindWeights = "none"
    document_blend: DocumentBlend = "none"
    kind_means: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions(Options):
    """Features from a pretrained text encoder (the paper's future work, section 6.2).

    Attributes:
        features: ``lookup``: a learned table of labels, as in the paper. ``words``: this table starts from the word
            vectors of a text encoder, means of the input embeddings of a label's pieces; the encoder is not needed
            after training. ``text``: the post goes through a text encoder in windows of as many sentences as fit, in
            training and in use. A row is the mean over its pieces, the document over its windows. Rows are the
            projected text vectors plus, with a learned weight that starts at 0, the graph's rows. With ``layers=0``
            only the projection is left, and with ``projection=text_dimension`` it starts as the identity.
        text_model: name or path of a sentence-transformers model.
        text_dimension: the width of its vectors.
        word_residual: with ``words``, rows are projected sums of the label vectors of their nodes, weighted by inverse
            document frequency at first, plus, with a learned weight that starts at 0, the graph's row; see
            ``networks``. With ``layers=0`` only the sums are left.
    """

    features: Literal["lookup", "words", "text"] = "lookup"
    text_model: _Name = "minilm-math"
    text_dimension: Count = 384
    word_residual: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions(Options):
    """Training (MathAMR+, 3.4); the last two options are not in the paper, and 0 turns each off.

    Attributes:
        node_mask: probability that a node's label is masked; virtual nodes never are.
        edge_dropout: probability that an edge is dropped; edges of virtual nodes never are.
        temperature: first value of the learnable τ.
        normalise_scores: divide a query's scores by the number of its rows (equation 3.7).
        beta: weight of MaxSim against the document loss (4.2); 1 turns the document loss off.
        batch_size: pairs, for each of the processes that train together.
        node_budget: most nodes encoded at once, or ``None``. A larger batch is encoded in parts, each twice, which
            bounds memory and leaves the loss unchanged. A graph is never cut.
        stop_by: the validation loss that stops training and chooses the epoch: the whole ``loss`` as weighted by
            ``beta``, or only its ``maxsim`` or ``document`` part.
        precision: of the encoder in training, ``float32``, or ``bf16`` (torch's autocast; weights, rows and loss stay
            float32). For GPUs; it does not speed up a CPU.
        epochs: the maximum.
        learning_rate: at the start of the cosine.
        min_learning_rate: at the end of the cosine.
        weight_decay: of AdamW.
        clip: largest norm of the gradient.
        patience: epochs without a lower validation loss before training stops.
        validation_share: share of the questions held out for validation.
        seed: of all random choices.
        hard_negatives: number of wrong answers drawn for each pair and epoch from ``negatives`` of ``Trainer.fit``.
        first_epochs: epochs on the pairs ``first`` of ``Trainer.fit``, before the epochs on ``pairs``.
    """

    node_mask: _Share = 0.1
    edge_dropout: _PartialShare = 0.1
    temperature: Positive = 0.05
    normalise_scores: bool = True
    beta: _Share = 1.0
    batch_size: _Pairs = 32
    node_budget: MaybeCount = None
    stop_by: Literal["loss", "maxsim", "document"] = "loss"
    precision: Literal["float32", "bf16"] = "float32"
    epochs: Count = 7
    learning_rate: Positive = 1e-4
    min_learning_rate: Annotated[float, _WEIGHT] = 1e-5
    weight_decay: Annotated[float, _WEIGHT] = 1e-3
    clip: Positive = 1.0
    patience: Count = 3
    validation_share: _PartialShare = 0.1
    seed: Natural = 42
    hard_negatives: Natural = 0
    first_epochs: Natural = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyOptions(Options):
    """The labels and relations with separate weights.

    Attributes:
        vocabulary_size: most frequent node labels kept.
        min_number_count: rarer numbers become one token.
        min_role_count: rarer roles become one unknown relation. A few long posts and wide matrices have more than a
            thousand rare roles (``:snt100``, ``:op80``), each with a matrix. The paper keeps all (1).
    """

    vocabulary_size: Count = 20_000
    min_number_count: Count = 5
    min_role_count: Count = 5


def check_together(config: MathAMRConfig) -> None:
    """Raise an error for contradictory options; it names one of them and the values that the other one allows."""
    text, training, nodes = config.text, config.training, f"virtual_nodes={config.virtual_nodes!r}"
    none, hierarchy = config.virtual_nodes == "none", config.virtual_nodes == "hierarchy"
    bags = text.word_residual
    contradictions = (
        (none and training.beta != 1, "beta", f"1 with {nodes}, which has no document vector"),
        (none and config.score.document_blend != "none", "document_blend", f"'none' with {nodes}"),
        (config.auxiliary != "none" and not hierarchy, "auxiliary", f"'none' with {nodes}"),
        (bags and text.features != "words", "word_residual", f"False with features={text.features!r}"),
        (bags and not hierarchy, "word_residual", f"False with {nodes}"),
        (training.min_learning_rate > training.learning_rate, "min_learning_rate", "at most learning_rate"),
    )
    for wrong, name, allowed in contradictions:
        if wrong:
            raise ConfigError(name, config.to_dict()[name], allowed)


Initialisation = Literal["zero", "random", "mean"]
Learned = Literal["none", "embedding", "projection", "typed_projection"]

_GROUPS: dict[str, type[Options]] = {
    "score": ScoreOptions,
    "text": TextOptions,
    "training": TrainingOptions,
    "vocabulary": VocabularyOptions,
}
_GROUP_OF = {name: group for group, cls in _GROUPS.items() for name in rules(cls)}
_FIRST_TEXT_MODEL = "all-MiniLM-L6-v2"  # the default of earlier releases


@dataclass(frozen=True, slots=True, init=False, repr=False)
class MathAMRConfig(Options):
    """The paper's model, and groups of additional options; the defaults are the paper's experiments.

    An option of a group can also be given by its own name, as stored, and is read from its group::

        MathAMRConfig(layers=2, training=TrainingOptions(beta=0.3))
        MathAMRConfig(layers=2, beta=0.3)      # the same: config.training.beta is 0.3

    Args:
        flat: options of the groups, each by its own name.

    Attributes:
        formulas: the formula trees in the graph (section 4.3.1).
        virtual_nodes: ``hierarchy`` of formula, sentence and document nodes (3.2); ``none``: placeholders and sentence
            roots represent the post; ``global``: these and one node joined to all (4.3.2). The paper's "global VN,
            single vector" is ``global`` with ``beta=0`` and a search by ``single_vector()``.
        auxiliary: extra edges between sentence and formula virtual nodes (4.3.3).
        initialisation: first value of a virtual node: zeros, Xavier-uniform, or the mean of its members (4.3.4).
        learned: the learned part of it: nothing, the vector itself (added to the mean), one linear map, or one for
            each kind of virtual node.
        layers: R-GCN layers L; 0 leaves message passing out.
        hidden: d of equation 3.1.
        projection: d_p of equation 3.3.
        bases: B of the basis decomposition, or ``None`` for one matrix per relation.
        conv: the convolution of the layers: a class with the signature of ``torch_geometric.nn.RGCNConv``, or the
            dotted name of one in ``torch_geometric.nn``. A model with any other class is opened by
            ``MathAMR.from_pretrained(path, conv=…)``.
        score: weights in the score.
        text: features from a text encoder.
        training: how the model is trained.
        vocabulary: the labels and relations with separate weights.

    Raises:
        ConfigError: an option does not exist, has an invalid value, or conflicts with another.
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
    conv: Conv
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
        conv: str | type[Any] = RELATIONAL_CONV,
        score: ScoreOptions | Mapping[str, Any] | None = None,
        text: TextOptions | Mapping[str, Any] | None = None,
        training: TrainingOptions | Mapping[str, Any] | None = None,
        vocabulary: VocabularyOptions | Mapping[str, Any] | None = None,
        **flat: Any,
    ) -> None:
        if isinstance(conv, str | type) and is_known_conv(conv_name(conv)):
            conv = conv_name(conv)
        given = locals()  # the parameters by name
        if unknown := sorted(set(flat) - set(_GROUP_OF)):
            raise ConfigError("options", unknown, ", ".join([*rules(MathAMRConfig), *_GROUP_OF]))
        for name in rules(MathAMRConfig):
            object.__setattr__(self, name, given[name])
        for name, cls in _GROUPS.items():
            group = given[name]
            if isinstance(group, cls):
                options = {option: getattr(group, option) for option in rules(cls)}
            elif isinstance(group, Mapping | None):
                options = {**(group or {})}
            else:
                raise ConfigError(name, group, f"{cls.__name__}(…) or a mapping of options")
            options |= {option: value for option, value in flat.items() if _GROUP_OF[option] == name}
            if unknown := sorted(set(options) - set(rules(cls))):
                raise ConfigError(f"options of {name}", unknown, ", ".join(rules(cls)))
            object.__setattr__(self, name, cls(**options))
        self.__post_init__()
        check_together(self)

    def __repr__(self) -> str:
        return f"MathAMRConfig({', '.join(f'{name}={value!r}' for name, value in self.choices().items())})"

    @classmethod
    def paper_experiments(cls, **changes: Any) -> MathAMRConfig:
        """Return the settings of the paper's experiments (Table 4.5), with ``changes`` by name."""
        return cls.from_dict(changes)

    @classmethod
    def paper_benchmark(cls, **changes: Any) -> MathAMRConfig:
        """Return the settings of the paper's benchmark run (Table 4.18), with ``changes`` by name.

        These are the settings of the experiments with 256 bases, batches of 16, a learning rate of 5e-4 and β = 0.3.
        """
        return cls.from_dict({"bases": 256, "batch_size": 16, "learning_rate": 5e-4, "beta": 0.3, **changes})

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> MathAMRConfig:
        """Build a configuration from options by name, flat or in groups; those not given keep their defaults."""
        return cls(**options)

    def to_dict(self) -> dict[str, Any]:
        """Return all options by name, flat: the form of stored models, which every release reads."""
        options: dict[str, Any] = {}
        for name, value in dataclasses.asdict(self).items():
            options.update(value if name in _GROUPS else {name: value})
        return options | {"conv": conv_name(self.conv)}

    @property
    def text_alone(self) -> bool:
        """Whether a row is a function of only its text, unit(P x): the network has no layers."""
        return self.text.features == "text" and self.layers == 0

    @property
    def reads(self) -> frozenset[GraphPart]:
        """The parts of a graph that vectors depend on."""
        if self.text_alone:
            return frozenset({"text"})
        parts: set[GraphPart] = {"amr"}
        if self.text.features == "text":
            parts.add("text")
        if self.formulas != "none":
            parts.add("trees")
        return frozenset(parts)

    @property
    def essence(self) -> dict[str, Any]:
        """The options that distinguish models, as :meth:`choices`; earlier models keep their identity."""
        options = self.choices() | {"text_model": self.text.text_model}
        if self.text.text_model == _FIRST_TEXT_MODEL:
            del options["text_model"]
        if self.text.features == "text":
            options["text_context"] = "windows"  # once an option; models keep their identity
        return options

    def choices(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, flat; a later release with more options agrees."""
        usual = MathAMRConfig().to_dict()
        return {name: value for name, value in self.to_dict().items() if value != usual[name]}

    @classmethod
    def from_json(cls, text: str) -> MathAMRConfig:
        """Read what :meth:`to_json` wrote, or any JSON object of options; other text is refused by a `ConfigError`."""
        return cls.from_dict(_mapping(parse_json, text, "a JSON object"))

    @classmethod
    def from_yaml(cls, text: str) -> MathAMRConfig:
        """Read options from YAML, one ``name: value`` a line, or in groups."""
        import yaml

        return cls.from_dict(_numbers(_mapping(yaml.safe_load, text, "a YAML mapping")))

    @classmethod
    def from_file(cls, path: str | Path) -> MathAMRConfig:
        """Read options from a file: YAML where its name ends in ``.yaml`` or ``.yml``, else JSON."""
        text = Path(path).read_text(encoding="utf-8")
        return cls.from_yaml(text) if Path(path).suffix in (".yaml", ".yml") else cls.from_json(text)

    def to_json(self) -> str:
        """Write all options as JSON, one a line; the same configuration has the same text."""
        return json.dumps(self.to_dict(), indent=2) + "\n"

    def replace(self, **changes: Any) -> MathAMRConfig:
        """Return a copy with other values for some options, the ``changes``, flat or in groups, checked again."""
        current = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return type(self)(**{**current, **changes})


def _mapping(parse: Callable[[str], Any], text: str, allowed: str) -> dict[str, Any]:
    try:
        options = parse(text)
    except Exception as error:  # a YAMLError is not a ValueError, and yaml is not imported for JSON
        raise ConfigError("configuration", text[:80], f"{allowed} ({error})") from error
    if not isinstance(options, dict):
        raise ConfigError("configuration", options, allowed)
    return options


def _numbers(value: Any) -> Any:
    """Read ``1e-4`` as a number, which is a string in YAML 1.1."""
    if isinstance(value, dict):
        return {str(name): _numbers(item) for name, item in value.items()}
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
