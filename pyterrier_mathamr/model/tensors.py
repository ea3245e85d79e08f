"""Graphs made into arrays under a model's conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr.graph import GraphTensors, MathAMRGraph, Vocabulary, graph_tensors, row_contexts, row_texts

from .config import MathAMRConfig
from .text import TextEncoder

_Rows = npt.NDArray[np.float16]

_AT_ONCE = 2048  # graphs whose texts are encoded together, each distinct text once


@dataclass(frozen=True, slots=True)
class _Texts:
    """A graph's arrays, the text of each of its rows, and, where they are wanted, the texts around them."""

    tensors: GraphTensors
    own: list[str]
    contexts: list[str]


def tensors_of(
    graphs: Iterable[MathAMRGraph],
    vocabulary: Vocabulary,
    config: MathAMRConfig,
    total: int,
    verbose: bool,
    text: TextEncoder | None = None,
) -> list[GraphTensors]:
    """Make the arrays of graphs, all at once; see :func:`stream_tensors`."""
    return list(stream_tensors(graphs, vocabulary, config, total, verbose, text))


def stream_tensors(
    graphs: Iterable[MathAMRGraph],
    vocabulary: Vocabulary,
    config: MathAMRConfig,
    total: int,
    verbose: bool,
    text: TextEncoder | None = None,
) -> Iterator[GraphTensors]:
    """Make the arrays of graphs under the configuration's formula mode and virtual nodes, one after the other.

    Args:
        graphs: read once.
        vocabulary: gives the ids.
        config: ``formulas``, ``virtual_nodes`` and ``auxiliary``.
        total: the number of graphs.
        verbose: show progress.
        text: the encoder of a model with text features; that of the configuration where not given.

    Raises:
        MissingTextsError: the model has text features and a graph no texts. ConfigError: the encoder's vectors are of
            another width than ``text_dimension``.
    """
    waiting: list[_Texts] = []
    for graph in progress(graphs, "graph tensors", "graph", verbose=verbose, total=total):
        tensors = graph_tensors(
            graph,
            vocabulary,
            formulas=config.formulas,
            virtual_nodes=config.virtual_nodes,
            auxiliary=config.auxiliary,
        )
        if config.features != "text":
            yield tensors
            continue
        kinds = tensors.kinds.tolist()
        contexts = row_contexts(graph, kinds) if config.text_passages else []
        waiting.append(_Texts(tensors, row_texts(graph, kinds), contexts))
        if len(waiting) == _AT_ONCE:
            yield from _with_features(waiting, config, text)
            waiting = []
    yield from _with_features(waiting, config, text)


def _with_features(graphs: list[_Texts], config: MathAMRConfig, text: TextEncoder | None) -> Iterator[GraphTensors]:
    """Add to the arrays of graphs the vectors of their rows' texts."""
    if not graphs:
        return
    text = text or TextEncoder(config.text_model)
    features = text.encode([line for graph in graphs for line in graph.own])
    if features.shape[1] != config.text_dimension:
        raise ConfigError("text_dimension", config.text_dimension, f"{features.shape[1]} with {text!r}")
    if config.text_passages:
        features = _unit_sums(features, text.encode([line for graph in graphs for line in graph.contexts]))
    last = 0
    for graph in graphs:
        first, last = last, last + len(graph.own)
        yield replace(graph.tensors, features=features[first:last])


def _unit_sums(one: _Rows, two: _Rows) -> _Rows:
    """Add rows and bring the sums to unit length; a row and itself give that row."""
    sums = one.astype(np.float32) + two
    length = np.linalg.norm(sums, axis=1, keepdims=True)
    unit: _Rows = (sums / np.maximum(length, np.finfo(np.float16).tiny)).astype(np.float16)
    return unit


def batches_by_size(sizes: Sequence[int], budget: int) -> list[list[int]]:
    """Group graphs of like size, so that a batch holds at most ``budget`` nodes, one graph at the least.

    Args:
        sizes: nodes of each graph.
        budget: most nodes of a batch.

    Returns:
        Indices of the graphs, the largest first.
    """
    batches: list[list[int]] = []
    room = 0
    for i in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        if not batches or sizes[i] > room:
            batches.append([])
            room = budget
        batches[-1].append(i)
        room -= sizes[i]
    return batches
