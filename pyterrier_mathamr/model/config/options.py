"""The options beyond the paper's encoder, in groups, and the rules that every option's value keeps.

The annotation of an option is its rule: a ``Literal`` lists the values, ``Annotated`` carries a
:class:`~pyterrier_mathamr._common.parameters.Rule`.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pyterrier_mathamr._common.parameters import COUNT, Rule, at_least, one_of

StopBy = Literal["loss", "maxsim", "document"]
Precision = Literal["float32", "bf16"]
Features = Literal["lookup", "words", "text"]
WordVectors = Literal["input", "encoded"]
TextContext = Literal["windows", "alone", "passages"]
FormulaVectors = Literal["none", "in-out-mini"]


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _weight(value: Any) -> bool:
    return _finite(value) and value >= 0


def _weights(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and all(map(_weight, value))


def _real(low: float, high: float = math.inf, *, open_low: bool = False, open_high: bool = False) -> Rule:
    left = f"above {low:g}" if open_low else f"from {low:g}"
    right = "" if high == math.inf else (f" and below {high:g}" if open_high else f" to {high:g}")
    return Rule(
        f"a number {left}{right}",
        lambda value: (
            _finite(value)
            and (value > low if open_low else value >= low)
            and (value < high if open_high else value <= high)
        ),
    )


Count = Annotated[int, COUNT]
Natural = Annotated[int, at_least(0)]
MaybeCount = Annotated[int | None, COUNT.or_none()]
_Pairs = Annotated[int, at_least(2)]
_Share = Annotated[float, _real(0, 1)]
_PartialShare = Annotated[float, _real(0, 1, open_high=True)]
_Positive = Annotated[float, _real(0, open_low=True)]
_NotNegative = Annotated[float, _real(0)]
_Name = Annotated[str, Rule("the name or path of a model", lambda value: isinstance(value, str) and bool(value))]
KindWeights = Annotated[
    Literal["none", "learned"] | tuple[float, float, float],
    Rule(
        "'none', 'learned' or three numbers from 0",
        lambda value: value in ("none", "learned") if isinstance(value, str) else _weights(value),
    ),
]
DocumentBlend = Annotated[
    Literal["none", "learned"] | float,
    Rule("'none', 'learned' or a number from 0", lambda value: value in ("none", "learned") or _weight(value)),
]


class Options:
    """A frozen dataclass whose values are checked."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name, rule in rules(type(self)).items():
            value = getattr(self, name)
            plain = tuple(value) if isinstance(value, list) else value.item() if hasattr(value, "item") else value
            rule.check(name, plain)
            object.__setattr__(self, name, plain)  # JSON and YAML have no tuples, and JSON no numbers of numpy


_rules: dict[type, dict[str, Rule]] = {}


def rules(cls: type) -> dict[str, Rule]:
    """Return the rule of each option of a class by name, in order; a group of options has none."""
    if cls not in _rules:
        found = {name: _rule(hint) for name, hint in get_type_hints(cls, include_extras=True).items()}
        _rules[cls] = {name: rule for name, rule in found.items() if rule}
    return _rules[cls]


