"""The relational graph convolution by relation-sorted segments (MathAMR+, equation 2.4).

``torch_geometric.nn.RGCNConv`` loops over all relations and searches the edges of each; ``FastRGCNConv`` stores one
matrix for each edge. Here each relation that occurs multiplies, at once, only the rows that carry its messages::

    x [N, in]  ──collect──▶  [p, in]  ──W_r by group──▶  [p, out]  ──spread──▶  [N, out]

Cost: O(e·(in + out) + p·in·out), memory O(p·(in + out)), where p <= e is the number of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr._common.errors import ConfigError

from .errors import ModelError

_BITS = 63  # of an integer that is not negative
_TILE = 32  # rows of a tile on a GPU; the most frequent of 500 relations have thousands of rows, half of them under ten


@dataclass(frozen=True)
class Gather:
    """A sparse matrix by rows: result ``i`` is the weighted sum of ``members[starts[i]:starts[i + 1]]``."""

    members: Tensor  # int64 [z]
    starts: Tensor  # int64 [g + 1]
    share: Tensor  # float [z], the weights of a mean

    @classmethod
    def build(cls, results: Tensor, members: Tensor, share: Tensor, size: int) -> Gather:
        return cls(members, _starts(torch.bincount(results, minlength=size)), share)


@dataclass(frozen=True)
class RelationPlan:
    """Index arrays of one batch of graphs for :class:`~pyterrier_mathamr.model.RelationalGraphConv`.

    A relation has a row for each source of its edges, or for each target, the mean of its sources, if these are fewer.
    """

    relations: Tensor  # int64 [k], the relations that occur, ascending
    ends: Tensor  # int32 [k], the end of each relation's rows
    sizes: tuple[int, ...]  # the number of rows of each relation
    tiles: Tensor | None  # int64 [tiles], the relation, from 0 to k, of each run of p / tiles rows; or no padding
    collect: Gather  # p rows from N states
    collect_back: Gather  # the transpose
    spread: Gather  # N results from p products
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
        """Sort the edges of a batch; O(e log e), no gradient."""
        if edge_index.dim() != 2 or edge_index.size(0) != 2:
            raise ModelError(f"edge_index has shape {tuple(edge_index.shape)}; expected [2, e].")
        if edge_type.shape != edge_index.shape[1:]:
            expected = f"[{edge_index.size(1)}], one relation for each edge"
            raise ModelError(f"edge_type has shape {tuple(edge_type.shape)}; expected {expected}.")
        source, target = edge_index
        results = num_nodes
        if targets is not None:
            kept, target = edges_into(targets, edge_index, num_nodes)
            source, edge_type, results = source[kept], edge_type[kept], targets.numel()

        # The relations that occur are numbered from 0 to k; each has the rows of its sources or of its targets.
        occurs = torch.bincount(edge_type) > 0
        relations, relation = _where(occurs), _pick(occurs.cumsum(0) - 1, edge_type)
        k = len(relations)
        by_source, by_target = (_distinct(relation, side, k, num_nodes) for side in (source, target))
        of_source = _pick(by_source < by_target, relation)  # bool [e], as all that follows
        keys, order = _in_order(relation * num_nodes + torch.where(of_source, source, target), k * num_nodes)
        source, target, relation, of_source = (_pick(each, order) for each in (source, target, relation, of_source))
        first, sizes, tiles = _firsts(keys), torch.minimum(by_source, by_target), None
        row = first.cumsum(0) - 1
        tile = (_TILE if edge_index.is_cuda else 1) if tile is None else tile
        if tile > 1:  # each relation's rows begin after the padding of those before it
            counts = torch.div(sizes + (tile - 1), tile, rounding_mode="floor")
            row = row + _pick(_starts(counts * tile) - _starts(sizes), relation)
            tiles = torch.repeat_interleave(torch.arange(k, device=counts.device), counts)
            sizes = counts * tile
        lengths = tuple(sizes.tolist())

        # A source is collected once and spread by edge, a mean is collected by edge and spread once.
        into, out = _where(first | ~of_source), _where(first | of_source)
        rows, sources = _pick(row, into), _pick(source, into)
        products, ends = _pick(row, out), _pick(target, out)
        share = _shares(rows, dtype)
        _, by_node = _in_order(sources, num_nodes)
        keys, by_result = _in_order(ends * k + _pick(relation, out), results * k)
        part = _shares(keys, dtype)
        back = torch.empty_like(part).index_copy_(0, by_result, part)
        return cls(
            relations=relations,
            ends=sizes.cumsum(0).to(torch.int32),
            sizes=lengths,
            tiles=tiles,
            collect=Gather.build(rows, sources, share, sum(lengths)),
            collect_back=Gather.build(sources, _pick(rows, by_node), _pick(share, by_node), num_nodes),
            spread=Gather.build(ends, _pick(products, by_result), part, results),
            spread_back=Gather.build(products, ends, back, sum(lengths)),
        )


def edges_into(targets: Tensor, edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Find the edges that end in some nodes: their positions, and the number of each one's target among ``targets``."""
    number = torch.full((num_nodes,), -1, dtype=torch.int64, device=edge_index.device)
    number[targets] = torch.arange(targets.numel(), device=edge_index.device)
    ends = number[edge_index[1]]
    kept = _where(ends >= 0)
    return kept, ends[kept]


