"""Training: it learns, has the same bytes for the same seed, resumes after a kill, and stops where it must."""

import csv
import json
import math

import pytest
import torch

from pyterrier_mathamr.model import (
    MathAMR,
    Trainer,
    TrainingError,
)
from pyterrier_mathamr.model.loop import TrainingLoop
from pyterrier_mathamr.model.networks import random_network
from pyterrier_mathamr.model.trainer import PairTraining


def fit(config, pairs, graphs, **options) -> tuple[MathAMR, Trainer]:
    trainer = Trainer(config, device="cpu")
    return trainer.fit(pairs, graphs, verbose=False, **options), trainer


def losses(trainer: Trainer) -> list[tuple[float, float]]:
    return [(record.loss, record.validation_loss) for record in trainer.history]


def weights_after_each_epoch(monkeypatch) -> list[dict[str, torch.Tensor]]:
    """Record the encoder's weights as each epoch ends."""
    real, recorded = TrainingLoop._record, []

    def record(self, *arguments):
        recorded.append({name: tensor.clone() for name, tensor in self.network["encoder"].state_dict().items()})
        return real(self, *arguments)

    monkeypatch.setattr(TrainingLoop, "_record", record)
    return recorded


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_training_lowers_the_loss(small, pairs, graphs) -> None:
    config = small.replace(epochs=12, node_mask=0.0, edge_dropout=0.0, learning_rate=1e-2, patience=12)
    model, trainer = fit(config, pairs, graphs, validation=pairs[:6])
    assert trainer.history[-1].loss < 0.8 * trainer.history[0].loss
    assert model.config == config


@pytest.mark.parametrize(
    "curve", [[1.0, 2.0, 3.0, 4.0], [3.0, 1.0, 2.0, 1.5], [4.0, 3.0, 2.0, 1.0], [2.0, 1.0, 1.0, 3.0]]
)
def test_the_weights_come_from_the_epoch_with_the_lowest_validation_loss(
    small, pairs, graphs, monkeypatch, curve
) -> None:
    recorded, values = weights_after_each_epoch(monkeypatch), iter(curve)
    monkeypatch.setattr(PairTraining, "held_losses", lambda _: [next(values)] * 3)
    model, trainer = fit(small.replace(epochs=4, patience=4), pairs, graphs)
    assert [record.validation_loss for record in trainer.history] == curve
    best = curve.index(min(curve))
    assert [equal(weights, model.weights()) for weights in recorded] == [epoch == best for epoch in range(4)]


