"""Batches: many graphs as one disconnected graph, without padding (MathAMR+, section 3.4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .structure import GraphError, VirtualKind
from .tensors import FIRST_VIRTUAL_ID, GraphTensors


@dataclass(eq=False)
class GraphBatch:
    """The graphs of a batch, concatenated; nodes are numbered through the batch.

    Attributes:
        nodes: int64 ``[N]``, vocabulary id of each node.
        edge_index: int64 ``[2, e]``, source and target of each edge.
        edge_type: int64 ``[e]``, relation id of each edge.
        virtual: int64 ``[r]``, the node of each retrieval vector.
        kinds: int64 ``[r]``, the :class:`VirtualKind` of each.
        offsets: int64 ``[m + 1]``; graph ``i`` owns the rows ``virtual[offsets[i]:offsets[i + 1]]``.
        is_virtual: bool ``[N]``, virtual nodes: never masked, their edges never dropped.
        node_offsets: int64 ``[m + 1]``; graph ``i`` owns the nodes ``node_offsets[i]`` to ``node_offsets[i + 1]``.
        features: float16 ``[r, d_x]``, input of the model for each row of ``virtual`` besides the graph, or ``None``.
    """

    nodes: Tensor
    edge_index: Tensor
    edge_type: Tensor
    virtual: Tensor
    kinds: Tensor
    offsets: Tensor
    is_virtual: Tensor
    node_offsets: Tensor
    features: Tensor | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to(self, device: torch.device | str) -> GraphBatch:
        """Copy the batch to ``device``."""
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: tensor.to(device) for name, tensor in tensors.items() if tensor is not None})

    def part(self, first: int, last: int) -> GraphBatch:
        """Return the graphs ``first`` to ``last`` - 1 as a batch."""
        node, end = self.node_offsets[first], self.node_offsets[last]
        row, stop = self.offsets[first], self.offsets[last]
        inside = (self.edge_index[0] >= node) & (self.edge_index[0] < end)
        return GraphBatch(
            nodes=self.nodes[node:end],
            edge_index=self.edge_index[:, inside] - node,
            edge_type=self.edge_type[inside],
            virtual=self.virtual[row:stop] - node,
            kinds=self.kinds[row:stop],
            offsets=self.offsets[first : last + 1] - row,
            is_virtual=self.is_virtual[node:end],
            node_offsets=self.node_offsets[first : last + 1] - node,
            features=None if self.features is None else self.features[row:stop],
        )


def collate(graphs: Sequence[GraphTensors]) -> GraphBatch:
    """Concatenate graphs, with node numbers shifted so that no edge crosses graphs.

    Args:
        graphs: at least one graph.

    Returns:
        The batch on the CPU.

    Raises:
        GraphError: there are no graphs, or some have text features and others have none or wider ones.
    """
    if not graphs:
        raise GraphError("collate", "a batch of no graphs")
    first = _starts([len(graph.nodes) for graph in graphs])
    offsets = _starts([len(graph.virtual) for graph in graphs])
    edges = [len(graph.relations) for graph in graphs]
    nodes = torch.from_numpy(np.concatenate([graph.nodes for graph in graphs]).astype(np.int64))
    edge_index = np.concatenate([graph.edges for graph in graphs], axis=1) + np.repeat(first[:-1], edges)
    virtual = np.concatenate([graph.virtual for graph in graphs]) + np.repeat(first[:-1], np.diff(offsets))
    relations = np.concatenate([graph.relations for graph in graphs]).astype(np.int64)
    kinds = np.concatenate([graph.kinds for graph in graphs]).astype(np.int64)
    features = [graph.features for graph in graphs if graph.features is not None]
    if features and (len(features) != len(graphs) or len({array.shape[1] for array in features}) > 1):
        fault = "text features of different widths, or some without; encode all with one text encoder"
        raise GraphError("collate", fault)
    return GraphBatch(
        nodes=nodes,
        edge_index=torch.from_numpy(edge_index),
        edge_type=torch.from_numpy(relations),
        virtual=torch.from_numpy(virtual),
        kinds=torch.from_numpy(kinds),
        offsets=torch.from_numpy(offsets),
        is_virtual=(nodes >= FIRST_VIRTUAL_ID) & (nodes < FIRST_VIRTUAL_ID + len(VirtualKind)),
        node_offsets=torch.from_numpy(first),
        features=torch.from_numpy(np.concatenate(features)) if features else None,
    )


def _starts(lengths: Sequence[int]) -> npt.NDArray[np.int64]:
    """Compute the offsets of pieces of these lengths: int64 ``[m + 1]``."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])
