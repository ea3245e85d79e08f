r"""Where formulas are in text: ``$..$``, ``$$..$$``, ``\(..\)``, ``\[..\]`` and environments such as ``\begin{align}``.

A dollar is a currency sign when it is escaped, when nothing closes it in its block, or when the enclosed text reads as
prose after an amount: ``$5 and $10``. Unpaired delimiters are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MARK = "\ue000"
"""Private-use character in the place of a formula that is already known."""

CODE_DOLLAR, CODE_BACKSLASH = "\ue001", "\ue002"
"""Private-use characters for a dollar and a backslash in code, where they delimit nothing."""

CODE_START, CODE_END = "\ue003", "\ue004"
"""Enclose code while formulas without delimiters are searched for; code contains none."""

LONGEST_DISPLAY = 20_000
LONGEST_INLINE = 4_000
_NESTED = 8  # formulas in the text of a formula

_OPENER = re.compile(
    r"\\\\[(\[]?|\\\$|\$\$?|\\\(|\\\["
    r"|\\begin\{(?:(?:equation|align|alignat|gather|multline|eqnarray|flalign)\*?)\}"
)
_CLOSER = {"$$": "$$", "\\(": "\\)", "\\[": "\\]", "\\\\(": "\\\\)", "\\\\[": "\\\\]"}  # two backslashes: for kramdown
_INLINE_STOP = re.compile(rf"\\.|[{{}}$\n{MARK}]", re.DOTALL)
_AMOUNT_AND_WORDS = re.compile(r"\d[\d.,]*(?![\d.,])(?:(?<=[.,])[\s,;.)]*|\w?[\s,;.)]+)[A-Za-z]{2}")
_AMOUNT_AND_SPACE = re.compile(r"\d[\d.,]*\s+")
_OPENED = re.compile(r"[A-Za-z\\({\[|]|[^\s$]{0,40}[\\^_=]")  # text after a dollar that opens a formula
_TEX = re.compile(r"[\\^_={}<>+*/|]")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_BRACE_OR_DOLLAR = re.compile(r"\\.|[{}$]", re.DOTALL)
_PROSE = re.compile(r"(?:[^\W\d_]|[\s.,;:?!'’\"-])*")
_WORDS = re.compile(r"[^\W\d_]{2,}")
_FUNCTIONS = frozenset(["arccos", "arcsin", "arctan", "cosh", "coth", "limsup", "liminf", "sinh", "sqrt", "tanh"])
_CONTROL = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ue000-\ue005\ufeff\ufff9-\uffff\ud800-\udfff]"
)


def clean(text: str) -> str:
    """Drop control characters, invisible ones, lone surrogates and our own marks."""
    return _CONTROL.sub("", text)


def replaced(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """Put a text in the place of each span, which are in order and do not overlap."""
    pieces, at = [], 0
    for start, end, by in spans:
        pieces += [text[at:start], by]
        at = end
    return "".join([*pieces, text[at:]])


def mask(text: str, spans: Iterable[tuple[int, int]], mark: str = MARK) -> str:
    """Put a mark in the place of each character of some spans, which are in order and do not overlap."""
    return replaced(text, ((start, end, mark * (end - start)) for start, end in spans))


def strip_delimiters(latex: str) -> str:
    r"""Remove the delimiters of LaTeX: ``$x$``, ``$$x$$``, ``\(x\)``, ``\[x\]`` and ``\\(x\\)`` are ``x``."""
    latex = latex.strip()
    for opening, closing in (*_CLOSER.items(), ("$", "$")):
        if len(latex) >= len(opening + closing) and latex.startswith(opening) and latex.endswith(closing):
            if closing == "$" and latex.endswith("\\$"):
                continue
            return latex[len(opening) : -len(closing)].strip()
    opened = latex.lstrip("$")  # a truncated formula without its closing dollars
    return latex if "$" in opened else opened.strip()


def is_formula(latex: str) -> bool:
    r"""Return whether a typed text is a formula.

    Args:
        latex: LaTeX, with or without delimiters.

    Returns:
        ``False`` for blank text, for braces that do not pair (``\frac{a``) and, without delimiters, for prose.
    """
    depth = 0
    for brace in _BRACE.findall(latex):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        if depth < 0:
            return False
    if depth or not strip_delimiters(latex):
        return False
    if not _PROSE.fullmatch(latex):
        return True
    words = [word for word in _WORDS.findall(latex) if word.lower() not in _FUNCTIONS]
    return len(words) < 3 and not any(len(word) > 3 and word[1:].islower() for word in words)


def has_dollar(latex: str) -> bool:
    r"""Return whether a formula has dollars outside of braces, as of several formulas; ``\text{if $x$}`` is one."""
    depth = 0
    for sign in _BRACE_OR_DOLLAR.findall(latex) if "$" in latex else ():
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign == "$" and depth <= 0:
            return True
    return False


def math_spans(text: str, unclosed: list[int] | None = None) -> Iterator[tuple[int, int, str]]:
    """Find the formulas of a text."""
    at = 0
    while opener := _OPENER.search(text, at):
        at = opener.end()
        delimiter = opener[0]
        if delimiter in ("\\$", "\\\\"):
            continue
        if delimiter == "$":
            end = _inline_end(text, at)
            if end < 0 and unclosed is not None and _OPENED.match(text, at):
                unclosed.append(opener.start())
            if end < 0 or _is_prose(text[at:end], text[end + 1 : end + 2]):
                continue
            latex, after = text[at:end], end + 1
        else:
            closer = _CLOSER.get(delimiter) or delimiter.replace("begin", "end")
            end = _display_end(text, at, delimiter, closer)
            if end < 0:
                if unclosed is not None and text[at : at + 1].strip() and not delimiter.startswith("\\\\"):
                    unclosed.append(opener.start())
                continue
            after = end + len(closer)
            latex = text[opener.start() : after] if delimiter.startswith("\\b") else text[at:end]
        if latex.strip():
            yield opener.start(), after, latex.strip()
            at = after


def _display_end(text: str, start: int, opener: str, closer: str) -> int:
    """Find the closer of a display formula, or -1; the search ends at the next opener, so it is linear overall."""
    limit = start + LONGEST_DISPLAY
    if opener != closer:
        following = text.find(opener, start, limit)
        limit = following if following >= 0 else limit
    first = end = text.find(closer, start, limit)
    for _ in range(_NESTED if closer == "$$" else 0):  # two dollars in braces are of formulas in text
        if end < 0 or _depth(text[start:end]) <= 0:
            break
        end = text.find(closer, end + 1, limit)
    else:
        end = first
    end = first if end < 0 else end
    return -1 if end < 0 or MARK in text[start:end] else end


def _depth(latex: str) -> int:
    braces = _BRACE.findall(latex)
    return braces.count("{") - braces.count("}")


def _inline_end(text: str, start: int) -> int:
    """Find the dollar that closes an inline formula, or -1; dollars in braces belong to the formula."""
    depth, inner = 0, []
    for stop in _INLINE_STOP.finditer(text, start, start + LONGEST_INLINE):
        what = stop[0]
        if what == "{":
            depth += 1
        elif what == "}":
            depth -= 1
        elif what == "$":
            if depth <= 0:
                return stop.start()
            inner.append(stop.start())
            if len(inner) == 8:
                break
        elif what in ("\n", MARK):
            break
    return inner[0] if inner else -1


def _is_prose(content: str, following: str) -> bool:
    """Whether dollars that pair are amounts of money."""
    if not content.strip():
        return True
    spaced = content[0].isspace() or content[-1].isspace()
    if spaced and (following.isdigit() or _AMOUNT_AND_SPACE.fullmatch(content)):
        return True
    if _TEX.search(content):
        return False
    return bool(_AMOUNT_AND_WORDS.match(content)) or (spaced and len(content.split()) > 1 and content[-1:].isspace())
