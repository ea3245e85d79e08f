"""The network of a configuration, the arrays that it reads, and the weights that it starts from.

::

    features   word_residual   text_residual   layers   network
    lookup     no              –               any      Encoder, Figure 3.3
    words      no              –               any      Encoder, whose labels start from word vectors
    words      yes             –               ≥ 1      BagEncoder
    words      yes             –               0        BagsAlone (both: with FormulaVectors, if ``formula_vectors``)
    text       –               yes             0        TextAlone
    text       –               otherwise                TextRowEncoder

A row as a bag of words is the sum of the label vectors of its nodes, projected::

    b = Σ n label vector, over the labels that occur n times in the row's content nodes;
        of a document: over the nodes of all its formulas and sentences
    row = unit(P b) + s_k unit(z)                    z: what the graph makes of it; s_k starts at 0

The length of a label's vector is its weight, and starts as its inverse document frequency. P starts as the principal
directions of the training posts' bags without the first few, which all posts have in common (Arora et al., ICLR 2017;
Mu and Viswanath, ICLR 2018). So at step 0 a row is a weighted average of word vectors, and what training adds to it is
small; the two layers of the projection head would leave nothing of the word vectors' geometry.

With ``formula_vectors``, rows of formulas also start from the vectors of In+Out::

    x = unit([mean of the layout graph's node vectors, mean of the operator graph's])     each mean of unit length
    row of a formula = unit(P b) + s unit(z) + unit(Q x)

Q has the principal directions of the training formulas and is not trained: pairs of questions and answers say little
about which formulas are alike, and trained on them Q told formulas apart less well. The product of two formulas is that
of their bags, that of their graphs, and what a bag and a graph have by chance in common.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.graph import (
    MASK_ID,
    GraphBatch,
    GraphTensors,
    MathAMRGraph,
    VirtualKind,
    Vocabulary,
    collate,
    detach_formulas,
    graph_tensors,
)

from .config import MathAMRConfig
from .encoder.encoder import Encoder, InitialState, members
from .errors import ShapeError
from .in_out import InOut
from .text_encoder import TextEncoder, unit_rows
from .text_rows import (
    Features,
    PostSegments,
    PostTexts,
    TextAlone,
    TextRowEncoder,
    text_features,
    window_features,
)

WIDTH = 200
"""Of x: both graphs of a bundled In+Out model."""


class FormulaVectors(nn.Module):
    """Q of the equation above."""

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.project: Tensor
        self.register_buffer("project", torch.zeros(config.projection, WIDTH))

    def forward(self, batch: GraphBatch) -> Tensor:
        """Compute unit(Q x): float ``[r, d_p]``, zeros for rows that are no formulas and formulas without trees."""
        if batch.features is None or batch.features.size(1) != WIDTH:
            found = None if batch.features is None else tuple(batch.features.shape)
            expected = f"[r, {WIDTH}]: encode graphs with MathAMR.encode or a transformer, which add these features"
            raise ShapeError("features", found, expected)
        return F.normalize(batch.features.float() @ self.project.T, dim=1)


@dataclass(frozen=True, slots=True)
class PostFormulas:
    """The formulas of a post.

    Attributes:
        rows: the number of the post's rows, the first of which are its formulas.
        trees: both trees of each formula.
    """

    rows: int
    trees: tuple[FormulaPair, ...]

    @classmethod
    def of(cls, graph: MathAMRGraph, rows: int) -> PostFormulas:
        """Collect the trees in a graph."""
        return cls(rows, detach_formulas(graph.amr, graph.n_formulas)[1])


def formula_features(posts: Sequence[PostFormulas], config: MathAMRConfig) -> list[Features]:
    """Encode the formulas of posts, each distinct one once."""
    numbers: dict[FormulaPair, int] = {}
    for post in posts:
        for pair in post.trees:
            numbers.setdefault(pair, len(numbers))
    vectors = _vectors(_model(config.text.formula_vectors), list(numbers))
    found = []
    for post in posts:
        features = np.zeros((post.rows, WIDTH), np.float16)
        features[: len(post.trees)] = vectors[[numbers[pair] for pair in post.trees]]
        found.append(features)
    return found


@lru_cache(maxsize=1)
def _model(name: str) -> InOut:
    return InOut.from_pretrained(name)


def _vectors(model: InOut, formulas: Sequence[FormulaPair]) -> npt.NDArray[np.float32]:
    """Compute x of formulas: float32 ``[formulas, 200]``."""
    means = np.zeros((len(formulas), len(model.kinds), model.options.width), np.float32)
    for place, kind in enumerate(model.kinds):
        for row, nodes in enumerate(model.encode([getattr(pair, kind) for pair in formulas], kind, distinct=False)):
            if len(nodes):
                means[row, place] = nodes.mean(axis=0)
    return unit_rows(np.concatenate([unit_rows(means[:, place]) for place in range(len(model.kinds))], axis=1))


COMMON = 3
"""Principal directions that bags have in common and that P leaves out."""

_MASKED = 0.05  # length of the vector of a masked label: a row of masked nodes alone still has a direction
_BAGS = 256  # posts whose bags are summed at once


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
    """The network of ``word_residual`` without layers: row = unit(P b), and what ``formula_vectors`` adds."""

    def __init__(self, config: MathAMRConfig, num_labels: int) -> None:
        super().__init__()
        self.bags = WordBags(config)
        self.initial = InitialState(config.replace(initialisation="mean", learned="none"), num_labels)
        self.formulas = _formula_vectors(config)

    def forward(self, batch: GraphBatch) -> Tensor:
        """Encode a batch of graphs: float32 ``[r, d_p]``, unit rows."""
        rows: Tensor = self.bags(self.initial.labels.weight, batch)
        return rows if self.formulas is None else F.normalize(rows + self.formulas(batch), dim=1)


class BagEncoder(Encoder):
    """The paper's encoder, whose vectors are added to bags of words."""

    def __init__(self, config: MathAMRConfig, num_labels: int, num_relations: int) -> None:
        bags = WordBags(config)
        super().__init__(config, num_labels, num_relations)
        self.bags, self.formulas = bags, _formula_vectors(config)

    def project(self, batch: GraphBatch) -> Tensor:
        """Compute unit(P b) + s_k unit(z), and what ``formula_vectors`` adds: float ``[r, d_p]``."""
        z = F.normalize(super().project(batch), dim=1)  # [r, d_p]
        rows: Tensor = self.bags(self.initial.labels.weight, batch)
        rows = rows + self.bags.share[batch.kinds].unsqueeze(1) * z
        return rows if self.formulas is None else rows + self.formulas(batch)


