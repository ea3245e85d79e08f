"""`GraphLayout`: where the formulas and sentences of a graph are, found in one pass over its edges as written.

    (m / multi-sentence            in no sentence
       :snt1 (e / equal-01         root of sentence 0
          :ARG1 (f / FORMULA_0     placeholder 0, in sentence 0
             :opt (o / U!eq …)     OPT of formula 0: all nodes written below
             :slt (s / V!x …)))    SLT of formula 0
       :snt2 (m2 / multi-sentence  nested multi-sentence is flattened
          :snt1 (…)                root of sentence 1
          :snt2 (… :ARG0 e)))      root of sentence 2; it mentions e, which is a member of sentences 0 and 2

A graph without ``multi-sentence`` at its root is one sentence.

Virtual nodes are added to a graph before it is encoded (section 3.2; `graph_tensors` adds an inverse of each edge)::

    VIRTUAL_DOCUMENT ──:virtual_document──▶ VIRTUAL_FORMULA  ──:virtual_formula──▶ each OPT and SLT node of the formula
                     ──:virtual_document──▶ VIRTUAL_SENTENCE ──:virtual_sentence──▶ each AMR node of the sentence
                     ──:virtual_document──▶ root of the AMR

The virtual node of a formula without trees is joined to its placeholder, so that no virtual node is isolated. Section
4.3.2 has two simpler conditions: ``none`` adds nothing and uses the placeholders and sentence roots themselves;
``global`` adds one node to these, the last, which ``:virtual_document`` joins to every node.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from pyterrier_mathamr._common.errors import ConfigError, MathAMRError
from pyterrier_mathamr._common.parameters import one_of
from pyterrier_mathamr._common.types import FORMULA_MODES, FormulaMode
from pyterrier_mathamr.amr.graph import AmrEdge, AmrGraph


class GraphError(MathAMRError):
    """A graph, or something read or made from graphs, is invalid."""

    where: str
    reason: str
    template = "{where}: {reason}."


class MissingPlaceholderError(GraphError):
    """Some formulas, by their ``numbers``, have no node in their graph."""

    numbers: Sequence[int]
    advice = "Attach the trees with attach_formulas, which adds the placeholders that a parser dropped."


SENTENCES = "multi-sentence"
"""The concept that joins sentences."""

_SENTENCE_ROLE = re.compile(r":snt([0-9]{1,9})[0-9]*")
_TREES = (":opt", ":slt")
_PREFIX = "FORMULA_"


class NodeKind(IntEnum):
    """The kind of a node; it decides on the normalization and on the modes that omit the node."""

    CONCEPT = 0
    CONSTANT = 1
    OPT = 2
    SLT = 3


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """The parts of one graph, as node indices.

    Attributes:
        kinds: the kind of each node.
        placeholders: the node of ``FORMULA_i``, in order of ``i``.
        opts: the nodes of formula ``i``'s operator tree in writing order, root first; empty if it has none.
        slts: the nodes of its symbol layout tree.
        sentences: the AMR nodes of each sentence: nodes defined in it, root first, then nodes it only mentions.
    """

    kinds: list[NodeKind]
    placeholders: list[int]
    opts: list[list[int]]
    slts: list[list[int]]
    sentences: list[list[int]]

    @property
    def roots(self) -> list[int]:
        """The root of each sentence, in order."""
        return [nodes[0] for nodes in self.sentences]


def placeholder_number(label: str) -> int:
    """Return the number of a placeholder's label, or -1 for any other label."""
    if not label.startswith(_PREFIX):
        return -1
    digits = label[len(_PREFIX) :]
    is_number = 0 < len(digits) < 10 and digits.isascii() and digits.isdigit()
    return int(digits) if is_number and (digits == "0" or digits[0] != "0") else -1


