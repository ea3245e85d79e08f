r"""The machine of TeX: a stack of inputs, reading ahead in it, groups, and the result with its places in the file.

::

    file ──▶ stack of inputs ──▶ next command ──┬─ macro ──────────────▶ its text on the stack
             ┌──────────────┐                   ├─ in `HANDLERS` ──────▶ a definition, a branch, a file
             │ body of \ol  │ ◀── read first    └─ anything else ──────▶ written, with its place in the file
             │ line 12 …    │
             └──────────────┘

Text between commands is copied as slices. Like TeX, the machine adds no braces, skips blanks after a command, and ends
a definition with its group.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

from pyterrier_mathamr._common.running.worker import OverLimitError

from .math_spans import SOURCES
from .tex_macros import (
    AT,
    FALSE,
    ITSELF,
    MISSING,
    NAME,
    NAME_AT,
    TRUE,
    Definition,
    Definitions,
    Environment,
    Macro,
    Parameter,
    closers,
    is_native,
    package_macros,
)

STOP = re.compile(
    rf"\\([A-Za-z{AT}{ITSELF}]+)|\\(.)|[{{}}{MISSING}{TRUE}{FALSE}]|\$\$?|%[^\n]*(?:\n(?![^\S\n]*\n)[^\S\n]*)?",
    re.DOTALL,
)
"""A command, a sign of TeX or a comment."""
STOP_AT = re.compile(STOP.pattern.replace("A-Za-z", "A-Za-z@"), re.DOTALL)
"""The same where ``@`` is a letter."""
END = "\ue00c"
"""After a backslash: the group of an own environment ends here."""
LONGEST_DELIMITED = 5_000
"""Characters of an argument that a text ends."""
LONGEST_EXPANSION = 1_000_000
"""Characters that the macros of a file may write, and ten times the length of the file."""
DEEPEST = 1_000
"""Expansions within expansions, beyond which a macro expands to itself."""

_BLANKS = re.compile(r"(?:[^\S\n]|%[^\n]*\n)*+(?:\n(?![^\S\n]*\n)(?:[^\S\n]|%[^\n]*\n)*+)?")
_LONGEST_OPTION = 1_000
_OPTION_END = re.compile(r"\\[^a-zA-Z]|[{}]|%[^\n]*|\n[^\S\n]*\n|.", re.DOTALL)
_PARAMETERS = re.compile(r"[^{}\n]{0,200}(?=\{)")
_NO_ARGUMENTS = frozenset(["$", "&", "}", r"\\", r"\)", r"\]", r"\begin", r"\end", "{"])


@dataclass
class Expanded:
    """A file as TeX reads it.

    Attributes:
        name: the file's.
        source: its text.
        text: the text after expansion, without comments.
        definitions: definitions and settings, with places in `text`.
        inputs: files that it includes: place in `text` to name, or the fault.
        problems: place in `source` of the first of each.
        error: why the rest of it was not read, or empty.
    """

    name: str
    source: str
    text: str = ""
    definitions: list[Definition] = field(default_factory=list)
    inputs: dict[int, tuple[str, str]] = field(default_factory=dict)
    problems: dict[str, int] = field(default_factory=dict)
    error: str = ""
    left: int = 0
    limit: int = 0

    def __post_init__(self) -> None:
        self.pieces: list[str] = []
        self.length = 0
        self._written: list[int] = []  # each run of the text: where it begins,
        self._read: list[int] = []  # its place in the source,
        self._copied: list[bool] = []  # and whether it is there as it is
        self._lines = list(accumulate((len(line) + 1 for line in self.source.split("\n")), initial=0))

    def write(self, piece: str, place: int, copied: bool = False) -> None:
        goes_on = self._copied and self._copied[-1] and copied
        if not goes_on or place - self.length != self._read[-1] - self._written[-1]:
            self._written.append(self.length)
            self._read.append(place)
            self._copied.append(copied)
        self.pieces.append(piece)
        self.length += len(piece)

    def state(self) -> tuple[int, int, int, int]:
        return len(self.pieces), self.length, len(self._written), len(self.definitions)

    def restore(self, state: tuple[int, int, int, int]) -> None:
        """Drop what was written since."""
        pieces, self.length, runs, definitions = state
        del self.pieces[pieces:], self.definitions[definitions:]
        del self._written[runs:], self._read[runs:], self._copied[runs:]

    def position(self, at: int) -> tuple[int, int]:
        """Return the line and the column in the file of a place in the text, both from 1.

        What a macro wrote is where the macro is used.
        """
        run = bisect_right(self._written, at) - 1
        place = 0 if run < 0 else self._read[run] + (at - self._written[run] if self._copied[run] else 0)
        line = bisect_right(self._lines, place)
        return line, place - self._lines[line - 1] + 1


class Frame:
    """A text that is being read."""

    __slots__ = ("_ends", "at", "depth", "file", "letters", "origin", "text")

    def __init__(self, text: str, origin: int, depth: int, file: Expanded | None = None) -> None:
        self.text, self.origin, self.depth, self.file = text, origin, depth, file
        self.at = 0
        self.letters = STOP
        self._ends: dict[int, int] | None = None

    def place(self, at: int) -> int:
        return at if self.file is not None else self.origin

    def end_of(self, brace: int) -> int | None:
        if self._ends is None:
            self._ends = closers(self.text)
        return self._ends.get(brace)

    def skip_blanks(self) -> None:
        """Skip blanks, comments and at most one line end."""
        blanks = _BLANKS.match(self.text, self.at)
        self.at = blanks.end() if blanks else self.at


class Cursor:
    """Reads ahead in the stack of inputs; nothing is consumed before `take`."""

    def __init__(self, frames: list[Frame]) -> None:
        self._frames, self._i = frames, len(frames) - 1
        self.at = frames[-1].at

    @property
    def frame(self) -> Frame:
        return self._frames[self._i]

    def more(self) -> bool:
        """Go on to the next input that is not at its end; not beyond a file."""
        while self.at >= len(self.frame.text):
            if self.frame.file is not None or not self._i:
                return False
            self._i -= 1
            self.at = self.frame.at
        return True

    def blanks(self) -> None:
        """Go over blanks, comments and at most one line end."""
        while self.more():
            blanks = _BLANKS.match(self.frame.text, self.at)
            self.at = blanks.end() if blanks else self.at
            if self.at < len(self.frame.text):
                return

    def mark(self) -> tuple[int, int]:
        """Return where it is, for `reset`."""
        return self._i, self.at

    def reset(self, mark: tuple[int, int]) -> None:
        self._i, self.at = mark

    def take(self) -> None:
        """Consume what was read."""
        for frame in self._frames[self._i + 1 :]:
            frame.at = len(frame.text)
        self.frame.at = self.at

    def next(self, text: str) -> bool:
        """Go over a text if it is next."""
        if self.more() and self.frame.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def token(self, *, of_any_kind: bool = False) -> str | None:
        """Read one command or character; ``None`` where an argument cannot be, unless it may be of any kind."""
        if not self.more():
            return None
        text = self.frame.text
        command = (NAME_AT if self.frame.letters is STOP_AT else NAME).match(text, self.at)
        token = command[0] if command else text[self.at : self.at + (2 if text[self.at] == "\\" else 1)]
        if not of_any_kind and (token in _NO_ARGUMENTS or token.isspace() or token == "\\"):
            return None
        self.at += len(token)
        return token

    def parameters(self) -> str | None:
        r"""Read the parameters of ``\def``, up to the brace of its body."""
        parameters = _PARAMETERS.match(self.frame.text, self.at) if self.more() else None
        self.at = parameters.end() if parameters else self.at
        return parameters[0] if parameters else None

    def group(self) -> str | None:
        """Read a group in braces; ``None`` if there is none."""
        if not self.more() or self.frame.text[self.at] != "{":
            return None
        start, end = self.at + 1, self.frame.end_of(self.at)
        if end is None:
            return None
        self.at = end + 1
        return self.frame.text[start:end]

    def argument(self) -> str | None:
        """Read an argument, in braces or of one token, after blanks."""
        self.blanks()
        return self.group() if self.more() and self.frame.text[self.at] == "{" else self.token()

    def over_argument(self) -> str | None:
        """Go over an argument; return its token, empty for a group, and ``None`` if there is none."""
        self.blanks()
        if not self.more() or self.frame.text[self.at] != "{":
            return self.token()
        end = self.frame.end_of(self.at)
        self.at = self.at if end is None else end + 1
        return None if end is None else ""

    def between(self, first: str, last: str) -> str | None:
        """Read a group between two characters other than braces."""
        if not self.more() or not self.frame.text.startswith(first, self.at):
            return None
        text, start = self.frame.text, self.at + 1
        limit = start + _LONGEST_OPTION
        if text.find(last, start, limit) < 0:
            return None
        depth = 1
        at = start
        while match := _OPTION_END.match(text, at, limit):
            sign, at = match[0], match.end()
            if sign == "{":
                end = self.frame.end_of(match.start())
                if end is None:
                    return None
                at = end + 1
            elif sign == last:
                depth -= 1
                if not depth or first == last:
                    self.at = at
                    return text[start : match.start()]
            elif sign == first:
                depth += 1
            elif sign == "}" or (sign[0] == "\n" and len(sign) > 1):
                return None
        return None

    def until(self, text: str) -> str | None:
        """Read an argument that a text ends."""
        if not self.more():
            return None
        frame, start = self.frame, self.at
        limit = min(len(frame.text), start + LONGEST_DELIMITED)
        end = start
        while True:
            end = frame.text.find(text, end, limit)
            if end < 0:
                return None
            opened = frame.text.find("{", start, end)
            if opened < 0:
                break
            closer = frame.end_of(opened)
            if closer is None or closer < end:
                start = opened + 1 if closer is None else closer + 1
                continue
            end = start = closer + 1
        argument = frame.text[self.at : end]
        self.at = end + len(text)
        is_group = argument.startswith("{") and frame.end_of(end - len(argument)) == end - 1
        return argument[1:-1] if is_group else argument


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
Handler: TypeAlias = "Callable[[TexMachine, str], bool | None]"
"""Gets the machine, which has read the name of a command, and this name.

