"""The arrays of graphs, as a model's configuration asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.graph import GraphTensors, MathAMRGraph, Vocabulary, graph_tensors
from pyterrier_mathamr.model.config.config import MathAMRConfig
from pyterrier_mathamr.model.variants.formula_rows import PostFormulas, formula_features
from pyterrier_mathamr.model.variants.text import TextEncoder
from pyterrier_mathamr.model.variants.text_rows import Features, PostTexts, text_features
from pyterrier_mathamr.model.variants.text_windows import PostSegments, window_features

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
