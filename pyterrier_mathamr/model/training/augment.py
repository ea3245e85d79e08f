"""Noise for training graphs.

Masked nodes and dropped edges are the paper's, which leaves virtual nodes and their edges alone (MathAMR+, 3.4.4).
Dropping whole sentences is not in the paper: a post is then seen without a part of what it says.
"""

from __future__ import annotations

import dataclasses

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor

from pyterrier_mathamr.graph import GraphBatch, VirtualKind


def augment(
    batch: GraphBatch, mask_id: int, *, node_mask: float, edge_dropout: float, generator: torch.Generator
) -> GraphBatch:
    """Mask nodes and drop edges at random.

    Each node that is not virtual becomes MASK with probability ``node_mask``; each edge between two nodes that are
    not virtual is dropped with probability ``edge_dropout``. An edge and its inverse are two edges: each is dropped
    on its own.

    Args:
        batch: the graphs; it is not changed.
        mask_id: vocabulary id of the MASK token.
        node_mask: probability, 0 to 1.
        edge_dropout: probability, 0 to below 1.
        generator: the source of chance; one with the same seed gives the same batch.

    Returns:
        A new batch with the same retrieval nodes.
    """
    device = batch.nodes.device
    chance = torch.rand(batch.nodes.numel() + batch.edge_type.numel(), generator=generator).to(device)
    for_nodes, for_edges = torch.split(chance, [batch.nodes.numel(), batch.edge_type.numel()])
    nodes = batch.nodes.masked_fill((for_nodes < node_mask) & ~batch.is_virtual, mask_id)
    structural = batch.is_virtual[batch.edge_index].any(0)  # [e]
    kept = structural | (for_edges >= edge_dropout)
    return dataclasses.replace(
        batch, nodes=nodes, edge_index=batch.edge_index[:, kept], edge_type=batch.edge_type[kept]
    )


def drop_sentences(batch: GraphBatch, share: float, generator: torch.Generator) -> tuple[GraphBatch, Tensor]:
    """Drop whole sentences at random: their virtual node, the nodes that no other sentence has, and their formulas.

    Each sentence is dropped with probability ``share``, but one of each post stays, so that a post of one sentence
    stays as it is. A formula goes with the sentence that its placeholder stands in, with its virtual node and trees.

    Args:
        batch: graphs with the hierarchy of virtual nodes; it is not changed.
        share: probability, 0 to 1.
        generator: the source of chance; one with the same seed gives the same batch.

    Returns:
        A new batch with fewer nodes, edges and retrieval rows, and bool ``[r]``, which rows of ``batch`` it has.
    """
    device, source, target = batch.nodes.device, *batch.edge_index
    post = torch.repeat_interleave(torch.arange(len(batch), device=device), batch.offsets.diff())  # [r]
    sentences = torch.nonzero(batch.kinds == VirtualKind.SENTENCE).squeeze(1)
    chance = torch.rand(sentences.numel(), generator=generator).to(device)
    most = chance.new_zeros(len(batch)).scatter_reduce(0, post[sentences], chance, "amax")
    dropped = (chance < share) & (chance < most[post[sentences]])
    gone = torch.zeros_like(batch.is_virtual)
    gone[batch.virtual[sentences[dropped]]] = True
    lost, within = _members(gone, batch, batch.virtual[sentences])
    gone |= lost
    gone |= _formulas_of(gone, within, batch)
    kept, place = ~gone[batch.virtual], (~gone).cumsum(0) - 1
    edges = ~(gone[source] | gone[target])
    fewer = dataclasses.replace(
        batch,
        nodes=batch.nodes[~gone],
        edge_index=place[batch.edge_index[:, edges]],
        edge_type=batch.edge_type[edges],
        virtual=place[batch.virtual[kept]],
        kinds=batch.kinds[kept],
        offsets=F.pad(kept.cumsum(0), (1, 0))[batch.offsets],
        is_virtual=batch.is_virtual[~gone],
        node_offsets=F.pad((~gone).cumsum(0), (1, 0))[batch.node_offsets],
        features=None if batch.features is None else batch.features[kept],
    )
    return fewer, kept


def _members(gone: Tensor, batch: GraphBatch, sentences: Tensor) -> tuple[Tensor, Tensor]:
    """Mark the content nodes of which no sentence stays, and those that are in any sentence: bool ``[N]`` both."""
    source, target = batch.edge_index
    is_sentence = torch.zeros_like(gone)
    is_sentence[sentences] = True
    member = is_sentence[source] & ~batch.is_virtual[target]
    stays, goes = torch.zeros_like(gone), torch.zeros_like(gone)
    stays[target[member & ~gone[source]]] = True
    goes[target[member & gone[source]]] = True
    return goes & ~stays, goes | stays


def _formulas_of(gone: Tensor, within: Tensor, batch: GraphBatch) -> Tensor:
    """Mark the virtual node and the trees of each formula whose placeholder is gone: bool ``[N]``.

    A tree's nodes are in no sentence; a formula without trees has its placeholder as member, which may be in one.
    """
    source, target = batch.edge_index
    is_formula = torch.zeros_like(gone)
    is_formula[batch.virtual[batch.kinds == VirtualKind.FORMULA]] = True
    member = is_formula[source] & ~batch.is_virtual[target]
    owner = torch.full_like(batch.nodes, -1)  # a tree's nodes belong to their formula's virtual node
    owner[target[member]] = source[member]
    owned = owner >= 0
    enters = owned[target] & ~within[target] & ~owned[source] & ~batch.is_virtual[source]  # placeholder to tree
    marked = torch.zeros_like(gone)
    marked[owner[target[enters & gone[source]]]] = True
    marked[owner[owned & gone]] = True
    return marked | (owned & marked[owner.clamp_min(0)])