It returns ``False`` where arguments are missing: the command is then written as it is.
"""
HANDLERS: dict[str, Handler] = {}
"""The commands that take effect before anything is printed."""
_FENCED = re.compile(
    r"\s*(?:\\(?:left|begin|[bB]igg?l?|l(?:vert|Vert|angle|brace|floor|ceil)|mathopen|\|)(?![A-Za-z])|[|(\[])"
)


_Include = Callable[[str, str], tuple[str, str | None, str]]
"""Finds the file that another one includes: its name, its text if it is to be read here, and the fault if any."""


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register the handler of some commands."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


@dataclass(slots=True)
class _Group:
    """A group that is open."""

    key: str  # what opened it
    math: bool  # the mode before it
    end: str = ""  # the code for its end
    saved: dict[str, Macro | None] | None = None  # the meanings that end with it


class TexMachine:
    """The state of TeX and the operations of commands on it; see `Expander` for its options."""

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
        self.theorems = {setting.theorem for setting in known.found} if known else set()
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
        self.start = 0  # where the command begins that is being read, in the innermost input
        self._use: tuple[Frame, int, tuple[int, int, int, int]] | None = None  # the macro of the file that is expanded

    def alone(self, file: Expanded, text: str, left: int | None = None) -> str:
        """Expand a text apart from the stack."""
        state = self.frames, self.outs, self.word, self._script, self._use, self.start
        self.frames, self.outs = [Frame(text, 0, 0, file=file)], [file]
        self.word, self._script, self._use = False, False, None
        file.left, file.limit = (self._left, self._limit) if left is None else (left, left)
        self.within += 1
        self._run(0)
        self.within -= 1
        self.frames, self.outs, self.word, self._script, self._use, self.start = state
        if left is None:
            self._left = file.left
            if file.error:
                raise OverLimitError(file.error)
        return file.text

    def expand_now(self, text: str) -> str:
        """Expand a name or the like at once."""
        if "\\" not in text:
            return text
        expanded = self.alone(Expanded("", text), text, 10 * LONGEST_DELIMITED)
        self.charge(len(expanded))
        return expanded

    def open_file(self, name: str, text: str, style: bool) -> Expanded:
        file = self.files[name] = Expanded(name, text)
        file.left = file.limit = LONGEST_EXPANSION + 10 * len(text)
        frame = Frame(text, 0, 0, file=file)
        frame.letters = STOP_AT if style else STOP
        self.frames.append(frame)
        self.outs.append(file)
        self.unended = set()
        return file

    def include_file(self, target: str, *, style: bool = False) -> tuple[str, str]:
        """Put a file on the stack that is to be read here; return its name, and the fault if any."""
        if self.include is None:
            return "", ""
        name, text, problem = self.include(self.outs[-1].name, target)
        if text is not None and name not in self.files:
            self.open_file(name, text, style)
        return name, problem

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

    @property
    def place(self) -> int:
        """The place in the file of the command that is being read."""
        return self.frames[-1].place(self.start)

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
                self.start = start
                if handler(self, name) is not False:
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
        self.push(f"{{{written}}}" if is_script else written)
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
            self.push(macro.filled(values), place=frame.place(start))
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

    def push(self, text: str, frame: Frame | None = None, place: int | None = None) -> None:
        """Put a text on the stack, within the limits; in braces if it is a script that begins with a fence."""
        frame = frame or self.frames[-1]
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
        if (
            name in _STRUCTURE
            or not name
            or any(isinstance(piece, str) and _PROGRAM.search(piece) for piece in macro.body)
        ):
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
