r"""The macros that a document defines, written out where they are used, and its definitions taken out.

::

    \newcommand{\R}{\mathbb{R}}           x \in \R              x \in {\mathbb{R}}
    \newcommand{\norm}[1]{\|#1\|}         \norm{x + y}          {\|x + y\|}
    \newcommand{\pd}[2][f]{\frac{…}}      \pd{x}  \pd[g]{x}     an argument in brackets with its default
    \def\inner#1#2{\langle #1, #2 \rangle}
    \DeclareMathOperator{\rank}{rank}     \rank A               {\operatorname{rank}} A
    \DeclarePairedDelimiter{\abs}{|}{|}   \abs{x}  \abs*{x}     {|x|}
    \let\phi\varphi                       \phi                  \varphi
    \usepackage{…}  \newtheorem{…}{…}     taken out
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from pyterrier_mathamr._common.running.worker import OverLimitError

from .math_spans import replaced

DEFINED = "\ue006"
"""Private-use character in the place of a definition that was taken out."""

LONGEST_EXPANSION = 1_000_000
"""Characters that the macros of a file may write, and ten times the length of the file."""

_COMMANDS = frozenset(["newcommand", "renewcommand", "providecommand", "DeclareRobustCommand"])
_DOCUMENT_COMMANDS = frozenset(
    ["NewDocumentCommand", "RenewDocumentCommand", "ProvideDocumentCommand", "DeclareDocumentCommand"]
)
_DEFS = frozenset(["def", "gdef", "edef", "xdef"])
_SETTINGS = {  # a brace or bracket for each argument; arguments in brackets are optional
    "documentclass": "[{[", "usepackage": "[{[", "RequirePackage": "[{[", "PassOptionsToPackage": "{{",
    "newtheorem": "{[{[", "theoremstyle": "{", "declaretheorem": "[{", "newtheoremstyle": "{{{{{{{{{",
    "newtcbtheorem": "[{{{{", "newmdtheoremenv": "[{[{[", "spnewtheorem": "{[{[{{", "newframedtheorem": "{[{[",
    "newshadedtheorem": "{[{[", "newaliascnt": "{{", "aliascntresetthe": "{", "counterwithin": "{{",
    "counterwithout": "{{", "crefname": "{{{", "Crefname": "{{{",
    "newenvironment": "{[[{{", "renewenvironment": "{[[{{", "DeclareMathSymbol": "{{{{",
    "newcounter": "{[", "setcounter": "{{", "addtocounter": "{{", "setlength": "{{", "addtolength": "{{",
    "numberwithin": "[{{", "hypersetup": "{", "geometry": "{", "graphicspath": "{", "usetikzlibrary": "{",
    "definecolor": "[{{{", "colorlet": "{{", "bibliographystyle": "{", "pagestyle": "{", "thispagestyle": "{",
    "pagenumbering": "{", "hyphenation": "{", "captionsetup": "[{", "lstset": "{", "sisetup": "{",
}  # fmt: skip
_FORMS = {  # the same, after the name of a macro
    **_SETTINGS, **dict.fromkeys(_COMMANDS, "[[{"), **dict.fromkeys(_DOCUMENT_COMMANDS, "{{"),
    **dict.fromkeys(_DEFS, "{"), "DeclareMathOperator": "{", "DeclarePairedDelimiter": "{{",
}  # fmt: skip
_DEFINITION = re.compile(rf"\\({'|'.join(sorted([*_FORMS, 'let']))})(?![A-Za-z@])\*?")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_PARAMETERS = re.compile(r"[^\S\n]*((?:#[1-9][^\S\n]*)*)(?=\{)")
_DELIMITED = re.compile(r"[^{}\n]{0,200}(?=\{)")
_ALIAS = re.compile(r"\s*+=?[^\S\n]*+(\\[A-Za-z]+|\\.|[^\s{}])", re.DOTALL)
_PLACE = re.compile(r"#([1-9])")
_OPTIONAL = re.compile(r"\[([^\[\]]{0,1000})\]")
_ITSELF = "\ue007"
"""Private-use character within a command that is not written out: ``\\⟨⟩vec``."""
_TOKEN = re.compile(rf"\\{_ITSELF}?[A-Za-z]+|\\.|[^\s{{}}]", re.DOTALL)
_BLANKS = re.compile(r"[^\S\n]*+\n?[^\S\n]*+")
BRACE = re.compile(r"\\[^a-zA-Z]|[{}]")


class Macro(NamedTuple):
    r"""A macro.

    Attributes:
        meaning: LaTeX between the places of arguments, and the numbers of the arguments, in turn.
        arguments: their number.
        default: of the first argument, which is then optional and in brackets.
        starred: whether a star, which is ignored, may follow its name.
        grouped: whether its meaning is a group; a macro of ``\let`` means a command with arguments.
    """

    meaning: list[str]
    arguments: int = 0
    default: str | None = None
    starred: bool = False
    grouped: bool = True


class Definition(NamedTuple):
    """A definition or setting: where it is, its command and its arguments; a missing one in brackets is empty."""

    start: int
    end: int
    by: str
    starred: bool
    arguments: list[str]


class Macros:
    """The macros of a file, shared by all of its parts, with a shared limit of their output."""

    def __init__(self, found: Mapping[str, Macro], length: int) -> None:
        self._found = _without_cycles(found)
        self._limit = self._left = LONGEST_EXPANSION + 10 * length

    def __bool__(self) -> bool:
        return bool(self._found)

    def written_out(self, source: str) -> str:
        """Expand the macros, including macros within macros; a use without all of its arguments is kept."""
        if not self._found:
            return source
        out: list[str] = []
        waiting = [(source, 0, closers(source))]
        while waiting:
            text, at, ends = waiting.pop()
            for match in _COMMAND.finditer(text, at):
                macro = self._found.get(match[1])
                given = _values(text, match.end(), macro, ends) if macro else None
                if macro and given:
                    values, end = given
                    written = self._filled(macro, values)
                    out.append(text[at : match.start()])
                    waiting += [(text, end, ends), (written, 0, closers(written))]
                    break
            else:
                out.append(text[at:])
        return "".join(out).replace(_ITSELF, "")

    def _filled(self, macro: Macro, values: list[str]) -> str:
        pieces = list(macro.meaning)
        for i in range(1, len(pieces), 2):
            number = int(pieces[i])
            pieces[i] = values[number - 1] if number <= len(values) else ""
        self._left -= sum(map(len, pieces)) + 2
        if self._left < 0:
            raise OverLimitError(f"its macros write more than {self._limit:,} characters")
        written = "".join(pieces)
        return f"{{{written}}}" if macro.grouped else written


def without_definitions(source: str) -> str:
    """Put `DEFINED` in the place of each definition."""
    return replaced(source, ((of.start, of.end, DEFINED) for of in definitions(source)[1]))


def definitions(source: str) -> tuple[dict[str, Macro], list[Definition]]:
    """Find the macros that a document defines, and all of its definitions."""
    macros: dict[str, Macro] = {}
    found: list[Definition] = []
    ends: dict[int, int] | None = None
    for head in _DEFINITION.finditer(source):
        if not found or head.start() >= found[-1].end:
            ends = closers(source) if ends is None else ends
            defined = _definition(source, head, ends, macros)
            found += [defined] if defined else []
    return macros, found


def closers(source: str) -> dict[int, int]:
    """Find the brace that closes each brace, in one pass."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for brace in BRACE.finditer(source):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:
            ends[opened.pop()] = brace.start()
    return ends


