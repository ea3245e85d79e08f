r"""Penman text of other programs, with repairs that are counted by name.

    (c / come-21 :ARG1 (p / problem :value "x :mod (/ this))     a quotation mark without its partner, no variable
    (c / come-21 :ARG1 (p / problem :value x :mod (x1 / this)))  and a bracket short

Text that the strict reader accepts is read by it; other text is repaired first, in one pass over the characters with a
stack of open nodes. Inside brackets a label extends to the next space or bracket, so ``\binom``, ``{align*}``,
``http://x.org``, ``#`` and ``"`` are labels. Then lower-cased files are restored: ``:arg0-of`` to ``:ARG0-of``, and
``formula_0`` to ``FORMULA_0`` where no placeholder is upper case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from .graph import AmrGraph, PenmanError, atom_value, decode_penman, is_role, is_symbol, spell

_SPACE = r" \t\r\n\v\f\x1c-\x1e\x85\u2028\u2029"
_BLANK = re.compile(rf"[{_SPACE}]*")
_RUN = re.compile(rf"[^{_SPACE}()]+")
_STRING = re.compile(rf'"[^"\\\n]*(?:\\.[^"\\\n]*)*"(?=[{_SPACE}()~]|$)')
_ROLE_RUN = re.compile(rf':[^{_SPACE}()"]*')
_VARIABLE = re.compile(rf'[^{_SPACE}()/:"~]+')
_ALIGNMENT = re.compile(r"~(?:[a-z]\.?)?[0-9]+(?:,[0-9]+)*")
_MARKED = re.compile(rf"(.+?)({_ALIGNMENT.pattern})", re.DOTALL)
_LABEL_COLON = re.compile(rf":(?=[{_SPACE}()]|$)")
_NOT_IN_ROLES = re.compile(r"[^-+.,;\w%*]+")

_NO_ROLE = ":mod"  # of an edge that was written without one


class _Repairer:
    """One pass over the text of a graph, from its first bracket on; ``repairs`` are counted by name."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.repairs: Counter[str] = Counter()
        self.out: list[str] = []
        self.open: list[bool] = []  # for each open node, whether it has a concept
        self.words: list[str] = []  # of the current label
        self.quoted = self.in_concept = self.has_role = False
        self.name_of: dict[str, str] = {}
        self.fresh_names: Iterator[str] | None = None

    def repaired(self) -> str:
        """Return the graph as valid text on one line."""
        while self.skip():
            character = self.text[self.at]
            if self.out and not self.open:  # after the root's last bracket
                if character == ")":
                    self.repair("a closing bracket too many left out")
                    self.at += 1
                elif character == ":":
                    self.repair("a closing bracket too early moved to the end")
                    self.out.pop()
                    self.open.append(True)
                else:
                    if character != "#":
                        self.repair("text after the graph left out")
                    break
            elif character == "(":
                self.node()
            elif character == ")":
                self.flush()
                self.has_role = False
                self.out.append(")")
                self.open.pop()
                self.at += 1
            elif character == "#" and self.at_line_start():
                self.repair("a comment inside the graph left out")
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif character == ":" and not (self.in_concept and _LABEL_COLON.match(self.text, self.at)):
                self.role()
            else:
                self.word()
        self.flush()
        if self.open:
            self.repair("a closing bracket added")
            self.out.append(")" * len(self.open))
        return " ".join(self.out)

    def repair(self, name: str) -> None:
        self.repairs[name] += 1

    def skip(self) -> bool:
        """Skip white space; return whether there is more text."""
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at
        return self.at < len(self.text)

    def at_line_start(self) -> bool:
        """Return whether only spaces precede this place in its line."""
        before = self.at
        while before and self.text[before - 1] in " \t\r":
            before -= 1
        return not before or self.text[before - 1] == "\n"

    def node(self) -> None:
        """'(' Variable? '/'?, with or without a concept after it."""
        self.flush()
        if self.open and not self.has_role:
            self.repair("a role added")
            self.out.append(_NO_ROLE)
        self.has_role = False
        self.at += 1
        self.skip()
        match = _VARIABLE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        self.out.append("(" + self.variable(match.group() if match else ""))
        self.open.append(False)
        if self.skip() and self.text[self.at] == "/":
            self.at += 1
            self.begin_concept()
        elif self.at < len(self.text) and self.text[self.at] not in "():":
            self.repair("a slash before the concept added")
            self.begin_concept()

    def variable(self, written: str) -> str:
        """Return the variable of a new node: the written one, where it is valid and new."""
        name, is_valid = written, bool(written) and is_symbol(written)
        if not is_valid or written in self.name_of:
            self.repair("a variable defined twice renamed" if is_valid else "a variable made")
            if self.fresh_names is None:
                taken = set(re.findall(r'[^\s()/:"~]+', self.text))
                self.fresh_names = (name for name in map("x{}".format, count(1)) if name not in taken)
            name = next(self.fresh_names)
        if written:
            self.name_of[written] = name
        return name

    def begin_concept(self) -> None:
        self.out.append("/")
        self.in_concept = self.open[-1] = True

    def role(self) -> None:
        """':' and all up to a space, a bracket or a quotation mark."""
        self.flush()
        run = _ROLE_RUN.match(self.text, self.at)
        written = run.group() if run else ":"
        self.at += len(written)
        marked = _MARKED.fullmatch(written)
        role, mark = marked.groups() if marked else (written, "")
        if role != ":instance" and not is_role(role):
            self.repair("a role written with other characters")
            role = ":" + _NOT_IN_ROLES.sub("-", role[1:]).strip("-")
        if role != ":instance":
            self.out.append(role + mark)
            self.has_role = True
        elif self.open[-1]:
            self.repair("a second concept made a node")
            self.out.append(_NO_ROLE)
            self.has_role = True
        else:
            self.out.append(role)
            self.has_role = False
            self.in_concept = self.open[-1] = True

    def word(self) -> None:
        """A label in quotes or up to a space or bracket; several words are one label."""
        if not (self.in_concept or self.has_role or self.words):
            self.repair("a role added")
            self.out.append(_NO_ROLE)
            self.has_role = True
        string = _STRING.match(self.text, self.at)
        run = string or _RUN.match(self.text, self.at)
        word = run.group() if run else ""
        self.at += len(word)
        mark = _ALIGNMENT.match(self.text, self.at) if string else None
        if mark:
            word += mark.group()
            self.at = mark.end()
        self.quoted = string is not None and not self.words
        self.words.append(word)

    def flush(self) -> None:
        """Write the current label, if any, in quotes where needed."""
        if self.words:
            self.out.append(self.written(self.words))
            self.has_role = False
        self.words, self.quoted, self.in_concept = [], False, False

    def written(self, words: list[str]) -> str:
        """Return the text of a label of one or several words."""
        label = " ".join(words)
        marked = _MARKED.fullmatch(label)
        label, mark = marked.groups() if marked else (label, "")
        if self.quoted and len(words) == 1:
            return (label if len(label.splitlines()) == 1 else spell(atom_value(label))) + mark
        if is_symbol(label):
            return (label if self.in_concept else self.name_of.get(label, label)) + mark
        if len(words) > 1:
            self.repair("a label of several words put in quotes")
        if len(label) > 1 and '"' in (label[0], label[-1]):
            self.repair("a quotation mark without its partner left out")
            label = label.removeprefix('"').removesuffix('"') or '"'
        elif len(words) == 1:
            self.repair("a label with other characters put in quotes")
        return spell(label) + mark


