r"""The commands of TeX and LaTeX that take effect before anything is printed.

Definitions (``\newcommand``, ``\def``, ``\NewDocumentCommand``, …), conditionals and names that are computed. Each is
a function that registers itself in `HANDLERS` and reads its arguments from the stack of inputs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from .statements import kind_of
from .tex_machine import HANDLERS, STOP, STOP_AT, Cursor, TexMachine, handles
from .tex_macros import (
    AT,
    DEFINED,
    FALSE,
    ITSELF,
    MISSING,
    NAME,
    NAME_AT,
    TRUE,
    Definition,
    Environment,
    Macro,
    Parameter,
    body_of,
    is_native,
    parameters_of,
)

_DEEPEST_NAME = 20  # names of commands that are computed within names
_NUMBER_OR_COMMAND = r"\s*(?:-?\d+|\\value\s*\{[^{}]*\}|\\[A-Za-z@]+(?:\s*\{[^{}]*\})?)\s*"
_CONDITIONS = {
    "ifnum": re.compile(rf"({_NUMBER_OR_COMMAND})([<=>])({_NUMBER_OR_COMMAND})"),
    "ifdim": re.compile(r"[^\\{}<=>]{0,40}(?:\\[A-Za-z@]+)?\s*[<=>]\s*(?:-?[\d.]+\s*[a-z]{2}|\\[A-Za-z@]+)"),
    "ifodd": re.compile(_NUMBER_OR_COMMAND),
    "ifcase": re.compile(_NUMBER_OR_COMMAND),
}
_CONDITIONALS = (
    "if ifcat ifx ifnum ifdim ifodd ifcase ifmmode ifvmode ifhmode ifinner iftrue iffalse ifvoid ifhbox ifvbox ifeof "
    "ifdefined ifcsname ifpdf ifxetex ifluatex ifPDFTeX ifXeTeX ifLuaTeX"
)
_IFS = frozenset(_CONDITIONALS.split())
_BRANCH = re.compile(r"\\(if[A-Za-z@]*|else|or|fi)(?![A-Za-z@])|\\.|%[^\n]*", re.DOTALL)

SETTINGS = {  # a brace or bracket for each argument; arguments in brackets are optional
    "documentclass": "[{[", "usepackage": "[{[", "RequirePackage": "[{[", "PassOptionsToPackage": "{{",
    "newtheorem": "{[{[", "theoremstyle": "{", "declaretheorem": "[{", "newtheoremstyle": "{{{{{{{{{",
    "newtcbtheorem": "[{{{{", "newmdtheoremenv": "[{[{[", "spnewtheorem": "{[{[{{", "newframedtheorem": "{[{[",
    "newshadedtheorem": "{[{[", "newaliascnt": "{{", "aliascntresetthe": "{", "counterwithin": "{{",
    "counterwithout": "{{", "crefname": "{{{", "Crefname": "{{{", "DeclareMathSymbol": "{{{{",
    "newcounter": "{[", "setcounter": "{{", "addtocounter": "{{", "setlength": "{{", "addtolength": "{{",
    "numberwithin": "[{{", "hypersetup": "{", "geometry": "{", "graphicspath": "{", "usetikzlibrary": "{",
    "definecolor": "[{{{", "colorlet": "{{", "bibliographystyle": "{", "pagestyle": "{", "thispagestyle": "{",
    "pagenumbering": "{", "hyphenation": "{", "captionsetup": "[{", "lstset": "{", "sisetup": "{",
    "tikzset": "{", "pgfplotsset": "{", "tikzcdset": "{", "newtcolorbox": "[{[[{", "tcbset": "{", "newlength": "{",
    "ProvidesPackage": "{[", "NeedsTeXFormat": "{[", "theorembodyfont": "{", "theoremheaderfont": "{",
    "usetheme": "[{", "usecolortheme": "[{", "setbeamertemplate": "{[{", "DeclareFontFamily": "{{{",
    "DeclareFontShape": "{{{{{{", "DeclareSymbolFont": "{{{{{", "DeclareMathAlphabet": "{{{{{",
}  # fmt: skip
_LINE_END = re.compile(r"\\.|(?P<comment>%[^\n]*+(?:\n[^\S\n]*+)?)|(?<!\s)\s++", re.DOTALL)
_IN_BRACKETS = Parameter("o", "[", "]", "")

DEFINING: set[str] = set()
"""The commands that define or set something."""
_Function: TypeAlias = "Callable[..., bool | None]"


def _takes(names: Iterable[str], spec: str, *, defines: bool = False) -> Callable[[_Function], _Function]:
    """Register a function of the arguments of some commands, given as in xparse, and ``c`` for a command's name.

    If the command ``defines`` something, the function returns ``False`` to refuse the arguments.
    """
    parameters = parameters_of(spec.replace("c", "m")) or ()

    def register(function: _Function) -> _Function:
        @handles(*names)
        def handler(tex: TexMachine, by: str) -> bool:
            cursor = Cursor(tex.frames)
            values = tex.values(parameters, cursor)
            if values is None:
                return False
            if defines:
                values = [_name(value) if kind == "c" else value for kind, value in zip(spec, values, strict=True)]
                if "c" in spec and not values[spec.index("c")]:
                    return False
                return function(tex, by, *values) is not False and _defined(tex, by, cursor)
            cursor.take()
            function(tex, by, *values)
            return True

        if defines:
            DEFINING.update(names)
        return function

    return register


def _defined(
    tex: TexMachine, by: str, cursor: Cursor | None, starred: bool = False, arguments: Iterable[str] = ()
) -> bool:
    """Record a definition, and write a mark in its place."""
    if cursor is not None:
        cursor.take()
    out = tex.outs[-1]
    out.definitions.append(Definition(out.length, out.length + 1, by, starred, list(arguments)))
    out.write(DEFINED, tex.frames[-1].place(tex.frames[-1].at))
    tex.word = tex.is_global = False
    return True


def _body(tex: TexMachine, text: str) -> tuple[str | int, ...]:
    """Divide the text of a macro, in which the end of a line is a blank, unless it ends a paragraph or a comment."""
    if "\n" in text or "%" in text:
        text = _LINE_END.sub(
            lambda part: "" if part["comment"] else " " if part[0].count("\n") == 1 and part[0].isspace() else part[0],
            text,
        )
    if tex.frames[-1].letters is STOP_AT and "@" in text:
        text = NAME_AT.sub(lambda name: name[0].replace("@", AT), text)
    return body_of(text)


def _name(given: str | None) -> str:
    r"""Return the name of a command, ``\a``; empty for anything else."""
    name = NAME_AT.fullmatch((given or "").strip())
    return name[1].replace("@", AT) if name else ""


def _counted(count: str, default: str) -> tuple[Parameter, ...]:
    r"""Make the parameters of ``\newcommand``."""
    number = int(count) if count.strip().isdigit() else 0
    if default != MISSING and number:
        return (Parameter("o", "[", "]", default), *[Parameter("m")] * (number - 1))
    return (Parameter("m"),) * number


def _is_kept(tex: TexMachine, by: str, name: str) -> bool:
    """Return whether a command stays as it is where it exists."""
    return by.lower().startswith("provide") and (name in tex.macros or is_native(name))


@handles(*SETTINGS)
def _setting(tex: TexMachine, by: str) -> bool:
    cursor = Cursor(tex.frames)
    starred = cursor.next("*")
    values = tex.values((_IN_BRACKETS if kind == "[" else Parameter("m") for kind in SETTINGS[by]), cursor)
    if values is None:
        return False
    _defined(tex, by, cursor, starred, values)
    tex.theorems.add(tex.outs[-1].definitions[-1].theorem)
    if by in ("usepackage", "RequirePackage", "documentclass") and tex.include:
        ending = ".cls" if by == "documentclass" else ".sty"
        for name in reversed(values[1].split(",")):
            tex.include_file(name.strip() + ending, style=True)
    return True


DEFINING.update(SETTINGS)
_NEW_COMMANDS = "newcommand renewcommand providecommand DeclareRobustCommand newrobustcmd DeclareDocumentMacro"


@_takes(_NEW_COMMANDS.split(), "scoom", defines=True)
def _newcommand(tex: TexMachine, by: str, star: str, name: str, count: str, default: str, body: str) -> None:
    if not _is_kept(tex, by, name):
        count = count if count.strip() in set("123456789") else ""
        tex.define(name, Macro(_counted(count, default), _body(tex, body)))


_HOW = ("New", "Renew", "Provide", "Declare")


@_takes([f"{how}{what}DocumentCommand" for how in _HOW for what in ("", "Expandable")], "cmm", defines=True)
def _document_command(tex: TexMachine, by: str, name: str, spec: str, body: str) -> None:
    parameters = parameters_of(spec)
    if parameters is None:
        _report(tex, rf"the arguments {spec!r} of \{name} are not understood")
    elif not _is_kept(tex, by, name):
        tex.define(name, Macro(parameters, _body(tex, body)))


@handles("def", "gdef", "edef", "xdef")
def _def(tex: TexMachine, by: str) -> bool:
    cursor = Cursor(tex.frames)
    cursor.blanks()
    name = _name(cursor.token())
    given = cursor.parameters() if name else None
    body = cursor.group() if given is not None else None
    if given is None or body is None:
        return False
    first, *delimiters = re.split(r"#[1-9]", given)
    parameters = [Parameter("=", first)] if first.strip() else []
    for delimiter in (text.removesuffix("#") for text in delimiters):
        parameters.append(Parameter("u", delimiter) if delimiter.strip() else Parameter("m"))
    tex.is_global = tex.is_global or by[0] in "gx"
    if by in ("edef", "xdef") and tex.within < _DEEPEST_NAME:
        cursor.take()
        body = tex.expand_now(body)
    tex.define(name, Macro(tuple(parameters), _body(tex, body)))
    return _defined(tex, by, cursor if by not in ("edef", "xdef") else None)


@handles("let")
def _let(tex: TexMachine, by: str) -> bool:
    cursor = Cursor(tex.frames)
    name = _name(cursor.argument())
    cursor.blanks()
    if cursor.next("="):
        cursor.next(" ")
    target = cursor.token()
    if not name or target is None:
        return False
    other = _name(target)
    if name.startswith("if") and other in ("iftrue", "iffalse"):
        tex.flags[name] = other == "iftrue"
    elif other in ("undefined", f"{AT}undefined"):
        tex.macros.pop(name, None)
    elif other in ("relax", "empty", f"{AT}empty"):
        tex.define(name, Macro((), ("",)))
    else:
        unexpanded = Macro((), (f"\\{ITSELF}{other}" if other and other not in HANDLERS else target,))
        tex.define(name, tex.meaning(other) or unexpanded)
    return _defined(tex, by, cursor)


DEFINING.update(["def", "gdef", "edef", "xdef", "let"])


@_takes(["DeclareMathOperator"], "scm", defines=True)
def _operator(tex: TexMachine, by: str, star: str, name: str, text: str) -> None:
    tex.define(name, Macro((), (rf"\operatorname{'*' if star == TRUE else ''}{{{text}}}",)))


@_takes(["DeclarePairedDelimiter"], "cmm", defines=True)
@_takes(["DeclarePairedDelimiterX"], "commm", defines=True)
@_takes(["DeclarePairedDelimiterXPP"], "commmmm", defines=True)
def _paired(tex: TexMachine, by: str, name: str, *values: str) -> bool:
    count, *parts = values if "X" in by else ("1", *values, "#1")
    count = "0" if count in ("", MISSING) else count
    if not count.strip().isdigit():
        return False
    before, left, right, after, body = parts if by.endswith("XPP") else ["", *parts[:2], "", parts[2]]
    inside = re.sub(r"#([1-9])", lambda place: f"#{int(place[1]) + 2}", body)

    def written(opening: str, closing: str, middle: str) -> str:
        text = re.sub(r"\\delimsize(?![A-Za-z])\s*", lambda _: middle, inside)
        return f"{before}{opening}{left} {text} {closing}{right}{after}"

    plain, sized = written("", "", ""), written("#2", "#2", "#2")
    starred = written(r"\left", r"\right", r"\middle")
    choice = rf"\IfBooleanTF{{#1}}{{{starred}}}{{\IfNoValueTF{{#2}}{{{plain}}}{{{sized}}}}}"
    stars = (Parameter("s", "*", "", FALSE), Parameter("o", "[", "]"))
    tex.define(name, Macro(stars + (Parameter("m"),) * int(count), _body(tex, choice)))
    return True


@_takes(["newif"], "c", defines=True)
def _newif(tex: TexMachine, by: str, name: str) -> bool:
    if not name.startswith("if"):
        return False
    tex.flags[name] = False
    tex.setters |= {f"{name[2:]}true": (name, True), f"{name[2:]}false": (name, False)}
    return True


@_takes(["newenvironment", "renewenvironment"], "smoomm", defines=True)
def _newenvironment(tex: TexMachine, by: str, star: str, name: str, count: str, default: str, *bodies: str) -> bool:
    return _environment(tex, name, _counted(count, default), (), *bodies)


@_takes([f"{how}DocumentEnvironment" for how in _HOW], "smmmm", defines=True)
def _document_environment(tex: TexMachine, by: str, star: str, name: str, spec: str, *bodies: str) -> bool:
    parameters = parameters_of(spec)
    return _environment(tex, name, parameters, parameters or (), *bodies)


def _environment(
    tex: TexMachine,
    name: str,
    parameters: tuple[Parameter, ...] | None,
    at_end: tuple[Parameter, ...],
    begin: str,
    end: str,
) -> bool:
    """Define an environment, unless it is a statement or keeps source; its parameters may not be understood."""
    inner = [other.strip() for other in re.findall(r"\\begin\s*\{([^{}]*)\}", begin)]
    is_statement = kind_of(name) and not any(kind_of(other) or other in tex.theorems for other in inner)
    if name and not tex.sources.isdisjoint(inner):
        tex.sources.add(name)
    elif name and parameters is not None and not is_statement and name not in ("document", "document*"):
        tex.environments[name] = Environment(Macro(parameters, _body(tex, begin)), Macro(at_end, _body(tex, end)))
    return bool(name)


@handles("long", "global", "protected", "outer")
def _prefix(tex: TexMachine, name: str) -> None:
    tex.is_global = tex.is_global or name == "global"
    tex.frames[-1].skip_blanks()


def _report(tex: TexMachine, what: str) -> None:
    tex.outs[-1].problems.setdefault(what.replace(AT, "@"), tex.place)


@handles(*_IFS)
def _if(tex: TexMachine, name: str) -> None:
    decided = _decided(tex, name)
    if decided is None:
        _report(tex, rf"\{name} cannot be decided here, and each of its branches is read")
    tex.branches.append(decided is not None)
    if decided is False and not _skip_branch(tex, to_else=True):
        tex.branches.pop()
        _report(tex, rf"\{name} is never closed")


def _decided(tex: TexMachine, name: str) -> bool | None:
    """Decide a conditional, and go over what it compares; ``None`` if it cannot be decided."""
    frame = tex.frames[-1]
    frame.skip_blanks()
    if name in ("iftrue", "iffalse"):
        return name == "iftrue"
    if name in tex.flags:
        return tex.flags[name]
    if name == "ifmmode":
        return tex.math
    if condition := _CONDITIONS.get(name):
        compared = condition.match(frame.text, frame.at)
        if compared is None:
            return None
        frame.at = compared.end()
        try:
            if name == "ifnum":
                left, right = int(compared[1]), int(compared[3])
                return {"<": left < right, "=": left == right, ">": left > right}[compared[2]]
            return int(compared[0]) % 2 == 1 if name == "ifodd" else None
        except ValueError:
            return None
    cursor = Cursor(tex.frames)
    if name == "ifdefined":
        command = _name(cursor.token())
        cursor.take()
        return _is_defined(tex, command) if command else None
    if name == "ifcsname":
        text = cursor.until(r"\endcsname")
        cursor.take()
        return None if text is None else _is_defined(tex, text)
    if name not in ("if", "ifx", "ifcat"):
        return None
    one, two = cursor.token(of_any_kind=True), cursor.token(of_any_kind=True)
    if one is None or two is None:
        return None
    cursor.take()
    meanings: list[object] = []  # of the tokens, as far as they are known
    for token in (one, two):
        command = _name(token)
        if command in ("undefined", f"{AT}undefined"):
            meanings.append("undefined")
        elif command in ("empty", f"{AT}empty"):
            meanings.append(Macro((), ("",)))
        else:
            meanings.append(tex.macros.get(command, token))
    if meanings[0] == meanings[1]:
        return True
    commands = [token for token in meanings if isinstance(token, str) and token[:1] == "\\"]
    has_macro = not all(isinstance(meaning, str) for meaning in meanings)
    if not all(is_native(token[1:]) for token in commands) or (name != "ifx" and (has_macro or commands)):
        return None
    return None if name == "ifcat" else False


def _is_defined(tex: TexMachine, name: str) -> bool | None:
    """Return whether a command is defined; not known of one that a package may define."""
    return True if name in tex.macros or name in tex.flags or is_native(name) else None


def _skip_branch(tex: TexMachine, to_else: bool) -> bool:
    r"""Go to the end of a branch that is not taken: after its ``\else`` or ``\fi``; ``False`` if it has none."""
    depth = 0
    for i in reversed(range(len(tex.frames))):
        frame = tex.frames[i]
        if frame.file is not None and "fi" in tex.unended:
            return False
        for command in _BRANCH.finditer(frame.text, frame.at):
            name = (command[1] or "").replace("@", AT)
            if name == "fi" and depth:
                depth -= 1
            elif name == "fi" or (name == "else" and to_else and not depth):
                for inner in tex.frames[i + 1 :]:
                    inner.at = len(inner.text)
                frame.at = command.end()
                frame.skip_blanks()
                if name == "fi":
                    tex.branches.pop()
                return True
            elif name in _IFS or name in tex.flags:
                depth += 1
        if frame.file is not None:
            break
    tex.unended.add("fi")
    return False


@handles("else", "or")
def _else(tex: TexMachine, name: str) -> bool:
    if name == "or" and not tex.branches:
        return False
    if tex.branches and tex.branches[-1]:
        return _skip_branch(tex, to_else=False)
    tex.frames[-1].skip_blanks()
    return True


@handles("fi")
def _fi(tex: TexMachine, name: str) -> None:
    if tex.branches:
        tex.branches.pop()
    tex.frames[-1].skip_blanks()


def _choose(tex: TexMachine, decided: bool | None, yes: str, no: str) -> None:
    """Read the branch that is taken, and both if that is not decided."""
    tex.push(yes + no if decided is None else yes if decided else no)


_VALUE_TESTS = [f"If{what}" for what in ("NoValue", "Value", "Boolean", "Blank")]


@_takes([f"{test}TF" for test in _VALUE_TESTS], "mmm")
@_takes([f"{test}{branch}" for test in _VALUE_TESTS for branch in "TF"], "mm")
def _ifvalue(tex: TexMachine, name: str, value: str, *branches: str) -> None:
    if "Value" in name:
        decided = (value == MISSING) == ("No" in name)
    else:
        decided = value in (TRUE, r"\BooleanTrue") if "Boolean" in name else not value.strip()
    yes, no = branches if len(branches) == 2 else ("", *branches) if name.endswith("F") else (*branches, "")
    _choose(tex, decided, yes, no)


@_takes(["ifthenelse"], "mmm")
def _ifthenelse(tex: TexMachine, name: str, test: str, yes: str, no: str) -> None:
    decided = None
    if equal := re.fullmatch(r"\s*\\equal\s*\{([^{}]*)\}\s*\{([^{}]*)\}\s*", test):
        decided = tex.expand_now(equal[1]) == tex.expand_now(equal[2])
    elif flag := re.fullmatch(r"\s*\\boolean\s*\{([A-Za-z@]+)\}\s*", test):
        decided = tex.flags.get(f"if{flag[1]}")
    if decided is None:
        _report(tex, r"\ifthenelse cannot be decided here, and each of its branches is read")
    _choose(tex, decided, yes, no)


@_takes([f"{AT}ifundefined"], "mmm")
def _ifundefined(tex: TexMachine, name: str, command: str, yes: str, no: str) -> None:
    _choose(tex, not _is_defined(tex, command), yes, no)


@handles(f"{AT}ifstar", f"{AT}ifnextchar")
def _ifnext(tex: TexMachine, name: str) -> bool:
    cursor = Cursor(tex.frames)
    sign = "*" if name.endswith("star") else cursor.token(of_any_kind=True)
    yes, no = cursor.argument(), cursor.argument()
    if sign is None or yes is None or no is None:
        return False
    cursor.take()
    ahead = Cursor(tex.frames)
    ahead.blanks()
    decided = ahead.next(sign)
    if decided and name.endswith("star"):
        ahead.take()
    _choose(tex, decided, yes, no)
    return True


@handles("csname")
def _csname(tex: TexMachine, name: str) -> bool:
    cursor = Cursor(tex.frames)
    text = cursor.until(r"\endcsname")
    if text is None or tex.within >= _DEEPEST_NAME:
        return False
    cursor.take()
    command = tex.expand_now(text).strip()
    if re.fullmatch(rf"[A-Za-z@{AT}]+", command):
        tex.push("\\" + command.replace("@", AT))
    return True


@handles("expandafter")
def _expandafter(tex: TexMachine, name: str) -> bool:
    cursor, frame = Cursor(tex.frames), tex.frames[-1]
    cursor.blanks()
    first = cursor.token(of_any_kind=True)
    if first is None:
        return False
    cursor.take()
    cursor.blanks()
    next_name = NAME.match(cursor.frame.text, cursor.at) if cursor.more() else None
    if next_name and next_name[1] == "csname":
        cursor.at = next_name.end()
        text = cursor.until(r"\endcsname")
        if text is not None and tex.within < _DEEPEST_NAME:
            cursor.take()
            tex.push("\\" + tex.expand_now(text).strip().replace("@", AT) + " ", frame)
    tex.push(first + (" " if first[-1].isalpha() else ""), frame)
    return True


@handles("noexpand")
def _noexpand(tex: TexMachine, name: str) -> None:
    """Go over the command."""


@handles("xspace")
def _xspace(tex: TexMachine, name: str) -> None:
    cursor = Cursor(tex.frames)
    if cursor.more() and cursor.frame.text[cursor.at] not in " \n\t.,'/?;:!~-)]}{\\":
        tex.write(" ", tex.place)


@handles("makeatletter", "makeatother")
def _letters(tex: TexMachine, name: str) -> None:
    letters = STOP_AT if name == "makeatletter" else STOP
    for frame in tex.frames:
        if frame.file is tex.outs[-1] or frame is tex.frames[-1]:
            frame.letters = letters
    tex.frames[-1].skip_blanks()


@handles("begingroup", "bgroup", "endgroup", "egroup")
def _edge(tex: TexMachine, name: str) -> None:
    if name.startswith("b"):
        tex.open_group("group")
    else:
        tex.close("group")
    if name in ("bgroup", "egroup"):
        tex.write("{" if name == "bgroup" else "}", tex.place)
    tex.frames[-1].skip_blanks()
