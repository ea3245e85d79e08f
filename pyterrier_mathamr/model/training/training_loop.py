"""The training loop: epochs of batches, from one training state to the next (MathAMR+, section 3.4.5).

::

    batch ──encode──▶ rows of this process ──gather──▶ rows of all ──▶ loss ──▶ gradient of the rows
                 ◀──────────── gradient of the rows of this process, part by part ────────┘

    epoch ──▶ validation loss ──▶ EpochRecord; the weights of the lowest loss are the best ──▶ TrainingState
"""

from __future__ import annotations

import logging
import math
import operator
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import listed
from pyterrier_mathamr._common.running.resources import Heap
from pyterrier_mathamr.graph import GraphBatch, Vocabulary
from pyterrier_mathamr.model.config.config import MathAMRConfig
from pyterrier_mathamr.model.errors import TrainingError
from pyterrier_mathamr.model.variants.starting_weights import random_network

from .batches import Batch, BatchMaker, Prefetch
from .checkpoint import TrainingState, optimizer_tensors, restore_optimizer
from .data import PairBatch, TrainingData, generator_of
from .distributed import ProcessGroup
from .files import Tensors
from .history import EpochRecord, Unfinished, finished
from .losses import ContrastiveLoss, ValidationLoss, batch_loss, validation_loss

_LOG = logging.getLogger(__name__)


