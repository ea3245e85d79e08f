"""Training data in addition to the pairs: hard negatives and first pairs."""

import math

import pytest
import torch

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.graph import collate, graph_tensors
from pyterrier_mathamr.model import MathAMR, Trainer, TrainingError
from pyterrier_mathamr.model.loop import TrainingLoop
from pyterrier_mathamr.model.losses import ContrastiveLoss
from pyterrier_mathamr.model.pairs import HardNegatives, PairAnswers, TrainingData, batches_of, columns_of
from pyterrier_mathamr.model.trainer import PairTraining, make_batch
from pyterrier_mathamr.store import UnfinishedJobError

EVERYTHING = {"hard_negatives": 2, "first_epochs": 1}


class Arrays(dict):
    """Arrays in memory, read like a ``TensorStore``."""

    def get_many(self, ids):
        return [self[name] for name in ids]


@pytest.fixture
def negatives() -> dict[str, list[str]]:
    """Of each question the answers of the next four; the next but seven is of the same topic."""
    return {f"q{i}": [f"a{(i + step) % 24}" for step in (1, 2, 3, 8)] for i in range(24)}


@pytest.fixture
def never() -> dict[str, list[str]]:
    return {f"q{i}": [f"a{(i + 8) % 24}", f"a{(i + 16) % 24}"] for i in range(24)}


@pytest.fixture
def everything(pairs, negatives, never) -> dict[str, object]:
    """All arguments of ``fit``; the first pairs come from elsewhere."""
    return {"first": [(f"a{i}", f"q{i}") for i in range(12)], "negatives": negatives, "never": never}


def fit(config, pairs, graphs, **options) -> tuple[MathAMR, Trainer]:
    trainer = Trainer(config, device="cpu")
    return trainer.fit(pairs, graphs, verbose=False, **options), trainer


def test_hard_negatives_are_redrawn_each_epoch_and_are_never_known_to_be_right() -> None:
    answers = PairAnswers([("q0", "a0"), ("q0", "a1"), ("q1", "a2")], never={"q0": ["x"]})
    of = HardNegatives({"q0": ["a0", "x", "b", "a1", "c", "q0", "d", "b"], "q1": ["a1"]}, answers)
    pairs = [("q0", "a0"), ("q0", "a1"), ("q1", "a2")]
    assert of.documents(pairs) == ["b", "c", "d", "a1"]
    drawn = [of.draw(pairs, 2, torch.Generator().manual_seed(seed)) for seed in range(30)]
    assert {name for epoch in drawn for name in epoch["q0", "a0"]} == {"b", "c", "d"}
    assert all(len(set(epoch["q0", "a0"])) == 2 and epoch["q1", "a2"] == ["a1"] for epoch in drawn)
    assert drawn[3] == of.draw(pairs, 2, torch.Generator().manual_seed(3))
    assert len({str(epoch) for epoch in drawn}) > 5


def test_a_hard_negative_is_one_column_and_an_answer_of_the_batch_none() -> None:
    batch = [("q0", "a0"), ("q1", "a1")]
    drawn = {("q0", "a0"): ("b", "a1"), ("q1", "a1"): ("c", "b"), ("q2", "a2"): ("d",)}
    assert columns_of(batch, drawn) == ["b", "c"]


def plain_info_nce(scores, tau, allowed) -> float:
    losses = []
    for i, row in enumerate(scores):
        below = sum(math.exp(score / tau) for j, score in enumerate(row) if i == j or allowed[i][j])
        losses.append(-math.log(math.exp(row[i] / tau) / below))
    return sum(losses) / len(losses)


def unit_rows(count: int, seed: int = 0) -> torch.Tensor:
    chance = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(count, 8, generator=chance), dim=1)


def test_every_question_sees_all_hard_negatives_but_those_known_to_be_right(small, graphs, vocabulary) -> None:
    config = small.replace(hard_negatives=1, beta=0.5, temperature=0.5)
    names = ["q0", "q1", "a0", "a1", "a5", "a8"]
    tensors = Arrays({name: graph_tensors(graphs[name], vocabulary) for name in names})
    answers = PairAnswers([("q0", "a0"), ("q1", "a1")], never={"q0": ["a8"]})
    batch = make_batch(([("q0", "a0"), ("q1", "a1")], ["a5", "a8"]), tensors, answers, config.training)
    assert len(batch.graphs) == 6
    assert batch.graphs.nodes.tolist() == collate([tensors[name] for name in names]).nodes.tolist()
    rows = unit_rows(len(batch.graphs.virtual)).requires_grad_()
    loss = ContrastiveLoss(config)(batch.contrast(rows))
    posts = [rows[a:b] for a, b in zip(batch.graphs.offsets[:-1], batch.graphs.offsets[1:], strict=True)]
    maxsim = [[sum((q @ post.T).max().item() for q in posts[i]) / len(posts[i]) for post in posts[2:]] for i in (0, 1)]
    documents = [[(posts[i][-1] @ post[-1]).item() for post in posts[2:]] for i in (0, 1)]
    allowed = [[True, True, True, False], [True, True, True, True]]
    wanted = 0.5 * plain_info_nce(maxsim, 0.5, allowed) + 0.5 * plain_info_nce(documents, 0.5, allowed)
    assert loss.item() == pytest.approx(wanted, abs=1e-5)


