"""Contrast of formulas with their sub-expressions, node by node (Amador and Zanibbi, ICTIR 2025, section 3).

The formulas are read from a graph's tensors, each tree as arrays of its own::

    nodes of the graph   …  FORMULA_3  [ OPT in writing order ][ SLT in writing order ]  …  VIRTUAL_FORMULA

Each formula is a graph of its symbol layout tree (SLG) and one of its operator tree (OPG), edges both ways. Both have a
sub-expression, drawn anew for each batch: an internal node is removed at random and the largest part that remains is
kept. Leaves are never removed, since they are the operands::

    OPT of x^{2y} + 1      [U!plus]             without [U!plus]: two parts, {SUP x times 2 y} is the larger
                          |       |
                       [O!SUP]  [N!1]           without [U!times]: {plus SUP x 1}, {2}, {y}: the first is the largest

All six pairings of that paper's best condition ("Inner+Outer") are compared: (SLG, SLG-sub), (OPG, OPG-sub),
(SLG, OPG-sub), (OPG, SLG-sub), (SLG, OPG), (OPG, SLG); a model with one kind of tree has one pairing. Unlike there,
one encoder serves both kinds of graph, and each graph also has its VIRTUAL_FORMULA, joined to its nodes as in a post,
so that the vector that is searched for is trained along with the nodes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pyterrier_mathamr.graph import FIRST_VIRTUAL_ID, GraphBatch, GraphTensors, VirtualKind, Vocabulary, collate
from pyterrier_mathamr.model.encoder.maxsim import maxsim_matrix

TEMPERATURE = 0.1
"""τ of equation 2, the value of that paper."""

Ints = npt.NDArray[np.int64]


class TreeArrays(NamedTuple):
    """One tree of k nodes in writing order, root first.

    Attributes:
        labels: int64 ``[k]``, vocabulary ids.
        parents: int64 ``[k]``, -1 for the root, else the position of the parent, which comes first.
        relations: int64 ``[k]``, id of the edge from the parent; 0 for the root.
    """

    labels: Ints
    parents: Ints
    relations: Ints


class FormulaArrays(NamedTuple):
    """One formula.

    Attributes:
        opt: the operator tree, ``None`` if the graph has none.
        slt: the symbol layout tree, likewise.
        key: 0 or more, equal for formulas whose trees have the same labels and relations, and for all without trees.
    """

    opt: TreeArrays | None
    slt: TreeArrays | None
    key: int


class Expressions(NamedTuple):
    """Graphs of formulas and of their sub-expressions.

    Attributes:
        graphs: in blocks of N: [SLG | OPG | SLG-sub | OPG-sub], or [G | G-sub] where formulas have one kind of tree.
            Each node has a row.
        formulas: N.
    """

    graphs: GraphBatch
    formulas: int


def formulas_of(graph: GraphTensors, vocabulary: Vocabulary) -> list[FormulaArrays]:
    """Take the formulas out of a graph with the hierarchy of virtual nodes.

    Args:
        graph: the tensors of one post.
        vocabulary: of its labels and relations.

    Returns:
        One for each formula virtual node, in order.
    """
    half = graph.relations.size // 2  # the inverses follow
    source, target = graph.edges[:, :half].astype(np.int64)
    relation = graph.relations[:half].astype(np.int64)
    member = graph.nodes[source] == FIRST_VIRTUAL_ID + VirtualKind.FORMULA
    owner = np.full(graph.nodes.size, -1, dtype=np.int64)  # the virtual node of each node of a tree
    owner[target[member]] = source[member]
    inside = (owner[target] >= 0) & (owner[source] == owner[target])
    parent, role = np.full((2, graph.nodes.size), -1, dtype=np.int64)
    parent[target[inside]], role[target[inside]] = source[inside], relation[inside]
    kinds = [vocabulary.relation_id(name) for name in (":opt", ":slt")]
    enters = (owner[target] >= 0) & (owner[source] < 0) & np.isin(relation, kinds)
    role[target[enters]] = relation[enters]
    rows = graph.virtual[graph.kinds == VirtualKind.FORMULA].astype(np.int64)
    order = np.argsort(source[member], kind="stable")
    starts = np.searchsorted(source[member][order], rows)
    members = np.split(target[member][order], starts[1:]) if rows.size else []
    return [_formula(np.sort(nodes), graph.nodes, parent, role, kinds) for nodes in members]


def _formula(nodes: Ints, labels: npt.NDArray[np.int32], parent: Ints, role: Ints, kinds: list[int]) -> FormulaArrays:
    """Cut a formula's nodes into its trees, each a run of nodes that begins with one without a parent inside."""
    trees: list[TreeArrays | None] = [None, None]
    starts = np.flatnonzero(parent[nodes] < 0)
    for run in np.split(nodes, starts[1:]):
        first = run[0]
        if role[first] in kinds:
            above, roles = parent[run] - first, role[run].copy()
            above[0], roles[0] = -1, 0
            trees[kinds.index(role[first])] = TreeArrays(labels[run].astype(np.int64), above, roles)
    text = b"|".join(b"" if tree is None else np.concatenate(tree).tobytes() for tree in trees)
    key = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1
    return FormulaArrays(trees[0], trees[1], key)


