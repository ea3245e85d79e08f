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
    open_of = {"{": 0, r"\left": 0}  # how often each is on the stack
    unmatched = 0  # fences that close and were never opened
    end = 0
    for match in _STRUCTURE.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        token = match[0]
        if token == "$":
            continue
        if token == "{" or token == r"\left":
            stack.append(token)
            open_of[token] += 1
        elif token == "}" or token == r"\right":
            opener = "{" if token == "}" else r"\left"
            if not open_of[opener]:
                if token == "}":
                    continue
                unmatched += 1
                parts.append(token)
                continue
            while (closed := stack.pop()) != opener:
                open_of[closed] -= 1
                parts.append("}" if closed == "{" else r"\right.")
            open_of[opener] -= 1
        parts.append(token)
    parts.append(text[end:])
    parts += ["}" if opener == "{" else r"\right." for opener in reversed(stack)]
    return _EMPTY_SCRIPT.sub("", r"\left." * unmatched + "".join(parts))
