"""`AmrGraph`: an AMR in the order of Penman notation, its text form, and the graph of the library `penman`.

::

    (e / equal-01              node 0   labels[0] = "equal-01"    variables[0] = "e"
       :ARG1 (f / FORMULA_0)   node 1   labels[1] = "FORMULA_0"   variables[1] = "f"    edge (0, ":ARG1", 1)
       :polarity -             node 2   labels[2] = "-"           variables[2] = ""     edge (0, ":polarity", 2)
       :ARG2 f)                                                                         edge (0, ":ARG2", 1)

A label is the atom's value, without quotes, escapes and alignments. Where the label does not determine the spelling
(``"GMT"`` in quotes that it does not need), it is kept in ``spellings``, so that decoding and encoding lose nothing.

::

    Record := ('#' ('::' Key Value)*)* Node              Role   := ':' and all up to space " ( ) / : ~
    Node   := '(' Variable ('/' Atom?)? Edge* ')'        Atom   := Symbol | '"' ... '"', with an alignment ~e.4 or none
    Edge   := Role (Atom | Node)?                        Symbol := one or more characters up to space " ( ) / : ~

For input that penman 1.3 accepts, the graph is that of ``penman.decode`` and the text that of ``penman.encode``, with
three exceptions that are errors here: text after the graph, a variable defined twice, and the empty node ``()``. An
edge that is written twice is kept twice, where penman loses its position. Nothing recurses, so that a graph may be as
deep as memory allows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pyterrier_mathamr._common.errors import MathAMRError, require

if TYPE_CHECKING:
    import penman


class AmrError(MathAMRError):
    """A graph, a parser's answer or a Penman text is not a rooted AMR graph."""

    reason: str
    template = "{reason}"


class PenmanError(AmrError):
    """A text is not Penman notation.

    Attributes:
        reason: the fault.
        line: number of the line, from 1.
        offset: position in the line, from 0.
        text: the line itself.
    """

    line: int
    offset: int
    text: str
    template = "line {line}, offset {offset}: {reason}\n{excerpt}"

    @property
    def excerpt(self) -> str:
        """Show the text around the error, with a caret below it; a graph on one line can be megabytes long."""
        start = max(0, self.offset - 60)
        return f"  {self.text[start : start + 120]}\n  {' ' * (self.offset - start)}^"


AmrEdge = tuple[int, str, int]
"""Source node, role as written with its colon, target node."""


class Branch(NamedTuple):
    """A tree to write below a node: the role of the edge to its root, and its nodes and edges in writing order."""

    role: str
    labels: Sequence[str]
    variables: Sequence[str]
    edges: Sequence[AmrEdge]