def draw_expressions(
    posts: Sequence[Sequence[FormulaArrays]], vocabulary: Vocabulary, generator: torch.Generator
) -> Expressions | None:
    """Draw a formula of each post, and a sub-expression of each of its trees.

    Args:
        posts: the formulas of each post.
        vocabulary: has the relation that joins VIRTUAL_FORMULA to its nodes.
        generator: the same seed draws the same.

    Returns:
        Graphs of distinct formulas, all with the same number of trees and no tree of a single node; ``None`` if fewer
        than two posts have such a formula that was not drawn for an earlier post.
    """
    chosen: dict[int, list[TreeArrays]] = {}
    most = max((len(_trees(formula)) for formulas in posts for formula in formulas), default=0)
    for formulas in posts:
        fit = [formula for formula in formulas if most and len(_trees(formula)) == most and formula.key not in chosen]
        if fit:
            formula = fit[int(torch.randint(len(fit), (), generator=generator))]
            chosen[formula.key] = _trees(formula)
    if len(chosen) < 2:
        return None
    role = vocabulary.relation_id(":virtual_formula")
    whole = [tree for kind in zip(*chosen.values(), strict=True) for tree in kind]
    parts = [subexpression(tree, generator) for tree in whole]
    return Expressions(collate([_graph(tree, role) for tree in (*whole, *parts)]), len(chosen))


def subexpression(tree: TreeArrays, generator: torch.Generator) -> TreeArrays:
    """Remove an internal node at random and keep the largest part that remains, the earliest of several.

    Args:
        tree: at least two nodes.
        generator: draws the node.

    Returns:
        A tree of at least one node.
    """
    size = np.ones(len(tree.labels), dtype=np.int64)  # nodes at and below each node
    for node in range(len(size) - 1, 0, -1):
        size[tree.parents[node]] += size[node]
    internal = np.flatnonzero(size > 1)
    removed = int(internal[int(torch.randint(len(internal), (), generator=generator))])
    children = np.flatnonzero(tree.parents == removed)
    child = int(children[np.argmax(size[children])])
    end = removed + int(size[removed])  # descendants follow their node in writing order
    if len(size) - size[removed] >= size[child]:
        kept = np.r_[0:removed, end : len(size)]
    else:
        kept = np.arange(child, child + size[child])
    position = np.full(len(size) + 1, -1, dtype=np.int64)
    position[kept] = np.arange(len(kept))
    relations = tree.relations[kept].copy()
    relations[0] = 0
    return TreeArrays(tree.labels[kept], position[tree.parents[kept]], relations)


def subexpression_contrast(rows: Tensor, offsets: Tensor, count: int, temperature: float = TEMPERATURE) -> Tensor:
    """Compute L of equation 3: the mean of ℓᵢ over the nodes of all SLGs and over those of all OPGs, in equal parts.

    Equation 2: ℓᵢ = -log( exp(zᵢ·z⁺/τ) / Σₖ exp(zᵢ·zₖ⁻/τ) ), where z⁺ is the node of the same formula's other graph
    that is most similar to zᵢ, and zₖ⁻ that of the k-th of the N - 1 other formulas; as printed there, the positive is
    not in the sum. ℓᵢ is also averaged over the pairings of each kind.

    Args:
        rows: float32 ``[r, d]``, unit vectors of all nodes of the graphs end to end.
        offsets: int64 ``[blocks · N + 1]``, blocks as in :class:`Expressions`.
        count: N, at least 2.
        temperature: τ.

    Returns:
        A scalar.
    """
    starts = offsets[::count]
    blocks = starts.numel() - 1
    own = torch.arange(count, device=rows.device)
    kinds = []
    for first in range(blocks // 2):
        nodes = rows[starts[first] : starts[first + 1]]  # [M, d]
        formula = torch.repeat_interleave(own, offsets[first * count : (first + 1) * count + 1].diff())  # [M]
        each = torch.arange(nodes.size(0) + 1, device=rows.device)
        scores = maxsim_matrix(nodes, each, rows, offsets).view(-1, blocks, count)  # [M, blocks, N]
        logits = scores[:, [block for block in range(blocks) if block != first]] / temperature
        mine = formula.view(-1, 1, 1).expand(-1, blocks - 1, 1)
        positive = logits.gather(2, mine).squeeze(2)  # [M, blocks - 1]
        negatives = logits.scatter(2, mine, -torch.inf)
        kinds.append((negatives.logsumexp(2) - positive).mean())
    return torch.stack(kinds).mean()


def _trees(formula: FormulaArrays) -> list[TreeArrays]:
    """List the trees of a formula that have an internal node, the SLT first."""
    return [tree for tree in (formula.slt, formula.opt) if tree is not None and len(tree.labels) > 1]


def _graph(tree: TreeArrays, role: int) -> GraphTensors:
    """Join a tree's nodes by its edges and to a VIRTUAL_FORMULA, which comes last; each node gets a row."""
    size = len(tree.labels)
    below = np.arange(1, size)
    edges = np.stack(
        [np.concatenate([tree.parents[1:], np.full(size, size)]), np.concatenate([below, np.arange(size)])]
    ).astype(np.int32)
    relations = np.concatenate([tree.relations[1:], np.full(size, role)]).astype(np.int16)
    return GraphTensors(
        nodes=np.append(tree.labels, FIRST_VIRTUAL_ID + VirtualKind.FORMULA).astype(np.int32),
        edges=np.concatenate([edges, edges[::-1]], axis=1),
        relations=np.concatenate([relations, relations + np.int16(1)]),
        virtual=np.arange(size + 1, dtype=np.int32),
        kinds=np.full(size + 1, VirtualKind.FORMULA, dtype=np.int8),
    )
