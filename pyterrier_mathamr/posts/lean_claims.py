r"""The claims of Lean's theorems as LaTeX, so that formulas are found in them.

::

    ∑ i ∈ s, f i ≤ (n : ℝ) ^ 2        ∑_{i ∈ s} f(i) ≤ n^{2}
    Real.sqrt (x + 1) = s.card        \sqrt{x + 1} = \text{card}(s)

Two terms with a blank between them are a function and its argument. Of a name with dots the last part is kept; a
variable before it is the first argument. Words are text, type ascriptions and coercions are left out. Nothing is
elaborated: notation that a library defines stays as it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .lean import LeanToken

_BIG = {"∑": r"\sum", "∏": r"\prod", "⋃": r"\bigcup", "⋂": r"\bigcap", "⨆": r"\sup", "⨅": r"\inf"}
_BINDERS = frozenset(["∀", "∃", "∃!", "λ", "fun", "Σ", "Π", "∫"])
_WORDS = frozenset(["fun", "if", "then", "else", "let", "have", "in"])
"""Keywords, which are neither functions nor arguments."""
_POSTFIX = frozenset("⁻⁰¹²³⁴⁵⁶⁷⁸⁹ᵀᶜ!")
_SIGNS = {
    "*": r"\cdot", "{": r"\{", "}": r"\}", "⟨": r"\langle ", "⟩": r"\rangle", "⦃": r"\{", "⦄": r"\}", "@[": "[",
    "\\": r"\setminus", "#": r"\#", "%": r"\bmod", "&": r"\&", "$": r"\$", "~": r"\sim", "‖": r"\Vert", "_": r"\_",
    "∃!": r"\exists!", "↦": r"\mapsto", "λ": r"\lambda", "⁻¹'": "^{-1}", "''": "",
}  # fmt: skip
_POOR = frozenset(".,:;@?!↑")  # signs that make no formula
_FUNCTIONS = frozenset([
    "sin", "cos", "tan", "cot", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "log", "exp", "gcd", "max", "min",
    "det", "dim", "ker", "deg"
])  # fmt: skip


@dataclass
class _Part:
    """The content of brackets, or the variables of a big operator, as far as it was read."""

    opening: str = ""
    is_apart: bool = False  # whether a blank comes before it
    big: str = ""
    written: list[str] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)  # a function and its arguments
    power: bool = False  # whether these are an exponent
    lists: bool = False  # whether these are variables of ``∀ x y, …``
    binds: bool = False  # whether such variables came before
    is_typed: bool = False  # whether the rest is the type of ``(0 : ℝ)``

    def add(self, latex: str, is_apart: bool) -> None:
        """Add a name, number or group."""
        if is_apart or not self.applied:
            self.applied.append(latex)
        else:
            self.applied[-1] += latex

    def sign(self, text: str, is_apart: bool) -> None:
        if text in _POSTFIX and self.applied and not is_apart:
            self.applied[-1] += text
            return
        self.flush()
        self.lists = text in _BINDERS
        self.binds = self.binds or self.lists
        if text == "^" and self.written:
            self.power = True
        elif text == ":" and self.opening == "(" and not self.binds:
            self.is_typed = True
        else:
            gap = " " if is_apart else ""
            self.written.append(gap + (rf"\text{{{text} }}" if text in _WORDS else _SIGNS.get(text, text)))

    def flush(self) -> None:
        """Write the function that was read, and its arguments."""
        if self.applied:
            function, *arguments = self.applied
            inside = ", ".join(map(_bare, arguments))
            opening, closing = ("", "") if not arguments else "{}" if function == r"\sqrt" else "()"
            latex = ", ".join(self.applied) if self.lists else f"{function}{opening}{inside}{closing}"
            self.written.append(f"^{{{_bare(latex)}}}" if self.power else f" {latex}")
        self.applied, self.power = [], False

    def latex(self, closing: str) -> str:
        self.flush()
        inside = "".join(self.written).strip()
        if self.big:
            return f"{self.big}_{{{inside}}}"
        if self.is_typed and len(self.written) == 1:
            return inside
        return f"{_SIGNS.get(self.opening, self.opening)}{inside}{_SIGNS.get(closing, closing)}"


def _bare(latex: str) -> str:
    """Take the parentheses off that enclose all of an expression."""
    depth = 0
    for i, sign in enumerate(latex):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return latex[1:-1] if 0 < i == len(latex) - 1 else latex
    return latex


def claim_latex(tokens: Sequence[LeanToken]) -> str:
    """Write a claim as LaTeX; the empty text if it is only words.

    Args:
        tokens: of the claim; its brackets may be unbalanced.
    """
    if not any(token.kind == "sign" and token.text not in _POOR for token in tokens):
        return ""
    parts, end = [_Part()], 0

    def close(closing: str) -> None:
        part = parts.pop()
        latex = part.latex(closing)
        if part.big:
            parts[-1].written.append(f" {latex}")
        else:
            parts[-1].add(latex, part.is_apart)

    for token in tokens:
        text, is_apart = token.text, token.start > end
        if text == "↑":
            continue
        end = token.end
        if token.kind == "close":
            while parts[-1].big:
                close("")
            if len(parts) > 1:
                close(text)
        elif token.kind == "open":
            parts.append(_Part(text, is_apart, lists=parts[-1].lists))
        elif parts[-1].is_typed:
            continue
        elif text == "," and parts[-1].big:
            close("")
        elif text in _BIG:
            parts[-1].flush()
            parts.append(_Part(big=_BIG[text], lists=True))
        elif token.kind == "sign" or text in _WORDS:
            parts[-1].sign(text, is_apart)
        else:
            for i, latex in enumerate(_name(text) if token.kind == "name" else [_text(text)]):
                parts[-1].add(latex, is_apart or i > 0)
    while len(parts) > 1:
        close("")
    return parts[0].latex("")


def _name(name: str) -> list[str]:
    """Write a name as a function and, if it begins with a variable, its first argument."""
    first, *others = name.split(".")
    if not others:
        return [_symbol(first)]
    is_namespace = first[0].isupper() and not _is_letter(first)
    return [_symbol(others[-1]), *([] if is_namespace else [_symbol(first)])]


def _is_letter(name: str) -> bool:
    return len(name.rstrip("'₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")) == 1


def _symbol(name: str) -> str:
    if _is_letter(name):
        return name
    return rf"\{name}" if name in _FUNCTIONS or name == "sqrt" else _text(name)


def _text(name: str) -> str:
    """Write a name of several letters, a number or a literal."""
    if name.isdecimal():
        return name
    words = "".join(each if each.isalnum() or each in "'." else " " for each in name).strip()
    return rf"\text{{{words}}}" if words else r"\_"
