r"""LaTeX as people type it, prepared for ``math-core``.

Each rule is a substring that a formula must contain, a pattern and its replacement. Six private characters keep what
MathML would lose: a superscript written before its subscript, an ``array`` (as opposed to a ``matrix``), ``\iff``,
``\ast``, ``\not\mid`` and the query variable ``\qvar{x}``.

First, commands of LaTeX packages, MathJax and plain TeX that ``math-core`` does not know are written as ones
that it does; what only changes the look of a page is left out::

    \smallsetminus   \setminus          \hbox{if}         \text{if}         \bbox[5px]{x}     {x}
    \root 3 \of{x}   \sqrt[3]{x}        \substack{a\\b}   a matrix          \eqalign{a\cr b}  aligned
    \\[2pt]          \\                 \intertext{so}    a line of text    \delta*x          \delta *x
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from pyterrier_mathamr._common.running.worker import OverLimitError
from pyterrier_mathamr.formula.tree import FormulaError
from pyterrier_mathamr.posts.tex_expansion import Expander, collected

from .atoms import AST, IFF, NOT_MID, WILDCARD

_GROUP = r"\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\}"
_SIZE = r"(?:-\s*)?[\d.]+\s*(?:pt|em|ex|mm|cm|in|px|mu|pc|bp)"

_ALIASES = {
    "smallsetminus": r"\setminus", "centerdot": r"\cdot", "hbox": r"\text", "scr": r"\mathscr", "mathds": r"\mathbb",
    "mathbbm": r"\mathbb", "intop": r"\int", "varinjlim": r"\injlim", "varprojlim": r"\projlim",
    "varliminf": r"\liminf", "varlimsup": r"\limsup", "cr": r"\\", "LaTeX": r"\text{LaTeX}", "TeX": r"\text{TeX}",
    **dict.fromkeys(["smash", "rlap", "llap", "vcenter", "ensuremath", "strut", "hfil", "hfill", "qed"], ""),
}  # fmt: skip
_ENVIRONMENTS = {
    "substack": "matrix", "eqalign": "aligned", "eqalignno": "aligned", "displaylines": "gathered", "cases": "cases",
}  # fmt: skip
_ALIAS = re.compile(rf"\\({'|'.join(_ALIASES)})(?![a-zA-Z])(?:(?<=\\smash)\s*\[[tb]\])?")
_ENVIRONMENT = re.compile(rf"\\({'|'.join(_ENVIRONMENTS)})\s*({_GROUP})")
_LAYOUT = re.compile(
    rf"\\(?:bbox\s*(?:\[[^\[\]]*\])?|(?:require|class|cssId|style|href|enclose|ref|vspace\*?)\s*\{{[^{{}}]*\}}"
    rf"|(?:raise|lower)\s*{_SIZE}|multicolumn\s*\{{\d+\}}\s*\{{[^{{}}]*\}})"
)
_STARRED = re.compile(r"(\\(?!(?:operatorname|tag|hspace|vspace|begin|end|(?:re)?newcommand)\*)[a-zA-Z]+)\*")
_LINE_END = re.compile(rf"(?<!\\)((?:\\\\)*\\\\)(?:\*|\s*\[\s*{_SIZE}\s*\])+")
_BACKSLASH = re.compile(r"(?<!\\)((?:\\\\)*)\\(?=[\n\r\t]|$)")
_ROOT = re.compile(r"\\root\s*(\{[^{}]*\}|\\?[a-zA-Z0-9]+)\s*\\of(?![a-zA-Z])")
_INTERTEXT = re.compile(r"\\(?:short)?intertext\s*(\{(?:[^{}]|\{[^{}]*\})*\})")


def _environment(match: re.Match[str]) -> str:
    name = _ENVIRONMENTS[match[1]]
    return rf"\begin{{{name}}}{match[2][1:-1]}\end{{{name}}}"


def known_commands(latex: str) -> str:
    """Write the commands of a formula as ones that the converter knows; others stay."""
    if "\\" not in latex or not _has_foreign(latex):
        return latex
    latex = _LINE_END.sub(r"\1 ", _BACKSLASH.sub(r"\1 ", latex))
    latex = _LAYOUT.sub(" ", _STARRED.sub(r"\1 *", latex))
    latex = _INTERTEXT.sub(r"\\text\1\\\\ ", latex)
    latex = _ROOT.sub(r"\\sqrt[\1]", latex)
    latex = _ENVIRONMENT.sub(_environment, latex)
    return _ALIAS.sub(lambda match: _ALIASES[match[1]] + " ", latex).replace("{smallmatrix}", "{matrix}")


_LAYOUT_WORDS = (
    "require class cssId style href enclose ref vspace raise lower multicolumn intertext shortintertext "
    "DeclareMathOperator"
)
_FOREIGN = frozenset([*_LAYOUT_WORDS.split(), *_ALIASES, *_ENVIRONMENTS])
_FOREIGN_SIGNS = ("*", "\\\\", "\\\n", "\\\r", "\\\t", r"\bbox", r"\root", "{smallmatrix}")
_COMMAND = re.compile(r"\\([a-zA-Z]+)")


def _has_foreign(latex: str) -> bool:
    """Return whether a formula may need rewriting, which nine of ten do not."""
    has_signs = latex[-1] == "\\" or any(sign in latex for sign in _FOREIGN_SIGNS)
    return has_signs or not _FOREIGN.isdisjoint(_COMMAND.findall(latex))


SUPER_FIRST = "\ue000"
"""Mark at the beginning of a superscript that was written before the subscript."""

ARRAY = "\ue001"
"""Mark in the first cell of an ``array``, and of a ``multline``."""

_MOST_REPEATED = 100  # columns of an array

Replacement = str | Callable[[re.Match[str]], str]

_FONT_SIZE = re.compile(r"\\(?:tiny|scriptsize|footnotesize|small|normalsize|large|Large|LARGE|huge|Huge)(?![a-zA-Z])")
_REPEATED = re.compile(r"\*\s*\{(\d+)\}\s*\{([^{}]*)\}")
_DEFINES = re.compile(r"\\def|command|\\DeclareMath")


def _super_first(match: re.Match[str]) -> str:
    """Mark a superscript before a subscript: the operator tree nests them in the order of writing."""
    body = match[1][1:-1] if match[1][0] == "{" else match[1]
    return match[0] if body.startswith(SUPER_FIRST) else f"^{{{SUPER_FIRST}{body}}}"


_DERIVATION = re.compile(
    r"\\(begin|end)\s*\{(?:(align|gather|multline|eqnarray|flalign|split|dcases|aligned|gathered)|(align(?:ed)?at))\*?\}"
    r"(?(3)(?:\s*\{\d*\})?)(?:\s*\[[tcb]\])?"
)
_DERIVATIONS = {
    "gather": "gather*", "split": "aligned", "alignedat": "aligned", "aligned": "aligned",
    "gathered": "gathered", "dcases": "cases",
}  # fmt: skip


def _derivation(match: re.Match[str]) -> str:
    """Write a derivation in lines in an unnumbered form that math-core knows; mark the one that is broken anywhere."""
    if match[2] == "multline":
        return r"\begin{gather*}" + ARRAY if match[1] == "begin" else r"\end{gather*}"
    return rf"\{match[1]}{{{_DERIVATIONS.get(match[2] or match[3], 'align*')}}}"


def _array(match: re.Match[str]) -> str:
    """Mark an array, and expand its repeated columns: ``*{3}{c}`` is ``ccc``."""
    columns = _REPEATED.sub(lambda repeat: repeat[2] * min(int(repeat[1][:9]), _MOST_REPEATED), match[1])
    return rf"\begin{{array}}{{{columns}}}{ARRAY}"


def _math_in_text(match: re.Match[str]) -> str:
    r"""Move formulas out of text: ``\text{if $x$ is}`` becomes ``\text{if }x\text{ is}``."""
    if "$" not in match[1]:
        return match[0]
    parts = match[1].split("$")
    return "".join(part if i % 2 else rf"\text{{{part}}}" for i, part in enumerate(parts) if part)


_TEXT = re.compile(r"\\(?:text|mbox|textrm|textit|textbf)\s*\{([^{}]*)\}")


def math_apart(latex: str) -> str:
    r"""Move the formulas in texts, ``\text{if $x$ is}``, out of them."""
    return _TEXT.sub(_math_in_text, latex) if "$" in latex else latex


_ANGLES = re.compile(r"\\(left|right|[bB]igg?[lr])\s*([<>])")  # delimiters, as TeX reads them after these commands


_RULES: tuple[tuple[str, re.Pattern[str], Replacement], ...] = (
    # &lt; from the HTML of a page
    ("&", re.compile(r"&(?:[a-zA-Z]+|#\d+|#x[\da-fA-F]+);"), lambda match: f" {html.unescape(match[0])} "),
    ("\\qvar", re.compile(rf"\\qvar(?![a-zA-Z])\s*({_GROUP}|\\[a-zA-Z]+|[a-zA-Z0-9])"),
     lambda match: "".join([r"{\text{", WILDCARD, *filter(str.isalnum, match[1]), "}}"])),
    ("\\tag", re.compile(r"\\tag\*?\s*(?:\{[^{}]*\}|\S)"), ""),
    ("\\label", re.compile(r"\\label\s*\{[^{}]*\}"), ""),
    ("$", _TEXT, _math_in_text),
    ("$", re.compile(r"(?<!\\)\$"), ""),
    ("equation", re.compile(r"\\(?:begin|end)\s*\{equation\*?\}"), ""),
    # derivations in lines that math-core does not know or would number
    ("\\begin", _DERIVATION, _derivation),
    ("_", re.compile(r"(?<!')('+)\s*(?=_)"),
     lambda match: "^{" + SUPER_FIRST + r"\prime" * len(match[1]) + "}"),
    ("^", re.compile(rf"\^\s*({_GROUP}|\\[a-zA-Z]+|[^\s\\{{}}])\s*(?=_)"), _super_first),
    ("array", re.compile(r"\\begin\s*\{array\}\s*(?:\[\w?\]\s*)?\{((?:[^{}]|\{[^{}]*\})*)\}"), _array),
    ("ig", _ANGLES, lambda match: rf"\{match[1]}\{'l' if match[2] == '<' else 'r'}angle "),
    ("ig", re.compile(r"\\[bB]igg?[lrm]?(?![a-zA-Z])\s*(?:\{\s*(\\[a-zA-Z]+|\\?[^\sa-zA-Z{}])\s*\})?"),
     lambda match: f"{match[1] or ''} "),
    ("\\operatorname", re.compile(r"\\operatorname\*?\s*\{\s*(\\[a-zA-Z]+(?:\s*\{[^{}]*\})?)\s*\}"), r"{\1}"),
    ("\\ast", re.compile(r"\\ast(?![a-zA-Z])"), AST),
    ("\\not", re.compile(r"\\not\s*\\mid(?![a-zA-Z])"), NOT_MID),
    ("\\iff", re.compile(r"\\iff(?![a-zA-Z])"), IFF),
    ("\\dots", re.compile(r"\\dots[bmi](?![a-zA-Z])"), r"\\cdots "),
    ("\\dots", re.compile(r"\\dots[co](?![a-zA-Z])"), r"\\ldots "),
    ("\\mbox", re.compile(r"\\mbox(?![a-zA-Z])"), r"\\text"),
    ("\\", _FONT_SIZE, " "),
    ("#", re.compile(r"(?<!\\)#(?!\d)"), r"\\#{}"),
)  # fmt: skip


def prepare(latex: str) -> str:
    """Remove what HTML, web pages and typing habits add to LaTeX."""
    latex = known_commands(latex)
    for needle, pattern, replacement in _RULES:
        if needle in latex:
            latex = pattern.sub(replacement, latex)
    return latex


def definitions(formulas: Iterable[str]) -> str:
    r"""Collect the commands that the formulas of one post define.

    Args:
        formulas: LaTeX in the order of the post.

    Returns:
        Their ``\newcommand`` and ``\def``: the ``macros`` of the post's other formulas.
    """
    defining = (latex for latex in formulas if _DEFINES.search(latex))
    return "".join(latex[macro.start : macro.end] for latex in defining for macro in collected(latex).found)


_known = lru_cache(maxsize=16)(collected)  # the macros of a post, for each of its formulas


def expanded(latex: str, macros: str) -> str:
    """Expand the macros that a formula or its post defines.

    Raises:
        FormulaError: they write too much.
    """
    if not macros and not _DEFINES.search(latex):
        return latex
    try:
        return Expander(_known(macros), packages=False).formula(latex)
    except OverLimitError as error:
        raise FormulaError(str(error), latex) from error
