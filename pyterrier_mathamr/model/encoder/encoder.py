"""The encoder of Figure 3.3, in the paper's order.

::

    InitialState  ──h⁰──▶  L × RelationalLayer  ──hᴸ──▶  ProjectionHead  ──z──▶  z / ‖z‖
    labels, 4.3.4          equation 3.1                   equation 3.3            one unit row for each retrieval node

The state of a virtual node v of kind k with members M(v) before the first layer (4.3.4):

=========  ===========  =============================================================
value      learned      state of virtual node v of kind k, members M(v)
=========  ===========  =============================================================
zero       none         0
zero       embedding    e_k, learned, 0 at first
random     none         e_k, drawn once, kept
random     embedding    e_k, learned, Xavier-uniform at first
mean       none         mean of M(v)
mean       embedding    mean of M(v) + e_k, learned, 0 at first
any        projection   W (value) + b
any        typed proj.  W_k (value) + b_k
=========  ===========  =============================================================

The members of a formula's or sentence's node are the content nodes joined to it. The members of the document's node are
all nodes joined to it, including the virtual nodes of formulas and sentences with their first states.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr._common.errors import ConfigError, require
from pyterrier_mathamr._common.running.shared import shared
from pyterrier_mathamr.graph import GraphBatch, VirtualKind
from pyterrier_mathamr.model.config import RELATIONAL_CONV, MathAMRConfig
from pyterrier_mathamr.model.rgcn import RelationalGraphConv, RelationPlan


class InitialState(nn.Module):
    """Compute the first state of every node of a batch."""

    def __init__(self, config: MathAMRConfig, num_labels: int) -> None:
        super().__init__()
        self.value, self.learned = config.initialisation, config.learned
        self.labels = nn.Embedding(num_labels, config.hidden)
        nn.init.xavier_uniform_(self.labels.weight)
        start = torch.zeros(len(VirtualKind), config.hidden)
        if self.value == "random":
            nn.init.xavier_uniform_(start)
        if self.learned == "embedding":
            self.kinds = nn.Parameter(start)
        elif self.value == "random":
            self.register_buffer("kinds", start)
        maps = {"projection": 1, "typed_projection": len(VirtualKind)}.get(self.learned, 0)
        self.maps = nn.ModuleList(nn.Linear(config.hidden, config.hidden) for _ in range(maps))

    def forward(self, batch: GraphBatch) -> Tensor:
        state = self.labels(batch.nodes)  # [N, d]
        own = batch.is_virtual[batch.virtual]
        rows, kind = batch.virtual[own], batch.kinds[own]
        if self.value != "mean":
            return self._put(state, rows, kind, state.new_zeros(rows.numel(), state.size(1)))
        state = state.masked_fill(batch.is_virtual.unsqueeze(1), 0.0)
        content = batch.edge_index[:, ~batch.is_virtual[batch.edge_index[0]]]
        lower = kind != VirtualKind.DOCUMENT
        state = self._put(state, rows[lower], kind[lower], _means(state, content, rows[lower]))
        return self._put(state, rows[~lower], kind[~lower], _means(state, batch.edge_index, rows[~lower]))

    def _put(self, state: Tensor, rows: Tensor, kind: Tensor, value: Tensor) -> Tensor:
        """Write the states of some virtual nodes: their value and its learned part."""
        if self.learned == "embedding" or self.value == "random":
            value = value + self.kinds[kind]
        if self.learned == "projection":
            value = self.maps[0](value)
        elif self.learned == "typed_projection":
            mapped = torch.stack([linear(value) for linear in self.maps])  # [3, rows, d]
            value = mapped[kind, torch.arange(rows.numel(), device=rows.device)]
        return state.index_copy(0, rows, value.to(state.dtype))  # autocast makes products narrower


def _means(state: Tensor, edge_index: Tensor, targets: Tensor) -> Tensor:
    """Average the sources of each target's edges: float ``[targets, d]``, zero for a target without edges."""
    source, row = members(state.size(0), edge_index, targets)
    total = state.new_zeros(targets.numel(), state.size(1)).index_add(0, row, state.index_select(0, source))
    return total / torch.bincount(row, minlength=targets.numel()).clamp_min(1).unsqueeze(1)