def layout_of(amr: AmrGraph, formulas: int, graph_id: str = "") -> GraphLayout:
    """Find the parts of a graph in writing order, with or without trees, in one pass over its edges.

    A label ``FORMULA_i`` with ``i`` not below the number of ``formulas`` is a plain concept.

    Raises:
        MissingPlaceholderError: a formula has no node.
        GraphError: an edge leaves a node before the node is written.
    """
    labels, first_tree = amr.labels, NodeKind.OPT
    kinds = [NodeKind.CONCEPT if variable else NodeKind.CONSTANT for variable in amr.variables]
    numbered = ((node, placeholder_number(label)) for node, label in enumerate(labels) if label[:1] == "F")
    numbers = {node: number for node, number in numbered if 0 <= number < formulas}
    layout = GraphLayout(kinds, [-1] * formulas, [[] for _ in range(formulas)], [[] for _ in range(formulas)], [])
    part_of: list[list[int] | None] = [None] * len(labels)  # the sentence or tree of each node

    def begin(node: int) -> None:
        part_of[node] = sentence = [node]
        layout.sentences.append(sentence)

    joints = {0} if labels[0] == SENTENCES else set[int]()
    if not joints:
        begin(0)
    special = joints | numbers.keys()
    placed, bare = bytearray(len(labels)), frozenset(amr.mentions)
    placed[0] = 1
    again: list[tuple[int, int]] = []
    for index, (source, role, target) in enumerate(amr.edges):
        if not placed[source]:
            raise _unordered(graph_id)
        if placed[target] or index in bare:
            again.append((source, target))
            continue
        placed[target] = 1
        part = part_of[source]
        if source in special and source in joints:  # other nodes below a joint are in no sentence
            if _SENTENCE_ROLE.fullmatch(role) and labels[target] == SENTENCES:
                joints.add(target)
                special.add(target)
            elif _SENTENCE_ROLE.fullmatch(role):
                begin(target)
        elif source in special and role in _TREES and kinds[source] < first_tree:
            kinds[target], trees = (NodeKind.OPT, layout.opts) if role == ":opt" else (NodeKind.SLT, layout.slts)
            part_of[target] = tree = trees[numbers[source]]
            tree.append(target)
        elif part is not None:
            part_of[target] = part
            part.append(target)
            if kinds[source] >= first_tree:
                kinds[target] = kinds[source]
    if not all(placed):
        raise _unordered(graph_id)
    for node, number in numbers.items():
        if layout.placeholders[number] < 0 and kinds[node] < first_tree:
            layout.placeholders[number] = node
    if missing := [i for i, node in enumerate(layout.placeholders) if node < 0]:
        names = ", ".join(f"{_PREFIX}{number}" for number in missing[:5])
        raise MissingPlaceholderError(f"graph {graph_id!r} of {formulas} formulas", f"no node for {names}", missing)
    seen: set[tuple[int, int]] = set()
    for source, target in again:  # nodes that a sentence only mentions
        part = part_of[source]
        if part is None or part is part_of[target] or max(kinds[source], kinds[target]) >= first_tree:
            continue
        if (id(part), target) not in seen:
            seen.add((id(part), target))
            part.append(target)
    if not layout.sentences:
        layout.sentences.append([node for node, kind in enumerate(kinds) if kind < first_tree])
    return layout


def _unordered(graph_id: str) -> GraphError:
    reason = "an edge leaves a node that is not written yet, or a node is never reached; use AmrGraph.arranged()"
    return GraphError(f"graph {graph_id!r}", reason)


def sentence_numbers(amr: AmrGraph) -> list[int]:
    """Find for each sentence the ``i`` of the root's ``:snti`` above it; 1 in a graph of one sentence."""
    if amr.labels[0] != SENTENCES:
        return [1]
    joints, numbers = {0: 0}, list[int]()  # multi-sentence nodes with their number in the root
    last, bare = 0, frozenset(amr.mentions)  # nodes are numbered in writing order, so a new one has the next number
    for index, (source, role, target) in enumerate(amr.edges):
        if target <= last or index in bare:
            continue
        last = target
        if source in joints and (match := _SENTENCE_ROLE.fullmatch(role)):
            number = joints[source] or int(match[1])
            if amr.labels[target] == SENTENCES:
                joints[target] = number
            else:
                numbers.append(number)
    return numbers or [1]


VirtualNodes = Literal["hierarchy", "none", "global"]
"""Which nodes represent the post (MathAMR+, section 4.3.2)."""

Auxiliary = Literal["none", "sequential", "circular", "full"]
"""Edges between formula and sentence virtual nodes (MathAMR+, section 4.3.3)."""


FORMULAS = one_of(*FORMULA_MODES)
"""The rule of the trees of formulas that are used."""

_VIRTUAL_NODES = one_of(*get_args(VirtualNodes))
_AUXILIARY_EDGES = one_of(*get_args(Auxiliary))


class VirtualKind(IntEnum):
    """The node behind a retrieval vector; the vectors of a post are in this order."""

    FORMULA = 0
    SENTENCE = 1
    DOCUMENT = 2


VIRTUAL_ROLES = (":virtual_formula", ":virtual_sentence", ":virtual_document", ":auxiliary_vn")
"""Roles of the edges from virtual nodes, the first three in the order of :class:`VirtualKind`."""

_FORMULA, _SENTENCE, _DOCUMENT, _AUXILIARY = VIRTUAL_ROLES


