"""`Explanation`: a score as the sum of its parts, as text for a terminal, and as HTML for a notebook.

The HTML is two texts, then each part as a bar. Everything that belongs to one part of the query has one number and
color, in the table and in both texts::

    key      number, color     in the query                      in the document
    row 0    1   orange        its formula 0                     the formula with its symbols, the matched node
    word     2   blue          each occurrence of the word       each occurrence of the matched word
    whole    3   green         the heading                       the heading, or the matched node

Styles are inline and colors translucent: a notebook may remove style sheets, and its background is light or dark.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from pyterrier_mathamr._common.drawing import columns, shortened
from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._common.feedback import counted
from pyterrier_mathamr.formula.display.typesetting import formula_html
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, PostFormula

if TYPE_CHECKING:
    from pyterrier_mathamr.graph import MathAMRGraph


class ExplainError(MathAMRError):
    """Vectors do not belong to a graph, or a table lacks data for a chart; the message names it."""


class AskedError(ExplainError):
    """A system cannot explain the score of this query and document."""

    system: str
    reason: str
    remedy: str
    template = "{system} cannot explain a score: {reason}. {remedy}"


class Part(NamedTuple):
    """A part of a score, which is a row of :attr:`Explanation.parts`.

    Attributes:
        system: the system whose score it is a part of, such as ``BM25``.
        part: its kind in the query: ``word``; ``symbols`` of a formula; ``formula``, ``sentence`` or ``document`` (a
            virtual node); a system's own kind, such as ``layout tree``; or ``score``, the whole score of a system.
        query: its text in the query: LaTeX of a formula; a sentence or document has formulas as ``$latex$``. Empty if
            unknown.
        document_part: the kind of its match in the document.
        document: the text of its match.
        similarity: the similarity of the two, from -1 to 1; NaN if the part is not a similarity.
        weight: the factor of the similarity.
        contribution: the part of the score; ``weight * similarity`` if there are both.
        query_row: the number of the formula or virtual node (formulas, sentences, document); -1 if it has none.
        document_row: the number of the match in the document, likewise.
        query_formula_id: the id of the query's formula; empty if it is not a formula, or has no id.
        document_formula_id: the id of the matched formula, likewise.
    """

    system: str
    part: str
    query: str = ""
    document_part: str = ""
    document: str = ""
    similarity: float = math.nan
    weight: float = math.nan
    contribution: float = 0.0
    query_row: int = -1
    document_row: int = -1
    query_formula_id: str = ""
    document_formula_id: str = ""

    def scaled(self, factor: float) -> Part:
        """Return the part of a score that is multiplied by a factor."""
        return self._replace(weight=factor * self.weight, contribution=factor * self.contribution)


class Reading(NamedTuple):
    """A text as a model read it.

    Attributes:
        post: its text and formulas; formula ``i`` is row ``i``.
        sentences: with placeholders; the rows after the formulas.
    """

    post: MathPost
    sentences: tuple[str, ...] = ()

    @classmethod
    def of_graph(cls, graph: MathAMRGraph) -> Reading | None:
        """Return the text of a graph, or ``None`` if it was not built from text."""
        if not graph.text or len(graph.latex) < graph.n_formulas:
            return None
        formulas = map(PostFormula, graph.latex, graph.formula_ids)
        return cls(MathPost(graph.text, tuple(formulas)), graph.sentence_texts)


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a document has its score for a query. A terminal shows it as a table, a notebook as texts and bars.

    Attributes:
        docno: the document.
        rows: the parts, the greatest contribution first.
        query: the text of the query, where known.
        document: the text of the document, where known.
    """

    docno: str
    rows: tuple[Part, ...]
    query: Reading | None = None
    document: Reading | None = None

    @classmethod
    def of(
        cls, docno: str, parts: Iterable[Part], query: Reading | None = None, document: Reading | None = None
    ) -> Explanation:
        """Order the parts of a score.

        Args:
            docno: the document.
            parts: in any order.
            query: the text of the query.
            document: the text of the document.
        """
        ordered = sorted(parts, key=lambda part: -part.contribution)
        return cls(docno, tuple(ordered), query, document)

    @cached_property
    def score(self) -> float:
        """The score, as in the ranking of the system that is explained: the sum of all contributions."""
        return math.fsum(part.contribution for part in self.rows)

    @cached_property
    def parts(self) -> pd.DataFrame:
        """The parts as a table, the greatest contribution first; ``contribution`` sums to the score.

        Its columns are ``system``; ``part`` and ``query``, the part's kind and text in the query; ``document_part``
        and ``document``, the kind and text of its match; ``similarity`` and ``weight``, if the contribution is their
        product; ``contribution``; and the rows and formula ids on both sides.
        """
        table = pd.DataFrame(self.rows, columns=Part._fields)
        floats = dict.fromkeys(("similarity", "weight", "contribution"), "float64")
        return table.astype({**floats, "query_row": "int64", "document_row": "int64"})

    def scaled(self, factor: float, system: str | None = None) -> Explanation:
        """Explain the score times a factor.

        Args:
            factor: any number.
            system: a name of the system that replaces the name in all parts.
        """
        parts = (part.scaled(factor)._replace(system=part.system if system is None else system) for part in self.rows)
        return Explanation.of(self.docno, parts, self.query, self.document)

    def __add__(self, other: Explanation) -> Explanation:
        """Explain the sum of two scores of one document for one query."""
        texts = _better(self.query, other.query), _better(self.document, other.document)
        return Explanation.of(self.docno, [*self.rows, *other.rows], *texts)

    def plus(self, *parts: Part) -> Explanation:
        """Explain the score with further parts."""
        return Explanation.of(self.docno, [*self.rows, *parts], self.query, self.document)

    def __repr__(self) -> str:
        return table_of(self)

    def _repr_html_(self) -> str:
        """Write HTML of inline styles, without script, style sheet or anything from elsewhere."""
        digits = decimals([self.score, *(part.contribution for part in self.rows)])
        texts = "".join(f'<div style="{_TEXT}">{text}</div>' for text in texts_of(self) if text)
        head = f"<p><b>{escape(self.docno)}</b> has score <b>{self.score:.{digits}f}</b></p>"
        both = f'<div style="display:flex;flex-wrap:wrap;gap:0 2em">{texts}</div>' if texts else ""
        return f"<div>{head}{both}{_table(self, digits) if self.rows else ''}</div>"


