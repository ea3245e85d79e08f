"""Training: it learns, has the same bytes for the same seed, resumes after a kill, and stops where it must."""

import csv
import json
import math

import pytest
import torch
from torch import nn

from pyterrier_mathamr.model import MathAMR, Trainer, TrainingError
from pyterrier_mathamr.model.loop import RunFolder, TrainingLoop, Validation
from pyterrier_mathamr.model.networks import random_network
from pyterrier_mathamr.model.trainer import PairTraining


def fit(config, pairs, graphs, **options) -> tuple[MathAMR, Trainer]:
    trainer = Trainer(config, device="cpu")
    return trainer.fit(pairs, graphs, verbose=False, **options), trainer


def losses(trainer: Trainer) -> list[tuple[float, float]]:
    return [(record.loss, record.validation_loss) for record in trainer.history]


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def steps_of(monkeypatch, before) -> None:
    """Call a function with the epoch, the number and the batch of each step before it."""
    real = TrainingLoop._step

    def step(self, epoch, number, batch):
        before(epoch, number, batch)
        return real(self, epoch, number, batch)

    monkeypatch.setattr(TrainingLoop, "_step", step)


def dying_at(place: tuple[int, int]):
    def die(*at) -> None:
        if at[:2] == place:
            raise KeyboardInterrupt

    return die


@pytest.fixture(scope="module")
def whole(small, pairs, graphs) -> tuple[MathAMR, Trainer]:
    """A run of three epochs that nothing interrupts."""
    return fit(small, pairs, graphs)


def test_training_lowers_the_loss_and_can_start_from_a_model(small, pairs, graphs) -> None:
    config = small.replace(epochs=12, node_mask=0.0, edge_dropout=0.0, learning_rate=1e-2, patience=12)
    first, before = fit(config, pairs, graphs, validation=pairs[:4])
    assert before.history[-1].loss < 0.8 * before.history[0].loss
    assert first.config == config
    second, after = fit(config.replace(epochs=1), pairs, graphs, validation=pairs[:4], start=first)
    assert after.history[0].loss < before.history[0].loss
    assert second.vocabulary == first.vocabulary


