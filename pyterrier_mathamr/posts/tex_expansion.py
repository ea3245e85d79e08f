r"""LaTeX as TeX reads it: macros expanded, conditionals decided, definitions taken out, before anything is split.

::

    file ──▶ stack of inputs ──▶ next command ──┬─ macro, own environment ──▶ its text on the stack
             ┌──────────────┐                   ├─ definition ────────────▶ a meaning; `DEFINED` in its place
             │ body of \ol  │ ◀── read first    ├─ conditional ───────────▶ the branch that is taken
             │ line 12 …    │                   ├─ \input{part} ──────────▶ part.tex on the stack, written apart
             └──────────────┘                   └─ anything else ─────────▶ written, with its place in the file

Text between commands is copied as slices. Like TeX, the expander adds no braces, skips blanks after a command, and ends
a definition with its group. It departs from TeX in four ways:

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
from collections.abc import Callable, Iterable, Mapping

from pyterrier_mathamr._common.running.worker import OverLimitError

from .kept_source import SOURCE, SOURCES
from .tex_input import AT, ITSELF, NAME, STOP, STOP_AT, Cursor, Definition, Expanded, Frame
from .tex_macros import TRUE, Definitions, Environment, Macro, Parameter, is_native, package_macros
from .tex_primitives import DEEPEST, DEFINED, DEFINING, END, HANDLERS, theorem_of

LONGEST_EXPANSION = 1_000_000
"""Characters that the macros of a file may write, and ten times the length of the file."""

_OFTEN = 3  # definitions of a macro that expands to itself, after which it is not expanded again

_PROGRAM = re.compile(
    r"\\(?:setbox|advance|multiply|divide|wd|ht|dp|unh(?:copy|box)|write|immediate|openout|typeout|message|errmessage"
    r"|Package(?:Warning|Error|Info)|catcode|lccode|lowercase|numexpr|dimexpr|loop|repeat|@t?for|@while\w*|docsvlist"
    r"|forcsvlist|cs[gx]?def|futurelet|afterassignment|aftergroup|dimen|count|skip)(?![A-Za-z@])"
    r"|\\[A-Za-z]+_[A-Za-z_]*:"
)
"""Commands of programs in TeX, which are not run: a macro with one of them is undefined."""
_LOOKS = (
    "begin end part chapter section subsection subsubsection paragraph subparagraph label ref eqref cite title caption "
    "footnote item input include documentclass usepackage appendix frontmatter mainmatter backmatter emph textbf "
    "textit textsc text maketitle tableofcontents url href left right middle frac"
)
_STRUCTURE = frozenset(_LOOKS.split())
"""Commands whose redefinition changes only how they look."""
_OF_ONE = """
    overline underline bar hat vec tilde dot ddot widehat widetilde check breve acute grave mathring mathbb mathbf
    mathcal mathfrak mathscr mathrm mathsf mathit mathtt mathds mathbbm bm boldsymbol operatorname text mbox hbox
    textrm textbf textit sqrt overrightarrow overleftarrow cancel pmb substack underbrace overbrace
