"""Speed and memory of training: pairs a second, the share spent waiting, and the time for the paper's epoch.

    python benchmarks/train.py GRAPH_STORE SOURCE [--pairs 1024] [--batch-size 32] [--device cpu] [--set bases=256 …]
    torchrun --nproc-per-node 2 benchmarks/train.py …          several GPUs, or processes on a CPU

GRAPH_STORE holds the graphs of the posts of SOURCE, an ARQMath folder or a pair file, see ``mathamr graphs``. One epoch
is trained after a warm-up of two batches, on a CPU with one thread; there CPU time is measured, too, which depends less
on the load of the machine. The paper trains on 45,000 pairs: 455 s an epoch on two GTX 1080 Ti with its experiments'
settings, batches of 32, and 69 min an epoch in its benchmark run, 256 bases and batches of 16.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import torch

from pyterrier_mathamr.arqmath import read_training_pairs
from pyterrier_mathamr.graph import GraphStore, Vocabulary
from pyterrier_mathamr.model import MathAMRConfig
from pyterrier_mathamr.model.checkpoints import EpochProgress
from pyterrier_mathamr.model.loop import ProcessGroup, RunFolder, local_device
from pyterrier_mathamr.model.pairs import TrainingData
from pyterrier_mathamr.model.trainer import PairTraining, open_tensors

PAPER_PAIRS = 45_000


def epoch(args: argparse.Namespace, config: MathAMRConfig) -> None:
    """Train one epoch and print its costs."""
    device = local_device(args.device)
    graphs = GraphStore(args.graph_store)
    pairs = [pair for pair in read_training_pairs(args.source).train if pair[0] in graphs and pair[1] in graphs]
    data = TrainingData.read(config, pairs[: args.pairs], [])
    names = data.posts()
    with ProcessGroup(device) as group, RunFolder(None, group) as folder:
        vocabulary = group.first(
            lambda: Vocabulary.build((graphs[name] for name in names), min_role_count=config.vocabulary.min_role_count)
        )
        training = PairTraining(config, vocabulary, data, group)
        training.tensors = open_tensors(folder.path, group, names, graphs, vocabulary, config)
        loop = training.loop()
        for warm in loop.epoch(1, EpochProgress()):
            if warm.batches == 2:
                break
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        start = time.process_time()
        *_, done = loop.epoch(2, EpochProgress())
        seconds = time.process_time() - start
        if group.rank > 0:
            return
        print(
            f"{done.pairs} pairs in batches of {config.training.batch_size} x {group.size}, {vocabulary!r}, on {device}"
        )
        print(f"{done.pairs / done.seconds:8.1f} pairs/s      {100 * done.waited / done.seconds:.1f} % spent waiting")
        if device.type == "cpu":
            print(f"{done.pairs / seconds:8.1f} pairs/s of CPU time")
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        else:
            memory = torch.cuda.max_memory_allocated() / 2**20
        print(f"{memory:8.0f} MiB at the peak, of {'the process' if device.type == 'cpu' else 'the device'}")
        print(f"{PAPER_PAIRS * done.seconds / done.pairs:8.0f} s for an epoch of the paper's {PAPER_PAIRS:,} pairs")


def main() -> None:
    """Read the arguments and measure."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("graph_store", type=Path)
    options.add_argument("source", type=Path)
    options.add_argument("--pairs", type=int, default=1024)
    options.add_argument("--batch-size", type=int, default=32)
    options.add_argument("--device", default="cpu")
    options.add_argument("--set", dest="changes", nargs="*", default=[], metavar="OPTION=VALUE")
    args = options.parse_args()
    if args.device == "cpu":
        torch.set_num_threads(1)
    changes = {name: _value(text) for name, _, text in (change.partition("=") for change in args.changes)}
    epoch(args, MathAMRConfig(batch_size=args.batch_size, epochs=2).replace(**changes))


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    main()