def test_the_best_epoch_is_also_found_where_a_run_resumes_after_it(small, pairs, graphs, tmp_path, monkeypatch) -> None:
    recorded, values = weights_after_each_epoch(monkeypatch), iter([2.0, 1.0, 3.0, 4.0])
    monkeypatch.setattr(PairTraining, "held_losses", lambda _: [next(values)] * 3)
    real = TrainingLoop._step

    def dying(self, epoch, number, *rest):
        if (epoch, number) == (4, 1):
            raise KeyboardInterrupt
        return real(self, epoch, number, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingLoop, "_step", dying)
        with pytest.raises(KeyboardInterrupt) as caught:
            fit(small.replace(epochs=4, patience=4), pairs, graphs, checkpoint=tmp_path)
    assert caught.value.__notes__ == [f"the training state after epoch 3 is kept in {tmp_path}"]
    model, _ = fit(small.replace(epochs=4, patience=4), pairs, graphs, checkpoint=tmp_path)
    assert equal(recorded[1], model.weights())


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(small, pairs, graphs, tmp_path) -> None:
    first, again = (fit(small, pairs, graphs)[0] for _ in range(2))
    other, _ = fit(small.replace(seed=7), pairs, graphs)
    first.save(tmp_path / "first")
    again.save(tmp_path / "again")
    for name in ("config.json", "vocabulary.json.gz", "weights.safetensors"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert first == again
    assert not equal(first.weights(), other.weights())


def test_training_does_not_change_the_caller_s_random_generator(small, pairs, graphs) -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    fit(small.replace(epochs=1), pairs, graphs)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(("killed_in", "save_every"), [(1, 600.0), (3, 0.0)])
def test_a_run_that_fails_goes_on_to_the_same_result(
    small, pairs, graphs, tmp_path, monkeypatch, killed_in, save_every
) -> None:
    whole, whole_trainer = fit(small, pairs, graphs)
    real = TrainingLoop._step
    steps = []

    def dying(self, epoch, number, *rest):
        if epoch == killed_in and number == 2:
            raise KeyboardInterrupt
        return real(self, epoch, number, *rest)

    def counting(self, epoch, number, *rest):
        steps.append((epoch, number))
        return real(self, epoch, number, *rest)

    monkeypatch.setattr(TrainingLoop, "_step", dying)
    with pytest.raises(KeyboardInterrupt):
        fit(small, pairs, graphs, checkpoint=tmp_path / "run", save_every=save_every)
    monkeypatch.setattr(TrainingLoop, "_step", counting)
    resumed, trainer = fit(small, pairs, graphs, checkpoint=tmp_path / "run")
    assert steps[0] == (killed_in, 2 if save_every == 0 else 1)
    assert resumed == whole
    assert losses(trainer) == losses(whole_trainer)


@pytest.mark.parametrize("budget", [1, 150])
def test_a_node_budget_holds_and_changes_no_loss(small, pairs, graphs, monkeypatch, budget) -> None:
    config = small.replace(initialisation="mean", learning_rate=1e-3)  # from zero, rounding grows in a few steps
    _, whole = fit(config, pairs, graphs)
    sizes = []
    real = PairTraining._encode

    def noting(self, part):
        sizes.append((len(part), part.nodes.numel()))
        return real(self, part)

    monkeypatch.setattr(PairTraining, "_encode", noting)
    _, parted = fit(config.replace(node_budget=budget), pairs, graphs)
    assert all(count == 1 or nodes <= budget for count, nodes in sizes)
    assert (max(count for count, _ in sizes) == 1) == (budget == 1)
    assert losses(parted) == [pytest.approx(values, abs=1e-3) for values in losses(whole)]


def test_a_finished_run_is_not_trained_again(small, pairs, graphs, tmp_path, monkeypatch) -> None:
    model, trainer = fit(small, pairs, graphs, checkpoint=tmp_path)
    monkeypatch.setattr(TrainingLoop, "_step", None)
    again, other = fit(small, pairs, graphs, checkpoint=tmp_path)
    assert (again, other.history) == (model, trainer.history)


def test_the_history_is_written_as_json_and_csv(small, pairs, graphs, tmp_path) -> None:
    _, trainer = fit(small.replace(epochs=2), pairs, graphs, checkpoint=tmp_path)
    rows = json.loads((tmp_path / "history.json").read_text())
    with (tmp_path / "history.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == [1, 2] == [int(row["epoch"]) for row in table]
    assert [(row["loss"], row["validation_loss"]) for row in rows] == losses(trainer)
    assert all(row["seconds"] > 0 and 0 <= row["waiting"] <= 1 for row in rows)
    assert rows[0]["learning_rate"] > rows[1]["learning_rate"] >= small.training.min_learning_rate


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
    _, trainer = fit(small.replace(epochs=5, patience=1, stop_by=stop_by), pairs, graphs)
    assert len(trainer.history) == epochs


def test_the_parts_of_the_validation_loss_make_up_the_whole(small, pairs, graphs) -> None:
    _, trainer = fit(small.replace(epochs=1, beta=0.3), pairs, graphs)
    (record,) = trainer.history
    whole = 0.3 * record.validation_maxsim + 0.7 * record.validation_document
    assert record.validation_loss == pytest.approx(whole) == record.deciding


@pytest.mark.parametrize("changes", [{"learned": "typed_projection"}, {"bases": None}])
def test_half_precision_follows_single_precision_closely(small, pairs, graphs, changes) -> None:
    config = small.replace(**{"initialisation": "mean", "learning_rate": 1e-3, "epochs": 2, **changes})
    single, half = (fit(config.replace(precision=precision), pairs, graphs)[1] for precision in ("float32", "bf16"))
    assert losses(half) != losses(single)
    assert losses(half) == [pytest.approx(values, rel=0.1) for values in losses(single)]


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


def test_posts_without_graphs_are_named_before_anything_is_trained(small, pairs, graphs, tmp_path) -> None:
    with pytest.raises(TrainingError, match=r"2 post.*'x1', 'x2'"):
        fit(small, [*pairs, ("q0", "x1"), ("x2", "a0")], graphs, checkpoint=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_too_few_pairs_are_refused(small, pairs, graphs) -> None:
    with pytest.raises(TrainingError, match="at least two"):
        fit(small, pairs[:1], graphs)


def test_validation_questions_never_train(small, pairs, graphs, monkeypatch) -> None:
    seen = set()
    real = TrainingLoop._step
    monkeypatch.setattr(
        TrainingLoop,
        "_step",
        lambda self, e, n, batch, *rest: (seen.update(batch.pairs), real(self, e, n, batch, *rest))[1],
    )
    fit(small.replace(epochs=1), pairs, graphs, validation=[("q0", "a0"), ("q1", "a1")])
    assert {question for question, _ in seen} == {f"q{i}" for i in range(2, 24)}


def test_training_can_start_from_a_model(small, pairs, graphs) -> None:
    config = small.replace(epochs=1, node_mask=0.0, edge_dropout=0.0)
    long = config.replace(epochs=12, patience=12, learning_rate=1e-2)
    first, before = fit(long, pairs, graphs, validation=pairs[:4])
    second, after = fit(config, pairs, graphs, validation=pairs[:4], start=first)
    assert after.history[0].loss < before.history[0].loss
    assert second.vocabulary == first.vocabulary


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