def members(nodes: int, edge_index: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """List the sources of the edges into some nodes."""
    place = torch.full((nodes,), -1, dtype=torch.long, device=edge_index.device)
    place[targets] = torch.arange(targets.numel(), device=edge_index.device)
    row = place[edge_index[1]]
    return edge_index[0][row >= 0], row[row >= 0]


_SIGNATURE = {"in_channels", "out_channels", "num_relations", "num_bases"}


def convolution_of(config: MathAMRConfig) -> type[nn.Module]:
    """Return the class of the layers' convolution; only that of a stored name is imported, from torch-geometric."""
    conv: Any = config.conv
    if conv == RELATIONAL_CONV:
        return RelationalGraphConv
    if isinstance(conv, str):
        conv = getattr(require("torch_geometric.nn"), conv.rpartition(".")[2], None)
    if (
        isinstance(conv, type)
        and issubclass(conv, nn.Module)
        and _SIGNATURE.issubset(inspect.signature(conv).parameters)
    ):
        return conv
    raise ConfigError("conv", config.conv, "a convolution with the signature of torch_geometric.nn.RGCNConv")


def _new_convolution(kind: type[nn.Module], config: MathAMRConfig, num_relations: int) -> nn.Module:
    """Make a convolution; parameters that its class leaves without a value, as RGATConv does its l2, are zero."""
    if kind is RelationalGraphConv:  # sets all of its own, and what follows imports torch's compiler
        return kind(config.hidden, config.hidden, num_relations, num_bases=config.bases)
    with _no_value_is_nan():
        conv = kind(config.hidden, config.hidden, num_relations, num_bases=config.bases)
    with torch.no_grad():
        for parameter in conv.parameters():
            parameter.nan_to_num_()
    return conv


@shared
@contextmanager
def _no_value_is_nan() -> Iterator[None]:
    """Let torch fill what has no value with NaN, which it may be anyway."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(deterministic)


class RelationalLayer(nn.Module):
    """One layer with its residual: h + GELU(RGCN(LayerNorm(h))) (MathAMR+, eq. 3.1)."""

    def __init__(self, config: MathAMRConfig, num_relations: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.hidden)
        self.conv = _new_convolution(convolution_of(config), config, num_relations)

    def forward(
        self,
        h: Tensor,
        batch: GraphBatch,
        plan: RelationPlan,
        attributes: Tensor | None,
        targets: Tensor | None = None,
    ) -> Tensor:
        x = self.norm(h)  # [N, d]
        if isinstance(self.conv, RelationalGraphConv):
            x = self.conv(x, batch.edge_index, batch.edge_type, attributes=attributes, plan=plan, targets=targets)
        else:
            x = self.conv(x, batch.edge_index, batch.edge_type)
            x = x if targets is None else x.index_select(0, targets)
        return (h if targets is None else h.index_select(0, targets)) + F.gelu(x)


class ProjectionHead(nn.Module):
    """z = LayerNorm(W₂ GELU(LayerNorm(W₁ h + b₁)) + b₂) (MathAMR+, eq. 3.3)."""

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.hidden, config.hidden)
        self.inner_norm = nn.LayerNorm(config.hidden)
        self.outer = nn.Linear(config.hidden, config.projection)
        self.outer_norm = nn.LayerNorm(config.projection)

    def forward(self, h: Tensor) -> Tensor:
        """Project: float32 ``[r, d]`` to float32 ``[r, d_p]``."""
        z: Tensor = self.outer_norm(self.outer(F.gelu(self.inner_norm(self.inner(h)))))
        return z


class Encoder(nn.Module):
    """Graphs to unit vectors, one for each retrieval node (MathAMR+, Figure 3.3).

    Args:
        config: the model's options.
        num_labels: size of the vocabulary of node labels.
        num_relations: R, inverse relations included.
    """

    def __init__(self, config: MathAMRConfig, num_labels: int, num_relations: int) -> None:
        super().__init__()
        self.initial = InitialState(config, num_labels)
        with_attributes = config.conv == RELATIONAL_CONV
        self.attributes = nn.Parameter(torch.empty(num_relations, config.hidden)) if with_attributes else None
        if self.attributes is not None:
            nn.init.xavier_uniform_(self.attributes)
        self.layers = nn.ModuleList(RelationalLayer(config, num_relations) for _ in range(config.layers))
        self.head = ProjectionHead(config)

    def forward(self, batch: GraphBatch) -> Tensor:
        """Encode a batch of graphs: float32 ``[r, d_p]``, unit rows in the order of ``batch.virtual``."""
        return F.normalize(self.project(batch), dim=1)

    def project(self, batch: GraphBatch) -> Tensor:
        """Compute the rows before they are normalized, z of equation 3.3: float ``[r, d_p]``."""
        h = self.first_states(batch)  # [N, d]
        h = self.pass_messages(h, batch)  # [r, d]
        z: Tensor = self.head(h)  # [r, d_p]
        return z

    def first_states(self, batch: GraphBatch) -> Tensor:
        """Compute h⁰: float ``[N, d]``."""
        h: Tensor = self.initial(batch)
        return h

    def pass_messages(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """Apply the layers, the last one only for retrieval nodes: h⁰ ``[N, d]`` to their hᴸ ``[r, d]``."""
        if len(self.layers) == 0:
            return h.index_select(0, batch.virtual)
        *earlier, last = self.layers
        if earlier:
            plan = RelationPlan.build(batch.edge_index, batch.edge_type, h.size(0))
        for layer in earlier:
            h = layer(h, batch, plan, self.attributes)  # [N, d]
        targets, place = torch.unique(batch.virtual, return_inverse=True)
        plan = RelationPlan.build(batch.edge_index, batch.edge_type, h.size(0), targets=targets)
        h = last(h, batch, plan, self.attributes, targets)  # [t, d]
        return h.index_select(0, place)
