"""Penman notation: the text form of AMR graphs, without recursion, so that a graph may be as deep as memory allows.

::

    Record := ('#' ('::' Key Value)*)* Node              Role   := ':' and all up to space " ( ) / : ~
    Node   := '(' Variable ('/' Atom?)? Edge* ')'        Atom   := Symbol | '"' ... '"', with an alignment ~e.4 or none
    Edge   := Role (Atom | Node)?                        Symbol := one or more characters up to space " ( ) / : ~

For input that penman 1.3 accepts, the graph is that of ``penman.decode`` and the text that of ``penman.encode``, with
three exceptions that are errors here: text after the graph, a variable defined twice, and the empty node ``()``. An
edge that is written twice is kept twice, where penman loses its position.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple, NoReturn

from pyterrier_mathamr.amr.errors import AmrError, PenmanError
from pyterrier_mathamr.amr.graph import AmrEdge, AmrGraph, depth_first, unreachable_text

# Line separators and control characters would end or hide part of a line; lone surrogates cannot be written as UTF-8.
_UNWRITABLE = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_SYMBOL = re.compile(rf'[^ "()/:~#{_UNWRITABLE}][^ "()/:~{_UNWRITABLE}]*')
_ROLE = re.compile(rf':[^ "()/:~{_UNWRITABLE}]*')
_ESCAPED = re.compile(rf'[\\"{_UNWRITABLE}]')
_ESCAPE = re.compile(r'\\(?:([\\"])|u([0-9a-f]{4}))')


def is_symbol(text: str) -> bool:
    """Return whether a text is an atom (or variable) without quotes."""
    return _SYMBOL.fullmatch(text) is not None


def is_role(text: str) -> bool:
    return _ROLE.fullmatch(text) is not None and text != ":instance"


def spell(label: str, variables: Collection[str] = ()) -> str:
    """Write a label as an atom."""
    if not label or (is_symbol(label) and label not in variables):
        return label
    return f'"{_ESCAPED.sub(_escape, label)}"'


def atom_value(atom: str) -> str:
    """Read an atom: the inverse of `spell`."""
    return _ESCAPE.sub(_unescape, atom[1:-1]) if atom.startswith('"') else atom


def _unescape(match: re.Match[str]) -> str:
    return match[1] or chr(int(match[2], 16))


def _escape(match: re.Match[str]) -> str:
    return "\\" + match[0] if match[0] in '\\"' else f"\\u{ord(match[0]):04x}"


_TOKEN = re.compile(
    r'(?P<COMMENT>\#.*$)|(?P<STRING>"[^"\\]*(?:\\.[^"\\]*)*")|(?P<OPEN>\()|(?P<CLOSE>\))|(?P<SLASH>/)'
    r'|(?P<ROLE>:[^ \t\r\n\v\f"()/:~]*)|(?P<SYMBOL>[^ \t\r\n\v\f"()/:~]+)'
    r"|(?P<ALIGNMENT>~(?:[a-z]\.?)?[0-9]+(?:,[0-9]+)*)|(?P<UNEXPECTED>[^ \t\r\n\v\f])"
)


def decode_penman(text: str, *, first_line: int = 1) -> AmrGraph:
    """Read one graph.

    Args:
        text: Penman notation with its comment lines.
        first_line: line number of the text in its file, for messages.

    Returns:
        The graph, nodes and edges in the order of the text.

    Raises:
        PenmanError: the text is not one graph; the message shows the place.
    """
    return _Reader(text.splitlines(), first_line).graph()


class _Token(NamedTuple):
    """A token, its line (from 0) and its offset in the line."""

    kind: str
    text: str
    line: int
    offset: int


def _tokens(lines: list[str]) -> list[_Token]:
    """Tokenize lines up to the first character that starts no token; a quoted string ends on its line."""
    tokens: list[_Token] = []
    for number, line in enumerate(lines):
        for match in _TOKEN.finditer(line):
            tokens.append(_Token(match.lastgroup or "", match.group(), number, match.start()))
            if match.lastgroup == "UNEXPECTED":  # continuing after many unpaired quotation marks costs quadratic time
                return tokens
    return tokens


class _Reader:
    """One pass over the tokens of a graph."""

    def __init__(self, lines: list[str], first_line: int) -> None:
        self.lines, self.tokens, self.first_line, self.at = lines, _tokens(lines), first_line, 0
        opened = zip(self.tokens, self.tokens[1:], strict=False)
        self.known = {name.text for bracket, name in opened if bracket.kind == "OPEN" and name.kind == "SYMBOL"}
        self.labels: list[str] = []
        self.variables: list[str] = []
        self.edges: list[AmrEdge] = []
        self.node_of: dict[str, int] = {}
        self.unresolved: dict[int, str] = {}  # edges to variables that are defined later
        self.spellings: list[tuple[int, str]] = []
        self.alignments: list[tuple[int, str, str]] = []

    def graph(self) -> AmrGraph:
        """Record := Comment* Node."""
        metadata = self.metadata()
        open_nodes = [self.node()]
        while open_nodes:
            token = self.take("ROLE", "CLOSE")
            if token.kind == "CLOSE":
                open_nodes.pop()
            elif token.text == ":instance":
                self.concept(open_nodes[-1], token)
            else:
                role_mark = self.alignment()
                if self.peek("OPEN"):
                    self.edges.append((open_nodes[-1], token.text, -1))
                    edge = len(self.edges) - 1
                    open_nodes.append(self.node())
                    self.edges[edge] = (open_nodes[-2], token.text, open_nodes[-1])
                    mark = ""
                else:
                    mark = self.atom_edge(open_nodes[-1], token.text)
                    edge = len(self.edges) - 1
                if role_mark or mark:
                    self.alignments.append((edge, role_mark, mark))
        while self.peek("COMMENT"):
            self.take("COMMENT")
        if self.at < len(self.tokens):
            self.fail("text after the end of the graph", self.tokens[self.at])
        for edge, variable in self.unresolved.items():
            source, role, _ = self.edges[edge]
            self.edges[edge] = (source, role, self.node_of[variable])
        return AmrGraph(
            tuple(self.labels), tuple(self.variables), tuple(self.edges), metadata,
            tuple(self.spellings), tuple(self.unresolved), tuple(self.alignments),
        )  # fmt: skip

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Comment := '#' ('::' Key Value)*; the keys of a line are in reverse order, as in penman."""
        found: dict[str, str] = {}
        while self.peek("COMMENT"):
            _, *entries = self.take("COMMENT").text.rsplit("::")
            for entry in reversed(entries):
                key, _, value = entry.partition(" ")
                found[key] = value.rstrip()
        return tuple(found.items())

    def node(self) -> int:
        """Node := '(' Variable ('/' Atom?)? ...; returns the node's number."""
        self.take("OPEN")
        token = self.take("SYMBOL")
        if token.text in self.node_of:
            self.fail(f"variable {token.text} is defined twice", token)
        node = self.node_of[token.text] = len(self.labels)
        self.labels.append("")
        self.variables.append(token.text)
        if self.peek("SLASH"):
            self.concept(node, self.take("SLASH"))
        return node

    def concept(self, node: int, mark: _Token) -> None:
        """'/' Atom?; a missing concept is an empty label."""
        if self.labels[node]:
            self.fail(f"variable {self.variables[node]} has two concepts", mark)
        if self.peek("SYMBOL", "STRING"):
            atom = self.take("SYMBOL", "STRING").text
            self.label(node, atom, atom + self.alignment(), ())

    def atom_edge(self, source: int, role: str) -> str:
        """Edge := Role Atom?; returns the alignment of a variable that is only mentioned."""
        if not self.peek("SYMBOL", "STRING"):
            if not self.peek("ROLE", "CLOSE"):
                self.take("SYMBOL", "STRING", "OPEN")
            self.edges.append((source, role, self.constant()))
            return ""
        atom = self.take("SYMBOL", "STRING").text
        mark = self.alignment()
        if atom in self.known:
            if atom not in self.node_of:
                self.unresolved[len(self.edges)] = atom
            self.edges.append((source, role, self.node_of.get(atom, -1)))
            return mark
        node = self.constant()
        self.edges.append((source, role, node))
        self.label(node, atom, atom + mark, self.known)
        return ""

    def constant(self) -> int:
        self.labels.append("")
        self.variables.append("")
        return len(self.labels) - 1

    def label(self, node: int, atom: str, spelling: str, variables: Collection[str]) -> None:
        """Set a node's label to the value of an atom, and keep the spelling where the value does not determine it."""
        value = atom_value(atom)
        self.labels[node] = value
        if spell(value, variables) != spelling:
            self.spellings.append((node, spelling))

    def alignment(self) -> str:
        """Read the alignment that follows, if any; its numbers lose leading zeros, as in penman."""
        if not self.peek("ALIGNMENT"):
            return ""
        return re.sub(r"\d+", lambda number: number.group().lstrip("0") or "0", self.take("ALIGNMENT").text)

    def peek(self, *kinds: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].kind in kinds

    def take(self, *kinds: str) -> _Token:
        """Return the next token, which must be one of these."""
        if self.at == len(self.tokens):
            last = self.tokens[-1] if self.tokens else _Token("", "", 0, 0)
            self.fail(f"the graph ends here, expected {_names(kinds)}", last, past=len(last.text))
        token = self.tokens[self.at]
        if token.kind not in kinds:
            self.fail(f"expected {_names(kinds)}", token)
        self.at += 1
        return token

    def fail(self, message: str, token: _Token, *, past: int = 0) -> NoReturn:
        line = self.lines[token.line] if self.lines else ""
        raise PenmanError(message, self.first_line + token.line, token.offset + past, line)