def _better(one: Reading | None, other: Reading | None) -> Reading | None:
    """Return the reading that distinguishes sentences, if one does."""
    return other if one is None or (not one.sentences and other is not None and other.sentences) else one


HUES = ("#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#0072B2", "#B8A800")
"""Of Okabe and Ito, distinct with every color vision; parts have numbers, too."""

FORMULAS = ("formula", "symbols", "edges", "nodes", "layout tree", "operator tree")
"""Kinds of parts that are about a formula; their texts are LaTeX."""

_LONGEST_TEXT = 50_000  # characters of a text that are written

Key = tuple[str, int | str]
"""What is marked in a text: a row (a formula or sentence), a word, or the whole."""


class ColorGroup(NamedTuple):
    """The parts of a score that have the same origin in the query."""

    number: int  # from 1, the greatest contribution first
    color: str  # in hexadecimal

    @property
    def badge(self) -> str:
        """The number on its color."""
        return (
            f'<span style="background:{self.color};color:#fff;border-radius:.7em;padding:0 .4em;font-size:.75em;'
            f'text-shadow:0 0 2px #000;margin:0 .15em">{self.number}</span>'
        )


Marks = Mapping[Key, list[ColorGroup]]
"""The colors in one text."""


def key_of(kind: str, row: int, text: str) -> Key | None:
    """Return what a part is about in one of the texts, or ``None`` if it is about nothing of it."""
    if kind in (*FORMULAS, "sentence") and row >= 0:
        return "row", row
    if kind == "word":
        return "word", text.lower()
    return ("whole", 0) if kind == "document" else None


def group_of(part: Part, groups: Mapping[Key, ColorGroup]) -> ColorGroup | None:
    """Return the number and color of a part's origin in the query, if it has them."""
    key = key_of(part.part, part.query_row, part.query)
    return None if key is None else groups.get(key)


def groups_of(parts: Iterable[Part]) -> dict[Key, ColorGroup]:
    """Give a number and a color to the origins in the query that contribute most."""
    totals: dict[Key, float] = defaultdict(float)
    for part in parts:
        if (key := key_of(part.part, part.query_row, part.query)) is not None:
            totals[key] += part.contribution
    best = sorted((key for key in totals if totals[key] > 0), key=lambda key: -totals[key])[: len(HUES)]
    return {key: ColorGroup(number, HUES[number - 1]) for number, key in enumerate(best, 1)}


