"""HTML of a post to flat text with a mark for each formula.

A formula is the innermost ``<span class="math-container">``. In it only spans are tags, so that a bare ``<`` of LaTeX
is text; an end tag of a block closes open spans. Elsewhere only names of HTML and MathML are tags; ``a<x`` is text.

A page with rendered formulas keeps their LaTeX next to them, and the LaTeX replaces them first::

    <math …>…<annotation encoding="application/x-tex">x^2</annotation></math>   Wikipedia, KaTeX, pandoc, LaTeXML
    <math alttext="x^2" …>…</math>                                              LaTeXML
    <script type="math/tex; mode=display">x^2</script>                          MathJax 2, kramdown
    <math …><msup><mi>x</mi><mn>2</mn></msup></math>                            MathJax 3, pandoc, Word, LibreOffice
        ──▶  <span class="math-container">x^2</span>

MathML without LaTeX is written as LaTeX (`mathml_latex`); if that is uncertain, it is text and, like code, is not
searched for formulas. The copy that MathJax 3 shows next to its MathML is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape, unescape

from .math_spans import (
    CODE_BACKSLASH,
    CODE_DOLLAR,
    CODE_END,
    CODE_START,
    MARK,
    SOURCE_CLASS,
    clean,
    has_dollar,
    mask,
    replaced,
    strip_delimiters,
)
from .mathml_latex import RULES, latex_of_mathml, text_of_mathml
from .post import PostFormula

_START = re.compile(
    r"<((?:[a-z][\w.-]{0,20}:)?math|script)((?:\s(?:[^<>\"']|\"[^\"]{0,2000}\"|'[^']{0,2000}'){0,200})?)>",
    re.IGNORECASE,
)
_ENDS = {
    "math": re.compile(r"</(?:[a-z][\w.-]{0,20}:)?math\b", re.IGNORECASE),
    "script": re.compile("</script", re.IGNORECASE),
}
_SHOWN = re.compile(r"<mjx-math\b(?:[^<]|<(?!/?mjx-math\b)){0,100000}</mjx-math>", re.IGNORECASE)
_MATHJAX_TAG = re.compile(
    r"</?mjx-[a-z0-9-]{1,30}(?:\s(?:[^<>\"']|\"[^\"]{0,2000}\"|'[^']{0,2000}'){0,200})?>", re.IGNORECASE
)
_ANNOTATION = re.compile(r"<annotation\s[^<>]{0,200}?\b(?:application/x-)?(?:la)?tex\b[^<>]{0,200}>", re.IGNORECASE)
_ALT_TEXT = re.compile(r"""\b(?:alttext|data-latex)\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_CDATA = re.compile(r"\A\s*(?:%\s*)?<!\[CDATA\[\s*(.*?)\s*(?:%\s*)?\]\]>\s*\Z", re.DOTALL)
_STYLE = re.compile(r"\A\s*\{\s*\\(?:display|text)style\b\s*(.*)\}\s*\Z", re.DOTALL)


def with_latex(source: str, unread: list[str]) -> str:
    """Put LaTeX in the place of rendered formulas; collect the text of unreadable ones."""
    if "<mjx-" in source:
        source = _MATHJAX_TAG.sub("", _SHOWN.sub("", source))
    return replaced(source, _rendered(source, unread))


def _rendered(source: str, unread: list[str]) -> Iterator[tuple[int, int, str]]:
    """Find rendered formulas, and the text that replaces each; other scripts than MathJax's stay."""
    position = 0
    unended = set[str]()  # elements without an end tag from here on, so that not each start looks for one
    while start := _START.search(source, position):
        name, attributes, position = start[1].lower().rpartition(":")[2], start[2], start.end()
        end = None if name in unended else _ENDS[name].search(source, position)
        if end is None:
            unended.add(name)
            continue
        close = source.find(">", end.end())
        close = close + 1 if close >= 0 else len(source)
        content, position = source[position : end.start()], close
        latex = ""  # escaped as in HTML
        if name == "script" and "math/tex" in attributes.lower():
            data = _CDATA.match(content)
            latex = escape((data[1] if data else content).strip(), quote=False)
        elif name == "math":
            whole = source[start.start() : close]
            if annotated := _ANNOTATION.search(content):
                latex = content[annotated.end() :].partition("</")[0]
            elif alternative := _ALT_TEXT.search(attributes):
                latex = alternative[alternative.lastindex or 0]
            styled = _STYLE.match(latex)
            latex = (styled[1] if styled else latex).strip() or escape(latex_of_mathml(whole), quote=False)
        if latex:
            yield start.start(), close, f'<span class="math-container">{latex}</span>'
        elif name == "math":
            text = text_of_mathml(whole)
            unread += [text] if text else []
            yield start.start(), close, f"<code>{escape(text, quote=False)}</code>"


