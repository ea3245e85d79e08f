"""Formula graphs and their sub-expressions, by the paper's example x^{2y} + 1."""

import numpy as np
import pytest

from mathamr_systems.in_out.graphs import RELATIONS, FormulaGraphs, NodeLabels, Subexpressions
from pyterrier_mathamr.formula import FormulaTree, trees_from_latex
from pyterrier_mathamr.formula.packed_trees import Packed, PackedTrees


def graphs_of(*trees: FormulaTree | None, kind: Packed, least: int = 1) -> tuple[FormulaGraphs, NodeLabels]:
    packed = PackedTrees.of_trees(trees, kind)
    labels = NodeLabels.of_trees(packed, least)
    return FormulaGraphs.of_trees(packed, labels), labels


EXAMPLE = trees_from_latex("x^{2y}+1")


def test_each_edge_of_a_layout_tree_has_a_separate_reverse() -> None:
    graphs, labels = graphs_of(EXAMPLE.slt, kind="slt")
    ends, relations = graphs.edges()
    names = [labels.names[number] for number in graphs.labels]
    assert names == ["V!x", "N!2", "V!y", "+", "N!1"]
    a, n, half = 1, 0, RELATIONS["slt"] // 2
    assert half == 9
    assert list(zip(*ends.tolist(), relations.tolist(), strict=True)) == [
        (0, 1, a), (1, 2, n), (0, 3, n), (3, 4, n),
        (1, 0, a + half), (2, 1, n + half), (3, 0, n + half), (4, 3, n + half),
    ]  # fmt: skip


def test_the_relation_of_an_operand_is_its_place_and_from_15_on_the_same() -> None:
    places = "0123456789ABCDEFGHIabc"
    tree = FormulaTree(("O!f", *("V!x" for _ in places)), tuple((0, i, p) for i, p in enumerate(places, 1)), kind="opt")
    graphs, _ = graphs_of(tree, kind="opt")
    assert graphs.relations.tolist() == [-1, *range(15), *[15] * (len(places) - 15)]
    assert RELATIONS["opt"] == 32
    unordered, _ = graphs_of(trees_from_latex("a+b+c").opt, kind="opt")
    assert unordered.relations.tolist() == [-1, 0, 0, 0]


def test_rare_and_unseen_labels_keep_their_type() -> None:
    tree = FormulaTree(("V!x", "V!x", "V!y", "+"), ((0, 1, "n"), (1, 2, "n"), (2, 3, "n")), kind="slt")
    labels = NodeLabels.of_trees(PackedTrees.of_trees([tree], "slt"), least=2)
    assert labels.names == ("V![UNK]", "V!x", "[UNK]")
    found = [labels.names[number] for number in labels.numbers(["V!x", "V!y", "V!new", "+", "N!7"])]
    assert found == ["V!x", "V![UNK]", "V![UNK]", "[UNK]", "[UNK]"]


def parts_of(graphs: FormulaGraphs, labels: NodeLabels, row: int = 0) -> dict[str, list[str]]:
    """The labels of what remains without each internal node, by its label."""
    parts, found = Subexpressions(graphs), {}
    for node in range(int(graphs.offsets[row]), int(graphs.offsets[row + 1])):
        if parts.sizes[node] > 1:
            part = parts.without(np.array([row]), np.array([node]))
            found[labels.names[graphs.labels[node]]] = [labels.names[number] for number in part.labels]
    return found


def test_without_an_internal_node_the_largest_part_remains() -> None:
    pair, other = EXAMPLE, trees_from_latex("y")
    slt = graphs_of(other.slt, pair.slt, kind="slt")
    assert parts_of(*slt, row=1) == {
        "V!x": ["N!2", "V!y"],  # as large as the other part, and earlier
        "N!2": ["V!x", "+", "N!1"],
        "+": ["V!x", "N!2", "V!y"],
    }
    opt = graphs_of(other.opt, pair.opt, kind="opt")
    assert parts_of(*opt, row=1) == {
        "U!plus": ["O!SUP", "V!𝑥", "U!times", "N!2", "V!𝑦"],
        "O!SUP": ["U!times", "N!2", "V!𝑦"],
        "U!times": ["U!plus", "O!SUP", "V!𝑥", "N!1"],
    }


def test_a_part_is_a_tree_with_the_edges_that_it_had() -> None:
    graphs, _ = graphs_of(EXAMPLE.opt, EXAMPLE.opt, kind="opt")
    parts = Subexpressions(graphs)
    part = parts.without(np.array([1, 0]), np.array([7, 3]))  # the second without plus, the first without times
    assert part.offsets.tolist() == [0, 5, 9]
    assert part.parents.tolist() == [-1, 0, 0, 2, 2, -1, 0, 1, 0]
    assert part.relations.tolist() == [-1, 0, 1, 0, 0, -1, 0, 0, 0]


def test_every_internal_node_is_drawn_and_no_leaf() -> None:
    graphs, _ = graphs_of(EXAMPLE.opt, kind="opt")
    parts, generator = Subexpressions(graphs), np.random.default_rng(1)
    sizes = [len(parts.draw(np.array([0]), generator).labels) for _ in range(60)]
    assert set(sizes) == {5, 3, 4}  # without plus, SUP, times
    again = np.random.default_rng(1)
    assert sizes == [len(parts.draw(np.array([0]), again).labels) for _ in range(60)]


def test_of_two_nodes_the_leaf_remains() -> None:
    graphs, labels = graphs_of(trees_from_latex("-x").slt, kind="slt")
    part = Subexpressions(graphs).draw(np.array([0]), np.random.default_rng(0))
    assert [labels.names[number] for number in part.labels] == ["V!x"]
    assert (part.parents.tolist(), part.relations.tolist()) == ([-1], [-1])


def plain(parents: list[int], removed: int) -> list[int]:
    """The largest part without a node, by searching the graph."""
    left = set(range(len(parents))) - {removed}
    found: list[list[int]] = []
    while left:
        stack, part = [min(left)], set[int]()
        while stack:
            node = stack.pop()
            if node in left:
                left.remove(node)
                part.add(node)
                stack += [other for other in left if parents[other] == node or parents[node] == other]
        found.append(sorted(part))
    return max(found, key=len)


@pytest.mark.parametrize("seed", range(6))
def test_parts_match_a_search_of_the_graph(seed: int) -> None:
    chance = np.random.default_rng(seed)
    parents, stack = [-1], [0]
    for node in range(1, 25):  # a tree in depth-first order
        del stack[chance.integers(1, len(stack) + 1) :]
        parents.append(stack[-1])
        stack.append(node)
    edges = tuple((parent, child, "n") for child, parent in enumerate(parents) if child)
    graphs, labels = graphs_of(FormulaTree(tuple(f"V!{i:02}" for i in range(25)), edges, kind="slt"), kind="slt")
    parts = Subexpressions(graphs)
    for node in sorted(set(parents) - {-1}):
        part = parts.without(np.array([0]), np.array([node]))
        kept = [int(labels.names[number][2:]) for number in part.labels]
        assert kept == plain(parents, node)
        assert [kept[p] for p in part.parents.tolist()[1:]] == [parents[k] for k in kept[1:]]
