r"""The text in the search box: how it is read, its faults, and examples.

::

    Why does $\sum 1/n$ diverge?   mixed      words with formulas: posts and formulas are searched
    groups and rings               words      posts are searched
    \frac{1}{n^2}    ?a^2+?b^2     formula    nothing but formulas and signs: formulas are shown first
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from html import unescape
from itertools import islice
from typing import Any, NamedTuple

import math_core

from pyterrier_mathamr.engine.reader import EngineSnapshot
from pyterrier_mathamr.formula import FormulaError
from pyterrier_mathamr.formula.display.typesetting import formula_html, inline_html
from pyterrier_mathamr.formula.latex import opt_from_latex
from pyterrier_mathamr.formula.located import tokens_of
from pyterrier_mathamr.formula.matching import read_terms, unify
from pyterrier_mathamr.formula.tex.converter import to_mathml
from pyterrier_mathamr.posts import (
    PLACEHOLDER,
    MathPost,
    PostFormula,
    latex_of_unicode,
    plain_text,
    post_from_any,
    post_from_html,
)
from pyterrier_mathamr.sparse.patterns import read_pattern

_WILDCARD = re.compile(r"\?[A-Za-z]|\\qvar\s*\{")
_TYPED_WILDCARD = re.compile(r"\?([A-Za-z])")
_NAMES = re.compile(r"\\(?:(?:begin|end|text\w*|operatorname|mathrm)\*?\s*\{[^{}]*\}|[A-Za-z]+)")
_WORD = re.compile(r"[^\W\d_]{3,}")
_SOURCE = re.compile(r"[\\^_{}=]")
_LETTER = re.compile(r"[^\W_]")
_UNKNOWN = re.compile(r"<merror[^>]*>\s*<mtext>([^<]*)</mtext>")
_PROBLEMS, _SHOWN = 3, 60
_MESSAGES = {
    'Expected closing token "}"': "Nothing closes this brace: a } is missing.",
    'Expected closing token "]"': "Nothing closes this bracket: a ] is missing.",
    'Expected closing token "\\right"': r"A \left without \right.",
    'Expected closing token "\\end{...}"': r"A \begin without \end.",
    'Unmatched closing token: "}".': "Nothing opens this brace: a { is missing.",
    "Expected argument but reached end of input.": "Something is missing here.",
}
_COMPARED = 300  # characters of formulas that are compared
_EXAMINED, _FORMULAS_OF_POST, _READ = 500, 20, 200
_LONGEST_EXAMPLE, _FEW_WORDS = 110, 25  # characters
_SENTENCE = re.compile(r"[A-Z][A-Za-z ,'’-]*[.?]?")
_GROUP = re.compile(r"\{[^{}]*\}")
_BRACED = re.compile(r"([_^])\{([A-Za-z0-9])\}")
_SINGLE = re.compile(r"[A-Za-z]")
_EQUATION = re.compile(r"(?=.*[A-Za-z0-9})] ?= ?[\\(A-Za-z0-9])[A-Za-z0-9^_{}+=() \\-]{7,36}")


class BoxQuery(NamedTuple):
    """A query as the page reads it."""

    kind: str  # `words`, `mixed` or `formula`
    post: MathPost  # its words and formulas
    latex: str  # the formula that is searched among formulas; empty where there is none


def read_box(engine: EngineSnapshot, q: str) -> BoxQuery:
    """Read a query; one that is nothing but a formula needs no delimiters, and may be a pattern."""
    written_out = engine.macros.formula
    post, typed = engine.read_query(q), post_from_any(q).with_macros(written_out).formulas
    is_source = _WILDCARD.search(q) or (not post.formulas and _SOURCE.search(q))
    if is_source and not typed and not _WORD.search(_NAMES.sub(" ", q)):
        latex = written_out(q.strip())
        return BoxQuery("formula", MathPost("FORMULA_0", (PostFormula(latex),)), latex)
    if not post.formulas:
        return BoxQuery("words", post, "")
    if _LETTER.search(PLACEHOLDER.sub(" ", post.text)):
        return BoxQuery("mixed", post, (typed or post.formulas)[0].latex)
    return BoxQuery("formula", post, typed[0].latex if typed else latex_of_unicode(q.strip()))


def problems(q: str, latex: str = "", written_out: Callable[[str], str] = str) -> list[dict[str, Any]]:
    """List the faults in the LaTeX of a query, with the place of each: the formula, and a range of it.

    A formula without delimiters is also given as ``latex``; ``written_out`` writes out the macros of the posts.
    """
    post = post_from_any(q)
    unclosed = [(text[:_SHOWN], 0, 0, "Nothing closes the formula that begins here.") for text in post.unclosed]
    typed = [formula.latex for formula in post.formulas] or [latex]
    wrong = (_problem(latex) for latex in typed if _problem(written_out(latex)))
    faults = [*unclosed, *islice(filter(None, wrong), _PROBLEMS)]
    return [dict(zip(("latex", "start", "end", "message"), each, strict=True)) for each in faults[:_PROBLEMS]]


def _problem(latex: str) -> tuple[str, int, int, str] | None:
    try:
        mathml = to_mathml(latex_of_unicode(latex))
    except math_core.LatexError as error:
        place, _, message = str(error).partition(": ")
        start = min(int(place), len(latex)) if place.isdecimal() else 0
        end = next((at + len(text) for text, at in tokens_of(latex) if at <= start < at + len(text)), len(latex))
        return latex, start, end, _MESSAGES.get(message.split(",")[0], message)
    except FormulaError:
        return None
    unknown = _UNKNOWN.search(mathml)
    command = unescape(unknown[1]) if unknown else ""
    start = latex.find(command) if command else -1
    return None if start < 0 else (latex, start, start + len(command), "This command is not known.")


def pattern_html(latex: str, *, display: bool = False) -> str:
    """Render a formula whose wildcards are single symbols, so that the exponent of ``x^?n`` is all of ``?n``."""
    return formula_html(_TYPED_WILDCARD.sub(r"{?\1}", latex), display=display)


def step_of(tier: str) -> str:
    """The class of a formula that was found, by its tier; the part that a query is contained in matches as well."""
    return tier.removeprefix("contains, ").replace("contains", "equal")


@lru_cache(maxsize=8192)
def step_between(asked: str, found: str) -> str:
    """How well a formula of a post matches one of a query: ``equal``, ``renamed``, ``instance`` or ``similar``."""
    if asked.strip() == found.strip():
        return "equal"
    if len(asked) > _COMPARED or len(found) > _COMPARED or (pattern := _terms(asked)) is None:
        return "similar"
    try:
        terms = read_terms(opt_from_latex(found))
    except FormulaError:
        return "similar"
    substitution = unify(pattern, terms, terms.root).substitution
    if substitution is None:
        return "similar"
    if substitution.wildcards:
        return "instance"
    return "equal" if all(terms.label(to) == name for name, to in substitution.letters.items()) else "renamed"


_terms = lru_cache(maxsize=256)(read_pattern)


def examples(engine: EngineSnapshot) -> list[dict[str, str]]:
    """Choose a question, a formula and a pattern from the first posts: the ones that are easiest to read."""
    documents = engine.indexes.posts.get_many(engine.docnos()[:_EXAMINED])
    posts = [(post_from_html(document.title), post_from_html(document.html)) for document in documents]
    chosen = []
    if questions := list(_lines(posts)):
        post, line = min(questions, key=lambda question: _unreadable(*question))
        html = inline_html(line, post).replace(' class="formula"', "")
        chosen.append({"kind": "question", "q": plain_text(MathPost(line, post.formulas)), "html": html})
    equations = Counter(
        formula.latex.strip() for pair in posts for post in pair for formula in post.formulas[:_FORMULAS_OF_POST]
    )
    best = sorted(  # what occurs three times first, then the one whose length is nearest to 24
        (-min(count, 3), abs(24 - len(latex)), latex)
        for latex, count in equations.items()
        if _EQUATION.fullmatch(latex) and "=" in _GROUP.sub("", latex)
    )
    readable = [latex for *_, latex in best[:_READ] if "<math" in formula_html(latex) and _problem(latex) is None]
    patterns = [(latex, pattern) for latex in readable if (pattern := _pattern_of(latex))]
    source, pattern = max(
        patterns,
        key=lambda pair: ("(" not in pair[0], "^" in pair[0], -abs(14 - len(pair[1].replace("?", "")))),
        default=("", ""),
    )
    formula = next((latex for latex in readable if latex != source), "")
    for kind, latex in (("formula", formula), ("pattern", pattern)):
        if latex:
            latex = _BRACED.sub(r"\1\2", latex)
            chosen.append(
                {"kind": kind, "q": latex if kind == "pattern" else f"${latex}$", "html": pattern_html(latex)}
            )
    return chosen


def _lines(posts: Sequence[tuple[MathPost, MathPost]]) -> Iterator[tuple[MathPost, str]]:
    """Titles, and first sentences of bodies, that have a formula and fit in a line."""
    for title, body in posts:
        for post, line in ((title, " ".join(title.text.split("\n"))), (body, next(iter(body.sentences), ""))):
            written = len(plain_text(MathPost(line, post.formulas)))
            if PLACEHOLDER.search(line) and _WORD.search(PLACEHOLDER.sub("", line)) and written < _LONGEST_EXAMPLE:
                yield post, line


def _unreadable(post: MathPost, line: str) -> tuple[bool, bool, bool, int]:
    """Order lines: some words first, then questions, then no strange signs, then the length nearest to 60."""
    formulas = [post.formulas[int(mark[1])].latex for mark in PLACEHOLDER.finditer(line)]
    is_sentence = _SENTENCE.fullmatch(PLACEHOLDER.sub("x", line))
    odd = not is_sentence or len(formulas) > 2 or any(_problem(latex) for latex in formulas)
    few = len(PLACEHOLDER.sub("", line)) <= _FEW_WORDS
    return few, not line.endswith("?"), odd, abs(60 - len(plain_text(MathPost(line, post.formulas))))


def _pattern_of(latex: str) -> str:
    """Write wildcards for the letters of an equation that has two to four; empty for any other."""
    latex = _BRACED.sub(r"\1\2", latex)
    letters = set(_SINGLE.findall(latex))
    return "" if not 2 <= len(letters) <= 4 or set(latex) & set("\\_{}") else _SINGLE.sub(r"?\g<0>", latex)