def _in_order(keys: Tensor, bound: int) -> tuple[Tensor, Tensor]:
    """Sort integers below a bound stably, and return their order, too."""
    bits = keys.numel().bit_length()
    if keys.device.type != "cpu" or bound.bit_length() + bits > _BITS:
        numbers, order = torch.sort(keys, stable=True)
        return numbers, order
    # numpy sorts key and position as one number faster than torch sorts keys
    both = torch.from_numpy(np.sort(((keys << bits) | torch.arange(keys.numel())).numpy()))
    return both >> bits, both & ((1 << bits) - 1)


def _distinct(relation: Tensor, node: Tensor, k: int, num_nodes: int) -> Tensor:
    """Count the distinct nodes that each relation has on one side of its edges: int64 ``[k]``."""
    keys, _ = _in_order(relation * num_nodes + node, k * num_nodes)
    distinct = _pick(keys, _where(_firsts(keys)))
    return torch.bincount(torch.div(distinct, max(num_nodes, 1), rounding_mode="floor"), minlength=k)


def _firsts(keys: Tensor) -> Tensor:
    """Mark the first number of each segment: int64 ``[e]`` to bool ``[e]``."""
    first = torch.ones_like(keys, dtype=torch.bool)
    torch.ne(keys[1:], keys[:-1], out=first[1:])
    return first


def _shares(keys: Tensor, dtype: torch.dtype) -> Tensor:
    """Compute 1 / (the length of its segment) for each number: int64 ``[e]`` to float ``[e]``."""
    _, run, counts = torch.unique_consecutive(keys, return_inverse=True, return_counts=True)
    return _pick(counts.to(dtype).reciprocal(), run)


def _starts(counts: Tensor) -> Tensor:
    """Turn the sizes of consecutive groups into their boundaries: int64 ``[g]`` to int64 ``[g + 1]``."""
    return F.pad(counts.cumsum(0), (1, 0))


def _pick(values: Tensor, at: Tensor) -> Tensor:
    """Return ``values[at]`` for integers ``at``, four times faster."""
    return values.index_select(0, at)


def _where(marks: Tensor) -> Tensor:
    return torch.nonzero(marks).squeeze(1)


