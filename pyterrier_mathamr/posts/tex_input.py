"""What TeX reads and writes: the stack of inputs, reading ahead in it, and the result with its places in the file."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

ITSELF = "\ue007"
"""Before the name of a command that is not expanded: what ``\\let`` keeps of a command without a definition."""
AT = "\ue008"
"""The letter ``@`` of a command that a package defines."""
MARKS = "\ue009\ue00a\ue00b"
"""Values of arguments that are missing; nothing is printed of them."""

STOP = re.compile(
    rf"\\([A-Za-z{AT}{ITSELF}]+)|\\(.)|[{{}}{MARKS}]|\$\$?|%[^\n]*(?:\n(?![^\S\n]*\n)[^\S\n]*)?", re.DOTALL
)
"""A command, a sign of TeX or a comment."""
STOP_AT = re.compile(STOP.pattern.replace("A-Za-z", "A-Za-z@"), re.DOTALL)
"""The same where ``@`` is a letter."""
NAME = re.compile(rf"\\([A-Za-z{AT}{ITSELF}]+)")
NAME_AT = re.compile(NAME.pattern.replace("A-Za-z", "A-Za-z@"))
BRACE = re.compile(r"\\[^a-zA-Z]|[{}]")
LONGEST_DELIMITED = 5_000
"""Characters of an argument that a text ends."""

_BLANKS = re.compile(r"(?:[^\S\n]|%[^\n]*\n)*+(?:\n(?![^\S\n]*\n)(?:[^\S\n]|%[^\n]*\n)*+)?")
_LONGEST_OPTION = 1_000
_BRACE = re.compile(r"\\[^a-zA-Z]|[{}]|%[^\n]*")
_OPTION_END = re.compile(r"\\[^a-zA-Z]|[{}]|%[^\n]*|\n[^\S\n]*\n|.", re.DOTALL)
_PARAMETERS = re.compile(r"[^{}\n]{0,200}(?=\{)")
_NO_ARGUMENTS = frozenset(["$", "&", "}", r"\\", r"\)", r"\]", r"\begin", r"\end", "{"])


class Definition(NamedTuple):
    """A definition or setting: where it is, its command and its arguments; a missing one in brackets is empty."""

    start: int
    end: int
    by: str
    starred: bool
    arguments: list[str]


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

    def token(self) -> str | None:
        """Read one command or character; ``None`` where an argument cannot be."""
        if not self.more():
            return None
        text = self.frame.text
        command = (NAME_AT if self.frame.letters is STOP_AT else NAME).match(text, self.at)
        token = command[0] if command else text[self.at : self.at + (2 if text[self.at] == "\\" else 1)]
        if token in _NO_ARGUMENTS or token.isspace() or token == "\\":
            return None
        self.at += len(token)
        return token

    def any_token(self) -> str | None:
        """Read one command or character of any kind."""
        token = self.token()
        if token is None and self.more():
            token = self.frame.text[self.at : self.at + (2 if self.frame.text[self.at] == "\\" else 1)]
            self.at += len(token)
        return token

    def parameters(self) -> str | None:
        r"""Read the parameters of ``\def``, up to the brace of its body."""
        parameters = _PARAMETERS.match(self.frame.text, self.at) if self.more() else None
        if parameters is None:
            return None
        self.at = parameters.end()
        return parameters[0]

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
