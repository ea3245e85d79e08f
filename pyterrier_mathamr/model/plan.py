"""The order in which an R-GCN layer visits the edges of a batch: made once, used by every layer and both passes.

The matrix W_r multiplies *rows*. A relation's rows are either the means of each target's sources (few targets, many
sources: members to their virtual node) or the sources themselves (few sources, many targets: a virtual node to its
members), whichever are fewer. Rows of one relation lie together, so that one product serves them::

    states  [N, in]  ──collect──▶  rows  [p, in]  ──W_r by group──▶  [p, out]  ──spread──▶  [N, out]     p <= e

    r0: a─▶x b─▶x c─▶y    rows mean(a, b), c   (targets x, y)     spread to x, y
    r1: v─▶x v─▶y v─▶z    row  v               (source v)         spread to x, y, z
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .errors import ShapeError


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
        """Sort entries (result, member, weight) by result; ``size`` is the number of results."""
        _, order = torch.sort(results, stable=True)
        counts = torch.bincount(results, minlength=size)
        return cls(members.index_select(0, order), _starts(counts), share.index_select(0, order))


@dataclass(frozen=True)
class RelationPlan:
    """Index arrays of one batch of graphs for :class:`~pyterrier_mathamr.model.RelationalGraphConv`.

    Attributes:
        relations: int64 ``[k]``, the relations that occur, ascending.
        ends: int32 ``[k]``, the end of each relation's rows.
        sizes: the number of rows of each relation, k of them.
        collect: p rows from N states; ``collect_back``: its transpose.
        spread: N results from p products; ``spread_back``: its transpose.
    """

    relations: Tensor
    ends: Tensor
    sizes: tuple[int, ...]
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
    ) -> RelationPlan:
        """Sort the edges of a batch; O(e log e), no gradient.

        Args:
            edge_index: int64 ``[2, e]``, sources and targets.
            edge_type: int64 ``[e]``, relations.
            num_nodes: N.
            dtype: of the shares; that of the states.
            targets: int64 ``[t]``, distinct nodes, where only their results are wanted, t in place of N.

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
        source, target = edge_index[0], edge_index[1]
        relations, relation = torch.unique(edge_type, return_inverse=True)
        by_source = _Side.build(relation, source, num_nodes, len(relations))
        by_target = _Side.build(relation, target, num_nodes, len(relations))
        turned = by_source.sizes < by_target.sizes  # [k], relations whose rows are their sources
        sizes = torch.where(turned, by_source.sizes, by_target.sizes)
        first = _starts(sizes)[:-1]
        share = by_target.counts.to(dtype).reciprocal().index_select(0, by_target.of_edge)  # [e]
        late, early = turned[relation], ~turned[relation]  # edges of turned relations, and of the others
        row = first[relation] + torch.where(late, by_source.within(relation), by_target.within(relation))  # [e]
        sources = by_source.chosen(turned, first)  # the rows that are a source each
        means = by_target.chosen(~turned, first)  # the rows that are the mean for a target each
        into = _entries((row[early], source[early], share[early]), (*sources, share.new_ones(len(sources[0]))))
        out = _entries((row[late], target[late], share[late]), (*means, share.new_ones(len(means[0]))))
        rows = int(sizes.sum())
        return cls(
            relations=relations,
            ends=sizes.cumsum(0).to(torch.int32),
            sizes=tuple(sizes.tolist()),
            collect=Gather.build(into[0], into[1], into[2], rows),
            collect_back=Gather.build(into[1], into[0], into[2], num_nodes),
            spread=Gather.build(out[1], out[0], out[2], results),
            spread_back=Gather.build(out[0], out[1], out[2], rows),
        )


@dataclass(frozen=True)
class _Side:
    """The distinct (relation, node) of the edges' sources or targets, u of them, sorted.

    Attributes:
        relation, node: int64 ``[u]``.
        counts: int64 ``[u]``, edges of each.
        of_edge: int64 ``[e]``, which one an edge has.
        sizes: int64 ``[k]``, how many each relation has; ``first``: int64 ``[k]``, where they begin.
    """

    relation: Tensor
    node: Tensor
    counts: Tensor
    of_edge: Tensor
    sizes: Tensor
    first: Tensor

    @classmethod
    def build(cls, relation: Tensor, node: Tensor, num_nodes: int, num_relations: int) -> _Side:
        """Sort the (relation, node) pairs of the edges and count each."""
        keys, of_edge, counts = torch.unique(relation * num_nodes + node, return_inverse=True, return_counts=True)
        each = torch.div(keys, max(num_nodes, 1), rounding_mode="floor")
        sizes = torch.bincount(each, minlength=num_relations)
        return cls(each, keys - each * num_nodes, counts, of_edge, sizes, _starts(sizes)[:-1])

    def within(self, relation: Tensor) -> Tensor:
        """Number each edge's (relation, node) within its relation: int64 ``[e]``."""
        return self.of_edge - self.first[relation]

    def chosen(self, wanted: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Give the rows and nodes of the wanted relations, whose rows begin at ``first``."""
        kept = torch.nonzero(wanted[self.relation]).squeeze(1)
        relation = self.relation[kept]
        return first[relation] + kept - self.first[relation], self.node[kept]


def _into(targets: Tensor, edge_index: Tensor, edge_type: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Keep the edges that end in some nodes, which are counted anew from 0."""
    place = torch.full((num_nodes,), -1, dtype=torch.int64, device=edge_index.device)
    place[targets] = torch.arange(targets.numel(), device=edge_index.device)
    ends = place[edge_index[1]]
    kept = torch.nonzero(ends >= 0).squeeze(1)
    return torch.stack([edge_index[0, kept], ends[kept]]), edge_type[kept]


def _entries(*parts: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Put lists of (row, node, weight) end to end."""
    rows, nodes, shares = zip(*parts, strict=True)
    return torch.cat(rows), torch.cat(nodes), torch.cat(shares)


def _starts(counts: Tensor) -> Tensor:
    """Turn the sizes of consecutive groups into their boundaries: int64 ``[g]`` to int64 ``[g + 1]``."""
    starts = counts.new_zeros(counts.numel() + 1)
    torch.cumsum(counts, 0, out=starts[1:])
    return starts
