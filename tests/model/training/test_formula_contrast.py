"""Formula-level contrast against its definition written as loops, and which formulas are the same one."""

import math

import pytest
import torch

from pyterrier_mathamr.graph import MathAMRGraph, Vocabulary, graph_tensors
from pyterrier_mathamr.model import ShapeError, formula_contrast
from pyterrier_mathamr.model.training.formula_trees import NO_FORMULA, formula_keys, formulas_of

TAU = 0.3
Q_OFFSETS, OFFSETS = torch.tensor([0, 3, 5, 8]), torch.tensor([0, 3, 5, 9, 11])
Q_KEYS = torch.tensor([7, 8, -1, 9, -1, 7, 5, -1])  # questions of two formulas, one, two
KEYS = torch.tensor([7, 3, -1, 8, -1, 5, 2, 9, -1, 4, -1])  # the fourth document is a hard negative


def unit(count: int, seed: int, dtype=torch.float64) -> torch.Tensor:
    chance = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(count, 4, generator=chance, dtype=dtype), dim=1)


def plain(queries, rows, tau=TAU, allowed=None, q_keys=Q_KEYS, keys=KEYS) -> float:
    """The definition of the module, formula by formula."""
    means = []
    for i in range(3):
        losses = []
        for f in range(Q_OFFSETS[i], Q_OFFSETS[i + 1]):
            if q_keys[f] < 0:
                continue
            scores = {}
            for j in range(4):
                found = [g for g in range(OFFSETS[j], OFFSETS[j + 1]) if keys[g] >= 0]
                same = any(keys[g] == q_keys[f] for g in found)
                if found and (i == j or not (same or (allowed is not None and not allowed[i][j]))):
                    scores[j] = max(float(queries[f] @ rows[g]) for g in found)
            if i in scores and len(scores) > 1:
                below = sum(math.exp(score / tau) for score in scores.values())
                losses.append(-math.log(math.exp(scores[i] / tau) / below))
        if losses:
            means.append(sum(losses) / len(losses))
    return sum(means) / len(means) if means else 0.0


def found(queries, rows, tau=TAU, allowed=None, q_keys=Q_KEYS, keys=KEYS) -> torch.Tensor:
    return formula_contrast(queries, Q_OFFSETS, q_keys, rows, OFFSETS, keys, tau, allowed)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_mean_over_questions_of_the_mean_over_their_formulas(seed) -> None:
    queries, rows = unit(8, seed), unit(11, 10 + seed)
    assert found(queries, rows).item() == pytest.approx(plain(queries, rows), rel=1e-5)
    allowed = torch.tensor([[True, False, True, True], [True, True, True, True], [False, True, True, True]])
    assert found(queries, rows, allowed=allowed).item() == pytest.approx(
        plain(queries, rows, allowed=allowed), rel=1e-5
    )


def test_an_answer_with_the_very_same_formula_and_a_known_answer_are_no_negatives() -> None:
    queries, rows = unit(8, 1).requires_grad_(), unit(11, 2).requires_grad_()
    only_first = torch.where(torch.arange(8) == 0, Q_KEYS, NO_FORMULA)  # formula 7 of question 0
    q_keys = only_first.scatter(0, torch.tensor([0]), 8)  # as 8 it also stands in answer 1, row 3
    allowed = torch.tensor([[True, True, False, True]] * 3)
    found(queries, rows, q_keys=q_keys, allowed=allowed).backward()
    moved = set(torch.nonzero(rows.grad.abs().sum(1)).flatten().tolist())
    assert 9 in moved  # the hard negative
    assert moved <= {0, 1, 9}  # the own answer's formulas; nothing of answers 1 (same formula) and 2 (known)


def test_formulas_without_partner_or_negative_have_no_part() -> None:
    queries, rows = unit(8, 1), unit(11, 2)
    no_partner = torch.where(torch.arange(11) < 3, NO_FORMULA, KEYS)  # answer 0 without formulas
    assert found(queries, rows, keys=no_partner).item() == pytest.approx(
        plain(queries, rows, keys=no_partner), rel=1e-5
    )
    nothing = found(queries, rows, keys=torch.full_like(KEYS, NO_FORMULA))
    assert nothing.item() == 0 == found(queries, rows, keys=torch.zeros(11).long(), q_keys=Q_KEYS * 0).item()


def test_the_gradient_is_the_slope() -> None:
    queries, rows = unit(8, 3).requires_grad_(), unit(11, 4).requires_grad_()
    tau = torch.tensor(TAU, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda q, r, t: found(q, r, t), (queries, rows, tau))


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="query_keys"):
        found(unit(8, 0), unit(11, 0), q_keys=Q_KEYS[1:])
    with pytest.raises(ShapeError, match="keys"):
        found(unit(8, 0), unit(11, 0), keys=KEYS[1:])
    with pytest.raises(ShapeError, match="allowed"):
        found(unit(8, 0), unit(11, 0), allowed=torch.ones(3, 3, dtype=torch.bool))


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
    keys = formula_keys(tensors, formulas).tolist()
    assert keys[0] == keys[1]
    assert len({keys[0], keys[2], keys[3]}) == 3
    assert keys[4:] == [NO_FORMULA] * 3
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