def test_all_of_it_trains_gives_the_same_bytes_and_moves_the_result(small, pairs, graphs, everything) -> None:
    config = small.replace(**EVERYTHING)
    model, trainer = fit(config, pairs, graphs, **everything)
    again, _ = fit(config, pairs, graphs, **everything)
    assert model == again
    assert all(math.isfinite(record.loss) for record in trainer.history)
    for option, without in (("hard_negatives", "negatives"), ("first_epochs", "first")):
        fewer = {name: value for name, value in everything.items() if name != without}
        other = fit(config.replace(**{option: 0}), pairs, graphs, **fewer)[0].weights()
        assert not torch.equal(other["head.outer.bias"], model.weights()["head.outer.bias"])


def test_a_run_with_all_of_it_that_fails_goes_on_to_the_same_result(
    small, pairs, graphs, everything, tmp_path, monkeypatch
) -> None:
    config = small.replace(**EVERYTHING)
    whole, _ = fit(config, pairs, graphs, **everything)
    real = TrainingLoop._step

    def dying(self, epoch, number, *rest):
        if (epoch, number) == (2, 2):
            raise KeyboardInterrupt
        return real(self, epoch, number, *rest)

    monkeypatch.setattr(TrainingLoop, "_step", dying)
    with pytest.raises(KeyboardInterrupt):
        fit(config, pairs, graphs, checkpoint=tmp_path, save_every=0.0, **everything)
    monkeypatch.setattr(TrainingLoop, "_step", real)
    changed = {**everything, "negatives": {**everything["negatives"], "q0": ["a3"]}}
    with pytest.raises(UnfinishedJobError, match="pairs"):
        fit(config, pairs, graphs, checkpoint=tmp_path, **changed)
    assert fit(config, pairs, graphs, checkpoint=tmp_path, **everything)[0] == whole


def test_no_known_answer_is_ever_a_negative_in_training(small, pairs, graphs, everything, never, monkeypatch) -> None:
    seen = []
    real = PairTraining.gradients

    def noting(self, batch):
        documents = [*(answer for _, answer in batch.pairs), *batch.others]
        for (question, answer), row in zip(batch.pairs, batch.allowed.tolist(), strict=True):
            seen.extend(
                (question, name) for name, wrong in zip(documents, row, strict=True) if wrong and name != answer
            )
        return real(self, batch)

    monkeypatch.setattr(PairTraining, "gradients", noting)
    fit(small.replace(**EVERYTHING), pairs, graphs, **everything)
    known = {(question, name) for question, names in never.items() for name in names} | set(pairs)
    assert len(set(seen)) > 100
    assert not set(seen) & known


def test_the_first_epochs_take_the_first_pairs(small, pairs, graphs, monkeypatch) -> None:
    steps = []
    real = TrainingLoop._step
    monkeypatch.setattr(
        TrainingLoop,
        "_step",
        lambda self, epoch, n, work, *rest: (steps.append((epoch, work.pairs)), real(self, epoch, n, work, *rest))[1],
    )
    first = [("a0", "a8"), ("a1", "a9"), ("q5", "a13")]
    fit(small.replace(first_epochs=2), pairs, graphs, first=first, validation=[("q5", "a5"), ("q6", "a6")])
    assert {pair for epoch, batch in steps for pair in batch if epoch <= 2} == set(first[:2])  # q5 is validation's
    assert {pair for epoch, batch in steps for pair in batch if epoch == 3} == {*pairs} - {("q5", "a5"), ("q6", "a6")}


def test_arguments_and_configuration_must_agree(small, pairs, graphs, negatives) -> None:
    for config, options, named in (
        (small, {"negatives": negatives}, "hard_negatives"),
        (small.replace(hard_negatives=1), {}, "hard_negatives"),
        (small, {"first": pairs}, "first_epochs"),
        (small.replace(first_epochs=1), {}, "first_epochs"),
    ):
        with pytest.raises(ConfigError, match=named):
            fit(config, pairs, graphs, **options)
    with pytest.raises(TrainingError, match="first epochs"):
        fit(small.replace(first_epochs=1), pairs, graphs, first=pairs[:1])
    with pytest.raises(TrainingError, match="unheard"):
        fit(small.replace(hard_negatives=1), pairs, graphs, negatives={"q0": ["unheard"], "q99": ["not-asked-for"]})


def test_batches_are_shuffled_by_seed_and_epoch_except_in_validation(small, pairs) -> None:
    data = TrainingData.read(small, pairs, validation=pairs[:9])
    first = data.batches(small, 1)
    assert sorted(pair for batch, _ in first for pair in batch) == sorted(pairs[9:])[:15]
    assert [len(batch) for batch, _ in first] == [8, 7]
    assert [len(batch) for batch, _ in data.batches(small, 1, processes=2)] == [15]
    assert data.batches(small, 1) == first
    assert first != data.batches(small, 2)
    assert first != data.batches(small.replace(seed=7), 1)
    assert batches_of(data.held, 8) == [pairs[:8]]  # a single ninth pair has no negative


def test_the_data_of_a_run_knows_every_post_it_needs(small, pairs, negatives) -> None:
    config = small.replace(hard_negatives=1)
    data = TrainingData.read(
        config, pairs[:4], validation=[pairs[3]], negatives={"q0": ["x"], "q3": ["y"], "q9": ["z"]}
    )
    assert data.trained() == ["a0", "a1", "a2", "q0", "q1", "q2"]
    assert set(data.posts()) == {*data.trained(), "q3", "a3", "x"}
    assert data.digest != TrainingData.read(config, pairs[:4], validation=[pairs[3]], negatives={}).digest
