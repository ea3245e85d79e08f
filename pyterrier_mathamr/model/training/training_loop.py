"""One training run: epochs of batches, from a snapshot to the next (MathAMR+, section 3.4.5)."""

from __future__ import annotations

import logging
import math
import operator
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr.graph import GraphBatch, Vocabulary
from pyterrier_mathamr.model.config import MathAMRConfig
from pyterrier_mathamr.model.encoder.encoder import Encoder
from pyterrier_mathamr.model.errors import NonFiniteLossError

from .batches import Batch, BatchMaker, ValidationLoss, batch_loss, validation_loss
from .checkpoint import Snapshot, optimizer_tensors, restore_optimizer
from .distributed import Ranks
from .history import EpochRecord, Unfinished
from .losses import ContrastiveLoss
from .memory import return_free_memory
from .negatives import columns_of
from .pairs import Answers, Pair, batches_of
from .prefetch import Prefetch
from .training_data import TrainingData
from .training_files import Tensors
from .work_division import NEGATIVES, Work, divide, noise_of

_LOG = logging.getLogger(__name__)


class TrainingRun:
    """A model, its loss and its optimizer.

    Args:
        config: all options.
        vocabulary: of the labels and relations.
        device: where it computes.
        weights: of the encoder, where training starts from a model.
        ranks: the processes that train together; this one alone where not given.
        verbose: show progress.
    """

    def __init__(
        self,
        config: MathAMRConfig,
        vocabulary: Vocabulary,
        device: torch.device,
        weights: Mapping[str, Tensor] | None = None,
        *,
        ranks: Ranks | None = None,
        verbose: bool = True,
    ) -> None:
        self.config, self.vocabulary, self.device, self.verbose = config, vocabulary, device, verbose
        self.ranks = ranks or Ranks(device)
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

    def epochs(
        self,
        data: TrainingData,
        tensors: Callable[[], Tensors],
        snapshot: Snapshot | None,
        snapshot_every: float = math.inf,
    ) -> Iterator[Snapshot]:
        """Train until the last epoch, or until the validation loss has not fallen for ``patience`` epochs.

        Args:
            data: the pairs; without validation pairs the training loss decides.
            tensors: gives the arrays of each id; called only where there is something to train.
            snapshot: where to go on.
            snapshot_every: seconds between the states within an epoch.

        Yields:
            The state after each epoch, and within an epoch where it is long.

        Raises:
            NonFiniteLossError: a loss or gradient is no number.
        """
        history: tuple[EpochRecord, ...] = ()
        best: dict[str, Tensor] = {}
        done = Unfinished()
        if snapshot is not None:
            history, best, done = snapshot.history, snapshot.best, snapshot.unfinished
            self.model.load_state_dict(snapshot.model)
            restore_optimizer(self.optimizer, self.names, snapshot.optimizer)
        if self._finished(history):
            return
        maker = BatchMaker(self.config, self.vocabulary, tensors())
        while not self._finished(history):
            saved = time.monotonic()
            for done in self._epoch(len(history) + 1, data, maker, done):  # noqa: B020 - goes on from it
                if time.monotonic() - saved >= snapshot_every:
                    yield Snapshot(self._state(), optimizer_tensors(self.optimizer, self.names), best, history, done)
                    saved = time.monotonic()
            record = self._record(len(history) + 1, data, maker, done)
            if all(record.deciding < earlier.deciding for earlier in history):
                best = self._state()
            history, done = (*history, record), Unfinished()
            return_free_memory()
            yield Snapshot(self._state(), optimizer_tensors(self.optimizer, self.names), best, history, done)

    def _finished(self, history: Sequence[EpochRecord]) -> bool:
        if len(history) < 1:
            return False
        losses = [record.deciding for record in history]
        return len(losses) >= self.config.epochs or len(losses) - 1 - losses.index(min(losses)) >= self.config.patience

    def _state(self) -> dict[str, Tensor]:
        return {name: tensor.detach().cpu().clone() for name, tensor in self.model.state_dict().items()}

    def _epoch(self, epoch: int, data: TrainingData, maker: BatchMaker, done: Unfinished) -> Iterator[Unfinished]:
        """Train on all pairs once, from the batch where a snapshot left off; give how far it came after each."""
        config = self.config
        pairs = data.of_epoch(epoch, config.first_epochs)
        drawn = data.draw(pairs, config.hard_negatives, noise_of(config.seed, epoch, NEGATIVES))
        batches = batches_of(pairs, config.batch_size * self.ranks.size, noise_of(config.seed, epoch, 0))
        rest = range(done.batches, len(batches))

        def make(i: int) -> Work:
            others = columns_of(batches[i], drawn)
            return self._divide(maker.make(batches[i], others, noise_of(config.seed, epoch, i + 1)))

        loader = Prefetch(make, rest)
        shown = self.verbose and self.ranks.rank == 0
        before, start = done, time.perf_counter()
        self.model.train()
        for i, work in zip(rest, progress(loader, self._title(epoch), "batch", verbose=shown), strict=True):
            self._set_rate(((epoch - 1) * len(batches) + i) / (config.epochs * len(batches)))
            loss = self._step(epoch, i + 1, work, data.answers)
            done = Unfinished(
                batches=i + 1,
                pairs=done.pairs + len(work.pairs),
                loss=done.loss + loss * len(work.pairs),
                seconds=before.seconds + time.perf_counter() - start,
                waited=before.waited + loader.waited,
            )
            yield done

    def _record(self, epoch: int, data: TrainingData, maker: BatchMaker, done: Unfinished) -> EpochRecord:
        """Measure the validation loss of an epoch and sum it up."""
        start = time.perf_counter()
        mean = done.loss / done.pairs
        validation = ValidationLoss(mean, mean, mean)
        if len(data.held) > 1:
            validation = self._validate(data.held, maker, data.answers)
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
            deciding=getattr(validation, self.config.stop_by),
        )
        _LOG.info("%s: loss %.4f, validation %.4f", self._title(epoch), record.loss, record.validation_loss)
        return record

    def _title(self, epoch: int) -> str:
        return f"epoch {epoch} of {self.config.epochs}"

    def _step(self, epoch: int, number: int, work: Work, answers: Answers) -> float:
        """Make one step of the optimizer."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._gradients(work, answers)
        if not math.isfinite(loss):
            raise NonFiniteLossError(epoch, number, work.pairs)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        if not math.isfinite(norm.item()):
            raise NonFiniteLossError(epoch, number, work.pairs)
        self.optimizer.step()
        return loss

    def _gradients(self, work: Work, answers: Answers) -> float:
        """Compute the loss of a batch and the gradients of all parameters.

        The loss needs the rows of all graphs at once, the encoder does not: its backward pass begins at the rows. So
        where a batch has several parts, each is encoded twice, first for its rows and then for its gradient, and only
        one part's states are ever held.
        """
        whole = len(work.parts) == 1
        with torch.set_grad_enabled(whole):
            own = [self._encode(part) for part in work.parts]
        rows = self._gather([part.detach() for part in own], work).requires_grad_()
        loss = self._batch_loss(work.batch, rows, answers)
        value = loss.item()
        if not math.isfinite(value):
            return value
        loss.backward()  # type: ignore[no-untyped-call]
        self.ranks.share_gradients(self.model.parameters())
        first = sum(work.rows[: self.ranks.rank])
        for part, encoded in zip(work.parts, own, strict=True):
            again = encoded if whole else self._encode(part)
            again.backward(rows.grad[first : first + len(encoded)])  # type: ignore[index, no-untyped-call]
            first += len(encoded)
        self.ranks.sum_gradients(self.model.parameters())
        return value

    def _encode(self, graphs: GraphBatch) -> Tensor:
        """Encode graphs: float32 ``[r, d]``."""
        graphs = graphs.to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bf16"):
            rows: Tensor = self.encoder(graphs)
        return rows.float()

    def _gather(self, own: list[Tensor], work: Work) -> Tensor:
        """Put the rows of all graphs of a batch end to end, those of other processes included: float32 ``[r, d]``."""
        none = torch.zeros(0, self.config.projection, device=self.device)
        return self.ranks.gather(torch.cat([none, *own]), work.rows)

    @torch.no_grad()
    def _validate(self, held: Sequence[Pair], maker: BatchMaker, answers: Answers) -> ValidationLoss:
        """Measure the mean loss of the validation pairs, without noise, always in the same batches."""
        self.model.eval()
        losses = []
        batches = batches_of(held, self.config.batch_size * self.ranks.size)
        for work in Prefetch(lambda batch: self._divide(maker.make(batch)), batches):
            rows = self._gather([self._encode(part) for part in work.parts], work)
            losses.append(validation_loss(self.loss, work.batch, rows, answers))
        pairs = [len(batch) for batch in batches]
        means = (sum(map(operator.mul, part, pairs)) / sum(pairs) for part in zip(*losses, strict=True))
        return ValidationLoss(*means)

    def _batch_loss(self, batch: Batch, rows: Tensor, answers: Answers) -> Tensor:
        """Compute the loss of a batch from the rows of all its graphs: float32 ``[r, d]`` to a scalar."""
        return batch_loss(self.config, self.loss, batch, rows, answers)

    def _divide(self, batch: Batch) -> Work:
        """Say what this process encodes of a batch."""
        return divide(batch, self.config.node_budget, self.ranks.rank, self.ranks.size)

    def _set_rate(self, done: float) -> None:
        """Set the learning rate on the cosine from ``learning_rate`` to ``min_learning_rate``; done from 0 to 1."""
        low, high = self.config.min_learning_rate, self.config.learning_rate
        rate = low + (high - low) * (1 + math.cos(math.pi * done)) / 2
        for group in self.optimizer.param_groups:
            group["lr"] = rate
