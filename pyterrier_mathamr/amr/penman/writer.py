"""`encode_penman`: an `AmrGraph` to Penman notation."""

from __future__ import annotations

from pyterrier_mathamr.amr.errors import AmrError
from pyterrier_mathamr.amr.graph import AmrGraph, depth_first, unreachable_text

from .atoms import is_role, is_symbol, spell


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
        found = {0, *(graph.edges[edge][2] for edge, _ in depth_first(graph))}
        if len(found) != len(reached):
            raise AmrError(unreachable_text(graph, found))


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
