"""LaTeX as people type it, made ready for ``math-core``."""

from __future__ import annotations

import re

from .latex_symbols import AST, IFF

_ENTITIES = {
    "&lt;": " < ", "&gt;": " > ", "&amp;": "&", "&nbsp;": " ", "&quot;": '"', "&#39;": "'",
    "&le;": r"\le ", "&ge;": r"\ge ",
}  # fmt: skip
_ENTITY = re.compile("|".join(_ENTITIES))
_TAG = re.compile(r"\\tag\*?\s*(?:\{[^{}]*\}|\S)")
_TEXT = re.compile(r"\\(?:text|mbox|textrm|textit|textbf)\s*\{([^{}]*\$[^{}]*)\}")
_EQUATION = re.compile(r"\\(?:begin|end)\s*\{(?:equation|displaymath|math)\*?\}")
SUPER_FIRST = "\ue000"
"""Mark at the head of a superscript that was written before the subscript."""

ARRAY = "\ue001"
"""Mark in the first cell of an ``array``, to tell it from a ``matrix``."""

_GROUP = r"\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\}"
_SUPER_FIRST = re.compile(rf"\^\s*({_GROUP}|\\[a-zA-Z]+|[^\s\\{{}}])\s*(?=_)")
_PRIMES_FIRST = re.compile(r"('+)\s*(?=_)")
_ARRAY = re.compile(r"\\begin\s*\{array\}\s*(?:\[\w?\]\s*)?\{((?:[^{}]|\{[^{}]*\})*)\}")
_COMMAND = re.compile(r"\\(?:re)?newcommand\*?\s*\{?\s*(\\[a-zA-Z]+)\s*\}?\s*(?:\[(\d)\])?")
_SIZE = re.compile(r"\\[bB]igg?[lrm]?(?![a-zA-Z])\s*(?:\{\s*(\\[a-zA-Z]+|\\?[^\sa-zA-Z{}])\s*\})?")
_OPERATOR = re.compile(r"\\operatorname\*?\s*\{\s*(\\[a-zA-Z]+\s*(?:\{[^{}]*\})?)\s*\}")
_HASH = re.compile(r"(?<!\\)#(?!\d)")
_DOTS = re.compile(r"\\dots(?:([bmi])|[co])(?![a-zA-Z])")
_AST = re.compile(r"\\ast(?![a-zA-Z])")
_FONT_SIZE = re.compile(r"\\(?:tiny|scriptsize|footnotesize|small|normalsize|large|Large|LARGE|huge|Huge)(?![a-zA-Z])")
_IFF = re.compile(r"\\iff(?![a-zA-Z])")


def _math_in_text(match: re.Match[str]) -> str:
    """Take the formulas out of text: ``\\text{if $x$ is}`` becomes ``\\text{if }x\\text{ is}``."""
    parts = match[1].split("$")
    return "".join(part if i % 2 else f"\\text{{{part}}}" for i, part in enumerate(parts) if part)


def _as_definition(match: re.Match[str]) -> str:
    """Write ``\\newcommand`` as ``\\def``, which may define a command again."""
    return rf"\def{match[1]}" + "".join(f"#{i + 1}" for i in range(int(match[2] or 0)))


def _array(match: re.Match[str]) -> str:
    """Mark an array, and spell out its repeated columns: ``*{3}{c}`` is ``ccc``."""
    columns = _REPEATED.sub(lambda repeat: repeat[2] * min(int(repeat[1]), 100), match[1])
    return rf"\begin{{array}}{{{columns}}}{ARRAY}"


_REPEATED = re.compile(r"\*\s*\{(\d+)\}\s*\{([^{}]*)\}")


def _super_first(match: re.Match[str]) -> str:
    """Mark a superscript before a subscript: the order is lost in MathML, and the operator tree needs it."""
    body = match[1][1:-1] if match[1][0] == "{" else match[1]
    return match[0] if body.startswith(SUPER_FIRST) else f"^{{{SUPER_FIRST}{body}}}"


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
    if "newcommand" in latex:
        latex = _COMMAND.sub(_as_definition, latex)
    if "_" in latex and ("^" in latex or "'" in latex):
        latex = _PRIMES_FIRST.sub(lambda match: "^{" + SUPER_FIRST + r"\prime" * len(match[1]) + "}", latex)
        latex = _SUPER_FIRST.sub(_super_first, latex)
    if "array" in latex:
        latex = _ARRAY.sub(_array, latex)
    if "ig" in latex:
        latex = _SIZE.sub(lambda match: f"{match[1] or ''} ", latex)
    if "\\operatorname" in latex:
        latex = _OPERATOR.sub(r"{\1}", latex)
    if "\\ast" in latex:
        latex = _AST.sub(AST, latex)
    if "\\dots" in latex:
        latex = _DOTS.sub(lambda match: r"\cdots " if match[1] else r"\ldots ", latex)
    if "\\iff" in latex:
        latex = _IFF.sub(IFF + " ", latex)
    if _FONT_SIZE.search(latex):
        latex = _FONT_SIZE.sub(" ", latex)
    if "#" in latex and "\\def" not in latex and "command" not in latex:
        latex = _HASH.sub(r"\#{}", latex)
    if "\\mbox" in latex:
        latex = latex.replace("\\mbox", "\\text")
    return latex
