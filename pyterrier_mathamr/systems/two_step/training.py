"""The training loop of the two-step search's language models: batches, a loss, the best epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.parameters import COUNT, FRACTION, Rule, at_least, between

Batch = TypeVar("Batch")

_CLIP = 1.0  # the largest norm of a gradient


@dataclass(frozen=True)
class FitOptions:
    """How a language model of the two-step search is trained.

    Batch size and most epochs are printed (Mansouri, dissertation, 2022, section 5.3.1); the paper is silent on the
    others, which are those of sentence-transformers, but for the learning rate's warm-up.

    Args:
        epochs: most epochs: 20 for questions, 50 for answers there.
        batch_size: pairs of a step, 64 there.
        learning_rate: the largest, of AdamW; it falls linearly to 0.
        warm_up: the share of the steps in which the learning rate rises.
        layers: train only so many of the last layers, and what follows them; ``None`` for all. With 2 of MiniLM's 6 a
            step takes less than half the time.
        seed: of the order of pairs, of negatives, and of dropout.

    Raises:
        ConfigError: an option is out of its range.
    """

    epochs: int = 10
    batch_size: int = 64
    learning_rate: float = 2e-5
    warm_up: float = 0.1
    layers: int | None = None
    seed: int = 0

    checks: ClassVar[Mapping[str, Rule]] = {
        "epochs": COUNT,
        "batch_size": COUNT,
        "learning_rate": between(0),
        "warm_up": FRACTION,
        "layers": COUNT.or_none(),
        "seed": at_least(0),
    }

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            self.checks[name].check(name, value)


class Epoch(NamedTuple):
    """What an epoch came to: the mean loss of its steps, and the loss on held-out pairs where there are some."""

    loss: float
    validation: float | None


def fit_network(
    network: Any,
    batches: Callable[[np.random.Generator], Sequence[Batch]],
    loss_of: Callable[[Batch, int], Tensor],
    options: FitOptions,
    validate: Callable[[], float] | None = None,
    *,
    verbose: bool = False,
) -> list[Epoch]:
    """Train a language model; it ends with the weights of the epoch that was best on held-out pairs, else the last."""
    found: list[Epoch] = []
    best: tuple[float, dict[str, Tensor]] | None = None
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        random = np.random.default_rng(options.seed)
        trained = _trained(network, options.layers)
        optimizer = torch.optim.AdamW(trained, lr=options.learning_rate)
        schedule: torch.optim.lr_scheduler.LambdaLR | None = None
        for epoch in range(options.epochs):
            steps = batches(random)
            schedule = schedule or _schedule(optimizer, options, len(steps))
            losses = []
            network.train()
            for number, batch in enumerate(progress(steps, f"epoch {epoch + 1}", "steps", verbose=verbose)):
                loss = loss_of(batch, epoch * len(steps) + number)
                optimizer.zero_grad(set_to_none=True)
                if loss.requires_grad:  # a batch without a pair that counts has none
                    loss.backward()  # type: ignore[no-untyped-call]
                    torch.nn.utils.clip_grad_norm_(trained, _CLIP)
                    optimizer.step()
                schedule.step()
                losses.append(float(loss.detach()))
            network.eval()
            held_out = None if validate is None else validate()
            found.append(Epoch(float(np.mean(losses)) if losses else 0.0, held_out))
            if held_out is not None and (best is None or held_out < best[0]):
                best = held_out, {name: value.detach().clone() for name, value in network.state_dict().items()}
    if best is not None:
        network.load_state_dict(best[1])
    network.requires_grad_(True)
    return found


def _trained(network: Any, layers: int | None) -> list[Tensor]:
    """Freeze all but the last layers and what follows them, and list the parameters that are trained."""
    network.requires_grad_(True)
    stacks = [part for part in network.modules() if isinstance(part, torch.nn.ModuleList) and len(part) > 1]
    if layers is not None and stacks:
        stack = max(stacks, key=len)
        names = [name for name, _ in network.named_parameters()]
        first = stack[max(0, len(stack) - layers)]
        of_first = {id(parameter) for parameter in first.parameters()}
        start = next(i for i, (_, value) in enumerate(network.named_parameters()) if id(value) in of_first)
        frozen = set(names[:start])
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(name not in frozen)
    return [parameter for parameter in network.parameters() if parameter.requires_grad]


def _schedule(optimizer: Any, options: FitOptions, steps: int) -> torch.optim.lr_scheduler.LambdaLR:
    """Raise the learning rate linearly, then let it fall to 0."""
    total = max(1, options.epochs * steps)
    warm_up = max(1, round(options.warm_up * total))
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm_up, (total - step) / max(1, total - warm_up))
    )