def _names(kinds: tuple[str, ...]) -> str:
    names = {"OPEN": "'('", "CLOSE": "')'", "ROLE": "a role", "SYMBOL": "a symbol", "STRING": "a quoted string"}
    return " or ".join(names.get(kind, kind.lower()) for kind in kinds)


def encode_penman(graph: AmrGraph, indent: int | None = None) -> str:
    """Write one graph.

    Args:
        graph: the graph; edges are written in their order, each node where it is first reached from the root.
        indent: ``None`` for one line, a number of spaces for each level, or ``-1`` (penman's default) to align edges
            with the node's concept. Indented text grows with the square of the depth.

    Returns:
        Metadata as comment lines, then the graph, without a final line end.

    Raises:
        AmrError: the text would not decode to the same graph: a node cannot be reached from the root, two nodes have
            the same variable, or a role, variable or piece of metadata cannot be written in Penman notation.
    """
    _check_atoms(graph)
    names = {variable for variable in graph.variables if variable}
    spelled = dict(graph.spellings)
    marks = {edge: (role, target) for edge, role, target in graph.alignments}

    def opening(node: int) -> str:
        concept = spelled.get(node, spell(graph.labels[node]))
        return f"({graph.variables[node]} / {concept}" if concept else f"({graph.variables[node]}"

    def edges_column(node: int, column: int) -> int:
        return column + (len(graph.variables[node]) + 2 if indent == -1 else indent or 0)

    pieces = [f"# ::{key}{' ' + value if value else ''}\n" for key, value in graph.metadata]
    pieces.append(opening(0))
    path = [(0, edges_column(0, 0))]  # open nodes, each with the column of its edges
    fresh = not graph.labels[0] and 0 not in spelled  # after (x without a concept the first edge stays on the line
    reached = {0}
    for edge, defines in depth_first(graph):
        source, role, target = graph.edges[edge]
        while path[-1][0] != source:
            path.pop()
            pieces.append(")")
            fresh = False
        column = path[-1][1]
        role_mark, target_mark = marks.get(edge, ("", ""))
        pieces += [" " if indent is None or fresh else "\n" + " " * column, role, role_mark]
        fresh = False
        if not graph.variables[target]:
            atom = spelled.get(target, spell(graph.labels[target], names))
        elif defines:
            atom = opening(target)
            path.append((target, edges_column(target, column + (len(role + role_mark) + 1 if indent == -1 else 0))))
            fresh = not graph.labels[target] and target not in spelled
        else:
            atom = graph.variables[target] + target_mark
        pieces.append(" " + atom if atom else "")
        reached.add(target)
    if len(reached) != len(graph.labels):
        raise AmrError(unreachable_text(graph, reached))
    pieces.append(")" * len(path))
    return "".join(pieces)


