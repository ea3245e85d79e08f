"""LaTeX as people type it, made ready for ``math-core``."""

from __future__ import annotations

import re

_ENTITIES = {
    "&lt;": " < ", "&gt;": " > ", "&amp;": "&", "&nbsp;": " ", "&quot;": '"', "&#39;": "'",
    "&le;": r"\le ", "&ge;": r"\ge ",
}  # fmt: skip
_ENTITY = re.compile("|".join(_ENTITIES))
_TAG = re.compile(r"\\tag\*?\s*(?:\{[^{}]*\}|\S)")
_TEXT = re.compile(r"\\(?:text|mbox|textrm|textit|textbf)\s*\{([^{}]*\$[^{}]*)\}")
_EQUATION = re.compile(r"\\(?:begin|end)\s*\{(?:equation|displaymath|math)\*?\}")


def _math_in_text(match: re.Match[str]) -> str:
    """Take the formulas out of text: ``\\text{if $x$ is}`` becomes ``\\text{if }x\\text{ is}``."""
    parts = match[1].split("$")
    return "".join(part if i % 2 else f"\\text{{{part}}}" for i, part in enumerate(parts) if part)


def prepare(latex: str) -> str:
    """Undo what HTML, pages and habits put around and into LaTeX."""
    if "&" in latex:
        latex = _ENTITY.sub(lambda match: _ENTITIES[match[0]], latex)
    if "\\tag" in latex:
        latex = _TAG.sub("", latex)
    if "$" in latex:
        latex = _TEXT.sub(_math_in_text, latex).replace("$", "")
    if "equation" in latex:
        latex = _EQUATION.sub("", latex)
    if "\\mbox" in latex:
        latex = latex.replace("\\mbox", "\\text")
    return latex
