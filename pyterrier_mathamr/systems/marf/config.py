"""The options of MaRF and of its training, with presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, TypeVar

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.parameters import Rule
from pyterrier_mathamr.model.config.options import Count, MaybeCount, Natural, Options, rules

TextForm = Literal["latex", "tokens"]
Rows = Literal["tokens", "last"]
FormulaScore = Literal["token", "passage"]
FormulaVocabulary = Literal["own", "context"]
Keys = Literal["formulas", "context"]
QueryFormulas = Literal["longest", "all"]
Loss = Literal["softmax", "ratio"]
Preset = Literal["published", "mini"]


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")


_Positive = Annotated[float, Rule("a number above 0", _positive)]
_Share = Annotated[
    float, Rule("a number from 0 and below 1", lambda value: value == 0 or (_positive(value) and value < 1))
]
_NotNegative = Annotated[float, Rule("a number from 0", lambda value: value == 0 or _positive(value))]
_Text = Annotated[str, Rule("text", lambda value: isinstance(value, str))]
T = TypeVar("T", bound="_Values")


class _Values(Options):
    """Options that are read from plain values and written to them."""

    __slots__ = ()

    @classmethod
    def from_dict(cls: type[T], values: Mapping[str, Any]) -> T:
        """Build from options by name; those not given keep their defaults."""
        if unknown := sorted(set(values) - set(rules(cls))):
            raise ConfigError("options", unknown, ", ".join(rules(cls)))
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain values for JSON."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaRFConfig(_Values):
    """What a model is. The paper prints the sizes of the encoders and the six formulas; it is silent on the rest.

    Attributes:
        text: how the context encoder reads formulas: as ``latex`` between dollars, or as math ``tokens``, which its
            tokenizer must have. The paper adds the tokens and trains BERT further; an encoder that is used as it is
            has read LaTeX.
        rows: all ``tokens`` of a text are rows, or the ``last`` alone, as a causal encoder's vector of a text (not
            said of Qwen3 in the paper).
        instruction: put before a query, as the card of an instructed model asks; documents have none.
        query_length: most tokens of a query.
        document_length: most tokens of a document.
        width: of the context's rows before the fusion, such as 768 for Qwen3's 1,024; ``None`` leaves them.
        output: of the rows that are compared; ``None`` leaves them.
        formula_layers: of the formula encoder.
        formula_heads: of its attention.
        formula_width: of its rows.
        formula_hidden: of its SwiGLU.
        formula_length: most tokens of a formula.
        formula_vocabulary: tokens with a row of their own are those that the posts of :meth:`MaRF.new` have
            (``own``), or those of the ``context`` encoder's tokenizer.
        formula_score: what formulas are compared by in their training: all rows (``token``), or their mean
            (``passage``). The captions of the paper's tables say passage, its text prefers token.
        heads: of the cross-attention.
        dropout: in training, of formula encoder and fusion.
        keys: what the context attends to: its ``formulas``, or, as a control, the ``context`` itself.
        formulas: most views of a document, each with one of its formulas; 1 takes the longest, more are drawn at
            random, seeded by the docno.
        query_formulas: the ``longest`` formula of a query (algorithm 1 has one), or the mean over views with ``all``.
        seed: of the parameters.
    """

    text: TextForm = "latex"
    rows: Rows = "tokens"
    instruction: _Text = ""
    query_length: Count = 512
    document_length: Count = 512
    width: MaybeCount = None
    output: MaybeCount = None
    formula_layers: Count = 8
    formula_heads: Count = 8
    formula_width: Count = 512
    formula_hidden: Count = 2048
    formula_length: Count = 64
    formula_vocabulary: FormulaVocabulary = "own"
    formula_score: FormulaScore = "token"
    heads: Count = 8
    dropout: _Share = 0.1
    keys: Keys = "formulas"
    formulas: Count = 6
    query_formulas: QueryFormulas = "longest"
    seed: Natural = 42

    def __post_init__(self) -> None:
        super(MaRFConfig, self).__post_init__()
        if self.formula_width % (2 * self.formula_heads):
            raise ConfigError(
                "formula_heads", self.formula_heads, f"heads of an even width: {self.formula_width} = 2·k·n"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class MaRFTraining(_Values):
    """How a model is trained. The paper prints 3 and 4 epochs; it is silent on rates, batches and negatives.

    Attributes:
        loss: ``softmax``, or the ``ratio`` of equation 3 as printed, which is not defined for scores of 0 and below:
            they are raised to 1e-6.
        temperature: first value of the learned τ that softmax divides scores by.
        formula_epochs: over the pairs of formulas, at most.
        formula_steps: batches of formulas, at most.
        formula_batch: pairs of formulas in a batch; the others' formulas are the negatives.
        formula_rate: learning rate of the formula encoder.
        epochs: over the pairs of posts.
        batch: pairs of posts in a batch; the others' answers are the negatives.
        rate: learning rate of the fusion.
        weight_decay: of AdamW.
        seed: of everything that is random.
    """

    loss: Loss = "softmax"
    temperature: _Positive = 0.05
    formula_epochs: Count = 3
    formula_steps: Count = 1_000_000
    formula_batch: Count = 64
    formula_rate: _Positive = 1e-4
    epochs: Count = 4
    batch: Count = 32
    rate: _Positive = 1e-4
    weight_decay: _NotNegative = 0.01
    seed: Natural = 42


PRESETS: dict[Preset, tuple[MaRFConfig, MaRFTraining]] = {
    "published": (MaRFConfig(text="tokens", formula_vocabulary="context"), MaRFTraining()),
    "mini": (
        MaRFConfig(
            query_length=96,
            document_length=128,
            output=128,
            formula_layers=4,
            formula_heads=4,
            formula_width=256,
            formula_hidden=1024,
            formulas=3,
        ),
        MaRFTraining(formula_steps=150, formula_batch=32, formula_rate=5e-4, epochs=2, rate=3e-4),
    ),
}
"""The paper's sizes, and ours for a CPU: MiniLM as it is, LaTeX between dollars, rows of 128 numbers."""
