"""The batches of an epoch: which pairs, their graphs with noise, and who encodes what.

::

    pairs   ──shuffle by (seed, epoch)──▶  batches  ──collate, noise by (seed, epoch, batch)──▶  one Batch
            ──cut by nodes──▶  a run of graphs for each process  ──cut by node_budget──▶  parts

Nothing depends on what came before, so an epoch can begin at any batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from pyterrier_mathamr._common.processes import runs_within
from pyterrier_mathamr.graph import GraphBatch

from .batches import Batch
from .pairs import Pair

NEGATIVES = 10_000_018
"""The number, for :func:`noise_of`, of the source of chance that draws an epoch's hard negatives."""


@dataclass(frozen=True, eq=False)
class Work:
    """What one process does for one batch.

    Attributes:
        batch: the pairs of all processes, with all their graphs.
        parts: those that this process encodes, in order, at most ``node_budget`` nodes each (one graph at the least).
        rows: the number of rows of each process.
    """

    batch: Batch
    parts: tuple[GraphBatch, ...]
    rows: list[int]

    @property
    def pairs(self) -> list[Pair]:
        """B pairs, of all processes."""
        return self.batch.pairs


def divide(batch: Batch, budget: int | None, rank: int = 0, size: int = 1) -> Work:
    """Cut a batch into runs of graphs, one for each process, like in nodes, and the own one into parts.

    Args:
        batch: all pairs and graphs.
        budget: most nodes of a part; ``None`` for one part.
        rank: the number of this process.
        size: processes.
    """
    graphs = batch.graphs
    ends = graphs.node_offsets[1:]  # [m]
    total = int(ends[-1])
    cuts = [0, *(int((ends <= total * i // size).sum()) for i in range(1, size)), len(graphs)]
    rows = [int(graphs.offsets[cuts[i + 1]] - graphs.offsets[cuts[i]]) for i in range(size)]
    first, last = cuts[rank], cuts[rank + 1]
    if size == 1 and (budget is None or total <= budget):
        return Work(batch, (graphs,), rows)
    sizes = graphs.node_offsets.diff()[first:last].tolist()
    parts = tuple(graphs.part(first + start, first + stop) for start, stop in _runs(sizes, budget))
    return Work(batch, parts, rows)


def _runs(sizes: Sequence[int], budget: int | None) -> list[tuple[int, int]]:
    """Cut neighbours into runs of at most ``budget`` nodes, one graph at the least."""
    return [(run.start, run.stop) for run in runs_within(sizes, sum(sizes) if budget is None else budget)]


def noise_of(seed: int, epoch: int, batch: int) -> torch.Generator:
    """Give the source of chance of one batch.

    Args:
        seed: of the run.
        epoch: from 1.
        batch: from 1; 0 is the shuffle of the epoch, ``NEGATIVES`` draws its hard negatives.
    """
    return torch.Generator().manual_seed((seed * 1_000_003 + epoch) * 10_000_019 + batch & (2**63 - 1))
