"""How the vectors of symbol pairs are trained."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pyterrier_mathamr._common.parameters import COUNT, Rule, at_least

_DIMENSIONS = Rule("an integer from 1 to 1000", lambda value: COUNT.holds(value) and value <= 1000)
"""With more, products of int8 vectors are not exact in float32."""


@dataclass(frozen=True, slots=True)
class FastTextOptions:
    """Options of fastText: skip-gram with negative sampling, as Tangent-CFT has it.

    The dissertation prints n-grams, context and the kind of training; dimensions, negatives and epochs are those of the
    published program, and the rest its library's.

    Attributes:
        dimensions: of a vector.
        epochs: passes over all formulas.
        context: the number of words on each side that a word predicts.
        negatives: words that a word is told apart from.
        min_ngram: characters of the shortest n-grams, the marks of both ends of a word included.
        max_ngram: of the longest.
        min_count: words that occur less often have no vector of their own.
        seed: of all random numbers.

    Raises:
        ConfigError: a value is out of its range.
    """

    dimensions: int = 300
    epochs: int = 30
    context: int = 5
    negatives: int = 20
    min_ngram: int = 3
    max_ngram: int = 6
    min_count: int = 5
    seed: int = 42

    def __post_init__(self) -> None:
        _DIMENSIONS.check("dimensions", self.dimensions)
        for name in ("epochs", "context", "negatives", "min_ngram", "min_count"):
            COUNT.check(name, getattr(self, name))
        at_least(self.min_ngram).check("max_ngram", self.max_ngram)
        at_least(0).check("seed", self.seed)

    @classmethod
    def small(cls) -> FastTextOptions:
        """Return options that train a tenth as long: 100 dimensions, 10 epochs."""
        return cls(dimensions=100, epochs=10)

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain values for JSON."""
        return asdict(self)
