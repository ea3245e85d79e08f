r"""Formulas as words of a language model (MaRF, appendix A; ColBERT on math text, §4.3).

::

    \frac{X}{2}<\pi      ──▶  $frac$ $X$ $2$ $less$ $pi$
    305                  ──▶  $3$ $0$ $5$              numbers="characters"
                              $3$ $10e2$ $5$ $10e0$    numbers="10e"
    \frac12              ──▶  $frac$ $bgroup$ $1$ $egroup$ $bgroup$ $2$ $egroup$    braces=True

`lex_latex` reads the LaTeX, as for BM25: it unifies spellings of a symbol and drops commands that only lay out.
Omitted braces of arguments are completed: ``\frac12`` has the two arguments of ``\frac{1}{2}``.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pyterrier_mathamr.extending import NUMBER, SYMBOL_NAMES, TEXT, MathAMRWarning, lex_latex, one_of, repair, require
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, latex_of_unicode

OPEN, CLOSE = "{", "}"
"""Tokens of the two ends of an argument."""

NumberTokens = Literal["characters", "10e"]
"""How numbers are written: as digits, or as each non-zero digit with its power of ten."""

Tokenize = Callable[[str], Sequence[str]]
"""LaTeX to its math tokens: `math_tokens` with any of its options."""

_BRACES = {OPEN: "bgroup", CLOSE: "egroup"}  # the commands of TeX that are these braces
_WORDS = "\ue010"  # replaces words of \text while the formula is read
_INVISIBLE = re.compile(r"\\(?:left|right|middle)\s*\.")


def math_tokens(
    latex: str,
    *,
    numbers: NumberTokens = "characters",
    braces: bool = False,
    case: bool = True,
    names: Mapping[str, str] | None = None,
) -> list[str]:
    r"""Name each symbol of a formula for a language model: ``\frac{X}{2}`` is ``$frac$ $X$ $2$``.

    A name is from BM25's table of symbols, else the command without its backslash, else the character itself. Words
    of ``\text`` stay words, in their place: the language model knows them (the papers are silent).

    Args:
        latex: LaTeX without dollars; it need not be well-formed.
        numbers: ``characters`` writes a token a digit and ``$point$`` (Zhong et al. 2022, §4.3); ``10e`` writes each
            non-zero digit with its power of ten, as MaRF's example writes 30 as ``3 10e 1``. The number zero is
            ``$0$`` (the paper is silent on zeros).
        braces: write where the arguments of commands begin and end, omitted braces completed and unpaired ones
            repaired (MaRF, appendix A.1). The paper gives no names for them: ``$bgroup$`` and ``$egroup$``, as in TeX.
        case: keep capitals; ``False`` for checkpoints whose tokenizer lower-cased variables.
        names: names that differ, by LaTeX token as spelled by `lex_latex`: ``{"<": "lt"}``. Checkpoints
            of others need the names in their tokenizer.

    Returns:
        ``$name$`` for each symbol, in order, without white space inside.

    Raises:
        ConfigError: ``numbers`` has another value.

    >>> math_tokens(r"\frac{X}{2}<\pi")
    ['$frac$', '$X$', '$2$', '$less$', '$pi$']
    >>> math_tokens("4.07", numbers="10e")
    ['$4$', '$10e0$', '$7$', '$10e-2$']
    """
    one_of(*get_args(NumberTokens)).check("numbers", numbers)
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
    """Write a post for a language model: each formula as its tokens, other text unchanged."""
    latex = [formula.latex for formula in post.formulas]
    return PLACEHOLDER.sub(lambda mark: " ".join(tokens(latex[int(mark[0].rpartition("_")[2])])), post.text)


def _names(token: str, numbers: NumberTokens, known: Mapping[str, str]) -> Iterator[str]:
    if not token[0].isdigit():
        yield known.get(token) or token.removeprefix("\\")
    elif numbers == "characters":
        yield from (known.get(digit, digit) if digit != "." else "point" for digit in token)
    else:  # each digit that is not zero, then its power of ten
        whole, _, _ = token.partition(".")
        digits = [(digit, len(whole) - 1 - i) for i, digit in enumerate(token.replace(".", "")) if digit != "0"]
        for digit, power in digits:
            yield from (digit, f"10e{power}")
        if not digits:
            yield "0"


_ONE = r"""
    ^ _ \sqrt \pmod \mathbb \mathbf \mathcal \mathfrak \mathscr \mathsf \mathit \mathtt \boldsymbol \bm \bar \hat \tilde
    \vec \dot \ddot \acute \grave \breve \check \widehat \widetilde \overline \underline \overbrace \underbrace
    \overrightarrow \overleftarrow \boxed \substack \xrightarrow \xleftarrow
    """
_TWO = r"\frac \binom \overset \underset \stackrel"
_ARGUMENTS = dict.fromkeys(_ONE.split(), 1) | dict.fromkeys(_TWO.split(), 2)
_WITH_OPTION = frozenset({r"\sqrt", r"\xrightarrow", r"\xleftarrow"})
_AFTER_DIGIT = re.compile(rf"{NUMBER.pattern}|\.")


@dataclass(slots=True)
class _Level:
    """A part of a formula that is being read."""

    kind: str  # argument in braces, bare without them, group in braces that bound no argument, option
    missing: int = 0  # arguments that its last command still needs


def with_arguments(tokens: Sequence[str]) -> Iterator[str]:
    """Write braces around each argument and around nothing else."""
    rest, levels, before = deque(tokens), [_Level("formula")], ""
    while rest:
        token = rest.popleft()
        if token == CLOSE:
            yield from _close_brace(levels)
        elif token == "[" and before in _WITH_OPTION and levels[-1].missing:
            levels.append(_Level("option"))
            yield token
        elif token == "]" and levels[-1].kind == "option":
            levels.pop()
            yield token
        elif token == OPEN:
            argument = levels[-1].missing > 0
            levels[-1].missing -= argument
            levels.append(_Level("argument" if argument else "group"))
            if argument:
                yield OPEN
        else:
            symbol = token
            if levels[-1].missing:  # it is an argument of the last command
                levels[-1].missing -= 1
                levels.append(_Level("bare"))
                yield OPEN
                if token[0].isdigit() and len(token) > 1:
                    rest.extendleft(reversed(_AFTER_DIGIT.findall(token[1:])))
                    symbol = token[0]
            yield symbol
            levels[-1].missing = _ARGUMENTS.get(symbol, 0)
            yield from _end_bare(levels)
        before = token
    for level in reversed(levels):
        if level.kind in ("argument", "bare"):
            yield CLOSE


def _close_brace(levels: list[_Level]) -> Iterator[str]:
    """End a group or argument, and before it all that its last commands lack; a brace too many is dropped."""
    if all(level.kind not in ("argument", "group") for level in levels):
        return
    while (level := levels.pop()).kind in ("bare", "option"):
        if level.kind == "bare":
            yield CLOSE
    if level.kind == "argument":
        yield CLOSE
    yield from _end_bare(levels)


def _end_bare(levels: list[_Level]) -> Iterator[str]:
    """End arguments without braces whose commands have all of theirs."""
    while levels[-1].kind == "bare" and not levels[-1].missing:
        levels.pop()
        yield CLOSE


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
        """Count the math tokens of posts; the result has them by descending count, equal counts by name.

        Args:
            posts: read once, one at a time.
            min_count: rarer tokens are left out; they stay the pieces that the tokenizer has for them. The published
                vocabulary has 1,000 to 1,100 tokens.
            tokens: LaTeX to tokens.
        """
        counts = Counter(
            token for post in posts for formula in post.formulas for token in tokens(formula.latex) if _is_math(token)
        )
        kept = [token for token, count in counts.items() if count >= min_count]
        return cls(tuple(sorted(kept, key=lambda token: (-counts[token], token))))

    @classmethod
    def of(cls, tokenizer: Any) -> MathVocabulary:
        """List the math tokens that a tokenizer of transformers has, by id."""
        ids: dict[str, int] = tokenizer.get_vocab()
        return cls(tuple(sorted(filter(_is_math, ids), key=ids.__getitem__)))

    def add_to(
        self, tokenizer: Any, model: Any, init: Literal["pieces", "random"] = "pieces", *, case: bool = True
    ) -> int:
        """Add the tokens that a tokenizer lacks, and a row to the model's input embeddings for each.

        Args:
            tokenizer: of transformers; changed.
            model: of transformers; its embeddings grow. ``None`` changes only the tokenizer.
            init: ``pieces`` makes a new row the mean of the rows of the pieces of the token's English name, so that
                ``$int$`` begins as *integral* (the papers are silent); ``random`` keeps the rows made by resizing.
            case: the tokens keep their capitals even if the tokenizer lower-cases text.

        Returns:
            How many were added.

        Raises:
            ConfigError: ``init`` has another value.
        """
        one_of("pieces", "random").check("init", init)
        had = tokenizer.get_vocab()
        new = [token for token in self.tokens if token not in had]
        pieces = []
        for name in (token[1:-1] for token in new):
            power = _POWER.fullmatch(name)
            english = f"ten power {power[1]}" if power else _ENGLISH.get(name, name)
            pieces.append(tokenizer(english, add_special_tokens=False)["input_ids"])
        added_token = require("transformers", "answers").AddedToken
        added: int = tokenizer.add_tokens([added_token(token, normalized=not case) for token in new])
        if model is None:
            return added
        if len(tokenizer) > model.get_input_embeddings().weight.shape[0]:
            model.resize_token_embeddings(len(tokenizer))
        if init == "pieces" and new:
            import torch  # heavy

            rows, ids = model.get_input_embeddings().weight, tokenizer.convert_tokens_to_ids(new)
            with torch.no_grad():
                mean = rows[: min(ids)].mean(dim=0)  # for a name without pieces
                for row, piece_ids in zip(ids, pieces, strict=True):
                    rows[row] = rows[piece_ids].mean(dim=0) if piece_ids else mean
        return added

    def warn_lacking(self, latex: Iterable[str], tokens: Tokenize = math_tokens) -> None:
        """Warn if formulas have math tokens that are none of these: a tokenizer then cuts them to pieces.

        Args:
            latex: the formulas.
            tokens: cuts a formula to its tokens.
        """
        counts = Counter(token for one in latex for token in tokens(one) if _is_math(token))
        total, known = counts.total(), set(self.tokens)
        lacking = Counter({token: count for token, count in counts.items() if token not in known})
        if not lacking:
            return
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
