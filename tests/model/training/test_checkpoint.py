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
from pyterrier_mathamr.model.loop import RunFolder
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
    rows = [json.dumps([dataclasses.asdict(row) for row in each.history]) for each in (one, other)]
    return tensors and rows[0] == rows[1] and one.unfinished == other.unfinished


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "run" / "state"


@pytest.fixture
def fit(small, pairs, graphs):
    def fit(folder: Path, *, pairs=pairs, beta: float = 1.0, **options):
        config = small.replace(epochs=1, beta=beta)
        return Trainer(config, device="cpu").fit(pairs, graphs, checkpoint=folder, verbose=False, **options)

    return fit


def test_the_last_state_is_read_as_it_was_saved(path) -> None:
    checkpoint = Checkpoint(path)
    assert checkpoint.read(RUN) is None
    for seed in (1, 2, 3):
        kept = state(seed)
        checkpoint.save(RUN, kept)
        assert same(Checkpoint(path).read(RUN), kept)
    assert len(list(path.glob("part-*"))) == 1
    checkpoint.verify()
    assert repr(checkpoint) == f"Checkpoint({str(path)!r})"


def test_another_run_is_refused_with_the_differences_and_may_start_over(fit, pairs, tmp_path) -> None:
    def content() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()}

    fit(tmp_path)
    before = content()
    with pytest.raises(UnfinishedJobError, match=r"beta: None, not 0\.3.*--fresh"):
        fit(tmp_path, beta=0.3)
    with pytest.raises(UnfinishedJobError, match="pairs"):
        fit(tmp_path, pairs=pairs[::-1])
    assert content() == before
    assert fit(tmp_path, beta=0.3, fresh=True).config.training.beta == 0.3
    with pytest.raises(UnfinishedJobError):
        fit(tmp_path)


def test_one_run_at_a_time(fit, tmp_path) -> None:
    with RunFolder(tmp_path / "run"), pytest.raises(WriteError, match="process"):
        fit(tmp_path / "run")


@pytest.mark.parametrize("damage", ["changed", "truncated", "removed"])
def test_a_state_that_was_changed_is_found_before_it_is_used(path, damage) -> None:
    Checkpoint(path).save(RUN, state(1))
    (file,) = path.glob("part-*/state.safetensors")
    data = file.read_bytes()
    if damage == "removed":
        file.unlink()
    else:
        file.write_bytes(data[:100] if damage == "truncated" else data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(DamagedError, match=r"state\.safetensors"):
        Checkpoint(path).read(RUN)
    with pytest.raises(DamagedError, match=r"state\.safetensors"):
        Checkpoint(path).verify()


def test_a_full_disk_is_named_and_leaves_the_previous_state(path, monkeypatch) -> None:
    checkpoint, kept = Checkpoint(path), state(1)
    checkpoint.save(RUN, kept)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pyterrier_mathamr.store.files.sync_file", full)
        with pytest.raises(WriteError, match="No space left"):
            checkpoint.save(RUN, state(2))
    assert same(Checkpoint(path).read(RUN), kept)
    assert sorted(each.name for each in path.parent.iterdir()) == ["history.csv", "history.json", "state"]


def test_an_earlier_release_s_checkpoint_is_refused_and_this_one_s_opens(fit, tmp_path) -> None:
    shutil.copytree(DATA / "training-checkpoint-format-1", tmp_path / "old")
    with pytest.raises(FormatError, match=r"earlier release.*--fresh"):
        fit(tmp_path / "old")
    fit(tmp_path / "old", fresh=True)
    opened = Checkpoint(DATA / "training-checkpoint-format-2" / "state").read({"pairs": "x"})
    assert (opened.model["encoder.w"].tolist(), opened.history) == ([1.0, 1.0], ())
