r"""Posts and formulas with slots for words and symbols, read once from a small collection.

A template is a text for Python's ``%`` with a ``%s`` for each slot, so that filling it is one operation::

    LaTeX   \frac{x}{12}+\mathrm{sin}      \frac{%s}{%s}+\mathrm{sin}           x, 12
    SLT     <mi>x</mi> … <mn>12</mn>       <mi>%s</mi> … <mn>%s</mn>            x, 12
    OPT     <ci>𝑥</ci> … <cn …>12</cn>     <ci>%s</ci> … <cn …>%s</cn>          𝑥, 12

The most frequent words are no slots: they keep the shape of a sentence.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pyterrier_mathamr.arqmath import ARQMathCollection, Post
from pyterrier_mathamr.formula import FormulaRow, read_formula_table

FUNCTION_WORDS = 300
LETTERS = frozenset(
    "abcghjklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)  # not d, e, f, i: differential, constants, sin f
KINDS = ("latex", "slt", "opt")

_HTML = re.compile(
    r'<span class="math-container" id="(?P<formula>\d+)">.*?</span>|<[^>]*>|&#?\w+;|(?P<word>[A-Za-z]{2,})', re.DOTALL
)
_ALTTEXT = re.compile(r'alttext="[^"]*"|<m[in]>(?P<symbol>[^<]+)<')
_CONTENT = re.compile(r"<c[in](?: [^>]*)?>(?P<symbol>[^<]+)<")
_LATEX = re.compile(
    r"\\(?:begin|end|text\w*|math(?:rm|bb|cal|frak|sf|tt|bf)|operatorname\*?|label|tag)\s*\{[^{}]*\}"
    r"|\\[A-Za-z]+|&\w+;|(?P<symbol>[A-Za-z]|\d+(?:\.\d+)?)"
)


def italic(letter: str) -> str:
    """Return the mathematical italic letter that Content MathML has for a variable."""
    if letter == "h":
        return "ℎ"
    return chr((0x1D434 - ord("A") if letter.isupper() else 0x1D44E - ord("a")) + ord(letter))


_SYMBOLS = {**{letter: letter for letter in LETTERS}, **{italic(letter): letter for letter in LETTERS}}


class Template(NamedTuple):
    """A text with slots, and the original content of each slot."""

    text: str
    slots: tuple[str, ...]

    def filled(self, symbols: dict[str, str]) -> str:
        """Fill the slots: each with the new symbol for its original content."""
        return self.text % tuple(map(symbols.__getitem__, self.slots))


class Words(NamedTuple):
    """An attribute of a post: its template, and for each slot a word (from 0) or a formula (``-1`` for the first)."""

    text: str
    slots: tuple[int, ...]
    words: tuple[str, ...]
    formulas: tuple[int, ...]  # rows of the formula tables


@dataclass(frozen=True)
class Formula:
    """A row of the three tables: its columns before the formula, and the templates of its cells."""

    row: FormulaRow
    in_html: Template
    cells: dict[str, Template]


@dataclass(frozen=True)
class Source:
    """A small collection as templates.

    Attributes:
        posts: unchanged.
        titles, bodies: of each post.
        formulas: the rows of the tables.
        of_post: the formulas of each post.
        symbols: the letters and numbers of each post, which are redrawn together.
        words: the frequency of each word that is a slot.
        letters: the frequency of each letter.
    """

    posts: list[Post]
    titles: list[Words]
    bodies: list[Words]
    formulas: list[Formula]
    of_post: list[list[int]]
    symbols: list[tuple[str, ...]]
    words: Counter[str]
    letters: Counter[str] = field(default_factory=Counter)


def read_source(folder: Path) -> Source:
    """Read a small collection, all of it in memory."""
    collection = ARQMathCollection(folder)
    posts = list(collection.posts())
    formulas = _formulas(collection)
    number = {formula.row.id: i for i, formula in enumerate(formulas)}
    counts = Counter(word.lower() for post in posts for text in (post.title, post.body) for word in _words(text))
    kept = {word for word, _ in counts.most_common(FUNCTION_WORDS)}
    titles = [_attribute(post.title, number, kept) for post in posts]
    bodies = [_attribute(post.body, number, kept) for post in posts]
    place = {post.id: i for i, post in enumerate(posts)}
    of_post: list[list[int]] = [[] for _ in posts]
    for i, formula in enumerate(formulas):
        of_post[place[formula.row.post_id]].append(i)
    symbols, letters = [], Counter[str]()
    for mine in of_post:
        held = [_SYMBOLS.get(slot, slot) for i in mine for of in formulas[i].cells.values() for slot in of.slots]
        symbols.append(tuple(sorted(set(held))))
        letters.update(name for name in held if name in LETTERS)
    slots = Counter({word: count for word, count in counts.items() if word not in kept})
    return Source(posts, titles, bodies, formulas, of_post, symbols, slots, letters)


def _formulas(collection: ARQMathCollection) -> list[Formula]:
    tables = (collection.latex_tables, collection.slt_tables, collection.opt_tables)
    columns = [(row for table in of for row in read_formula_table(table)) for of in tables]
    return [_formula(*rows) for rows in zip(*columns, strict=True)]


def _formula(latex: FormulaRow, slt: FormulaRow, opt: FormulaRow) -> Formula:
    if not latex.id == slt.id == opt.id:
        raise ValueError(f"the tables differ in their order: {latex.id}, {slt.id}, {opt.id}")
    cells = {
        "latex": _template(latex.formula, _LATEX, _quoted),
        "slt": _template(slt.formula, _ALTTEXT, _quoted),
        "opt": _template(opt.formula, _CONTENT, _quoted),
    }
    return Formula(latex, _template(html.escape(latex.formula, quote=False), _LATEX, html.escape), cells)


def _template(text: str, pattern: re.Pattern[str], escape: Callable[[str], str]) -> Template:
    """Make slots of the letters and numbers of a formula; ``alttext`` is LaTeX within MathML."""
    pieces, slots, end = [], [], 0
    for match in _found(text, pattern):
        slot = match["symbol"]
        if slot not in _SYMBOLS and not slot.isdecimal():
            continue
        start, stop = match.span("symbol")
        pieces.append(text[end:start])
        slots.append(slot)
        end = stop
    pieces.append(text[end:])
    return Template("%s".join(piece.replace("%", "%%") for piece in _escaped(pieces, escape)), tuple(slots))


def _found(text: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    for match in pattern.finditer(text):
        if match["symbol"]:
            yield match
        elif pattern is _ALTTEXT:
            start, stop = match.span()
            yield from (found for found in _LATEX.finditer(text, start + 9, stop - 1) if found["symbol"])


def _escaped(pieces: list[str], escape: Callable[[str], str]) -> list[str]:
    """Escape the pieces between slots as one text, since a quotation may span them."""
    return escape("\0".join(pieces)).split("\0")


def _quoted(cell: str) -> str:
    """Quote a cell as CSV where it needs that."""
    if any(mark in cell for mark in '"\t\r\n'):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _words(text: str) -> Iterator[str]:
    return (match["word"] for match in _HTML.finditer(text) if match["word"])


def _attribute(text: str, number: dict[str, int], kept: set[str]) -> Words:
    """Make slots of the words and formulas of an attribute's HTML."""
    pieces, slots, words, formulas, end = [], [], [], [], 0
    for match in _HTML.finditer(text):
        word, formula = match["word"], number.get(match["formula"] or "")
        if formula is not None:
            formulas.append(formula)
            slots.append(-len(formulas))
        elif word and word.lower() not in kept:
            slots.append(len(words))
            words.append(word)
        else:
            continue
        pieces.append(text[end : match.start()])
        end = match.end()
    pieces.append(text[end:])
    escaped = (html.escape(piece).replace("%", "%%").replace("\n", "&#xA;") for piece in pieces)
    return Words("%s".join(escaped), tuple(slots), tuple(words), tuple(formulas))
