"""Training: epochs over the formulas of a collection, without any labels (section 3).

Of each formula the graphs that the condition pairs, their sub-expressions drawn anew each epoch. Formulas take part
whose graphs have at least two nodes each, so that something is left of them; equal graphs are never in one batch, and
so are no negatives of each other.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.formula.packed_trees import Packed
from pyterrier_mathamr.model.errors import TrainingError
from pyterrier_mathamr.model.training.checkpoint import TrainingState, optimizer_tensors, restore_optimizer
from pyterrier_mathamr.model.training.history import EpochRecord, finished
from pyterrier_mathamr.store import Rows

from .graphs import Graphs
from .loss import Block, contrast
from .options import InOutOptions
from .pairings import PAIRINGS, TREE_OF, GraphName
from .subexpressions import Subexpressions

MOST_NODES = 256
"""Formulas with a larger graph, such as a matrix of numbers, take no part: most nodes of a batch would be theirs."""


class Training:
    """The state of a training run."""

    def __init__(
        self, network: nn.ModuleDict, graphs: dict[Packed, Graphs], options: InOutOptions, verbose: bool
    ) -> None:
        self._network, self._graphs, self._options, self._verbose = network, graphs, options, verbose
        self._parts = {kind: Subexpressions(those) for kind, those in graphs.items()}
        self._numbers = np.stack([those.numbered() for those in graphs.values()], axis=1)  # [x, kinds]
        rows = self._distinct(np.random.default_rng(options.seed).permutation(self._eligible()))
        held_out = max(2, round(options.held_out * len(rows)))
        self._held_out, self._trained = rows[:held_out], rows[held_out:]
        if len(self._trained) < 2:
            raise TrainingError(
                f"training needs at least 4 different formulas of two nodes or more, found {len(rows)}; give more."
            )
        self._optimizer = torch.optim.AdamW(network.parameters(), lr=options.learning_rate)

    @property
    def digest(self) -> str:
        """Identifies the formulas that are trained on and held out."""
        arrays = [self._trained, self._held_out]
        arrays += [array for those in self._graphs.values() for array in (those.labels, those.parents, those.relations)]
        return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()

    def run(self, state: TrainingState | None, save: Callable[[TrainingState], None]) -> TrainingState:
        """Train until the last epoch, or until the held-out loss has not decreased for ``patience`` epochs."""
        names = [name for name, _ in self._network.named_parameters()]
        best, history = self._weights(), tuple[EpochRecord, ...]()
        if state is not None:
            self._network.load_state_dict(state.model)
            restore_optimizer(self._optimizer, names, state.optimizer)
            best, history = state.best, state.history
        try:
            while state is None or not finished(history, self._options.epochs, self._options.patience):
                record = self._epoch(len(history) + 1)
                if all(record.deciding < earlier.deciding for earlier in history):
                    best = self._weights()
                history = (*history, record)
                state = TrainingState(self._weights(), optimizer_tensors(self._optimizer, names), best, history)
                save(state)
        finally:
            self._network.load_state_dict(best)
            self._network.eval()
        return state

    def _weights(self) -> dict[str, torch.Tensor]:
        return {name: tensor.detach().cpu().clone() for name, tensor in self._network.state_dict().items()}

    def _epoch(self, epoch: int) -> EpochRecord:
        start, losses = time.perf_counter(), list[float]()
        generator = np.random.default_rng([self._options.seed, epoch])
        batches = self._batches(generator.permutation(self._trained))
        self._network.train()
        for rows in progress(batches, f"epoch {epoch}", "batches", verbose=self._verbose):
            self._optimizer.zero_grad()
            loss = self._loss(rows, generator)
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimizer.step()
            losses.append(loss.item())
            if not math.isfinite(losses[-1]):
                raise TrainingError(f"the loss of epoch {epoch} is {losses[-1]}; give a lower learning_rate.")
        held_out = self._held_out_loss()
        return EpochRecord(
            epoch=epoch,
            loss=float(np.mean(losses)),
            validation_loss=held_out,
            temperature=self._options.temperature,
            learning_rate=self._options.learning_rate,
            seconds=time.perf_counter() - start,
            waiting=0.0,
            validation_maxsim=held_out,
            validation_document=math.nan,  # a formula has no vector of its own
            deciding=held_out,
        )

    @torch.no_grad()
    def _held_out_loss(self) -> float:
        generator = np.random.default_rng([self._options.seed, 0])
        self._network.eval()
        batches = self._batches(self._held_out)
        return float(
            np.average([self._loss(rows, generator).item() for rows in batches], weights=list(map(len, batches)))
        )

    def _loss(self, rows: Rows, generator: np.random.Generator) -> torch.Tensor:
        """Compute the loss of a batch of formulas."""
        pairings = PAIRINGS[self._options.condition]
        blocks: dict[GraphName, Block] = {}
        for name in sorted({name for pairing in pairings for name in pairing}):
            kind = TREE_OF[name]
            drawn = self._parts[kind].draw(rows, generator) if name.endswith("-sub") else self._graphs[kind].take(rows)
            vectors = self._network[kind](drawn)
            blocks[name] = Block(vectors, torch.from_numpy(drawn.offsets).to(vectors.device))
        return contrast(blocks, pairings, self._options.temperature, self._options.positive_in_sum)

    def _eligible(self) -> Rows:
        """List the formulas that take part."""
        sizes = np.stack([np.diff(those.offsets) for those in self._graphs.values()], axis=1)
        return np.flatnonzero(((sizes >= 2) & (sizes <= MOST_NODES)).all(axis=1))

    def _distinct(self, rows: Rows) -> Rows:
        """Leave out formulas all of whose graphs an earlier one has."""
        _, first = np.unique(self._numbers[rows], axis=0, return_index=True)
        kept: Rows = rows[np.sort(first)]
        return kept

    def _batches(self, rows: Rows) -> list[Rows]:
        """Cut formulas into batches of different graphs, at least two formulas each."""
        size = self._options.batch_size
        cut = [self._unlike(rows[start : start + size]) for start in range(0, len(rows), size)]
        return [batch for batch in cut if len(batch) > 1]

    def _unlike(self, rows: Rows) -> Rows:
        """Leave out formulas that share a graph with an earlier one."""
        for column in range(self._numbers.shape[1]):
            _, first = np.unique(self._numbers[rows, column], return_index=True)
            rows = rows[np.sort(first)]
        return rows