def _formula_vectors(config: MathAMRConfig) -> FormulaVectors | None:
    return FormulaVectors(config) if config.text.formula_vectors != "none" else None


def bags_of(labels: Tensor, batch: GraphBatch) -> Tensor:
    """Sum the vectors of the labels of each row, the document's over the nodes of all formulas and sentences."""
    node, row = _members(batch)
    post = torch.repeat_interleave(torch.arange(len(batch), device=row.device), batch.offsets.diff())  # [r]
    document = batch.offsets[1:] - 1
    rows, counts = torch.unique(
        torch.cat([row, document[post[row]]]) * len(labels) + batch.nodes[node].repeat(2), return_counts=True
    )
    starts = torch.searchsorted(rows, torch.arange(len(post), device=row.device) * len(labels))
    return F.embedding_bag(rows % len(labels), labels, starts, mode="sum", per_sample_weights=counts.to(labels.dtype))


def _members(batch: GraphBatch) -> tuple[Tensor, Tensor]:
    """List the content nodes of formulas and sentences, and the row of each."""
    lower = (batch.kinds != VirtualKind.DOCUMENT).nonzero().squeeze(1)
    content = ~batch.is_virtual[batch.edge_index[0]]
    node, row = members(batch.nodes.numel(), batch.edge_index[:, content], batch.virtual[lower])
    return node, lower[row]


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


