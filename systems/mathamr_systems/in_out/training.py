"""Training In+Out: epochs over the formulas of a collection, without any labels (section 3).

A formula contributes the graphs that the condition pairs, with sub-expressions redrawn each epoch. Formulas are used
if their graphs have at least two nodes each, so that a part can be removed; equal graphs are never in one batch, so
they are not negatives of each other.

The contrast of nodes (equations 2 and 3): for a node i of formula f's first graph, z⁺ is the most similar node of f's
second graph, and zₖ⁻ the most similar node of the second graph of each other formula k of the batch::

    ℓᵢ = -log( exp(zᵢ·z⁺/τ) / Σₖ exp(zᵢ·zₖ⁻/τ) )            the positive is not in the sum, as printed: ℓᵢ can be < 0
    L  = ½ ( mean ℓᵢ over the nodes of SLGs + mean ℓᵢ over the nodes of OPGs )
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from pyterrier_mathamr.formula.packed_trees import Packed
from pyterrier_mathamr.model.errors import TrainingError
from pyterrier_mathamr.model.loop import TrainingLoop, Validation
from pyterrier_mathamr.model.losses import best_matches
from pyterrier_mathamr.store import Rows

from .graphs import PAIRINGS, TREE_OF, FormulaGraphs, GraphName, InOutOptions, Pairing, Subexpressions


class Block(NamedTuple):
    """The nodes of one graph of each of the N formulas of a batch."""

    rows: Tensor  # float32 [r, d], of unit length
    offsets: Tensor  # int64 [N + 1]


def contrast(
    blocks: Mapping[GraphName, Block],
    pairings: Sequence[Pairing],
    temperature: float = 0.1,
    positive_in_sum: bool = False,
) -> Tensor:
    """Compute L of equation 3."""
    by_first: dict[GraphName, list[GraphName]] = {}
    for first, second in pairings:
        by_first.setdefault(first, []).append(second)
    halves = []
    for first, seconds in by_first.items():
        rows, offsets = blocks[first]
        count = offsets.numel() - 1
        formula = torch.repeat_interleave(torch.arange(count, device=rows.device), offsets.diff())  # [M]
        best = best_matches(rows, *_joined([blocks[name] for name in seconds]))  # [M, seconds · N]
        logits = best.view(-1, len(seconds), count) / temperature
        mine = formula.view(-1, 1, 1).expand(-1, len(seconds), 1)
        positive = logits.gather(2, mine).squeeze(2)  # [M, seconds]
        summed = logits if positive_in_sum else logits.scatter(2, mine, -torch.inf)
        halves.append((summed.logsumexp(2) - positive).mean())
    return torch.stack(halves).mean()


def _joined(blocks: Sequence[Block]) -> Block:
    offsets, base = [blocks[0].offsets[:1]], 0
    for block in blocks:
        offsets.append(block.offsets[1:] + base)
        base += block.rows.size(0)
    return Block(torch.cat([block.rows for block in blocks]), torch.cat(offsets))


MOST_NODES = 256
"""Formulas with a larger graph, such as a matrix of numbers, take no part: most nodes of a batch would be theirs."""


class FormulaTraining:
    """How a batch of formulas becomes a loss."""

    def __init__(self, network: nn.ModuleDict, graphs: dict[Packed, FormulaGraphs], options: InOutOptions) -> None:
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
        return Validation(loss, loss, loss, math.nan, self._options.temperature)  # a formula has no document vector

    def _loss(self, rows: Rows, generator: np.random.Generator) -> torch.Tensor:
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
