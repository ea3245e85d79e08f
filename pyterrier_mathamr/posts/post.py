"""`MathPost`: the text of a post with a placeholder for each formula.

    "Prove that <span class=math-container id=7>x^2</span>&gt;0."   text      "Prove that FORMULA_0>0."
                                                                    formulas  (PostFormula("x^2", "7"),)

A ``FORMULA_3`` that a user typed becomes ``FORMULA-3``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyterrier_mathamr._common.types import FormulaId

from .math_spans import CODE_BACKSLASH, CODE_DOLLAR, MARK, math_spans
from .sentences import PLACEHOLDER, split_sentences

_TYPED_PLACEHOLDER = re.compile(r"FORMULA_(?=\d)")
_BLANKS = re.compile(r"[^\S\n]+")


@dataclass(frozen=True, slots=True)
class PostFormula:
    """A formula of a post.

    Attributes:
        latex: its LaTeX without the delimiting dollars.
        id: its identifier in the collection, or empty.
    """

    latex: str
    id: FormulaId = ""


@dataclass(frozen=True, slots=True)
class MathPost:
    """A post as text and formulas (MathAMR+, section 3.1).

    Attributes:
        text: the blocks, one on each line; formula ``i`` is the word ``FORMULA_i``, in order.
        formulas: the formulas.
    """

    text: str
    formulas: tuple[PostFormula, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences of the text, see `split_sentences`."""
        return split_sentences(self.text)


def placeholder(i: int) -> str:
    """Return the word in the place of formula ``i``."""
    return f"FORMULA_{i}"


def plain_text(post: MathPost) -> str:
    """Write a post as text with each formula as ``$latex$``."""
    return PLACEHOLDER.sub(lambda match: f"${post.formulas[int(match[1])].latex}$", post.text)


def assemble(flat: str, marked: Sequence[PostFormula]) -> MathPost:
    """Replace the formulas of a text by placeholders.

    Args:
        flat: text with a `MARK` for each formula that is already known; blocks end with a line end.
        marked: the formulas of the marks, in order. More are found between dollars and other delimiters.

    Returns:
        The post, its white space normalised.
    """
    known = iter(marked)
    formulas: list[PostFormula] = []
    pieces: list[str] = []
    at = 0
    for start, end, latex in math_spans(flat):
        _add_text(flat[at:start], known, formulas, pieces)
        _add_formula(PostFormula(latex), formulas, pieces)
        at = end
    _add_text(flat[at:], known, formulas, pieces)
    lines = (_BLANKS.sub(" ", line).strip() for line in "".join(pieces).split("\n"))
    return MathPost("\n".join(line for line in lines if line), tuple(formulas))


def _add_text(text: str, known: Iterator[PostFormula], formulas: list[PostFormula], pieces: list[str]) -> None:
    for i, piece in enumerate(text.split(MARK)):
        if i:
            _add_formula(next(known), formulas, pieces)
        if piece:
            piece = piece.replace("\\$", "$").replace(CODE_DOLLAR, "$").replace(CODE_BACKSLASH, "\\")
            glued = pieces and pieces[-1].startswith("FORMULA_") and (piece[0].isalnum() or piece[0] == "_")
            pieces.append((" " if glued else "") + _TYPED_PLACEHOLDER.sub("FORMULA-", piece))


def _add_formula(formula: PostFormula, formulas: list[PostFormula], pieces: list[str]) -> None:
    if pieces and (pieces[-1][-1].isalnum() or pieces[-1][-1] == "_"):
        pieces.append(" ")
    pieces.append(placeholder(len(formulas)))
    formulas.append(formula)