class Arguments(NamedTuple):
    """Where arguments are, ``None`` for a missing one in brackets, and where they end."""

    spans: list[tuple[int, int] | None]
    end: int


def arguments(source: str, at: int, kinds: str, ends: Mapping[int, int]) -> Arguments | None:
    """Find arguments in braces or, where they may be missing, in brackets; ``None`` if a group is missing."""
    spans: list[tuple[int, int] | None] = []  # not sliced, as long ones would be copied in vain if others are missing
    for kind in kinds:
        start = after_blanks(source, at)
        if kind == "[":
            optional = _OPTIONAL.match(source, start)
            spans.append(optional.span(1) if optional else None)
            at = optional.end() if optional else at
        elif start in ends:
            spans.append((start + 1, ends[start]))
            at = ends[start] + 1
        else:
            return None
    return Arguments(spans, at)


def _definition(
    source: str, head: re.Match[str], ends: Mapping[int, int], macros: dict[str, Macro]
) -> Definition | None:
    """Read a definition, and add its macro if it is expanded."""
    by, at, name, parameters = head[1], head.end(), "", None
    if by not in _SETTINGS:
        named = _name(source, at, ends)
        if named is None:
            return None
        name, at = named
    if by == "let":
        alias = _ALIAS.match(source, at)
        if alias is None:
            return None
        macros[name] = _alias(alias[1], macros)
        return Definition(head.start(), alias.end(), by, False, [])
    if by in _DEFS:
        parameters = _PARAMETERS.match(source, at) or _DELIMITED.match(source, at)
        if parameters is None:
            return None
        at = parameters.end()
    found = arguments(source, at, _FORMS[by], ends)
    if found is None:
        return None
    given = [source[span[0] : span[1]] if span else "" for span in found.spans]
    macro = None
    if by == "DeclareMathOperator":
        macro = Macro([rf"\operatorname{{{given[0]}}}"])
    elif by == "DeclarePairedDelimiter":
        macro = Macro([given[0] + " ", "1", " " + given[1]], 1, starred=True)
    elif by in _COMMANDS and not (by == "providecommand" and name in macros):
        count = int(given[0]) if given[0] in set("0123456789") else 0
        macro = Macro(_PLACE.split(given[2]), count, given[1] if found.spans[1] else None)
    elif by in _DOCUMENT_COMMANDS and set(kinds := given[0].split()) <= {"m"}:
        macro = Macro(_PLACE.split(given[1]), len(kinds))
    elif parameters and parameters.re is _PARAMETERS:
        macro = Macro(_PLACE.split(given[0]), parameters[0].count("#"))
    if macro:
        macros[name] = macro
    return Definition(head.start(), found.end, by, head[0].endswith("*"), given)


