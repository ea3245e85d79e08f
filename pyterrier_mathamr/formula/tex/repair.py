r"""LaTeX that is broken or dangerous: how deep it nests, and what mends it.

``math-core`` recurses over depth in native code, where an overflow ends the process; so depth is measured before.
"""

from __future__ import annotations

import re

from pyterrier_mathamr.formula.errors import FormulaError

DEEPEST = 150
"""Levels of braces, fences and bare arguments that a formula may nest."""

_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[{}]|[^\\{}]+", re.DOTALL)
_STRUCTURE = re.compile(r"\\(?:left|right|begin|end|middle)\b|\\.|[{}&]|\$", re.DOTALL)
_DANGLING = re.compile(r"(?:[\^_]|\\)\s*$")
_EMPTY_SCRIPT = re.compile(r"[\^_]\s*(?=[\^_}&]|$)")
_AND = re.compile(r"(?<!\\)&")
_TABLE = re.compile(r"\\begin\b|\\cr\b|matrix")


def check_depth(latex: str) -> None:
    """Refuse a formula that nests too deep.

    Raises:
        FormulaError: with the place where it gets too deep.
    """
    if latex.count("{") + latex.count("\\") <= DEEPEST:
        return
    depth = bare = 0  # braces and fences that are open; commands in a row, each perhaps the argument of the one before
    for match in _TOKEN.finditer(latex):
        token = match[0]
        if token in _DEEPER:
            depth += 1
        elif token in _SHALLOWER:
            depth, bare = max(depth - 1, 0), 0
        elif token[0] == "\\":
            bare += token[1:].isalpha()
        elif len(token.strip(" ^_")) > 1 or not token.strip(" ^_").isalnum():
            bare = bare if not token.strip(" ^_") else 0
        if depth + bare > DEEPEST:
            raise FormulaError(f"the formula nests deeper than {DEEPEST} levels", latex, match.start())


_DEEPER = frozenset({"{", r"\left", r"\begin"})
_SHALLOWER = frozenset({"}", r"\right", r"\end"})


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