def bag_blocks(labels: Tensor, tensors: Sequence[GraphTensors]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the unit bags of some posts at a time, float32 ``[r, d]``, and their kinds, int64 ``[r]``."""
    for start in range(0, len(tensors), _BAGS):
        batch = collate(tensors[start : start + _BAGS])
        yield F.normalize(bags_of(labels, batch), dim=1), batch.kinds


def network(config: MathAMRConfig, num_labels: int, num_relations: int) -> nn.Module:
    """Build the network that a configuration asks for, with random weights."""
    text = config.text
    if text.features == "text":
        alone = text.text_residual and config.layers == 0
        return TextAlone(config) if alone else TextRowEncoder(config, num_labels, num_relations)
    if text.word_residual:
        return BagsAlone(config, num_labels) if config.layers == 0 else BagEncoder(config, num_labels, num_relations)
    return Encoder(config, num_labels, num_relations)


Post = TypeVar("Post", PostTexts, PostSegments, PostFormulas)

_AT_ONCE = 2048  # graphs whose texts or formulas are encoded together, each distinct one once


def vocabulary_of(graphs: Iterable[MathAMRGraph], config: MathAMRConfig) -> Vocabulary:
    """Number the labels and relations of training graphs, as many as the configuration asks for."""
    return Vocabulary.build(
        graphs,
        size=config.vocabulary.vocabulary_size,
        min_number_count=config.vocabulary.min_number_count,
        min_role_count=config.vocabulary.min_role_count,
    )


def tensors_of(
    graphs: Iterable[MathAMRGraph],
    vocabulary: Vocabulary,
    config: MathAMRConfig,
    total: int,
    verbose: bool,
    text: TextEncoder | None = None,
) -> list[GraphTensors]:
    """Compute the arrays of graphs, all at once; see :func:`stream_tensors`."""
    return list(stream_tensors(graphs, vocabulary, config, total, verbose, text))


def stream_tensors(
    graphs: Iterable[MathAMRGraph],
    vocabulary: Vocabulary,
    config: MathAMRConfig,
    total: int,
    verbose: bool,
    text: TextEncoder | None = None,
) -> Iterator[GraphTensors]:
    """Compute the arrays of graphs, with the features of a model that reads text or the vectors of formulas."""

    def made() -> Iterator[tuple[MathAMRGraph, GraphTensors]]:
        for graph in progress(graphs, "graph tensors", "graphs", verbose=verbose, total=total):
            yield (
                graph,
                graph_tensors(
                    graph,
                    vocabulary,
                    formulas=config.formulas,
                    virtual_nodes=config.virtual_nodes,
                    auxiliary=config.auxiliary,
                ),
            )

    if config.text.features == "text" and config.text.text_context == "windows":
        segments = ((tensors, PostSegments.of(graph, tensors.kinds.tolist())) for graph, tensors in made())
        return _with_features(segments, lambda posts: window_features(posts, config, text))
    if config.text.features == "text":
        texts = ((tensors, PostTexts.of(graph, tensors.kinds.tolist(), config)) for graph, tensors in made())
        return _with_features(texts, lambda posts: text_features(posts, config, text))
    if config.text.formula_vectors != "none":
        formulas = ((tensors, PostFormulas.of(graph, len(tensors.kinds))) for graph, tensors in made())
        return _with_features(formulas, lambda posts: formula_features(posts, config))
    return (tensors for _, tensors in made())


def _with_features(
    graphs: Iterable[tuple[GraphTensors, Post]], encode: Callable[[Sequence[Post]], Sequence[Features]]
) -> Iterator[GraphTensors]:
    """Yield the arrays of graphs with the features of their rows, encoded for many graphs at once."""
    rest = iter(graphs)
    while block := list(islice(rest, _AT_ONCE)):
        for (tensors, _), features in zip(block, encode([post for _, post in block]), strict=True):
            yield replace(tensors, features=features)


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
    options = config.text
    if options.features == "text":
        moment = _mean_moment(_blocks(tensors), options.text_dimension)
        if options.text_residual:
            found["text.project.weight"] = principal_directions(moment, config.projection)
        if config.layers or not options.text_residual:
            found["text.enter.weight"] = principal_directions(moment, config.hidden)
    if options.features == "words":
        found["initial.labels.weight"] = label_vectors(vocabulary.spellings(graphs), config, text)
    if options.word_residual:
        posts = list(tensors)
        labels = weighted_labels(found["initial.labels.weight"], posts, config.training.seed)
        moment = _mean_moment(bag_blocks(labels, posts), config.hidden)
        found["initial.labels.weight"] = labels
        found["bags.project.weight"] = principal_directions(moment, config.projection, skip=COMMON)
        if options.formula_vectors != "none":
            moment = _mean_moment(_blocks(posts), WIDTH)
            found["formulas.project"] = principal_directions(moment, config.projection)
    return found


def random_network(config: MathAMRConfig, vocabulary: Vocabulary) -> nn.Module:
    """Build a network with random weights, the same for one seed; the caller's random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        return network(config, len(vocabulary.nodes), len(vocabulary.relations))


def label_vectors(spellings: Sequence[str], config: MathAMRConfig, text: TextEncoder) -> Tensor:
    """Compute the text encoder's vector of each label of a vocabulary, reduced to ``hidden`` by PCA."""
    words = [words_of(label) for label in spellings]
    distinct = [word for word in dict.fromkeys(words) if word]
    vectors = torch.zeros(len(words), config.hidden)
    if not distinct:
        return vectors
    found = text.word_vectors(distinct) if config.text.word_vectors == "input" else text.encode(distinct)
    rows = torch.from_numpy(found).float()  # [words, d_text]
    rows = rows - rows.mean(0)
    if rows.size(1) != config.hidden:
        rows = rows @ principal_directions(moments(rows), config.hidden).T  # [words, d]
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


def _mean_moment(blocks: Iterable[tuple[Tensor, Tensor]], width: int) -> Tensor:
    """Average the moments of the three kinds of rows, so that formulas, the most numerous, do not dominate."""
    total = torch.zeros(len(VirtualKind), width, width, dtype=torch.float64)
    count = torch.zeros(len(VirtualKind), dtype=torch.float64)
    for features, kinds in blocks:
        for kind in VirtualKind:
            rows = features[kinds == kind]
            total[kind] += moments(rows) * rows.size(0)
            count[kind] += rows.size(0)
    return (total / count.clamp_min(1).view(-1, 1, 1)).sum(0) / max(int((count > 0).sum()), 1)


def _blocks(tensors: Iterable[GraphTensors], size: int = 512) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the features and kinds of some graphs at a time, end to end."""
    features: list[Tensor] = []
    kinds: list[Tensor] = []
    for graph in tensors:
        if graph.features is not None:
            features.append(torch.from_numpy(graph.features).float())
            kinds.append(torch.from_numpy(graph.kinds))
        if len(features) == size:
            yield torch.cat(features), torch.cat(kinds)
            features, kinds = [], []
    if features:
        yield torch.cat(features), torch.cat(kinds)


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
