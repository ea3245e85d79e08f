"""Training: epochs over the formulas of a collection, without any labels (section 3).

Of each formula the graphs that the condition pairs, their sub-expressions drawn anew each epoch. Formulas take part
whose graphs have at least two nodes each, so that something is left of them; equal graphs are never in one batch, and
so are no negatives of each other.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import torch
from torch import nn

from pyterrier_mathamr.formula.packed_trees import Packed
from pyterrier_mathamr.model.errors import TrainingError
from pyterrier_mathamr.model.loop import TrainingLoop, Validation
from pyterrier_mathamr.store import Rows

from .graphs import Graphs
from .loss import Block, contrast
from .options import InOutOptions
from .pairings import PAIRINGS, TREE_OF, GraphName
from .subexpressions import Subexpressions

MOST_NODES = 256
"""Formulas with a larger graph, such as a matrix of numbers, take no part: most nodes of a batch would be theirs."""


class FormulaTraining:
    """How a batch of formulas becomes a loss."""

    def __init__(self, network: nn.ModuleDict, graphs: dict[Packed, Graphs], options: InOutOptions) -> None:
        self._network, self._graphs, self._options = network, graphs, options
        self._parts = {kind: Subexpressions(those) for kind, those in graphs.items()}
        self._numbers = np.stack([those.numbered() for those in graphs.values()], axis=1)  # [x, kinds]
        rows = self._distinct(np.random.default_rng(options.seed).permutation(self._eligible()))
        held_out = max(2, round(options.held_out * len(rows)))
        self._held_out, self._trained = rows[:held_out], rows[held_out:]
        if len(self._trained) < 2:
            raise TrainingError(
                f"training needs at least 4 different formulas of two nodes or more, found {len(rows)}; give more."
            )
        self._generator = np.random.default_rng()

    @property
    def digest(self) -> str:
        """Identifies the formulas that are trained on and held out."""
        arrays = [self._trained, self._held_out]
        arrays += [array for those in self._graphs.values() for array in (those.labels, those.parents, those.relations)]
        return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()

    def loop(self, verbose: bool) -> TrainingLoop[Rows, Rows]:
        """Make the training loop."""
        options = self._options
        return TrainingLoop(
            self._network,
            torch.optim.AdamW(self._network.parameters(), lr=options.learning_rate),
            self._epoch,
            lambda rows: self._loss(rows, self._generator),
            epochs=options.epochs,
            validate=self._validate,
            patience=options.patience,
            verbose=verbose,
        )

    def _epoch(self, epoch: int) -> list[Rows]:
        """List the batches of an epoch; their sub-expressions are drawn by the same generator."""
        self._generator = np.random.default_rng([self._options.seed, epoch])
        return self._batches(self._generator.permutation(self._trained))

    def _validate(self, _mean: float) -> Validation:
        """Measure the mean loss of the held-out formulas, always with the same sub-expressions."""
        generator, batches = np.random.default_rng([self._options.seed, 0]), self._batches(self._held_out)
        losses = [self._loss(rows, generator).item() for rows in batches]
        loss = float(np.average(losses, weights=list(map(len, batches))))
        return Validation(loss, loss, loss, math.nan, self._options.temperature)  # a formula has no vector of its own

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
