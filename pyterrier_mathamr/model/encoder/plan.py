"""The order in which an R-GCN layer visits the edges of a batch: computed once, used by every layer and both passes.

The matrix W_r multiplies *rows*. A relation's rows are either the means of each target's sources (few targets, many
sources: members to their virtual node) or the sources themselves (few sources, many targets: a virtual node to its
members), whichever are fewer. The rows of one relation are consecutive, so that one product serves them::

    states  [N, in]  ──collect──▶  rows  [p, in]  ──W_r by group──▶  [p, out]  ──spread──▶  [N, out]     p <= e

    r0: a─▶x b─▶x c─▶y    rows mean(a, b), c   (targets x, y)     spread to x, y
    r1: v─▶x v─▶y v─▶z    row  v               (source v)         spread to x, y, z

A GPU is fast at few large products, so there the rows of each relation are padded with zeros to whole *tiles*, and one
batched product serves all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyterrier_mathamr.model.errors import ShapeError

from .sorted_segments import firsts, in_order, pick, places, shares, starts

_TILE = 32  # rows of a tile on a GPU; the most frequent of 500 relations have thousands of rows, half of them under ten


@dataclass(frozen=True)
class Gather:
    """A sparse matrix by rows: result ``i`` is the weighted sum of ``members[starts[i]:starts[i + 1]]``.

    Attributes:
        members: int64 ``[z]``.
        starts: int64 ``[g + 1]``.
        share: float ``[z]``, the weights of a mean.
    """

    members: Tensor
    starts: Tensor
    share: Tensor

    @classmethod
    def build(cls, results: Tensor, members: Tensor, share: Tensor, size: int) -> Gather:
        """Build from members and weights in the order of their results, of which there are ``size``."""
        return cls(members, starts(torch.bincount(results, minlength=size)), share)


@dataclass(frozen=True)
class RelationPlan:
    """Index arrays of one batch of graphs for :class:`~pyterrier_mathamr.model.RelationalGraphConv`.

    Attributes:
        relations: int64 ``[k]``, the relations that occur, ascending.
        ends: int32 ``[k]``, the end of each relation's rows.
        sizes: the number of rows of each relation, k of them.
        tiles: int64 ``[tiles]``, the relation, numbered from 0 to k, of each run of p / tiles rows; ``None`` without
            padding.
        collect: p rows from N states; ``collect_back``: its transpose.
        spread: N results from p products; ``spread_back``: its transpose.
    """

    relations: Tensor
    ends: Tensor
    sizes: tuple[int, ...]
    tiles: Tensor | None
    collect: Gather
    collect_back: Gather
    spread: Gather
    spread_back: Gather

    @classmethod
    def build(
        cls,
        edge_index: Tensor,
        edge_type: Tensor,
        num_nodes: int,
        dtype: torch.dtype = torch.float32,
        targets: Tensor | None = None,
        tile: int | None = None,
    ) -> RelationPlan:
        """Sort the edges of a batch; O(e log e), no gradient.

        Args:
            edge_index: int64 ``[2, e]``, sources and targets.
            edge_type: int64 ``[e]``, relations.
            num_nodes: N.
            dtype: of the shares; that of the states.
            targets: int64 ``[t]``, distinct nodes: only their results are computed, t in place of N.
            tile: the rows of each relation are padded to a multiple of it; 1 for no tiles. By default what suits the
                device.

        Raises:
            ShapeError: ``edge_index`` is not ``[2, e]`` or ``edge_type`` not ``[e]``.
        """
        if edge_index.dim() != 2 or edge_index.size(0) != 2:
            raise ShapeError("edge_index", tuple(edge_index.shape), "[2, e]")
        if edge_type.shape != edge_index.shape[1:]:
            raise ShapeError("edge_type", tuple(edge_type.shape), f"[{edge_index.size(1)}], one relation for each edge")
        results = num_nodes
        if targets is not None:
            results = targets.numel()
            edge_index, edge_type = _into(targets, edge_index, edge_type, num_nodes)
        edges = _Edges.by_row(edge_index, edge_type, num_nodes, _tile_of(edge_index) if tile is None else tile)
        k, lengths = len(edges.relations), tuple(edges.sizes.tolist())
        # A source is collected once and spread by edge, a mean is collected by edge and spread once.
        into, out = places(edges.first | ~edges.late), places(edges.first | edges.late)
        rows, sources = pick(edges.row, into), pick(edges.source, into)
        products, ends = pick(edges.row, out), pick(edges.target, out)
        share = shares(rows, dtype)
        _, by_node = in_order(sources, num_nodes)
        keys, by_result = in_order(ends * k + pick(edges.relation, out), results * k)
        part = shares(keys, dtype)
        back = torch.empty_like(part).index_copy_(0, by_result, part)
        return cls(
            relations=edges.relations,
            ends=edges.sizes.cumsum(0).to(torch.int32),
            sizes=lengths,
            tiles=edges.tiles,
            collect=Gather.build(rows, sources, share, sum(lengths)),
            collect_back=Gather.build(sources, pick(rows, by_node), pick(share, by_node), num_nodes),
            spread=Gather.build(ends, pick(products, by_result), part, results),
            spread_back=Gather.build(products, ends, back, sum(lengths)),
        )


@dataclass(frozen=True)
class _Edges:
    """The edges of a batch in the order of their rows.

    Attributes:
        relations: int64 ``[k]``, those that occur.
        sizes: int64 ``[k]``, the number of rows of each.
        tiles: see :class:`RelationPlan`.
        source, target, relation, row: int64 ``[e]``; relations are numbered from 0 to k.
        first: bool ``[e]``, whether an edge is the first of its row.
        late: bool ``[e]``, whether its row is its source; else the row is the mean for its target.
    """

    relations: Tensor
    sizes: Tensor
    tiles: Tensor | None
    source: Tensor
    target: Tensor
    relation: Tensor
    row: Tensor
    first: Tensor
    late: Tensor

    @classmethod
    def by_row(cls, edge_index: Tensor, edge_type: Tensor, num_nodes: int, tile: int) -> _Edges:
        """Choose the rows of each relation and sort the edges by them."""
        occurs = torch.bincount(edge_type) > 0
        relations, relation = places(occurs), pick(occurs.cumsum(0) - 1, edge_type)
        k, (source, target) = len(relations), edge_index
        by_source, by_target = (_distinct(relation, side, k, num_nodes) for side in (source, target))
        late = pick(by_source < by_target, relation)
        keys, order = in_order(relation * num_nodes + torch.where(late, source, target), k * num_nodes)
        source, target, relation, late = (pick(each, order) for each in (source, target, relation, late))
        first, sizes, tiles = firsts(keys), torch.minimum(by_source, by_target), None
        row = first.cumsum(0) - 1
        if tile > 1:  # each relation's rows begin after the padding of those before it
            counts = torch.div(sizes + (tile - 1), tile, rounding_mode="floor")
            row = row + pick(starts(counts * tile) - starts(sizes), relation)
            tiles = torch.repeat_interleave(torch.arange(k, device=counts.device), counts)
            sizes = counts * tile
        return cls(relations, sizes, tiles, source, target, relation, row, first, late)


def _tile_of(edge_index: Tensor) -> int:
    """Return the rows of a tile on the device of the edges; 1 for no tiles."""
    return _TILE if edge_index.is_cuda else 1


def _distinct(relation: Tensor, node: Tensor, k: int, num_nodes: int) -> Tensor:
    """Count the distinct nodes that each relation has on one side of its edges: int64 ``[k]``."""
    keys, _ = in_order(relation * num_nodes + node, k * num_nodes)
    distinct = pick(keys, places(firsts(keys)))
    return torch.bincount(torch.div(distinct, max(num_nodes, 1), rounding_mode="floor"), minlength=k)


def _into(targets: Tensor, edge_index: Tensor, edge_type: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Keep the edges that end in some nodes, which are renumbered from 0."""
    place = torch.full((num_nodes,), -1, dtype=torch.int64, device=edge_index.device)
    place[targets] = torch.arange(targets.numel(), device=edge_index.device)
    ends = place[edge_index[1]]
    kept = places(ends >= 0)
    return torch.stack([edge_index[0, kept], ends[kept]]), edge_type[kept]
