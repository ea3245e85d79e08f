r"""Tokens of a post for sparse retrieval: stemmed words, named symbols, and pairs of neighbours.

A formula is cut at its LaTeX tokens, and each gets a name of letters and digits alone, so that neither lower-casing
nor a tokenizer loses it::

    Find $\frac{X}{2}<\pi$      find · mathfrac mathcapx math2 mathless mathpi ·
                                mathfrac_mathcapx mathcapx_math2 math2_mathless mathless_mathpi

What only lays a formula out (``\left``, ``\displaystyle``, braces, spaces) has no name. Scripts, brackets and commas
are in almost every formula: alone they tell nothing, and occur in pairs only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import pairwise
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.extras import require
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost

from .symbols import COMMAND_ALIASES, LAYOUT, PAIRS_ONLY, STOP_WORDS, SYMBOL_NAMES

_WORD = re.compile(r"[^\W_]+")
_TEX = re.compile(r"\\[a-zA-Z]+|\\[^a-zA-Z]|\d+(?:\.\d+)?|[^\s]")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{[a-zA-Z*]*\}(?:\s*\{[lcr|\s]*\})?")
_OPERATOR = re.compile(r"\\(?:operatorname\*?|mathrm|mathop)\s*\{\s*(?:\\mathrm\s*\{\s*)?([a-zA-Z]{2,})\s*(?:\}\s*)?\}")
_TEXT = re.compile(r"\\(?:text(?:rm|bf|it|sf|tt|normal|up)?|mbox|hbox)\s*\{([^{}]*)\}")
_PRIMES = re.compile(r"'+")


@dataclass(frozen=True, slots=True)
class TokenOptions:
    """How posts are cut into tokens; documents and queries of an index always share them.

    Args:
        stop_words: leave the function words of English out.
        stem: reduce words with the Porter 2 stemmer.
        bigrams: add each pair of neighbouring words of a stretch of text and of neighbouring symbols of a formula.
    """

    stop_words: bool = True
    stem: bool = True
    bigrams: bool = True

    def to_dict(self) -> dict[str, bool]:
        """Give the options as plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TokenOptions:
        """Make options from plain values.

        Args:
            values: option name to ``bool``; absent options keep their default.

        Returns:
            The options.

        Raises:
            ConfigError: a name is not an option, or a value is not ``bool``.
        """
        known = [field.name for field in fields(cls)]
        for name, value in values.items():
            if name not in known or not isinstance(value, bool):
                raise ConfigError(f"tokens[{name!r}]", value, f"only the options {', '.join(known)}, true or false")
        return cls(**values)


STRONG_TOKENS = TokenOptions()
"""The default: what finds most."""

PLAIN_TOKENS = TokenOptions(stop_words=False, stem=False, bigrams=False)
"""Words and symbols as they are: what a general search engine makes of a post."""


def post_tokens(post: MathPost, options: TokenOptions = STRONG_TOKENS) -> list[str]:
    """Cut a post into tokens, formulas in their place.

    Args:
        post: text with placeholders, and its formulas.
        options: which tokens.

    Returns:
        The tokens in order of the post, repeated as often as they occur; none has white space in it.

    Raises:
        MissingExtraError: stemming is wanted and PyStemmer is not installed.
    """
    tokens: list[str] = []
    start = 0
    for match in PLACEHOLDER.finditer(post.text):
        tokens += word_tokens(post.text[start : match.start()], options)
        number = int(match.group().rpartition("_")[2])
        tokens += formula_tokens(post.formulas[number].latex, options)
        start = match.end()
    return tokens + word_tokens(post.text[start:], options)


def word_tokens(text: str, options: TokenOptions = STRONG_TOKENS) -> list[str]:
    """Cut a stretch of plain text into words, then pairs of words joined by ``_``.

    Args:
        text: text without formulas.
        options: which tokens.

    Returns:
        The words in order, then the pairs in order.
    """
    words = _WORD.findall(unicodedata.normalize("NFKC", text).lower())
    if options.stop_words:
        words = [word for word in words if word not in STOP_WORDS]
    if options.stem:
        words = _stemmer()(words)
    return words + _pairs(words) if options.bigrams else words


def formula_tokens(latex: str, options: TokenOptions = STRONG_TOKENS) -> list[str]:
    r"""Name the symbols of a formula, then pairs of neighbours joined by ``_``; words of ``\text`` count as words.

    Args:
        latex: LaTeX without dollars; it need not be well-formed.
        options: which tokens.

    Returns:
        The names in order, then the pairs in order, then the words of ``\text``.
    """
    words = [token for match in _TEXT.finditer(latex) for token in word_tokens(match.group(1), options)]
    symbols = _symbols(_TEXT.sub(" ", latex))
    if not options.bigrams:
        return symbols + words
    return [name for name in symbols if name not in PAIRS_ONLY] + _pairs(symbols) + words


def _symbols(latex: str) -> list[str]:
    """Name each LaTeX token, in order, without those that only lay out."""
    latex = _ENVIRONMENT.sub(" ", unicodedata.normalize("NFKC", latex))
    latex = _PRIMES.sub(lambda marks: "^" + r"\prime" * len(marks.group()), latex)
    latex = _OPERATOR.sub(r"\\\1 ", latex)
    return ["math" + _name(token) for token in _TEX.findall(latex) if token not in LAYOUT]


@lru_cache(maxsize=65_536)
def _name(token: str) -> str:
    """Name one LaTeX token with letters and digits alone; capitals survive lower-casing."""
    token = COMMAND_ALIASES.get(token, token)
    if token in SYMBOL_NAMES:
        return SYMBOL_NAMES[token]
    name = token.removeprefix("\\").replace(".", "point")
    if not name.isalnum():
        return "u" + "".join(f"{ord(character):x}" for character in name)
    return "cap" + name.lower() if name[0].isupper() else name.lower()


def _pairs(tokens: list[str]) -> list[str]:
    """Join each token to the next."""
    return [f"{left}_{right}" for left, right in pairwise(tokens)]


@lru_cache(maxsize=1)
def _stemmer() -> Callable[[list[str]], list[str]]:
    """Make the stemmer once; it keeps a cache of words."""
    stem: Callable[[list[str]], list[str]] = require("Stemmer", "bm25").Stemmer("english").stemWords
    return stem
