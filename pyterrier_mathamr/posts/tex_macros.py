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

ITSELF = "\ue007"
"""Before the name of a command that is not expanded: what ``\\let`` keeps of a command without a definition."""
AT = "\ue008"
"""The letter ``@`` of a command that a package defines."""
MISSING, TRUE, FALSE = "\ue009", "\ue00a", "\ue00b"
"""Values of optional arguments and stars; nothing is printed of them."""
DEFINED = "\ue006"
"""In the place of a definition that was taken out."""
NAME = re.compile(rf"\\([A-Za-z{AT}{ITSELF}]+)")
NAME_AT = re.compile(NAME.pattern.replace("A-Za-z", "A-Za-z@"))
"""The same where ``@`` is a letter."""
BRACE = re.compile(r"\\[^a-zA-Z]|[{}]")

_BRACE = re.compile(r"\\[^a-zA-Z]|[{}]|%[^\n]*")

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


class Definition(NamedTuple):
    """A definition or setting: where it is, its command and its arguments; a missing one in brackets is empty."""

    start: int
    end: int
    by: str
    starred: bool
    arguments: list[str]

    @property
    def theorem(self) -> str:
        """The environment that a setting declares as a kind of statement; empty for another setting."""
        if not self.by.endswith(("theorem", "theoremenv")) or not self.arguments:
            return ""
        first = self.arguments[self.by in ("declaretheorem", "newtcbtheorem", "newmdtheoremenv")]
        return first.split(",")[0].strip()


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


