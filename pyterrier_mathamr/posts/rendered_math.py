"""The LaTeX that a page keeps beside its rendered formulas, in the form that posts have.

::

    <math …>…<annotation encoding="application/x-tex">x^2</annotation></math>   Wikipedia, KaTeX, pandoc, LaTeXML
    <math alttext="x^2" …>…</math>                                              LaTeXML
    <script type="math/tex; mode=display">x^2</script>                          MathJax 2, kramdown
    <math …><msup><mi>x</mi><mn>2</mn></msup></math>                            MathJax 3, pandoc, Word, LibreOffice
        │
        ▼
    <span class="math-container">x^2</span>

MathML without LaTeX is written as LaTeX (`mathml_latex`); where that is not certain, it is text as code is, in which no
formula is looked for. The copy that MathJax 3 shows beside its MathML is left out.
"""

from __future__ import annotations

import re
from html import escape

from .mathml_latex import latex_of_mathml, text_of_mathml

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


def with_latex(source: str, unread: list[str] | None = None) -> str:
    """Put LaTeX in the place of rendered formulas."""
    if "<mjx-" in source:
        source = _MATHJAX_TAG.sub("", _SHOWN.sub("", source))
    out, at, position = list[str](), 0, 0
    unended = set[str]()  # elements without an end tag from here on, so that not each start looks for one
    while start := _START.search(source, position):
        name, position = start[1].lower().rpartition(":")[2], start.end()
        end = None if name in unended else _ENDS[name].search(source, position)
        if end is None:
            unended.add(name)
            continue
        close = source.find(">", end.end())
        close = close + 1 if close >= 0 else len(source)
        latex = _LATEX[name](source[position : end.start()], start[2])
        position = close
        if not latex and name == "math":
            latex = escape(latex_of_mathml(source[start.start() : close]), quote=False)
        if latex:
            written = f'<span class="math-container">{latex}</span>'
        elif name == "math":
            text = text_of_mathml(source[start.start() : close])
            if text and unread is not None:
                unread.append(text)
            written = f"<code>{escape(text, quote=False)}</code>"
        else:
            continue
        out += [source[at : start.start()], written]
        at = position
    return "".join([*out, source[at:]])


def _of_math(content: str, attributes: str) -> str:
    """Return the LaTeX of a MathML element, escaped as in HTML; empty without one."""
    if annotated := _ANNOTATION.search(content):
        latex = content[annotated.end() :].partition("</")[0]
    else:
        found = _ALT_TEXT.search(attributes)
        latex = found[found.lastindex or 0] if found else ""
    styled = _STYLE.match(latex)
    return (styled[1] if styled else latex).strip()


def _of_script(content: str, attributes: str) -> str:
    """Return the LaTeX of MathJax's script, escaped as in HTML; empty for any other script."""
    if "math/tex" not in attributes.lower():
        return ""
    data = _CDATA.match(content)
    return escape((data[1] if data else content).strip(), quote=False)


_LATEX = {"math": _of_math, "script": _of_script}
