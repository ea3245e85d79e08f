"""A training batch: the graphs of its posts, and which of them this process encodes.

::

    graphs  [ B questions | B answers | H hard negatives ]
              └────── nodes masked, edges dropped ─────┘
    work    [ process 0      | process 1      | … ]   runs of graphs of about as many nodes
              └ parts of at most ``node_budget`` nodes

Validation batches have no noise, so their loss is comparable whatever is trained.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr.graph import MASK_ID, GraphBatch, collate
from pyterrier_mathamr.model.config.config import MathAMRConfig

from .augment import augment
from .data import Answers, Pair, PairBatch
from .files import Tensors


@dataclass(frozen=True, eq=False)
class Batch:
    """B pairs and H hard negatives.

    Attributes:
        pairs: the pairs of all processes.
        others: the hard negatives.
        graphs: all graphs, on the CPU, in the order of the module's drawing.
        allowed: bool ``[B, B + H]``, which documents may be negatives of which questions.
        parts: the graphs that this process encodes, in order.
        rows: the number of rows that each process encodes.
    """

    pairs: list[Pair]
    others: list[str]
    graphs: GraphBatch
    allowed: Tensor
    parts: tuple[GraphBatch, ...]
    rows: list[int]


class BatchMaker:
    """Makes batches under a configuration."""

    def __init__(
        self,
        config: MathAMRConfig,
        tensors: Tensors,
        answers: Answers,
        rank: int = 0,
        processes: int = 1,
    ) -> None:
        self.config, self.tensors, self.answers = config, tensors, answers
        self.rank, self.processes = rank, processes

    def make(self, batch: PairBatch, noise: torch.Generator | None = None) -> Batch:
        """Collate the graphs of a batch and divide the work."""
        pairs, others = batch
        names = [*(question for question, _ in pairs), *(answer for _, answer in pairs), *others]
        graphs, training = collate(self.tensors.get_many(names)), self.config.training
        if noise is not None:
            probabilities = {"node_mask": training.node_mask, "edge_dropout": training.edge_dropout}
            graphs = augment(graphs, MASK_ID, **probabilities, generator=noise)
        parts, rows = divide(graphs, training.node_budget, self.rank, self.processes)
        return Batch(pairs, others, graphs, self.answers.allowed(pairs, others), parts, rows)


def divide(
    graphs: GraphBatch, budget: int | None, rank: int = 0, processes: int = 1
) -> tuple[tuple[GraphBatch, ...], list[int]]:
    """Divide graphs among processes, by nodes, and cut the share of this process into parts."""
    ends = graphs.node_offsets[1:]  # [m]
    total = int(ends[-1])
    cuts = [0, *(int((ends <= total * i // processes).sum()) for i in range(1, processes)), len(graphs)]
    rows = [int(graphs.offsets[cuts[i + 1]] - graphs.offsets[cuts[i]]) for i in range(processes)]
    budget = total if budget is None else budget
    if processes == 1 and total <= budget:
        return (graphs,), rows
    first, last = cuts[rank], cuts[rank + 1]
    sizes = graphs.node_offsets.diff()[first:last].tolist()
    return tuple(graphs.part(first + run.start, first + run.stop) for run in runs_within(sizes, budget)), rows
