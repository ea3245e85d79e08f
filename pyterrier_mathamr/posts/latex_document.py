r"""LaTeX documents as text with formulas between their delimiters, the document's macros written out.

pylatexenc reads the text (``\emph``, lists, accents, sections); formulas are left as they are, but for comments,
labels and the document's own macros (:mod:`.latex_macros`).
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from .latex_macros import group, macros_written_out

if TYPE_CHECKING:
    from pylatexenc.latex2text import LatexNodes2Text

_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]*")
_VERBATIM = re.compile(r"\\begin\{(verbatim\*?|lstlisting|minted|comment)\}.{0,100000}?\\end\{\1\}", re.S)
_BODY = re.compile(r"\\begin\{document\}(.*?)(?:\\end\{document\}|\Z)", re.S)
_TITLE = re.compile(r"\\title\s*(?:\[[^\]\n]{0,500}\])?\s*(?=\{)")
_LABELS = re.compile(r"\\(?:label|tag\*?)\s*\{[^{}]*\}|\\(?:notag|nonumber|maketitle|tableofcontents)(?![A-Za-z])")
_HEADINGS = re.compile(r"\\(?:part|chapter|(?:sub)*section|paragraph)\*?\s*(?:\[[^\]\n]{0,500}\])?\s*(?=\{)")
_REFERENCES = re.compile(r"~?\\(?:cite[a-z]*\*?|(?:eq|auto|c)?ref|footnotemark)\s*(?:\[[^\]\n]{0,500}\])*\{[^{}]*\}")


def text_from_latex(source: str) -> tuple[str, str]:
    r"""Read a LaTeX document, or a part of one.

    Args:
        source: LaTeX. Of a whole document the part between ``\begin{document}`` and ``\end{document}`` is read.

    Returns:
        Title (without one, the heading that the text begins with) and text, both with formulas between their
        delimiters, paragraphs separated by blank lines; for :func:`~pyterrier_mathamr.posts.post_from_text`.
    """
    source = _VERBATIM.sub("", _COMMENT.sub(r"\1", source.replace("\r\n", "\n")))
    source = macros_written_out(source)
    titled, body = _TITLE.search(source), _BODY.search(source)
    title, after = group(source, titled.end()) if titled else ("", 0)
    if body:
        source = body[1]
    elif titled:
        source = source[: titled.start()] + source[after:]
    if not titled and (heading := _HEADINGS.match(source, len(source) - len(source.lstrip()))):
        title, after = group(source, heading.end())
        source = source[after:]
    return _text(title), _text(source)


def _text(source: str) -> str:
    source = _REFERENCES.sub("", _LABELS.sub("", source))
    pieces, at = [], 0
    for heading in _HEADINGS.finditer(source):
        name, end = group(source, heading.end())
        pieces += [source[at : heading.start()], f"\n\n{name}\n\n"]
        at = max(end, heading.end())
    source = "".join([*pieces, source[at:]])
    try:
        plain: str = _reader().latex_to_text(source)
    except RecursionError:  # groups a hundred deep: the source with its commands is searched rather than nothing
        return source.strip()
    return plain.strip()


@cache
def _reader() -> LatexNodes2Text:
    from pylatexenc.latex2text import LatexNodes2Text

    return LatexNodes2Text(math_mode="verbatim", strict_latex_spaces=False, keep_comments=False)