def check_penman(graph: AmrGraph) -> None:
    """Reject a graph that :func:`encode_penman` rejects, without writing it.

    Raises:
        AmrError: see :func:`encode_penman`.
    """
    _check_atoms(graph)
    bare, reached = frozenset(graph.mentions), bytearray(len(graph.labels))
    reached[0] = 1
    for index, (source, _, target) in enumerate(graph.edges):  # one pass is enough for edges in writing order
        if reached[source] and index not in bare:
            reached[target] = 1
    if not all(reached):
        graph.arranged()


def _check_atoms(graph: AmrGraph) -> None:
    """Reject variables, roles and metadata that would not be read back unchanged."""
    seen: set[str] = set()
    for variable in filter(None, graph.variables):
        if not is_symbol(variable):
            raise AmrError(f"{variable!r} cannot be a variable in Penman notation.")
        if variable in seen:
            raise AmrError(f"two nodes have the variable {variable!r}.")
        seen.add(variable)
    for role in {role for _, role, _ in graph.edges}:
        if not is_role(role):
            raise AmrError(f"{role!r} cannot be a role in Penman notation.")
    for key, value in graph.metadata:
        line = f"::{key} {value}"
        fits = len(line.splitlines()) == 1 and value == value.rstrip()
        if not fits or " " in key or key.startswith(":") or line.count("::") > 1:
            raise AmrError(f"metadata {key!r}: {value!r} does not fit on a line of the form '# ::key value'.")
    if len(dict(graph.metadata)) != len(graph.metadata):
        raise AmrError("a key of the metadata occurs twice.")
