"""The network of a configuration, and its initial weights.

::

    features   word_residual   layers   network
    lookup     no              any      Encoder, Figure 3.3
    words      no              any      Encoder, whose labels start from word vectors
    words      yes             ≥ 1      BagEncoder
    words      yes             0        BagsAlone
    text       –               ≥ 1      TextRowEncoder
    text       –               0        TextAlone

BagEncoder and TextRowEncoder add the graph's row, z, to the row without it, which BagsAlone and TextAlone have::

    row = unit(P x) + s_k unit(z)                                x: text, see ``features``
    row = unit(P b) + s_k unit(z)                                b: its bag of words

s_k, one number for each kind of row, starts at 0. P of text starts as the principal directions of the training texts,
or as the identity if the width is unchanged: with ``projection=text_dimension`` an untrained model is the text encoder
itself. Text is also added to the first states, as W_in x.

A bag b is the sum of the label vectors of the row's content nodes; a document's is summed over the nodes of all its
formulas and sentences. The length of a label's vector is its weight, and starts as its inverse document frequency. P
starts as the principal directions of the training posts' bags without the first few, which all posts share (Arora et
al., ICLR 2017; Mu and Viswanath, ICLR 2018). So at step 0 a row is a weighted average of word vectors, and training
adds little to it; the two layers of the projection head would destroy the word vectors' geometry.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.running.resources import seeded
from pyterrier_mathamr.graph import MASK_ID, GraphBatch, GraphTensors, MathAMRGraph, VirtualKind, Vocabulary, collate

from .config import MathAMRConfig
from .encoder.encoder import Encoder, InitialState, members
from .errors import ModelError
from .text_encoder import TextEncoder

COMMON = 3
"""Principal directions that bags have in common and that P leaves out."""

_MASKED = 0.05  # length of the vector of a masked label: a row of only masked nodes still has a direction
_BAGS, _ROWS = 256, 512  # posts whose bags are summed, or features read, at once


def features_of(batch: GraphBatch, width: int) -> Tensor:
    """Return the features of the rows of a batch: float32 ``[r, width]``."""
    if batch.features is None or batch.features.size(1) != width:
        found = None if batch.features is None else tuple(batch.features.shape)
        advice = "encode graphs with MathAMR.encode or a transformer, which add these features"
        raise ModelError(f"features has shape {found}; expected [r, {width}]: {advice}.")
    return batch.features.float()


class TextVectors(nn.Module):
    """P, s and W_in of the equations above."""

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.width = config.text.text_dimension
        self.project = nn.Linear(self.width, config.projection, bias=False)
        if not config.text_alone:
            self.share = nn.Parameter(torch.zeros(len(VirtualKind)))
            self.enter = nn.Linear(self.width, config.hidden, bias=False)

    def forward(self, batch: GraphBatch) -> Tensor:
        """Compute unit(P x): float32 ``[r, d_p]``."""
        return F.normalize(self.project(features_of(batch, self.width)), dim=1)


class TextAlone(nn.Module):
    """The network of ``features='text'`` without layers: row = unit(P x)."""

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.text = TextVectors(config)

    def forward(self, batch: GraphBatch) -> Tensor:
        rows: Tensor = self.text(batch)
        return rows


class TextRowEncoder(Encoder):
    """The paper's encoder with text in the first states and in the rows."""

    def __init__(self, config: MathAMRConfig, num_labels: int, num_relations: int) -> None:
        text = TextVectors(config)
        super().__init__(config, num_labels, num_relations)
        self.text = text

    def first_states(self, batch: GraphBatch) -> Tensor:
        """Compute h⁰ + W_in x: float ``[N, d]``."""
        h = super().first_states(batch)
        return h.index_add(0, batch.virtual, self.text.enter(features_of(batch, self.text.width)).to(h.dtype))

    def project(self, batch: GraphBatch) -> Tensor:
        """Compute unit(P x) + s_k unit(z): float ``[r, d_p]``."""
        z = super().project(batch)  # [r, d_p]
        rows: Tensor = self.text(batch)  # [r, d_p]
        return rows + self.text.share[batch.kinds].unsqueeze(1) * F.normalize(z, dim=1)


class WordBags(nn.Module):
    """P and s of the equations above."""

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.project = nn.Linear(config.hidden, config.projection, bias=False)
        if config.layers:
            self.share = nn.Parameter(torch.zeros(len(VirtualKind)))

    def forward(self, labels: Tensor, batch: GraphBatch) -> Tensor:
        """Compute unit(P b) from the vector of each label: float ``[num_labels, d]`` to ``[r, d_p]``."""
        return F.normalize(self.project(bags_of(labels, batch)), dim=1)


class BagsAlone(nn.Module):
    """The network of ``word_residual`` without layers: row = unit(P b)."""

    def __init__(self, config: MathAMRConfig, num_labels: int) -> None:
        super().__init__()
        self.bags = WordBags(config)
        self.initial = InitialState(config.replace(initialisation="mean", learned="none"), num_labels)

    def forward(self, batch: GraphBatch) -> Tensor:
        rows: Tensor = self.bags(self.initial.labels.weight, batch)
        return rows


class BagEncoder(Encoder):
    """The paper's encoder, whose vectors are added to bags of words."""

    def __init__(self, config: MathAMRConfig, num_labels: int, num_relations: int) -> None:
        bags = WordBags(config)
        super().__init__(config, num_labels, num_relations)
        self.bags = bags

    def project(self, batch: GraphBatch) -> Tensor:
        """Compute unit(P b) + s_k unit(z): float ``[r, d_p]``."""
        z = F.normalize(super().project(batch), dim=1)  # [r, d_p]
        rows: Tensor = self.bags(self.initial.labels.weight, batch)
        return rows + self.bags.share[batch.kinds].unsqueeze(1) * z