def texts_of(explanation: Explanation) -> tuple[str, str]:
    """Write the two texts with each part of the query, and its match, in one color."""
    groups = groups_of(explanation.rows)
    marks_of_query: dict[Key, list[ColorGroup]] = defaultdict(list)
    marks_of_document: dict[Key, list[ColorGroup]] = defaultdict(list)
    colored = [(group, part) for part in explanation.rows if (group := group_of(part, groups)) is not None]
    for group, part in sorted(colored, key=lambda pair: pair[0].number):
        asked = key_of(part.part, part.query_row, part.query)
        matched = key_of(part.document_part or part.part, part.document_row, part.document)
        for marks, key in ((marks_of_query, asked), (marks_of_document, matched)):
            if key is not None and group not in marks[key]:
                marks[key].append(group)
    document = _colored(explanation.docno, explanation.document, marks_of_document)
    return _colored("query", explanation.query, marks_of_query), document


def _colored(title: str, reading: Reading | None, marks: Marks) -> str:
    if reading is None:
        return ""
    badges = "".join(group.badge for group in marks.get(("whole", 0), ()))
    return f"<p><b>{escape(title)}</b>{badges}</p><div>{marked(reading, marks)}</div>"


def marked(reading: Reading, marks: Marks) -> str:
    """Write a text with its marks; formulas as MathML in their sentences; of a long text the beginning."""
    whole, at, pieces = reading.post.text, 0, []
    text = whole if len(whole) <= _LONGEST_TEXT else whole[:_LONGEST_TEXT].rpartition(" ")[0] or whole[:_LONGEST_TEXT]
    for row, sentence in enumerate(reading.sentences, len(reading.post.formulas)):
        words = map(re.escape, sentence.split())
        match = re.compile(r"\s+".join(words)).search(text, at) if sentence.strip() else None
        if match is not None:
            pieces.append(inline(text[at : match.start()], reading, marks))
            pieces.append(_painted(inline(match[0], reading, marks), marks.get(("row", row), [])))
            at = match.end()
        elif text is not whole:
            break
    pieces.append(inline(text[at:], reading, marks))
    if text is not whole:
        pieces.append(f" … the text goes on: {len(whole) - len(text):,} more characters")
    return "".join(pieces).replace("\n", "<br>")


def inline(text: str, reading: Reading, marks: Marks) -> str:
    """Write a piece of a text, its words and formulas marked."""
    words = {str(word): groups for (kind, word), groups in marks.items() if kind == "word" and word}
    pieces, at = [], 0
    for match in PLACEHOLDER.finditer(text):
        row = int(match[1])
        pieces.append(_words(text[at : match.start()], words))
        pieces.append(_painted(formula_html(reading.post.formulas[row].latex), marks.get(("row", row), [])))
        at = match.end()
    return "".join([*pieces, _words(text[at:], words)])


def _words(text: str, marks: Mapping[str, list[ColorGroup]]) -> str:
    if not marks:
        return escape(text)
    longest_first = sorted(marks, key=len, reverse=True)
    wanted = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)
    pieces = wanted.split(text)  # every second one is a word
    painted = (_painted(escape(word), marks[word.lower()]) for word in pieces[1::2])
    return "".join(escape(plain) + word for plain, word in zip(pieces[::2], [*painted, ""], strict=True))


def _painted(html: str, groups: list[ColorGroup]) -> str:
    """Put a piece of HTML on the color of the first of its groups, with the number of each."""
    if not groups:
        return html
    color, badges = groups[0].color, "".join(group.badge for group in groups)
    style = f"background:{color}33;border-bottom:2px solid {color}"
    return f'<span style="{style}">{badges}{html}</span>'


_WIDTH, _BAR = 100, 10


def table_of(explanation: Explanation, shown: int = 16, width: int = _WIDTH) -> str:
    """Write the score, then ``shown`` parts, each with its contribution as number and bar, for a terminal."""
    parts = explanation.rows
    digits = decimals([explanation.score, *(part.contribution for part in parts)])
    lines = [f"score of {explanation.docno!r}: {explanation.score:.{digits}f}"]
    kept, rest = split(parts, shown)
    numbers = [f"{part.contribution:.{digits}f}" for part in kept] + [f"{rest:.{digits}f}"]
    names = [f"{part.system} {part.part}" for part in kept]
    wide, long = max(map(len, numbers)), max(map(len, names), default=0)
    left = max(24, width - wide - long - _BAR - 6)
    greatest = max((abs(part.contribution) for part in kept), default=0.0) or 1.0
    for part, number, name in zip(kept, numbers[:-1], names, strict=True):
        bar = _bar(abs(part.contribution) / greatest)
        lines.append(f"{number:>{wide}}  {bar:<{_BAR}}  {name:<{long}}  {_texts(part, left)}".rstrip())
    if len(parts) > len(kept):
        lines.append(f"{numbers[-1]:>{wide}}  {'':<{_BAR}}  {counted(len(parts) - len(kept), 'further part')}")
    return "\n".join(lines)


