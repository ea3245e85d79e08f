"""The weights that a model starts from where they come from a text encoder: principal directions and word vectors."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr.graph import GraphTensors, MathAMRGraph, VirtualKind, Vocabulary
from pyterrier_mathamr.model.config.config import MathAMRConfig

from .bags import COMMON, bag_blocks, weighted_labels
from .formula_rows import WIDTH
from .network import network
from .text import TextEncoder

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
