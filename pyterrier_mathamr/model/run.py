"""One training run: epochs of batches, from a snapshot to the next (MathAMR+, section 3.4.5)."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr.graph import MASK_ID, GraphBatch, GraphTensors, MathAMRGraph, Vocabulary, collate

from .augment import augment
from .checkpoint import Snapshot, optimizer_tensors, restore_optimizer
from .config import MathAMRConfig
from .encoder import Encoder
from .errors import NonFiniteLossError
from .history import EpochRecord
from .losses import ContrastiveLoss
from .pairs import Answers, Pair, batches_of
from .prefetch import Prefetch
from .tensors import tensors_of

_LOG = logging.getLogger(__name__)


class Graphs(Protocol):
    """Graphs by id: a ``GraphStore`` or a mapping."""

    def __getitem__(self, key: str, /) -> MathAMRGraph: ...

    def __contains__(self, key: object, /) -> bool: ...


class TrainingRun:
    """A model, its loss and its optimizer.

    Args:
        config: all options.
        vocabulary: of the labels and relations.
        device: where it computes.
        weights: of the encoder, where training starts from a model.
        verbose: show progress.
    """

    def __init__(
        self,
        config: MathAMRConfig,
        vocabulary: Vocabulary,
        device: torch.device,
        weights: Mapping[str, Tensor] | None = None,
        *,
        verbose: bool = True,
    ) -> None:
        self.config, self.vocabulary, self.device, self.verbose = config, vocabulary, device, verbose
        with torch.random.fork_rng(devices=[]):  # the caller's own chance is left alone
            torch.manual_seed(config.seed)
            encoder = Encoder(config, len(vocabulary.nodes), len(vocabulary.relations))
        if weights is not None:
            encoder.load_state_dict(dict(weights))
        self.encoder, self.loss = encoder.to(device), ContrastiveLoss(config).to(device)
        self.model = nn.ModuleDict({"encoder": self.encoder, "loss": self.loss})
        self.names = [name for name, _ in self.model.named_parameters()]
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, fused=True
        )
        self._tensors: dict[str, GraphTensors] = {}

    def epochs(
        self, train: Sequence[Pair], held: Sequence[Pair], graphs: Graphs, snapshot: Snapshot | None
    ) -> Iterator[Snapshot]:
        """Train until the last epoch, or until the validation loss has not fallen for ``patience`` epochs.

        Args:
            train: training pairs.
            held: validation pairs; without them the training loss decides.
            graphs: the graph of each id.
            snapshot: where to go on.

        Yields:
            The state after each epoch.

        Raises:
            NonFiniteLossError: a loss or gradient is no number.
        """
        history = snapshot.history if snapshot else ()
        best = snapshot.best if snapshot else {}
        if snapshot is not None:
            self.model.load_state_dict(snapshot.model)
            restore_optimizer(self.optimizer, self.names, snapshot.optimizer)
        if self._finished(history):
            return
        names = list(dict.fromkeys(name for pair in (*train, *held) for name in pair))
        made = tensors_of((graphs[name] for name in names), self.vocabulary, self.config, len(names), self.verbose)
        self._tensors = dict(zip(names, made, strict=True))
        answers = Answers((*train, *held))
        while not self._finished(history):
            record = self._epoch(len(history) + 1, train, held, answers)
            if all(record.validation_loss < earlier.validation_loss for earlier in history):
                best = self._state()
            history = (*history, record)
            yield Snapshot(self._state(), optimizer_tensors(self.optimizer, self.names), best, history)

    def _finished(self, history: Sequence[EpochRecord]) -> bool:
        if len(history) < 1:
            return False
        losses = [record.validation_loss for record in history]
        return len(losses) >= self.config.epochs or len(losses) - 1 - losses.index(min(losses)) >= self.config.patience

    def _state(self) -> dict[str, Tensor]:
        return {name: tensor.detach().cpu().clone() for name, tensor in self.model.state_dict().items()}

    def _epoch(self, epoch: int, train: Sequence[Pair], held: Sequence[Pair], answers: Answers) -> EpochRecord:
        """Train on all pairs once and measure the validation loss."""
        start = time.perf_counter()
        chance = torch.Generator().manual_seed(self.config.seed * 1_000_003 + epoch)
        batches = batches_of(train, self.config.batch_size, chance)
        noise = torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=chance)))
        loader = Prefetch(lambda batch: (batch, self._collate(batch, noise)), batches)
        title = f"epoch {epoch} of {self.config.epochs}"
        total, count = 0.0, 0
        self.model.train()
        for number, (batch, graphs) in enumerate(progress(loader, title, "batch", verbose=self.verbose)):
            self._set_rate(((epoch - 1) * len(batches) + number) / (self.config.epochs * len(batches)))
            loss = self._step(epoch, number + 1, batch, graphs, answers)
            total, count = total + loss * len(batch), count + len(batch)
        mean = total / count
        record = EpochRecord(
            epoch=epoch,
            loss=mean,
            validation_loss=self._validate(held, answers) if len(held) > 1 else mean,
            temperature=self.loss.temperature.item(),
            learning_rate=float(self.optimizer.param_groups[0]["lr"]),
            seconds=time.perf_counter() - start,
            waiting=loader.waited / (time.perf_counter() - start),
        )
        _LOG.info("%s: loss %.4f, validation %.4f", title, record.loss, record.validation_loss)
        return record

    def _step(self, epoch: int, number: int, batch: list[Pair], graphs: GraphBatch, answers: Answers) -> float:
        """Make one step of the optimizer."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._batch_loss(batch, graphs, answers)
        value = loss.item()
        if not math.isfinite(value):
            raise NonFiniteLossError(epoch, number, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        if not math.isfinite(norm.item()):
            raise NonFiniteLossError(epoch, number, batch)
        self.optimizer.step()
        return value

    @torch.no_grad()
    def _validate(self, held: Sequence[Pair], answers: Answers) -> float:
        """Measure the mean loss of the validation pairs, without noise, always in the same batches."""
        self.model.eval()
        batches = batches_of(held, self.config.batch_size)
        total = sum(self._batch_loss(batch, self._collate(batch), answers).item() * len(batch) for batch in batches)
        return total / sum(map(len, batches))

    def _batch_loss(self, batch: list[Pair], graphs: GraphBatch, answers: Answers) -> Tensor:
        """Encode B questions and their B answers at once and compare them."""
        graphs = graphs.to(self.device)
        rows = self.encoder(graphs)  # [r, d]
        middle = graphs.offsets[len(batch)]
        loss: Tensor = self.loss(
            rows[:middle],
            graphs.offsets[: len(batch) + 1],
            rows[middle:],
            graphs.offsets[len(batch) :] - middle,
            answers.allowed(batch).to(self.device),
        )
        return loss

    def _collate(self, batch: list[Pair], noise: torch.Generator | None = None) -> GraphBatch:
        """Put the graphs of a batch end to end: B questions, then their B answers; with noise in training."""
        names = [question for question, _ in batch] + [answer for _, answer in batch]
        graphs = collate([self._tensors[name] for name in names])
        if noise is None:
            return graphs
        config = self.config
        return augment(graphs, MASK_ID, node_mask=config.node_mask, edge_dropout=config.edge_dropout, generator=noise)

    def _set_rate(self, done: float) -> None:
        """Set the learning rate on the cosine from ``learning_rate`` to ``min_learning_rate``; done from 0 to 1."""
        low, high = self.config.min_learning_rate, self.config.learning_rate
        rate = low + (high - low) * (1 + math.cos(math.pi * done)) / 2
        for group in self.optimizer.param_groups:
            group["lr"] = rate
