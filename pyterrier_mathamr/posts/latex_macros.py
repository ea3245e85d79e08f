r"""The macros that a LaTeX document defines, written out where they are used.

::

    \newcommand{\R}{\mathbb{R}}           x \in \R              x \in {\mathbb{R}}
    \newcommand{\norm}[1]{\|#1\|}         \norm{x + y}          {\|x + y\|}
    \newcommand{\pd}[2][f]{\frac{…}}      \pd{x}  \pd[g]{x}     an argument in brackets with its default
    \def\inner#1#2{\langle #1, #2 \rangle}
    \DeclareMathOperator{\rank}{rank}     \rank A               {\operatorname{rank}} A
    \DeclarePairedDelimiter{\abs}{|}{|}   \abs{x}  \abs*{x}     {|x|}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_DEFINITION = re.compile(
    r"\\(?P<by>(?:re)?newcommand|providecommand|DeclareMathOperator|DeclarePairedDelimiter|def)\*?"
    r"\s*\{?\s*\\(?P<name>[A-Za-z]+)\s*\}?\s*"
    r"(?:\[(?P<count>\d)\]\s*(?:\[(?P<default>[^\[\]]{0,500})\]\s*)?|(?P<hashes>(?:#\d\s*)+))?(?=\{)"
)
_PLACE = re.compile(r"#(\d)")
_OPTIONAL = re.compile(r"\s*\[([^\[\]]{0,500})\]")
_TOKEN = re.compile(r"\s*(\\[A-Za-z]+|\\.|[^\s{}])", re.DOTALL)
_BLANKS = re.compile(r"[^\S\n]*\n?[^\S\n]*")
_BRACE = re.compile(r"\\[^a-zA-Z]|[{}]")
_LONGEST_GROUP = 2_000
_EXPANSIONS = 8


class _Macro(NamedTuple):
    """A macro.

    Attributes:
        meaning: LaTeX with ``#1`` … where its arguments go.
        arguments: their number.
        default: of the first one, which is then given in brackets or left out.
        starred: a star may follow its name, which says nothing about meaning.
    """

    meaning: str
    arguments: int
    default: str | None
    starred: bool


def macros_written_out(source: str) -> str:
    """Write the macros of a document out, those within macros too, and take their definitions out.

    One that holds itself is left after a few rounds, and so is a use without all of its arguments.
    """
    macros, source = _definitions(source)
    if not macros:
        return source
    use = re.compile(r"\\(" + "|".join(map(re.escape, macros)) + r")(?![A-Za-z])")
    limit = 4 * len(source) + 100_000  # nested definitions could grow without bound
    for _ in range(_EXPANSIONS):
        grown = _expanded_once(source, macros, use, limit)
        if grown == source or len(grown) > limit:
            break
        source = grown
    return source


def group(source: str, start: int) -> tuple[str, int]:
    """Return the content of the group in braces at ``start`` and its end; nothing where it does not end."""
    depth = 0
    for brace in _BRACE.finditer(source, start, start + _LONGEST_GROUP):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return source[start + 1 : brace.start()], brace.end()
    return "", start


def _definitions(source: str) -> tuple[dict[str, _Macro], str]:
    """Find the macros that a document defines, and take all definitions out."""
    macros: dict[str, _Macro] = {}
    pieces, at = [], 0
    for match in _DEFINITION.finditer(source):
        if match.start() < at:
            continue
        meaning, end = group(source, match.end())
        paired = match["by"] == "DeclarePairedDelimiter"
        if paired and source[end : end + 1] == "{":
            right, end = group(source, end)
            meaning = f"{meaning} #1 {right}"
        if end > match.end():
            macros[match["name"]] = _macro(match, meaning, paired)
        pieces.append(source[at : match.start()])
        at = max(end, match.end())
    return macros, "".join([*pieces, source[at:]])


def _macro(match: re.Match[str], meaning: str, paired: bool) -> _Macro:
    if match["by"] == "DeclareMathOperator":
        return _Macro(rf"\operatorname{{{meaning}}}", 0, None, False)
    if paired:
        return _Macro(meaning, 1, None, True)
    arguments = int(match["count"]) if match["count"] else (match["hashes"] or "").count("#")
    return _Macro(meaning, arguments, match["default"], False)


def _expanded_once(source: str, macros: Mapping[str, _Macro], use: re.Pattern[str], limit: int) -> str:
    """Write each use out once; what is in an argument waits for the next round."""
    pieces, at, grown = [], 0, 0
    for match in use.finditer(source):
        if match.start() < at:
            continue
        macro = macros[match[1]]
        given = _arguments(source, match.end(), macro)
        if given is None:
            continue
        values, end = given
        written = f"{{{_filled(macro.meaning, values)}}}"
        pieces += [source[at : match.start()], written]
        grown += len(written)
        at = end
        if grown > limit:
            break
    return "".join([*pieces, source[at:]])


def _filled(meaning: str, values: list[str]) -> str:
    return _PLACE.sub(lambda place: values[int(place[1]) - 1] if 0 < int(place[1]) <= len(values) else "", meaning)


def _arguments(source: str, at: int, macro: _Macro) -> tuple[list[str], int] | None:
    """Read the arguments of a use and where they end; nothing where some are missing."""
    if macro.starred and source[at : at + 1] == "*":
        at += 1
    values: list[str] = []
    if macro.default is not None:
        optional = _OPTIONAL.match(source, at)
        values.append(optional[1] if optional else macro.default)
        at = optional.end() if optional else at
    while len(values) < macro.arguments:
        start = _after_blanks(source, at)
        if source[start : start + 1] == "{":
            value, end = group(source, start)
            if end == start:
                return None
        elif (token := _TOKEN.match(source, start)) and token[1] not in ("$", "&", r"\\", r"\)", r"\]"):
            value, end = token[1], token.end()
        else:
            return None
        values.append(value)
        at = end
    return values, at


def _after_blanks(source: str, at: int) -> int:
    """Return the place after blanks and at most one line end: an empty line ends a paragraph."""
    found = _BLANKS.match(source, at)
    return found.end() if found else at