_BLOCK_NAMES = (
    "address article aside blockquote body br caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li main menu nav ol option p pre section summary "
    "table tbody tfoot thead tr ul"
)
_INLINE_NAMES = (
    "a abbr acronym area audio b base bdi bdo big button canvas cite col colgroup del dfn em embed font i iframe img "
    "input ins label link map mark meta noscript object optgroup param picture q rp rt ruby s select small source span "
    "strike strong sub sup time track u var video wbr"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_CELLS = frozenset({"td", "th"})
_CODE = frozenset({"code", "pre", "kbd", "samp", "tt"})
_HIDDEN = frozenset({"annotation", "script", "style", "svg", "template", "textarea"})
_TAGS = _BLOCKS | _CELLS | _CODE | _HIDDEN | frozenset(_INLINE_NAMES.split()) | RULES.keys()
# the bounds keep a hostile text from making each "<" scan the rest of the text
_TAG = re.compile(
    r"""<(/?)([a-zA-Z][a-zA-Z0-9]{0,11})((?:\s(?:[^<>"']|"[^"]{0,2000}"|'[^']{0,2000}'){0,200})?)/?>|<!--"""
)
_ID = re.compile(r"""\bid\s*=\s*(?:"([^"]*)"|'([^']*)'|["']?([^"'\s>]*))""")
_SPACES = re.compile(r"\s+")
_NO_SPACE = "\u200b"
_LONGEST_TITLE = 2000
_DECLARATION = re.compile(r"\s*<[!?](?:doctype|xml)\b[^>]{0,1000}>", re.IGNORECASE)
_TITLE = re.compile(r"<title(?:\s[^>]{0,1000})?>", re.IGNORECASE)
_TITLE_END = re.compile(r"</title\s*>", re.IGNORECASE)


def title_of_html(source: str) -> tuple[str, str]:
    """Take the title of a page out of its head, and the declarations before it."""
    while declared := _DECLARATION.match(source):
        source = source[declared.end() :]
    begin = _TITLE.search(source)
    end = _TITLE_END.search(source, begin.end(), begin.end() + _LONGEST_TITLE) if begin else None
    if begin is None or end is None:
        return "", source
    return source[begin.end() : end.start()].strip(), source[: begin.start()] + source[end.end() :]


def masked_html(source: str) -> tuple[str, list[tuple[int, int]]]:
    """Find what cannot be cut: formulas, tags, comments, and code with delimiters of formulas.

    Returns the text in which `math_spans` finds the other formulas, of the same length, with masks for all these parts;
    and the start and end of each part, in any order.
    """
    rendered: list[tuple[int, int]] = []
    for expression in (_SHOWN, _MATHJAX_TAG):
        rendered += (spans := [match.span() for match in expression.finditer(source)])
        source = mask(source, spans, _NO_SPACE)
    rendered += (spans := [(start, end) for start, end, _ in _rendered(source, [])])
    source = mask(source, spans)
    parts = list(_marked_parts(source))
    text = replaced(source.replace("\n", " "), ((start, end, mark * (end - start)) for start, end, mark in parts))
    return text, rendered + [(start, end) for start, end, _ in parts]


def _marked_parts(source: str) -> Iterator[tuple[int, int, str]]:
    """Find tags, comments and whole elements, with a line end for the tags of blocks and `MARK` for elements."""
    opened: re.Match[str] | None = None  # the element
    depth = position = 0
    comments_end = True  # see `HtmlFlattener.feed`
    while match := _TAG.search(source, position):
        start, position = match.span()
        name, closing = (match[2] or "").lower(), bool(match[1])
        is_whole = name in _CODE or name in _HIDDEN or (name == "span" and ("math" in match[3] or "katex" in match[3]))
        if not name:
            end = source.find("-->", position) if comments_end and not opened else -1
            comments_end = comments_end and (end >= 0 or opened is not None)
            if end >= 0:
                position = end + 3
                yield start, position, _NO_SPACE
        elif opened is None and not closing and is_whole:
            opened, depth = match, 1
        elif opened is None:
            yield start, position, "\n" if name in _BLOCKS else _NO_SPACE
        elif name == opened[2].lower():
            depth += -1 if closing else 1
            if not depth:
                if name not in _CODE or any(sign in source[opened.end() : start] for sign in "$\\"):
                    yield opened.start(), position, MARK
                else:  # code without delimiters of formulas, of which only the tags are not cut
                    yield from ((tag.start(), tag.end(), _NO_SPACE) for tag in (opened, match))
                opened = None
        elif closing and name in _BLOCKS and opened[2].lower() == "span":
            yield opened.start(), start, MARK
            yield start, position, "\n"
            opened = None
    if opened:
        yield opened.start(), len(source), MARK


@dataclass(eq=False)
class _MathSpan:
    """An open math-container."""

    id: str  # until a formula has it
    latex: list[str] = field(default_factory=list)


_COPY = _MathSpan("")
"""Marks an open span in which KaTeX repeats a formula whose LaTeX precedes it."""


class HtmlFlattener:
    """Collects the flat text and the formulas of one post; call `feed` with each fragment (title, body).

    Args:
        mark_code: put `CODE_START` and `CODE_END` around code.

    Attributes:
        formulas: the formulas so far.
        unread: the text of MathML that cannot be read.
    """

    def __init__(self, mark_code: bool = False) -> None:
        self._mark_code = mark_code
        self.formulas: list[PostFormula] = []
        self.unread: list[str] = []
        self._out: list[str] = []
        self._spans: list[_MathSpan | None] = []  # the open spans; None for one that holds no formula
        self._math: list[_MathSpan] = []  # the open spans that are formulas
        self._hidden = ""
        self._code = self._copies = 0

    @property
    def text(self) -> str:
        """The text so far, blocks ended by line ends, with a mark for each formula."""
        return "".join(self._out)

    def feed(self, fragment: str) -> None:
        """Add an HTML fragment as separate blocks."""
        fragment = with_latex(fragment, self.unread)
        at = position = 0
        comments_end = True  # False once no "-->" is left, so that each "<!--" does not look for it again
        while match := _TAG.search(fragment, position):
            position = match.end()
            if match[0] == "<!--":
                end = fragment.find("-->", position) if comments_end and not self._math else -1
                comments_end = comments_end and (end >= 0 or bool(self._math))
                if end >= 0:
                    self._add(fragment[at : match.start()])
                    at = position = end + 3
                continue
            name, closing = match[2].lower(), bool(match[1])
            if name not in _TAGS or (self._math and name != "span" and not (closing and name in _BLOCKS)):
                continue
            self._add(fragment[at : match.start()])
            at = position
            self._tag(name, closing, match[3])
        self._add(fragment[at:])
        self._close_spans()
        self._out.append("\n")
        self._hidden, self._code = "", 0

    def _tag(self, name: str, closing: bool, attributes: str) -> None:
        if self._hidden:
            if closing and name == self._hidden:
                self._hidden = ""
        elif name == "span":
            self._close_span() if closing else self._open_span(attributes)
        elif not closing and (name in _HIDDEN or (name == "pre" and SOURCE_CLASS in attributes)):
            self._hidden = name
        else:
            if name in _BLOCKS:
                if closing:
                    self._close_spans()
                self._out.append("\n")
            elif name in _CELLS:
                self._out.append(" ")
            if name in _CODE:
                self._code = max(0, self._code + (-1 if closing else 1))

    def _add(self, source: str) -> None:
        text = clean(unescape(source))
        if self._math:
            self._math[-1].latex.append(text)
        elif not self._hidden and not self._copies:
            if self._code:
                text = text.replace("$", CODE_DOLLAR).replace("\\", CODE_BACKSLASH)
                text = f"{CODE_START}{text}{CODE_END}" if self._mark_code else text
            else:
                text = _SPACES.sub(" ", text)
            self._out.append(text)

    def _open_span(self, attributes: str) -> None:
        if "math-container" not in attributes:
            copy = "katex-html" in attributes
            self._copies += copy
            self._spans.append(_COPY if copy else None)
            return
        match = _ID.search(attributes)
        given = clean(unescape(match[match.lastindex or 0])) if match else ""
        span = _MathSpan(" ".join(given.split()))  # HTML's ids have no line breaks
        if self._math:
            outer = self._math[-1]
            if not span.id and not "".join(outer.latex).strip():  # a wrapper passes its id on
                span.id, outer.id = outer.id, ""
            self._emit(outer)
        self._spans.append(span)
        self._math.append(span)

    def _close_span(self) -> None:
        span = self._spans.pop() if self._spans else None
        if span is _COPY:
            self._copies -= 1
        elif span is not None:
            self._emit(self._math.pop())

    def _close_spans(self) -> None:
        while self._spans:
            self._close_span()

    def _emit(self, span: _MathSpan) -> None:
        """Emit the LaTeX of a span as a formula, or as text where a span without id contains several."""
        source = "".join(span.latex)
        span.latex = []
        latex = strip_delimiters(source)
        if span.id or (latex and not has_dollar(latex)):
            self.formulas.append(PostFormula(latex, span.id))
            self._out.append(MARK)
            span.id = ""
        elif latex:
            self._out.append(_SPACES.sub(" ", source))
