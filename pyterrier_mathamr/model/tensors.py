"""The arrays of graphs, as a model's configuration asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr.graph import GraphTensors, MathAMRGraph, Vocabulary, graph_tensors

from .config import MathAMRConfig
from .variants.text import TextEncoder
from .variants.text_rows import PostTexts, text_features

_AT_ONCE = 2048  # graphs whose texts are encoded together, each distinct text once


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
    """Compute the arrays of graphs, with the text features of a model that reads text.

    Args:
        graphs: read once.
        vocabulary: gives the ids.
        config: ``formulas``, ``virtual_nodes`` and ``auxiliary``.
        total: the number of graphs.
        verbose: show progress.
        text: the encoder of a model with text features; by default the configuration's.

    Raises:
        GraphError: the model has text features and a graph no texts. ConfigError: the encoder's vectors are of
            another width than ``text_dimension``.
    """
    waiting: list[tuple[GraphTensors, PostTexts]] = []
    for graph in progress(graphs, "graph tensors", "graphs", verbose=verbose, total=total):
        tensors = graph_tensors(
            graph,
            vocabulary,
            formulas=config.formulas,
            virtual_nodes=config.virtual_nodes,
            auxiliary=config.auxiliary,
        )
        if config.text.features != "text":
            yield tensors
            continue
        waiting.append((tensors, PostTexts.of(graph, tensors.kinds.tolist(), config)))
        if len(waiting) == _AT_ONCE:
            yield from _with_features(waiting, config, text)
            waiting = []
    yield from _with_features(waiting, config, text)


def _with_features(
    graphs: list[tuple[GraphTensors, PostTexts]], config: MathAMRConfig, text: TextEncoder | None
) -> Iterator[GraphTensors]:
    """Yield the arrays of graphs with the vectors of their rows' texts."""
    if graphs:
        found = text_features([texts for _, texts in graphs], config, text)
        for (tensors, _), features in zip(graphs, found, strict=True):
            yield replace(tensors, features=features)


def batches_by_size(sizes: Sequence[int], budget: int) -> list[list[int]]:
    """Group graphs of similar sizes into batches of at most ``budget`` nodes, at least one graph each.

    Args:
        sizes: nodes of each graph.
        budget: most nodes of a batch.

    Returns:
        Indices of the graphs, the largest first.
    """
    order = sorted(range(len(sizes)), key=lambda i: (-sizes[i], i))
    return [[order[at] for at in run] for run in runs_within((sizes[i] for i in order), budget)]
