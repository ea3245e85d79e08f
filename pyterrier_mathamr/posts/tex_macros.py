r"""Macros and environments of TeX: what a document, its folder and the packages that it uses define.

::

    \newcommand{\norm}[2][p]{\|#2\|_{#1}}        Parameter o with default p, Parameter m; body  \|  2  \|_{  1  }
    \def\pair(#1,#2){…}                         text "(", an argument up to ",", an argument up to ")"
    \NewDocumentCommand{\E}{s O{} e{^_} m}{…}   the letters of xparse
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import math_core

from .package_macros import PACKAGES, SYMBOLS
from .tex_input import AT, Definition, closers

MISSING, TRUE, FALSE = "\ue009", "\ue00a", "\ue00b"
"""Values of optional arguments and stars."""

_EMPTY_SCRIPT = re.compile(r"[\^_]\{\}")
_ENDS_WITH_NAME = re.compile(r"\\[A-Za-z@]+\Z")
_PLACE = re.compile(r"##|#([1-9])")
_SPEC = re.compile(
    r"[\s+!]*(?:>\s*\{(?:[^{}]|\{[^{}]*\})*\}[\s+!]*)*(?:(?P<plain>[mosgvbl])|O\s*(?P<O>\{)|G\s*(?P<G>\{)"
    r"|t\s*\{?(?P<t>\\?[^\s{}])\}?"
    r"|(?P<rd>[rd])\s*(?P<one>\\?\S)\s*(?P<two>\\?\S)|(?P<RD>[RD])\s*(?P<One>\\?\S)\s*(?P<Two>\\?\S)\s*(?P<default>\{)"
    r"|e\s*\{(?P<e>[^{}]*)\}|E\s*\{(?P<E>[^{}]*)\}\s*(?P<defaults>\{)|e\s*(?P<one_e>\S))"
)
_SHORT = (
    "R N Z Q C H O P E Reals reals Complex cnums naturals natnums real Set set argmin argmax plim bold image lang rang "
    "sub exist empty infin isin and mathchoice"
)
_SHORTCUTS = frozenset(_SHORT.split())
"""Commands that only the reader of formulas knows: where a document uses them, other files or a package define them."""


class Parameter(NamedTuple):
    r"""A parameter of a macro.

    Attributes:
        kind: as in xparse: ``m``, ``o``, ``s``, ``t``, ``r``, ``d``, ``e``, ``g``, ``v``; ``u`` for an argument of
            ``\def`` that ends at `first`, and ``=`` for text that must be there.
        first: the opening character, or such text.
        last: the closing character.
        default: the value of a missing one.
    """

    kind: str
    first: str = ""
    last: str = ""
    default: str = MISSING


class Macro(NamedTuple):
    """A macro: its parameters, and LaTeX with the numbers of arguments in their places."""

    parameters: tuple[Parameter, ...]
    body: tuple[str | int, ...]

    def filled(self, values: Sequence[str]) -> str:
        """Put arguments in their places; a script that stays empty is left out."""
        pieces = [
            piece if isinstance(piece, str) else values[piece - 1] if piece <= len(values) else ""
            for piece in self.body
        ]
        pieces = [piece for piece in pieces if piece]
        for i, (piece, following) in enumerate(pairwise(pieces)):
            if following[0].isalpha() and _ENDS_WITH_NAME.search(piece):
                pieces[i] += " "  # a name ends where the text of an argument begins or ends
        text = "".join(pieces)
        return _EMPTY_SCRIPT.sub("", text) if len(self.body) > 1 and "{}" in text else text

    @property
    def plain(self) -> str:
        """The text of a macro without parameters; empty for another one."""
        return self.body[0] if len(self.body) == 1 and isinstance(self.body[0], str) and not self.parameters else ""


class Environment(NamedTuple):
    """An environment that a document defines."""

    begin: Macro
    end: Macro


class Definitions(NamedTuple):
    """What a text defines."""

    macros: dict[str, Macro]
    environments: dict[str, Environment]
    found: list[Definition]


def body_of(text: str) -> tuple[str | int, ...]:
    """Divide the text of a macro at the places of its arguments."""
    pieces: list[str | int] = []
    at, before = 0, ""
    for place in _PLACE.finditer(text):
        before += text[at : place.start()]
        at = place.end()
        if place[1]:
            pieces += [before, int(place[1])]
            before = ""
        else:
            before += "#"
    return (*pieces, before + text[at:])


def parameters_of(spec: str) -> tuple[Parameter, ...] | None:
    r"""Read the argument specification of ``\NewDocumentCommand``; ``None`` for one with other letters."""
    parameters: list[Parameter] = []
    ends = closers(spec)
    at = 0
    while match := _SPEC.match(spec, at):
        at = match.end()

        def default(name: str) -> str:
            nonlocal at
            start = match.start(name)
            end = ends.get(start, len(spec))
            at = end + 1
            return spec[start + 1 : end]

        if match["plain"] or match["O"] or match["G"]:
            kind = match["plain"] or ("o" if match["O"] else "g")
            first, last = ("[", "]") if kind == "o" else ("*", "") if kind == "s" else ("", "")
            given = FALSE if kind == "s" else default("O") if match["O"] else default("G") if match["G"] else MISSING
            parameters.append(Parameter(kind, first, last, given))
        elif match["t"]:
            parameters.append(Parameter("s", match["t"], "", FALSE))
        elif match["rd"]:
            parameters.append(Parameter(match["rd"], match["one"], match["two"]))
        elif match["RD"]:
            parameters.append(Parameter(match["RD"].lower(), match["One"], match["Two"], default("default")))
        else:
            signs = re.findall(r"\\[A-Za-z]+|\S", match["e"] or match["E"] or match["one_e"])
            given = default("defaults") if match["E"] is not None else ""
            values = [value[1] or value[2] for value in re.finditer(r"\{([^{}]*)\}|(\S)", given)]
            values += [MISSING] * (len(signs) - len(values))
            parameters.append(Parameter("e", " ".join(signs), "\n".join(values)))
    return None if spec[at:].strip() else tuple(parameters)


@lru_cache(maxsize=4096)
def is_native(name: str) -> bool:
    """Return whether LaTeX knows a command without any definition, in text or in formulas."""
    if name in _text_commands() or name in _SHORTCUTS:
        return name not in _SHORTCUTS
    try:
        math_core.LatexToMathML().convert_with_local_state(f"\\{name} {{a}}{{b}}{{c}}", displaystyle=False)
    except math_core.LatexError as error:
        return "Unknown command" not in str(error)
    return True


@lru_cache(maxsize=1)
def _text_commands() -> frozenset[str]:
    return frozenset(macro.macroname for table in text_tables() for macro in table.iter_macro_specs())


def text_tables() -> tuple[Any, Any]:
    """Return pylatexenc's tables of the commands of text."""
    from pylatexenc import latex2text, latexwalker

    return latex2text.get_default_latex_context_db(), latexwalker.get_default_latex_context_db()


@lru_cache(maxsize=1)
def package_macros() -> Mapping[str, Macro]:
    """Return the macros of common packages."""
    symbols = SYMBOLS.split()
    lines = [f"{names} |{body}" for names, body in zip(symbols[::2], symbols[1::2], strict=True)]
    macros: dict[str, Macro] = {}
    for line in [*PACKAGES.replace("\n    ", "").strip().split("\n"), *lines]:
        names, _, rest = line.partition(" ")
        spec, _, body = rest.strip().partition("|")
        for name in names.split(","):
            macros[name.replace("@", AT)] = Macro(parameters_of(spec) or (), body_of(body.strip()))
    return macros
