"""Distances equal the specification's worked pairs, and apted's."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from apted import APTED, Config
from hypothesis import given, settings
from hypothesis import strategies as st
from random_trees import trees

from mathamr_systems.edit_distance import EditCosts, tree_edit_distance, tree_edit_distances
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.formula import FormulaTree, trees_from_latex
from pyterrier_mathamr.formula.packed_trees import PackedTrees

SLT, OPT = EditCosts(0.85, 0.54, 0.15), EditCosts(0.28, 0.225, 0.185)
Node = tuple[str, list[Any]]


class Judge(Config):  # type: ignore[misc]
    def __init__(self, costs: EditCosts) -> None:
        self.costs = costs

    def delete(self, node: Node) -> float:
        return self.costs.delete

    def insert(self, node: Node) -> float:
        return self.costs.insert

    def rename(self, node1: Node, node2: Node) -> float:
        return 0.0 if node1[0] == node2[0] else self.costs.rename

    def children(self, node: Node) -> list[Any]:
        return node[1]


def judged(query: FormulaTree, candidate: FormulaTree, costs: EditCosts) -> float:
    roots = []
    for tree in (query, candidate):
        nodes: list[Node] = [(label, []) for label in tree.nodes]
        for parent, child, _ in tree.edges:
            nodes[parent][1].append(nodes[child])
        roots.append(nodes[0])
    return float(APTED(*roots, Judge(costs)).compute_edit_distance())


@pytest.mark.parametrize(
    ("query", "candidate", "wanted"),
    [
        ("x^2+1", "x^2+y", (1, 1, 0.15, 0.185)),
        ("x^2+1", "x^2", (2, 2, 1.70, 0.56)),
        ("x^2", "x^2+1", (2, 2, 1.08, 0.45)),
        ("x^2+1", "x^{2y}+1", (1, 2, 0.54, 0.45)),
    ],
)
def test_distances_are_those_worked_by_hand(query: str, candidate: str, wanted: tuple[float, ...]) -> None:
    (slt, opt), (other_slt, other_opt) = trees_from_latex(query), trees_from_latex(candidate)
    assert slt is not None
    assert opt is not None
    assert other_slt is not None
    assert other_opt is not None
    unit = tree_edit_distance(slt, other_slt), tree_edit_distance(opt, other_opt)
    priced = tree_edit_distance(slt, other_slt, SLT), tree_edit_distance(opt, other_opt, OPT)
    assert (*unit, *priced) == pytest.approx(wanted)


TREES = trees("opt", tuple("abc"), 20)


@settings(max_examples=60, deadline=None)
@given(query=TREES, candidates=st.lists(TREES, min_size=1, max_size=6), costs=st.sampled_from([SLT, OPT]))
def test_distances_of_any_trees_equal_apted_s(
    query: FormulaTree, candidates: list[FormulaTree], costs: EditCosts
) -> None:
    packed = PackedTrees.of_trees([*candidates, None], "opt")
    for price in (costs, EditCosts(), EditCosts(0.1, 0.1, 0.5)):  # in the last, renaming is never worth its cost
        found = tree_edit_distances(query, packed, np.arange(len(packed)), price)
        wanted = [judged(query, candidate, price) for candidate in candidates]
        assert found.tolist() == pytest.approx([*wanted, len(query.nodes) * price.delete])


@pytest.mark.parametrize("kind", ["slt", "opt"])
def test_distances_of_real_formulas_equal_apted_s(kind: Any, shared_data: Path) -> None:
    queries, candidates = dict[str, FormulaTree](), list[FormulaTree]()
    with gzip.open(shared_data / "tangent-s-scores" / f"{kind}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            read = (row[side] for side in ("query", "candidate"))
            query, candidate = (FormulaTree(tuple(t["nodes"]), tuple(map(tuple, t["edges"]))) for t in read)
            if len(candidate.nodes) < 40 and len(query.nodes) < 15:
                queries[row["topic"]] = query
                candidates.append(candidate)
    packed, pairs = PackedTrees.of_trees(candidates, kind), 0
    for query in list(queries.values())[:3]:
        found = tree_edit_distances(query, packed, np.arange(len(packed)), SLT)
        assert found.tolist() == pytest.approx([judged(query, candidate, SLT) for candidate in candidates])
        pairs += len(packed)
    assert pairs > 500


def chain(length: int, label: str = "a") -> FormulaTree:
    return FormulaTree((label,) * length, tuple((i, i + 1, "n") for i in range(length - 1)), kind="slt")


def test_long_chains_are_compared_without_recursion_and_longer_ones_by_their_labels() -> None:
    packed = PackedTrees.of_trees([chain(300), chain(1000), chain(400, "b")], "slt")
    found = tree_edit_distances(chain(250), packed, np.arange(3), SLT)
    assert found.tolist() == pytest.approx([50 * 0.54, 750 * 0.54, 250 * 0.15 + 150 * 0.54])


@given(query=TREES, candidate=TREES)
def test_a_bound_by_labels_is_never_above_the_distance(query: FormulaTree, candidate: FormulaTree) -> None:
    packed, row = PackedTrees.of_trees([candidate], "opt"), np.zeros(1, dtype=np.int64)
    bound = tree_edit_distances(query, packed, row, OPT, max_nodes=0)[0]
    assert bound <= tree_edit_distances(query, packed, row, OPT)[0]


@pytest.mark.parametrize("cost", [-0.1, float("nan"), float("inf")])
def test_costs_are_finite_and_not_negative(cost: float) -> None:
    with pytest.raises(ConfigError, match="costs"):
        tree_edit_distance(chain(2), chain(3), EditCosts(rename=cost))
