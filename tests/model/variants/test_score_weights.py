"""Weights of kinds and the document blend: in training, in scoring, in the model's files, and fitted afterwards."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.listwise import NothingToFitError
from pyterrier_mathamr.graph import MathAMRGraph, VirtualKind, graph_tensors
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import (
    MathAMR,
    MathAMRConfig,
    ModelError,
    Trainer,
    TrainingError,
    fit_score_weights,
    maxsim_matrix,
)
from pyterrier_mathamr.model.exact import ScoreWeights, row_kinds
from pyterrier_mathamr.model.losses import Contrast, ContrastiveLoss, info_nce
from pyterrier_mathamr.model.score_weights import kind_sums

WEIGHTS = ScoreWeights(formula=0.5, sentence=2.0, document=3.0, blend=4.0)


def ragged(sizes: list[int], width: int = 5, seed: int = 0, dtype=torch.float32):
    rows = torch.randn(sum(sizes), width, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(rows, dim=1).to(dtype), torch.tensor([0, *sizes]).cumsum(0)


def plain(query, weights, blend, rows) -> float:
    """Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc, one similarity at a time."""
    best = [max(float(q @ row) for row in rows) for q in query]
    return sum(w * b for w, b in zip(weights, best, strict=True)) + blend * float(query[-1] @ rows[-1])


def test_the_weighted_matrix_has_the_loop_s_values_and_exact_gradients() -> None:
    queries, query_offsets = ragged([2, 1], 3, seed=3, dtype=torch.float64)
    rows, offsets = ragged([3, 2], 3, seed=4, dtype=torch.float64)
    weights = torch.tensor([0.5, 2.0, 1.5], dtype=torch.float64, requires_grad=True)
    table = maxsim_matrix(queries, query_offsets, rows, offsets, weights)
    assert table[0, 1].item() == pytest.approx(plain(queries[:2], weights[:2].tolist(), 0, rows[3:]))
    inputs = (queries.requires_grad_(), query_offsets, rows.requires_grad_(), offsets, weights)
    assert torch.autograd.gradcheck(maxsim_matrix, inputs)


@pytest.mark.parametrize(
    ("options", "weights"),
    [
        ({"kind_weights": (0.5, 2.0, 3.0), "document_blend": 4.0}, (0.5, 2.0, 3.0)),
        ({"kind_weights": "none", "kind_means": True}, (1.0, 1.0, 1.0)),
        ({"kind_weights": "learned", "kind_means": True}, (1.0, 1.0, 1.0)),
        ({"kind_weights": (0.5, 2.0, 3.0), "kind_means": True}, (0.5, 2.0, 3.0)),
    ],
)
def test_the_loss_scores_with_weights_means_and_blend_and_learns_them(options, weights) -> None:
    queries, query_offsets = ragged([2, 4], seed=7)
    rows, offsets = ragged([3, 2], seed=8)
    kinds = torch.tensor([1, 2, 0, 0, 0, 2])
    config = MathAMRConfig(temperature=0.5, normalise_scores=False, **options)
    contrast = Contrast(queries, query_offsets, rows, offsets, None, kinds)
    formula, sentence, document = weights
    formula, blend = (formula / 3, 0.0) if config.score.kind_means else (formula, 4.0)  # three formulas
    of_rows = [[sentence, document], [formula] * 3 + [document]]
    table = [
        [plain(queries[a:b], of_query, blend, part) for part in (rows[:3], rows[3:])]
        for of_query, (a, b) in zip(of_rows, ((0, 2), (2, 6)), strict=True)
    ]
    wanted = info_nce(torch.tensor(table), 0.5).item()
    assert ContrastiveLoss(config)(contrast).item() == pytest.approx(wanted, abs=1e-5)
    learning = ContrastiveLoss(config.replace(kind_weights="learned", document_blend="learned"))
    learning(contrast).backward()
    assert learning.weights.log_kinds.grad.abs().min() > 0
    assert learning.weights.log_blend.grad.abs() > 0
    with pytest.raises(ModelError, match="kinds"):
        learning(Contrast(queries, query_offsets, rows, offsets))


def test_without_learned_weights_the_loss_has_nothing_more_to_learn() -> None:
    for config in (MathAMRConfig(), MathAMRConfig(kind_weights=(1, 2, 3))):
        assert list(ContrastiveLoss(config).state_dict()) == ["log_temperature"]


@pytest.mark.parametrize(
    "options",
    [
        {"kind_weights": (1.0, 2.0)},
        {"kind_weights": (1.0, -2.0, 1.0)},
        {"kind_weights": "some"},
        {"document_blend": -1.0},
        {"document_blend": float("nan")},
        {"document_blend": 1.0, "virtual_nodes": "none"},
    ],
)
def test_weights_that_cannot_be_are_refused_by_name(options) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        MathAMRConfig(**options)


def test_rows_are_weighted_by_what_they_are() -> None:
    assert WEIGHTS.of_rows([0, 0, 1, 1, 2]).tolist() == [0.5, 0.5, 2.0, 2.0, 3.0]
    assert replace(WEIGHTS, means=True).of_rows([0, 0, 1, 1, 1, 2]).tolist() == [0.25, 0.25, *[2 / 3] * 3, 3.0]
    assert [replace(WEIGHTS, means=means).of_rows([]).tolist() for means in (True, False)] == [[], []]
    assert ScoreWeights.of(MathAMRConfig(kind_means=True)).of_rows([0, 1, 1, 2]).tolist() == [1.0, 0.5, 0.5, 1.0]


def test_weights_of_training_become_numbers_of_the_trained_model(small, graphs, pairs) -> None:
    config = small.replace(kind_weights="learned", document_blend="learned", epochs=1, learning_rate=0.05)
    score = Trainer(config, device="cpu").fit(pairs, graphs, verbose=False).config.score
    assert score.document_blend not in ("learned", 1.0)
    assert all(weight > 0 and weight != 1.0 for weight in score.kind_weights)
    fixed = Trainer(small.replace(kind_weights=(1.0, 2.0, 3.0), epochs=1), device="cpu")
    assert fixed.fit(pairs, graphs, verbose=False).config.score.kind_weights == (1.0, 2.0, 3.0)


def test_weights_are_part_of_the_model_s_files_and_identity(model, tmp_path) -> None:
    weighted = model.with_score_weights(WEIGHTS)
    assert weighted.identity != model.identity
    weighted.save(tmp_path / "m")
    opened = MathAMR.from_pretrained(tmp_path / "m")
    assert opened == weighted
    assert opened.score_weights == WEIGHTS
    assert model.score_weights is None


def test_queries_carry_their_weights_to_the_index_and_both_scorers_agree(model, graphs, tmp_path) -> None:
    weighted = model.with_score_weights(WEIGHTS)
    frame = pd.DataFrame({"qid": ["q0", "q1"]}).assign(query_graph=[graphs["q0"], graphs["q1"]])
    documents = pd.DataFrame({"docno": [f"a{i}" for i in range(6)]}).assign(graph=[graphs[f"a{i}"] for i in range(6)])
    queries = weighted.query_encoder()(frame)
    assert queries["query_document_weight"].tolist() == [4.0, 4.0]
    formulas, rows = len(queries["query_formula_ids"][0]), len(queries["query_embs"][0])
    assert queries["query_weights"][0].tolist() == [0.5] * formulas + [2.0] * (rows - formulas - 1) + [3.0]
    assert "query_weights" not in model.query_encoder()(frame)
    assert list(weighted.query_encoder()(frame.iloc[:0]).columns) == list(queries.columns)
    index = MathAMRIndex(tmp_path / "x").index(model.doc_encoder()(documents).to_dict("records"))
    scores = index.colbert()(queries).set_index(["qid", "docno"])["score"]
    text = weighted.text_scorer()(frame.merge(documents, how="cross").assign(score=0.0, rank=0))
    for row in text.itertuples():
        assert row.score == pytest.approx(scores[row.qid, row.docno], abs=1e-4)
        embs = index.vec_loader()(pd.DataFrame({"docno": [row.docno]}))["doc_embs"][0]
        query = queries.set_index("qid").loc[row.qid]
        assert row.score == pytest.approx(plain(query["query_embs"], query["query_weights"], 4.0, embs), abs=1e-4)


def test_kind_sums_are_the_loop_s(monkeypatch) -> None:
    monkeypatch.setattr(sys.modules[kind_sums.__module__], "_MATCHES", 9)
    queries = [ragged([n], seed=n)[0].numpy() for n in (3, 1, 5)]
    documents = [ragged([n], seed=10 + n)[0].numpy() for n in (2, 4)]
    kinds = [[0, 1, 2], [2], [0, 0, 1, 1, 2]]
    sums = kind_sums(queries, kinds, documents)
    for b, (query, of_row) in enumerate(zip(queries, kinds, strict=True)):
        for m, rows in enumerate(documents):
            wanted = [plain(query, [kind == each for kind in of_row], 0.0, rows) for each in range(3)]
            assert sums[b, m].tolist() == pytest.approx([*wanted, query[-1] @ rows[-1]], abs=1e-5)


@pytest.mark.parametrize("changes", [{}, {"formulas": "none"}, {"virtual_nodes": "none"}, {"virtual_nodes": "global"}])
def test_the_kinds_of_the_fit_match_the_graphs(model, graphs, changes) -> None:
    config = model.config.replace(**changes)
    chosen = {"formulas": config.formulas, "virtual_nodes": config.virtual_nodes}
    for graph in graphs.values():
        kinds = graph_tensors(graph, model.vocabulary, **chosen).kinds.tolist()
        assert row_kinds(config, graph, len(kinds)) == kinds
    assert row_kinds(config, MathAMRGraph.from_penman("(e / empty)"), 0) == []  # a blank query
    assert (VirtualKind.FORMULA, VirtualKind.SENTENCE, VirtualKind.DOCUMENT) == (0, 1, 2)


def test_the_fit_finds_the_weights_of_the_lowest_loss_and_keeps_the_vectors(model, graphs, pairs) -> None:
    fitted = fit_score_weights(model, pairs, graphs)
    queries, documents = (model.encode([graphs[pair[side]] for pair in pairs]) for side in (0, 1))
    kinds = [row_kinds(model.config, graphs[question], len(q)) for (question, _), q in zip(pairs, queries, strict=True)]
    features = kind_sums(queries, kinds, documents) / np.array([len(query) for query in queries])[:, None, None]

    def loss(weights) -> float:
        """The mean softmax loss of each question's one right candidate."""
        scores = features @ np.asarray(weights, dtype=np.float64)
        return float(np.mean([np.log(np.exp(row - row[i]).sum()) for i, row in enumerate(scores)]))

    weights = fitted.score_weights
    best = np.array([weights.formula, weights.sentence, weights.document, weights.blend])
    assert loss(best) < loss([1, 1, 1, 0])
    for i in range(4):
        for factor in (0.5, 2.0):  # the ridge of the fit moves the optimum a little
            assert loss(best) <= loss(np.where(np.arange(4) == i, best * factor, best)) + 1e-3
    np.testing.assert_array_equal(fitted.encode([graphs["q0"]])[0], model.encode([graphs["q0"]])[0])
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
