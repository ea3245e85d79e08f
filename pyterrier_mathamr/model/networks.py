"""The network of a configuration (MathAMR+, Figure 3.3), and its initial weights.

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

Features from a text encoder (not in the paper) add to this network or replace it::

    features   word_residual   layers   network
    lookup     no              any      Encoder
    words      no              any      Encoder, whose labels start from word vectors
    words      yes             ≥ 1      BagEncoder        row = unit(P b) + s_k unit(z)       b: its bag of words
    words      yes             0        BagsAlone         row = unit(P b)
    text       –               ≥ 1      TextRowEncoder    row = unit(P x) + s_k unit(z)       x: text, see ``encoding``
    text       –               0        TextAlone         row = unit(P x)

s_k, one number for each kind of row, starts at 0. P of text starts as the principal directions of the training texts,
or as the identity if the width is unchanged: with ``projection=text_dimension`` an untrained model is the text encoder
itself. Text is also added to the first states, as W_in x.

A bag b is the sum of the label vectors of the row's content nodes; a document's is summed over the nodes of all its
formulas and sentences. The length of a label's vector is its weight, and starts as its inverse document frequency. P
starts as the principal directions of the training posts' bags without the first few, which all posts share (Arora et
al., ICLR 2017; Mu and Viswanath, ICLR 2018). So at step 0 a row is a weighted average of word vectors, to which
training adds little; the two layers of the projection head would destroy the word vectors' geometry.
"""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr._common.errors import ConfigError, require
from pyterrier_mathamr._common.running.resources import seeded
from pyterrier_mathamr._common.running.settings import shared
from pyterrier_mathamr.graph import MASK_ID, GraphBatch, GraphTensors, MathAMRGraph, VirtualKind, Vocabulary, collate

from .config import RELATIONAL_CONV, MathAMRConfig
from .errors import ModelError
from .rgcn import RelationalGraphConv, RelationPlan, edges_into

if TYPE_CHECKING:
    from .text_encoder import TextEncoder


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
        state: Tensor = self.labels(batch.nodes)  # [N, d]
        with_node = batch.is_virtual[batch.virtual]  # without virtual nodes, the rows are content nodes
        nodes, kinds = batch.virtual[with_node], batch.kinds[with_node]
        if self.value != "mean":
            return self._put(state, nodes, kinds, state.new_zeros(nodes.numel(), state.size(1)))
        state = state.masked_fill(batch.is_virtual.unsqueeze(1), 0.0)
        content = batch.edge_index[:, ~batch.is_virtual[batch.edge_index[0]]]
        lower = kinds != VirtualKind.DOCUMENT
        for some, edge_index in ((lower, content), (~lower, batch.edge_index)):  # the document's mean reads the others
            targets = nodes[some]
            kept, row = edges_into(targets, edge_index, state.size(0))
            sums = state.new_zeros(targets.numel(), state.size(1))
            sums = sums.index_add(0, row, state.index_select(0, edge_index[0, kept]))
            means = sums / torch.bincount(row, minlength=targets.numel()).clamp_min(1).unsqueeze(1)
            state = self._put(state, targets, kinds[some], means)
        return state

    def _put(self, state: Tensor, nodes: Tensor, kinds: Tensor, value: Tensor) -> Tensor:
        """Write the states of some virtual nodes: their value and its learned part."""
        if self.learned == "embedding" or self.value == "random":
            value = value + self.kinds[kinds]
        if self.learned == "projection":
            value = self.maps[0](value)
        elif self.learned == "typed_projection":
            mapped = torch.stack([linear(value) for linear in self.maps])  # [3, nodes, d]
            value = mapped[kinds, torch.arange(nodes.numel(), device=nodes.device)]
        return state.index_copy(0, nodes, value.to(state.dtype))  # autocast makes products narrower


def convolution_of(config: MathAMRConfig) -> type[nn.Module]:
    """Return the class of the layers' convolution; only that of a stored name is imported, from torch-geometric."""
    conv: Any = config.conv
    if conv == RELATIONAL_CONV:
        return RelationalGraphConv
    if isinstance(conv, str):
        conv = getattr(require("torch_geometric.nn"), conv.rpartition(".")[2], None)
    if isinstance(conv, type) and issubclass(conv, nn.Module):
        needed = {"in_channels", "out_channels", "num_relations", "num_bases"}
        if needed.issubset(inspect.signature(conv).parameters):
            return conv
    raise ConfigError("conv", config.conv, "a convolution with the signature of torch_geometric.nn.RGCNConv")


