r"""Markdown posts (CommonMark), with their formulas taken out before Markdown is read.

::

    source ──find formulas outside code──▶ `Let x` and $a_1*b*c$  ──▶  `Let x` and ⟨0⟩
           ──CommonMark──▶ HTML ──each ⟨i⟩ becomes a math-container──▶ post_from_html

Markdown would read ``$a_1*b*c$`` as emphasis and ``\\`` as a backslash; code spans and code blocks hold no formulas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from .math_spans import MARK, clean, math_spans

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_HOLD = "\ue005"
"""Stands on both sides of a formula's number while Markdown is read."""
_HELD = re.compile(f"{_HOLD}([0-9]+){_HOLD}")
_FENCE = re.compile(
    r"^ {0,3}(?P<fence>`{3,}+(?=[^`\n]*$)|~{3,}+)[^\n]*\n(?:.*?\n)??(?: {0,3}(?P=fence)[`~]*[ \t]*$|\Z)", re.M | re.S
)
_BACKTICKS = re.compile(r"(?<!`)(`+)(?!`)")
_MATH_IN_CODE = re.compile(r"\$`([^`\n]+)`\$")
_NEW_BLOCK = r"[ \t]*(?:\n|[-+*>#|]|\d{1,9}[.)][ \t]|`{3}|~{3}|=+[ \t]*$|\Z)"
_SOFT_BREAK = re.compile(rf"\n(?!{_NEW_BLOCK})", re.M)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
_TITLE = re.compile(r"""^title[ \t]*:[ \t]*(["']?)(.+?)\1[ \t]*$""", re.M)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*$", re.M)


def html_from_markdown(source: str) -> str:
    r"""Read Markdown as the HTML that :func:`~pyterrier_mathamr.posts.post_from_html` takes.

    Args:
        source: CommonMark with formulas as ``$..$``, ``$$..$$``, ``\(..\)``, ``\[..\]``, environments or GitLab's
            ``$`..`$``. A title block between lines of ``---`` is left out.

    Returns:
        HTML; each formula is ``<span class="math-container">LaTeX</span>``.
    """
    text = clean(_FRONT_MATTER.sub("", source.replace("\r\n", "\n"), count=1)).replace(_HOLD, "")
    formulas: list[tuple[str, str]] = []
    pieces: list[str] = []
    at = 0
    for start, end, latex in _formulas(text):
        pieces += [text[at:start], f"{_HOLD}{len(formulas)}{_HOLD}"]
        formulas.append((text[start:end], latex))
        at = end
    pieces.append(text[at:])
    return _rendered("".join(pieces), formulas)


def title_of_markdown(source: str) -> tuple[str, str]:
    """Tell the title of a Markdown document from its body.

    Returns:
        The ``title`` of the block between ``---`` lines or else the first heading, as Markdown, empty where there is
        neither; and the document without what the title was taken from.
    """
    front = _FRONT_MATTER.match(source)
    body = source[front.end() :] if front else source
    titled = _TITLE.search(front[1]) if front else None
    if titled:
        return titled[2], body
    heading = _HEADING.match(body.lstrip("\n"))
    if heading:
        return heading[1], body.lstrip("\n")[heading.end() :]
    return "", body


def _formulas(text: str) -> Iterator[tuple[int, int, str]]:
    """Find the formulas outside code: start, end and LaTeX of each."""
    masked = list(text)
    fenced = [match.span() for match in _FENCE.finditer(text)]
    for start, end in fenced:
        masked[start:end] = MARK * (end - start)
    given: dict[int, re.Match[str]] = {}
    for match in _MATH_IN_CODE.finditer("".join(masked)):
        given[match.start()] = match
        masked[match.start() : match.end()] = MARK * (match.end() - match.start())
    for start, end in _code_spans("".join(masked)):
        masked[start:end] = MARK * (end - start)
    shadow = _SOFT_BREAK.sub(" ", "".join(masked))  # a formula may go on in the next line of a paragraph
    found = [(start, end, text[start:end]) for start, end, _ in math_spans(shadow)]
    found += [(match.start(), match.end(), match[1]) for match in given.values()]
    for start, end, latex in sorted(found):
        yield start, end, latex if start in given else _undelimited(latex)


def _undelimited(latex: str) -> str:
    """Take dollars and brackets off; environments keep their begin and end."""
    for opening, closing in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")):
        if latex.startswith(opening):
            return latex[len(opening) : -len(closing)].strip()
    return latex


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find code spans: from a run of backticks to the next run of the same length in the same paragraph."""
    runs = list(_BACKTICKS.finditer(text))
    later: dict[tuple[int, int], list[int]] = {}  # (paragraph, length) -> the runs there, the last first
    paragraph: list[tuple[int, int]] = []  # number and start of each run's
    at = 0
    for run in runs:
        at += text.count("\n\n", paragraph[-1][1] if paragraph else 0, run.start())
        paragraph.append((at, run.start()))
    for i in reversed(range(len(runs))):
        later.setdefault((paragraph[i][0], len(runs[i][1])), []).append(i)
    done = -1
    for i, run in enumerate(runs):
        same = later[paragraph[i][0], len(run[1])]
        same.pop()
        if i <= done or not same or text[run.start() - 1 : run.start()] == "\\":
            continue
        done = same[-1]
        yield run.start(), runs[done].end()


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _rendered(text: str, formulas: list[tuple[str, str]]) -> str:
    """Render Markdown, with the formulas back in their places; code gets their source back."""
    tokens = _parser().parse(text)
    for block in tokens:
        for token in (block, *(block.children or ())):
            if token.type in ("code_inline", "code_block", "fence"):
                token.content = _HELD.sub(lambda match: formulas[int(match[1])][0], token.content)
    html: str = _parser().renderer.render(tokens, _parser().options, {})
    return _HELD.sub(lambda match: f'<span class="math-container">{escape(formulas[int(match[1])][1])}</span>', html)
