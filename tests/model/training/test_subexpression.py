"""Formulas of a graph, their sub-expressions and their contrast, against equations 2 and 3 written as loops."""

import math

import numpy as np
import pytest
import torch

from pyterrier_mathamr.graph import FIRST_VIRTUAL_ID, MathAMRGraph, Vocabulary, graph_tensors
from pyterrier_mathamr.model.training.subexpression import (
    TreeArrays,
    draw_expressions,
    formulas_of,
    subexpression,
    subexpression_contrast,
)

#     0 plus          the operator tree of x^{2y} + 1
#     ├ 1 sup
#     │ ├ 2 x
#     │ └ 3 times ─ 4 two, 5 y
#     └ 6 one
TREE = TreeArrays(np.arange(100, 107), np.array([-1, 0, 1, 1, 3, 3, 0]), np.array([0, 21, 22, 23, 24, 25, 26]))
WITHOUT_PLUS = ([101, 102, 103, 104, 105], [-1, 0, 0, 2, 2], [0, 22, 23, 24, 25])
WITHOUT_SUP = ([103, 104, 105], [-1, 0, 0], [0, 24, 25])
WITHOUT_TIMES = ([100, 101, 102, 106], [-1, 0, 1, 0], [0, 21, 22, 26])


def as_lists(tree: TreeArrays) -> tuple[list[int], ...]:
    return tuple(array.tolist() for array in tree)


def test_an_internal_node_is_removed_and_the_largest_part_kept() -> None:
    chance = torch.Generator().manual_seed(0)
    drawn = {str(as_lists(subexpression(TREE, chance))) for _ in range(60)}
    assert drawn == {str(tree) for tree in (WITHOUT_PLUS, WITHOUT_SUP, WITHOUT_TIMES)}
    assert as_lists(TREE)[1] == [-1, 0, 1, 1, 3, 3, 0]


def test_of_a_root_with_one_leaf_the_leaf_remains() -> None:
    pair = TreeArrays(np.array([7, 8]), np.array([-1, 0]), np.array([0, 5]))
    assert as_lists(subexpression(pair, torch.Generator())) == ([8], [-1], [0])


def test_a_formula_of_each_post_is_drawn_once_with_its_parts(graphs, vocabulary) -> None:
    tensors = [graph_tensors(graphs[f"q{i}"], vocabulary) for i in range(12)]
    posts = [formulas_of(post, vocabulary) for post in tensors]
    drawn = draw_expressions(posts, vocabulary, torch.Generator().manual_seed(1))
    again = draw_expressions(posts, vocabulary, torch.Generator().manual_seed(1))
    n = drawn.formulas
    assert 2 <= n <= min(12, len({formula.key for post in posts for formula in post}))
    assert torch.equal(drawn.graphs.nodes, again.graphs.nodes)
    lengths = drawn.graphs.offsets.diff().tolist()
    assert lengths == [3] * n + [4] * n + [2] * n + [2] * n  # SLT of two nodes, OPT of three, parts; each with its VN
    opts = [tuple(drawn.graphs.nodes[a : a + 3].tolist()) for a in drawn.graphs.offsets[n : 2 * n].tolist()]
    assert len(set(opts)) == n
    assert (drawn.graphs.nodes == FIRST_VIRTUAL_ID).sum() == 4 * n
    assert torch.equal(drawn.graphs.virtual, torch.arange(drawn.graphs.nodes.numel()))


def test_posts_without_two_different_formulas_give_nothing(graphs, vocabulary) -> None:
    formulas = formulas_of(graph_tensors(graphs["q0"], vocabulary), vocabulary)
    chance = torch.Generator()
    assert draw_expressions([formulas[:1], formulas[:1], []], vocabulary, chance) is None
    assert draw_expressions([[], []], vocabulary, chance) is None