"""
_OF_TWO = "frac dfrac tfrac binom dbinom tbinom overset underset stackrel textcolor"
_ARITY = {**dict.fromkeys(_OF_ONE.split(), 1), **dict.fromkeys(_OF_TWO.split(), 2)}
"""Arguments of commands that TeX does not take as a script without braces."""
_FENCED = re.compile(
    r"\s*(?:\\(?:left|begin|[bB]igg?l?|l(?:vert|Vert|angle|brace|floor|ceil)|mathopen|\|)(?![A-Za-z])|[|(\[])"
)


_Include = Callable[[str, str], tuple[str, str | None, str]]
"""Finds the file that another one includes: its name, its text if it is to be read here, and the fault if any."""


class _Group:
    """A group that is open: what opened it, the mode before it, meanings that end with it, and the end of its code."""

    __slots__ = ("end", "key", "math", "saved")

    def __init__(self, key: str, math: bool, end: str = "") -> None:
        self.key, self.math, self.end = key, math, end
        self.saved: dict[str, Macro | None] | None = None


class Expander:
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

    def __init__(
        self,
        known: Definitions | None = None,
        folder: Mapping[str, Macro] | None = None,
        include: _Include | None = None,
        length: int = 0,
        packages: bool = True,
    ) -> None:
        self.macros: dict[str, Macro] = dict(known.macros) if known else {}
        self.environments: dict[str, Environment] = dict(known.environments) if known else {}
        self.files: dict[str, Expanded] = {}
        self.problems: dict[str, str] = {}
        self._folder: Mapping[str, Macro] = {**(package_macros() if packages else {}), **(folder or {})}
        self.include = include
        self._limit = self._left = LONGEST_EXPANSION + 10 * length
        self.theorems = {theorem_of(of) for of in known.found} if known else set()
        self.sources = set(SOURCES)
        self.flags: dict[str, bool] = {}
        self.setters: dict[str, tuple[str, bool]] = {}
        self._recursive: set[str] = set()
        self._recursed: Counter[str] = Counter()
        self.unended: set[str] = set()
        self.frames: list[Frame] = []
        self.outs: list[Expanded] = []
        self.groups: list[_Group] = []
        self._opened: Counter[str] = Counter()
        self.branches: list[bool] = []  # of open conditionals: whether the other branches are skipped
        self.math = self.is_global = self.word = self._script = False
        self.within = 0
        self._use: tuple[Frame, int, tuple[int, int, int, int]] | None = None  # the macro of the file that is expanded

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

    def alone(self, file: Expanded, text: str, left: int | None = None) -> str:
        """Expand a text apart from the stack."""
        state = self.frames, self.outs, self.word, self._script, self._use
        self.frames, self.outs = [Frame(text, 0, 0, file=file)], [file]
        self.word, self._script, self._use = False, False, None
        file.left, file.limit = (self._left, self._limit) if left is None else (left, left)
        self.within += 1
        self._run(0)
        self.within -= 1
        self.frames, self.outs, self.word, self._script, self._use = state
        if left is None:
            self._left = file.left
            if file.error:
                raise OverLimitError(file.error)
        return file.text

    def open_file(self, name: str, text: str, style: bool) -> Expanded:
        file = self.files[name] = Expanded(name, text)
        file.left = file.limit = LONGEST_EXPANSION + 10 * len(text)
        frame = Frame(text, 0, 0, file=file)
        frame.letters = STOP_AT if style else STOP
        self.frames.append(frame)
        self.outs.append(file)
        self.unended = set()
        return file

    def _run(self, floor: int) -> None:
        """Read until the stack of inputs has its former height."""
        frames = self.frames
        while len(frames) > floor:
            frame = frames[-1]
            stop = frame.letters.search(frame.text, frame.at)
            at, copied = frame.at, frame.file is not None
            start = stop.start() if stop else len(frame.text)
            if start > at:
                self.write(frame.text[at:start], frame.place(at), copied)
            if stop is None:
                frames.pop()
                if frame.file is not None:
                    file = self.outs.pop()
                    file.text = "".join(file.pieces)
                    file.pieces.clear()
                    self.word = self._script = False
                continue
            frame.at = stop.end()
            mark, sign = stop[0], stop[2]
            if stop[1]:
                self._command(stop[1].replace("@", AT), frame, start)
            elif sign == END:
                self.close("own")
            elif sign:
                self.math = sign in "([" or (self.math and sign not in ")]")
                self.write(mark, frame.place(start), copied)
                self._script = False
            elif mark[0] in "{}$":  # else a comment, or the mark of a missing argument
                if mark == "{":
                    self.groups.append(_Group("{", self.math))
                elif mark == "}" and self.groups and self.groups[-1].key == "{":
                    self._end_group()
                elif mark[0] == "$":
                    self.math = not self.math
                self.write(mark, frame.place(start), copied)

    def write(self, piece: str, place: int, copied: bool = False) -> None:
        """Write a piece, with a blank where it would continue the name of the command before it."""
        out = self.outs[-1]
        if self.word and piece[0].isascii() and piece[0].isalpha():
            out.write(" ", place, False)
        out.write(piece, place, copied)
        self.word = False
        if last := piece.rstrip()[-1:]:
            self._script = last in "^_"

    def close(self, key: str) -> None:
        """End the innermost group that was opened so, if any, and the groups in it."""
        if not self._opened[key]:
            return
        self._opened[key] -= 1
        while (closed := self._end_group()) != key:
            if closed != "{":
                self._opened[closed] -= 1

    def open_group(self, key: str, end: str = "") -> None:
        self.groups.append(_Group(key, self.math, end))
        self._opened[key] += 1

    def _end_group(self) -> str:
        """End the innermost group; return what opened it."""
        group = self.groups.pop()
        for name, macro in (group.saved or {}).items():
            if macro is None:
                self.macros.pop(name, None)
            else:
                self.macros[name] = macro
        self.math = group.math
        return group.key

    def _command(self, name: str, frame: Frame, start: int) -> None:
        if name[0] != ITSELF:
            macro = self.macros.get(name)
            handler = HANDLERS.get(name) or (HANDLERS["if"] if name in self.flags else None)
            if macro is None and name in self.setters and name not in HANDLERS:
                flag, value = self.setters[name]
                self.flags[flag] = value
                return frame.skip_blanks()
            if macro is None and handler:
                if handler(self, name, frame, start):
                    return None
            elif name not in self._recursive:
                macro = macro or self.meaning(name)
                if macro and self._expand(name, macro, frame, start):
                    return None
        name = name.replace(AT, "@").replace(ITSELF, "")
        if name in _ARITY and self._with_braces(name, frame):
            return None
        copied = frame.file is not None and f"\\{name}" == frame.text[start : frame.at]
        self.write(f"\\{name}", frame.place(start), copied)
        self.word, self._script = True, False
        return None

    def meaning(self, name: str) -> Macro | None:
        """Return the macro of a command, also from the folder or a package."""
        macro = self.macros.get(name)
        if macro is None and (macro := self._folder.get(name)) and is_native(name):
            return None
        return macro

    def _with_braces(self, name: str, frame: Frame) -> bool:
        """Put braces around the arguments of a command if one is a macro without braces, or it is a script of a macro.

        As a script, the whole is put in braces.
        """
        arity, is_script = _ARITY[name], self._script and frame.file is None
        ahead, needs_braces = Cursor(self.frames), is_script
        for _ in range(0 if is_script else arity):
            token = ahead.over_argument()
            if token is None:
                return False
            macro = self.meaning(token[1:]) if token[:1] == "\\" else None
            if macro and not macro.parameters:
                needs_braces = True
                break
        if not needs_braces:
            return False
        cursor = Cursor(self.frames)
        values = [cursor.argument() for _ in range(arity)]
        if None in values:
            return False
        cursor.take()
        written = "".join(f"{{{value}}}" if len(value or "") != 1 else f" {value}" for value in values)
        written = f"\\{ITSELF}{name}{written}"
        self.push(f"{{{written}}}" if is_script else written, frame)
        return True

    def _expand(self, name: str, macro: Macro, frame: Frame, start: int) -> bool:
        """Put the text of a macro on the stack; ``False`` if arguments are missing.

        A macro that expands to itself is reported, and its use in the file is read again without expanding it.
        """
        cursor = Cursor(self.frames)
        values = self.values(macro.parameters, cursor)
        if values is None:
            return False
        if not macro.parameters:
            cursor.blanks()
        if frame.file is not None:
            self._use = frame, start, frame.file.state()
        if frame.depth < DEEPEST:
            cursor.take()
            self.push(macro.filled(values), frame, place=frame.place(start))
            return True
        out = self.outs[-1]
        out.problems.setdefault(rf"\{name} expands to itself, and is left as it is".replace(AT, "@"), frame.origin)
        self._recursive.add(name)
        self._recursed[name] += 1
        if self._use is None or self._use[0].file is not out:
            return False
        use, start, state = self._use
        while self.frames[-1] is not use:
            self.frames.pop()
        use.at = start
        out.restore(state)
        self.word = self._script = False
        return True

    def push(self, text: str, frame: Frame, place: int | None = None) -> None:
        """Put a text on the stack, within the limits; in braces if it is a script that begins with a fence."""
        if self._script and len(text) > 1 and _FENCED.match(text):
            text = f"{{{text}}}"
        frames = self.frames
        while frames[-1].file is None and frames[-1].at >= len(frames[-1].text) and len(frames) > 1:
            frames.pop()
        if not self.charge(len(text) + 2):
            return
        pushed = Frame(text, frame.place(frame.at) if place is None else place, frame.depth + 1)
        pushed.letters = frame.letters
        frames.append(pushed)

    def charge(self, characters: int) -> bool:
        """Count what macros write; beyond the limit, leave the rest of the file."""
        out, frames = self.outs[-1], self.frames
        out.left -= characters
        if out.left >= 0:
            return True
        out.error = f"its macros write more than {out.limit:,} characters"
        while frames[-1].file is None:
            frames.pop()
        frames[-1].at = len(frames[-1].text)
        return False

    def values(self, parameters: Iterable[Parameter], cursor: Cursor) -> list[str] | None:
        """Read the arguments of a macro; nothing if some are missing."""
        values: list[str] = []
        for parameter in parameters:
            kind, value = parameter.kind, None
            if kind == "=":
                cursor.blanks()
                if not cursor.next(parameter.first):
                    return None
                continue
            if kind == "e":  # arguments after signs such as "_", in any order
                scripts = dict(zip(parameter.first.split(" "), parameter.last.split("\n"), strict=False))
                left = list(scripts)
                while left:
                    cursor.blanks()
                    sign = next((sign for sign in left if cursor.next(sign)), None)
                    if sign is None:
                        break
                    left.remove(sign)
                    scripts[sign] = cursor.argument() or ""
                values += scripts.values()
                continue
            if kind == "m":
                value = cursor.argument()
            elif kind == "u":
                value = cursor.until(parameter.first)
            elif kind == "v":
                cursor.blanks()
                value = cursor.group()
            else:
                before = cursor.mark()
                cursor.blanks()
                if kind == "s":
                    value = TRUE if cursor.next(parameter.first) else None
                elif kind == "g":
                    value = cursor.group()
                else:
                    value = cursor.between(parameter.first, parameter.last)
                if value is None:
                    cursor.reset(before)
                    value = parameter.default if kind != "r" else None
            if value is None:
                return None
            values.append(value)
        return values

    def define(self, name: str, macro: Macro) -> None:
        """Give a command a meaning, up to the end of the group."""
        if name in _STRUCTURE or not name or any(isinstance(of, str) and _PROGRAM.search(of) for of in macro.body):
            return
        if name == "lean" and macro.parameters:  # a blueprint's, which prints nothing; its names are read
            return
        if self.groups and not self.is_global:
            group = self.groups[-1]
            group.saved = group.saved or {}
            group.saved.setdefault(name, self.macros.get(name))
        self.macros[name] = macro
        if self._recursed[name] < _OFTEN:
            self._recursive.discard(name)


_HEAD = re.compile(rf"\\({'|'.join(sorted(DEFINING))})(?![A-Za-z@])|\\.|%[^\n]*", re.DOTALL)
_NO_NEED = "begin end url href path nolinkurl or input include import begingroup endgroup if verb"
_IN_FORMULAS = frozenset(_NO_NEED.split())
"""Commands that by themselves do not require that a formula is expanded."""


def collected(text: str, known: Definitions | None = None) -> Definitions:
    """Find what a text defines, without reading the rest of it; the places are in the text."""
    expander = Expander(known)
    file = expander.open_file("", text, True)
    [frame] = expander.frames
    found: list[Definition] = []
    for head in _HEAD.finditer(text):
        if head[1] is None or head.start() < frame.at:
            continue
        frame.at = head.end()
        del expander.frames[1:]
        if HANDLERS[head[1]](expander, head[1], frame, head.start()) and file.definitions:
            found.append(file.definitions[-1]._replace(start=head.start(), end=frame.at))
        else:
            frame.at = head.end()
    return Definitions(expander.macros, expander.environments, found)
