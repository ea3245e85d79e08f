"""Normalisation of node labels for the vocabulary (MathAMR+, section 3.3.1).

One example of each rule::

    V!𝑥                     V!x             NFKC: compatibility variants to one form
    https://en.wikipedia…   [URL]           anything with ``http`` or ``www.``
    FORMULA_12              [FORMULA]       placeholders
    continuity              continu         Porter stem of an AMR concept; constants and formula symbols stay
    solve-01                solve-01        PropBank frames stay
    N!1729, 1729            [UNKNUM_INT]    numbers seen fewer than five times, by type (``number_token``)
"""

from __future__ import annotations

import re
import unicodedata

from snowballstemmer.porter_stemmer import PorterStemmer

from pyterrier_mathamr.graph.structure import NodeKind, placeholder_number

NORMALISATION_VERSION = 1
"""The version of these rules, part of the vocabulary's hash: a change alters the meaning of ids."""

URL, FORMULA = "[URL]", "[FORMULA]"
UNKNUM_INT, UNKNUM_DEC, UNKNUM_RAT = "[UNKNUM_INT]", "[UNKNUM_DEC]", "[UNKNUM_RAT]"

_FRAME = re.compile(r".*-[0-9]+")
_INTEGER = r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)"
_POINT = r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)"
_NUMBERS = (
    (re.compile(_INTEGER), UNKNUM_INT),
    (re.compile(rf"{_POINT}|(?:{_POINT}|{_INTEGER})[eE][+-]?[0-9]+"), UNKNUM_DEC),
    (re.compile(rf"{_INTEGER} *[/\u2044] *[0-9]+"), UNKNUM_RAT),  # U+2044 is what NFKC makes of one-character fractions
)
_LONGEST_WORD = 64


def normalise(label: str, kind: NodeKind) -> str:
    """Map the variants of a label to one form; numbers are unchanged.

    Args:
        label: the label of a node.
        kind: what the node is; concepts are stemmed, formula symbols are never placeholders.

    Returns:
        The form that is counted and looked up.
    """
    text = unicodedata.normalize("NFKC", label)
    folded = text.casefold()
    if "http" in folded or "www." in folded:
        return URL
    if kind >= NodeKind.OPT:
        return text
    if placeholder_number(text) >= 0:
        return FORMULA
    if kind is not NodeKind.CONCEPT or len(text) > _LONGEST_WORD or _FRAME.fullmatch(text):
        return text
    stem: str = PorterStemmer().stemWord(text)  # a new one each time: a stemmer stores the word in itself
    return stem


def number_token(text: str) -> str | None:
    """Return the token of rare numbers of the type of a number, or ``None`` where the text is no number."""
    digits = text.removeprefix("N!").replace("&comma;", ",")
    if not digits[-1:].isascii() or not (digits[-1:].isdigit() or digits[-1:] == "."):
        return None
    return next((token for pattern, token in _NUMBERS if pattern.fullmatch(digits)), None)