def bags_of(labels: Tensor, batch: GraphBatch) -> Tensor:
    """Sum the vectors of the labels of each row, the document's over the nodes of all formulas and sentences."""
    lower = (batch.kinds != VirtualKind.DOCUMENT).nonzero().squeeze(1)
    content = ~batch.is_virtual[batch.edge_index[0]]
    node, place = members(batch.nodes.numel(), batch.edge_index[:, content], batch.virtual[lower])
    row = lower[place]  # of each content node of a formula or sentence
    post = torch.repeat_interleave(torch.arange(len(batch), device=row.device), batch.offsets.diff())  # [r]
    document = batch.offsets[1:] - 1
    rows, counts = torch.unique(
        torch.cat([row, document[post[row]]]) * len(labels) + batch.nodes[node].repeat(2), return_counts=True
    )
    starts = torch.searchsorted(rows, torch.arange(len(post), device=row.device) * len(labels))
    return F.embedding_bag(rows % len(labels), labels, starts, mode="sum", per_sample_weights=counts.to(labels.dtype))


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


def network(config: MathAMRConfig, num_labels: int, num_relations: int) -> nn.Module:
    text = config.text
    if text.features == "text":
        return TextAlone(config) if config.text_alone else TextRowEncoder(config, num_labels, num_relations)
    if text.word_residual:
        return BagsAlone(config, num_labels) if config.layers == 0 else BagEncoder(config, num_labels, num_relations)
    return Encoder(config, num_labels, num_relations)


_TYPE = re.compile(r"[A-Z]!")  # V!x is a variable, N!2 a number, U!eq an operator
_SENSE = re.compile(r"-[0-9]+$")  # prove-01
_PLACEHOLDER = re.compile(r"FORMULA_[0-9]+")


def starting_weights(
    config: MathAMRConfig,
    vocabulary: Vocabulary,
    graphs: Iterable[MathAMRGraph],
    tensors: Iterable[GraphTensors],
    text: TextEncoder,
) -> dict[str, Tensor]:
    """Compute the weights that do not start at random."""
    found: dict[str, Tensor] = {}
    options, width = config.text, config.text.text_dimension
    if options.features == "text":
        if config.projection > width:  # a text has no more directions; a trained map may have more rows
            raise ConfigError("projection", config.projection, f"at most text_dimension={width}")
        moment = _mean_moment(tensors, width, lambda batch: features_of(batch, width), _ROWS)
        found["text.project.weight"] = principal_directions(moment, config.projection)
        if config.layers:
            found["text.enter.weight"] = principal_directions(moment, config.hidden)
    if options.features == "words":
        found["initial.labels.weight"] = label_vectors(vocabulary.spellings(graphs), config.hidden, text)
    if options.word_residual:
        posts = list(tensors)
        labels = weighted_labels(found["initial.labels.weight"], posts, config.training.seed)
        moment = _mean_moment(posts, config.hidden, lambda batch: F.normalize(bags_of(labels, batch), dim=1), _BAGS)
        found["initial.labels.weight"] = labels
        found["bags.project.weight"] = principal_directions(moment, config.projection, skip=COMMON)
    return found


def random_network(config: MathAMRConfig, vocabulary: Vocabulary) -> nn.Module:
    """Build a network with random weights, the same for one seed; the caller's random state is preserved."""
    with seeded(config.training.seed):
        return network(config, len(vocabulary.nodes), len(vocabulary.relations))


def label_vectors(spellings: Sequence[str], hidden: int, text: TextEncoder) -> Tensor:
    """Compute the text encoder's vector of each label of a vocabulary, reduced to ``hidden`` numbers by PCA."""
    words = [words_of(label) for label in spellings]
    distinct = [word for word in dict.fromkeys(words) if word]
    vectors = torch.zeros(len(words), hidden)
    if not distinct:
        return vectors
    rows = torch.from_numpy(text.word_vectors(distinct))  # [words, d_text]
    rows = rows - rows.mean(0)
    if rows.size(1) != hidden:
        rows = rows @ principal_directions(moments(rows), hidden).T  # [words, d]
    rows = rows / rows.norm(dim=1).mean().clamp_min(torch.finfo(rows.dtype).tiny)
    place = {word: i for i, word in enumerate(distinct)}
    has = torch.tensor([bool(word) for word in words])
    vectors[has] = rows[[place[word] for word in words if word]]
    return vectors


def words_of(label: str) -> str:
    """Write a label as a text encoder knows it: ``prove-01`` as prove, ``V!x`` as x, ``multi-sentence``."""
    text = html.unescape(_TYPE.sub("", label, count=1) if _TYPE.match(label) else _SENSE.sub("", label))
    if _PLACEHOLDER.fullmatch(text):
        return "formula"
    return text.replace("-", " ").replace("_", " ").strip() or text


def _mean_moment(
    tensors: Iterable[GraphTensors], width: int, rows_of: Callable[[GraphBatch], Tensor], at_once: int
) -> Tensor:
    """Average the moments of the three kinds of rows, so that formulas, the most numerous, do not dominate."""
    total = torch.zeros(len(VirtualKind), width, width, dtype=torch.float64)
    count = torch.zeros(len(VirtualKind), dtype=torch.float64)
    rest = iter(tensors)
    while block := list(islice(rest, at_once)):
        batch = collate(block)
        found = rows_of(batch)  # [r, width]
        for kind in VirtualKind:
            rows = found[batch.kinds == kind]
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
    found = torch.linalg.eigh(moment).eigenvectors.flip(1).T[skip : skip + count]  # [≤ count, d], the largest first
    largest = found.gather(1, found.abs().argmax(1, keepdim=True))
    return F.pad((found * largest.sign()).float(), (0, 0, 0, count - len(found)))
