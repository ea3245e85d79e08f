"""The training loop of every model: epochs of batches, from one training state to the next.

::

    batches(epoch) ──make, ahead of time──▶ batch ──loss──▶ gradients ──▶ step        each batch
    validate() ──▶ EpochRecord; the weights of the lowest deciding loss are the best   each epoch
               ──▶ TrainingState ──▶ the folder of the run, from which it resumes

A caller defines the batch, its loss and how an epoch is validated. Resuming, early stopping, progress, the weights
of the best epoch, the folder of a run and the group of processes are here.

Several processes train one model together, started by ``torchrun``; a single process is a group of one. A batch then
belongs to all of them: each encodes its share and receives the rows of all, so each question is contrasted with the
negatives of every process::

    process 0   graphs 0 … 40   ──encode──▶  rows 0 … 700    ─┐             ┌─▶  L  ──▶  dL/d rows 0 … 700
    process 1   graphs 41 … 79  ──encode──▶  rows 701 … 1400 ─┴──gather─────┴─▶  L  ──▶  dL/d rows 701 … 1400

L is the loss of the whole batch, the same number in each process. Each process backpropagates the gradient of its own
rows through the encoder; the sum over the processes is exactly the gradient of L.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.running.resources import Heap
from pyterrier_mathamr.store import move, writer_lock

from .batching import choose_device
from .checkpoints import Checkpoint, EpochProgress, EpochRecord, TrainingState
from .errors import TrainingError
from .saving import SavedModel, check_new_folder

_LOG = logging.getLogger(__name__)

A = TypeVar("A")
Item = TypeVar("Item")
Batch = TypeVar("Batch")


class Validation(NamedTuple):
    """Measurements after an epoch, for its :class:`EpochRecord`; NaN if a model lacks one."""

    validation_loss: float
    deciding: float  # stops training and chooses the epoch; lower is better
    validation_maxsim: float = math.nan
    validation_document: float = math.nan
    temperature: float = math.nan


class TrainingLoop(Generic[Item, Batch]):
    """Trains a network in place.

    Args:
        network: everything that is trained and saved, including a loss with parameters.
        optimizer: over some or all of its parameters.
        batches: the items of an epoch, counted from 1; the same for the same epoch, also in a resumed run.
        loss: of a batch: a scalar with gradient. Or a float, if it has already set the gradients.
        epochs: the maximum.
        make: makes a batch of an item, the epoch and the number of the batch (from 1), in a background thread, ahead of
            time. By default an item is a batch.
        size: the weight of a batch in the mean loss of an epoch.
        rate: the learning rate before a batch, of the epoch, the number of the batch (from 0) and their number in this
            epoch; by default the optimizer's.
        clip: the largest norm of all gradients.
        validate: measures an epoch, given its mean training loss, with the network in evaluation mode. The weights of
            the epoch with the lowest ``deciding`` are kept; without ``validate``, of the last epoch.
        patience: epochs without a lower ``deciding`` before training stops; ``None`` trains all epochs.
        dropout: put the network into training mode.
        seed: of torch's generator, for dropout; its state is saved and the caller's restored. Without it, nothing may
            draw from the generator.
        describe: describes a batch, for the error about a loss that is not finite.
        name: the name of the trained part, if a model is trained in several parts.
        group: the processes that train together; only the first shows progress.
        verbose: show a progress bar for each epoch.

    Attributes:
        history: one record for each finished epoch.
    """

    def __init__(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        batches: Callable[[int], Sequence[Item]],
        loss: Callable[[Batch], Tensor | float],
        *,
        epochs: int,
        make: Callable[[Item, int, int], Batch] | None = None,
        size: Callable[[Batch], int] = lambda _: 1,
        rate: Callable[[int, int, int], float] | None = None,
        clip: float | None = None,
        validate: Callable[[float], Validation] | None = None,
        patience: int | None = None,
        dropout: bool = True,
        seed: int | None = None,
        describe: Callable[[Batch], str] | None = None,
        name: str = "",
        group: ProcessGroup | None = None,
        verbose: bool = False,
    ) -> None:
        self.network, self.optimizer, self.batches, self.loss = network, optimizer, batches, loss
        self.epochs, self.make, self.size, self.rate, self.clip = epochs, make, size, rate, clip
        self.validate, self.patience, self.dropout, self.seed = validate, patience, dropout, seed
        self.describe, self.name = describe, name
        self.verbose = verbose and (group is None or group.rank == 0)
        self.history: tuple[EpochRecord, ...] = ()
        self._losses: list[float] = []  # before each step so far
        self._heap = Heap()
        self._device = next(network.parameters()).device
        names = {id(parameter): name for name, parameter in network.named_parameters()}
        self._names = [names[id(parameter)] for group in optimizer.param_groups for parameter in group["params"]]

    def train(self, folder: RunFolder | None = None, save_every: float = math.inf) -> TrainingState:
        """Train until the last epoch, or until the deciding loss has not decreased for ``patience`` epochs.

        The network ends in evaluation mode with the weights that are kept, also where training is interrupted. The
        state is saved in ``folder``, where the run began or resumes, after each epoch and, within one, after
        ``save_every`` seconds.
        """
        state = folder.state if folder else None
        with ExitStack() as stack:
            if self.seed is not None:
                stack.enter_context(torch.random.fork_rng([self._device] if self._device.type == "cuda" else []))
                torch.manual_seed(self.seed)
            if state is not None:
                self._restore(state)
            self.history = state.history if state else ()
            best = (state.best if state else {}) or self._weights()
            self._losses = list(state.losses) if state else []
            try:
                while state is None or not self.finished(state.history):
                    done, saved = state.unfinished if state else EpochProgress(), time.monotonic()
                    for done in self.epoch(len(self.history) + 1, done):  # noqa: B020 - continues from it
                        if folder and time.monotonic() - saved >= save_every:
                            folder.save(self._state(best, done))
                            saved = time.monotonic()
                    record = self._record(len(self.history) + 1, done)
                    if self.validate is None or all(record.deciding < earlier.deciding for earlier in self.history):
                        best = self._weights()
                    self.history = (*self.history, record)
                    state = self._state(best, EpochProgress())
                    self._heap.trim()
                    if folder:
                        folder.save(state)
            finally:
                self.network.load_state_dict(best)
                self.network.eval()
        return state

    def finished(self, history: Sequence[EpochRecord]) -> bool:
        losses = [record.deciding for record in history]
        if not losses or len(losses) >= self.epochs:
            return bool(losses)
        return self.patience is not None and len(losses) - 1 - losses.index(min(losses)) >= self.patience

    def epoch(self, epoch: int, done: EpochProgress) -> Iterator[EpochProgress]:
        """Train on the rest of an epoch, and yield the progress after each batch."""
        items, make = self.batches(epoch), self.make
        rest = range(done.batches, len(items))
        if make is None:
            batches = cast("Iterator[Batch]", (items[i] for i in rest))
        else:
            batches = prefetch(lambda i: make(items[i], epoch, i + 1), rest)
        before, start, waited = done, time.perf_counter(), 0.0
        self.network.train(self.dropout)
        for i in progress(rest, self._title(epoch), "batches", verbose=self.verbose):
            asked = time.perf_counter()
            batch = next(batches)
            waited += time.perf_counter() - asked
            if self.rate is not None:
                for group in self.optimizer.param_groups:
                    group["lr"] = self.rate(epoch, i, len(items))
            loss = self._step(epoch, i + 1, batch)
            self._losses.append(loss)
            done = EpochProgress(
                batches=i + 1,
                pairs=done.pairs + self.size(batch),
                loss=done.loss + loss * self.size(batch),
                seconds=before.seconds + time.perf_counter() - start,
                waited=before.waited + waited,
            )
            self._heap.after_batch()
            yield done

    def _step(self, epoch: int, number: int, batch: Batch) -> float:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(batch)
        value = loss if isinstance(loss, float) else loss.item()
        if isinstance(loss, Tensor):
            if not loss.requires_grad:  # a batch without any loss
                return value
            if math.isfinite(value):
                loss.backward()  # type: ignore[no-untyped-call]
        norm = math.nan if self.clip else 0.0
        if self.clip and math.isfinite(value):
            norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.clip).item()
        if not (math.isfinite(value) and math.isfinite(norm)):
            content = f"; {self.describe(batch)}" if self.describe else ""
            advice = "the learning rate or clip" if self.clip else "the learning rate"
            raise TrainingError(f"the loss of batch {number} in epoch {epoch} is not finite{content}. Lower {advice}.")
        self.optimizer.step()
        return value

    def _record(self, epoch: int, done: EpochProgress) -> EpochRecord:
        start, mean = time.perf_counter(), done.loss / max(done.pairs, 1)
        self.network.eval()
        with torch.no_grad():
            measured = self.validate(mean) if self.validate else Validation(mean, mean)
        seconds = done.seconds + time.perf_counter() - start
        record = EpochRecord(
            epoch=epoch,
            loss=mean,
            learning_rate=float(self.optimizer.param_groups[0]["lr"]),
            seconds=seconds,
            waiting=done.waited / seconds,
            **measured._asdict(),
        )
        _LOG.info("%s: loss %.4f, validation %.4f", self._title(epoch), record.loss, record.validation_loss)
        return record

    def _title(self, epoch: int) -> str:
        return f"{self.name}{': ' if self.name else ''}epoch {epoch} of {self.epochs}"

    def _weights(self) -> dict[str, Tensor]:
        return {name: tensor.detach().cpu().clone() for name, tensor in self.network.state_dict().items()}

    def _state(self, best: dict[str, Tensor], done: EpochProgress) -> TrainingState:
        moments = self.optimizer.state_dict()["state"]
        random = {} if self.seed is None else {"cpu": torch.random.get_rng_state()}
        if random and self._device.type == "cuda":
            random["cuda"] = torch.cuda.get_rng_state(self._device)
        return TrainingState(
            model=self._weights(),
            optimizer={
                f"{moment}.{self._names[i]}": tensor for i, named in moments.items() for moment, tensor in named.items()
            },
            best=best,
            history=self.history,
            unfinished=done,
            random=random,
            losses=tuple(self._losses),
        )

    def _restore(self, state: TrainingState) -> None:
        self.network.load_state_dict(state.model)
        number = {name: i for i, name in enumerate(self._names)}
        moments: dict[int, dict[str, Tensor]] = {}
        for key, tensor in state.optimizer.items():
            moment, _, name = key.partition(".")
            moments.setdefault(number[name], {})[moment] = tensor
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        if "cpu" in state.random:
            torch.random.set_rng_state(state.random["cpu"])
        if "cuda" in state.random and self._device.type == "cuda":
            torch.cuda.set_rng_state(state.random["cuda"], self._device)


def prefetch(make: Callable[[A], Batch], items: Iterable[A], ahead: int = 2) -> Iterator[Batch]:
    """Yield ``make(item)`` for each item in order, made ahead in one background thread."""
    worker, pending = ThreadPoolExecutor(1), deque[Future[Batch]]()
    try:
        for item in items:
            pending.append(worker.submit(make, item))
            if len(pending) > ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        worker.shutdown(cancel_futures=True)  # finishes no more than the item under way


class ProcessGroup:
    """The processes that train together: ``rank`` is the number of this one, ``size`` how many there are."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        launched = int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ
        self._own = launched and dist.is_available() and not dist.is_initialized()
        if self._own:
            if device.type == "cuda":  # messages without a device use the current one
                torch.cuda.set_device(device)
            # Imported before a group exists: its functions take the group of that moment as their default, and a group
            # that they hold outlives destroy_process_group, with threads that can abort the process as it ends.
            importlib.import_module("torch.distributed.nn.functional")
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        together = dist.is_available() and dist.is_initialized()
        self.rank, self.size = (dist.get_rank(), dist.get_world_size()) if together else (0, 1)

    def __enter__(self) -> ProcessGroup:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own:
            dist.destroy_process_group()
            self._own = False

    def first(self, make: Callable[[], A]) -> A:
        """Call a function in process 0 and send its result, which must be picklable, to all."""
        made = [make() if self.rank == 0 else None]
        if self.size > 1:
            dist.broadcast_object_list(made, src=0, device=self.device)
        return made[0]  # type: ignore[return-value]

    def gather(self, rows: Tensor, counts: list[int]) -> Tensor:
        """Concatenate the rows of all processes."""
        if self.size == 1:
            return rows
        most = max(counts)
        padded = rows.new_zeros(most, rows.size(1))
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded)
        return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])

    def divide_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Divide gradients by the number of processes, for terms that each process computes for the whole batch."""
        if self.size > 1:
            for parameter in parameters:
                if parameter.grad is not None:
                    parameter.grad /= self.size

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum the gradients of all processes, in one message."""
        if self.size == 1:
            return
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
        message = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(message)
        for parameter, part in zip(trained, torch.split(message, [p.numel() for p in trained]), strict=True):
            parameter.grad = part.view_as(parameter)


