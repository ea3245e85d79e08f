r"""Mathematics typed in Unicode as the LaTeX that means the same: ``x²`` is ``x^{2}``, ``√(a+1)`` is ``\sqrt{a+1}``.

Only what a converter of LaTeX reads otherwise is rewritten: superscripts, subscripts, fractions, roots, accents,
degrees, the middle dot, and italic or wide forms of plain letters. Operators, letters and relations (``∑ ≤ ℝ α ∈``)
already give the tree of their command.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

_ROOTS = {"√": r"\sqrt", "∛": r"\sqrt[3]", "∜": r"\sqrt[4]"}
_ACCENTS = {
    "\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0305": "overline", "\u0307": "dot", "\u0308": "ddot",
    "\u030c": "check", "\u0306": "breve", "\u20d7": "vec",
}  # fmt: skip
_PLAIN = "\U0001d434-\U0001d467\u210eµ\uff08\uff09\uff0b-\uff0f\uff10-\uff1e\uff21-\uff3a\uff41-\uff5a"
_SKIPPED = re.compile(r"\\(?:text\w*|mbox|operatorname\*?)\s*\{[^{}]*\}|\\.", re.DOTALL)
_LONGEST_RADICAND = 400  # also the bound of the depth of roots in roots
_MORE_ROOTS = re.compile(r"\s*(?:[√∛∜]\s*){0,20}")
_RADICAND = re.compile(rf"(?:\d+(?:[.,]\d+)?|\\[A-Za-z]+|[^\W_²³¹⁰-₟][{''.join(_ACCENTS)}]?)")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


@cache
def _pattern() -> re.Pattern[str]:
    """What may need rewriting, or must be passed over; made when the first formula needs it."""
    kinds = {kind: "".join(_characters(kind)) for kind in ("<super>", "<sub>", "<fraction>")}
    return re.compile(
        rf"(?P<skip>{_SKIPPED.pattern})|(?P<super>[{kinds['<super>']}]+)|(?P<sub>[{kinds['<sub>']}]+)"
        rf"|(?P<fraction>[{kinds['<fraction>']}])|(?P<root>[{''.join(_ROOTS)}])|(?P<dot>·)|(?P<degree>°)"
        rf"|(?P<accent>[A-Za-zͰ-Ͽ][{''.join(_ACCENTS)}]|[{''.join(_accented())}])|(?P<plain>[{_PLAIN}])",
        re.DOTALL,
    )


def _characters(kind: str) -> Iterable[str]:
    """The characters of the Basic Multilingual Plane whose compatibility decomposition is of one kind."""
    for code in range(0x80, 0x10000):
        character = chr(code)
        if unicodedata.decomposition(character).startswith(kind) and character not in "™℠ªº⅟":
            yield character


def _accented() -> Iterable[str]:
    """The characters that are a letter with one of the accents of mathematics."""
    for code in range(0xC0, 0x1F00):
        parts = unicodedata.normalize("NFD", chr(code))
        if len(parts) == 2 and parts[0].isalpha() and parts[1] in _ACCENTS:
            yield chr(code)


def latex_of_unicode(source: str) -> str:
    r"""Rewrite what Unicode has characters for and LaTeX has notation.

    Args:
        source: LaTeX without delimiters. The arguments of ``\text`` and escaped characters stay as they are.

    Returns:
        LaTeX; the same text where nothing needed rewriting.
    """
    if source.isascii():
        return source
    pieces: list[str] = []
    at = 0
    for match in _pattern().finditer(source):
        if match.start() < at or match.lastgroup == "skip":  # inside the radicand of a root, or passed over
            continue
        pieces.append(source[at : match.start()])
        at = match.end()
        if match.lastgroup == "root":
            radicand, at = _radicand(source, at)
            pieces.append(f"{_ROOTS[match[0]]}{{{latex_of_unicode(radicand)}}}")
        else:
            pieces.append(_rewritten(match))
    return "".join(pieces) + source[at:]


def _rewritten(match: re.Match[str]) -> str:
    if match.lastgroup == "dot":
        return r"\cdot "
    if match.lastgroup == "degree":
        return r"^{\circ}"
    if match.lastgroup == "accent":
        parts = unicodedata.normalize("NFD", match[0])
        return rf"\{_ACCENTS[parts[1]]}{{{parts[0]}}}"
    plain = unicodedata.normalize("NFKC", match[0]).replace("−", "-")
    if match.lastgroup == "plain":
        return plain
    if match.lastgroup == "fraction":
        above, _, below = plain.partition("⁄")
        return rf"\frac{{{above}}}{{{below}}}"
    return f"{'^' if match.lastgroup == 'super' else '_'}{{{plain}}}"


def _radicand(source: str, start: int) -> tuple[str, int]:
    """What a root covers: a group in brackets without them, a number, a command or a letter; and where that ends."""
    roots = _MORE_ROOTS.match(source, start)
    opened = roots.end() if roots else start
    closer = _BRACKETS.get(source[opened : opened + 1])
    if closer is not None:
        depth = 0
        for i in range(opened, min(len(source), opened + _LONGEST_RADICAND)):
            depth += (source[i] == source[opened]) - (source[i] == closer)
            if depth == 0:
                whole = roots and roots[0].strip()  # the root of a root keeps the brackets of the inner one
                return (source[start : i + 1], i + 1) if whole else (source[opened + 1 : i], i + 1)
        return "", start
    match = _RADICAND.match(source, opened)
    return (source[start : match.end()].strip(), match.end()) if match else ("", start)
