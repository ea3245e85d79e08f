"""Virtual nodes: the nodes added to a graph before it is encoded, and those that represent the post.

The hierarchy of section 3.2 (`graph_tensors` adds an inverse of each edge)::

    VIRTUAL_DOCUMENT ──:virtual_document──▶ VIRTUAL_FORMULA  ──:virtual_formula──▶ each OPT and SLT node of the formula
                     ──:virtual_document──▶ VIRTUAL_SENTENCE ──:virtual_sentence──▶ each AMR node of the sentence
                     ──:virtual_document──▶ root of the AMR

The virtual node of a formula without trees is joined to its placeholder, so that no virtual node is isolated. Section
4.3.2 has two simpler conditions: ``none`` adds nothing and uses the placeholders and sentence roots themselves;
``global`` adds one node to these, the last, which ``:virtual_document`` joins to every node.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.types import FORMULA_MODES, FormulaMode
from pyterrier_mathamr.amr import AmrEdge

from .structure import GraphLayout

VirtualNodes = Literal["hierarchy", "none", "global"]
"""Which nodes represent the post (MathAMR+, section 4.3.2)."""

Auxiliary = Literal["none", "sequential", "circular", "full"]
"""Edges between formula and sentence virtual nodes (MathAMR+, section 4.3.3)."""


class VirtualKind(IntEnum):
    """What a retrieval vector represents; the vectors of a post are in this order."""

    FORMULA = 0
    SENTENCE = 1
    DOCUMENT = 2


VIRTUAL_ROLES = (":virtual_formula", ":virtual_sentence", ":virtual_document", ":auxiliary_vn")
"""Roles of the edges from virtual nodes, the first three in the order of :class:`VirtualKind`."""

_FORMULA, _SENTENCE, _DOCUMENT, _AUXILIARY = VIRTUAL_ROLES


class VirtualPart(NamedTuple):
    """The additions of virtual nodes to a graph of ``size`` nodes.

    Attributes:
        added: the kinds of the new nodes, numbered from ``size``.
        edges: ``(source, role, target)`` over old and new nodes, inverses not included.
        rows: the node of each retrieval vector: formulas, sentences, document.
        kinds: what each of ``rows`` represents.
    """

    added: list[VirtualKind]
    edges: list[AmrEdge]
    rows: list[int]
    kinds: list[VirtualKind]


def check_conditions(formulas: str, virtual_nodes: str, auxiliary: str) -> None:
    """Refuse values that are no condition of the paper's experiments."""
    options = (
        ("formulas", formulas, FORMULA_MODES),
        ("virtual_nodes", virtual_nodes, get_args(VirtualNodes)),
        ("auxiliary", auxiliary, get_args(Auxiliary)),
    )
    for option, value, allowed in options:
        if value not in allowed:
            raise ConfigError(option, value, "one of " + ", ".join(map(repr, allowed)))
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


def row_count(layout: GraphLayout, formulas: FormulaMode, virtual_nodes: VirtualNodes) -> int:
    """Count the retrieval vectors of a graph, ``len(virtual_part(…).rows)``, without its edges."""
    sentences = layout.sentences if virtual_nodes == "hierarchy" else layout.roots
    return len(layout.placeholders) * (formulas != "none") + len(sentences) + (virtual_nodes != "none")


def _hierarchy(layout: GraphLayout, formulas: FormulaMode, auxiliary: Auxiliary) -> VirtualPart:
    size = len(layout.kinds)
    members = _formula_members(layout, formulas)
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


def _formula_members(layout: GraphLayout, formulas: FormulaMode) -> list[list[int]]:
    """List the nodes below each formula's virtual node: those of the chosen trees, else the placeholder."""
    if formulas == "none":
        return []
    nothing: list[list[int]] = [[]] * len(layout.placeholders)
    opts = layout.opts if formulas != "slt" else nothing
    slts = layout.slts if formulas != "opt" else nothing
    return [opt + slt or [node] for opt, slt, node in zip(opts, slts, layout.placeholders, strict=True)]


def document_order(layout: GraphLayout, formulas: int) -> list[int]:
    """Order formula and sentence virtual nodes as in the text: each sentence, then the formulas in it."""
    sentence_of = {node: i for i, nodes in reversed([*enumerate(layout.sentences)]) for node in nodes}
    within: list[list[int]] = [[] for _ in range(len(layout.sentences) + 1)]
    current = 0  # 0 is before the first sentence, i + 1 after sentence i
    for formula in range(formulas):
        current = sentence_of.get(layout.placeholders[formula], current - 1) + 1
        within[current].append(formula)
    order = list(within[0])
    for i, found in enumerate(within[1:]):
        order += [formulas + i, *found]
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
