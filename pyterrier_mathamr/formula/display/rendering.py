r"""Text of posts as HTML for people: escaped, formulas as MathML.

What a person wrote is never passed on as HTML: only the text and the LaTeX of a ``MathPost`` are, escaped and
converted, so a page can insert the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from html import escape

from lxml import etree

from pyterrier_mathamr.formula import FormulaError
from pyterrier_mathamr.formula.mathml import NOT_XML
from pyterrier_mathamr.formula.tex.converter import NotTriedError, to_mathml
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, latex_of_unicode, plain_text

_DISPLAY = re.compile(r"\\begin\{|\\\\|\\(?:int|sum|prod|lim|frac|binom)(?![A-Za-z])")
_NUMBERED = re.compile(r"\\(begin|end)\{(align|gather|equation|multline|alignat|eqnarray|flalign)\}")
_ALIGNED = re.compile(r"text-align:\s*(left|right|center)")
_COLOR = re.compile(r"(?<![a-z-])color:\s*(#[0-9A-Fa-f]{3,8}|[a-z]+)")
_LONGEST = 5_000


def formula_html(latex: str, *, display: bool = False) -> str:
    """Render a formula as MathML, without style attributes, which a strict content security policy refuses."""
    try:
        return _formula_html(latex, display)
    except NotTriedError:  # here; it is not remembered
        return _as_code(latex)


def _as_code(latex: str) -> str:
    return f'<code class="tex">{escape(NOT_XML.sub(" ", latex))}</code>'


@lru_cache(maxsize=4096)
def _formula_html(latex: str, display: bool) -> str:
    import math_core

    latex = NOT_XML.sub(" ", latex)
    try:
        if len(latex) > _LONGEST:
            raise FormulaError("the formula is too long to be shown", latex)
        source = _NUMBERED.sub(r"\\\1{\2*}", latex_of_unicode(latex))
        root = etree.fromstring(to_mathml(source).encode())
    except NotTriedError:
        raise
    except (FormulaError, math_core.LatexError, etree.XMLSyntaxError):
        return _as_code(latex)
    for node in root.iter():
        style = str(node.attrib.pop("style", ""))
        if (aligned := _ALIGNED.search(style)) is not None:
            node.set("class", f"align-{aligned[1]}")
        if (color := _COLOR.search(style)) is not None:
            node.set("mathcolor", color[1])
        for name in ("href", "actiontype", "src", "{http://www.w3.org/1999/xlink}href"):
            node.attrib.pop(name, "")
    root.set("display", "block" if display else "inline")
    root.set("alttext", latex)
    written: str = etree.tostring(root, encoding="unicode")
    return written


def inline_html(text: str, post: MathPost, *, mark: Callable[[int], str] | None = None) -> str:
    """Render text with placeholders of a post's formulas, without paragraphs."""
    pieces, at = [], 0
    for match in PLACEHOLDER.finditer(text):
        number = int(match[1])
        latex = post.formulas[number].latex
        alone = match[0] == text.strip() and needs_space(latex)
        pieces.append(escape(text[at : match.start()]))
        pieces.append(formula_span(latex, mark(number) if mark else "", display=alone))
        at = match.end()
    return "".join([*pieces, escape(text[at:])])


def needs_space(latex: str) -> bool:
    """Tell whether a formula has limits, fractions or lines, which a block of its own shows in full size."""
    return bool(_DISPLAY.search(latex))


def formula_span(latex: str, kind: str = "", *, display: bool = False) -> str:
    """Render a formula in a span of class ``formula`` that knows its LaTeX."""
    classes = f"formula {kind}".strip()
    return f'<span class="{classes}" data-latex="{escape(latex)}">{formula_html(latex, display=display)}</span>'


def text_of(post: MathPost) -> str:
    """Write a post as one line of text with ``$latex$``."""
    return plain_text(post).replace("\n", " ")
