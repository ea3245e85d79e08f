"""Tokens of a sentence as Universal Dependencies cuts them, and the features by which the syntax network knows a token.

"FORMULA_0-module doesn't"  ->  FORMULA_0  -  module  does  n't
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .stand_ins import STAND_INS

FEATURES = ("word", "suffix3", "suffix2", "prefix3", "shape")
"""The features of a token; each has its own entries in the vocabulary, written ``feature=value``."""

_TOKEN = re.compile(
    r"FORMULA_\d+|if\s+and\s+only\s+if\b|https?://\S+|www\.\S+"
    r"|(?:[A-Za-z]\.){2,}|\d+(?:[.,]\d+)*|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b"
    r"|\bcan(?=not\b)|[^\W\d_]+?(?=n['’]t\b)|[^\W\d_]+(?:\d+)?|\.{2,}|\S",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"FORMULA_\d+")
_DIGIT = re.compile(r"\d")


def tokenize(sentence: str) -> list[str]:
    """Cut a sentence into tokens; a placeholder is one token, and "if and only if" is the token "iff"."""
    return ["iff" if token[:3].lower() == "if " else token for token in _TOKEN.findall(sentence)]


def is_placeholder(token: str) -> bool:
    """Whether a token stands for a formula."""
    return _PLACEHOLDER.fullmatch(token) is not None


class Features(NamedTuple):
    """The features of one token, in the order of `FEATURES`."""

    word: str
    suffix3: str
    suffix2: str
    prefix3: str
    shape: str


def features_of(token: str) -> Features:
    """Give the features of a token; all formulas have the same."""
    if is_placeholder(token):
        return Features("FORMULA", "", "", "", "formula")
    lower = _DIGIT.sub("0", token.lower().replace("’", "'"))
    if token.isalpha():
        shape = "lower" if token.islower() else "upper" if token.isupper() else "title" if token.istitle() else "mixed"
    else:
        shape = "number" if lower[0] == "0" else "other" if lower.isalnum() else "mark" if len(lower) == 1 else "marks"
    return Features(lower, lower[-3:], lower[-2:], lower[:3], shape)


def feature_ids(
    tokens: Sequence[str], vocabulary: Mapping[str, int], memory: dict[str, tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Number the features of tokens.

    Args:
        tokens: the tokens.
        vocabulary: number of each ``feature=value``; 0 stands for what is not in it.
        memory: the answers so far, filled by this function.

    Returns:
        For each token one number for each of `FEATURES`.
    """
    found = []
    for token in tokens:
        ids = memory.get(token)
        if ids is None:
            features = features_of(token)
            if features.word in STAND_INS and f"word={features.word}" not in vocabulary:
                features = features_of(STAND_INS[features.word])._replace(shape=features.shape)
            values = zip(FEATURES, features, strict=True)
            ids = memory[token] = tuple(vocabulary.get(f"{name}={value}", 0) for name, value in values)
        found.append(ids)
    return found
