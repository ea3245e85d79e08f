"""One process of a training run, for tests that kill it or start several: ``training_process.py OUTPUT OPTIONS``."""

import json
import os
import random
import signal
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[3]))  # not the folder: other tests have a conftest, too

from pyterrier_mathamr.model import MathAMR, MathAMRConfig, Trainer
from pyterrier_mathamr.model.loop import TrainingLoop
from tests.model.conftest import TOPICS, post


def train(config: dict, checkpoint: Path | None = None) -> tuple[MathAMR, list[tuple[float, float]]]:
    """Train on small posts, and return the model and its losses."""
    rng = random.Random(7)
    graphs = {f"{side}{i}": post(f"{side}{i}", TOPICS[i % 8], rng) for i in range(24) for side in "qa"}
    pairs = [(f"q{i}", f"a{i}") for i in range(24)]
    negatives = {f"q{i}": [f"a{i - 1}", f"a{i - 2}"] for i in range(2, 24)}
    trainer = Trainer(MathAMRConfig(**config), device="cpu")
    model = trainer.fit(pairs, graphs, negatives=negatives, checkpoint=checkpoint, save_every=0.0, verbose=False)
    return model, [(record.loss, record.validation_loss) for record in trainer.history]


def main(output: Path, options: dict) -> None:
    """Train; ``die`` = [epoch, batch] kills the process before that batch, without any message."""
    torch.set_num_threads(1)
    real = TrainingLoop._step

    def step(self, epoch, number, *rest):
        if [epoch, number] == options["die"]:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, epoch, number, *rest)

    TrainingLoop._step = step
    model, losses = train(options["config"], output / "run")
    if int(os.environ.get("RANK", "0")) == 0:
        model.save(output / "model")
        (output / "losses.json").write_text(json.dumps(losses))
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").glob("*")]
    sys.exit(3 if any("gloo" in name for name in names) else 0)  # such a thread can abort a process that ends


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
