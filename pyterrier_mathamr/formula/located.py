r"""Where the parts of a formula are in its LaTeX: the lines of an environment, and any sub-expression.

An operator tree does not record where its nodes were typed. To locate a sub-expression, ranges of the source with the
same letters and digits are parsed, and the range whose tree is the same term is returned.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from .latex import opt_from_latex, trees_of_posts
from .matching import Terms, occurrences, parts, read_terms
from .opt import RELATIONS
from .tree import FormulaError, FormulaTree

MOST_LINES = 200
"""Lines of an environment that are read one by one."""
MOST_READ = 60
"""Ranges that are read to locate a sub-expression."""
MOST_TOKENS = 2000
"""Tokens of a formula in which sub-expressions are located."""

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
    r"""List the lines of the first environment of a formula that has some.

    Args:
        latex: a formula, such as ``\begin{align}a&=b\\c&=d\end{align}``.

    Returns:
        The LaTeX of each line, without ``&``, labels and blanks; empty for a formula of one line.
    """
    begin = _OPEN.search(latex)
    if begin is None:
        return []
    found, line = list[str](), list[str]()
    start = begin.end()
    if begin[1] in _WITH_COLUMNS and (columns := _COLUMNS.match(latex, start)):
        start = columns.end()
    for token, depth in leveled(latex[start:]):
        if depth < 0:
            break
        if depth == 0 and token == r"\\":
            found.append("".join(line))
            line = []
        else:
            line.append(" " if depth == 0 and token == "&" else token)
    found.append("".join(line))
    plain = [_NOT_MATH.sub(" ", _DROPPED.sub("", each)).strip() for each in found]
    return [each for each in plain if each][:MOST_LINES] if len(found) > 1 else []


def line_trees(tree: FormulaTree) -> list[FormulaTree]:
    r"""Read the lines of a formula one by one.

    Unlike the operator tree of the whole formula, this finds lines that continue in the next one, and skips lines that
    are not statements, which leave fragments (``E!``) in the tree.

    Args:
        tree: of a formula from LaTeX.

    Returns:
        The operator tree of each line that can be parsed separately, and has something on both sides of its sign.
    """
    found = []
    for line in lines_of(tree.source) if r"\\" in tree.source else ():
        read = trees_of_posts(line, "").opt
        if read is not None and all(parent or read.nodes[child] != "W!" for parent, child, _ in read.edges):
            found.append(read)  # others continue the line before
    return found


def locate(latex: str, terms: Terms, term: int) -> list[tuple[int, int]]:
    """Find where a sub-expression of a formula is in its LaTeX.

    Args:
        latex: of the formula.
        terms: of the formula.
        term: the sub-expression.

    Returns:
        The first and shortest range of characters that reads as the sub-expression. A relation that is not written in
        one piece, as the ends of a chain, has the ranges of its sides. Empty where none is found.
    """
    tokens = [token for token in tokens_of(latex) if not token.text.isspace()]
    if len(tokens) > MOST_TOKENS:
        return []
    whole = _range_of(latex, tokens, terms, term)
    if whole is not None:
        return [whole]
    sides = terms.args[term] if terms.labels[term] in RELATIONS else ()
    found = [_range_of(latex, tokens, terms, side) for side in sides]
    return sorted({each for each in found if each is not None})


def find_part(latex: str, identity: tuple[int, int]) -> list[tuple[int, int]]:
    """Find where a sub-expression of a formula is in its LaTeX; see :func:`locate`.

    Args:
        latex: the formula.
        identity: shape and key of the sub-expression.

    Returns:
        The ranges of characters; empty if the formula does not have it, or it cannot be located.
    """
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
    """Return the shape and the key of a formula."""
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