def closers(source: str) -> dict[int, int]:
    """Find the brace that closes each brace, in one pass."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for brace in _BRACE.finditer(source):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:
            ends[opened.pop()] = brace.start()
    return ends


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
    from pylatexenc import latex2text, latexwalker

    return latex2text.get_default_latex_context_db(), latexwalker.get_default_latex_context_db()


@lru_cache(maxsize=1)
def package_macros() -> Mapping[str, Macro]:
    symbols = _SYMBOLS.split()
    lines = [f"{names} |{body}" for names, body in zip(symbols[::2], symbols[1::2], strict=True)]
    macros: dict[str, Macro] = {}
    for line in [*_PACKAGES.replace("\n    ", "").strip().split("\n"), *lines]:
        names, _, rest = line.partition(" ")
        spec, _, body = rest.strip().partition("|")
        for name in names.split(","):
            macros[name.replace("@", AT)] = Macro(parameters_of(spec) or (), body_of(body.strip()))
    return macros


_PACKAGES = r"""
abs,absolutevalue s o m|\IfBooleanTF{#1}{|#3|}{\left|#3\right|}
norm s o m|\IfBooleanTF{#1}{\|#3\|}{\left\|#3\right\|}
eval,evaluated s d() o g|\left.\IfNoValueTF{#2}{\IfNoValueTF{#3}{#4}{#3}}{#2}\right|
order s m|\mathcal{O}\left(#2\right)
comm,commutator s m m|\left[#2,#3\right]
acomm,anticommutator,poissonbracket,pb s m m|\left\{#2,#3\right\}
qty,quantity s d() o g g|\IfNoValueTF{#5}{\IfNoValueTF{#2}{\IfNoValueTF{#3}{\left\{#4\right\}}{
    \left[#3\right]}}{\left(#2\right)}}{#4\,\unit{#5}}
pqty m|\left(#1\right)
bqty m|\left[#1\right]
vqty m|\left|#1\right|
Bqty m|\left\{#1\right\}
vb,vectorbold s m|\mathbf{#2}
va,vectorarrow s m|\vec{\mathbf{#2}}
vu,vectorunit s m|\hat{\mathbf{#2}}
dd,differential o g d()|\mathrm{d}\IfNoValueF{#1}{^{#1}}\IfNoValueF{#2}{#2}\IfNoValueF{#3}{\left(#3\right)}
dv,derivative,odv s o m g|\IfNoValueTF{#4}{\frac{d\IfNoValueF{#2}{^{#2}}}{d #3\IfNoValueF{#2}{^{#2}}}}{
    \frac{d\IfNoValueF{#2}{^{#2}} #3}{d #4\IfNoValueF{#2}{^{#2}}}}
pdv,partialderivative,pderivative s o m g g|\IfNoValueTF{#5}{\IfNoValueTF{#4}{\frac{\partial\IfNoValueF{#2}
    {^{#2}}}{\partial #3\IfNoValueF{#2}{^{#2}}}}{\frac{\partial\IfNoValueF{#2}{^{#2}} #3}{
    \partial #4\IfNoValueF{#2}{^{#2}}}}}{\frac{\partial^2 #3}{\partial #4\partial #5}}
fdv,functionalderivative s o m g|\IfNoValueTF{#4}{\frac{\delta\IfNoValueF{#2}{^{#2}}}{
    \delta #3\IfNoValueF{#2}{^{#2}}}}{\frac{\delta\IfNoValueF{#2}{^{#2}} #3}{\delta #4\IfNoValueF{#2}{^{#2}}}}
ip,innerproduct s m m|\left\langle #2\middle|#3\right\rangle
op,outerproduct,ketbra,dyad s m g|\left|#2\right\rangle\left\langle\IfNoValueTF{#3}{#2}{#3}\right|
ev,expval,expectationvalue s m g|\IfNoValueTF{#3}{\left\langle #2\right\rangle}{
    \left\langle #3\middle|#2\middle|#3\right\rangle}
mel,matrixel,matrixelement s m m m|\left\langle #2\middle|#3\middle|#4\right\rangle
mqty,matrixquantity,smqty m|\begin{matrix}#1\end{matrix}
pmqty m|\begin{pmatrix}#1\end{pmatrix}
bmqty m|\begin{bmatrix}#1\end{bmatrix}
vmqty,mdet m|\begin{vmatrix}#1\end{vmatrix}
imat,identitymatrix m|I_{#1}
qq m|\quad\text{#1}\quad
ifstrempty,ifblank m m m|\IfBlankTF{#1}{#2}{#3}
csuse m|\csname #1\endcsname
mathclap,mathllap,mathrlap,smashoperator,clap,llap,rlap,mathmakebox O{} m|#2
shortintertext,intertext m|\\\text{#1}\\
cancelto m m|\cancel{#2}
SI,SIrange o m o m|\num{#2}\,\unit{#4}
num o m|#2
ang o m|#2^{\circ}
si,unit o m|\mathrm{#2}
square m|#1^2
cubic m|#1^3
uses,proves,discussion,alsoIn m|
crefrange,Crefrange m m|
namecref,nameCref,labelcref,cpageref,vref,Vref,fullref m|
texorpdfstring m m|#1
alert,structure,only,uncover,visible,invisible d<> m|#2
onslide,pause d<> o|
alt d<> m m|#2 #3
frametitle,framesubtitle d<> o m|\par #3\par{}
nonscript,allowbreak,delimsize,leanok,notready,mathlibok,titlepage,framebreak,phantomsection,qedhere |
mathcolor m m|#2
mathsfit m|\mathsf{#1}
mathchoice m m m m|#1
vdotswithin m|\vdots
marginpar o m|
@firstofone m|#1
@firstoftwo m m|#1
@secondoftwo m m|#2
@gobble m|
highlight,hl m|#1
todo,missingfigure O{} m|#2
"""
"""Commands of packages that the reader of formulas does not know; a document that defines one itself uses its own.

Each line is the names, the arguments as in ``\\NewDocumentCommand`` and the meaning; an indented one continues it.
Arguments of a blueprint are data for Lean, and not text.
"""
_SYMBOLS = r"""
vdot,dotproduct \cdot crossproduct,cp \times grad,gradient \nabla divergence \nabla\cdot curl \nabla\times laplacian
\nabla^2 var,variation \delta tr,trace \operatorname{tr} Tr,Trace \operatorname{Tr} rank \operatorname{rank} erf
\operatorname{erf} Res \operatorname{Res} pv,principalvalue \mathcal{P} qcomma ,\quad qif \quad\text{if}\quad qthen
\quad\text{then}\quad qand \quad\text{and}\quad qor \quad\text{or}\quad qfor \quad\text{for}\quad qwhere
\quad\text{where}\quad given \mid meter,metre m second s kilogram kg gram g ampere A kelvin K mole mol candela cd hertz
Hz newton N pascal Pa joule J watt W coulomb C volt V ohm \Omega tesla T litre,liter l electronvolt eV
celsius,degreeCelsius {}^{\circ}C percent \% kilo k mega M giga G centi c milli m micro \mu nano n per / squared ^2
cubed ^3 coloneq \coloneqq
"""
"""Names and meanings of commands without arguments, in turn."""