_ARGUMENT = re.compile(r":arg([0-9]*)(-of)?", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"formula_[0-9]+", re.IGNORECASE)


def decode_leniently(text: str, *, first_line: int = 1) -> tuple[AmrGraph, Counter[str]]:
    """Read one graph with its comment lines, repaired where it is not Penman notation, and count the repairs by name.

    Raises:
        PenmanError: there is no graph in the text.
    """
    repairs: Counter[str] = Counter()
    try:
        graph = decode_penman(text, first_line=first_line)
        if not (
            all(map(is_symbol, filter(None, graph.variables))) and all(is_role(role) for _, role, _ in graph.edges)
        ):
            raise PenmanError("a control character that cannot be written", first_line, 0, "")
    except PenmanError:
        clean, repairs = _repaired(text, first_line)
        graph = decode_penman(clean, first_line=first_line)
        if not any(graph.labels):
            raise PenmanError("no concept in the graph", first_line, 0, text.partition("\n")[0]) from None
    return _in_capitals(graph, repairs), repairs


def _repaired(text: str, first_line: int) -> tuple[str, Counter[str]]:
    """Repair the graph and keep the comment lines before it."""
    comments: list[str] = []
    repairs: Counter[str] = Counter()
    lines = text.split("\n")
    for number, line in enumerate(lines):
        bare = line.strip()
        if bare.startswith("#"):
            comments.append(" ".join(bare.splitlines()))
            continue
        start = line.find("(")
        if line[:start].strip() if start >= 0 else bare:
            repairs["text before the graph left out"] += 1
        if start >= 0:
            repairer = _Repairer("\n".join([line[start:], *lines[number + 1 :]]))
            clean = repairer.repaired()
            return "\n".join([*comments, clean]), repairs + repairer.repairs
    raise PenmanError("no bracket that opens a graph", first_line, 0, lines[0])


def _in_capitals(graph: AmrGraph, repairs: Counter[str]) -> AmrGraph:
    """Restore the case of roles, as of ``:ARG0-of`` and ``:op1``, and of placeholders where none has capitals."""
    spelled: dict[str, str] = {}
    for role in {role for _, role, _ in graph.edges}:
        argument = _ARGUMENT.fullmatch(role)
        if argument:
            spelled[role] = f":ARG{argument[1]}{(argument[2] or '').lower()}"
        elif role.isupper():
            spelled[role] = role.lower()
    if changed := sum(spelled.get(role, role) != role for _, role, _ in graph.edges):
        repairs["the case of a role"] += changed
        edges = tuple((source, spelled.get(role, role), target) for source, role, target in graph.edges)
        graph = replace(graph, edges=edges)
    placeholders = {node for node, label in enumerate(graph.labels) if _PLACEHOLDER.fullmatch(label)}
    if placeholders and not any(graph.labels[node].startswith("FORMULA_") for node in placeholders):
        repairs["the case of a placeholder"] += len(placeholders)
        labels = tuple(label.upper() if node in placeholders else label for node, label in enumerate(graph.labels))
        spellings = tuple((node, atom) for node, atom in graph.spellings if node not in placeholders)
        graph = replace(graph, labels=labels, spellings=spellings)
    return graph
