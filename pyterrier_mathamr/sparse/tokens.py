r"""Tokens of a post for sparse retrieval: stemmed words, named symbols, and, if wanted, pairs of neighbors.

A formula is cut at its LaTeX tokens, and each gets a name of letters and digits only, so that neither lower-casing
nor a tokenizer loses it::

    Find $\frac{X}{2}<\pi$      find · mathfrac mathcapx math2 mathless mathpi ·
                                mathfrac_mathcapx mathcapx_math2 math2_mathless mathless_mathpi

Layout commands (``\left``, ``\displaystyle``, braces, spaces) have no name. Scripts, brackets and commas are in almost
every formula, so an index of pairs has them in pairs only. The words of dense retrieval begin with the same tokens.

Scripts without spaces, and Korean, whose words have endings, are cut into characters and pairs of neighboring ones.
Elsewhere words end where Unicode ends them: a vowel sign or an accent belongs to its letter::

    完备性      完 · 备 · 性 · 完备 · 备性

Letters mislead: $x^2+x$ and $t^2+t$ have few tokens in common, $x^2+x$ and $x^2-x$ most. So a formula can also have a
token for each sub-expression of its operator tree, a number that stands for its structure without letters::

    $x^2+x$     #5ad…  for ▢₀^2     #c03…  for ▢₀^2+▢₀
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import Stemmer

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.formula import definitions, one_text, trees_of_posts
from pyterrier_mathamr.formula.located import line_trees
from pyterrier_mathamr.formula.matching import read_terms, structures
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, latex_of_unicode

SYMBOL_NAMES: dict[str, str] = {  # symbols without letters
    "+": "plus", "-": "minus", "=": "equals", "<": "less", ">": "greater", "*": "star", "/": "slash", "!": "factorial",
    "|": "bar", "^": "sup", "_": "sub", "(": "lparen", ")": "rparen", "[": "lbracket", "]": "rbracket", ",": "comma",
    ".": "dot", ":": "colon", ";": "semicolon", "?": "query", "\\{": "lbrace", "\\}": "rbrace", "\\|": "norm",
    "\\%": "percent", "\\#": "hash", "\\_": "underscore", "\\$": "dollar",
}  # fmt: skip
COMMAND_ALIASES: dict[str, str] = {  # spellings of a symbol, to one of them
    "\\dfrac": "\\frac", "\\tfrac": "\\frac", "\\cfrac": "\\frac", "\\dbinom": "\\binom", "\\tbinom": "\\binom",
    "\\le": "\\leq", "\\leqslant": "\\leq", "≤": "\\leq", "\\ge": "\\geq", "\\geqslant": "\\geq", "≥": "\\geq",
    "\\lt": "<", "\\gt": ">", "\\ne": "\\neq", "≠": "\\neq", "\\to": "\\rightarrow", "→": "\\rightarrow",
    "\\Longrightarrow": "\\Rightarrow", "\\implies": "\\Rightarrow", "\\longrightarrow": "\\rightarrow",
    "\\iff": "\\Leftrightarrow", "\\Longleftrightarrow": "\\Leftrightarrow", "\\land": "\\wedge", "\\lor": "\\vee",
    "\\lnot": "\\neg", "\\vert": "|", "\\lvert": "|", "\\rvert": "|", "\\mid": "|", "\\Vert": "\\|", "\\lVert": "\\|",
    "\\rVert": "\\|", "\\lbrace": "\\{", "\\rbrace": "\\}", "\\lbrack": "[", "\\rbrack": "]", "\\colon": ":",
    "\\dots": "\\ldots", "\\cdots": "\\ldots", "\\dotsc": "\\ldots", "\\dotsb": "\\ldots",
    "\\varepsilon": "\\epsilon", "\\varphi": "\\phi", "\\emptyset": "\\varnothing", "∞": "\\infty", "−": "-",
    "\\ast": "*", "\\owns": "\\ni", "∈": "\\in", "\\Bbb": "\\mathbb", "\\smallsetminus": "\\setminus",
}  # fmt: skip
_LAYOUT = r"""
    \displaystyle \textstyle \scriptstyle \scriptscriptstyle \limits \nolimits \left \right \middle \big \Big \bigg
    \Bigg \bigl \bigr \Bigl \Bigr \biggl \biggr \Biggl \Biggr \bigm \Bigm \quad \qquad \hspace \hfill \phantom \hphantom
    \vphantom \strut \mathstrut \nonumber \label \tag \color \rm \bf \it \tt \sf \cal \mskip \kern \hline
    \cr \newline \allowbreak \mathopen \mathclose \mathbin \mathrel \mathord \mathpunct \mathinner \mathop \mathrm
    \operatorname \, \; \: \! \> \/ \\ { } & $ ~ % \
    """
LAYOUT: frozenset[str] = frozenset(_LAYOUT.split()) | {"\\ ", "\\\n", "\\\t"}  # the look of a formula
PAIRS_ONLY: frozenset[str] = frozenset({"mathsup", "mathsub", "mathlparen", "mathrparen", "mathcomma", "mathdot"})

_STOP_WORDS = """
    a about above after again against all am an and any are aren as at be because been before being below between both
    but by can cannot could couldn d did didn do does doesn doing don down during each few for from further had hadn has
    hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself just ll m ma
    me mightn more most mustn my myself needn no nor not now o of off on once only or other our ours ourselves out over
    own re s same shan she should shouldn so some such t than that the their theirs them themselves then there these
    they this those through to too under until up ve very was wasn we were weren what when where which while who whom
    why will with won would wouldn y you your yours yourself yourselves
    """
STOP_WORDS: frozenset[str] = frozenset(_STOP_WORDS.split())  # and tails that the apostrophe leaves: isn't is isn, t
_TERRIER = Path(__file__).resolve().parents[1] / "data" / "stop-words" / "terrier.txt"

TEXT = re.compile(r"\\(?:text(?:rm|bf|it|sf|tt|normal|up)?|mbox|hbox)\s*\{([^{}]*)\}")  # group 1 has the words
NUMBER = re.compile(r"\d+(?:\.\d+)?")
_TOKEN = re.compile(rf"\\[a-zA-Z]+|\\[^a-zA-Z]|{NUMBER.pattern}|[^\s]")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{[a-zA-Z*]*\}(?:\s*\{[lcr|\s]*\})?")
_OPERATOR = re.compile(r"\\(?:operatorname\*?|mathrm|mathop)\s*\{\s*(?:\\mathrm\s*\{\s*)?([a-zA-Z]{2,})\s*(?:\}\s*)?\}")
_PRIMES = re.compile(r"'+")


def lex_latex(latex: str, *, braces: bool = False) -> list[str]:
    r"""Cut a formula into its LaTeX tokens, each in one of its spellings, without what only lays out."""
    latex = _ENVIRONMENT.sub(" ", unicodedata.normalize("NFKC", latex))
    form = "^{{{}}}" if braces else "^{}"
    latex = _PRIMES.sub(lambda marks: form.format(r"\prime" * len(marks.group())), latex)
    latex = _OPERATOR.sub(r"\\\1 ", latex)
    kept = LAYOUT - {"{", "}"} if braces else LAYOUT
    return [COMMAND_ALIASES.get(token, token) for token in _TOKEN.findall(latex) if token not in kept]


_WORD = re.compile(r"[^\W_]+")
_WORD_OR_REST = re.compile(r"[^\W_]+|[\W_]+")
_OTHER_SCRIPT = re.compile("[\u0300-\u036f\u0483-\u1dff\u200c\u200d\u20d0-\u20ff\u2cef-\U0010ffff]")
"""Marks, scripts without spaces and more; texts without these have words of letters and digits only."""
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc"  # Hangul
    "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001b000-\U0001b16f"  # Hiragana, Katakana
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u302f\u3038-\u303b\u3100-\u312f\u31a0-\u31bf"  # Han and Bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = range(0x300, 0x1F000)  # where the combining marks of all scripts are
_JOINERS = "\u200c\u200d"


class WordBreaks(NamedTuple):
    """Patterns that cut text."""

    word: re.Pattern[str]  # a word of a script with spaces
    run: re.Pattern[str]  # characters of scripts without spaces
    character: re.Pattern[str]  # one of them with its marks
    piece: re.Pattern[str]  # a word, a run, or what is between
    marks: frozenset[str]  # all marks


@cache
def word_breaks() -> WordBreaks:
    """Return the patterns, which list the marks that this Python knows."""
    marks = "".join(sign for sign in map(chr, _MARKS) if unicodedata.category(sign)[0] == "M") + _JOINERS
    letter, run = rf"[^\W_{_UNSPACED}]", rf"(?:(?=\w)[{_UNSPACED}][{marks}]*)+"
    word = rf"{letter}+(?:[{marks}]+{letter}*)*"
    character, piece = re.compile(rf"[^{marks}][{marks}]*"), re.compile(rf"{word}|{run}|[\W_]+")
    return WordBreaks(re.compile(word), re.compile(run), character, piece, frozenset(marks))


@dataclass(frozen=True, slots=True)
class TokenOptions:
    """How posts are cut into tokens; documents and queries of an index always share them.

    Args:
        stop_words: remove stop words: ``"terrier"`` for Terrier's list of 733, which PISA has, too; ``True`` for a
            short list of the function words of English.
        stem: reduce words with the Porter 2 stemmer, as PISA; ``"porter"``: with Porter's first, as Terrier.
        bigrams: add each pair of neighboring words of a text and of neighboring symbols of a formula.
        words: with the words of the text.
        formulas: with the symbols of formulas.
        structures: add the structure of each sub-expression of a formula: its operators, numbers and names, and which
            of its letters are the same, but not which letters they are.

    Raises:
        ConfigError: an option has another value.
    """

    stop_words: bool | Literal["terrier"] = "terrier"
    stem: bool | Literal["porter"] = True
    bigrams: bool = False
    words: bool = True
    formulas: bool = True
    structures: bool = False

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            other = {"stop_words": "terrier", "stem": "porter"}.get(name)
            if not isinstance(value, bool) and (other is None or value != other):
                raise ConfigError(name, value, "True or False" + (f" or {other!r}" if other else ""))

    @property
    def single(self) -> TokenOptions:
        """The options that cut words and symbols in the same way, without pairs and structures."""
        return replace(self, bigrams=False, words=True, formulas=True, structures=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TokenOptions:
        """Make options from plain values; absent ones keep their default.

        Raises:
            ConfigError: a name or a value is not one of an option.
        """
        known = [field.name for field in fields(cls)]
        if unknown := [name for name in values if name not in known]:
            raise ConfigError("tokens", unknown, f"only the options {', '.join(known)}")
        return cls(**values)


_STANDARD = TokenOptions()


def post_tokens(post: MathPost, options: TokenOptions = _STANDARD) -> list[str]:
    """Cut a post into tokens in its order, repeated as often as they occur; none has white space in it."""
    tokens: list[str] = []
    start = 0
    of_formulas = tokens_of_formulas(post, options)
    for match in PLACEHOLDER.finditer(post.text):
        tokens += word_tokens(post.text[start : match.start()], options)
        tokens += of_formulas[int(match.group().rpartition("_")[2])]
        start = match.end()
    return tokens + word_tokens(post.text[start:], options)


def tokens_of_formulas(post: MathPost, options: TokenOptions = _STANDARD, most: int | None = None) -> list[list[str]]:
    """List the tokens of each formula of a post, or of the first ones; one may use commands that another defines."""
    formulas = post.formulas[:most]
    of_formulas = [formula_tokens(formula.latex, options) if options.formulas else [] for formula in formulas]
    if options.structures and of_formulas:
        macros = definitions(formula.latex for formula in post.formulas)
        with one_text():
            for tokens, formula in zip(of_formulas, formulas, strict=True):
                tokens += structure_tokens(formula.latex, macros)
    return of_formulas


def word_tokens(text: str, options: TokenOptions = _STANDARD) -> list[str]:
    """Cut plain text into words, with ``bigrams`` also pairs joined by ``_``; scripts without spaces into characters.

    Args:
        text: text without formulas.
        options: which tokens.

    Returns:
        The words in order, then the pairs in order, then, of each piece in a script without spaces, its characters and
        their pairs; none without ``options.words``.
    """
    if not options.words:
        return []
    text = unicodedata.normalize("NFKC", text).lower()
    words, runs = words_and_runs(text)
    if options.stop_words:
        stop_words = STOP_WORDS if options.stop_words is True else _terrier_stop_words()
        words = [word for word in words if word not in stop_words]
    if options.stem:
        words = _stemmer("english" if options.stem is True else "porter")(words)
    return [*words, *(_pairs(words) if options.bigrams else ()), *chain.from_iterable(map(run_tokens, runs))]


def words_and_runs(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a text, and its longest pieces in scripts without spaces."""
    if _OTHER_SCRIPT.search(text) is None:
        return _WORD.findall(text), []
    return word_breaks().word.findall(text), word_breaks().run.findall(text)


