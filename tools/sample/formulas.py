"""Formulas of the sample: numbers, spans, Presentation MathML, and the formula tables."""

from __future__ import annotations

import csv
import functools
import html
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from markup import inline_html, to_html
from math_core import LatexToMathML

POST_COLUMNS = ("id", "post_id", "thread_id", "type", "comment_id", "old_visual_id", "visual_id", "issue", "formula")
TOPIC_COLUMNS = ("id", "topic_id", "thread_id", "type", "formula")
MATH = re.compile(r"<math[^>]*>(.*)</math>", re.S)
SPACING = re.compile(r'<mspace[^>]*/>| [lr]space="[^"]*"')
SINGLE = re.compile(r"<mrow>(<m[ion]>[^<]*</m[ion]>)</mrow>")
NAMED = re.compile(r"&(?!(?:lt|gt|amp|quot);)\w+;")
TO_MATHML = LatexToMathML()


@functools.cache
def mathml(latex: str) -> str:
    """Return Presentation MathML of a formula in inline style, without its outer element.

    Spacing hints, needless rows and HTML entities are removed, as the release has none. As in LaTeXML's inline style,
    the minus is ASCII, and limits are set as scripts of their operator.
    """
    match = MATH.fullmatch(TO_MATHML.convert_with_local_state(latex, displaystyle=False))
    if match is None:
        raise ValueError(f"no single math element for {latex}")
    plain = SINGLE.sub(r"\1", SPACING.sub("", match.group(1))).replace("\N{MINUS SIGN}", "-")
    plain = plain.replace("munderover>", "msubsup>").replace("munder>", "msub>")
    return NAMED.sub(lambda entity: html.unescape(entity.group()), plain)


def slt_cell(latex: str) -> str:
    """Return the formula as a cell of the slt table."""
    head = f'xmlns="http://www.w3.org/1998/Math/MathML" alttext="{html.escape(latex)}" class="ltx_Math"'
    return f'<math {head} display="inline"><semantics><mrow>{mathml(latex)}</mrow></semantics></math>'


@dataclass
class Formulas:
    """Numbers formulas in order and generates their spans.

    Attributes:
        prefix: precedes the number in each id.
        dollars: whether spans have dollars (topics) or not (posts).
        rows: id, post id, thread id, type, LaTeX of each formula.
    """

    prefix: str = ""
    dollars: bool = False
    rows: list[tuple[str, str, str, str, str]] = field(default_factory=list)

    def html(self, text: str, post: str, thread: str, kind: str) -> str:
        """Return the HTML of a title (one line) or a body (blocks), and record its formulas."""

        def span(latex: str, dollar: str) -> str:
            number = f"{self.prefix}{len(self.rows) + 1}"
            self.rows.append((number, post, thread, kind, latex))
            shown = f"{dollar}{latex}{dollar}" if self.dollars else latex
            return f'<span class="math-container" id="{number}">{html.escape(shown, quote=False)}</span>'

        return inline_html(text, span) if kind == "title" else to_html(text, span)


def table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a formula table: separated by tabs, quoted as in CSV, with CR LF."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter="\t", lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()
