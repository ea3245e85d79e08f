"""Every condition of the paper's experiments as one frozen, checked, storable value (MathAMR+, Tables 4.5 and 4.18)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.json_text import parse_json
from pyterrier_mathamr._common.types import FormulaMode
from pyterrier_mathamr.graph import Auxiliary, VirtualNodes

from .errors import UnknownOptionError
from .option_combinations import check_together
from .option_rules import RULES

Initialisation = Literal["zero", "random", "mean"]
StopBy = Literal["loss", "maxsim", "document"]
Precision = Literal["float32", "bf16"]
Learned = Literal["none", "embedding", "projection", "typed_projection"]
Aggregation = Literal["mean", "attention"]
KindWeights = Literal["none", "learned"] | tuple[float, float, float]
DocumentBlend = Literal["none", "learned"] | float
Features = Literal["lookup", "words", "text"]
TextRows = Literal["all", "no_formulas", "document"]
WordVectors = Literal["input", "encoded"]


@dataclass(frozen=True, slots=True)
class MathAMRConfig:
    """Model, training and vocabulary of one MathAMR+ model; the defaults are those of the paper's experiments.

    Graph::

        formulas: the formula trees in the graph (section 4.3.1).
        virtual_nodes: ``hierarchy`` of formula, sentence and document nodes (3.2); ``none``: placeholders and sentence
            roots stand for the post; ``global``: these and one node joined to all (4.3.2). The paper's "global VN,
            single vector" is ``global`` with ``beta=0`` and a search by ``single_vector()``.
        auxiliary: extra edges between sentence and formula virtual nodes (4.3.3).

    Model::

        initialisation: first value of a virtual node: zeros, Xavier-uniform, or the mean of its members (4.3.4).
        learned: what is learned about it: nothing, the vector itself (added to the mean), one linear map, or one for
            each kind of virtual node.
        aggregation: how the members of a virtual node become its first value where ``initialisation`` is ``mean``:
            all alike, or by learned attention, see :class:`~pyterrier_mathamr.model.MemberAttention`.
        layers: R-GCN layers L; 0 leaves message passing out. hidden: d of equation 3.1. projection: d_p of 3.3.
        bases: B of the basis decomposition, or ``None`` for a matrix of its own for each relation.
        edge_attributes: each relation also has a learned vector, added to the normalised state of the source before
            the relation's transformation; one table for all layers. The paper says that layers receive "learned edge
            attribute vectors from a separate edge embedding table" (3.3.2) and not how they enter; this is the
            reading that gives them an effect without changing the form of equation 2.4.

    Text (the paper's future work)::

        features: ``lookup``: a learned table of labels, as in the paper. ``words``: this table starts from the word
            vectors of a text encoder, which is not needed after training. ``text``: the text of formulas (as LaTeX),
            sentences and document goes through a text encoder, in training and in use.
        text_model: name or path of a sentence-transformers model. text_dimension: the width of its vectors.
        text_rows: which rows have text: ``all``, ``no_formulas``, or the ``document`` alone.
        text_passages: sentences and the document are text in their surroundings, too: a sentence's vector is the mean
            of its own and its passage's (consecutive sentences, up to 900 characters), the document's is that of its
            beginning, as far as the encoder reads, and of all its passages; see ``text_features.py``.
        text_residual: rows are the projected text vector and, with a learned weight that begins at 0, what the graph
            adds to it; else the text is but a part of the virtual nodes' first states. With ``layers=0`` and text in
            all rows there is only the projection, and with ``projection=text_dimension`` it begins as identity.
        text_concepts: with ``text``, the table of labels starts from word vectors, too.
        word_vectors: means of the encoder's ``input`` embeddings of a label's pieces, or labels ``encoded`` as texts.
        word_residual: with ``words``, rows are projected sums of the label vectors of their nodes, weighted by inverse
            document frequency at first, and, with a learned weight that begins at 0, what the graph adds to them; see
            :class:`~pyterrier_mathamr.model.WordBags`. With ``layers=0`` there are only the sums.

    Score (not in the paper)::

        kind_weights: what a formula, sentence and document row of a query count in MaxSim: ``none`` for 1 each,
            ``learned``, or three numbers. document_blend: what the product of the document vectors counts beside
            MaxSim: ``none``, ``learned``, or a number. Numbers are kept in training; a trained model has numbers.
            In-batch training moves these few scalars slowly: :func:`~pyterrier_mathamr.model.fit_score_weights`
            finds them for a model that is trained.

    Training (3.4)::

        node_mask, edge_dropout: probabilities; virtual nodes and their edges are never touched.
        temperature: first value of the learnable tau. normalise_scores: equation 3.7. beta: weight of MaxSim
            against the document loss (4.2); 1 leaves the document loss out.
        batch_size: pairs, for each of the processes that train together. epochs, learning_rate, min_learning_rate
            (end of the cosine), weight_decay, clip (norm of the gradient), patience (epochs without a lower validation
            loss), validation_share, seed.
        stop_by: the validation loss that stops training and chooses the epoch: the whole ``loss`` as weighted by beta,
            or its ``maxsim`` or ``document`` part alone.
        precision: of the encoder in training, ``float32``, or ``bf16`` (torch's autocast; weights, rows and loss stay
            single). For GPUs: a CPU gains nothing by it.
        node_budget: most nodes encoded at once, or ``None``; a larger batch is encoded in parts, each twice, which
            bounds memory and leaves the loss as it is. A graph is never cut.

    Further training (not in the paper; 0 leaves each out)::

        hard_negatives: wrong answers drawn for each pair and epoch from those that ``Trainer.fit`` is given.
        formula_contrast: weight of the formulas' own loss, see :func:`~pyterrier_mathamr.model.formula_contrast`.
        subexpression: weight of the contrast of formulas with their sub-expressions, node by node.
        sentence_dropout: probability with which a sentence is dropped, with all that is only in it; one always stays.
        first_epochs: epochs on the pairs that ``Trainer.fit`` is given as ``first``, before those on ``pairs``.

    Vocabulary::

        vocabulary_size: most frequent node labels kept. min_number_count: rarer numbers become one token.
            min_role_count: rarer roles become one unknown relation; a few long posts and wide matrices have more than
            a thousand of their own (``:snt100``, ``:op80``), each of which costs a matrix. The paper keeps all (1).
    """

    formulas: FormulaMode = "both"
    virtual_nodes: VirtualNodes = "hierarchy"
    auxiliary: Auxiliary = "none"
    initialisation: Initialisation = "zero"
    learned: Learned = "embedding"
    aggregation: Aggregation = "mean"
    layers: int = 4
    hidden: int = 64
    projection: int = 32
    bases: int | None = 64
    edge_attributes: bool = True
    kind_weights: KindWeights = "none"
    document_blend: DocumentBlend = "none"
    features: Features = "lookup"
    text_model: str = "all-MiniLM-L6-v2"
    text_dimension: int = 384
    text_rows: TextRows = "all"
    text_passages: bool = False
    text_residual: bool = True
    text_concepts: bool = False
    word_vectors: WordVectors = "input"
    word_residual: bool = False
    node_mask: float = 0.1
    edge_dropout: float = 0.1
    temperature: float = 0.05
    normalise_scores: bool = True
    beta: float = 1.0
    batch_size: int = 32
    node_budget: int | None = None
    stop_by: StopBy = "loss"
    precision: Precision = "float32"
    epochs: int = 7
    learning_rate: float = 1e-4
    min_learning_rate: float = 1e-5
    weight_decay: float = 1e-3
    clip: float = 1.0
    patience: int = 3
    validation_share: float = 0.1
    seed: int = 42
    hard_negatives: int = 0
    formula_contrast: float = 0.0
    subexpression: float = 0.0
    sentence_dropout: float = 0.0
    first_epochs: int = 0
    vocabulary_size: int = 20_000
    min_number_count: int = 5
    min_role_count: int = 5

    def __post_init__(self) -> None:
        if isinstance(self.kind_weights, list):  # JSON and YAML have no tuples
            object.__setattr__(self, "kind_weights", tuple(self.kind_weights))
        for name, (holds, allowed) in RULES.items():
            value = getattr(self, name)
            if not holds(value):
                raise ConfigError(name, value, allowed)
        check_together(self)

    @property
    def text_alone(self) -> bool:
        """Whether vectors are projected text vectors, to which the graph adds nothing."""
        return self.features == "text" and self.text_residual and self.layers == 0 and self.text_rows == "all"

    @property
    def bags_alone(self) -> bool:
        """Whether vectors are projected sums of label vectors, to which the graph adds nothing."""
        return self.word_residual and self.layers == 0

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
            options = parse_json(text)
        except ValueError as error:
            raise ConfigError("configuration", text[:80], f"a JSON object ({error})") from error
        if not isinstance(options, dict):
            raise ConfigError("configuration", options, "a JSON object")
        return cls.from_dict(options)

    @classmethod
    def from_yaml(cls, text: str) -> MathAMRConfig:
        """Read options from YAML, one ``name: value`` a line.

        Raises:
            ConfigError: the text is no YAML mapping.
            UnknownOptionError: an option does not exist.
        """
        import yaml

        try:
            options = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError) as error:
            raise ConfigError("configuration", text[:80], f"a YAML mapping ({error})") from error
        if not isinstance(options, dict):
            raise ConfigError("configuration", options, "a YAML mapping")
        return cls.from_dict({str(name): _number(value) for name, value in options.items()})

    @classmethod
    def from_file(cls, path: str | Path) -> MathAMRConfig:
        """Read options from a file: YAML where its name ends in ``.yaml`` or ``.yml``, else JSON.

        Raises:
            ConfigError: the file does not hold options.
            UnknownOptionError: an option does not exist.
        """
        text = Path(path).read_text(encoding="utf-8")
        return cls.from_yaml(text) if Path(path).suffix in (".yaml", ".yml") else cls.from_json(text)

    def to_json(self) -> str:
        """Write all options as JSON, one a line, always the same text for the same configuration."""
        return json.dumps(self.to_dict(), indent=2) + "\n"

    def replace(self, **changes: Any) -> MathAMRConfig:
        """Give a copy with other values for some options, checked again."""
        return self.from_dict({**self.to_dict(), **changes})


def _number(value: Any) -> Any:
    """Read ``1e-4`` as a number, which YAML 1.1 takes for a word."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value
