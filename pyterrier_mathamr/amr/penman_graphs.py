"""`AmrGraph` to `penman.Graph` and back, without recursion.

penman keeps triples in the order of the text, and beside them where the text opens and closes nodes::

    (e / equal-01~e.2            e :instance equal-01     ~e.2
       :ARG1-of (p / prove-01    p :ARG1 e                Push(p)
          :polarity -)           p :instance prove-01
                                 p :polarity -            POP
       :ARG2 p)                  e :ARG2 p
"""

from __future__ import annotations

from typing import Any

from penman import Graph, layout
from penman import encode as encode_with_penman
from penman.exceptions import PenmanError
from penman.surface import Alignment, RoleAlignment

from .errors import AmrError
from .graph import AmrGraph, depth_first
from .penman import check_penman, decode_penman, spell

_INSTANCE, _INVERTED = ":instance", "-of"


def to_penman(graph: AmrGraph) -> Graph:
    check_penman(graph)
    names = set(filter(None, graph.variables))
    spelled, marks = dict(graph.spellings), {edge: both for edge, *both in graph.alignments}
    triples: list[tuple[str, str, str | None]] = []
    markers: list[list[Any]] = []

    def add(triple: tuple[str, str, str | None], *epidata: Any) -> None:
        triples.append(triple)
        markers.append([each for each in epidata if each is not None])

    def atom(node: int) -> tuple[str | None, Alignment | None]:
        """Return a concept or constant as written, and its alignment."""
        text = spelled.get(node, spell(graph.labels[node], () if graph.variables[node] else names))
        end = text.rfind('"') + 1 if text.startswith('"') else text.find("~")
        written, mark = (text, "") if end < 0 else (text[:end], text[end:])
        return written or None, _alignment(Alignment, mark)

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
        end, alignment = (variable, _alignment(Alignment, mark)) if variable else atom(target)
        triple = (graph.variables[source], role, end)
        if variable and role.endswith(_INVERTED):
            triple = (variable, role.removesuffix(_INVERTED), graph.variables[source])
        add(triple, _alignment(RoleAlignment, role_mark), layout.Push(variable) if defines and variable else alignment)
        if defines and variable:
            define(target)
            path.append(target)
    markers[-1] += [layout.POP] * (len(path) - 1)
    epidata: dict[Any, list[Any]] = {}
    for triple, found in zip(triples, markers, strict=True):
        epidata.setdefault(triple, found)  # of a triple that is written twice, penman has the first place only
    return Graph(triples, top=graph.variables[0], epidata=epidata, metadata=dict(graph.metadata))


def _alignment(kind: Any, mark: str) -> Any:
    return kind.from_string(mark) if mark else None


def from_penman(graph: Graph) -> AmrGraph:
    if graph.top is None:
        raise AmrError("the graph has no triples, and an AMR has a root.")
    text = _written(graph)
    if text is None:
        try:
            text = encode_with_penman(Graph(graph.triples, graph.top, graph.epidata))
        except (PenmanError, RecursionError) as error:
            raise AmrError(f"penman finds no tree for the graph: {error}.") from error
    return decode_penman(text).with_metadata(tuple(graph.metadata.items()))


def _written(graph: Graph) -> str | None:
    """Write a graph in one pass over its triples, as its markers say; ``None`` if they do not lead to each node."""
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
        pieces.append(f" {role}{marks.get(RoleAlignment.mode, '')}")
        if opened is not None:
            pieces.append(f" ({opened}")
            path.append(opened)
            pushed.add(opened)
        elif target is not None:
            pieces.append(f" {target}{marks.get(Alignment.mode, '')}")
        for each in epidata:
            if isinstance(each, layout.Pop) and len(path) > 1:
                path.pop()
                pieces.append(")")
    return "".join([*pieces, ")" * len(path)])
