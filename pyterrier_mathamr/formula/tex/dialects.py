r"""Commands of LaTeX packages, MathJax and plain TeX that ``math-core`` does not know, written as ones that it does.

::

    \smallsetminus   \setminus          \hbox{if}         \text{if}         \bbox[5px]{x}     {x}
    \root 3 \of{x}   \sqrt[3]{x}        \substack{a\\b}   a matrix          \eqalign{a\cr b}  aligned
    \\[2pt]          \\                 \intertext{so}    a line of text    \delta*x          \delta *x

What only changes the look of a page is left out.
"""

from __future__ import annotations

import re

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
_OPERATOR = re.compile(r"\\DeclareMathOperator(\*?)\s*\{?\s*(\\[a-zA-Z]+)\s*\}?\s*(\{[^{}]*\})")


def known_commands(latex: str) -> str:
    """Write the commands of a formula as ones that the converter knows; others stay."""
    if "\\" not in latex or not _has_foreign(latex):
        return latex
    latex = _LINE_END.sub(r"\1 ", _BACKSLASH.sub(r"\1 ", latex))
    latex = _LAYOUT.sub(" ", _STARRED.sub(r"\1 *", latex))
    latex = _INTERTEXT.sub(r"\\text\1\\\\ ", latex)
    latex = _OPERATOR.sub(r"\\def\2{\\operatorname\1\3}", _ROOT.sub(r"\\sqrt[\1]", latex))
    latex = _ENVIRONMENT.sub(_as_environment, latex)
    return _ALIAS.sub(lambda match: _ALIASES[match[1]] + " ", latex).replace("{smallmatrix}", "{matrix}")


_LAYOUT_WORDS = (
    "require class cssId style href enclose ref vspace raise lower multicolumn intertext shortintertext "
    "DeclareMathOperator"
)
_FOREIGN = frozenset([*_LAYOUT_WORDS.split(), *_ALIASES, *_ENVIRONMENTS])
_FOREIGN_SIGNS = ("*", "\\\\", "\\\n", "\\\r", "\\\t", r"\bbox", r"\root", "{smallmatrix}")
_COMMAND = re.compile(r"\\([a-zA-Z]+)")


def _has_foreign(latex: str) -> bool:
    """Tell whether a formula may have something to rewrite, which nine of ten have not."""
    has_signs = latex[-1] == "\\" or any(sign in latex for sign in _FOREIGN_SIGNS)
    return has_signs or not _FOREIGN.isdisjoint(_COMMAND.findall(latex))


def _as_environment(match: re.Match[str]) -> str:
    """Write a command of plain TeX as the environment of the same form."""
    name = _ENVIRONMENTS[match[1]]
    return rf"\begin{{{name}}}{match[2][1:-1]}\end{{{name}}}"
