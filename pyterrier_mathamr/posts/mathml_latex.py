r"""Presentation MathML as equivalent LaTeX, or nothing.

::

    <msup><mi>r</mi><mn>2</mn></msup>       r^{2}
    <mfrac linethickness="0">…              {n \atop k}, \binom{n}{k} between parentheses
    <mover accent="true">… <mo>→</mo>       \vec{x}
    <mo>(</mo><mtable>…<mo>)</mo>           \begin{pmatrix}…\end{pmatrix}
    <semantics>…<annotation-xml>…           its first child

Each element has one rule: a function from the element and the LaTeX of its children. If a rule for an element, a style
or a character is missing, the whole formula is left out, so that no formula is read as a different one.

Tags are read as in HTML, with or without a prefix: there are no entities of a document type to expand, and depth is
unlimited. The output is a tree of texts until the end, so that no text is copied for each level around it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from typing import TypeAlias

_TAG = re.compile(
    r"""<(/?)(?:[a-zA-Z][\w.-]{0,30}:)?([a-zA-Z][a-zA-Z-]{0,20})((?:\s(?:[^<>"']|"[^"]{0,9999}"|'[^']{0,9999}'){0,500})?/?)>"""
    r"|<!--"
)
_ATTRIBUTE = re.compile(r"""([a-zA-Z][\w-]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>/]+))""")
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)*|\.\d+)")
_WORD = re.compile(r"[A-Za-z]+(?:[ \u2009\u00a0][A-Za-z]+)*")
_COMMAND_END = re.compile(r"\\[a-zA-Z]+\Z")
_LENGTH = re.compile(r"(-?)\s*\+?(\d*\.?\d+)\s*(em|ex|pt|px|mu|cm|mm|in|pc|rem)?")
_EM = {"ex": 0.45, "pt": 0.1, "px": 1 / 16, "mu": 1 / 18, "cm": 2.8, "mm": 0.28, "in": 7.2, "pc": 1.2}

_TOKENS = frozenset({"mi", "mn", "mo", "mtext", "ms", "qvar"})
_SKIPPED = frozenset({"annotation", "annotation-xml"})

_LIMIT_WORDS = frozenset(["det", "gcd", "inf", "lim", "liminf", "limsup", "max", "min", "Pr", "sup"])
_WORDS = _LIMIT_WORDS | {
    "arccos", "arcsin", "arctan", "arg", "cos", "cosh", "cot", "coth", "csc", "deg", "dim", "exp", "hom", "ker", "lg",
    "ln", "log", "sec", "sin", "sinh", "tan", "tanh",
}  # fmt: skip
_BIG = frozenset("∑∏∐⋀⋁⋂⋃⨀⨁⨂⨃⨄⨅⨆")
_INTEGRALS = frozenset("∫∬∭⨌∮∯∰")
_APPLY, _NEGATED = "\u2061", "\u0338"
_ACCENT_ONLY = "\0"  # in the place of a symbol that has a meaning only above or below another
_INVISIBLE = frozenset("\u200b\u2061\u2062\u2063\u2064")
_PRIMES = {"′": 1, "'": 1, "″": 2, "‴": 3, "⁗": 4, "′′": 2, "''": 2, "′′′": 3, "'''": 3}
_OPENING = {"(": ")", "[": "]", "{": "}", "|": "|", "‖": "‖", "∥": "∥", "⟨": "⟩", "⌊": "⌋", "⌈": "⌉"}
_MATRICES = {"()": "pmatrix", "[]": "bmatrix", "{}": "Bmatrix", "||": "vmatrix", "‖‖": "Vmatrix", "∥∥": "Vmatrix"}
_VARIANTS = {
    "normal": r"\mathrm", "italic": r"\mathit", "bold": r"\mathbf", "bold-italic": r"\boldsymbol",
    "double-struck": r"\mathbb", "script": r"\mathscr", "fraktur": r"\mathfrak", "sans-serif": r"\mathsf",
    "monospace": r"\mathtt", "-tex-calligraphic": r"\mathcal", "-tex-mathit": r"\mathit",
}  # fmt: skip
_LETTERS = (  # parts of characters' names, longest first
    ("MATHEMATICAL DOUBLE-STRUCK ", r"\mathbb"), ("DOUBLE-STRUCK ", r"\mathbb"), ("MATHEMATICAL SCRIPT ", r"\mathscr"),
    ("MATHEMATICAL FRAKTUR ", r"\mathfrak"), ("MATHEMATICAL BOLD ", r"\mathbf"),
    ("MATHEMATICAL SANS-SERIF ", r"\mathsf"), ("MATHEMATICAL MONOSPACE ", r"\mathtt"), ("MATHEMATICAL ITALIC ", ""),
)  # fmt: skip
_OVER = {
    **dict.fromkeys("¯‾―_ˉ\u0304\u0305", (r"\bar", r"\overline")), **dict.fromkeys("^ˆ\u0302", (r"\hat", r"\widehat")),
    **dict.fromkeys("~˜\u0303", (r"\tilde", r"\widetilde")), **dict.fromkeys("→\u20d7", (r"\vec", r"\overrightarrow")),
    **dict.fromkeys("˙\u0307.", (r"\dot", r"\dot")), **dict.fromkeys("¨\u0308", (r"\ddot", r"\ddot")),
    **dict.fromkeys("ˇ\u030c", (r"\check", r"\check")), **dict.fromkeys("˘\u0306", (r"\breve", r"\breve")),
    **dict.fromkeys("´\u0301", (r"\acute", r"\acute")), **dict.fromkeys("`\u0300", (r"\grave", r"\grave")),
    **dict.fromkeys("˚\u030a", (r"\mathring", r"\mathring")), "\u20db": (r"\dddot", r"\dddot"),
    **dict.fromkeys("←\u20d6", (r"\overleftarrow",) * 2), **dict.fromkeys("↔\u20e1", (r"\overleftrightarrow",) * 2),
    "⏞": (r"\overbrace",) * 2, "⎴": (r"\overbracket",) * 2, "⏜": (r"\overparen",) * 2,
}  # fmt: skip
_UNDER = {
    **dict.fromkeys("_¯‾―ˍ\u0331\u0332", r"\underline"),
    "⏟": r"\underbrace", "⎵": r"\underbracket", "⏝": r"\underparen",
}  # fmt: skip
_NOTATIONS = {
    "box": r"\boxed", "updiagonalstrike": r"\cancel", "downdiagonalstrike": r"\bcancel", "top": r"\overline",
    "bottom": r"\underline", "radical": r"\sqrt",
}  # fmt: skip

_GREEK = (
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho varsigma sigma tau "
    "upsilon varphi chi psi omega"
)
_GREEK_CAPITALS = "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
_NAMED = r"""
ϵ \epsilon ϕ \phi ϑ \vartheta ϱ \varrho ϖ \varpi ℓ \ell ∞ \infty ∂ \partial ∇ \nabla ∅ \emptyset ∀ \forall ∃ \exists
… \ldots ⋯ \cdots ⋮ \vdots ⋱ \ddots ∑ \sum ∏ \prod ∐ \coprod ∫ \int ∬ \iint ∭ \iiint ∮ \oint ⋃ \bigcup ⋂ \bigcap
⨁ \bigoplus
⨂ \bigotimes ⋁ \bigvee ⋀ \bigwedge − - ∗ \ast ± \pm ∓ \mp × \times ÷ \div ⋅ \cdot · \cdot ∘ \circ ≤ \leq ≥ \geq ≠ \neq
≡ \equiv ≈ \approx ∼ \sim ≃ \simeq ≅ \cong ∝ \propto ∈ \in ∉ \notin ∋ \ni ⊂ \subset ⊆ \subseteq ⊃ \supset ⊇ \supseteq
∪ \cup ∩ \cap ∖ \setminus ∧ \wedge ∨ \vee ¬ \neg ⊕ \oplus ⊗ \otimes → \to ← \leftarrow ↔ \leftrightarrow ⇒ \Rightarrow
⇐ \Leftarrow ⇔ \Leftrightarrow ↦ \mapsto ⟨ \langle ⟩ \rangle 〈 \langle 〉 \rangle ⌊ \lfloor ⌋ \rfloor ⌈ \lceil ⌉ \rceil
‖ \| ∥ \parallel ∣ \mid ⟂ \perp ∠ \angle ′ \prime ″ \prime\prime { \{ } \} % \% # \# $ \$ _ \_ \ \backslash ~ \sim
ℜ \Re ℑ \Im ℵ \aleph ℏ \hbar ≪ \ll ≫ \gg ⊥ \bot † \dagger ⟶ \longrightarrow ⟹ \implies ⟺ \Longleftrightarrow
∴ \therefore ∵ \because △ \triangle"""
_SPECIAL = {
    **{chr(0x3B1 + i): rf"\{name}" for i, name in enumerate(_GREEK.split()) if name != "omicron"},
    **{letter: rf"\{name}" for letter, name in zip("ΓΔΘΛΞΠΣΥΦΨΩ", _GREEK_CAPITALS.split(), strict=True)},
    **dict(zip(_NAMED.split()[::2], _NAMED.split()[1::2], strict=True)),
    "&": r"\& ",  # with a blank: no named character begins here
}
_TYPED = {"->": r"\to", "<=": r"\leq", ">=": r"\geq", "!=": r"\neq", "...": r"\ldots"}
_TEXT = {
    "{": r"\{", "}": r"\}", "%": r"\%", "#": r"\#", "&": r"\& ", "_": r"\_", "\\": r"\textbackslash ", "\u00a0": " ",
}  # fmt: skip

Parts: TypeAlias = "list[str | Parts]"
"""A text in pieces."""


class _Unknown(Exception):  # noqa: N818 - no error for users: the formula is not written
    """There is no LaTeX that certainly has the same meaning."""


@dataclass(slots=True)
class _Written:
    """The LaTeX of an element."""

    parts: Parts
    kind: str = ""
    text: str = ""
    single: bool = False
    tall: bool = False
    limits: bool = False
    stretchy: bool = True
    applied: Parts = field(default_factory=list)  # the LaTeX as a function of the next symbols
    sides: str = ""  # alignment of the columns of a table: l, c, r


@dataclass(slots=True)
class _Element:
    """An element whose end has not come."""

    tag: str
    attributes: dict[str, str]
    variant: str  # style of its letters
    children: list[_Written] = field(default_factory=list)
    text: str = ""


def latex_of_mathml(source: str) -> str:
    """Write a formula as LaTeX."""
    try:
        return _flat(_fold(source).parts)
    except _Unknown:
        return ""


def text_of_mathml(source: str) -> str:
    """Return the text of a formula without annotations, its tokens apart."""
    pieces, at, hidden = list[str](), 0, ""
    for tag in _TAG.finditer(source):
        if not hidden:
            pieces.append(source[at : tag.start()])
        at = tag.end()
        name = (tag[2] or "").lower()
        if name in _SKIPPED and not tag[3].endswith("/"):
            hidden = hidden or ("" if tag[1] else name)
            if tag[1] and name == hidden:
                hidden = ""
    return " ".join(unescape(" ".join([*pieces, "" if hidden else source[at:]])).split())


def _fold(source: str) -> _Written:
    """Apply the rules to all elements, from the leaves up."""
    stack: list[_Element] = []
    at = position = 0
    hidden = 0  # levels of annotations
    while tag := _TAG.search(source, position):
        text = source[at : tag.start()]
        if hidden:
            pass
        elif stack and stack[-1].tag in _TOKENS:
            stack[-1].text += unescape(text)
        elif text.strip():
            raise _Unknown
        at = position = tag.end()
        if tag[0] == "<!--":
            at = position = source.find("-->", position) + 3
            if at < position or position < 3:
                raise _Unknown
            continue
        name, closed = tag[2].lower(), tag[3].endswith("/")
        if hidden or name in _SKIPPED:
            hidden += 0 if closed else -1 if tag[1] else 1
            continue
        if not tag[1]:
            attributes = {match[1].lower(): match[match.lastindex or 2] for match in _ATTRIBUTE.finditer(tag[3])}
            variant = attributes.get("mathvariant", stack[-1].variant if stack else "")
            stack.append(_Element(name, attributes, variant))
        elif not stack or stack[-1].tag != name:
            raise _Unknown
        if tag[1] or closed:
            element = stack.pop()
            if element.tag not in RULES:
                raise _Unknown
            written = RULES[element.tag](element)
            if not stack:
                return written
            stack[-1].children.append(written)
    raise _Unknown


def _flat(parts: Parts) -> str:
    """Join the pieces, with a blank between a command and a letter."""
    out: list[str] = []
    stack = [iter(parts)]
    while stack:
        part = next(stack[-1], None)
        if part is None:
            stack.pop()
        elif not isinstance(part, str):
            stack.append(iter(part))
        elif part:
            if part == _ACCENT_ONLY:
                raise _Unknown
            if out and part[0].isalpha() and _COMMAND_END.search(out[-1]):
                out.append(" ")
            elif out and part[0].isdigit():
                ends_with_point = out[-1] == "." and len(out) > 1
                if out[-2 if ends_with_point else -1][-1].isdigit():
                    out.append("{}")  # two numbers are not one
            out.append(part)
    return "".join(out).strip()


def _characters(text: str) -> Parts:
    """Write symbols unchanged, letters of one style together."""
    parts: Parts = []
    style = ""
    for character in text:
        if character in _INVISIBLE or character.isspace():
            continue
        category = unicodedata.category(character)
        if character == _NEGATED and parts:
            parts[-1:] = [r"\not", parts[-1]]
            continue
        if category[0] in "CM" or character in '^`"':
            raise _Unknown
        before, (style, letter) = style, _styled_letter(character)
        if style and style == before:
            parts[-1] = f"{str(parts[-1])[:-1]}{letter}}}"
        else:
            parts.append(f"{style}{{{letter}}}" if style else letter or _SPECIAL.get(character, character))
    return parts


def _styled_letter(character: str) -> tuple[str, str]:
    """Return the command and the plain form of a letter of the mathematical alphabets; empty for any other."""
    if character < "ℂ":
        return "", ""
    name = unicodedata.name(character, "")
    plain = unicodedata.normalize("NFKC", character)
    if len(plain) == 1 and plain.isascii() and plain.isalnum():
        for beginning, command in _LETTERS:
            rest = name.removeprefix(beginning)
            if rest != name and rest.split()[0] in ("CAPITAL", "SMALL", "DIGIT"):
                return command, plain
    return "", ""


def _identifier(element: _Element) -> _Written:
    """``mi``: a letter, or a word."""
    text, variant = element.text.strip(" \t\n\r"), element.variant
    if len(text) == 1 and variant in ("", "italic") and text.isascii():
        return _Written(_characters(text), "mi", text, single=True)
    if variant in ("", "normal") and _WORD.fullmatch(text) and len(text) > 1:
        return _word(text, "mi")
    if len(text) > 1 and variant == "" and text.isascii() and text.isalnum():
        return _Written([rf"\mathrm{{{text}}}"], "mi", text, single=True)
    if len(text) > 1 and text.isalpha() and (plain := unicodedata.normalize("NFKC", text)).isascii():
        if all(_styled_letter(character) == ("", letter) for character, letter in zip(text, plain, strict=False)):
            return _Written([rf"\mathit{{{plain}}}"], "mi", text, single=True)
    elif len(text) > 1 and text.isalpha() and variant in ("", "normal"):
        return _Written([rf"\mathrm{{{text}}}"], "mi", text, single=True)
    written = _other(text, variant)
    if variant == "normal" and text.isascii() and text.isalpha():
        written.applied = [rf"\operatorname{{{text}}}"]
    return written


def _other(text: str, variant: str) -> _Written:
    """Write letters and digits that are neither one symbol nor a word, in a style."""
    if variant and variant not in _VARIANTS:
        raise _Unknown
    if variant and text.isascii() and text.replace(" ", "").isalnum():
        parts: Parts = [f"{_VARIANTS[variant]}{{{text}}}"]
    else:  # they have one form only, or are letters of that style
        parts = _characters(text)
    return _Written(parts, "mi", text, single=len(parts) == 1) if parts else _Written([])


def _word(text: str, kind: str) -> _Written:
    """Write a word: a function that LaTeX knows, or upright letters."""
    joined = "".join(text.split())
    if joined == "mod":
        return _Written([r"\bmod "], kind, joined, single=True)
    if joined in _WORDS:
        return _Written([rf"\{joined}"], kind, joined, single=True, limits=joined in _LIMIT_WORDS)
    applied: Parts = [r"\operatorname{" + r"\,".join(text.split()) + "}"]
    return _Written([r"\mathrm{" + r"\ ".join(text.split()) + "}"], "word", text, single=True, applied=applied)


def _number(element: _Element) -> _Written:
    text, is_plain = element.text.strip(" \t\n\r"), element.variant in ("", "normal")
    if is_plain and _NUMBER.fullmatch(text):
        return _Written([text], "mn", text, single=not text.startswith("-"))
    if text.isascii() and text.isalnum():
        return _other(text, element.variant or "normal")
    if is_plain and text.isascii() and text.replace(",", "").isdigit():
        return _Written([text.replace(",", "{,}")], "mn", text)
    return _other(text, element.variant)


def _operator(element: _Element) -> _Written:
    """``mo``: an operator, a fence or a word."""
    text = element.text.strip(" \t\n\r")
    if len(text) > 1 and _WORD.fullmatch(text):
        return _word(text, "mo")
    if text in _TYPED:
        return _Written([_TYPED[text]], "mo", text, single=True)
    if text in _OVER or text in _UNDER:
        shown: Parts = [_ACCENT_ONLY] if unicodedata.category(text) in ("Mn", "Sk") else _characters(text)
        return _Written(shown, "mo", text, single=True)
    if text.isascii() and text.isalpha():
        return _Written([rf"\mathrm{{{text}}}"], "mo", text, single=True)
    if text and all(character in _INVISIBLE for character in text):
        return _Written([], "apply" if text == _APPLY else "", text)
    fence = text == "∥" and ("stretchy" in element.attributes or element.attributes.get("fence") == "true")
    parts: Parts = [r"\|"] if fence else _characters(text)
    stretchy = element.attributes.get("stretchy") != "false"
    return _Written(parts, "mo", text, single=len(parts) == 1, limits=text in _BIG, stretchy=stretchy)


def _text(element: _Element) -> _Written:
    """``mtext``, ``ms``: words."""
    text = element.text
    if any(character in "$^~" or unicodedata.category(character) in ("Cc", "Co", "Cs") for character in text.strip()):
        raise _Unknown
    if not text.strip():
        return _Written([r"\ "], "space") if text else _Written([])
    written = "".join(_TEXT.get(character, character) for character in " ".join(text.split(" ")))
    return _Written([rf"\text{{{written}}}"], "mtext", text, single=True)


def _space(element: _Element) -> _Written:
    """``mspace``: a blank of about its width."""
    length = _LENGTH.fullmatch(element.attributes.get("width", "").strip())
    width = float(length[2]) * _EM.get(length[3], 1.0) if length else 0.0
    if length and length[1]:
        return _Written([r"\!"], "space")
    return _Written([r"\quad" if width >= 0.9 else r"\,"], "space") if width else _Written([])


def _row(children: Sequence[_Written]) -> _Written:
    """Write symbols one after another."""
    shown = [child for child in children if child.parts or child.kind == "apply"]
    if len(shown) == 1 and shown[0].parts:
        return shown[0]
    parts: Parts = []
    place = 0
    while place < len(shown):
        child = shown[place]
        fenced = _fenced_construct(shown, place)
        if fenced is not None:
            construct, taken = fenced
            if len(shown) == taken:
                return construct
            parts.append(construct.parts)
            place += taken
            continue
        applied = place + 1 < len(shown) and shown[place + 1].kind == "apply"
        parts.append(child.applied if applied and child.applied else child.parts)
        place += 1
    if len(shown) > 2:
        first, *inner, last = shown
        if first.text == last.text == "∥":
            parts[0] = parts[-1] = r"\|"
        if (
            all(fence.kind == "mo" and fence.stretchy for fence in (first, last))
            and _OPENING.get(first.text) == last.text
            and any(child.tall for child in inner)
            and not any(child.kind == "mo" and child.text in (first.text, last.text) for child in inner)
        ):  # a pair of fences that grow with their content
            parts = [r"\left", parts[0], parts[1:-1], r"\right", parts[-1]]
    return _Written(parts, tall=any(child.tall for child in shown))


def _fenced_construct(row: Sequence[_Written], place: int) -> tuple[_Written, int] | None:
    """Write a matrix, cases or a binomial with its fences; also return how many symbols it consumes."""
    if row[place].kind != "mo" or place + 1 >= len(row) or row[place + 1].kind not in ("table", "atop"):
        return None
    inner = row[place + 1]
    closing = row[place + 2] if place + 2 < len(row) else None
    opening = row[place].text
    if closing is not None and closing.kind == "mo" and _OPENING.get(opening) == closing.text:
        if inner.kind == "atop":
            if opening != "(":
                return None
            over, under = inner.parts[1], inner.parts[3]
            return _tall(r"\binom{", over, "}{", under, "}"), 3
        if opening + closing.text in _MATRICES and inner.text == "matrix":
            return _environment(_MATRICES[opening + closing.text], inner.parts[1]), 3
        return None
    if opening == "{" and closing is None and inner.kind == "table":
        if len(inner.sides) == 2:
            return _environment("cases", inner.parts[1]), 2
        return _tall(r"\left\{", inner.parts, r"\right."), 2
    return None


def _environment(name: str, body: str | Parts, given: str = "") -> _Written:
    return _tall(rf"\begin{{{name}}}{given}", body, rf"\end{{{name}}}")


def _children(element: _Element, count: int) -> list[_Written]:
    if len(element.children) != count:
        raise _Unknown
    return element.children


def _braced(written: _Written) -> Parts:
    return ["{", written.parts, "}"]


def _scripts(element: _Element) -> _Written:
    """``msub``, ``msup``, ``msubsup``: scripts; ``munder``, ``mover``, ``munderover``: also accents, braces, limits."""
    below, above = "sub" in element.tag or "under" in element.tag, "sup" in element.tag or "over" in element.tag
    base, *scripts = _children(element, 1 + below + above)
    under, over = scripts[0] if below else _Written([]), scripts[-1] if above else _Written([])
    if "s" in element.tag:
        attached: Parts = ["_", _braced(under)] if under.parts else []
        if over.parts:
            primes = _PRIMES.get(over.text, 0) if over.kind == "mo" else 0
            attached += ["'" * primes] if primes and base.parts else ["^", _braced(over)]
        applied: Parts = [base.applied, attached] if base.applied else []
        return _Written([base.parts if base.single else _braced(base), attached], tall=base.tall, applied=applied)
    if base.kind != "mo" and not above and under.kind == "mo" and under.text in _UNDER:
        return _accented(_UNDER[under.text], base, limits=under.text in "⏟⎵⏝")
    if base.kind != "mo" and not below and over.kind == "mo" and over.text in _OVER:
        return _accented(_OVER[over.text][not base.single], base, limits=over.text in "⏞⎴⏜")
    if base.limits or base.kind == "word" or base.text in _INTEGRALS:
        parts: Parts = [base.parts]
        if base.kind == "word":
            parts = [[r"\operatorname*", str(base.applied[0]).removeprefix(r"\operatorname")]]
        parts += [r"\limits"] if base.text in _INTEGRALS else []
        parts += ["_", _braced(under)] if under.parts else []
        parts += ["^", _braced(over)] if over.parts else []
        return _Written(parts, tall=base.text in _BIG or base.text in _INTEGRALS)
    written: Parts = base.parts
    if over.parts:
        written = [r"\overset", _braced(over), "{", written, "}"]
    if under.parts:
        written = [r"\underset", _braced(under), "{", written, "}"]
    return _Written(written, single=True, tall=True)


def _accented(command: str, base: _Written, *, limits: bool) -> _Written:
    return _Written([command, _braced(base)], single=True, tall=base.tall or limits, limits=limits)


def _fraction(element: _Element) -> _Written:
    """``mfrac``: a fraction; without a line one number above another."""
    over, under = _children(element, 2)
    thickness = element.attributes.get("linethickness", "1")
    if re.fullmatch(r"0(?:\.0*)?\s*[a-z%]*", thickness.strip()):
        return _Written(["{", over.parts, r"\atop ", under.parts, "}"], "atop", single=True, tall=True)
    return _tall(r"\frac", _braced(over), _braced(under))


def _tall(*parts: str | Parts) -> _Written:
    return _Written(list(parts), single=True, tall=True)


def _root(element: _Element) -> _Written:
    """``mroot``: a root with its degree."""
    inner, degree = _children(element, 2)
    return _tall(r"\sqrt[{", degree.parts, "}]", _braced(inner))


def _query_variable(element: _Element) -> _Written:
    """``qvar``: its name is in its attribute or its text."""
    name = unescape(element.attributes.get("name", "")) or element.text
    return _Written([r"\qvar{", "".join(filter(str.isalnum, name)), "}"], single=True)


def _multiscripts(element: _Element) -> _Written:
    """``mmultiscripts``: scripts before and after the base; the scripts of one corner are joined."""
    if not element.children:
        raise _Unknown
    base, *scripts = element.children
    kinds = [script.kind for script in scripts]
    mark = kinds.index("prescripts") if "prescripts" in kinds else len(scripts)
    after, before = (_corners(part) for part in (scripts[:mark], scripts[mark + 1 :]))
    return _Written([*(["{}", *before] if before else []), base.parts if base.single else _braced(base), *after])


def _corners(scripts: Sequence[_Written]) -> Parts:
    """Write scripts of one side, which are below and above in turn."""
    if len(scripts) % 2 or any(script.kind == "prescripts" for script in scripts):
        raise _Unknown
    below, above = _row(scripts[::2]), _row(scripts[1::2])
    parts: Parts = ["_", _braced(below)] if below.parts else []
    parts += ["^", _braced(above)] if above.parts else []
    return parts


def _fenced(element: _Element) -> _Written:
    """``mfenced``: fences and separators of the attributes."""
    given = {"open": "(", "close": ")", "separators": ",", **element.attributes}
    begin, end, separators = ("".join(unescape(given[name]).split()) for name in ("open", "close", "separators"))
    row: list[_Written | str] = [begin]
    for i, child in enumerate(element.children):
        if i and separators:
            row.append(separators[min(i, len(separators)) - 1])
        row.append(child)
    return _row([
        _Written(_characters(child), "mo", child, single=True) if isinstance(child, str) else child
        for child in (*row, end)
    ])  # fmt: skip


def _enclosed(element: _Element) -> _Written:
    """``menclose``: a box, a strike or a line."""
    notation = element.attributes.get("notation", "longdiv").strip()
    if notation not in _NOTATIONS:
        raise _Unknown
    inner = _row(element.children)
    return _Written([_NOTATIONS[notation], _braced(inner)], single=True, tall=inner.tall)


def _table(element: _Element) -> _Written:
    """``mtable``: a matrix, an array where columns are aligned, or lines."""
    rows = element.children
    if any(row.kind != "mtr" for row in rows):
        raise _Unknown
    sides = max((row.sides for row in rows), key=len, default="")
    given = [side[0] for side in element.attributes.get("columnalign", "").split()]
    name, columns = "matrix", ""
    if element.attributes.get("displaystyle") == "true":
        name = "aligned"
    elif any(set(side) - {"c"} for side in (given, *(row.sides for row in rows))):
        letters = given or list(sides)
        letters += letters[-1:] * (len(sides) - len(letters))
        name, columns = "array", "{" + "".join(side for side in letters[: len(sides)] if side in "lcr") + "}"
    table = _environment(name, _separated(rows, r" \\ "), columns)
    return replace(table, kind="table", text="matrix", sides=sides)


def _separated(children: Sequence[_Written], sign: str) -> Parts:
    return [part for child in children for part in (sign, child.parts)][1:]


def _table_row(element: _Element) -> _Written:
    """``mtr``: cells, with blanks so that no ``&`` begins a named character; without the number of ``mlabeledtr``."""
    cells = element.children[element.tag == "mlabeledtr" :]
    if any(cell.kind != "mtd" for cell in cells):
        raise _Unknown
    return _Written(_separated(cells, " & "), "mtr", sides="".join(cell.sides for cell in cells))


def _cell(element: _Element) -> _Written:
    inner = _row(element.children)
    parts, side = inner.parts, element.attributes.get("columnalign", "center")[:1]
    first: str | Parts = parts
    while first and not isinstance(first, str):
        first = first[0]
    if isinstance(first, str) and first.startswith(("[", "*")):
        parts = ["{}", parts]  # LaTeX would read it as an argument of the line end before it
    return _Written(parts, "mtd", sides=side if side in ("l", "r") else "c")


RULES: dict[str, Callable[[_Element], _Written]] = {
    **dict.fromkeys(["math", "mrow", "mstyle", "mpadded"], lambda element: _row(element.children)),
    **dict.fromkeys(["maction", "semantics"], lambda element: (element.children or [_Written([])])[0]),  # what is shown
    **dict.fromkeys(["mprescripts", "none"], lambda element: _Written([], element.tag.removeprefix("m"))),
    "mphantom": lambda element: (
        _Written([r"\phantom", _braced(_row(element.children))], "space") if element.children else _Written([])
    ),
    "msqrt": lambda element: _tall(r"\sqrt", _braced(_row(element.children))),
    "mi": _identifier, "mn": _number, "mo": _operator, "mtext": _text, "ms": _text, "qvar": _query_variable,
    "mspace": _space, "mroot": _root, "mfrac": _fraction, "mfenced": _fenced, "menclose": _enclosed,
    **dict.fromkeys(["msub", "msup", "msubsup", "munder", "mover", "munderover"], _scripts),
    "mmultiscripts": _multiscripts, "mtable": _table, "mtr": _table_row, "mlabeledtr": _table_row, "mtd": _cell,
}  # fmt: skip
