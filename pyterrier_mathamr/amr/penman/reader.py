"""`decode_penman` and the records of a file: one pass over the tokens of each graph, with a stack of open nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, NoReturn

from pyterrier_mathamr.amr.errors import PenmanError
from pyterrier_mathamr.amr.graph import AmrEdge, AmrGraph

from .atoms import atom_value, spell

_TOKEN = re.compile(
    r'(?P<COMMENT>\#.*$)|(?P<STRING>"[^"\\]*(?:\\.[^"\\]*)*")|(?P<OPEN>\()|(?P<CLOSE>\))|(?P<SLASH>/)'
    r'|(?P<ROLE>:[^ \t\r\n\v\f"()/:~]*)|(?P<SYMBOL>[^ \t\r\n\v\f"()/:~]+)'
    r"|(?P<ALIGNMENT>~(?:[a-z]\.?)?[0-9]+(?:,[0-9]+)*)|(?P<UNEXPECTED>[^ \t\r\n\v\f])"
)


class PenmanRecord(NamedTuple):
    """The text of one graph in a file, and the number of its first line."""

    line: int
    text: str


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
    return Reader(text.splitlines(), first_line).graph()


def iter_records(lines: Iterable[str]) -> Iterator[PenmanRecord]:
    """Split a file of graphs at its blank lines; records of comments only, such as the head of a file, are skipped."""
    record: list[str] = []
    start, has_graph = 1, False
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        if bare:
            if not record:
                start = number
            record.append(line.rstrip("\r\n"))
            has_graph = has_graph or not bare.startswith("#")
        else:
            if has_graph:
                yield PenmanRecord(start, "\n".join(record))
            record, has_graph = [], False
    if has_graph:
        yield PenmanRecord(start, "\n".join(record))


def iter_penman(lines: Iterable[str]) -> Iterator[AmrGraph]:
    """Read the graphs of a file, one at a time.

    Args:
        lines: the lines; records are separated by blank lines and may begin with ``# ::key value`` comments.

    Raises:
        PenmanError: a record is malformed; its line is that of the file. To continue after a bad record, decode the
            texts of `iter_records` one by one.
    """
    for record in iter_records(lines):
        yield decode_penman(record.text, first_line=record.line)


class Token(NamedTuple):
    """A token, its line (from 0) and its offset in the line."""

    kind: str
    text: str
    line: int
    offset: int


def tokens_of(lines: list[str]) -> list[Token]:
    """Tokenize lines up to the first character that starts no token; a quoted string ends on its line."""
    tokens: list[Token] = []
    for number, line in enumerate(lines):
        for match in _TOKEN.finditer(line):
            tokens.append(Token(match.lastgroup or "", match.group(), number, match.start()))
            if match.lastgroup == "UNEXPECTED":
                return tokens
    return tokens


class Reader:
    """The state of one pass over the tokens of a graph."""

    def __init__(self, lines: list[str], first_line: int) -> None:
        self.lines, self.tokens, self.first_line, self.at = lines, tokens_of(lines), first_line, 0
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

    def concept(self, node: int, mark: Token) -> None:
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
        """Add a node without a variable."""
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
        """Whether the next token is one of these."""
        return self.at < len(self.tokens) and self.tokens[self.at].kind in kinds

    def take(self, *kinds: str) -> Token:
        """Return the next token, which must be one of these."""
        if self.at == len(self.tokens):
            last = self.tokens[-1] if self.tokens else Token("", "", 0, 0)
            self.fail(f"the graph ends here, expected {_names(kinds)}", last, past=len(last.text))
        token = self.tokens[self.at]
        if token.kind not in kinds:
            self.fail(f"expected {_names(kinds)}", token)
        self.at += 1
        return token

    def fail(self, message: str, token: Token, *, past: int = 0) -> NoReturn:
        """Raise an error at a token."""
        line = self.lines[token.line] if self.lines else ""
        raise PenmanError(message, self.first_line + token.line, token.offset + past, line)


def _names(kinds: tuple[str, ...]) -> str:
    said = {"OPEN": "'('", "CLOSE": "')'", "ROLE": "a role", "SYMBOL": "a symbol", "STRING": "a quoted string"}
    return " or ".join(said.get(kind, kind.lower()) for kind in kinds)