def pieces_of(text: str) -> list[tuple[str, bool]]:
    """Cut text into words and what is between, each with whether it is in a script without spaces."""
    if _OTHER_SCRIPT.search(text) is None:
        return [(piece, False) for piece in _WORD_OR_REST.findall(text)]
    breaks = word_breaks()
    return [(piece, breaks.run.match(piece) is not None) for piece in breaks.piece.findall(text)]


def run_tokens(run: str) -> list[str]:
    """Cut a piece in a script without spaces into its characters, then into pairs of neighboring ones."""
    characters = characters_of(run)
    return characters + [left + right for left, right in pairwise(characters)]


def characters_of(run: str) -> list[str]:
    """Cut text into its characters, each with its marks."""
    breaks = word_breaks()
    return list(run) if breaks.marks.isdisjoint(run) else breaks.character.findall(run)


def formula_tokens(latex: str, options: TokenOptions = _STANDARD) -> list[str]:
    r"""Name the symbols of a formula, then, with ``bigrams``, pairs joined by ``_``; words of ``\text`` are words.

    Args:
        latex: LaTeX without dollars; it need not be well-formed.
        options: which tokens.

    Returns:
        The names in order, then the pairs in order, then the words of ``\text``.
    """
    latex = latex_of_unicode(latex)
    words = [token for match in TEXT.finditer(latex) for token in word_tokens(match.group(1), options)]
    symbols = ["math" + _name(token) for token in lex_latex(TEXT.sub(" ", latex))]
    if not options.bigrams:
        return symbols + words
    return [name for name in symbols if name not in PAIRS_ONLY] + _pairs(symbols) + words