class RunFolder:
    """The folder of a run, locked while the context is open; without a checkpoint, a temporary one.

    Args:
        checkpoint: the folder, or ``None`` to save nothing.
        group: the processes that train; only the first writes.

    Attributes:
        state: where the run resumes; ``None`` where it begins.

    A run of five epochs::

        with RunFolder("runs/first") as folder:
            folder.begin({**options, "pairs": digest})
            TrainingLoop(network, optimizer, batches, loss, epochs=5).train(folder)
    """

    def __init__(self, checkpoint: str | Path | None, group: ProcessGroup | None = None) -> None:
        self._checkpoint = None if checkpoint is None else Checkpoint(Path(checkpoint) / "state")
        self._group, self._open, self._epochs = group, ExitStack(), 0
        self._writes = group is None or group.rank == 0
        self._run: Mapping[str, Any] = {}
        self.state: TrainingState | None = None

    def __enter__(self) -> RunFolder:
        folder = Path() if self._checkpoint is None else self._checkpoint.path.parent
        if self._writes:
            if self._checkpoint is None:
                folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="mathamr-training-")))
            else:
                self._open.enter_context(writer_lock(folder.absolute()))
        self.path = self._group.first(lambda: folder) if self._group else folder
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._checkpoint is not None and self._epochs and isinstance(error, KeyboardInterrupt):
            error.add_note(f"the training state after epoch {self._epochs} is kept in {self._checkpoint.path.parent}")
        self._open.close()

    def begin(self, run: Mapping[str, Any], *, fresh: bool = False) -> TrainingState | None:
        """Begin or resume a run; return the state from which it resumes, if any.

        ``run`` has the options, data and starting weights, so that no other run resumes from its state; ``fresh``
        discards the state of an interrupted run.
        """
        self._run = dict(run)
        self.state = None if fresh or self._checkpoint is None else self._checkpoint.read(run)
        self._epochs = len(self.state.history) if self.state else 0
        return self.state

    def save(self, state: TrainingState) -> None:
        if self._checkpoint is not None and self._writes:
            self._checkpoint.save(self._run, state)
            self._epochs = len(state.history)

    def draw(self, history: Sequence[EpochRecord]) -> None:
        """Draw the losses, and mark the epoch whose model is kept, into a checkpoint (extra ``plots``)."""
        if self._checkpoint is None or not self._writes or importlib.util.find_spec("matplotlib") is None:
            return
        figures, ticks = require("matplotlib.figure", "plots"), require("matplotlib.ticker", "plots")
        figure = figures.Figure(figsize=(6.4, 4.0), dpi=120, layout="constrained")
        axes = figure.add_subplot()
        epochs = [record.epoch for record in history]
        validation = [record.validation_loss for record in history]
        for name, style, color, alpha, label in (
            ("loss", "o-", "tab:blue", 1.0, "training"),
            ("validation_loss", "o-", "tab:orange", 1.0, "validation"),
            ("validation_maxsim", "--", "tab:orange", 0.7, "validation, MaxSim"),
            ("validation_document", ":", "tab:orange", 0.7, "validation, document"),
        ):
            losses = [getattr(record, name) for record in history]
            if name in ("loss", "validation_loss") or losses != validation:
                axes.plot(epochs, losses, style, color=color, alpha=alpha, label=label)
        best = min(history, key=lambda record: record.deciding)
        axes.axvline(best.epoch, color="grey", linewidth=0.8, zorder=0)
        axes.annotate(f"kept: epoch {best.epoch}", (best.epoch, 1.01), xycoords=axes.get_xaxis_transform(), ha="center",
                      va="bottom", fontsize=9, color="#555555")  # fmt: skip
        axes.xaxis.set_major_locator(ticks.MaxNLocator(integer=True))
        axes.set(xlabel="epoch", ylabel="loss of a pair", ylim=(0, None))
        axes.legend(frameon=False)
        figure.savefig(self.path / "losses.png", metadata={"Software": None})


