"""Training in processes of their own: killed at any point, and several that train one model together."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import training_process

CONFIG = {
    "layers": 1, "hidden": 16, "projection": 8, "bases": 4, "batch_size": 8, "epochs": 2, "learning_rate": 1e-3,
    "vocabulary_size": 200, "initialisation": "mean", "beta": 0.5, "hard_negatives": 1,
}  # fmt: skip


def start(output: Path, processes: int = 1, die: tuple[int, int] | None = None, **changes) -> int:
    """Train in one process, or in several with torchrun, and return the exit code."""
    output.mkdir(exist_ok=True)
    options = json.dumps({"config": {**CONFIG, **changes}, "die": die})
    together = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [sys.executable, *(together if processes > 1 else []), training_process.__file__, str(output), options]
    return subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=300, check=False).returncode


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_to_the_same_bytes(tmp_path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    assert start(whole) == 0
    assert start(killed, die=(1, 3)) == -signal.SIGKILL  # within an epoch
    assert start(killed, die=(2, 1)) == -signal.SIGKILL  # between two
    assert not (killed / "model").exists()
    assert start(killed) == 0
    for file in [whole / "losses.json", *(whole / "model").iterdir()]:
        assert (killed / file.relative_to(whole)).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("die", [None, pytest.param((1, 3), marks=pytest.mark.slow)])
def test_two_processes_train_as_one_does_with_batches_of_twice_the_size_even_if_killed(tmp_path, die) -> None:
    options = {"processes": 2, "batch_size": 4, "node_budget": 60}
    if die:
        assert start(tmp_path, die=die, **options) != 0
    assert start(tmp_path, **options) == 0
    _, losses = training_process.train(CONFIG)
    found = json.loads((tmp_path / "losses.json").read_text())
    assert found == [pytest.approx(values, abs=1e-3) for values in losses]