def _name(source: str, at: int, ends: Mapping[int, int]) -> tuple[str, int] | None:
    r"""Read the command that is defined, ``\a`` or ``{\a}``, and where that ends."""
    start = after_blanks(source, at)
    braced = start in ends
    name = _COMMAND.match(source, after_blanks(source, start + 1) if braced else start)
    if name is None:
        return None
    return name[1], ends[start] + 1 if braced else name.end()


def _alias(token: str, macros: Mapping[str, Macro]) -> Macro:
    r"""Return the macro of ``\let``: the meaning of a command at this place, whatever it means later."""
    if token[1:] in macros:
        return macros[token[1:]]
    return Macro([token.replace("\\", "\\" + _ITSELF) if token[1:].isalpha() else token], grouped=False)


def _without_cycles(macros: Mapping[str, Macro]) -> dict[str, Macro]:
    """Keep macros that hold themselves, also by way of others, from being written out in one another."""
    users: dict[str, list[str]] = {}
    open_uses: dict[str, int] = {}
    for name, macro in macros.items():
        used = {use for piece in macro.meaning[::2] for use in _COMMAND.findall(piece)} & macros.keys()
        open_uses[name] = len(used)
        for use in used:
            users.setdefault(use, []).append(name)
    ready = [name for name, count in open_uses.items() if not count]
    for name in ready:
        for user in users.get(name, ()):
            open_uses[user] -= 1
            if not open_uses[user]:
                ready.append(user)
    cyclic = macros.keys() - set(ready)

    def hidden(match: re.Match[str]) -> str:
        return f"\\{_ITSELF}{match[1]}" if match[1] in cyclic else match[0]

    fixed = {}
    for name in cyclic:
        meaning = list(macros[name].meaning)
        meaning[::2] = [_COMMAND.sub(hidden, piece) for piece in meaning[::2]]
        fixed[name] = macros[name]._replace(meaning=meaning)
    return {**macros, **fixed}


def _values(source: str, at: int, macro: Macro, ends: Mapping[int, int]) -> tuple[list[str], int] | None:
    """Read the arguments of a use and where they end; nothing if some are missing."""
    if macro.starred and source[at : at + 1] == "*":
        at += 1
    spans: list[tuple[int, int]] = []  # sliced where all are there: a long argument would be copied in vain else
    optional = _OPTIONAL.match(source, after_blanks(source, at)) if macro.default is not None else None
    if optional:
        spans.append(optional.span(1))
        at = optional.end()
    missing = macro.default is not None and not optional
    while len(spans) + missing < macro.arguments:
        start = after_blanks(source, at)
        if start in ends:
            spans.append((start + 1, ends[start]))
            at = ends[start] + 1
        elif (token := _TOKEN.match(source, start)) and token[0] not in ("$", "&", r"\\", r"\)", r"\]"):
            spans.append(token.span())
            at = token.end()
        else:
            return None
    values = [source[start:end] for start, end in spans]
    return ([macro.default or "", *values] if missing else values), at


def after_blanks(source: str, at: int) -> int:
    """Return the place after blanks and at most one line end: an empty line ends a paragraph."""
    found = _BLANKS.match(source, at)
    return found.end() if found else at
