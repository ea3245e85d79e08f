r"""Markdown posts (CommonMark), with their formulas taken out before Markdown is read.

::

    source ──find formulas outside code──▶ `Let x` and $a_1*b*c$  ──▶  `Let x` and ⟨0⟩
           ──CommonMark, in a process with limits──▶ HTML ──each ⟨i⟩ becomes a math-container──▶ post_from_html

Markdown would read ``$a_1*b*c$`` as emphasis and ``\\`` as a backslash; code spans and code blocks hold no formulas.
Definitions of macros are taken out in the same way, and the macros are written out in the formulas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html import escape
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from pyterrier_mathamr._common.running.worker import MEMORY, Worker

from .kept_source import SOURCE, source_html
from .latex_document import excerpt, unknown_commands
from .math_spans import clean, mask, math_spans, strip_delimiters
from .tex_expansion import Expander, collected
from .tex_macros import Definitions
from .tex_primitives import DEFINED

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_HOLD = "\ue005"
"""Encloses a formula's number while Markdown is read."""
_HOLD_IN_CODE = "\ue007"
_HELD = re.compile(f"[{_HOLD}{_HOLD_IN_CODE}]([0-9]{{1,9}})([{_HOLD}{_HOLD_IN_CODE}])")
_OURS = re.compile(f"[{_HOLD}{_HOLD_IN_CODE}{DEFINED}]")
_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)([^\n]*)", re.M)
_BACKTICKS = re.compile(r"(?<!`)(`+)(?!`)")
_MATH_IN_CODE = re.compile(r"\$`([^`\n]+)`\$|\{math\}`((?:[^`\n]|\n(?![ \t]*\n)){1,4000})`")
_NEW_BLOCK = r"[ \t]*(?:\n|[-+*>#|]|\d{1,9}[.)][ \t]|`{3}|~{3}|=+[ \t]*$|\Z)"
SOFT_BREAK = re.compile(rf"\n(?!{_NEW_BLOCK})", re.M)
FRONT_MATTER = re.compile(
    r"\A(?:---[ \t]*\n|\+\+\+[ \t]*\n(?=\s*[\w-]+[ \t]*=))(.*?)\n(?:---|\.\.\.|\+\+\+)[ \t]*(?:\n|\Z)", re.S
)
"""In YAML, or in TOML between lines of ``+++``."""
_TITLE = re.compile(r"^title[ \t]*+[:=][ \t]*+([^\n]+)", re.M)
_ESCAPED = re.compile(r'\\([\\"])')
_DATE = re.compile(r"^date[ \t]*+[:=][ \t]*+[\"']?(\d{4}-\d\d-\d\d)(?!\d)", re.M)
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]++([^\n]+)")
_SECONDS = 60
_DEEPEST = 40
"""Blocks in blocks, beyond which Markdown is left out."""


def html_from_markdown(source: str) -> str:
    r"""Convert Markdown to HTML for :func:`~pyterrier_mathamr.posts.post_from_html`.

    Args:
        source: CommonMark with formulas as ``$..$``, ``$$..$$``, ``\(..\)``, ``\[..\]``, environments or GitLab's
            ``$`..`$``. A title block between lines of ``---`` is left out, and so are definitions of macros.

    Returns:
        HTML; each formula is ``<span class="math-container">LaTeX</span>``, its macros written out.

    Raises:
        OverLimitError: it needs more than a minute, or its macros write more than a million characters and ten times
            its length.
    """
    (html,), _ = read_markdown(source)
    return html


def read_markdown(
    *sources: str, known: Definitions | None = None, expander: Expander | None = None
) -> tuple[list[str], dict[str, str]]:
    """Convert the parts of a document to HTML; return it and the errors by place. Macros of a part hold for all parts.

    An ``expander`` knows all macros, and definitions in the parts are ignored.
    """
    parts = [_OURS.sub("", clean(FRONT_MATTER.sub("", part.replace("\r\n", "\n"), count=1))) for part in sources]
    masked = [without_code(part) for part in parts]
    defined = []
    for text, _ in masked:
        defined.append(new := collected(text, known))
        known = new
    expander = expander or Expander(known, length=sum(map(len, parts)))
    problems: dict[str, str] = {}
    texts: list[str] = []
    held: list[list[tuple[str, str]]] = []  # what Markdown must not read: the source, and LaTeX for a formula
    for part, (shadow, given), definitions in zip(parts, masked, defined, strict=True):
        spans = [(of.start, of.end) for of in definitions.found]
        plain = mask(part, spans, DEFINED)
        joined = SOFT_BREAK.sub(" ", mask(shadow, spans, DEFINED))  # a formula may go on in the next line
        found = [(start, end, strip_delimiters(plain[start:end].replace(DEFINED, "")))
                 for start, end, _ in math_spans(joined)]  # fmt: skip
        found += [(match.start(), match.end(), match[1] or match[2]) for match in given.values()]
        found += [(start, end, "") for start, end in spans]
        pieces, items, at = list[str](), list[tuple[str, str]](), 0
        for start, end, latex in sorted(found):
            if start < at:
                continue  # a definition within a formula
            pieces += [part[at:start], f"{_HOLD}{len(items)}{_HOLD}"]
            problems.update(unknown_commands(shadow[at:start]))
            latex = "" if latex == r"\empty" else latex  # which TeX expands to nothing
            items.append((part[start:end], expander.formula(latex)))
            at = end
        problems.update(unknown_commands(shadow[at:]))
        texts.append("".join([*pieces, part[at:]]))
        held.append(items)
    problems.update(expander.problems)
    expander.problems.clear()
    htmls, whole = _guarded(texts)
    if not whole:
        problems[f"blocks more than {_DEEPEST} deep are left out"] = excerpt(parts[-1], 0)
    for i, items in enumerate(held):
        left = dict(enumerate(items))  # each once: an entity may be one of our marks

        def put_back(mark: re.Match[str], left: dict[int, tuple[str, str]] = left) -> str:
            source, latex = left.pop(int(mark[1]), ("", ""))
            if mark[2] == _HOLD_IN_CODE:
                return escape(source)
            if SOURCE.search(latex):
                return source_html(source)
            return f'<span class="math-container">{escape(latex)}</span>' if latex else ""

        htmls[i] = _HELD.sub(put_back, htmls[i])
    return htmls, problems


