r"""LaTeX as TeX reads it: macros expanded, conditionals decided, definitions taken out, before anything is split.

`Expander` is the machine of TeX (`tex_machine`) with its commands (`tex_primitives`). It departs from TeX in four ways:

* ``x^\ol y`` with ``\newcommand{\ol}{\overline}`` is an error in TeX; it is written ``x^{\overline y}``.
* An undefined command takes the meaning that it has elsewhere in the folder, else in the package that it is known
  from (`package_macros`), else it is written as it is. So is a use without all of its arguments.
* A conditional that cannot be decided is reported, and all of its branches are read.
* A macro that expands to itself is reported, and written as it is. What the macros of a file may write is limited.

Drawings, programs and other material that is no mathematics is kept as `hidden` source: characters that are neither
words nor formulas to any reader, until a post is written as HTML.
"""

from __future__ import annotations

import re
from collections import Counter

from .math_spans import DISPLAYS, SOURCE, hidden
from .tex_machine import DEEPEST, END, HANDLERS, LONGEST_DELIMITED, Cursor, Expanded, TexMachine, handles
from .tex_macros import DEFINED, NAME, Definition, Definitions, parameters_of
from .tex_primitives import DEFINING

_HEAD = re.compile(rf"\\({'|'.join(sorted(DEFINING))})(?![A-Za-z@])|\\.|%[^\n]*", re.DOTALL)
_NO_NEED = "begin end url href path nolinkurl or input include import begingroup endgroup if verb"
_IN_FORMULAS = frozenset(_NO_NEED.split())
"""Commands that by themselves do not require that a formula is expanded."""


class Expander(TexMachine):
    """Expands macros; keeps definitions from one file or formula to the next.

    Args:
        known: definitions that apply from the start.
        folder: macros of other files, for commands that are otherwise undefined.
        include: finds included files; if missing, inclusions are written as they are.
        length: characters of the texts that share one limit, see `LONGEST_EXPANSION`; by default each has its own.
        packages: whether commands of common packages are expanded.

    Attributes:
        macros: the current meanings of commands.
        files: what was read, by name.
        problems: of formulas: where the first of each is.
    """

    def read(self, name: str, text: str, *, style: bool = False) -> Expanded:
        """Expand a file, and the files that it includes; in a package or class, ``@`` is a letter."""
        floor = len(self.frames)
        file = self.open_file(name, text, style)
        self._run(floor)
        return file

    def formula(self, latex: str) -> str:
        """Expand a formula without delimiters.

        Raises:
            OverLimitError: the macros of all formulas write too much.
        """
        if "\\" not in latex or SOURCE.search(latex):
            return latex
        names = set(NAME.findall(latex))
        if not any((name in HANDLERS and name not in _IN_FORMULAS) or self.meaning(name) for name in names) and not (
            "begin" in names and any(f"{{{name}}}" in latex for name in self.environments)
        ):
            return latex
        self.math, self.groups, self._opened, self.branches = True, [], Counter(), []
        file = Expanded("", latex)
        text = self.alone(file, latex).replace(DEFINED, "")
        for what, at in file.problems.items():
            self.problems.setdefault(what, latex[at : at + 60])
        return text if text.strip() else latex

    def text(self, source: str) -> str:
        """Expand a text in which nothing is defined, such as a name.

        Raises:
            OverLimitError: the macros of all texts write too much.
        """
        self.math = False
        return self.alone(Expanded("", source), source)


def collected(text: str, known: Definitions | None = None) -> Definitions:
    """Find what a text defines, without reading the rest of it; the places are in the text."""
    expander = Expander(known)
    file = expander.open_file("", text, True)
    [frame] = expander.frames
    found: list[Definition] = []
    for head in _HEAD.finditer(text):
        if head[1] is None or head.start() < frame.at:
            continue
        expander.start, frame.at = head.span()
        del expander.frames[1:]
        if HANDLERS[head[1]](expander, head[1]) is not False and file.definitions:
            found.append(file.definitions[-1]._replace(start=head.start(), end=frame.at))
        else:
            frame.at = head.end()
    return Definitions(expander.macros, expander.environments, found)


# ---- environments, material that is kept as source, and files

_MATH_ENVIRONMENT = re.compile(rf"(?:{DISPLAYS}|math|displaymath|dmath)\*?")
_DROPPED = frozenset(["comment", "filecontents", "filecontents*"])
_XYMATRIX = re.compile(r"\s*(?:@[^{}\s@]{0,20})*\s*")
_BARE_FILE = re.compile(r"\s*+([\w./-]{1,300})")
_VERB = re.compile(r"\*?([^\w\s*])([^\n]{0,300}?)\1")
_ADDRESS = re.compile(r"\s*+\{([^{}\n]*+)\}")
_ENVIRONMENT = re.compile(r"[^\S\n]*+\{([^{}\n]{1,80})\}")
_SPECIAL = "\\{}[]$&#%_^~`'\"-()"
SHELTER = {ord(character): 0xE100 + ord(character) for character in _SPECIAL}
"""A private-use character for each character of code and addresses that means something else in LaTeX."""


