"""The math tokens that posts have, added to the vocabulary of a language model."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyterrier_mathamr._common.errors import MathAMRWarning, require
from pyterrier_mathamr._common.parameters import one_of
from pyterrier_mathamr.posts import MathPost

from .math_tokens import Tokenize, math_tokens

_INIT = one_of("pieces", "random")
_MATH = re.compile(r"\$\S+\$")
_ENGLISH = {
    "frac": "fraction", "sup": "superscript power", "sub": "subscript index", "lparen": "(", "rparen": ")",
    "lbracket": "[", "rbracket": "]", "lbrace": "{", "rbrace": "}", "bgroup": "begin", "egroup": "end",
    "leq": "less or equal", "geq": "greater or equal", "neq": "not equal", "in": "element of", "notin": "not element",
    "infty": "infinity", "int": "integral", "prod": "product", "lim": "limit", "sqrt": "square root", "mathbb": "set",
    "mathbf": "bold", "mathcal": "calligraphic", "mathfrak": "fraktur", "cdot": "dot product", "ldots": "dots",
    "rightarrow": "arrow to", "Rightarrow": "implies", "Leftrightarrow": "if and only if", "forall": "for all",
    "exists": "there exists", "varnothing": "empty set", "setminus": "set minus", "cup": "union",
    "cap": "intersection",
    "wedge": "and", "vee": "or", "neg": "not", "equiv": "equivalent", "approx": "approximately equal",
    "cong": "congruent",
    "sim": "similar", "pmod": "modulo", "bmod": "modulo", "gcd": "greatest common divisor", "det": "determinant",
    "sin": "sine", "cos": "cosine", "tan": "tangent", "log": "logarithm", "ln": "natural logarithm",
    "exp": "exponential",
    "binom": "binomial", "vec": "vector", "overline": "bar", "nabla": "gradient", "circ": "circle", "langle": "(",
    "rangle": ")", "max": "maximum", "min": "minimum", "subseteq": "subset or equal", "pm": "plus or minus",
}  # fmt: skip
_POWER = re.compile(r"10e(-?\d+)")


@dataclass(frozen=True, slots=True)
class MathVocabulary:
    """Math tokens, the most frequent first.

    Args:
        tokens: each ``$name$``, in the order in which a tokenizer gets them.

    Example::

        posts = [mathamr.posts.post_from_text("Is $x < 2$?")]
        vocabulary = MathVocabulary.learn(posts, min_count=1)  # then vocabulary.add_to(tokenizer, network)
    """

    tokens: tuple[str, ...]

    @classmethod
    def learn(cls, posts: Iterable[MathPost], min_count: int = 5, tokens: Tokenize = math_tokens) -> MathVocabulary:
        """Count the math tokens of posts.

        Args:
            posts: read once, one at a time.
            min_count: rarer tokens are left out; they stay the pieces that the tokenizer has for them.
            tokens: LaTeX to tokens.

        Returns:
            The tokens by descending count, equal counts by name. Published: 1,000 to 1,100 of them.
        """
        counts = Counter(
            token for post in posts for formula in post.formulas for token in tokens(formula.latex) if _is_math(token)
        )
        kept = [token for token, count in counts.items() if count >= min_count]
        return cls(tuple(sorted(kept, key=lambda token: (-counts[token], token))))

    @classmethod
    def of(cls, tokenizer: Any) -> MathVocabulary:
        """List the math tokens that a tokenizer of transformers has, by id.

        Args:
            tokenizer: of any checkpoint.
        """
        ids: dict[str, int] = tokenizer.get_vocab()
        return cls(tuple(sorted(filter(_is_math, ids), key=ids.__getitem__)))

    def add_to(
        self, tokenizer: Any, model: Any, init: Literal["pieces", "random"] = "pieces", *, case: bool = True
    ) -> int:
        """Add the tokens that a tokenizer lacks, and a row to the model's input embeddings for each.

        Args:
            tokenizer: of transformers; changed.
            model: of transformers; its embeddings grow. ``None`` for the tokenizer alone.
            init: ``pieces`` makes a new row the mean of the rows of the pieces of the token's English name, so that
                ``$int$`` begins as *integral* (the papers are silent); ``random`` leaves it as resizing makes it.
            case: the tokens keep their capitals even where the tokenizer lower-cases text.

        Returns:
            How many were added.

        Raises:
            ConfigError: another ``init``.
        """
        _INIT.check("init", init)
        had = tokenizer.get_vocab()
        new = [token for token in self.tokens if token not in had]
        pieces = [tokenizer(_english(token), add_special_tokens=False)["input_ids"] for token in new]
        added_token = require("transformers", "answers").AddedToken
        added: int = tokenizer.add_tokens([added_token(token, normalized=not case) for token in new])
        if model is None:
            return added
        if len(tokenizer) > model.get_input_embeddings().weight.shape[0]:
            model.resize_token_embeddings(len(tokenizer))
        if init == "pieces":
            _fill(model.get_input_embeddings().weight, tokenizer.convert_tokens_to_ids(new), pieces)
        return added

    def lacking(self, latex: Iterable[str], tokens: Tokenize = math_tokens) -> Counter[str]:
        """Count the math tokens of formulas that are none of these.

        Args:
            latex: formulas.
            tokens: LaTeX to tokens.
        """
        known = set(self.tokens)
        return Counter(token for one in latex for token in tokens(one) if _is_math(token) and token not in known)

    def warn_lacking(self, latex: Sequence[str], tokens: Tokenize = math_tokens) -> None:
        """Warn if formulas have math tokens that are none of these: a tokenizer then cuts them to pieces.

        Args:
            latex: formulas.
            tokens: LaTeX to tokens.
        """
        if not (lacking := self.lacking(latex, tokens)):
            return
        total = sum(_is_math(token) for one in latex for token in tokens(one))
        often = ", ".join(token for token, _ in sorted(lacking.items(), key=lambda item: (-item[1], item[0]))[:5])
        warnings.warn(
            MathAMRWarning(
                f"{lacking.total():,} of {total:,} formula tokens are not in the vocabulary of this model "
                f"({len(lacking):,} distinct, most often {often}) and are read in pieces. If the model has other "
                "names for them, give names= to math_tokens; else add them with MathVocabulary.add_to."
            ),
            stacklevel=2,
        )


def _is_math(token: str) -> bool:
    return _MATH.fullmatch(token) is not None


def _english(token: str) -> str:
    """Name a math token in words."""
    name = token[1:-1]
    if power := _POWER.fullmatch(name):
        return f"ten power {power[1]}"
    return _ENGLISH.get(name, name)


def _fill(rows: Any, ids: Sequence[int], pieces: Sequence[Sequence[int]]) -> None:
    """Make each new row the mean of others; of all, where its name has no pieces."""
    import torch  # heavy

    with torch.no_grad():
        mean = rows[: min(ids)].mean(dim=0) if ids else None
        for row, of in zip(ids, pieces, strict=True):
            rows[row] = rows[of].mean(dim=0) if of else mean