def split(parts: Sequence[Part], count: int) -> tuple[list[Part], float]:
    """Return the parts with the greatest contributions, positive or negative, and the sum of all others."""
    order = sorted(range(len(parts)), key=lambda row: -abs(parts[row].contribution))
    kept = set(order[:count])
    others = (part.contribution for row, part in enumerate(parts) if row not in kept)
    return [part for row, part in enumerate(parts) if row in kept], math.fsum(others)


def decimals(numbers: Sequence[float]) -> int:
    """Count the decimals with which the greatest number has three digits; at least two, at most eight."""
    greatest = max(map(abs, numbers), default=0.0)
    return min(max(2, 2 - math.floor(math.log10(greatest))), 8) if greatest else 2


def _bar(share: float) -> str:
    """Draw a share of the longest bar, in eighths of a character."""
    eighths = round(8 * _BAR * share)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _texts(part: Part, width: int) -> str:
    """The texts of a part: in the query, and its match in the document."""
    texts = [text for text in (part.query, part.document) if text]
    if not texts or texts[:1] == texts[1:]:
        return shortened(texts[0], width) if texts else ""
    each = (width - 3) // len(texts)
    first = shortened(texts[0], each)
    return " ↔ ".join([first, *(shortened(text, width - 3 - columns(first)) for text in texts[1:])])


_SHOWN, _LONGEST = 24, 160  # parts in a table, characters of a part
_BAR_WIDTH, _NO_GROUP = 120, "#8a8f98"
_CELL = "padding:.15em .6em;text-align:left;vertical-align:top"
_NUMBER = "padding:.15em .6em;text-align:right;vertical-align:top;white-space:nowrap;font-variant-numeric:tabular-nums"
_TEXT = "flex:1 1 20em;min-width:0;max-height:26em;overflow:auto;line-height:1.6"


def _table(explanation: Explanation, digits: int) -> str:
    parts = explanation.rows
    kept, rest = split(parts, _SHOWN)
    groups = groups_of(parts)
    greatest = max((abs(part.contribution) for part in kept), default=0.0) or 1.0
    heads = ("", "contribution", "", "part", "query", "document", "similarity × weight")
    rows = ["".join(f'<th style="{_CELL}">{name}</th>' for name in heads)]
    rows += [_row(explanation, part, groups, greatest, digits) for part in kept]
    if len(parts) > len(kept):
        left_out = counted(len(parts) - len(kept), "further part")
        others = f'<td></td><td style="{_CELL}" colspan="4">{left_out}</td>'
        rows.append(f'<td></td><td style="{_NUMBER}">{rest:.{digits}f}</td>{others}')
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    table = f'<table style="margin-top:.8em;border-collapse:collapse;font-size:inherit">{body}</table>'
    return f'<div style="overflow-x:auto">{table}</div>'


def _row(explanation: Explanation, part: Part, groups: Mapping[Key, ColorGroup], greatest: float, digits: int) -> str:
    group = group_of(part, groups)
    color, width = group.color if group else _NO_GROUP, round(_BAR_WIDTH * abs(part.contribution) / greatest)
    ground = color if part.contribution >= 0 else "none"  # a negative part is the outline of a bar
    box = f"width:{width}px;height:.8em;margin-top:.35em;box-sizing:border-box"
    bar = f'<div style="{box};background:{ground};border:1px solid {color}"></div>'
    product = f"{part.similarity:.3f} × {part.weight:.3g}" if math.isfinite(part.similarity) else ""
    cells = (
        (_CELL, group.badge if group else ""),
        (_NUMBER, f"{part.contribution:.{digits}f}"),
        (f"{_CELL};min-width:{_BAR_WIDTH}px", bar),
        (f"{_CELL};white-space:nowrap", f"{escape(part.system)}<br><i>{escape(part.part)}</i>"),
        (_CELL, _text(part.part, part.query, part.query_row, explanation.query)),
        (_CELL, _text(part.document_part or part.part, part.document, part.document_row, explanation.document)),
        (_NUMBER, product),
    )
    return "".join(f'<td style="{style}">{content}</td>' for style, content in cells)


def _text(kind: str, text: str, row: int, reading: Reading | None) -> str:
    """Write the text of a part: a formula, a sentence with its formulas, or that it is the whole text."""
    if kind == "document":
        return "<i>the whole text</i>"
    if kind in FORMULAS and text:
        return formula_html(text)
    if kind == "sentence" and reading is not None:
        place = row - len(reading.post.formulas)
        if 0 <= place < len(reading.sentences) and len(reading.sentences[place]) <= _LONGEST:
            return inline(reading.sentences[place], reading, {})
    return escape(shortened(text, _LONGEST))