CURVES = [[1.0, 2.0, 3.0, 4.0], [3.0, 1.0, 2.0, 1.5], [4.0, 3.0, 2.0, 1.0], [2.0, 1.0, 1.0, 3.0]]


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("resumes", [False, True])
def test_the_weights_come_from_the_epoch_with_the_lowest_validation_loss(tmp_path, curve, resumes) -> None:
    ended = []

    def run(stop: int) -> nn.Module:
        network = nn.Linear(3, 1)

        def validate(_mean: float) -> Validation:
            if len(ended) == stop:
                raise KeyboardInterrupt
            ended.append(network.weight.detach().clone())
            return Validation(curve[len(ended) - 1], curve[len(ended) - 1])

        with RunFolder(tmp_path) as folder:
            folder.begin({})
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
            loss = lambda batch: network(batch).square().sum()  # noqa: E731
            loop = TrainingLoop(network, optimizer, lambda _: [torch.ones(3)], loss, epochs=4, validate=validate)
            loop.train(folder)
            assert [record.deciding for record in loop.history] == curve
        return network

    if resumes:
        with pytest.raises(KeyboardInterrupt) as caught:
            run(3)
        assert caught.value.__notes__ == [f"the training state after epoch 3 is kept in {tmp_path}"]
    assert torch.equal(run(4).weight, ended[curve.index(min(curve))])
    assert len(ended) == 4


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(whole, small, pairs, graphs, tmp_path) -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    (first, _), (again, _) = whole, fit(small, pairs, graphs)
    assert torch.equal(torch.rand(3), expected)  # the caller's generator
    first.save(tmp_path / "first")
    again.save(tmp_path / "again")
    for name in ("config.json", "vocabulary.json.gz", "weights.safetensors"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert first == again
    assert not equal(first.weights(), fit(small.replace(seed=7), pairs, graphs)[0].weights())


@pytest.mark.parametrize(("killed_in", "save_every"), [(1, 600.0), (3, 0.0)])
def test_a_run_that_fails_goes_on_to_the_same_result_and_is_then_finished(
    whole, small, pairs, graphs, tmp_path, monkeypatch, killed_in, save_every
) -> None:
    with monkeypatch.context() as patch:
        steps_of(patch, dying_at((killed_in, 2)))
        with pytest.raises(KeyboardInterrupt):
            fit(small, pairs, graphs, checkpoint=tmp_path, save_every=save_every)
    steps = []
    steps_of(monkeypatch, lambda *step: steps.append(step[:2]))
    for started in ([(killed_in, 2 if save_every == 0 else 1)], []):
        resumed, trainer = fit(small, pairs, graphs, checkpoint=tmp_path)
        assert (resumed, losses(trainer)) == (whole[0], losses(whole[1]))
        assert steps[:1] == started
        steps.clear()
    rows = json.loads((tmp_path / "history.json").read_text())
    with (tmp_path / "history.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == [1, 2, 3] == [int(row["epoch"]) for row in table]
    assert [(row["loss"], row["validation_loss"]) for row in rows] == losses(trainer)
    assert all(row["seconds"] > 0 and 0 <= row["waiting"] <= 1 for row in rows)
    rates = [row["learning_rate"] for row in rows]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] >= small.training.min_learning_rate


@pytest.mark.parametrize("budget", [1, 150])
def test_a_node_budget_holds_and_changes_no_loss(small, pairs, graphs, monkeypatch, budget) -> None:
    # from zero, rounding grows in a few steps
    config = small.replace(initialisation="mean", learning_rate=1e-3, epochs=1)
    _, at_once = fit(config, pairs, graphs)
    sizes = []
    real = PairTraining._encode

    def noting(self, part):
        sizes.append((len(part), part.nodes.numel()))
        return real(self, part)

    monkeypatch.setattr(PairTraining, "_encode", noting)
    _, parted = fit(config.replace(node_budget=budget), pairs, graphs)
    assert all(count == 1 or nodes <= budget for count, nodes in sizes)
    assert (max(count for count, _ in sizes) == 1) == (budget == 1)
    assert losses(parted) == [pytest.approx(values, abs=1e-3) for values in losses(at_once)]


def test_a_picture_of_the_losses_is_drawn_where_matplotlib_is(small, pairs, graphs, tmp_path, monkeypatch) -> None:
    pytest.importorskip("matplotlib")
    fit(small.replace(epochs=1), pairs, graphs, checkpoint=tmp_path / "drawn")
    assert (tmp_path / "drawn" / "losses.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    fit(small.replace(epochs=1), pairs, graphs, checkpoint=tmp_path / "plain")
    assert not (tmp_path / "plain" / "losses.png").exists()


@pytest.mark.parametrize(("stop_by", "epochs"), [("loss", 4), ("maxsim", 5), ("document", 2)])
def test_the_configured_part_of_the_validation_loss_stops(small, pairs, graphs, monkeypatch, stop_by, epochs) -> None:
    curve = iter([(5.0, 5.0, 1.0), (4.0, 4.0, 2.0), (3.0, 3.5, 2.0), (3.0, 3.0, 2.0), (3.0, 3.0, 0.5)])
    monkeypatch.setattr(PairTraining, "held_losses", lambda _: next(curve))
    _, trainer = fit(small.replace(epochs=5, patience=1, stop_by=stop_by), pairs[:6], graphs, validation=pairs[6:8])
    assert len(trainer.history) == epochs


def test_half_precision_follows_single_precision_closely(small, pairs, graphs) -> None:
    changes = {"initialisation": "mean", "learned": "typed_projection", "bases": None, "learning_rate": 1e-3}
    config = small.replace(epochs=1, beta=0.3, **changes)
    single, half = (fit(config.replace(precision=precision), pairs, graphs)[1] for precision in ("float32", "bf16"))
    assert losses(half) != losses(single)
    assert losses(half) == [pytest.approx(values, rel=0.1) for values in losses(single)]
    (record,) = single.history
    parts = 0.3 * record.validation_maxsim + 0.7 * record.validation_document
    assert record.validation_loss == pytest.approx(parts) == record.deciding


def test_a_loss_that_is_not_a_number_stops_and_names_the_batch(small, pairs, graphs, tmp_path, monkeypatch) -> None:
    real = PairTraining.gradients
    calls = []

    def broken(self, batch):
        calls.append(batch.pairs)
        return math.nan if len(calls) == 6 else real(self, batch)

    monkeypatch.setattr(PairTraining, "gradients", broken)
    with pytest.raises(TrainingError, match=r"batch \d in epoch 2") as caught:
        fit(small, pairs, graphs, checkpoint=tmp_path)
    assert all(repr(pair) in str(caught.value) for pair in calls[-1][:5])
    assert len(json.loads((tmp_path / "history.json").read_text())) == 1


def test_too_few_pairs_and_posts_without_graphs_are_refused_before_training(small, pairs, graphs, tmp_path) -> None:
    with pytest.raises(TrainingError, match=r"2 post.*'x1', 'x2'"):
        fit(small, [*pairs, ("q0", "x1"), ("x2", "a0")], graphs, checkpoint=tmp_path / "run")
    with pytest.raises(TrainingError, match="at least two"):
        fit(small, pairs[:1], graphs, checkpoint=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "changes", [{"virtual_nodes": "global", "beta": 0.0}, {"virtual_nodes": "none"}, {"layers": 0}]
)
def test_the_paper_s_conditions_train(small, pairs, graphs, changes) -> None:
    config = small.replace(epochs=1, **changes)
    model, trainer = fit(config, pairs, graphs)
    (record,) = trainer.history
    assert math.isfinite(record.loss)
    assert math.isfinite(record.validation_loss)
    first = random_network(config, model.vocabulary).state_dict()
    moved = [name for name, tensor in model.weights().items() if not torch.equal(tensor, first[name])]
    assert len(moved) > len(first) / 2
