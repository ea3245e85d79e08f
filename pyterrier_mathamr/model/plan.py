"""The order in which an R-GCN layer visits the edges of a batch: made once, used by every layer and both passes.

Edges are sorted by (relation, target). All edges of one relation into one target form a *pair*; the pairs of one
relation lie together, so that one product serves them::

    edges   (r0,t1) (r0,t1) (r0,t4) (r1,t1) (r1,t2) (r1,t2)     sorted, e of them
    pairs      └──── p0 ────┘ p1      p2      └──── p3 ────┘     p <= e
    groups  └─────── W_r0 ───────┘ └───────── W_r1 ────────┘     one for each relation that occurs
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .errors import ShapeError


@dataclass(frozen=True)
class RelationPlan:
    """Index arrays of one batch of graphs for :class:`~pyterrier_mathamr.model.RelationalGraphConv`.

    Attributes:
        num_nodes: N.
        relations: int64 ``[k]``, the relations that occur, ascending.
        ends: int32 ``[k]``, the end of each relation's pairs.
        sizes: the number of pairs of each relation, k of them.
        source: int64 ``[e]``, source of each sorted edge.
        pair_ptr: int64 ``[p + 1]``, where the edges of each pair begin.
        share: float ``[e]``, one divided by the number of edges of the edge's pair.
        pair_target: int64 ``[p]``, target of each pair.
        by_target: int64 ``[p]``, pairs sorted by target; ``target_ptr``: int64 ``[N + 1]``.
        by_source: int64 ``[e]``, the pair of each edge, edges sorted by source; ``source_ptr``: int64 ``[N + 1]``.
        source_share: float ``[e]``, ``share`` in the order of ``by_source``.
    """

    num_nodes: int
    relations: Tensor
    ends: Tensor
    sizes: tuple[int, ...]
    source: Tensor
    pair_ptr: Tensor
    share: Tensor
    pair_target: Tensor
    by_target: Tensor
    target_ptr: Tensor
    by_source: Tensor
    source_ptr: Tensor
    source_share: Tensor

    @classmethod
    def build(
        cls, edge_index: Tensor, edge_type: Tensor, num_nodes: int, dtype: torch.dtype = torch.float32
    ) -> RelationPlan:
        """Sort the edges of a batch; O(e log e), no gradient.

        Args:
            edge_index: int64 ``[2, e]``, sources and targets.
            edge_type: int64 ``[e]``, relations.
            num_nodes: N.
            dtype: of the shares; that of the states.

        Raises:
            ShapeError: ``edge_index`` is not ``[2, e]`` or ``edge_type`` not ``[e]``.
        """
        if edge_index.dim() != 2 or edge_index.size(0) != 2:
            raise ShapeError("edge_index", tuple(edge_index.shape), "[2, e]")
        if edge_type.shape != edge_index.shape[1:]:
            raise ShapeError("edge_type", tuple(edge_type.shape), f"[{edge_index.size(1)}], one relation for each edge")
        key, order = torch.sort(edge_type * num_nodes + edge_index[1], stable=True)
        pairs, pair_of_edge, counts = torch.unique_consecutive(key, return_inverse=True, return_counts=True)
        relation_of_pair = torch.div(pairs, max(num_nodes, 1), rounding_mode="floor")
        relations, sizes = torch.unique_consecutive(relation_of_pair, return_counts=True)
        pair_target = pairs - relation_of_pair * num_nodes
        source = edge_index[0].index_select(0, order)
        share = counts.to(dtype).reciprocal().index_select(0, pair_of_edge)
        sorted_source, by_source = torch.sort(source, stable=True)
        sorted_target, by_target = torch.sort(pair_target, stable=True)
        return cls(
            num_nodes=num_nodes,
            relations=relations,
            ends=sizes.cumsum(0).to(torch.int32),
            sizes=tuple(sizes.tolist()),
            source=source,
            pair_ptr=_starts(counts),
            share=share,
            pair_target=pair_target,
            by_target=by_target,
            target_ptr=_starts(torch.bincount(sorted_target, minlength=num_nodes)),
            by_source=pair_of_edge.index_select(0, by_source),
            source_ptr=_starts(torch.bincount(sorted_source, minlength=num_nodes)),
            source_share=share.index_select(0, by_source),
        )


def _starts(counts: Tensor) -> Tensor:
    """Turn the sizes of consecutive groups into their boundaries: int64 ``[g]`` to int64 ``[g + 1]``."""
    starts = counts.new_zeros(counts.numel() + 1)
    torch.cumsum(counts, 0, out=starts[1:])
    return starts