def _new_convolution(config: MathAMRConfig, num_relations: int) -> nn.Module:
    """Make a convolution; parameters that its class leaves without a value, as RGATConv does its l2, are zero."""
    kind = convolution_of(config)
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
        self.conv = _new_convolution(config, num_relations)

    def forward(
        self, h: Tensor, batch: GraphBatch, plan: RelationPlan, attributes: Tensor | None, targets: Tensor | None = None
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
        z: Tensor = self.outer_norm(self.outer(F.gelu(self.inner_norm(self.inner(h)))))  # [r, d] to [r, d_p]
        return z


class Encoder(nn.Module):
    """Graphs to unit vectors, one for each retrieval node (MathAMR+, Figure 3.3); relations include inverse ones."""

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
        rows = batch.virtual
        if len(self.layers) > 0:
            *earlier, last = self.layers
            if earlier:
                plan = RelationPlan.build(batch.edge_index, batch.edge_type, h.size(0))
            for layer in earlier:
                h = layer(h, batch, plan, self.attributes)  # [N, d]
            targets, rows = torch.unique(batch.virtual, return_inverse=True)  # only their last states are needed
            plan = RelationPlan.build(batch.edge_index, batch.edge_type, h.size(0), targets=targets)
            h = last(h, batch, plan, self.attributes, targets)  # [t, d]
        z: Tensor = self.head(h.index_select(0, rows))  # [r, d_p]
        return z

    def first_states(self, batch: GraphBatch) -> Tensor:
        """Compute h⁰: float ``[N, d]``."""
        h: Tensor = self.initial(batch)
        return h


def features_of(batch: GraphBatch, width: int) -> Tensor:
    if batch.features is None or batch.features.size(1) != width:
        shape = None if batch.features is None else tuple(batch.features.shape)
        advice = "encode graphs with MathAMR.encode or a transformer, which add these features"
        raise ModelError(f"features has shape {shape}; expected [r, {width}]: {advice}.")
    return batch.features.float()


class OwnRows(nn.Module):
    """unit(P x) of text or bags, and where there are layers s and, for text, W_in of the equations above."""

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        of_text = config.text.features == "text"
        self.width = config.text.text_dimension if of_text else config.hidden
        self.project = nn.Linear(self.width, config.projection, bias=False)
        if config.layers:
            self.share = nn.Parameter(torch.zeros(len(VirtualKind)))
        if config.layers and of_text:
            self.enter = nn.Linear(self.width, config.hidden, bias=False)

    def forward(self, x: Tensor, z: Tensor | None = None, kinds: Tensor | None = None) -> Tensor:
        """Compute unit(P x), or with the graph's rows unit(P x) + s_k unit(z): float ``[r, d_p]``."""
        rows = F.normalize(self.project(x), dim=1)
        return rows if z is None else rows + self.share[kinds].unsqueeze(1) * F.normalize(z, dim=1)


class TextAlone(nn.Module):
    """The network of text without layers: row = unit(P x)."""

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.text = OwnRows(config)

    def forward(self, batch: GraphBatch) -> Tensor:
        rows: Tensor = self.text(features_of(batch, self.text.width))
        return rows


class TextRowEncoder(Encoder):
    """The paper's encoder with text in the first states and in the rows."""

    def __init__(self, config: MathAMRConfig, num_labels: int, num_relations: int) -> None:
        text = OwnRows(config)  # drawn first: a seed then gives the weights that it always gave
        super().__init__(config, num_labels, num_relations)
        self.text = text

    def first_states(self, batch: GraphBatch) -> Tensor:
        """Compute h⁰ + W_in x: float ``[N, d]``."""
        h = super().first_states(batch)
        return h.index_add(0, batch.virtual, self.text.enter(features_of(batch, self.text.width)).to(h.dtype))

    def project(self, batch: GraphBatch) -> Tensor:
        z = super().project(batch)
        rows: Tensor = self.text(features_of(batch, self.text.width), z, batch.kinds)
        return rows


class BagsAlone(nn.Module):
    """The network of ``word_residual`` without layers: row = unit(P b)."""

    def __init__(self, config: MathAMRConfig, num_labels: int) -> None:
        super().__init__()
        self.bags = OwnRows(config)
        self.initial = InitialState(config.replace(initialisation="mean", learned="none"), num_labels)

    def forward(self, batch: GraphBatch) -> Tensor:
        rows: Tensor = self.bags(bags_of(self.initial.labels.weight, batch))
        return rows


class BagEncoder(Encoder):
    """The paper's encoder, whose vectors are added to bags of words."""

    def __init__(self, config: MathAMRConfig, num_labels: int, num_relations: int) -> None:
        bags = OwnRows(config)  # drawn first, as above
        super().__init__(config, num_labels, num_relations)
        self.bags = bags

    def project(self, batch: GraphBatch) -> Tensor:
        z = super().project(batch)
        rows: Tensor = self.bags(bags_of(self.initial.labels.weight, batch), z, batch.kinds)
        return rows


def bags_of(labels: Tensor, batch: GraphBatch) -> Tensor:
    """Sum the vectors of the labels of each row, the document's over the nodes of all formulas and sentences."""
    lower = (batch.kinds != VirtualKind.DOCUMENT).nonzero().squeeze(1)
    content = batch.edge_index[:, ~batch.is_virtual[batch.edge_index[0]]]
    kept, number = edges_into(batch.virtual[lower], content, batch.nodes.numel())
    row = lower[number]  # of each content node of a formula or sentence
    post = torch.repeat_interleave(torch.arange(len(batch), device=row.device), batch.offsets.diff())  # [r]
    document = batch.offsets[1:] - 1
    label = batch.nodes[content[0, kept]].repeat(2)
    keys, counts = torch.unique(torch.cat([row, document[post[row]]]) * len(labels) + label, return_counts=True)
    starts = torch.searchsorted(keys, torch.arange(len(post), device=row.device) * len(labels))
    return F.embedding_bag(keys % len(labels), labels, starts, mode="sum", per_sample_weights=counts.to(labels.dtype))


def network(config: MathAMRConfig, num_labels: int, num_relations: int) -> nn.Module:
    text = config.text
    if config.text_alone:
        return TextAlone(config)
    if text.features == "text":
        return TextRowEncoder(config, num_labels, num_relations)
    if text.word_residual:
        return BagsAlone(config, num_labels) if config.layers == 0 else BagEncoder(config, num_labels, num_relations)
    return Encoder(config, num_labels, num_relations)


def random_network(config: MathAMRConfig, vocabulary: Vocabulary) -> nn.Module:
    """Build a network with random weights, the same for one seed; the caller's random state is preserved."""
    with seeded(config.training.seed):
        return network(config, len(vocabulary.nodes), len(vocabulary.relations))


COMMON = 3  # principal directions that bags have in common and that P leaves out
_MASKED = 0.05  # length of the vector of a masked label: a row of only masked nodes still has a direction
_BAGS, _ROWS = 256, 512  # posts whose bags are summed, or features read, at once


def starting_weights(
    config: MathAMRConfig,
    vocabulary: Vocabulary,
    graphs: Iterable[MathAMRGraph],
    tensors: Iterable[GraphTensors],
    text: TextEncoder,
) -> dict[str, Tensor]:
    """Compute the weights that do not start at random."""
    weights: dict[str, Tensor] = {}
    options, width = config.text, config.text.text_dimension
    if options.features == "text":
        if config.projection > width:  # a text has no more directions; a trained map may have more rows
            raise ConfigError("projection", config.projection, f"at most text_dimension={width}")
        moment = _mean_moment(tensors, width, lambda batch: features_of(batch, width), _ROWS)
        weights["text.project.weight"] = principal_directions(moment, config.projection)
        if config.layers:
            weights["text.enter.weight"] = principal_directions(moment, config.hidden)
    if options.features == "words":
        weights["initial.labels.weight"] = label_vectors(vocabulary.spellings(graphs), config.hidden, text)
    if options.word_residual:
        posts = list(tensors)
        labels = weighted_labels(weights["initial.labels.weight"], posts, config.training.seed)
        moment = _mean_moment(posts, config.hidden, lambda batch: F.normalize(bags_of(labels, batch), dim=1), _BAGS)
        weights["initial.labels.weight"] = labels
        weights["bags.project.weight"] = principal_directions(moment, config.projection, skip=COMMON)
    return weights


def label_vectors(spellings: Sequence[str], hidden: int, text: TextEncoder) -> Tensor:
    """Compute the text encoder's vector of each label of a vocabulary, reduced to ``hidden`` numbers by PCA."""
    words = [words_of(label) for label in spellings]
    distinct = {word: i for i, word in enumerate(dict.fromkeys(filter(None, words)))}
    vectors = torch.zeros(len(words), hidden)
    if not distinct:
        return vectors
    rows = torch.from_numpy(text.word_vectors(list(distinct)))  # [words, d_text]
    rows = rows - rows.mean(0)
    if rows.size(1) != hidden:
        rows = rows @ principal_directions(moments(rows), hidden).T  # [words, d]
    rows = rows / rows.norm(dim=1).mean().clamp_min(torch.finfo(rows.dtype).tiny)
    vectors[torch.tensor([bool(word) for word in words])] = rows[[distinct[word] for word in words if word]]
    return vectors


_TYPE = re.compile(r"[A-Z]!")  # V!x is a variable, N!2 a number, U!eq an operator
_SENSE = re.compile(r"-[0-9]+$")  # prove-01
_PLACEHOLDER = re.compile(r"FORMULA_[0-9]+")


def words_of(label: str) -> str:
    """Write a label as a text encoder knows it: ``prove-01`` as prove, ``V!x`` as x, ``multi-sentence``."""
    text = html.unescape(_TYPE.sub("", label, count=1) if _TYPE.match(label) else _SENSE.sub("", label))
    if _PLACEHOLDER.fullmatch(text):
        return "formula"
    return text.replace("-", " ").replace("_", " ").strip() or text


def weighted_labels(vectors: Tensor, tensors: Sequence[GraphTensors], seed: int) -> Tensor:
    """Scale each label's vector to the length of its inverse document frequency, log((m + 1) / (df + ½))."""
    posts = np.zeros(len(vectors), dtype=np.int64)
    for post in tensors:
        posts[np.unique(post.nodes)] += 1
    drawn = F.normalize(torch.randn(vectors.shape, generator=torch.Generator().manual_seed(seed)), dim=1)
    rarity = torch.from_numpy(np.log((len(tensors) + 1) / (posts + 0.5))).float().clamp_min(0).unsqueeze(1)
    weighted = torch.where((vectors == 0).all(1, keepdim=True), drawn, vectors) * rarity
    weighted /= weighted.norm(dim=1).mean().clamp_min(torch.finfo(torch.float32).tiny)
    weighted[MASK_ID] = _MASKED * drawn[MASK_ID]
    return weighted


def _mean_moment(
    tensors: Iterable[GraphTensors], width: int, rows_of: Callable[[GraphBatch], Tensor], at_once: int
) -> Tensor:
    """Average the moments of the three kinds of rows, so that formulas, the most numerous, do not dominate."""
    total = torch.zeros(len(VirtualKind), width, width, dtype=torch.float64)
    count = torch.zeros(len(VirtualKind), dtype=torch.float64)
    rest = iter(tensors)
    while block := list(islice(rest, at_once)):
        batch = collate(block)
        block_rows = rows_of(batch)  # [r, width]
        for kind in VirtualKind:
            rows = block_rows[batch.kinds == kind]
            total[kind] += moments(rows) * rows.size(0)
            count[kind] += rows.size(0)
    return (total / count.clamp_min(1).view(-1, 1, 1)).sum(0) / max(int((count > 0).sum()), 1)


def moments(features: Tensor) -> Tensor:
    """Compute xᵀx / r of rows: float64 ``[d, d]``."""
    rows = features.double()
    return rows.T @ rows / max(rows.size(0), 1)


def principal_directions(moment: Tensor, count: int, skip: int = 0) -> Tensor:
    """Find the directions that keep most of the inner products of rows."""
    width = moment.size(0)
    if count == width and not skip:
        return torch.eye(width)
    vectors = torch.linalg.eigh(moment).eigenvectors.flip(1).T[skip : skip + count]  # [≤ count, d], the largest first
    largest = vectors.gather(1, vectors.abs().argmax(1, keepdim=True))  # fixes the sign, which eigh leaves open
    return F.pad((vectors * largest.sign()).float(), (0, 0, 0, count - len(vectors)))