class VirtualPart(NamedTuple):
    """The additions of virtual nodes to a graph of ``size`` nodes."""

    added: list[VirtualKind]  # the kinds of the new nodes, numbered from ``size``
    edges: list[AmrEdge]  # over old and new nodes, inverses not included
    rows: list[int]  # the node of each retrieval vector: formulas, sentences, document
    kinds: list[VirtualKind]  # the kind of each of ``rows``


def check_conditions(formulas: str, virtual_nodes: str, auxiliary: str) -> None:
    """Raise an error for values that the paper's experiments do not have."""
    FORMULAS.check("formulas", formulas)
    _VIRTUAL_NODES.check("virtual_nodes", virtual_nodes)
    _AUXILIARY_EDGES.check("auxiliary", auxiliary)
    if auxiliary != "none" and virtual_nodes != "hierarchy":
        raise ConfigError("auxiliary", auxiliary, f"'none' with virtual_nodes={virtual_nodes!r}")


def virtual_part(
    layout: GraphLayout, formulas: FormulaMode, virtual_nodes: VirtualNodes, auxiliary: Auxiliary
) -> VirtualPart:
    """Compute the virtual nodes of a graph and their edges (MathAMR+, sections 3.2, 4.3.2 and 4.3.3)."""
    if virtual_nodes == "hierarchy":
        return _hierarchy(layout, formulas, auxiliary)
    placeholders = layout.placeholders if formulas != "none" else []
    rows = [*placeholders, *layout.roots]
    kinds = [VirtualKind.FORMULA] * len(placeholders) + [VirtualKind.SENTENCE] * len(layout.roots)
    if virtual_nodes == "none":
        return VirtualPart([], [], rows, kinds)
    size = len(layout.kinds)
    edges = [(size, _DOCUMENT, node) for node in range(size)]
    return VirtualPart([VirtualKind.DOCUMENT], edges, [*rows, size], [*kinds, VirtualKind.DOCUMENT])


def _hierarchy(layout: GraphLayout, formulas: FormulaMode, auxiliary: Auxiliary) -> VirtualPart:
    size = len(layout.kinds)
    members: list[list[int]] = []  # below each formula's virtual node: the chosen trees, else the placeholder
    if formulas != "none":
        for opt, slt, placeholder in zip(layout.opts, layout.slts, layout.placeholders, strict=True):
            members.append([*(opt if formulas != "slt" else ()), *(slt if formulas != "opt" else ())] or [placeholder])
    sentence, document = size + len(members), size + len(members) + len(layout.sentences)
    edges: list[AmrEdge] = []
    for node, nodes in enumerate(members, size):
        edges += [(node, _FORMULA, member) for member in nodes]
    for node, nodes in enumerate(layout.sentences, sentence):
        edges += [(node, _SENTENCE, member) for member in nodes]
    edges += [(document, _DOCUMENT, node) for node in range(size, document)]
    edges.append((document, _DOCUMENT, 0))
    if auxiliary != "none":
        order = document_order(layout, len(members))
        edges += [(size + a, _AUXILIARY, size + b) for a, b in auxiliary_edges(order, auxiliary)]
    kinds = [VirtualKind.FORMULA] * len(members) + [VirtualKind.SENTENCE] * len(layout.sentences)
    kinds.append(VirtualKind.DOCUMENT)
    return VirtualPart(kinds, edges, list(range(size, document + 1)), kinds)


def document_order(layout: GraphLayout, formulas: int) -> list[int]:
    """Order formula and sentence virtual nodes as in the text: each sentence, then the formulas in it."""
    sentence_of = {node: i for i, nodes in reversed([*enumerate(layout.sentences)]) for node in nodes}
    within: list[list[int]] = [[] for _ in range(len(layout.sentences) + 1)]
    current = 0  # 0 is before the first sentence, i + 1 after sentence i
    for formula in range(formulas):
        current = sentence_of.get(layout.placeholders[formula], current - 1) + 1
        within[current].append(formula)
    order = list(within[0])
    for i, inside in enumerate(within[1:]):
        order += [formulas + i, *inside]
    return order


def auxiliary_edges(order: Sequence[int], auxiliary: Auxiliary) -> list[tuple[int, int]]:
    """List the auxiliary edges between virtual nodes (MathAMR+, section 4.3.3)."""
    if auxiliary == "none":
        return []
    if auxiliary == "full":
        return [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
    edges = list(pairwise(order))
    if auxiliary == "circular" and len(order) > 1:
        edges.append((order[-1], order[0]))
    return edges
