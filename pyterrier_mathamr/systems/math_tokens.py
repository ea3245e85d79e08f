r"""Math tokens: a formula as words of a language model's vocabulary (MaRF, appendix A; ColBERT on math text, §4.3).

::

    \frac{X}{2}<\pi      ──▶  $frac$ $X$ $2$ $less$ $pi$
    305                  ──▶  $3$ $0$ $5$              numbers="characters"
                              $3$ $10e2$ $5$ $10e0$    numbers="10e"
    \frac12              ──▶  $frac$ $bgroup$ $1$ $egroup$ $bgroup$ $2$ $egroup$    braces=True

`lex_latex` reads the LaTeX, as for BM25: of several spellings of a symbol one remains, and what only lays out is gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from pyterrier_mathamr._common.parameters import one_of
from pyterrier_mathamr.formula.tex.converter import repair
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, latex_of_unicode
from pyterrier_mathamr.sparse.bm25.lexer import TEXT, lex_latex
from pyterrier_mathamr.sparse.bm25.symbols import SYMBOL_NAMES

from .latex_arguments import CLOSE, OPEN, with_arguments

Numbers = Literal["characters", "10e"]
"""How numbers are written: each digit alone, or each digit that is not zero with its power of ten."""

Tokenize = Callable[[str], Sequence[str]]
"""LaTeX to its math tokens: `math_tokens` with any of its options."""

_NUMBERS = one_of("characters", "10e")
_BRACES = {OPEN: "bgroup", CLOSE: "egroup"}  # the commands of TeX that are these braces
_WORDS = "\ue010"  # stands for words of \text while the formula is read
_INVISIBLE = re.compile(r"\\(?:left|right|middle)\s*\.")


def math_tokens(
    latex: str,
    *,
    numbers: Numbers = "characters",
    braces: bool = False,
    case: bool = True,
    names: Mapping[str, str] | None = None,
) -> list[str]:
    r"""Name each symbol of a formula for a language model: ``\frac{X}{2}`` is ``$frac$ $X$ $2$``.

    A name is that of BM25's table of symbols, else the command without its backslash, else the character itself. Words
    of ``\text`` stay words, in their place: the language model knows them (the papers are silent).

    Args:
        latex: LaTeX without dollars; it need not be well-formed.
        numbers: ``characters`` writes a token a digit and ``$point$`` (Zhong et al. 2022, §4.3); ``10e`` writes each
            digit that is not zero with its power of ten, as MaRF's example writes 30 as ``3 10e 1``. Zero alone is
            ``$0$`` (the paper is silent on zeros).
        braces: write where the arguments of commands begin and end, omitted braces completed and unpaired ones
            repaired (MaRF, appendix A.1). The paper prints no names for them: ``$bgroup$`` and ``$egroup$``, as in TeX.
        case: keep capitals; ``False`` for checkpoints whose tokenizer lower-cased variables.
        names: names that differ, by LaTeX token in the spelling that `lex_latex` gives: ``{"<": "lt"}``. Checkpoints
            of others need the names that their tokenizer has.

    Returns:
        ``$name$`` for each symbol, in order, without white space inside.

    Raises:
        ConfigError: another form of numbers.

    >>> math_tokens(r"\frac{X}{2}<\pi")
    ['$frac$', '$X$', '$2$', '$less$', '$pi$']
    >>> math_tokens("4.07", numbers="10e")
    ['$4$', '$10e0$', '$7$', '$10e-2$']
    """
    _NUMBERS.check("numbers", numbers)
    latex = latex_of_unicode(latex.replace(_WORDS, ""))
    words = (match.group(1).split() for match in TEXT.finditer(latex))
    latex = TEXT.sub(f" {_WORDS} ", latex)
    lexed = lex_latex(_INVISIBLE.sub(" ", repair(latex) if braces else latex), braces=True)
    known = SYMBOL_NAMES | _BRACES | dict(names or {})
    found: list[str] = []
    for token in with_arguments(lexed):
        if token == _WORDS:
            found += next(words, [])
        elif braces or token not in _BRACES:
            found += (f"${name}$" for name in _names(token, numbers, known))
    return found if case else [token.lower() for token in found]


def post_text(post: MathPost, tokens: Tokenize = math_tokens) -> str:
    """Write a post as a language model reads it: each formula as its tokens, text outside as it is.

    Args:
        post: text with placeholders, and its formulas.
        tokens: LaTeX to tokens.

    Returns:
        The text, in which each placeholder is replaced.
    """
    latex = [formula.latex for formula in post.formulas]
    return PLACEHOLDER.sub(lambda mark: " ".join(tokens(latex[int(mark[0].rpartition("_")[2])])), post.text)


def _names(token: str, numbers: Numbers, known: Mapping[str, str]) -> Iterator[str]:
    """Name a token; a number has several names."""
    if not token[0].isdigit():
        yield known.get(token) or token.removeprefix("\\")
    elif numbers == "characters":
        yield from (known.get(digit, digit) if digit != "." else "point" for digit in token)
    else:
        yield from _powers(token)


def _powers(number: str) -> Iterator[str]:
    """Write each digit that is not zero, then its power of ten."""
    whole, _, _ = number.partition(".")
    digits = [(digit, len(whole) - 1 - i) for i, digit in enumerate(number.replace(".", "")) if digit != "0"]
    for digit, power in digits:
        yield from (digit, f"10e{power}")
    if not digits:
        yield "0"
