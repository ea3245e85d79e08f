"""The processes that train one model together, started by ``torchrun``; a single process is a group of one.

A batch belongs to all processes: ``batch_size`` pairs for each of them. Each process encodes its share of the graphs
and receives the rows of all, so each question meets the negatives of every process::

    process 0   graphs 0 … 40   ──encode──▶  rows 0 … 700    ─┐             ┌─▶  L  ──▶  dL/d rows 0 … 700
    process 1   graphs 41 … 79  ──encode──▶  rows 701 … 1400 ─┴──gather─────┴─▶  L  ──▶  dL/d rows 701 … 1400

L is the loss of the whole batch, the same number in each process. Each process sends the gradient of its own rows back
through the encoder; the sum over the processes is exactly the gradient of L.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from pyterrier_mathamr.model.inputs.devices import choose_device

A = TypeVar("A")


class ProcessGroup:
    """The processes that train together.

    Args:
        device: of this process; the backend is ``nccl`` on a GPU and ``gloo`` on a CPU.

    Attributes:
        rank: the number of this process.
        size: how many there are.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        launched = int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ
        self._own = launched and dist.is_available() and not dist.is_initialized()
        if self._own:
            if device.type == "cuda":  # messages without a device of their own use the current one
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
        """Leave the group if it was joined here."""
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
        """Divide gradients by the number of processes, for what each process computes for the whole batch."""
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


def is_first() -> bool:
    """Tell whether this process writes: it is process 0, or was not started by ``torchrun``."""
    return int(os.environ.get("RANK", "0")) == 0


def local_device(name: str | None) -> torch.device:
    """Choose a device; each process that ``torchrun`` started gets its own GPU."""
    if name in (None, "cuda") and torch.cuda.is_available() and "LOCAL_RANK" in os.environ:
        name = f"cuda:{int(os.environ['LOCAL_RANK']) % torch.cuda.device_count()}"
    return choose_device(name)
