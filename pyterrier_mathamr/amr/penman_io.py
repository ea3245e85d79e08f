"""Penman notation to `AmrGraph` and back, without recursion: a graph may be as deep as memory allows.

    Record := ('#' ('::' Key Value)*)* Node              Role   := ':' and all up to space " ( ) / : ~
    Node   := '(' Variable ('/' Atom?)? Edge* ')'        Atom   := Symbol | '"' ... '"', with an alignment ~e.4 or none
    Edge   := Role (Atom | Node)?                        Symbol := one or more characters up to space " ( ) / : ~

On what penman 1.3 takes, the graph is that of ``penman.decode`` and the text that of ``penman.encode``. Three things
are errors here that penman lets pass: text after the graph, a variable defined twice, and the empty node ``()``. An
edge that is written twice is kept twice, where penman loses track of what it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .errors import AmrError
from .graph import AmrGraph, depth_first, unreachable_text
from .penman_atoms import is_role, is_symbol, spell
from .penman_reader import Reader


class PenmanRecord(NamedTuple):
    """One graph's text in a file: the number of its first line, and the lines."""

    line: int
    text: str


def decode_penman(text: str, *, first_line: int = 1) -> AmrGraph:
    """Read one graph.

    Args:
        text: Penman notation with its comment lines.
        first_line: number of the text's first line in its file, for messages.

    Returns:
        The graph, nodes and edges in the order of the text.

    Raises:
        PenmanError: the text is not one graph; says line and offset, and points with a caret.
    """
    return Reader(text.splitlines(), first_line).graph()


def iter_records(lines: Iterable[str]) -> Iterator[PenmanRecord]:
    """Cut a file of graphs at its blank lines; records of comments alone, such as a file's head, are left out."""
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
        PenmanError: a record is malformed; its line is that of the file. To go on after a bad record, decode the
            texts of `iter_records` one by one.
    """
    for record in iter_records(lines):
        yield decode_penman(record.text, first_line=record.line)


def encode_penman(graph: AmrGraph, indent: int | None = None) -> str:
    """Write one graph.

    Args:
        graph: the graph; edges are written in their order, each node where it is first met from the root.
        indent: ``None`` puts the graph on one line, a number indents each level by so many spaces, ``-1`` (penman's own
            default) puts each edge under its node's concept. Indented text grows with the square of the depth.

    Returns:
        Metadata as comment lines, then the graph; no line end after it.

    Raises:
        AmrError: the graph cannot be written so that it is read back: a node out of reach of the root, two nodes with
            one variable, or a role, variable or piece of metadata that Penman notation has no form for.
    """
    _check(graph)
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
    path = [(0, edges_column(0, 0))]  # the open nodes, each with the column of its edges
    fresh = not graph.labels[0] and 0 not in spelled  # after (x, without a concept, the first edge stays on the line
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


def _check(graph: AmrGraph) -> None:
    """Refuse what would not be read back as it is."""
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
