"""The formulas of a graph's arrays: each tree as arrays of its own, and which formulas are the same one.

::

    nodes of the graph   …  FORMULA_3  [ OPT in writing order ][ SLT in writing order ]  …  VIRTUAL_FORMULA
    labels               vocabulary id of each node of the tree, root first
    parents              -1 for the root, else the place of the parent, always an earlier one
    relations            relation id of the edge from the parent; 0 for the root
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.graph import FIRST_VIRTUAL_ID, GraphTensors, VirtualKind, Vocabulary

NO_FORMULA = -1
"""The key of a retrieval row that stands for no formula."""

Ints = npt.NDArray[np.int64]


class TreeArrays(NamedTuple):
    """One tree: labels, parents and relations, int64 ``[k]`` each, as the module draws them."""

    labels: Ints
    parents: Ints
    relations: Ints


class FormulaArrays(NamedTuple):
    """One formula as the model sees it.

    Attributes:
        opt: the operator tree, ``None`` where the graph has none of it.
        slt: the symbol layout tree, likewise.
        key: 0 or more; formulas have the same key where all their trees are equal in labels and relations, so two
            that differ only in what the vocabulary does not know are the same one. All formulas without trees are.
    """

    opt: TreeArrays | None
    slt: TreeArrays | None
    key: int


def formulas_of(graph: GraphTensors, vocabulary: Vocabulary) -> list[FormulaArrays]:
    """Take the formulas out of a graph with the hierarchy of virtual nodes.

    Args:
        graph: the arrays of one post.
        vocabulary: the one they were made with.

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


def formula_keys(graph: GraphTensors, formulas: list[FormulaArrays]) -> Ints:
    """Give the key of each retrieval row: int64 ``[n]``, ``NO_FORMULA`` for sentences and the document.

    Args:
        graph: the arrays of one post.
        formulas: its formulas, from :func:`formulas_of`.
    """
    keys = np.full(graph.kinds.size, NO_FORMULA, dtype=np.int64)
    keys[graph.kinds == VirtualKind.FORMULA] = [formula.key for formula in formulas]
    return keys


def _formula(nodes: Ints, labels: npt.NDArray[np.int32], parent: Ints, role: Ints, kinds: list[int]) -> FormulaArrays:
    """Cut a formula's nodes into its trees, each a run of nodes that begins where no parent is inside."""
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