def title_of_markdown(source: str) -> tuple[str, str]:
    front = FRONT_MATTER.match(source)
    body = source[front.end() :] if front else source
    title, _ = title_of_front_matter(front[1]) if front else ("", "")
    if title:
        return title, body
    begun = body.lstrip("\n")
    if heading := _HEADING.match(begun):
        return unclosed(heading[1]), begun[heading.end() :]
    return "", body


def unclosed(heading: str) -> str:
    """Take the number signs off that may end a heading."""
    title = heading.rstrip(" \t")
    bare = title.rstrip("#")
    return title if bare and bare[-1] not in " \t" else bare.rstrip(" \t")


def title_of_front_matter(front: str) -> tuple[str, str]:
    """Read the title and the date, such as 2026-01-31, of front matter."""
    titled, dated = _TITLE.search(front), _DATE.search(front)
    title = titled[1].strip(" \t") if titled else ""
    if len(title) > 1 and title[0] in "\"'" and title[-1] == title[0]:
        title = _ESCAPED.sub(r"\1", title[1:-1]) if title[0] == '"' else title[1:-1]
    return title, dated[1] if dated else ""


def without_code(text: str) -> tuple[str, dict[int, re.Match[str]]]:
    """Put a `MARK` in the place of each character of code, and find the formulas that GitLab writes in code."""
    blocks: list[tuple[int, int]] = []  # between fences; one that nothing closes goes on to the end
    opened: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        if opened is None:
            opened = None if line[1][0] == "`" and "`" in line[2] else line
        elif line[1].startswith(opened[1]) and not line[2].strip(" \t"):
            blocks.append((opened.start(), line.end()))
            opened = None
    masked = mask(text, [*blocks, *([(opened.start(), len(text))] if opened else [])])
    given = {match.start(): match for match in _MATH_IN_CODE.finditer(masked)}
    masked = mask(masked, (match.span() for match in given.values()))
    return mask(masked, _code_spans(masked)), given


def fence_around(code: str) -> str:
    """Return a fence for a block of code: longer than any run of backquotes in it."""
    return "`" * max([3, *(len(run) + 1 for run in re.findall(r"`+", code))])


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find code spans: from a run of backticks to the next run of the same length in the same paragraph."""
    runs = list(_BACKTICKS.finditer(text))
    starts = [run.start() for run in runs]
    paragraphs = accumulate(text.count("\n\n", start, end) for start, end in pairwise([0, *starts]))
    kinds = list(zip(paragraphs, (len(run[1]) for run in runs), strict=True))
    following: dict[tuple[int, int], int] = {}  # by paragraph and length
    closers: list[int] = []
    for i in reversed(range(len(runs))):
        closers.append(following.get(kinds[i], 0))
        following[kinds[i]] = i
    done = -1
    for i, closer in enumerate(reversed(closers)):
        if closer and i > done and text[starts[i] - 1 : starts[i]] != "\\":
            done = closer
            yield starts[i], runs[done].end()


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable(["table", "strikethrough"])


def rendered(texts: list[str]) -> tuple[list[str], bool]:
    """Render Markdown, and report whether no nesting was too deep; formulas in code get separate marks."""
    parser, out, deepest = _parser(), [], 0
    for text in texts:
        tokens = parser.parse(text)
        for block in tokens:
            deepest = max(deepest, block.level)
            for token in (block, *(block.children or ())):
                token.attrs = {}  # a long address that many links refer to would be written for each
                if token.type in ("code_inline", "code_block", "fence"):
                    token.info, token.content = "", token.content.replace(_HOLD, _HOLD_IN_CODE)
        out.append(parser.renderer.render(tokens, parser.options, {}))
    return out, deepest < _DEEPEST - 1


_guarded = Worker(rendered, seconds=_SECONDS, memory=MEMORY)