class TrainingLoop:
    """A model, its loss and its optimizer."""

    def __init__(
        self,
        config: MathAMRConfig,
        vocabulary: Vocabulary,
        device: torch.device,
        weights: Mapping[str, Tensor] | None = None,
        *,
        group: ProcessGroup | None = None,
        verbose: bool = True,
    ) -> None:
        self.config, self.vocabulary, self.device = config, vocabulary, device
        self.group = group or ProcessGroup(device)
        self.verbose, self.heap = verbose and self.group.rank == 0, Heap()
        encoder = random_network(config, vocabulary)
        if weights is not None:
            encoder.load_state_dict(dict(weights))
        self.encoder, self.loss = encoder.to(device), ContrastiveLoss(config).to(device)
        self.model = nn.ModuleDict({"encoder": self.encoder, "loss": self.loss})
        self.names = [name for name, _ in self.model.named_parameters()]
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=config.training.learning_rate,
            weight_decay=config.training.weight_decay,
            fused=True,
        )

    def train(
        self,
        data: TrainingData,
        tensors: Callable[[], Tensors],
        state: TrainingState | None,
        save: Callable[[TrainingState], None],
        save_every: float = math.inf,
    ) -> TrainingState:
        """Train until the last epoch, or until the validation loss has not decreased for ``patience`` epochs."""
        if state is not None:
            self.model.load_state_dict(state.model)
            restore_optimizer(self.optimizer, self.names, state.optimizer)
            if self._finished(state.history):
                return state
        state = state or self._state({}, (), Unfinished())
        maker = BatchMaker(self.config, tensors(), data.answers, self.group.rank, self.group.size)
        while not self._finished(state.history):
            epoch, done, saved = len(state.history) + 1, state.unfinished, time.monotonic()
            for done in self.epoch(epoch, data, maker, done):  # noqa: B020 - continues from it
                if time.monotonic() - saved >= save_every:
                    save(self._state(state.best, state.history, done))
                    saved = time.monotonic()
            record = self._record(epoch, data, maker, done)
            is_best = all(record.deciding < earlier.deciding for earlier in state.history)
            best = self._weights() if is_best else state.best
            state = self._state(best, (*state.history, record), Unfinished())
            self.heap.trim()
            save(state)
        return state

    def _finished(self, history: Sequence[EpochRecord]) -> bool:
        return finished(history, self.config.training.epochs, self.config.training.patience)

    def _weights(self) -> dict[str, Tensor]:
        return {name: tensor.detach().cpu().clone() for name, tensor in self.model.state_dict().items()}

    def _state(self, best: dict[str, Tensor], history: tuple[EpochRecord, ...], done: Unfinished) -> TrainingState:
        return TrainingState(self._weights(), optimizer_tensors(self.optimizer, self.names), best, history, done)

    def epoch(self, epoch: int, data: TrainingData, maker: BatchMaker, done: Unfinished) -> Iterator[Unfinished]:
        """Train on all pairs once."""
        config = self.config
        batches = data.batches(config, epoch, self.group.size)
        rest = range(done.batches, len(batches))
        loader = Prefetch(lambda i: maker.make(batches[i], generator_of(config.training.seed, epoch, i + 1)), rest)
        before, start = done, time.perf_counter()
        self.model.train()
        for i, batch in zip(rest, progress(loader, self._title(epoch), "batches", verbose=self.verbose), strict=True):
            self._set_rate(((epoch - 1) * len(batches) + i) / (config.training.epochs * len(batches)))
            loss = self._step(epoch, i + 1, batch)
            done = Unfinished(
                batches=i + 1,
                pairs=done.pairs + len(batch.pairs),
                loss=done.loss + loss * len(batch.pairs),
                seconds=before.seconds + time.perf_counter() - start,
                waited=before.waited + loader.waited,
            )
            self.heap.after_batch()
            yield done

    def _record(self, epoch: int, data: TrainingData, maker: BatchMaker, done: Unfinished) -> EpochRecord:
        """Measure the validation loss of an epoch and summarise the epoch."""
        start = time.perf_counter()
        mean = done.loss / done.pairs
        validation = ValidationLoss(mean, mean, mean)
        if len(data.held) > 1:
            validation = self._validate(data.validation_batches(self.config, self.group.size), maker)
        seconds = done.seconds + time.perf_counter() - start
        record = EpochRecord(
            epoch=epoch,
            loss=mean,
            validation_loss=validation.loss,
            temperature=self.loss.temperature.item(),
            learning_rate=float(self.optimizer.param_groups[0]["lr"]),
            seconds=seconds,
            waiting=done.waited / seconds,
            validation_maxsim=validation.maxsim,
            validation_document=validation.document,
            deciding=getattr(validation, self.config.training.stop_by),
        )
        _LOG.info("%s: loss %.4f, validation %.4f", self._title(epoch), record.loss, record.validation_loss)
        return record

    def _title(self, epoch: int) -> str:
        return f"epoch {epoch} of {self.config.training.epochs}"

    def _step(self, epoch: int, number: int, batch: Batch) -> float:
        """Make one step of the optimizer and return the loss."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._gradients(batch)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.training.clip)
        if not (math.isfinite(loss) and math.isfinite(norm.item())):
            raise TrainingError(
                f"the loss of batch {number} in epoch {epoch} is not finite; its pairs (question, answer): "
                f"{listed(batch.pairs)}. Lower learning_rate or clip."
            )
        self.optimizer.step()
        return loss

    def _gradients(self, batch: Batch) -> float:
        """Compute the loss of a batch and the gradients of all parameters."""
        whole = len(batch.parts) == 1
        with torch.set_grad_enabled(whole):
            own = [self._encode(part) for part in batch.parts]
        rows = self._gather([part.detach() for part in own], batch).requires_grad_()
        loss = self._batch_loss(batch, rows)
        value = loss.item()
        if not math.isfinite(value):
            return value
        loss.backward()  # type: ignore[no-untyped-call]
        self.group.divide_gradients(self.model.parameters())
        first = sum(batch.rows[: self.group.rank])
        for part, encoded in zip(batch.parts, own, strict=True):
            again = encoded if whole else self._encode(part)
            again.backward(rows.grad[first : first + len(encoded)])  # type: ignore[index, no-untyped-call]
            first += len(encoded)
        self.group.sum_gradients(self.model.parameters())
        return value

    def _encode(self, graphs: GraphBatch) -> Tensor:
        """Encode graphs: float32 ``[r, d]``."""
        graphs = graphs.to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.training.precision == "bf16"):
            rows: Tensor = self.encoder(graphs)
        return rows.float()

    def _gather(self, own: list[Tensor], batch: Batch) -> Tensor:
        """Concatenate the rows of all graphs of a batch, those of other processes included: float32 ``[r, d]``."""
        none = torch.zeros(0, self.config.projection, device=self.device)
        return self.group.gather(torch.cat([none, *own]), batch.rows)

    def _batch_loss(self, batch: Batch, rows: Tensor) -> Tensor:
        return batch_loss(self.loss, batch, rows)

    @torch.no_grad()
    def _validate(self, batches: Sequence[PairBatch], maker: BatchMaker) -> ValidationLoss:
        """Measure the mean loss of the validation pairs, without noise."""
        self.model.eval()
        losses = []
        for batch in Prefetch(maker.make, batches):
            rows = self._gather([self._encode(part) for part in batch.parts], batch)
            losses.append(validation_loss(self.loss, batch, rows))
        sizes = [len(pairs) for pairs, _ in batches]
        means = (sum(map(operator.mul, part, sizes)) / sum(sizes) for part in zip(*losses, strict=True))
        return ValidationLoss(*means)

    def _set_rate(self, done: float) -> None:
        """Set the learning rate on the cosine from ``learning_rate`` to ``min_learning_rate``; done from 0 to 1."""
        low, high = self.config.training.min_learning_rate, self.config.training.learning_rate
        rate = low + (high - low) * (1 + math.cos(math.pi * done)) / 2
        for group in self.optimizer.param_groups:
            group["lr"] = rate
