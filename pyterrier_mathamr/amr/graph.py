"""`AmrGraph`: labels and variables of the nodes of an AMR, and its edges, in the order of Penman notation.

    (e / equal-01              node 0   labels[0] = "equal-01"    variables[0] = "e"
       :ARG1 (f / FORMULA_0)   node 1   labels[1] = "FORMULA_0"   variables[1] = "f"    edge (0, ":ARG1", 1)
       :polarity -             node 2   labels[2] = "-"           variables[2] = ""     edge (0, ":polarity", 2)
       :ARG2 f)                                                                         edge (0, ":ARG2", 1)

A label is the atom's value, without quotes, escapes and alignments. Where the label does not determine the spelling
(``"GMT"`` in quotes that it does not need), it is kept in ``spellings``, so that decoding and encoding lose nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from pyterrier_mathamr._common.errors import require

from .errors import AmrError

if TYPE_CHECKING:
    import penman

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
        require("penman")
        from .penman_graphs import to_penman

        return to_penman(self)

    @classmethod
    def from_penman(cls, graph: penman.Graph) -> AmrGraph:
        """Convert a graph of the library ``penman``.

        Args:
            graph: where its layout is not known, as of triples that a program made, penman chooses one.

        Raises:
            AmrError: it is not one connected graph. PenmanError: a variable, role or atom is not Penman notation.
        """
        require("penman")
        from .penman_graphs import from_penman

        return from_penman(graph)

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