@dataclass(frozen=True, slots=True)
class AmrGraph:
    """A rooted graph of concepts, constants and roles (MathAMR+, section 3.1).

    Attributes:
        labels: the concept or constant of each node; an empty concept is ``(x)``, an empty constant a role without
            target. Node 0 is the root.
        variables: the variable of each node, ``""`` for a constant.
        edges: ``(source, role, target)`` as written, in writing order; ``:ARG0-of`` is not inverted.
        metadata: key and value of each ``# ::key value``.
        spellings: ``(node, atom)`` where the written atom differs from the default spelling of the label.
        mentions: edges whose target is a bare variable that is defined later in the text.
        alignments: ``(edge, role's mark, target's mark)`` for edges that carry surface alignments such as ``~e.4``.
        texts: in a newly parsed post, the text of each ``:snt1``, ``:snt2``, … of the root, or of the root where it
            is one sentence; empty if unknown. Neither written nor compared.
    """

    labels: tuple[str, ...]
    variables: tuple[str, ...]
    edges: tuple[AmrEdge, ...]
    metadata: tuple[tuple[str, str], ...] = ()
    spellings: tuple[tuple[int, str], ...] = ()
    mentions: tuple[int, ...] = ()
    alignments: tuple[tuple[int, str, str], ...] = ()
    texts: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        size = len(self.labels)
        if size == 0 or len(self.variables) != size or not self.variables[0]:
            raise AmrError(
                f"an AMR has a root with a variable and as many labels as variables, "
                f"not {size} labels and {len(self.variables)} variables."
            )
        if not self.edges:
            return
        sources, _, targets = zip(*self.edges, strict=True)  # all at once: five times faster than edge by edge
        inside = min(sources) >= 0 <= min(targets) and max(sources) < size > max(targets)
        if inside and all(map(self.variables.__getitem__, sources)):
            return
        for source, role, target in self.edges:
            if not (0 <= source < size and 0 <= target < size and self.variables[source]):
                raise AmrError(
                    f"edge ({source}, {role!r}, {target}) does not lead from a variable to a node of {size}."
                )

    def triples(self) -> tuple[AmrEdge, ...]:
        """Return the edges with inverted roles normalized: ``:ARG0-of`` becomes ``:ARG0`` from target to source.

        As in penman's default model, a role that ends in ``-of`` is inverted once, unless its target is a constant.
        """
        inverted = {role for role in set(map(itemgetter(1), self.edges)) if role.endswith("-of")}
        return tuple(
            [
                (edge[2], edge[1][:-3], edge[0]) if edge[1] in inverted and self.variables[edge[2]] else edge
                for edge in self.edges
            ]
        )

    def to_penman(self) -> penman.Graph:
        """Convert the graph to the one of the library ``penman``, as its ``decode`` reads the text of this graph.

        Returns:
            Triples in writing order, inverted roles normalized, with metadata and, in ``epidata``, where the text opens
            and closes nodes and its alignments; :meth:`from_penman` gives an equal graph back.

        Raises:
            AmrError: the graph has no form in Penman notation, see ``encode_penman``.
        """
        return _library_graph(self)

    @classmethod
    def from_penman(cls, graph: penman.Graph) -> AmrGraph:
        """Convert a graph of the library ``penman``.

        Args:
            graph: where its layout is not known, as of triples that a program made, penman chooses one.

        Raises:
            AmrError: it is not one connected graph. PenmanError: a variable, role or atom is not Penman notation.
        """
        if graph.top is None:
            raise AmrError("the graph has no triples, and an AMR has a root.")
        text = _text_of_library_graph(graph)
        if text is None:
            library = require("penman")
            try:
                text = library.encode(library.Graph(graph.triples, graph.top, graph.epidata))
            except (library.PenmanError, RecursionError) as error:
                raise AmrError(f"penman finds no tree for the graph: {error}.") from error
        return decode_penman(text).with_metadata(tuple(graph.metadata.items()))

    def with_metadata(self, metadata: Sequence[tuple[str, str]]) -> AmrGraph:
        """Copy the graph with other metadata."""
        return replace(self, metadata=tuple(metadata))

    def arranged(self, below: Mapping[int, Sequence[Branch]] | None = None) -> AmrGraph:
        """Copy the graph with nodes and edges in the order in which Penman notation writes them.

        A graph constructed with edges in any order equals its decoded text only after this.

        Args:
            below: trees to add after the last edge of some nodes.

        Raises:
            AmrError: a node cannot be reached from the root along the edges.
        """
        labels, variables, edges = [self.labels[0]], [self.variables[0]], list[AmrEdge]()
        node_at, edge_at = {0: 0}, dict[int, int]()

        def leave(node: int) -> None:
            for branch in below.get(node, ()) if below else ():
                root = len(labels)
                edges.append((node_at[node], branch.role, root))
                labels.extend(branch.labels)
                variables.extend(branch.variables)
                edges.extend([(root + source, role, root + target) for source, role, target in branch.edges])

        path = [0]
        for edge, defines in depth_first(self):
            source, role, target = self.edges[edge]
            while path[-1] != source:
                leave(path.pop())
            edge_at[edge] = len(edges)
            if defines:
                node_at[target] = len(labels)
                labels.append(self.labels[target])
                variables.append(self.variables[target])
                path.append(target)
            edges.append((node_at[source], role, node_at.get(target, -1)))
        while path:
            leave(path.pop())
        if len(node_at) != len(self.labels):
            raise AmrError(unreachable_text(self, set(node_at)))
        for edge in self.mentions:  # some targets are written after the edge
            source, role, _ = edges[edge_at[edge]]
            edges[edge_at[edge]] = (source, role, node_at[self.edges[edge][2]])
        return AmrGraph(
            labels=tuple(labels),
            variables=tuple(variables),
            edges=tuple(edges),
            metadata=self.metadata,
            spellings=tuple(sorted((node_at[node], atom) for node, atom in self.spellings)),
            mentions=tuple(sorted(edge_at[edge] for edge in self.mentions)),
            alignments=tuple(sorted((edge_at[edge], role, target) for edge, role, target in self.alignments)),
        )


def depth_first(graph: AmrGraph) -> list[tuple[int, bool]]:
    """List the edges in writing order, each with whether its target is defined at this place."""
    leaving: list[list[int]] = [[] for _ in graph.labels]
    for edge in range(len(graph.edges) - 1, -1, -1):  # reversed: popped in writing order
        leaving[graph.edges[edge][0]].append(edge)
    bare = set(graph.mentions)
    defined = [False] * len(graph.labels)
    defined[0] = True
    walk: list[tuple[int, bool]] = []
    stack = [leaving[0]]
    while stack:
        if not stack[-1]:
            stack.pop()
            continue
        edge = stack[-1].pop()
        target = graph.edges[edge][2]
        defines = not defined[target] and edge not in bare
        walk.append((edge, defines))
        if defines:
            defined[target] = True
            stack.append(leaving[target])
    return walk


def unreachable_text(graph: AmrGraph, reached: set[int]) -> str:
    lost = [graph.labels[node] or graph.variables[node] for node in range(len(graph.labels)) if node not in reached]
    return f"{len(lost)} nodes cannot be reached from the root: {', '.join(lost[:5])}"


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

    def escape(match: re.Match[str]) -> str:
        return "\\" + match[0] if match[0] in '\\"' else f"\\u{ord(match[0]):04x}"

    return f'"{_ESCAPED.sub(escape, label)}"'


