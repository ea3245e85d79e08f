r"""From a formula to the sentence that fastText reads: its symbol pairs are words, their tokens are characters.

``x^2+1``, the symbol pairs of its layout tree within two edges, and the characters of the first::

    (x, 2, a)  (2, end, n)  (x, +, n)  (x, 1, nn)  (+, 1, n)  (1, end, n)

    V!  x  N!  2  a        in the tree of types: V!  N!  a

A formula has four sentences, one for each representation: layout tree (``slt``) and operator tree (``opt``), and both
trees of types, where ``V!x`` is ``V!``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal, get_args

from pyterrier_mathamr.formula import FormulaPair, FormulaTree

Representation = Literal["slt", "opt", "slt_type", "opt_type"]
REPRESENTATIONS: tuple[Representation, ...] = get_args(Representation)

Word = tuple[str, ...]
"""The tokens of a symbol pair; those of the path between its nodes begin with :data:`EDGE`."""

EDGE = "\0"
WINDOW = 2
_FIRST = 0xF0000  # private use: no token is a bracket, with which fastText marks the ends of a word
_CHARACTERS = 0x110000 - _FIRST - 1
UNKNOWN = chr(0x10FFFF)
"""The character of a token without one; no n-gram with it was trained."""


def sentences(pair: FormulaPair) -> dict[Representation, list[Word]]:
    """Write a formula in each representation, without those whose tree it lacks."""
    written: dict[Representation, list[Word]] = {}
    if pair.slt is not None:
        written["slt"], written["slt_type"] = _words(pair.slt, digits=True)
    if pair.opt is not None:
        written["opt"], written["opt_type"] = _words(pair.opt, digits=False)
    return written


def _words(tree: FormulaTree, *, digits: bool) -> tuple[list[Word], list[Word]]:
    """Return the words of a tree, and those of its types."""
    known: dict[str, tuple[Word, Word]] = {}

    def tokens(label: str) -> tuple[Word, Word]:
        if label not in known:
            known[label] = (_tokens(label, digits=digits), _type_tokens(label))
        return known[label]

    plain, types = [], []
    for above, below, path, _ in tree.tuples(WINDOW, eob=True):
        edges = tuple(EDGE + label for label in path)
        one, other = tokens(above), tokens(below)
        plain.append((*one[0], *other[0], *edges))
        types.append((*one[1], *other[1], *edges))
    return plain, types


def _tokens(label: str, *, digits: bool) -> Word:
    """Split a label into its type and its value, and in layout trees a number into its digits."""
    if label[1:2] != "!" or label == "O!":
        return (label,)
    kind, value = label[:2], label[2:].partition("!")[0]
    return (kind, *value) if digits and kind == "N!" else (kind, value)


def _type_tokens(label: str) -> Word:
    return (label[:2] if label[1:2] == "!" else label,)


class Characters:
    """The characters of tokens, numbered in the order of the tokens."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tokens

    @classmethod
    def of_words(cls, counts: Mapping[Word, int]) -> Characters:
        """Number the tokens of some words; of more than there are characters the rarest have none."""
        times: dict[str, int] = {}
        for word, count in counts.items():
            for token in word:
                times[token] = times.get(token, 0) + count
        kept = sorted(times, key=lambda token: (-times[token], token))[:_CHARACTERS]
        return cls(sorted(kept))

    @cached_property
    def _known(self) -> dict[str, str]:
        return {token: chr(_FIRST + number) for number, token in enumerate(self.tokens)}

    def spell(self, word: Word) -> str:
        """Write a word, one character for each token."""
        known = self._known
        return "".join([known.get(token, UNKNOWN) for token in word])