def _rule(hint: Any) -> Rule | None:
    if hint is bool:
        return Rule("True or False", lambda value: isinstance(value, bool))
    if get_origin(hint) is Literal:
        return one_of(*get_args(hint))
    return next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Rule)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions(Options):
    """Weights in the score of a query (not in the paper).

    Numbers are kept in training; a trained model has numbers. In-batch training moves these few scalars slowly:
    :func:`~pyterrier_mathamr.model.fit_score_weights` finds them for a trained model.

    Attributes:
        kind_weights: the weights of a query's formula, sentence and document rows in MaxSim: ``none`` for 1 each,
            ``learned``, or three numbers.
        document_blend: the weight of the product of the document vectors beside MaxSim: ``none``, ``learned``, or a
            number.
        kind_means: the best matches of a kind's rows count by their mean in place of their sum, so that a question of
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
            vectors of a text encoder, which is not needed after training. ``text``: the text of formulas (as LaTeX),
            sentences and document goes through a text encoder, in training and in use.
        text_model: name or path of a sentence-transformers model.
        text_dimension: the width of its vectors.
        text_context: with ``text``, what the encoder reads with a sentence. ``windows``: as many sentences as it
            reads at a time; each piece is encoded once, a row is the mean over its pieces, the document over its
            windows. ``alone``: nothing, each formula, sentence and document is a text, of which the beginning is
            read. ``passages``: as ``alone``, and a sentence's vector is the mean of its own and its passage's
            (consecutive sentences, up to 900 characters), the document's of its own and all its passages'.
        text_residual: with ``text``, rows are the projected text vector plus, with a learned weight that starts at 0,
            what the graph adds; otherwise text is only a part of the first states of virtual nodes. With ``layers=0``
            only the projection is left, and with ``projection=text_dimension`` it starts as the identity.
        word_vectors: with ``words``, means of the encoder's ``input`` embeddings of a label's pieces, or labels
            ``encoded`` as texts.
        word_residual: with ``words``, rows are projected sums of the label vectors of their nodes, weighted by inverse
            document frequency at first, plus, with a learned weight that starts at 0, what the graph adds; see
            :class:`~pyterrier_mathamr.model.WordBags`. With ``layers=0`` only the sums are left.
        formula_vectors: with ``word_residual``, rows of formulas also start from the vectors of this bundled model of
            In+Out, trained on formulas alone: the mean over the nodes of their graphs, projected to
            ``projection`` numbers; neither is trained further.
    """

    features: Features = "lookup"
    text_model: _Name = "all-MiniLM-L6-v2"
    text_dimension: Count = 384
    text_context: TextContext = "windows"
    text_residual: bool = True
    word_vectors: WordVectors = "input"
    word_residual: bool = False
    formula_vectors: FormulaVectors = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions(Options):
    """Training (MathAMR+, 3.4); the last two options are not in the paper, and 0 leaves each out.

    Attributes:
        node_mask: probability that a node's label is masked; virtual nodes never are.
        edge_dropout: probability that an edge is dropped; edges of virtual nodes never are.
        temperature: first value of the learnable τ.
        normalise_scores: divide a query's scores by the number of its rows (equation 3.7).
        beta: weight of MaxSim against the document loss (4.2); 1 leaves the document loss out.
        batch_size: pairs, for each of the processes that train together.
        node_budget: most nodes encoded at once, or ``None``. A larger batch is encoded in parts, each twice, which
            bounds memory and leaves the loss unchanged. A graph is never cut.
        stop_by: the validation loss that stops training and chooses the epoch: the whole ``loss`` as weighted by
            ``beta``, or its ``maxsim`` or ``document`` part alone.
        precision: of the encoder in training, ``float32``, or ``bf16`` (torch's autocast; weights, rows and loss stay
            float32). For GPUs: a CPU gains nothing by it.
        epochs: how many at most.
        learning_rate: at the start of the cosine.
        min_learning_rate: at its end.
        weight_decay: of AdamW.
        clip: largest norm of the gradient.
        patience: epochs without a lower validation loss before training stops.
        validation_share: share of the questions that is held out for validation.
        seed: of everything that is random.
        hard_negatives: wrong answers drawn for each pair and epoch from those given to ``Trainer.fit``.
        first_epochs: epochs on the pairs given to ``Trainer.fit`` as ``first``, before those on ``pairs``.
    """

    node_mask: _Share = 0.1
    edge_dropout: _PartialShare = 0.1
    temperature: _Positive = 0.05
    normalise_scores: bool = True
    beta: _Share = 1.0
    batch_size: _Pairs = 32
    node_budget: MaybeCount = None
    stop_by: StopBy = "loss"
    precision: Precision = "float32"
    epochs: Count = 7
    learning_rate: _Positive = 1e-4
    min_learning_rate: _NotNegative = 1e-5
    weight_decay: _NotNegative = 1e-3
    clip: _Positive = 1.0
    patience: Count = 3
    validation_share: _PartialShare = 0.1
    seed: Natural = 42
    hard_negatives: Natural = 0
    first_epochs: Natural = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyOptions(Options):
    """The labels and relations that have weights of their own.

    Attributes:
        vocabulary_size: most frequent node labels kept.
        min_number_count: rarer numbers become one token.
        min_role_count: rarer roles become one unknown relation. A few long posts and wide matrices have more than a
            thousand roles of their own (``:snt100``, ``:op80``), each of which costs a matrix. The paper keeps all (1).
    """

    vocabulary_size: Count = 20_000
    min_number_count: Count = 5
    min_role_count: Count = 5