class RelationalGraphConv(nn.Module):
    r"""One R-GCN layer: h'_i = W_0 h_i + b + Σ_r mean_{j ∈ N_i^r} W_r h_j, with W_r = Σ_b a_rb V_b (equation 2.4).

    Numbers, parameter names and shapes match ``torch_geometric.nn.RGCNConv``: ``weight`` ``[B, in, out]`` (or
    ``[R, in, out]`` without bases), ``comp`` ``[R, B]``, ``root`` ``[in, out]``, ``bias`` ``[out]``; vectors multiply
    from the left. Absent parameters are ``None``.

    Args:
        in_channels: width of the input.
        out_channels: width of the output.
        num_relations: R.
        num_bases: B, or ``None`` for one matrix per relation.
        aggr: ``mean`` divides by the number of neighbors of the relation, ``add`` does not.
        root_weight: transform the node itself too.
        bias: add a learned vector.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        num_relations: int,
        num_bases: int | None = None,
        aggr: str = "mean",
        root_weight: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if aggr not in ("mean", "add", "sum"):
            raise ConfigError("aggr", aggr, "'mean' or 'add'")
        self.in_channels, self.out_channels, self.num_relations = in_channels, out_channels, num_relations
        self.num_bases, self.aggr = num_bases, aggr
        matrices = num_relations if num_bases is None else num_bases
        self.weight = nn.Parameter(torch.empty(matrices, in_channels, out_channels))
        self.comp = None if num_bases is None else nn.Parameter(torch.empty(num_relations, num_bases))
        self.root = nn.Parameter(torch.empty(in_channels, out_channels)) if root_weight else None
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self._composed: tuple[object, Tensor] | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters: Glorot-uniform over the last two axes, the bias zero."""
        for parameter in (self.weight, self.comp, self.root):
            if parameter is not None:
                bound = math.sqrt(6.0 / (parameter.size(-2) + parameter.size(-1)))
                nn.init.uniform_(parameter, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_type: Tensor,
        *,
        attributes: Tensor | None = None,
        plan: RelationPlan | None = None,
        targets: Tensor | None = None,
    ) -> Tensor:
        """Pass messages once.

        Args:
            x: float ``[N, in]``, states of the nodes.
            edge_index: int64 ``[2, e]``, sources and targets.
            edge_type: int64 ``[e]``, relations.
            attributes: float ``[R, in]``, a vector for each relation, added to the source's state before W_r.
            plan: the sorted edges, built with the same ``targets``, if several layers share them.
            targets: int64 ``[t]``, distinct nodes: only their new states are computed.

        Returns:
            float ``[N, out]``, or ``[t, out]``.

        Raises:
            ModelError: ``x`` is not ``[N, in]``, or the edges are of another shape.
        """
        if x.dim() != 2 or x.size(1) != self.in_channels:
            raise ModelError(f"x has shape {tuple(x.shape)}; expected [N, {self.in_channels}].")
        if plan is None:
            plan = RelationPlan.build(edge_index, edge_type, x.size(0), x.dtype, targets)
        added = None if attributes is None else attributes.index_select(0, plan.relations)  # [k, in]
        weights = self._weights(plan.relations)
        if weights.dtype != x.dtype:  # under autocast
            x, added = x.to(weights.dtype), None if added is None else added.to(weights.dtype)
        out: Tensor = _RelationalSum.apply(x, weights, added, plan, self.aggr == "mean")  # type: ignore[no-untyped-call]
        if self.root is not None:
            states = x if targets is None else x.index_select(0, targets)
            return out + (states @ self.root if self.bias is None else torch.addmm(self.bias, states, self.root))
        return out if self.bias is None else out + self.bias

    def _weights(self, relations: Tensor) -> Tensor:
        """Compose W_r of the relations that occur, float ``[k, in, out]``; in inference all are cached."""
        if self.comp is None:
            return self.weight.index_select(0, relations)
        if self.training or torch.is_grad_enabled():
            chosen = self.comp.index_select(0, relations) @ self.weight.flatten(1)
            return chosen.view(-1, self.in_channels, self.out_channels)
        stamp = _stamp(self.comp), _stamp(self.weight)
        if self._composed is None or self._composed[0] != stamp:
            composed = (self.comp @ self.weight.flatten(1)).view(-1, self.in_channels, self.out_channels)
            if composed.dtype != self.weight.dtype:  # under autocast, and not for a call without
                return composed.index_select(0, relations)
            self._composed = (stamp, composed)
        return self._composed[1].index_select(0, relations)

    def train(self, mode: bool = True) -> RelationalGraphConv:
        """Set ``mode`` and drop the cache: fused optimizers change weights without changing their version counters."""
        self._composed = None
        return super().train(mode)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_composed": None}

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, num_relations={self.num_relations}, bases={self.num_bases}"


def _stamp(parameter: Tensor) -> tuple[int, int, int]:
    """Identify a tensor's values; its counter of changes in place is private to torch, the same in 2.6 and 2.13."""
    return id(parameter), parameter._version, parameter.data_ptr()


