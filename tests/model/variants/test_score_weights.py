"""Weights of kinds and the document blend: in training, in scoring and in the model's files."""

from dataclasses import replace

import pandas as pd
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import (
    MathAMR,
    MathAMRConfig,
    ModelError,
    Trainer,
    maxsim_matrix,
)
from pyterrier_mathamr.model.exact import ScoreWeights
from pyterrier_mathamr.model.losses import Contrast, ContrastiveLoss, info_nce

WEIGHTS = ScoreWeights(formula=0.5, sentence=2.0, document=3.0, blend=4.0)


def ragged(sizes: list[int], width: int = 5, seed: int = 0):
    rows = torch.randn(sum(sizes), width, generator=torch.Generator().manual_seed(seed))
    return F.normalize(rows, dim=1), torch.tensor([0, *sizes]).cumsum(0)


def plain(query, weights, blend, rows) -> float:
    """Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc, one similarity at a time."""
    best = [max(float(q @ row) for row in rows) for q in query]
    return sum(w * b for w, b in zip(weights, best, strict=True)) + blend * float(query[-1] @ rows[-1])


def test_the_weighted_matrix_has_the_loop_s_values_and_exact_gradients() -> None:
    queries, query_offsets = (of.double() if of.is_floating_point() else of for of in ragged([2, 1], 3, seed=3))
    rows, offsets = (of.double() if of.is_floating_point() else of for of in ragged([3, 2], 3, seed=4))
    weights = torch.tensor([0.5, 2.0, 1.5], dtype=torch.float64, requires_grad=True)
    table = maxsim_matrix(queries, query_offsets, rows, offsets, weights)
    assert table[0, 1].item() == pytest.approx(plain(queries[:2], weights[:2].tolist(), 0, rows[3:]))
    inputs = (queries.requires_grad_(), query_offsets, rows.requires_grad_(), offsets, weights)
    assert torch.autograd.gradcheck(maxsim_matrix, inputs)


def test_the_loss_scores_with_weights_and_blend_and_learns_them() -> None:
    queries, query_offsets = ragged([2, 3], seed=7)
    rows, offsets = ragged([3, 2], seed=8)
    kinds = torch.tensor([1, 2, 0, 1, 2])
    config = MathAMRConfig(kind_weights=(0.5, 2.0, 3.0), document_blend=4.0, temperature=0.5)
    found = ContrastiveLoss(config)(Contrast(queries, query_offsets, rows, offsets, None, kinds))
    of_rows = torch.tensor(config.score.kind_weights)[kinds].tolist()
    table = [
        [plain(queries[a:b], of_rows[a:b], 4.0, part) / int(b - a) for part in (rows[:3], rows[3:])]
        for a, b in ((0, 2), (2, 5))
    ]
    assert found.item() == pytest.approx(info_nce(torch.tensor(table), 0.5).item(), abs=1e-5)
    learning = ContrastiveLoss(config.replace(kind_weights="learned", document_blend="learned"))
    learning(Contrast(queries, query_offsets, rows, offsets, None, kinds)).backward()
    assert learning.weights.log_kinds.grad.abs().min() > 0
    assert learning.weights.log_blend.grad.abs() > 0
    with pytest.raises(ModelError, match="kinds"):
        learning(Contrast(queries, query_offsets, rows, offsets))


def test_without_weights_the_loss_has_nothing_more_to_learn() -> None:
    assert [name for name, _ in ContrastiveLoss(MathAMRConfig()).named_parameters()] == ["log_temperature"]
    assert list(ContrastiveLoss(MathAMRConfig(kind_weights=(1, 2, 3))).state_dict()) == ["log_temperature"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"kind_weights": (1.0, 2.0)}, "kind_weights"),
        ({"kind_weights": (1.0, -2.0, 1.0)}, "kind_weights"),
        ({"kind_weights": "some"}, "kind_weights"),
        ({"document_blend": -1.0}, "document_blend"),
        ({"document_blend": float("nan")}, "document_blend"),
        ({"document_blend": 1.0, "virtual_nodes": "none"}, "document_blend"),
    ],
)
def test_weights_that_cannot_be_are_refused_by_name(options, named) -> None:
    with pytest.raises(ConfigError, match=named):
        MathAMRConfig(**options)


def test_rows_are_weighted_by_what_they_are() -> None:
    assert WEIGHTS.of_rows([0, 0, 1, 1, 2]).tolist() == [0.5, 0.5, 2.0, 2.0, 3.0]
    assert replace(WEIGHTS, means=True).of_rows([0, 0, 1, 1, 1, 2]).tolist() == [0.25, 0.25, *[2 / 3] * 3, 3.0]
    assert [replace(WEIGHTS, means=means).of_rows([]).tolist() for means in (True, False)] == [[], []]
    means = ScoreWeights.of(MathAMRConfig(kind_means=True))
    assert means is not None
    assert means.of_rows([0, 1, 1, 2]).tolist() == [1.0, 0.5, 0.5, 1.0]


@pytest.mark.parametrize("weights", ["none", "learned", (0.5, 2.0, 3.0)])
def test_with_means_a_row_counts_by_its_share_of_the_rows_of_its_kind(weights) -> None:
    queries, query_offsets = ragged([2, 4], seed=7)
    rows, offsets = ragged([3, 2], seed=8)
    kinds = torch.tensor([1, 2, 0, 0, 0, 2])
    config = MathAMRConfig(kind_weights=weights, kind_means=True, normalise_scores=False, temperature=0.5)
    found = ContrastiveLoss(config)(Contrast(queries, query_offsets, rows, offsets, None, kinds))
    formula, sentence, document = weights if isinstance(weights, tuple) else (1.0, 1.0, 1.0)
    of_rows = [[sentence, document], [*[formula / 3] * 3, document]]
    table = [
        [plain(queries[a:b], of, 0.0, part) for part in (rows[:3], rows[3:])]
        for of, (a, b) in zip(of_rows, ((0, 2), (2, 6)), strict=True)
    ]
    assert found.item() == pytest.approx(info_nce(torch.tensor(table), 0.5).item(), abs=1e-5)


def test_learned_weights_become_numbers_of_the_trained_model(small, graphs, pairs) -> None:
    config = small.replace(kind_weights="learned", document_blend="learned", epochs=2, learning_rate=0.05)
    model = Trainer(config, device="cpu").fit(pairs, graphs, verbose=False)
    assert isinstance(model.config.score.kind_weights, tuple)
    assert model.config.score.document_blend not in ("learned", 1.0)
    assert all(weight > 0 and weight != 1.0 for weight in model.config.score.kind_weights)
    fixed = Trainer(small.replace(kind_weights=(1.0, 2.0, 3.0), epochs=1), device="cpu").fit(
        pairs, graphs, verbose=False
    )
    assert fixed.config.score.kind_weights == (1.0, 2.0, 3.0)


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
    found = index.colbert()(queries).set_index(["qid", "docno"])["score"]
    text = weighted.text_scorer()(frame.merge(documents, how="cross").assign(score=0.0, rank=0))
    for row in text.itertuples():
        assert row.score == pytest.approx(found[row.qid, row.docno], abs=1e-4)
        embs = index.vec_loader()(pd.DataFrame({"docno": [row.docno]}))["doc_embs"][0]
        query = queries.set_index("qid").loc[row.qid]
        assert row.score == pytest.approx(plain(query["query_embs"], query["query_weights"], 4.0, embs), abs=1e-4)
