"""The alignment gives what the authors of Tangent-S published, and what its rules give when written plainly."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_trees import trees
from tangent_s_plain import PlainAlignment

from mathamr_systems.tangent_s import TreeLabels, align, alignment_scores
from pyterrier_mathamr.formula import FormulaTree, slt_from_latex
from pyterrier_mathamr.formula.packed_trees import PackedTrees

Nested = tuple[Any, ...]


def operators(tree: Nested | str, kind: Any = "opt") -> FormulaTree:
    """Build a tree of ``(label, child, …)``."""
    nodes, edges = list[str](), list[tuple[int, int, str]]()

    def add(tree: Nested | str) -> int:
        label, *children = (tree,) if isinstance(tree, str) else tree
        nodes.append(label)
        number = len(nodes) - 1
        for place, child in enumerate(children):
            at = len(edges)
            edges.insert(at, (number, len(nodes), "0" if label[:2] == "U!" else str(place)))
            add(child)
        return number

    add(tree)
    return FormulaTree(tuple(nodes), tuple(sorted(edges, key=lambda edge: edge[1])), kind=kind)


def plus(*operands: Nested | str) -> Nested:
    return "U!plus", *operands


X2, Y2 = ("O!SUP", "V!x", "N!2"), ("O!SUP", "V!y", "N!2")


@pytest.mark.parametrize(
    ("query", "candidate", "wanted"),
    [
        (plus(X2, "N!1"), X2, (0.545455, 1, 0.6)),
        (plus(X2, "N!1"), plus("N!1", X2), (1, 1, 1)),
        (("U!eq", X2, "N!1"), ("U!eq", ("O!SUB", "V!x", "N!2"), "N!1"), (0.380952, 0.8, 0.8)),
        (plus("V!x", "V!x", "V!y"), plus("V!a", "V!a", "V!a"), (0.705882, 0.75, 0.25)),
        ("V!x", "V!y", (1, 1, 0)),
        ("V!x", "V!sin", (0, 0, 0)),
    ],
)
def test_operator_trees_score_as_worked_by_hand(query: Any, candidate: Any, wanted: tuple[float, ...]) -> None:
    assert alignment_scores(operators(query), operators(candidate)) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(("candidate", "wanted"), [("y^2+1", (1, 1, 0.75)), ("x^2", (0.4, 1, 0.5))])
def test_layout_trees_score_as_worked_by_hand(candidate: str, wanted: tuple[float, ...]) -> None:
    assert alignment_scores(slt_from_latex("x^2+1"), slt_from_latex(candidate)) == pytest.approx(wanted)


@pytest.mark.parametrize("kind", ["slt", "opt"])
def test_every_published_score_of_the_2020_judgments_is_reproduced(
    kind: Any, shared_data: Path, record_property: Callable[[str, object], None]
) -> None:
    rows, far = 0, []
    with gzip.open(shared_data / "tangent-s-scores" / f"{kind}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            trees = (row[side] for side in ("query", "candidate"))
            pair = [FormulaTree(tuple(t["nodes"]), tuple(map(tuple, t["edges"])), kind=kind) for t in trees]
            wanted = row["mss"], row["precision"], row["exact_recall"]
            if alignment_scores(*pair) != pytest.approx(wanted, abs=1e-9):
                far.append((row["topic"], row["formula"]))
            rows += 1
    record_property("rows", rows)
    assert rows == 491
    assert far == []


VARIABLES = ("V!x", "V!y", "V!z", "V!sin", "N!1", "N!2", "N!1e", "F!sin", "E!", "W!", "+")
OPERATORS = ("U!plus", "U!plus", "U!times", "O!SUP", "O!minus", "M!()1x1", "M!()1x1", "M![]2x2", "M![]1x3", "M!M!2x2")
LABELS = (*VARIABLES, *OPERATORS, "M!R!", "M!{")


@pytest.mark.parametrize("kind", ["slt", "opt"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_counting_and_pruning_change_nothing(kind: Any, data: st.DataObject) -> None:
    query, candidates = data.draw(trees(kind, LABELS)), data.draw(st.lists(trees(kind, LABELS), min_size=1, max_size=6))
    packed = PackedTrees.of_trees([*candidates, None], kind)
    found = align(query, packed, np.arange(len(packed)), TreeLabels(packed.names))
    wanted = [PlainAlignment(query, candidate).scores() for candidate in candidates]
    assert found.tolist() == pytest.approx(np.array([*wanted, (0, 0, 0)]), abs=1e-12)


@pytest.mark.parametrize("kind", ["slt", "opt"])
def test_a_chain_of_a_thousand_nodes_aligns_with_itself_and_with_its_half(kind: Any) -> None:
    label = "n" if kind == "slt" else "0"
    chains = [FormulaTree(("O!f",) * n, tuple((i, i + 1, label) for i in range(n - 1)), kind=kind) for n in (1000, 500)]
    assert alignment_scores(chains[0], chains[0]) == (1, 1, 1)
    assert alignment_scores(*chains).precision == 1


@pytest.mark.parametrize("kind", ["slt", "opt"])
@given(data=st.data())
def test_packing_keeps_any_tree(kind: Any, data: st.DataObject) -> None:
    given_trees = [data.draw(trees(kind, LABELS)), None, data.draw(trees(kind, LABELS))]
    packed = PackedTrees.of_trees(given_trees, kind)
    assert [packed.tree(row) for row in range(3)] == given_trees
    assert [packed.take(np.array([2, 0])).tree(row) for row in range(2)] == [given_trees[2], given_trees[0]]