PAIR = "_"
"""What joins the tokens of a pair, and is in no other token."""

STRUCTURE = "#"
"""How the name of a structure begins, and no other token."""


@lru_cache(maxsize=8192)
def structure_tokens(latex: str, macros: str = "") -> tuple[str, ...]:
    """Name the structures of a formula's sub-expressions, each once; none for a formula without an operator tree."""
    tree = trees_of_posts(latex, macros).opt
    if tree is None:
        return ()
    return tuple(f"{STRUCTURE}{number:x}" for number in dict.fromkeys(structures(read_terms(tree, line_trees(tree)))))


@lru_cache(maxsize=65_536)
def _name(token: str) -> str:
    """Name one LaTeX token with letters and digits only; capitals survive lower-casing."""
    if token in SYMBOL_NAMES:
        return SYMBOL_NAMES[token]
    name = token.removeprefix("\\").replace(".", "point")
    if not name.isalnum():
        return "u" + "".join(f"{ord(character):x}" for character in name)
    return "cap" + name.lower() if name[0].isupper() else name.lower()


def _pairs(tokens: list[str]) -> list[str]:
    return [f"{left}{PAIR}{right}" for left, right in pairwise(tokens)]


@cache
def _terrier_stop_words() -> frozenset[str]:
    return frozenset(_TERRIER.read_text(encoding="utf-8").split())


@lru_cache(maxsize=2)
def _stemmer(name: str) -> Callable[[list[str]], list[str]]:
    stem: Callable[[list[str]], list[str]] = Stemmer.Stemmer(name).stemWords
    return stem
