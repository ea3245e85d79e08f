r"""The LaTeX of the parts of a formula: where its lines and any sub-expression were typed, or a term written anew.

An operator tree does not record where its nodes were typed. To locate a sub-expression, ranges of the source with the
same letters and digits are parsed, and the range whose tree is the same term is returned.

A term has lost its typography, so ``a/b`` is written as ``\frac{a}{b}`` and ``b>a`` as ``a<b``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from .latex import opt_from_latex, trees_of_posts
from .matching import (
    CHAIN,
    INDEX,
    LINES,
    NEGATIVE,
    POWER,
    PRODUCT,
    SUM,
    Terms,
    TermTable,
    Value,
    occurrences,
    parts,
    read_terms,
)
from .opt import FUNCTIONS, RELATIONS
from .tree import FormulaError, FormulaTree

MOST_LINES = 200  # of an environment that are read one by one
MOST_TOKENS = 2000  # of a formula in which sub-expressions are located
MOST_READ = 60  # ranges that are read to locate a sub-expression
_MOST_RANGES = 500
_TOKEN = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}|\\[A-Za-z]+\*?|\\.|\s+|.", re.DOTALL)
_WITH_COLUMNS = ("array", "alignat", "alignedat")
_LINED = "|".join(
    [
        *("align", "aligned", "gather", "gathered", "eqnarray", "flalign", "split", "multline", "cases", "dcases"),
        *_WITH_COLUMNS,
    ]
)
_OPEN = re.compile(rf"\\begin\s*\{{({_LINED})\*?\}}")
_COLUMNS = re.compile(r"\s*(?:\[[^\]]*\]\s*)?\{[^{}]*\}")
_NOT_MATH = re.compile(r"\\(?:label|tag)\*?\s*\{[^{}]*\}|\\(?:nonumber|notag|hline|displaystyle)(?![A-Za-z])")
_DEGREE = re.compile(r"\\sqrt\s*\[")
_DROPPED = re.compile(r"^\s*(?:\[[^\]]*\]|\*)")


class Token(NamedTuple):
    """A token of LaTeX: its text and where it begins."""

    text: str
    start: int


def tokens_of(latex: str) -> list[Token]:
    r"""Cut LaTeX into commands, characters and blanks; a ``\begin{…}`` is one token."""
    return [Token(match[0], match.start()) for match in _TOKEN.finditer(latex)]


def leveled(latex: str) -> Iterator[tuple[str, int]]:
    """Yield each token, and how many braces and environments are open after it."""
    depth = 0
    for token, _ in tokens_of(latex):
        depth += (token == "{" or token.startswith(r"\begin")) - (token == "}" or token.startswith(r"\end"))
        yield token, depth


def lines_of(latex: str) -> list[str]:
    """List the lines of the first environment of a formula, without ``&``, labels and blanks; none if there is one."""
    begin = _OPEN.search(latex)
    if begin is None:
        return []
    lines, line = list[str](), list[str]()
    start = begin.end()
    if begin[1] in _WITH_COLUMNS and (columns := _COLUMNS.match(latex, start)):
        start = columns.end()
    for token, depth in leveled(latex[start:]):
        if depth < 0:
            break
        if depth == 0 and token == r"\\":
            lines.append("".join(line))
            line = []
        else:
            line.append(" " if depth == 0 and token == "&" else token)
    lines.append("".join(line))
    plain = [_NOT_MATH.sub(" ", _DROPPED.sub("", each)).strip() for each in lines]
    return [each for each in plain if each][:MOST_LINES] if len(lines) > 1 else []


def line_trees(tree: FormulaTree) -> list[FormulaTree]:
    """Read each line of a formula from LaTeX that can be parsed separately, and has both sides of its sign.

    Unlike the operator tree of the whole formula, this finds lines that continue in the next one, and skips lines that
    are not statements, which leave fragments (``E!``) in the tree.
    """
    statements = []
    for line in lines_of(tree.source) if r"\\" in tree.source else ():
        read = trees_of_posts(line, "").opt
        if read is not None and all(parent or read.nodes[child] != "W!" for parent, child, _ in read.edges):
            statements.append(read)  # others continue the line before
    return statements


def locate(latex: str, terms: Terms, term: int) -> list[tuple[int, int]]:
    """Find the first and shortest range of characters that reads as a sub-expression of a formula.

    A relation that is not written in one piece, as the ends of a chain, has the ranges of its sides.
    """
    tokens = [token for token in tokens_of(latex) if not token.text.isspace()]
    if len(tokens) > MOST_TOKENS:
        return []
    whole = _range_of(latex, tokens, terms, term)
    if whole is not None:
        return [whole]
    sides = terms.args[term] if terms.labels[term] in RELATIONS else ()
    ranges = [_range_of(latex, tokens, terms, side) for side in sides]
    return sorted({each for each in ranges if each is not None})


def find_part(latex: str, identity: tuple[int, int]) -> list[tuple[int, int]]:
    """Find where a sub-expression of this shape and key is in the LaTeX of a formula; see :func:`locate`."""
    try:
        tree = opt_from_latex(latex, lines="all")
    except FormulaError:
        return []
    terms = read_terms(tree, line_trees(tree))
    if terms.identity(terms.root) == identity:
        return [(0, len(latex))]
    part = next((term for term in parts(terms) if terms.identity(term) == identity), None)
    return [] if part is None else locate(latex, terms, part)


def _range_of(latex: str, tokens: list[Token], terms: Terms, term: int) -> tuple[int, int] | None:
    wanted, labels = Counter[str](), occurrences(terms, term)
    for label, times in labels.items():
        for sign in _signs(label):
            wanted[sign] += times
    if _DEGREE.search(latex) is None:
        wanted["2"] -= labels.get("O!root", 0)  # the tree of a square root has its degree
    identity = terms.identity(term)
    ranges = sorted(islice(_ranges(tokens, wanted), _MOST_RANGES))
    for _, _, start, end in ranges[:MOST_READ]:
        try:
            if _identity_of(latex[start:end]) == identity:
                return start, end
        except FormulaError:
            continue
    return None


@lru_cache(maxsize=4096)  # formulas with the same part have the same ranges
def _identity_of(latex: str) -> tuple[int, int]:
    read = read_terms(opt_from_latex(latex, lines="all"))
    return read.identity(read.root)


def _ranges(tokens: list[Token], wanted: Counter[str]) -> Iterator[tuple[int, int, int, int]]:
    """List the ranges with such letters and digits whose braces pair: their first letter, length, start and end."""
    signs = [_signs_of(token.text) for token in tokens]
    for first, token in enumerate(tokens):
        if token.text in "}])^_&":
            continue
        left, missing, depth, begin = Counter(wanted), wanted.total(), 0, len(tokens)
        for last in range(first, len(tokens)):
            text = tokens[last].text
            depth += (text == "{") - (text == "}")
            for sign in signs[last]:
                left[sign] -= 1
                missing -= 1
                begin = min(begin, last)
            if depth < 0 or any(left[sign] < 0 for sign in signs[last]):
                break
            if not missing and not depth and text not in ("^", "_", "&"):
                end = tokens[last].start + len(text)
                yield begin, end - token.start, token.start, end


def _signs(label: str) -> str:
    """Return the letters and digits of the label of a symbol."""
    if label == "O!differential-d":
        return "d"
    if label[:2] not in ("V!", "N!", "C!"):
        return ""
    plain = unicodedata.normalize("NFKC", label[2:].removeprefix("italic-"))
    return "".join(filter(str.isalnum, plain)) if label[0] != "C" or len(plain) == 1 else ""


@lru_cache(maxsize=1024)
def _signs_of(token: str) -> str:
    """Return the letters and digits of a token; a command has the letters of its symbol."""
    if token[0] != "\\":
        return token if token.isalnum() else ""
    if token.startswith((r"\begin", r"\end")):
        return ""
    try:
        tree = opt_from_latex(token)
    except FormulaError:
        return ""
    return _signs(tree.nodes[0]) if len(tree.nodes) == 1 else ""


LONGEST = 1000
"""Characters of a sub-expression; a longer one is written as an ellipsis."""

_ATOM, _SCRIPT, _FACTOR, _ADDEND, _SIDE, _STATEMENT = 5, 4, 3, 2, 1, 0
_SIGNS = {
    "U!eq": "=", "U!neq": r"\neq ", "O!lt": "<", "O!leq": r"\leq ", "O!in": r"\in ", "O!notin": r"\notin ",
    "O!subset": r"\subseteq ", "O!prsubset": r"\subset ", "O!implies": r"\Rightarrow ", "U!iff": r"\Leftrightarrow ",
    "U!equivalent": r"\equiv ", "U!approx": r"\approx ", "U!similar-to": r"\sim ", "O!maps-to": r"\mapsto ",
    "U!union": r"\cup ", "U!intersect": r"\cap ", "U!or": r"\vee ", "O!assign": ":=", "O!setdiff": r"\setminus ",
    "O!plus-or-minus": r"\pm ", "O!compose": r"\circ ", "O!conditional": r"\mid ", "O!divides": r"\mid ",
    "O!gt": ">", "O!geq": r"\geq ",
}  # fmt: skip
_NAMES = {
    "O!int": r"\int ", "O!sum": r"\sum ", "O!product": r"\prod ", "O!limit": r"\lim ", "O!partialdiff": r"\partial ",
    "C!infinity": r"\infty ", "O!contour-integral": r"\oint ", "O!forall": r"\forall ", "O!exists": r"\exists ",
    "C!empty-set": r"\emptyset ", "W!": "", "V!&quest;": "?", "F!for-all": r"\forall ",
}  # fmt: skip
_BIG = frozenset({"O!int", "O!contour-integral", "O!sum", "O!product", "O!limit", "O!partialdiff"})
_FONTS = {"BOLD": r"\mathbf", "FRAKTUR": r"\mathfrak", "SCRIPT": r"\mathcal", "DOUBLE-STRUCK": r"\mathbb"}
_KNOWN_FUNCTIONS = FUNCTIONS - {"abs", "ceiling", "floor", "real", "imaginary"} | {"det", "lim", "sup", "inf"}


class Written(NamedTuple):
    """LaTeX, and how strongly its outermost operator binds."""

    latex: str
    level: int


def write_term(terms: TermTable, term: int) -> str:
    return _written(terms, term).latex


def write_value(terms: TermTable, value: Value) -> str:
    """Write the value of a wildcard as LaTeX."""
    operands = [_written(terms, term) for term in value.written]
    return _operator(value.label, operands).latex if value.label else operands[0].latex


def _written(terms: TermTable, root: int) -> Written:
    written: dict[int, Written] = {}
    stack = [root]
    while stack:
        term = stack[-1]
        if term in written:
            stack.pop()
            continue
        args = terms.operands(term)
        missing = [arg for arg in args if arg not in written]
        if missing:
            stack += missing
            continue
        made = _operator(terms.label(term), [written[arg] for arg in args]) if args else _leaf(terms.label(term))
        written[term] = made if len(made.latex) <= LONGEST else Written(r"\dots ", _ATOM)
        stack.pop()
    return written[root]


def _leaf(label: str) -> Written:
    if label in _NAMES:
        return Written(_NAMES[label], _ATOM)
    name = label[2:].removeprefix("italic-") if label[1:2] == "!" else label
    if label[:1] == "F" and name in _KNOWN_FUNCTIONS:
        return Written(f"\\{name} ", _ATOM)
    if len(name) == 1:
        plain, long = unicodedata.normalize("NFKC", name), unicodedata.name(name, "")
        font = next((font for word, font in _FONTS.items() if word in long), "")
        return Written(f"{font}{{{plain}}}" if font and plain.isalnum() else plain, _ATOM)
    if label[:1] == "T":
        return Written(rf"\text{{{name}}}", _ATOM)
    return Written(name if label[:1] in "N?" else rf"\operatorname{{{name}}}", _ATOM)


def _in(operand: Written, level: int) -> str:
    """Write an operand, in parentheses where it binds less than a level."""
    return operand.latex if operand.level >= level else rf"\left({operand.latex}\right)"


def _operator(label: str, args: Sequence[Written]) -> Written:
    rule = _RULES.get(label)
    if rule is not None:
        return rule(args)
    if label in _SIGNS or label in RELATIONS:
        sign = _SIGNS.get(label) or f" {label[2:]} "
        return Written(sign.join(_in(arg, _SIDE + 1) for arg in args), _SIDE)
    if label[:2] == "F!" and label[2:] in _KNOWN_FUNCTIONS and len(args) == 1:
        return Written(rf"\{label[2:]} {_in(args[0], _FACTOR)}", _FACTOR)
    args = [arg for arg in args if arg.latex]  # an integral has places for bounds that it does not have
    if label in _BIG:
        return Written(_NAMES[label] + " ".join(_in(arg, _FACTOR) for arg in args), _FACTOR)
    if label[:2] == "M!":
        return Written(rf"\left({', '.join(arg.latex for arg in args)}\right)", _ATOM)
    return Written(rf"{_leaf(label).latex}\left({', '.join(arg.latex for arg in args)}\right)", _ATOM)


def _sum(args: Sequence[Written]) -> Written:
    first, *others = (_in(arg, _ADDEND) for arg in args)
    return Written(first + "".join(other if other[:1] == "-" else f"+{other}" for other in others), _ADDEND)


def _product(args: Sequence[Written]) -> Written:
    latex = ""
    for arg in args:
        factor = _in(arg, _FACTOR)
        joins = latex[-1:].isdigit() and factor[:1].isdigit()
        latex += rf"\cdot {factor}" if joins else factor
    return Written(latex, _FACTOR)


def _scripts(sign: str) -> Callable[[Sequence[Written]], Written]:
    return lambda args: Written(f"{_in(args[0], _SCRIPT)}{sign}{{{args[1].latex}}}", _SCRIPT)


def _root(args: Sequence[Written]) -> Written:
    degree = "" if args[-1].latex == "2" else f"[{args[-1].latex}]"
    return Written(rf"\sqrt{degree}{{{args[0].latex}}}", _ATOM)


def _fraction(args: Sequence[Written]) -> Written:
    if len(args) != 2:
        return Written("/".join(_in(arg, _FACTOR) for arg in args), _FACTOR)
    return Written(rf"\frac{{{args[0].latex}}}{{{args[1].latex}}}", _ATOM)


_RULES: dict[str, Callable[[Sequence[Written]], Written]] = {
    SUM: _sum,
    PRODUCT: _product,
    NEGATIVE: lambda args: Written("-" + _in(args[0], _FACTOR), _ADDEND),
    POWER: _scripts("^"),
    INDEX: _scripts("_"),
    "O!divide": _fraction,
    "O!root": _root,
    "+!": lambda args: Written(args[0].latex + " ".join(_in(arg, _FACTOR) for arg in args[1:]), _FACTOR),
    CHAIN: lambda args: Written(r",\; ".join(arg.latex for arg in args), _STATEMENT),
    LINES: lambda args: Written(r",\; ".join(arg.latex for arg in args), _STATEMENT),
    "O!factorial": lambda args: Written(_in(args[0], _ATOM) + "!", _SCRIPT),
    "F!abs": lambda args: Written(rf"\left|{args[0].latex}\right|", _ATOM),
    "O!norm": lambda args: Written(rf"\left\|{args[0].latex}\right\|", _ATOM),
    "O!differential-d": lambda args: Written(rf"\,d{args[0].latex}", _ATOM),
    "O!interval(O-O)": lambda args: Written(rf"\left({', '.join(arg.latex for arg in args)}\right)", _ATOM),
    "O!interval(C-C)": lambda args: Written(rf"\left[{', '.join(arg.latex for arg in args)}\right]", _ATOM),
    "O!matrix": lambda args: args[0],
}