def local_device(name: str | None) -> torch.device:
    """Choose a device; each process that ``torchrun`` started gets its own GPU."""
    if name in (None, "cuda") and torch.cuda.is_available() and "LOCAL_RANK" in os.environ:
        name = f"cuda:{int(os.environ['LOCAL_RANK']) % torch.cuda.device_count()}"
    return choose_device(name)


Trained = TypeVar("Trained", bound=SavedModel)


def train_and_save(output: Path, train: Callable[[Path], Trained]) -> Trained:
    """Train a model and save it, with its training state in ``<output>.training`` until it is saved.

    ``<output>.history.csv`` and, where it was drawn, ``<output>.losses.png`` remain. Of several processes only the
    first writes.

    Args:
        output: the new model.
        train: returns the model, given the folder for its training state.

    Raises:
        ConfigError: ``output`` exists. WriteError: nothing can be written there.
    """
    check_new_folder(output, "output")
    state = output.with_name(f"{output.name}.training")
    writes = int(os.environ.get("RANK", "0")) == 0  # process 0, or not started by torchrun
    if writes:
        with writer_lock(state.absolute()):
            pass  # fail before anything is computed if another process trains here, or nothing can be written
    model = train(state)
    if writes:
        model.save(output)
        for name in ("history.csv", "losses.png"):
            if (state / name).exists():
                move(state / name, output.with_name(f"{output.name}.{name}"))
        shutil.rmtree(state)
    return model
