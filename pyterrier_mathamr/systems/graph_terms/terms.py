"""The terms of a MathAMR graph, of four kinds.

::

    (s / solve-01                           edges      FORMULA|:opt|U!plus   U!plus|:op0|V!x   U!plus|:op0|N!1  …
       :ARG1 (e / equation                  nodes      U!plus   V!x   N!1   V!x   +   N!1
          :mod (f / FORMULA_0               concepts   solve-01   equation
             :opt (U!plus …)                relations  solve-01|:ARG1|equation   equation|:mod|FORMULA
             :slt (V!x …))))

Formulas have numbers in a post, which mean nothing in another one: a placeholder is ``FORMULA`` wherever it is an end
of an edge, and is no term itself. Inverted roles are normalised: ``:ARG0-of`` is ``:ARG0`` the other way.
"""

from __future__ import annotations

from itertools import chain
from typing import Literal, NamedTuple, get_args

from pyterrier_mathamr.graph import EMPTY_AMR, MathAMRGraph, NodeKind, layout_of
from pyterrier_mathamr.graph.structure import placeholder_number

GraphField = Literal["edges", "nodes", "concepts", "relations"]
FIELDS: tuple[GraphField, ...] = get_args(GraphField)
"""The kinds of terms: edges and nodes of both trees of formulas, concepts of the AMR and pairs of them."""

FORMULA = "FORMULA"


class GraphTerms(NamedTuple):
    """The terms of a graph, each as often as it occurs.

    Attributes:
        edges: of each formula, ``label|edge|label`` for each edge of both trees and for those that lead to their roots.
        nodes: of each formula, the labels of both trees.
        concepts: the concepts and constants of the AMR.
        relations: ``concept|role|concept`` for each edge of the AMR.
    """

    edges: tuple[list[str], ...]
    nodes: tuple[list[str], ...]
    concepts: list[str]
    relations: list[str]

    def of(self, field: GraphField) -> list[str]:
        """Return the terms of one kind, those of formulas in their order."""
        if field == "concepts":
            return self.concepts
        if field == "relations":
            return self.relations
        return list(chain.from_iterable(self.edges if field == "edges" else self.nodes))


def terms_of_graph(graph: MathAMRGraph) -> GraphTerms:
    """List the terms of a graph.

    Raises:
        GraphError: its nodes are not in the order of writing; see ``AmrGraph.arranged()``.
    """
    amr, layout = graph.amr, layout_of(graph.amr, graph.n_formulas, graph.id)
    trees = [[*opt, *slt] for opt, slt in zip(layout.opts, layout.slts, strict=True)]
    formula_of = {node: formula for formula, nodes in enumerate(trees) for node in nodes}
    names = [
        FORMULA if label[:1] == "F" and 0 <= placeholder_number(label) < graph.n_formulas else label
        for label in amr.labels
    ]
    edges: tuple[list[str], ...] = tuple([] for _ in trees)
    for source, role, target in amr.edges:
        if target in formula_of:
            edges[formula_of[target]].append(f"{names[source]}|{role}|{names[target]}")
    in_amr = [kind < NodeKind.OPT and name not in _NO_CONCEPTS for kind, name in zip(layout.kinds, names, strict=True)]
    return GraphTerms(
        edges,
        tuple([amr.labels[node] for node in nodes] for nodes in trees),
        [name for name, is_there in zip(names, in_amr, strict=True) if is_there and name != FORMULA],
        [f"{names[s]}|{role}|{names[t]}" for s, role, t in amr.triples() if in_amr[s] and in_amr[t]],
    )


_NO_CONCEPTS = frozenset({"", *EMPTY_AMR.labels})
