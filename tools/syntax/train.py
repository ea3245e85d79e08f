"""Train the tagger and dependency parser of `DependencyAmrParser` and write its quantized weights.

The data are UD English EWT and mathematical sentences, newly drawn for each epoch (see `mathematics`).

    OMP_NUM_THREADS=1 python tools/syntax/train.py UD_FOLDER pyterrier_mathamr/data/parser

UD_FOLDER has en_ewt-ud-{train,dev,test}.conllu.gz. Training needs a few minutes on one core and is reproducible on one
machine; this command wrote the weights in the package. The epoch that is best on the dev split is written at the end.
``--words-only`` writes only the table of lemmas.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from accuracy import accuracy
from lemma_table import lemma_table
from mathematics import Grammar
from names import Names, batches
from network import Net
from torch import nn
from treebank import Tree, read, varied
from weights import FILES, write, write_names

from pyterrier_mathamr.amr.dependency.syntax import SyntaxNet

BATCH = 3000  # tokens with padding
UNKNOWN = 0.15  # fraction of words that are replaced by the unknown word in training


def trained(train: list[Tree], names: Names, epochs: int, drawn: int, seed: int) -> Iterator[tuple[Net, float]]:
    """Train, and yield the network after each epoch with the epoch's loss."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    grammar = Grammar()
    net = Net(len(names.vocabulary), len(names.tags), len(names.relations))
    matrices, others = ([p for p in net.parameters() if (p.ndim > 1) == wanted] for wanted in (True, False))
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.02}, {"params": others, "weight_decay": 0.0}], lr=3e-3
    )
    steps = epochs * len(batches([*train, *grammar.sentences(drawn, rng)], BATCH, rng))

    def rate(step: int) -> float:  # linear warm-up, then a cosine to nothing
        return min(1.0, (step + 1) / 200) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    for _ in range(epochs):
        net.train()
        total = 0.0
        trees = [*train, *grammar.sentences(drawn, rng)]
        for group in batches([varied(tree, rng) for tree in trees], BATCH, rng):
            ids, *gold = names.tensors(group)
            ids[names.words[ids] & (torch.rand(ids.shape) < UNKNOWN)] = 0
            loss = net.loss(ids, *gold)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += float(loss.detach())
        yield net.eval(), total


def train_and_write(treebank: Path, output: Path, epochs: int, drawn: int, seed: int) -> None:
    """Train and write the weights that are best on the dev split."""
    train, dev, test = (read(treebank / f"en_ewt-ud-{part}.conllu.gz") for part in ("train", "dev", "test"))
    names, lemmas = Names.of(train), lemma_table(treebank / "en_ewt-ud-train.conllu.gz")
    best = -1.0
    start = time.monotonic()
    with TemporaryDirectory() as folder:
        candidate, kept = Path(folder, "candidate"), Path(folder, "kept")
        for epoch, (net, loss) in enumerate(trained(train, names, epochs, drawn, seed), 1):
            write(net, names, lemmas, candidate)
            found = accuracy(SyntaxNet(candidate), dev)
            print(f"epoch {epoch}: loss {loss:.1f}, dev {found}, {time.monotonic() - start:.0f} s", flush=True)
            if found.relations > best:
                best = found.relations
                shutil.copytree(candidate, kept, dirs_exist_ok=True)
        print(f"kept: dev {accuracy(SyntaxNet(kept), dev)}; test {accuracy(SyntaxNet(kept), test)}")
        output.mkdir(parents=True, exist_ok=True)
        for name in FILES:  # only now, so that an interrupted run leaves the old weights
            shutil.copyfile(kept / name, output / f"{name}.new")
            os.replace(output / f"{name}.new", output / name)


def main() -> None:
    """Read the command line, then train or write the lemmas only."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("treebank", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--drawn", type=int, default=2000, help="sentences of mathematics for an epoch")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--words-only", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.words_only:
        lemmas = lemma_table(options.treebank / "en_ewt-ud-train.conllu.gz")
        names = json.loads(gzip.decompress((options.output / FILES[1]).read_bytes()))
        write_names({**names, "lemmas": lemmas}, options.output)
    else:
        train_and_write(options.treebank, options.output, options.epochs, options.drawn, options.seed)


if __name__ == "__main__":
    main()
