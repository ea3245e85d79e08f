r"""Convert the sample's subset of Markdown to HTML with math-container spans, as in the posts of the release.

Blocks (separated by blank lines): paragraphs, ``- `` and ``1. `` lists with one line per item, ``> `` quotes, code
indented by four spaces. Inline: ``$LaTeX$``, ``$$LaTeX$$``, ``**strong**``, ``*emphasis*``, a code span in backticks,
``[text](address)``, and ``\$`` for a currency sign.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable

INLINE = re.compile(
    r"\$\$(?P<display>.+?)\$\$"
    r"|(?<!\\)\$(?P<inline>.+?)(?<!\\)\$"
    r"|`(?P<code>[^`]+)`"
    r"|\*\*(?P<strong>(?:\$[^$]+\$|[^*])+)\*\*"
    r"|\*(?P<em>(?:\$[^$]+\$|[^*])+)\*"
    r"|\[(?P<text>[^\]]+)\]\((?P<href>[^)\s]+)\)"
    r"|\\(?P<dollar>\$)",
    re.S,
)
ITEM = re.compile(r"^(?:-|\d+\.) +", re.M)

Formula = Callable[[str, str], str]
"""The HTML of a formula from its LaTeX and its delimiter, ``$`` or ``$$``."""


def latex_of(source: str) -> str:
    """Return LaTeX with single spaces."""
    return " ".join(source.split())


def inline_html(text: str, formula: Formula) -> str:
    """Return the HTML of inline text."""
    out, end = [], 0
    for match in INLINE.finditer(text):
        out.append(html.escape(text[end : match.start()], quote=False))
        out.append(element_html(match, formula))
        end = match.end()
    out.append(html.escape(text[end:], quote=False))
    return "".join(out)


def element_html(match: re.Match[str], formula: Formula) -> str:
    """Return the HTML of an inline element."""
    kind, found = match.lastgroup, match.groupdict()
    if kind in ("display", "inline"):
        return formula(latex_of(found[kind]), "$$" if kind == "display" else "$")
    if kind == "code":
        return f"<code>{html.escape(found['code'], quote=False)}</code>"
    if kind == "dollar":
        return "$"
    if kind == "href":
        return f'<a href="{html.escape(found["href"])}">{inline_html(found["text"], formula)}</a>'
    return f"<{kind}>{inline_html(found[str(kind)], formula)}</{kind}>"


def block_html(block: str, formula: Formula) -> str:
    """Return the HTML of a block."""
    if block.startswith("    "):
        code = "\n".join(line.removeprefix("    ") for line in block.splitlines())
        return f"<pre><code>{html.escape(code, quote=False)}\n</code></pre>"
    if block.startswith(">"):
        quoted = re.sub(r"^> ?", "", block, flags=re.M)
        return f"<blockquote> {to_html(quoted, formula)}</blockquote>"
    if ITEM.match(block):
        name = "ul" if block.startswith("-") else "ol"
        items = "".join(f"<li>{inline_html(' '.join(i.split()), formula)}</li> " for i in ITEM.split(block)[1:])
        return f"<{name}> {items}</{name}>"
    return f"<p>{inline_html(' '.join(block.split()), formula)}</p>"


def to_html(text: str, formula: Formula) -> str:
    """Return the HTML of a text; each block is followed by a space, as in the release."""
    blocks = re.split(r"\n[ \t]*\n", text.strip("\n"))
    return "".join(block_html(block, formula) + " " for block in blocks if block.strip())