class _RelationalSum(torch.autograd.Function):
    """Σ_r mean_{j ∈ N_i^r} W_r (h_j + e_r) for all nodes, with its gradient; keeps only the ``[p, in]`` rows."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weights: Tensor, attributes: Tensor | None, plan: RelationPlan, mean: bool
    ) -> Tensor:
        rows = _bag_sum(x, plan.collect, mean)  # [p, in]
        if attributes is not None:
            spread = attributes.repeat_interleave(plan.ends.diff(prepend=plan.ends.new_zeros(1)), 0)  # [p, in]
            rows += spread if mean else spread * plan.collect.starts.diff().unsqueeze(1)
        products = _grouped(rows, weights, plan)  # [p, out]
        ctx.save_for_backward(rows, weights)
        ctx.plan, ctx.mean = plan, mean
        return _bag_sum(products, plan.spread, mean)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        plan: RelationPlan = ctx.plan
        rows, weights = ctx.saved_tensors
        grad_products = _bag_sum(grad, plan.spread_back, ctx.mean)  # [p, out]
        grad_rows = _grouped(grad_products, weights.transpose(1, 2), plan)  # [p, in]
        grad_weights = _grouped_outer(rows, grad_products, plan) if ctx.needs_input_grad[1] else None
        grad_x = _bag_sum(grad_rows, plan.collect_back, ctx.mean) if ctx.needs_input_grad[0] else None
        grad_attributes = None
        if ctx.needs_input_grad[2]:
            each = grad_rows if ctx.mean else grad_rows * plan.collect.starts.diff().unsqueeze(1)
            groups = Gather(torch.arange(len(each), device=each.device), F.pad(plan.ends.long(), (1, 0)), each[:, 0])
            grad_attributes = _bag_sum(each, groups, False)
        return grad_x, grad_weights, grad_attributes, None, None


def _bag_sum(rows: Tensor, gather: Gather, mean: bool) -> Tensor:
    """Sum the members of each result, weighted for a mean: ``[g, width]``, without a row for each edge in memory."""
    if gather.members.numel() == 0:
        return rows.new_zeros(gather.starts.numel() - 1, rows.size(1))
    # Always with weights: torch's path without them is four times slower on a CPU.
    weights = gather.share.to(rows.dtype) if mean else rows.new_ones(gather.members.numel())
    return F.embedding_bag(
        gather.members, rows, gather.starts, mode="sum", include_last_offset=True, per_sample_weights=weights
    )


def _grouped(rows: Tensor, weights: Tensor, plan: RelationPlan) -> Tensor:
    """Multiply the rows of each relation by its matrix: ``[p, a]``, ``[k, a, b]`` to ``[p, b]``."""
    if plan.tiles is not None:
        return torch.bmm(_in_tiles(rows, plan.tiles), weights.index_select(0, plan.tiles)).flatten(0, 1)
    product = _grouped_mm(rows, weights, plan.ends)
    if product is not None:
        return product
    out, sizes = rows.new_empty(rows.size(0), weights.size(2)), list(plan.sizes)
    # all views at once are cheaper than slices
    for part, matrix, target in zip(torch.split(rows, sizes), weights.unbind(), torch.split(out, sizes), strict=True):
        torch.mm(part, matrix, out=target)
    return out


def _grouped_outer(left: Tensor, right: Tensor, plan: RelationPlan) -> Tensor:
    """Multiply the two sides of each relation's rows: ``[p, a]``, ``[p, b]`` to ``[k, a, b]``."""
    if plan.tiles is not None:
        products = torch.bmm(_in_tiles(left, plan.tiles).transpose(1, 2), _in_tiles(right, plan.tiles))
        return products.new_zeros(len(plan.sizes), *products.shape[1:]).index_add_(0, plan.tiles, products)
    product = _grouped_mm(left, right, plan.ends, transposed=True)
    if product is not None:
        return product
    out, sizes = left.new_empty(len(plan.sizes), left.size(1), right.size(1)), list(plan.sizes)
    for part, target, other in zip(torch.split(left, sizes), out.unbind(), torch.split(right, sizes), strict=True):
        torch.mm(part.t(), other, out=target)
    return out


def _grouped_mm(left: Tensor, right: Tensor, ends: Tensor, *, transposed: bool = False) -> Tensor | None:
    """Multiply by torch's grouped product, or return ``None`` where it does not support these matrices.

    Torch 2.6 has no ``grouped_mm``; that of 2.13 takes float32 on a CPU, in rows of whole 16-byte words.
    """
    supported = hasattr(F, "grouped_mm") and all(
        m.dtype == torch.float32 and m.size(-1) % 4 == 0 and m.device.type == "cpu" and m.size(0) > 0
        for m in (left, right)
    )
    return F.grouped_mm(left.t() if transposed else left, right, offs=ends) if supported else None


def _in_tiles(rows: Tensor, tiles: Tensor) -> Tensor:
    """Cut rows into their tiles: ``[p, a]`` to ``[tiles, p / tiles, a]``."""
    return rows.view(tiles.numel(), rows.size(0) // max(tiles.numel(), 1), rows.size(1))
