"""The LaTeX that a page keeps beside its rendered formulas, in the form that posts have.

::

    <math …>…<annotation encoding="application/x-tex">x^2</annotation></math>   Wikipedia, KaTeX, pandoc, LaTeXML
    <math alttext="x^2" …>…</math>                                              LaTeXML
    <script type="math/tex; mode=display">x^2</script>                          MathJax 2, kramdown
        │
        ▼
    <span class="math-container">x^2</span>

MathML without LaTeX stays as it is, and its symbols are read as text.
"""

from __future__ import annotations

import re
from html import escape

_START = re.compile(r"<(math|script)((?:\s(?:[^<>\"']|\"[^\"]{0,2000}\"|'[^']{0,2000}'){0,200})?)>", re.IGNORECASE)
_ENDS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("math", "script")}
_ANNOTATION = re.compile(r"<annotation\s[^<>]{0,200}?\b(?:application/x-)?(?:la)?tex\b[^<>]{0,200}>", re.IGNORECASE)
_ALT_TEXT = re.compile(r"""\balttext\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_CDATA = re.compile(r"\A\s*(?:%\s*)?<!\[CDATA\[\s*(.*?)\s*(?:%\s*)?\]\]>\s*\Z", re.DOTALL)
_STYLE = re.compile(r"\A\s*\{\s*\\(?:display|text)style\b\s*(.*)\}\s*\Z", re.DOTALL)


def with_latex(source: str) -> str:
    """Put LaTeX in the place of rendered formulas.

    Args:
        source: HTML.
    """
    out, at, position = list[str](), 0, 0
    unended = set[str]()  # elements without an end tag from here on, so that not each start looks for one
    while start := _START.search(source, position):
        name, position = start[1].lower(), start.end()
        end = None if name in unended else _ENDS[name].search(source, position)
        if end is None:
            unended.add(name)
            continue
        latex = _LATEX[name](source[position : end.start()], start[2])
        close = source.find(">", end.end())
        position = close + 1 if close >= 0 else len(source)
        if latex:
            out += [source[at : start.start()], f'<span class="math-container">{latex}</span>']
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
