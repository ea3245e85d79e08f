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

from .math_spans import SOURCE
from .tex_machine import HANDLERS, Expanded, TexMachine
from .tex_macros import DEFINED, NAME, Definition, Definitions
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
        if HANDLERS[head[1]](expander, head[1]) and file.definitions:
            found.append(file.definitions[-1]._replace(start=head.start(), end=frame.at))
        else:
            frame.at = head.end()
    return Definitions(expander.macros, expander.environments, found)
