r"""LaTeX that is broken: what mends it."""

from __future__ import annotations

import re

_STRUCTURE = re.compile(r"\\(?:left|right|begin|end|middle)\b|\\.|[{}&]|\$", re.DOTALL)
_DANGLING = re.compile(r"(?:[\^_]|\\)\s*$")
_EMPTY_SCRIPT = re.compile(r"[\^_]\s*(?=[\^_}&]|$)")
_AND = re.compile(r"(?<!\\)&")
_TABLE = re.compile(r"\\begin\b|\\cr\b|matrix")


def repaired(latex: str) -> str:
    r"""Mend what keeps a formula from being read: braces and fences without partner, scripts without content.

    An unclosed ``{`` is closed at the end, a ``}`` too many is dropped, ``\left`` and ``\right`` get an invisible
    partner, a ``&`` outside a table is dropped.
    """
    text = _DANGLING.sub("", latex.strip())
    if not _TABLE.search(text):
        text = _AND.sub(" ", text)
    parts: list[str] = []
    stack: list[str] = []
    end = 0
    for match in _STRUCTURE.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        token = match[0]
        if token == "$":
            continue
        if token == "{" or token == r"\left":
            stack.append(token)
        elif token == "}" or token == r"\right":
            opener = "{" if token == "}" else r"\left"
            if opener not in stack:
                if token == "}":
                    continue
                parts.insert(0, r"\left.")
                parts.append(token)
                continue
            while stack[-1] != opener:
                parts.append("}" if stack.pop() == "{" else r"\right.")
            stack.pop()
        parts.append(token)
    parts.append(text[end:])
    parts += ["}" if opener == "{" else r"\right." for opener in reversed(stack)]
    return _EMPTY_SCRIPT.sub("", "".join(parts))
