"""The parts of a MathAMR+ graph that a drawing separates: its sentences and the two trees of each formula.

Nodes in no sentence (``multi-sentence`` itself, formulas that the parser dropped) are a part of their own, the joint.
An edge back to a node drawn elsewhere becomes a leaf of the same label, both then with their variable in Penman
notation, so that no line crosses the picture.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pyterrier_mathamr.amr import AmrGraph
from pyterrier_mathamr.graph.mathamr import MathAMRGraph
from pyterrier_mathamr.graph.structure import NodeKind, layout_of


@dataclass(frozen=True, slots=True)
class PartNode:
    """A node of a part.

    Attributes:
        label: concept, constant or formula symbol; with its variable where the node is mentioned elsewhere.
        full: the whole label with its variable, shown on demand.
        parent: index of its parent in the part, -1 for the part's root.
        role: of the edge from its parent; of a sentence's root, of the edge from the joint.
        formula: ``i`` of the placeholder ``FORMULA_i``, otherwise -1.
        again: whether it only mentions a node.
    """

    label: str
    full: str
    parent: int
    role: str
    formula: int = -1
    again: bool = False


@dataclass(frozen=True, slots=True)
class GraphParts:
    """The nodes of each part, parents before children.

    Attributes:
        joint: nodes in no sentence; empty in a graph of one sentence.
        sentences: one for each sentence.
        opts: the operator tree of each formula, empty where it has none.
        slts: the symbol layout tree of each formula.
    """

    joint: tuple[PartNode, ...]
    sentences: tuple[tuple[PartNode, ...], ...]
    opts: tuple[tuple[PartNode, ...], ...]
    slts: tuple[tuple[PartNode, ...], ...]


def parts_of(graph: MathAMRGraph) -> GraphParts:
    """Take a graph apart."""
    layout = layout_of(graph.amr, graph.n_formulas, graph.id)
    begins = {root: i for i, root in enumerate(layout.roots)}
    mentioned = _mentioned(graph.amr)
    joint, sentences = _Part(graph.amr, mentioned), [_Part(graph.amr, mentioned) for _ in layout.roots]
    trees = {kind: [_Part(graph.amr, mentioned) for _ in layout.opts] for kind in (NodeKind.OPT, NodeKind.SLT)}
    numbers = {node: i for i, node in enumerate(layout.placeholders)}
    firsts = {nodes[0]: (kind, i) for kind, found in ((NodeKind.OPT, layout.opts), (NodeKind.SLT, layout.slts))
              for i, nodes in enumerate(found) if nodes}  # fmt: skip
    part_of: dict[int, _Part] = {}

    def place(node: int, role: str, source: int) -> None:
        if node in begins:
            part = sentences[begins[node]]
        elif node in firsts:
            kind, number = firsts[node]
            part = trees[kind][number]
        else:
            part = part_of[source] if source >= 0 else joint
        part.add(node, role, source, numbers.get(node, -1))
        part_of[node] = part

    place(0, "", -1)
    bare = frozenset(graph.amr.mentions)
    for edge, (source, role, target) in enumerate(graph.amr.edges):
        if target in part_of or edge in bare:
            part_of[source].mention(target, role, source)
        else:
            place(target, role, source)
    return GraphParts(tuple(joint.nodes), _nodes(sentences), _nodes(trees[NodeKind.OPT]), _nodes(trees[NodeKind.SLT]))


def _mentioned(amr: AmrGraph) -> frozenset[int]:
    """The nodes that are written more than once."""
    counts = Counter(target for _, _, target in amr.edges) + Counter([0])
    return frozenset(node for node, count in counts.items() if count > 1 and amr.variables[node])


def _nodes(parts: list[_Part]) -> tuple[tuple[PartNode, ...], ...]:
    return tuple(tuple(part.nodes) for part in parts)


class _Part:
    """A part that grows along the edges in writing order."""

    def __init__(self, amr: AmrGraph, mentioned: frozenset[int]) -> None:
        self.amr, self.mentioned = amr, mentioned
        self.nodes: list[PartNode] = []
        self.index: dict[int, int] = {}

    def add(self, node: int, role: str, source: int, formula: int) -> None:
        """Add a node of this part."""
        full = self._full(node)
        label = full if node in self.mentioned else self.amr.labels[node]
        self.index[node] = len(self.nodes)
        self.nodes.append(PartNode(label, full, self.index.get(source, -1), role, formula))

    def mention(self, node: int, role: str, source: int) -> None:
        """Add a leaf for a node drawn elsewhere."""
        full = self._full(node)
        self.nodes.append(PartNode(full, f"again {full}", self.index[source], role, again=True))

    def _full(self, node: int) -> str:
        label, variable = self.amr.labels[node], self.amr.variables[node]
        return f"{variable} / {label}" if variable else label