def plain(graphs: list[list[torch.Tensor]], pairings: list[list[tuple[int, int]]], tau: float) -> float:
    """Equation 2 for each node of each pairing's first graph; equation 3 over the kinds of first graph."""
    kinds = []
    for of_kind in pairings:
        means = []
        for first, second in of_kind:
            losses = []
            for i, formula in enumerate(graphs[first]):
                for z in formula:
                    best = [max(float(z @ other) for other in graph) for graph in graphs[second]]
                    below = sum(math.exp(best[k] / tau) for k in range(len(best)) if k != i)
                    losses.append(-math.log(math.exp(best[i] / tau) / below))
            means.append(sum(losses) / len(losses))
        kinds.append(sum(means) / len(means))
    return sum(kinds) / len(kinds)


@pytest.mark.parametrize(
    ("blocks", "pairings"),
    [(4, [[(0, 1), (0, 2), (0, 3)], [(1, 0), (1, 2), (1, 3)]]), (2, [[(0, 1)]])],
)
def test_the_loss_is_that_of_the_equations_for_all_pairings(blocks, pairings) -> None:
    chance = torch.Generator().manual_seed(3)
    graphs = [
        [
            torch.nn.functional.normalize(torch.randn(count, 5, generator=chance, dtype=torch.float64), dim=1)
            for count in (1 + block % 3, 2, 3)
        ]
        for block in range(blocks)
    ]
    flat = [graph for block in graphs for graph in block]
    rows = torch.cat(flat).requires_grad_()
    offsets = torch.tensor([0, *np.cumsum([len(graph) for graph in flat])])
    loss = subexpression_contrast(rows, offsets, 3, 0.5)
    assert loss.item() == pytest.approx(plain(graphs, pairings, 0.5), rel=1e-5)
    assert torch.autograd.gradcheck(lambda r: subexpression_contrast(r, offsets, 3, 0.5), rows)


def test_the_positive_is_not_in_the_sum_of_the_negatives() -> None:
    rows = torch.eye(4, dtype=torch.float64)[[0, 1, 0, 1]]  # two formulas, each equal to its part, strange to the other
    loss = subexpression_contrast(rows, torch.arange(5), 2, 0.5)
    assert loss.item() == pytest.approx(-2.0, rel=1e-5)  # log(e^0) - 1/0.5


POST = """# ::formula_map {"FORMULA_0": "1", "FORMULA_1": "2", "FORMULA_2": "3", "FORMULA_3": "4"}
(m / multi-sentence
  :snt1 (s / see-01
     :ARG1 (f0 / FORMULA_0 :mod (n / new) :opt (a / U!plus :op0 (b / V!x) :op0 (c / N!1)) :slt (d / V!x))
     :ARG2 (f1 / FORMULA_1 :opt (e / U!plus :op0 (g / V!x) :op0 (h / N!1)) :slt (i / V!x)))
  :snt2 (t / take-01 :ARG1 (f2 / FORMULA_2 :opt (j / U!plus :op0 (k / V!x :op0 (l / N!1))) :slt (o / V!x))
     :ARG2 (f3 / FORMULA_3)))"""


@pytest.fixture
def graph() -> MathAMRGraph:
    return MathAMRGraph.from_penman(POST)


def test_formulas_are_the_same_when_their_trees_are_and_differ_in_shape_alone(graph) -> None:
    vocabulary = Vocabulary.build([graph], min_number_count=1)
    tensors = graph_tensors(graph, vocabulary)
    formulas = formulas_of(tensors, vocabulary)
    keys = [formula.key for formula in formulas]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    names = [[vocabulary.nodes[i] for i in tree.labels] for tree in formulas[0][:2]]
    assert names == [["U!plus", "V!x", "N!1"], ["V!x"]]
    assert formulas[0].opt.parents.tolist() == [-1, 0, 0]
    assert formulas[2].opt.parents.tolist() == [-1, 0, 1]
    assert vocabulary.relations[formulas[0].opt.relations[1]] == ":op0"
    assert (formulas[3].opt, formulas[3].slt) == (None, None)


def test_trees_that_the_model_does_not_use_tell_no_formulas_apart(graph) -> None:
    vocabulary = Vocabulary.build([graph])
    tensors = graph_tensors(graph, vocabulary, formulas="slt")
    formulas = formulas_of(tensors, vocabulary)
    assert len({formula.key for formula in formulas}) == 2
    assert all(formula.opt is None for formula in formulas)
