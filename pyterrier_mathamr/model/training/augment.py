"""Noise for training graphs: masked nodes and dropped edges; virtual nodes keep theirs (MathAMR+, 3.4.4)."""

from __future__ import annotations

import dataclasses

import torch

from pyterrier_mathamr.graph import GraphBatch


def augment(
    batch: GraphBatch, mask_id: int, *, node_mask: float, edge_dropout: float, generator: torch.Generator
) -> GraphBatch:
    """Mask nodes and drop edges at random.

    Each node that is not virtual becomes MASK with probability ``node_mask``; each edge between two nodes that are
    not virtual is dropped with probability ``edge_dropout``. An edge and its inverse are two edges, dropped
    independently.

    Args:
        batch: the graphs; it is not changed.
        mask_id: vocabulary id of the MASK token.
        node_mask: probability, 0 to 1.
        edge_dropout: probability, 0 to below 1.
        generator: the same seed gives the same batch.

    Returns:
        A new batch with the same retrieval nodes.
    """
    device = batch.nodes.device
    drawn = torch.rand(batch.nodes.numel() + batch.edge_type.numel(), generator=generator).to(device)
    for_nodes, for_edges = torch.split(drawn, [batch.nodes.numel(), batch.edge_type.numel()])
    nodes = batch.nodes.masked_fill((for_nodes < node_mask) & ~batch.is_virtual, mask_id)
    structural = batch.is_virtual[batch.edge_index].any(0)  # [e]
    kept = structural | (for_edges >= edge_dropout)
    return dataclasses.replace(
        batch, nodes=nodes, edge_index=batch.edge_index[:, kept], edge_type=batch.edge_type[kept]
    )
