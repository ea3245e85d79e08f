"""What MaRF reads of a post: its text, and the tokens of some of its formulas."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyterrier_mathamr.posts import MathPost, plain_text
from pyterrier_mathamr.systems.math_tokens import math_tokens, post_text
from pyterrier_mathamr.systems.math_vocabulary import MathVocabulary

from .config import MaRFConfig

Formula = tuple[str, ...]
"""The math tokens of a formula."""

MIN_TOKENS = 3
"""Shorter formulas, such as a variable alone, are in no training pair, and have no view in a post with longer ones."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A post as MaRF reads it.

    Attributes:
        text: of the context encoder.
        formulas: the distinct ones, sorted, so that their order in the post has no effect.
    """

    text: str
    formulas: tuple[Formula, ...]

    @classmethod
    def of(cls, post: MathPost, config: MaRFConfig) -> Reading:
        """Read a post.

        Args:
            post: with its formulas.
            config: ``text`` and ``formula_length``.
        """
        text = post_text(post) if config.text == "tokens" else plain_text(post)
        found = {_tokens(formula.latex)[: config.formula_length] for formula in post.formulas}
        return cls(text, tuple(sorted(formula for formula in found if formula)))

    def longest(self) -> tuple[Formula, ...]:
        """Return the formula with the most tokens, of several the first in order; none of a post without formulas."""
        return tuple(sorted(self.formulas, key=lambda formula: (-len(formula), formula))[:1])

    def some(self, most: int, seed: str) -> tuple[Formula, ...]:
        """Return the longest formula, or several drawn at random, the same for the same seed.

        Args:
            most: how many; 1 is the longest.
            seed: such as a docno.
        """
        if most == 1:
            return self.longest()
        long = [formula for formula in self.formulas if len(formula) >= MIN_TOKENS]
        pool = long or list(self.formulas)
        if len(pool) <= most:
            return tuple(pool)
        number = int.from_bytes(hashlib.blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=8).digest())
        return tuple(sorted(random.Random(number).sample(pool, most)))


class FormulaTokens:
    """Tokens of formulas to numbers: by a vocabulary of their own, or by a tokenizer."""

    def __init__(self, vocabulary: MathVocabulary, tokenizer: Any = None) -> None:
        self.vocabulary, self._tokenizer = vocabulary, tokenizer
        self._numbers = {token: number for number, token in enumerate(vocabulary.tokens, 1)}

    def __len__(self) -> int:
        return len(self._tokenizer) if self._tokenizer is not None else len(self._numbers) + 1

    def ids(self, formula: Sequence[str], most: int) -> list[int]:
        """Return the numbers of a formula's tokens, at least one and at most ``most``."""
        if self._tokenizer is None:
            return [self._numbers.get(token, 0) for token in formula[:most]]
        found: list[int] = self._tokenizer(" ".join(formula), add_special_tokens=False)["input_ids"]
        return found[:most] or [0]


@lru_cache(maxsize=65_536)
def _tokens(latex: str) -> Formula:
    return tuple(formula_tokens(latex))


def formula_tokens(latex: str) -> list[str]:
    """Write a formula as the formula encoder reads it: argument boundaries, numbers by powers of ten."""
    return math_tokens(latex, numbers="10e", braces=True)
