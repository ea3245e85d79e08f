"""Which parts of a query and of a document are shown in one color, and the two texts with these colors.

::

    key      number, color     in the query                      in the document
    row 0    1   orange        its formula 0                     the formula with its symbols, the node it met
    word     2   blue          each place of the word            each place of the word it met
    whole    3   green         the heading                       the heading, or the node it met
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

from pyterrier_mathamr.formula.display.rendering import formula_html
from pyterrier_mathamr.posts import PLACEHOLDER

from .explanation import Explanation, Part, Reading

HUES = ("#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#0072B2", "#B8A800")
"""Of Okabe and Ito, distinct with every color vision; parts have numbers, too."""

FORMULAS = ("formula", "symbols", "edges", "nodes", "layout tree", "operator tree")
"""Kinds of parts that are about a formula; their texts are LaTeX."""

_LONGEST = 50_000  # characters of a text that are written

Key = tuple[str, int | str]
"""What in a query a part comes from: its row, a word, or the whole."""


class Group(NamedTuple):
    """The parts of a score that come from one thing in the query.

    Attributes:
        number: from 1, the greatest contribution first.
        color: in hexadecimal.
    """

    number: int
    color: str

    @property
    def badge(self) -> str:
        """The number on its color."""
        return (
            f'<span style="background:{self.color};color:#fff;border-radius:.7em;padding:0 .4em;font-size:.75em;'
            f'text-shadow:0 0 2px #000;margin:0 .15em">{self.number}</span>'
        )


@dataclass
class Marks:
    """What is colored in one text: the groups of each formula, sentence and word by number or word."""

    rows: dict[int, list[Group]] = field(default_factory=lambda: defaultdict(list))
    words: dict[str, list[Group]] = field(default_factory=lambda: defaultdict(list))
    whole: list[Group] = field(default_factory=list)

    def add(self, kind: str, row: int, text: str, group: Group) -> None:
        """Mark what a part is about."""
        if kind in (*FORMULAS, "sentence") and row >= 0:
            marked = self.rows[row]
        elif kind == "word" and text:
            marked = self.words[text.lower()]
        elif kind == "document":
            marked = self.whole
        else:
            return
        if group not in marked:
            marked.append(group)


def key_of(part: Part) -> Key | None:
    """Return what in the query a part comes from; ``None`` for a part that comes from no place in it."""
    if part.part in (*FORMULAS, "sentence") and part.query_row >= 0:
        return "row", part.query_row
    if part.part == "word":
        return "word", part.query.lower()
    return ("whole", 0) if part.part == "document" else None


def group_of(part: Part, groups: Mapping[Key, Group]) -> Group | None:
    """Return the number and color of what a part comes from, if it has them."""
    key = key_of(part)
    return None if key is None else groups.get(key)


def groups_of(parts: Iterable[Part]) -> dict[Key, Group]:
    """Give the things in the query that contribute most a number and a color."""
    totals: dict[Key, float] = defaultdict(float)
    for part in parts:
        if (key := key_of(part)) is not None:
            totals[key] += part.contribution
    best = sorted((key for key in totals if totals[key] > 0), key=lambda key: -totals[key])[: len(HUES)]
    return {key: Group(number, HUES[number - 1]) for number, key in enumerate(best, 1)}


def texts_of(explanation: Explanation) -> tuple[str, str]:
    """Write the two texts with each part of the query, and what it met, in one color."""
    groups, query, document = groups_of(explanation.rows), Marks(), Marks()
    colored = [(group, part) for part in explanation.rows if (group := group_of(part, groups)) is not None]
    for group, part in sorted(colored, key=lambda pair: pair[0].number):
        query.add(part.part, part.query_row, part.query, group)
        document.add(part.document_part or part.part, part.document_row, part.document, group)
    return _text("query", explanation.query, query), _text(explanation.docno, explanation.document, document)


def _text(title: str, reading: Reading | None, marks: Marks) -> str:
    if reading is None:
        return ""
    badges = "".join(group.badge for group in marks.whole)
    return f"<p><b>{escape(title)}</b>{badges}</p><div>{marked(reading, marks)}</div>"


def marked(reading: Reading, marks: Marks) -> str:
    """Write a text with its marks; formulas as MathML in their sentences; of a long text the beginning."""
    whole, at, pieces = reading.post.text, 0, []
    text = whole if len(whole) <= _LONGEST else whole[:_LONGEST].rpartition(" ")[0] or whole[:_LONGEST]
    for row, sentence in enumerate(reading.sentences, len(reading.post.formulas)):
        words = map(re.escape, sentence.split())
        found = re.compile(r"\s+".join(words)).search(text, at) if sentence.strip() else None
        if found is not None:
            pieces.append(inline(text[at : found.start()], reading, marks))
            pieces.append(_painted(inline(found[0], reading, marks), marks.rows.get(row, [])))
            at = found.end()
        elif text is not whole:
            break
    pieces.append(inline(text[at:], reading, marks))
    if text is not whole:
        pieces.append(f" … the text goes on: {len(whole) - len(text):,} more characters")
    return "".join(pieces).replace("\n", "<br>")


def inline(text: str, reading: Reading, marks: Marks | None = None) -> str:
    """Write a piece of a text, its words and formulas marked."""
    marks = marks or Marks()
    pieces, at = [], 0
    for match in PLACEHOLDER.finditer(text):
        row = int(match[1])
        pieces.append(_words(text[at : match.start()], marks.words))
        pieces.append(_painted(formula_html(reading.post.formulas[row].latex), marks.rows.get(row, [])))
        at = match.end()
    return "".join([*pieces, _words(text[at:], marks.words)])


def _words(text: str, marks: Mapping[str, list[Group]]) -> str:
    if not marks:
        return escape(text)
    longest_first = sorted(marks, key=len, reverse=True)
    wanted = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)
    pieces = wanted.split(text)  # every second one is a word
    painted = (_painted(escape(word), marks[word.lower()]) for word in pieces[1::2])
    return "".join(escape(plain) + word for plain, word in zip(pieces[::2], [*painted, ""], strict=True))


def _painted(html: str, groups: list[Group]) -> str:
    """Put a piece of HTML on the color of the first of its groups, with the number of each."""
    if not groups:
        return html
    color, badges = groups[0].color, "".join(group.badge for group in groups)
    style = f"background:{color}33;border-bottom:2px solid {color}"
    return f'<span style="{style}">{badges}{html}</span>'
