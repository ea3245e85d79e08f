r"""Material that is neither words nor formulas, kept as source: drawings, diagrams, programs, proof trees, chemistry.

::

    \begin{tikzcd} A \arrow[r] & B \end{tikzcd}  ──hidden──▶  the same, each character in a private plane of Unicode
        ──▶  <pre class="latex-source">\begin{tikzcd} …</pre>    which readers of HTML leave out

Hidden characters are neither letters nor blanks nor signs, so every later step passes them on as they are.
"""

from __future__ import annotations

import re
from html import escape, unescape

_CODE = "verbatim verbatim* Verbatim BVerbatim LVerbatim lstlisting minted alltt sagesilent sageblock luacode pycode"
_DRAWINGS = (
    "tikzpicture tikzcd tikzcd* CD circuitikz pgfpicture picture pspicture asy asydef forest feynman quantikz mpost "
    "algorithmic algorithmic* algorithm2e pseudocode prooftree scprooftree mathpar xy chemfig scheme reaction"
)
SOURCES = frozenset(f"{_CODE} {_DRAWINGS}".split())
"""Environments that are kept as source."""
SOURCE = re.compile(
    rf"\\begin\s*\{{({'|'.join(re.escape(name) for name in sorted(SOURCES))})\}}|\\(?:ce|chemfig|xymatrix)(?![A-Za-z])"
)
"""The beginning of material that is kept as source."""

_HIDDEN = 0xF0000
HIDDEN = re.compile("[\U000f0000-\U000ffffd]+")
"""Characters of material that is kept as source."""


SOURCE_CLASS = "latex-source"
"""The class of an element of HTML that shows source."""
_WRITTEN = re.compile(rf'<pre class="{SOURCE_CLASS}">([^<>]*)</pre>')


def hidden(source: str) -> str:
    """Hide text from all readers of words and formulas, character by character."""
    return "".join(chr(_HIDDEN + ord(character)) for character in source if ord(character) < 0xFFFE)


def shown(source: str) -> str:
    return "".join(chr(ord(character) - _HIDDEN) for character in source)


def source_html(source: str) -> str:
    """Write source as HTML that is shown, but is neither text nor a formula of a post."""
    return f'<pre class="{SOURCE_CLASS}">{escape(source)}</pre>'


def with_hidden(html: str) -> str:
    """Hide the source in HTML of our own, so that a post that is read of it keeps it."""
    return _WRITTEN.sub(lambda source: hidden(unescape(source[1])), html)


def source_texts(html: str) -> list[str]:
    """List the source in HTML of our own."""
    return [unescape(source) for source in _WRITTEN.findall(html)]
