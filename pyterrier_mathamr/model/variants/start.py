"""The weights that a model starts from where a text encoder gives them: principal directions and word vectors."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from pyterrier_mathamr.graph import GraphTensors, MathAMRGraph, VirtualKind, Vocabulary
from pyterrier_mathamr.model.config import MathAMRConfig
from pyterrier_mathamr.model.encoder.encoder import Encoder

from .bags import COMMON, bag_blocks, weighted_labels
from .text import TextEncoder
from .text_vectors import moments, principal_directions

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
    """Compute the weights of an encoder that do not start at random.

    Args:
        config: says which there are.
        vocabulary: of the labels.
        graphs: of the training posts, read once where the labels start from word vectors.
        tensors: of the same posts, read once where the rows start from text features or bags.
        text: the encoder.

    Returns:
        Parameters of the :class:`Encoder` by name; none for a model with ``features="lookup"``.

    Raises:
        ConfigError: the encoder has no input embeddings and ``word_vectors`` is ``input``.
    """
    found: dict[str, Tensor] = {}
    if config.features == "text":
        moment = _mean_moment(_blocks(tensors), config.text_dimension)
        if config.text_residual:
            found["text.project.weight"] = principal_directions(moment, config.projection)
        if not config.text_alone:
            found["text.enter.weight"] = principal_directions(moment, config.hidden)
    if config.features == "words" or (config.text_concepts and not config.text_alone):
        found["initial.labels.weight"] = label_vectors(vocabulary.spellings(graphs), config, text)
    if config.word_residual:
        posts = list(tensors)
        labels = weighted_labels(found["initial.labels.weight"], posts, config.seed)
        moment = _mean_moment(bag_blocks(labels, posts), config.hidden)
        found["initial.labels.weight"] = labels
        found["bags.project.weight"] = principal_directions(moment, config.projection, skip=COMMON)
    return found


def first_encoder(config: MathAMRConfig, vocabulary: Vocabulary) -> Encoder:
    """Make an encoder at random, the same each time for one seed; the caller's own chance is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return Encoder(config, len(vocabulary.nodes), len(vocabulary.relations))


def label_vectors(spellings: Sequence[str], config: MathAMRConfig, text: TextEncoder) -> Tensor:
    """Give each label of a vocabulary the text encoder's vector of its word, brought to ``hidden`` by PCA.

    Args:
        spellings: the label as graphs write it for each id, empty for one that no graph has.
        config: ``word_vectors`` and ``hidden``.
        text: the encoder.

    Returns:
        float32 ``[num_labels, d]``, of length 1 in the mean; zeros for labels without a word, such as virtual nodes.
    """
    words = [words_of(label) for label in spellings]
    distinct = [word for word in dict.fromkeys(words) if word]
    vectors = torch.zeros(len(words), config.hidden)
    if not distinct:
        return vectors
    found = text.word_vectors(distinct) if config.word_vectors == "input" else text.encode(distinct)
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
    """Write a label as a text encoder knows it: ``prove-01`` as prove, ``V!x`` as x, ``multi-sentence`` as two words.

    Args:
        label: of a concept, constant or formula symbol.
    """
    text = html.unescape(_TYPE.sub("", label, count=1) if _TYPE.match(label) else _SENSE.sub("", label))
    if _PLACEHOLDER.fullmatch(text):
        return "formula"
    return text.replace("-", " ").replace("_", " ").strip() or text


def _mean_moment(blocks: Iterable[tuple[Tensor, Tensor]], width: int) -> Tensor:
    """Average the moments of the kinds of rows, so that formulas, the most numerous, do not decide alone."""
    total = torch.zeros(len(VirtualKind), width, width, dtype=torch.float64)
    count = torch.zeros(len(VirtualKind), dtype=torch.float64)
    for features, kinds in blocks:
        for kind in VirtualKind:
            rows = features[kinds == kind]
            total[kind] += moments(rows) * rows.size(0)
            count[kind] += rows.size(0)
    return (total / count.clamp_min(1).view(-1, 1, 1)).sum(0) / max(int((count > 0).sum()), 1)


def _blocks(tensors: Iterable[GraphTensors], size: int = 512) -> Iterator[tuple[Tensor, Tensor]]:
    """Put the features and kinds of some graphs at a time end to end."""
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