def atom_value(atom: str) -> str:
    """Read an atom: the inverse of `spell`."""
    if not atom.startswith('"'):
        return atom
    return _ESCAPE.sub(lambda match: match[1] or chr(int(match[2], 16)), atom[1:-1])


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
    """Reject a graph that :func:`encode_penman` rejects, without writing it."""
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


_INSTANCE, _INVERTED = ":instance", "-of"


def _library_graph(graph: AmrGraph) -> penman.Graph:
    """Convert a graph to penman's, which keeps triples in the order of the text, and where it opens and closes nodes.

    ::

        (e / equal-01~e.2            e :instance equal-01     ~e.2
           :ARG1-of (p / prove-01    p :ARG1 e                Push(p)
              :polarity -)           p :instance prove-01
                                     p :polarity -            POP
           :ARG2 p)                  e :ARG2 p
    """
    library, layout, surface = require("penman"), require("penman.layout"), require("penman.surface")
    check_penman(graph)
    names = set(filter(None, graph.variables))
    spelled, marks = dict(graph.spellings), {edge: both for edge, *both in graph.alignments}
    triples: list[tuple[str, str, str | None]] = []
    markers: list[list[Any]] = []

    def add(triple: tuple[str, str, str | None], *epidata: Any) -> None:
        triples.append(triple)
        markers.append([each for each in epidata if each is not None])

    def aligned(kind: Any, mark: str) -> Any:
        return kind.from_string(mark) if mark else None

    def atom(node: int) -> tuple[str | None, Any]:
        """Return a concept or constant as written, and its alignment."""
        text = spelled.get(node, spell(graph.labels[node], () if graph.variables[node] else names))
        end = text.rfind('"') + 1 if text.startswith('"') else text.find("~")
        written, mark = (text, "") if end < 0 else (text[:end], text[end:])
        return written or None, aligned(surface.Alignment, mark)

    def define(node: int) -> None:
        concept, alignment = atom(node)
        add((graph.variables[node], _INSTANCE, concept), alignment)

    define(0)
    path = [0]
    for edge, defines in depth_first(graph):
        source, role, target = graph.edges[edge]
        while path[-1] != source:
            path.pop()
            markers[-1].append(layout.POP)
        variable, (role_mark, mark) = graph.variables[target], marks.get(edge, ("", ""))
        end, alignment = (variable, aligned(surface.Alignment, mark)) if variable else atom(target)
        triple = (graph.variables[source], role, end)
        if variable and role.endswith(_INVERTED):
            triple = (variable, role.removesuffix(_INVERTED), graph.variables[source])
        role_alignment = aligned(surface.RoleAlignment, role_mark)
        if defines and variable:
            add(triple, role_alignment, layout.Push(variable))
            define(target)
            path.append(target)
        else:
            add(triple, role_alignment, alignment)
    markers[-1] += [layout.POP] * (len(path) - 1)
    epidata: dict[Any, list[Any]] = {}
    for triple, marked in zip(triples, markers, strict=True):
        epidata.setdefault(triple, marked)  # of a triple that is written twice, penman has the first place only
    converted: penman.Graph = library.Graph(
        triples, top=graph.variables[0], epidata=epidata, metadata=dict(graph.metadata)
    )
    return converted


def _text_of_library_graph(graph: penman.Graph) -> str | None:
    """Write a graph in one pass over its triples, as its markers say; ``None`` if they do not lead to each node."""
    layout, surface = require("penman.layout"), require("penman.surface")
    variables, pushed, seen = graph.variables(), {graph.top}, set[Any]()
    pieces, path = [f"({graph.top}"], [graph.top]
    for triple in graph.triples:
        source, role, target = triple
        epidata = () if triple in seen else graph.epidata.get(triple, ())
        seen.add(triple)
        pushes = (each.variable for each in epidata if isinstance(each, layout.Push))
        opened = next((each for each in pushes if each not in pushed), None)
        ends = {source} if opened == target else {target} if opened == source else {source, target} & variables
        while path and path[-1] not in ends:
            path.pop()
            pieces.append(")")
        if not path:
            return None
        if path[-1] != source:
            role, target = role.removesuffix(_INVERTED) if role.endswith(_INVERTED) else role + _INVERTED, source
        marks = {each.mode: str(each) for each in epidata}
        pieces.append(f" {role}{marks.get(surface.RoleAlignment.mode, '')}")
        if opened is not None:
            pieces.append(f" ({opened}")
            path.append(opened)
            pushed.add(opened)
        elif target is not None:
            pieces.append(f" {target}{marks.get(surface.Alignment.mode, '')}")
        for each in epidata:
            if isinstance(each, layout.Pop) and len(path) > 1:
                path.pop()
                pieces.append(")")
    return "".join([*pieces, ")" * len(path)])
