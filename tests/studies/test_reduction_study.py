"""Weights of query reduction are learned from what words and formulas add to right and wrong answers."""

import numpy as np

from mathamr_systems.query_reduction import FEATURES
from pyterrier_mathamr.graph import MathAMRGraph
from studies.answers import reduction
from studies.answers.reduction import Example

CHOSEN = {"word": ("idf",), "formula": ("title",)}


def _example(random: np.random.Generator) -> Example:
    """The right answer has three rare words and a formula of the title, the others have what else there is."""
    idf = random.permutation([0.8, 0.9, 1.0, 0.1, 0.2, 0.3])
    words = np.zeros((6, len(reduction.FEATURES["word"])))
    words[:, 0] = idf
    formulas = np.zeros((2, len(reduction.FEATURES["formula"])))
    formulas[0, 1] = 1.0
    right = np.where(idf > 0.5, 3.0, 0.0)
    gained = np.array([right, *(np.where(idf > 0.5, 0.0, 1.0 + 3 * random.random(6)) for _ in range(4))])
    of_formulas = np.array([[2.0, 0.0], *[[0.0, 3.0]] * 4])
    return Example({"word": words, "formula": formulas}, {"word": gained, "formula": of_formulas}, 1)


def test_features_of_what_right_answers_have_are_weighed_positively() -> None:
    random = np.random.default_rng(1)
    examples = [_example(random) for _ in range(40)]
    weights = reduction.fit(examples, CHOSEN)
    assert weights["word"]["idf"] > 0.1
    untrained = {kind: {"bias": 0.0, **dict.fromkeys(names, 0.0)} for kind, names in CHOSEN.items()}
    scale = {"score": weights["score"]}
    assert reduction.losses(examples, weights).mean() < reduction.losses(examples, {**untrained, **scale}).mean()
    assert reduction.reciprocal_ranks(examples, None, (None, None)).mean() < 0.9
    assert reduction.reciprocal_ranks(examples, weights, (3, 0)).tolist() == [1.0] * 40
    worst = {"word": {"bias": 0.0, "idf": -1.0}, "formula": {"bias": 0.0, "title": -1.0}}
    assert reduction.reciprocal_ranks(examples, worst, (3, 1)).tolist() == [0.0] * 40


def test_ablations_name_features_that_there_are() -> None:
    for name, chosen in reduction.ablations().items():
        for kind, features in chosen.items():
            assert set(features) <= {*FEATURES[kind], "root"}, name
            assert len(set(features)) == len(features), name


def test_nearness_counts_edges_from_the_root_of_each_sentence() -> None:
    graph = MathAMRGraph.from_penman(
        '# ::formula_map {"FORMULA_0": ""}\n# ::formula_latex ["x^2"]\n'
        "(m / multi-sentence :snt1 (p / prove-01 :ARG1 (e / equal-01 :ARG1 (f / FORMULA_0)))"
        " :snt2 (s / series :mod (h / harmonic)))"
    )
    near = reduction._nearness(graph)
    assert {name: near[name] for name in ("prove", "equal", "x^2", "seri", "harmon")} == {
        "prove": 1.0,
        "equal": 1 / 2,
        "x^2": 1 / 3,
        "seri": 1.0,
        "harmon": 1 / 2,
    }
