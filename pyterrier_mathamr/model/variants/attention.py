"""Members of a virtual node weighed by learned attention instead of all alike.

It acts where virtual nodes begin, not in the R-GCN layers: there each relation has its own matrix, which learns what a
message through ``:virtual_*`` is worth, and the mean of equation 2.4 is what makes the layers fast. With ``layers=0``
this is the only place where members are gathered at all.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

_KINDS = 3  # formula, sentence, document


class MemberAttention(nn.Module):
    """Σⱼ αⱼ sⱼ over the members j of a virtual node, α = softmaxⱼ( k · LayerNorm(sⱼ) / √d ), k for each kind.

    The keys k begin at zero, where all α are equal: training starts from the mean. Costs 3 d parameters and O(e d).

    Args:
        hidden: d.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.keys = nn.Parameter(torch.zeros(_KINDS, hidden))

    def forward(self, state: Tensor, edge_index: Tensor, targets: Tensor, kinds: Tensor) -> Tensor:
        """Gather the sources of each target's edges.

        Args:
            state: float ``[N, d]``.
            edge_index: int64 ``[2, e]``, members and whatever they belong to.
            targets: int64 ``[t]``, distinct virtual nodes.
            kinds: int64 ``[t]``, their kinds.

        Returns:
            float ``[t, d]``, zero for a target without edges.
        """
        source, row = members(state.size(0), edge_index, targets)  # [z]
        logits = F.layer_norm(state, state.shape[1:]) @ self.keys.t() / math.sqrt(state.size(1))  # [N, 3]
        logit = logits[source, kinds[row]]  # [z]
        top = logit.new_full((targets.numel(),), -math.inf).scatter_reduce(0, row, logit.detach(), "amax")
        share = (logit - top[row]).exp()
        total = share.new_zeros(targets.numel()).index_add(0, row, share)  # [t], at least 1 where there are members
        weighted = state.index_select(0, source) * (share / total[row]).unsqueeze(1)  # [z, d]
        return state.new_zeros(targets.numel(), state.size(1)).index_add(0, row, weighted)


def members(nodes: int, edge_index: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """List the sources of the edges into some nodes.

    Args:
        nodes: N.
        edge_index: int64 ``[2, e]``.
        targets: int64 ``[t]``, distinct nodes.

    Returns:
        int64 ``[z]`` sources, and int64 ``[z]`` the place of each one's target in ``targets``.
    """
    place = torch.full((nodes,), -1, dtype=torch.long, device=edge_index.device)
    place[targets] = torch.arange(targets.numel(), device=edge_index.device)
    row = place[edge_index[1]]
    return edge_index[0][row >= 0], row[row >= 0]
