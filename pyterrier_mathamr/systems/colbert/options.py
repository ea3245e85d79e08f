"""The options of a ColBERT model and of its training, and two presets of both.

=====================  =======================  ==========================
option                 ``published``            ``mini``
=====================  =======================  ==========================
query, document        512, 512 tokens          128, 256 tokens
query expansion        on                       off
formulas               math tokens              LaTeX as text
loss                   cross entropy of a pair  in-batch + a hard negative
epochs, batch          7, 48                    2, 16
learning rate          1e-6, constant           5e-5, 10 % warm-up
=====================  =======================  ==========================

What Zhong, Xie and Lin (CLEF 2022) print is in ``published``; ``mini`` is our choice for a CPU. Math tokens
need a language model that was pretrained on them, as the published one was: without, LaTeX as text ranks better.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.parameters import COUNT, FLAG, FRACTION, Rule, at_least, between, one_of

Loss = Literal["in-batch", "triple"]
Train = Literal["last", "all"]
Preset = Literal["published", "mini"]

T = TypeVar("T", bound="_Options")


@dataclass(frozen=True, slots=True)
class _Options:
    """A frozen set of options, each with a rule."""

    rules: ClassVar[Mapping[str, Rule]] = {}

    def __post_init__(self) -> None:
        for name, rule in self.rules.items():
            rule.check(name, getattr(self, name))

    @classmethod
    def from_dict(cls: type[T], values: Mapping[str, Any]) -> T:
        """Make the options that `to_dict` wrote."""
        known = {option.name for option in dataclasses.fields(cls)}
        for name in values:
            if name not in known:
                raise ConfigError(name, values[name], f"one of the options {', '.join(sorted(known))}")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return the options by name."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True)
class ColBERTOptions(_Options):
    """How a new model reads and encodes.

    Attributes:
        dimensions: of a row.
        query_length: most tokens of a query, with the special ones.
        document_length: most tokens of a document.
        query_expansion: fill queries up to ``query_length`` with ``[MASK]``, whose rows score, too. The paper names it
            as common practice and is silent on whether it was used.
        skip_punctuation: documents have no rows of punctuation.
        math: write formulas as math tokens, learned from the training posts, in place of LaTeX as text.
        case: math tokens keep their capitals.
        min_count: how often a math token must occur in the training posts.
    """

    dimensions: int = 128
    query_length: int = 128
    document_length: int = 256
    query_expansion: bool = False
    skip_punctuation: bool = True
    math: bool = False
    case: bool = True
    min_count: int = 5

    rules: ClassVar[Mapping[str, Rule]] = {
        **dict.fromkeys(("dimensions", "min_count"), COUNT),
        **dict.fromkeys(("query_length", "document_length"), at_least(4)),
        **dict.fromkeys(("query_expansion", "skip_punctuation", "math", "case"), FLAG),
    }


@dataclass(frozen=True, slots=True)
class ColBERTTraining(_Options):
    """How a model is trained.

    Attributes:
        train: ``last`` trains the projection and the last layer alone, over cached states of the layer below; ``all``
            trains everything, for a GPU.
        loss: ``triple`` compares each right answer with its wrong one alone, as published; ``in-batch`` also with all
            answers of the batch.
        epochs: over all pairs.
        batch_size: pairs in a step.
        learning_rate: of AdamW, at its greatest.
        weight_decay: of AdamW, not for biases and norms.
        warmup: the share of steps in which the learning rate rises; it then falls to 0. Without one it is constant.
        hard_negatives: wrong answers drawn for each pair in each epoch, where there are any.
        seed: of shuffling and drawing, and of dropout in all layers; the last layer alone is trained without it.
    """

    train: Train = "last"
    loss: Loss = "in-batch"
    epochs: int = 2
    batch_size: int = 16
    learning_rate: float = 5e-5
    weight_decay: float = 0.01
    warmup: float = 0.1
    hard_negatives: int = 1
    seed: int = 0

    rules: ClassVar[Mapping[str, Rule]] = {
        "train": one_of("last", "all"),
        "loss": one_of("in-batch", "triple"),
        **dict.fromkeys(("epochs", "batch_size"), COUNT),
        **dict.fromkeys(("learning_rate", "weight_decay"), between(0)),
        "warmup": FRACTION,
        **dict.fromkeys(("hard_negatives", "seed"), at_least(0)),
    }


@dataclass(frozen=True, slots=True)
class Recipe:
    """A preset: the options of a model and of its training."""

    model: ColBERTOptions = field(default_factory=ColBERTOptions)
    training: ColBERTTraining = field(default_factory=ColBERTTraining)


PRESETS: dict[Preset, Recipe] = {
    "published": Recipe(
        ColBERTOptions(query_length=512, document_length=512, query_expansion=True, math=True),
        ColBERTTraining("all", "triple", epochs=7, batch_size=48, learning_rate=1e-6, warmup=0.0),
    ),
    "mini": Recipe(),
}
