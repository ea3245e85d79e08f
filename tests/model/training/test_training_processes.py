"""Training in processes of their own: killed at any point, and several that train one model together."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "training_process.py"
CONFIG = {
    "layers": 1, "hidden": 16, "projection": 8, "bases": 4, "batch_size": 8, "epochs": 2, "learning_rate": 1e-3,
    "vocabulary_size": 200, "initialisation": "mean", "beta": 0.5, "hard_negatives": 1,
}  # fmt: skip


def start(output: Path, processes: int = 1, die: list[int] | None = None, **changes) -> int:
    """Train in one process, or in several with torchrun, and return the exit code."""
    output.mkdir(exist_ok=True)
    options = json.dumps({"config": {**CONFIG, **changes}, "die": die})
    together = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [sys.executable, *(together if processes > 1 else []), str(SCRIPT), str(output), options]
    return subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=120, check=False).returncode


def losses_of(output: Path) -> list[list[float]]:
    return json.loads((output / "losses.json").read_text())


def model_bytes(output: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((output / "model").iterdir())}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("whole")
    assert start(output) == 0
    return output


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_to_the_same_bytes(undisturbed, tmp_path) -> None:
    assert start(tmp_path, die=[1, 3]) == -signal.SIGKILL  # within an epoch
    assert start(tmp_path, die=[2, 1]) == -signal.SIGKILL  # between two
    assert not (tmp_path / "model").exists()
    assert start(tmp_path) == 0
    assert model_bytes(tmp_path) == model_bytes(undisturbed)
    assert losses_of(tmp_path) == losses_of(undisturbed)


def test_two_processes_train_as_one_does_with_batches_of_twice_the_size_even_if_killed(undisturbed, tmp_path) -> None:
    options = {"processes": 2, "batch_size": 4, "node_budget": 60}
    assert start(tmp_path, die=[1, 3], **options) != 0
    assert start(tmp_path, **options) == 0
    assert losses_of(tmp_path) == [pytest.approx(values, abs=1e-3) for values in losses_of(undisturbed)]
