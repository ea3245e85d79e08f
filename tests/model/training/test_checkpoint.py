"""The checkpoint: whose it is, who may write it, and what was changed in it."""

import dataclasses
import json
import math
import shutil
from pathlib import Path

import pytest
import torch

from pyterrier_mathamr.model import Trainer
from pyterrier_mathamr.model.checkpoints import Checkpoint, EpochProgress, EpochRecord, TrainingState
from pyterrier_mathamr.model.loop import TrainingLoop
from pyterrier_mathamr.store import DamagedError, FormatError, UnfinishedJobError, WriteError

DATA = Path(__file__).parents[2] / "data"
RUN = {"beta": 0.5, "pairs": "abc", "number of processes": 1}


def state(seed: int) -> TrainingState:
    draw = torch.Generator().manual_seed(seed)
    record = EpochRecord(1, 0.1, math.nan, 0.05, 1e-3, 2.5, 0.1, 0.3, 0.4, math.inf)
    tensors = {"encoder.w": torch.rand(4, 3, generator=draw), "count": torch.tensor(seed), "none": torch.zeros(0, 3)}
    optimizer = {"step.encoder.w": torch.tensor(3.0), "exp_avg.encoder.w": torch.rand(4, 3, generator=draw)}
    return TrainingState(
        tensors, optimizer, {"encoder.w": torch.rand(4, 3)}, (record,) * seed, EpochProgress(3, 24, 1.5)
    )


def same(one: TrainingState, other: TrainingState) -> bool:
    parts = [(getattr(one, part), getattr(other, part)) for part in ("model", "optimizer", "best")]
    tensors = all(a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a) for a, b in parts)
    rows = [json.dumps([dataclasses.asdict(row) for row in found.history]) for found in (one, other)]
    return tensors and rows[0] == rows[1] and one.unfinished == other.unfinished


def fit(config, pairs, graphs, folder, **options):
    return Trainer(config, device="cpu").fit(pairs, graphs, checkpoint=folder, verbose=False, **options)


def test_the_last_state_is_read_as_it_was_saved(tmp_path) -> None:
    checkpoint = Checkpoint(tmp_path / "run" / "state")
    assert checkpoint.read(RUN) is None
    for seed in (1, 2):
        checkpoint.save(RUN, state(seed))
        found = Checkpoint(tmp_path / "run" / "state").read(RUN)
        assert found.model["count"] == seed
        assert found.model["none"].shape == (0, 3)
        assert found.optimizer["step.encoder.w"].shape == ()
    kept = state(3)
    checkpoint.save(RUN, kept)
    assert same(checkpoint.read(RUN), kept)
    assert len(list((tmp_path / "run/state").glob("part-*"))) == 1
    checkpoint.verify()
    assert repr(checkpoint) == f"Checkpoint({str(tmp_path / 'run' / 'state')!r})"


def test_another_run_is_refused_with_the_differences_and_may_start_over(small, pairs, graphs, tmp_path) -> None:
    short = small.replace(epochs=1)
    first = fit(short, pairs, graphs, tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()}
    with pytest.raises(UnfinishedJobError, match=r"beta: None, not 0\.3.*--fresh"):
        fit(short.replace(beta=0.3), pairs, graphs, tmp_path)
    with pytest.raises(UnfinishedJobError, match="pairs"):
        fit(short, pairs[::-1], graphs, tmp_path)
    assert before == {path: path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()}
    other = fit(short.replace(beta=0.3), pairs, graphs, tmp_path, fresh=True)
    assert other.config.training.beta == 0.3
    with pytest.raises(UnfinishedJobError):
        fit(short, pairs, graphs, tmp_path)
    assert fit(short, pairs, graphs, tmp_path, fresh=True).config == first.config


def test_one_run_at_a_time(small, pairs, graphs, tmp_path, monkeypatch) -> None:
    config = small.replace(epochs=1)
    real = TrainingLoop._record

    def record(self, *arguments):
        with pytest.raises(WriteError, match="process"):
            fit(config, pairs, graphs, tmp_path / "run")
        return real(self, *arguments)

    monkeypatch.setattr(TrainingLoop, "_record", record)
    fit(config, pairs, graphs, tmp_path / "run")


@pytest.mark.parametrize("damage", ["changed", "truncated", "removed"])
def test_a_state_that_was_changed_is_found_before_it_is_used(tmp_path, damage) -> None:
    checkpoint = Checkpoint(tmp_path / "run" / "state")
    checkpoint.save(RUN, state(1))
    (file,) = (tmp_path / "run/state").glob("part-*/state.safetensors")
    data = file.read_bytes()
    if damage == "removed":
        file.unlink()
    else:
        file.write_bytes(data[:100] if damage == "truncated" else data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(DamagedError, match=r"state\.safetensors"):
        Checkpoint(tmp_path / "run" / "state").read(RUN)
    with pytest.raises(DamagedError, match=r"state\.safetensors"):
        Checkpoint(tmp_path / "run" / "state").verify()


def test_a_full_disk_is_named_and_leaves_the_previous_state(tmp_path, monkeypatch) -> None:
    checkpoint, kept = Checkpoint(tmp_path / "run" / "state"), state(1)
    checkpoint.save(RUN, kept)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pyterrier_mathamr.store.files.sync_file", full)
        with pytest.raises(WriteError, match="No space left"):
            checkpoint.save(RUN, state(2))
    assert same(Checkpoint(tmp_path / "run" / "state").read(RUN), kept)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["history.csv", "history.json", "state"]


def test_an_earlier_release_s_checkpoint_is_refused_and_this_one_s_opens(small, pairs, graphs, tmp_path) -> None:
    shutil.copytree(DATA / "training-checkpoint-format-1", tmp_path / "old")
    with pytest.raises(FormatError, match=r"earlier release.*--fresh"):
        fit(small, pairs, graphs, tmp_path / "old")
    fit(small.replace(epochs=1), pairs, graphs, tmp_path / "old", fresh=True)
    found = Checkpoint(DATA / "training-checkpoint-format-2" / "state").read({"pairs": "x"})
    assert (found.model["encoder.w"].tolist(), found.history) == ([1.0, 1.0], ())