@handles("begin")
def _begin(tex: TexMachine, by: str) -> bool:
    frame = tex.frames[-1]
    given = _ENVIRONMENT.match(frame.text, frame.at)
    if given is None:
        return False
    name = given[1].strip()
    is_source = name in tex.sources or name in _DROPPED
    if name == "algorithm":  # a program, unless it holds one
        end = frame.text.find(r"\end{algorithm}", frame.at, frame.at + LONGEST_DELIMITED)
        is_source = is_source or (end >= 0 and frame.text.find(r"\begin{algorithmic}", frame.at, end) < 0)
    if is_source:
        closer = rf"\end{{{name}}}"
        end = -1 if name in tex.unended else frame.text.find(closer, frame.at)
        if end < 0:
            tex.unended.add(name)
            return False
        frame.at = end + len(closer)
        text = "\n\n" if name in _DROPPED else hidden(frame.text[tex.start : frame.at])
        tex.write(text, tex.place, frame.file is not None and name not in _DROPPED)
        return True
    environment = tex.environments.get(name)
    if environment is None or frame.depth >= DEEPEST:
        tex.open_group(name)
        tex.math = tex.math or bool(_MATH_ENVIRONMENT.fullmatch(name))
        return False
    begun, frame.at = frame.at, given.end()
    cursor = Cursor(tex.frames)
    values = tex.values(environment.begin.parameters, cursor)
    if values is None:
        frame.at = begun
        return False
    cursor.take()
    tex.open_group("own", f"{name}\n{environment.end.filled(values)}")
    tex.push(environment.begin.filled(values))
    return True


@handles("end")
def _finish(tex: TexMachine, by: str) -> bool:
    frame = tex.frames[-1]
    given = _ENVIRONMENT.match(frame.text, frame.at)
    if given is None:
        return False
    name = given[1].strip()
    if name not in tex.environments:
        tex.close(name)
        return False
    group = next((group for group in reversed(tex.groups[-50:]) if group.end.partition("\n")[0] == name), None)
    if group is None:
        return False
    frame.at = given.end()
    tex.push(group.end.partition("\n")[2] + "\\" + END)
    return True


_SOURCE_COMMANDS = {"ce": "m", "chemfig": "O{}m", "xymatrix": "", "lean": "m", "tikz": "o", "Axiom": "", "AxiomC": ""}


@handles(*_SOURCE_COMMANDS)
def _source_command(tex: TexMachine, name: str) -> bool:
    """Keep a command and its arguments as source."""
    frame = tex.frames[-1]
    if name in ("Axiom", "AxiomC"):
        end = frame.text.find(r"\DisplayProof", frame.at, frame.at + LONGEST_DELIMITED)
        if end < 0:
            return False
        frame.at = end + len(r"\DisplayProof")
        tex.write(hidden(frame.text[tex.start : frame.at]), tex.place)
        return True
    cursor = Cursor(tex.frames)
    if name == "xymatrix" and (skipped := _XYMATRIX.match(frame.text, frame.at)):
        cursor.at = skipped.end()
    values = tex.values(parameters_of(_SOURCE_COMMANDS[name]) or (), cursor)
    if name == "tikz":
        before = cursor.mark()
        if cursor.group() is None:
            cursor.reset(before)
            values = None if cursor.until(";") is None else values
    elif name == "xymatrix":
        values = None if cursor.group() is None else values
    if values is None or cursor.frame is not frame:
        return False
    cursor.take()
    source = values[0] if name == "lean" else frame.text[tex.start : frame.at]
    tex.write(hidden(source), tex.place)
    return True


@handles("verb")
def _verb(tex: TexMachine, name: str) -> bool:
    frame = tex.frames[-1]
    code = _VERB.match(frame.text, frame.at)
    if code is None:
        return False
    frame.at = code.end()
    if code[2]:
        tex.write(code[2].translate(SHELTER), frame.place(code.start(2)), frame.file is not None)
    return True


@handles("url", "href", "path", "nolinkurl")
def _link(tex: TexMachine, name: str) -> bool:
    frame = tex.frames[-1]
    address = _ADDRESS.match(frame.text, frame.at)
    if address is None:
        return False
    frame.at = address.end()
    tex.write(f"\\{name}{{{address[1].translate(SHELTER)}}}", tex.place)
    return True


_INPUTS = {"input": 1, "include": 1, "subfile": 1, "subfileinclude": 1, "import": 2, "subimport": 2}  # arguments


@handles(*_INPUTS)
def _input(tex: TexMachine, name: str) -> bool:
    frame = tex.frames[-1]
    if tex.include is None:
        return False
    cursor = Cursor(tex.frames)
    cursor.next("*")
    bare = _BARE_FILE.match(frame.text, frame.at) if name == "input" else None
    given = [bare[1]] if bare else [cursor.argument() for _ in range(_INPUTS[name])]
    if None in given:
        return False
    if bare:
        cursor.at = bare.end()
    cursor.take()
    parts = [tex.expand_now(part or "").strip() for part in given]
    target = "/".join(parts).replace("//", "/")
    out = tex.outs[-1]
    tex.write("\\" + name + "".join(f"{{{part}}}" for part in parts), tex.place)
    out.inputs[out.length - len(name) - 1 - sum(len(part) + 2 for part in parts)] = tex.include_file(target)
    return True


@handles("endinput")
def _endinput(tex: TexMachine, name: str) -> None:
    tex.frames[-1].at = len(tex.frames[-1].text)
