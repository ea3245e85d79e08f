"""What QASim is trained on, and its losses."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr._common.parameters import at_least, one_of
from pyterrier_mathamr.systems.two_step.bi_losses import Batch, PairLosses
from pyterrier_mathamr.systems.two_step.networks import mixed

Loss = Literal["bce", "bce+mnrl"]

_LOSSES = "sentence_transformers.cross_encoder.losses"
_FITS = 1.0
_NEGATIVES = 4  # of the ranking loss, as the library has it


class Example(NamedTuple):
    """A question, an answer, and how well it fits: 0 to 1."""

    question: str
    answer: str
    target: float


def split_folds(examples: Sequence[Example], folds: int | None, fold: int = 0) -> tuple[list[Example], list[Example]]:
    """Divide examples into those to train on and those held out; each question is on one side."""
    if folds is None:
        return list(examples), []
    at_least(2).check("folds", folds)
    one_of(*range(folds)).check("fold", fold)
    by_hash = sorted(
        {example.question for example in examples}, key=lambda text: hashlib.sha256(text.encode()).digest()
    )
    held_out = set(by_hash[fold::folds]) if len(by_hash) > 1 else set()
    parts: tuple[list[Example], list[Example]] = ([], [])
    for example in examples:
        parts[example.question in held_out].append(example)
    return parts


def cross_logits(network: Any, pairs: Sequence[tuple[str, str]]) -> Tensor:
    """Compute what a cross-encoder says of pairs before the sigmoid: float32 ``[n]``, with gradient."""
    features = {
        name: value.to(network.device) if isinstance(value, Tensor) else value
        for name, value in network.preprocess(list(pairs)).items()
    }
    with mixed(network):
        found: Tensor = network(features)["scores"]
    return found.float().view(-1)


class CrossLosses:
    """Binary cross-entropy on targets and, in turn, a ranking loss on what fits."""

    def __init__(self, network: Any, loss: Loss) -> None:
        library: Any = require(_LOSSES, "answers")
        self.network, self.loss = network, loss
        self._graded = library.BinaryCrossEntropyLoss(network)
        self._ranking = library.MultipleNegativesRankingLoss(network)

    def of_batch(self, batch: Sequence[Example], step: int) -> Tensor:
        """Compute the loss of a batch."""
        fitting = [example for example in batch if example.target >= _FITS]
        with mixed(self.network):
            if self.loss == "bce+mnrl" and step % 2 and len(fitting) > 1:
                self._ranking.num_negatives = min(_NEGATIVES, len(fitting) - 1)  # as many as the batch has
                found: Tensor = self._ranking(_columns(fitting), None)
            else:
                targets = torch.tensor([example.target for example in batch], device=self.network.device)
                found = self._graded(_columns(batch), targets)
        return found.float()

    def held_out(self, examples: Sequence[Example], batch_size: int) -> float:
        """Compute the mean cross-entropy of held-out examples."""
        total = 0.0
        with torch.no_grad():
            for start in range(0, len(examples), batch_size):
                batch = examples[start : start + batch_size]
                logits = cross_logits(self.network, [(example.question, example.answer) for example in batch])
                targets = torch.tensor([example.target for example in batch], device=logits.device)
                total += float(torch.nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum"))
        return total / len(examples)


class BiLosses:
    """The losses of QQSim on examples."""

    def __init__(self, network: Any) -> None:
        self._losses = PairLosses(network)

    def of_batch(self, batch: Sequence[Example], step: int) -> Tensor:
        """Compute the loss of a batch."""
        return self._losses.of_batch(_pairs(batch), step)

    def held_out(self, examples: Sequence[Example], batch_size: int) -> float:
        """Compute the mean contrastive loss of held-out batches."""
        starts = range(0, len(examples), batch_size)
        with torch.no_grad():
            found = [self._losses.contrastive(_pairs(examples[start : start + batch_size])) for start in starts]
        return float(np.mean([float(loss) for loss in found]))


def random_batches(examples: Sequence[Example], batch_size: int, random: np.random.Generator) -> list[list[Example]]:
    """Cut examples into batches in a random order."""
    order = random.permutation(len(examples)).tolist()
    return [[examples[i] for i in order[start : start + batch_size]] for start in range(0, len(order), batch_size)]


def _columns(batch: Sequence[Example]) -> list[list[str]]:
    return [[example.question for example in batch], [example.answer for example in batch]]


def _pairs(batch: Sequence[Example]) -> Batch:
    of_target = {
        target: [(example.question, example.answer) for example in batch if example.target == target]
        for target in (0.0, _FITS)
    }
    return Batch(of_target[_FITS], of_target[0.0])
