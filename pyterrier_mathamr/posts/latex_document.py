r"""LaTeX documents as text with formulas between their delimiters, macros without arguments written out.

pylatexenc reads the text (``\emph``, lists, accents, sections); formulas are left as they are, but for comments,
labels and the document's own macros: with ``\newcommand{\R}{\mathbb{R}}`` the formula ``x \in \R`` becomes
``x \in \mathbb{R}``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylatexenc.latex2text import LatexNodes2Text

_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]*")
_VERBATIM = re.compile(r"\\begin\{(verbatim\*?|lstlisting|minted|comment)\}.{0,100000}?\\end\{\1\}", re.S)
_BODY = re.compile(r"\\begin\{document\}(.*?)(?:\\end\{document\}|\Z)", re.S)
_TITLE = re.compile(r"\\title\s*(?:\[[^\]\n]{0,500}\])?\s*(?=\{)")
_MACRO = re.compile(
    r"\\(?:(?:re)?newcommand\*?|providecommand\*?|DeclareMathOperator\*?|def)\s*\{?\\([A-Za-z]+)\}?\s*(?=\{)"
)
_LABELS = re.compile(r"\\(?:label|tag\*?)\s*\{[^{}]*\}|\\(?:notag|nonumber|maketitle|tableofcontents)(?![A-Za-z])")
_HEADINGS = re.compile(r"\\(?:part|chapter|(?:sub)*section|paragraph)\*?\s*(?:\[[^\]\n]{0,500}\])?\s*(?=\{)")
_REFERENCES = re.compile(r"~?\\(?:cite[a-z]*\*?|(?:eq|auto|c)?ref|footnotemark)\s*(?:\[[^\]\n]{0,500}\])*\{[^{}]*\}")
_LONGEST_GROUP = 2_000
_EXPANSIONS = 8


def text_from_latex(source: str) -> tuple[str, str]:
    r"""Read a LaTeX document, or a part of one.

    Args:
        source: LaTeX. Of a whole document the part between ``\begin{document}`` and ``\end{document}`` is read.

    Returns:
        Title (without one, the heading that the text begins with) and text, both with formulas between their
        delimiters, paragraphs separated by blank lines; for :func:`~pyterrier_mathamr.posts.post_from_text`.
    """
    source = _VERBATIM.sub("", _COMMENT.sub(r"\1", source.replace("\r\n", "\n")))
    macros, source = _macros(source)
    source = _expanded(source, macros)
    titled, body = _TITLE.search(source), _BODY.search(source)
    title, after = _group(source, titled.end()) if titled else ("", 0)
    if body:
        source = body[1]
    elif titled:
        source = source[: titled.start()] + source[after:]
    if not titled and (heading := _HEADINGS.match(source, len(source) - len(source.lstrip()))):
        title, after = _group(source, heading.end())
        source = source[after:]
    return _text(title), _text(source)


def _text(source: str) -> str:
    source = _REFERENCES.sub("", _LABELS.sub("", source))
    pieces, at = [], 0
    for heading in _HEADINGS.finditer(source):
        name, end = _group(source, heading.end())
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


def _macros(source: str) -> tuple[dict[str, str], str]:
    """Find the macros without arguments that a document defines, and take all definitions out."""
    macros: dict[str, str] = {}
    pieces, at = [], 0
    for match in _MACRO.finditer(source):
        if match.start() < at:
            continue
        meaning, end = _group(source, match.end())
        if "#" not in meaning and end > match.end():
            macros[match[1]] = rf"\operatorname{{{meaning}}}" if "Operator" in match[0] else meaning
        pieces.append(source[at : match.start()])
        at = max(end, match.end())
    return macros, "".join([*pieces, source[at:]])


def _expanded(source: str, macros: dict[str, str]) -> str:
    """Write macros out, those within macros too; one that holds itself is left after a few rounds."""
    if not macros:
        return source
    pattern = re.compile(r"\\(" + "|".join(map(re.escape, macros)) + r")(?![A-Za-z])")
    limit = 4 * len(source) + 100_000  # nested definitions could grow without bound
    for _ in range(_EXPANSIONS):
        grown = pattern.sub(lambda match: f"{{{macros[match[1]]}}}", source)
        if grown == source or len(grown) > limit:
            break
        source = grown
    return source


def _group(source: str, start: int) -> tuple[str, int]:
    """Return the content of the group in braces at ``start`` and its end; nothing where it does not end."""
    depth = 0
    for i in range(start, min(len(source), start + _LONGEST_GROUP)):
        escaped = source[i - 1 : i] == "\\"
        depth += 0 if escaped else (source[i] == "{") - (source[i] == "}")
        if depth == 0:
            return source[start + 1 : i], i + 1
    return "", start
