"""Fitting the weights of a trained model's score: the sums, the optimum, and everything that stays unchanged."""

import sys

import numpy as np
import pytest

from pyterrier_mathamr._common.listwise import NothingToFitError
from pyterrier_mathamr.graph import MathAMRGraph, VirtualKind, graph_tensors
from pyterrier_mathamr.model import TrainingError, fit_score_weights
from pyterrier_mathamr.model.exact import row_kinds
from pyterrier_mathamr.model.score_weights import kind_sums


def unit_rows(count: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, 5)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_kind_sums_are_the_loop_s(monkeypatch) -> None:
    monkeypatch.setattr(sys.modules[kind_sums.__module__], "_MATCHES", 9)
    queries = [unit_rows(n, n) for n in (3, 1, 5)]
    documents = [unit_rows(n, 10 + n) for n in (2, 4)]
    kinds = [[0, 1, 2], [2], [0, 0, 1, 1, 2]]
    found = kind_sums(queries, kinds, documents)
    for b, (query, of_row) in enumerate(zip(queries, kinds, strict=True)):
        for m, rows in enumerate(documents):
            best = (query @ rows.T).max(axis=1)
            sums = [sum(x for x, kind in zip(best, of_row, strict=True) if kind == wanted) for wanted in range(3)]
            assert found[b, m].tolist() == pytest.approx([*sums, query[-1] @ rows[-1]], abs=1e-5)


@pytest.mark.parametrize("changes", [{}, {"formulas": "none"}, {"virtual_nodes": "none"}, {"virtual_nodes": "global"}])
def test_the_kinds_of_the_fit_match_the_graphs(model, graphs, changes) -> None:
    config = model.config.replace(**changes)
    chosen = {"formulas": config.formulas, "virtual_nodes": config.virtual_nodes}
    for graph in graphs.values():
        kinds = graph_tensors(graph, model.vocabulary, **chosen).kinds.tolist()
        assert row_kinds(config, graph, len(kinds)) == kinds
    assert row_kinds(config, MathAMRGraph.from_penman("(e / empty)"), 0) == []  # a blank query
    assert (VirtualKind.FORMULA, VirtualKind.SENTENCE, VirtualKind.DOCUMENT) == (0, 1, 2)


def groups_of(model, graphs, pairs):
    """The candidates of each question as the fit sees them, from vectors."""
    queries, documents = (model.encode([graphs[pair[side]] for pair in pairs]) for side in (0, 1))
    kinds = [row_kinds(model.config, graphs[question], len(q)) for (question, _), q in zip(pairs, queries, strict=True)]
    sizes = np.array([len(query) for query in queries])[:, None, None]
    right = np.eye(len(pairs), dtype=bool)
    return list(zip(kind_sums(queries, kinds, documents) / sizes, right, strict=True))


def loss_of(groups, weights) -> float:
    """The mean softmax loss of each question's one right candidate."""
    scores = [(features @ np.asarray(weights, dtype=np.float64), right) for features, right in groups]
    return float(np.mean([np.log(np.exp(of - of[right]).sum()) for of, right in scores]))


def test_the_fit_finds_the_weights_of_the_lowest_loss_and_keeps_the_vectors(model, graphs, pairs) -> None:
    fitted = fit_score_weights(model, pairs, graphs)
    weights, groups = fitted.score_weights, groups_of(model, graphs, pairs)
    found = np.array([weights.formula, weights.sentence, weights.document, weights.blend])
    lowest = loss_of(groups, found)
    assert lowest < loss_of(groups, [1, 1, 1, 0])
    for i in range(4):
        for factor in (0.5, 2.0):
            other = np.where(np.arange(4) == i, found * factor, found)
            assert lowest <= loss_of(groups, other) + 1e-3  # the ridge of the fit moves the optimum a little
    np.testing.assert_array_equal(fitted.encode([graphs["q0"]])[0], model.encode([graphs["q0"]])[0])


def test_the_fit_is_repeatable_may_leave_out_the_blend_and_samples(model, graphs, pairs) -> None:
    fitted = fit_score_weights(model, pairs, graphs)
    assert fit_score_weights(model, pairs, graphs) == fitted
    assert fit_score_weights(model, pairs, graphs, blend=False).config.score.document_blend == "none"
    some = fit_score_weights(model, pairs, graphs, max_questions=10, max_answers=15)
    assert some.score_weights != fitted.score_weights
    assert fit_score_weights(model, pairs, graphs, max_questions=10, max_answers=15) == some


def test_pairs_without_graph_or_without_a_wrong_answer_are_refused(model, graphs, pairs) -> None:
    with pytest.raises(TrainingError, match="nowhere"):
        fit_score_weights(model, [*pairs, ("q0", "nowhere")], graphs)
    with pytest.raises(NothingToFitError):
        fit_score_weights(model, pairs[:1], graphs)
