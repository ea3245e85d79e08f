"""Graphs made into arrays under a model's conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr.graph import GraphTensors, MathAMRGraph, Vocabulary, graph_tensors

from .config import MathAMRConfig


def tensors_of(
    graphs: Iterable[MathAMRGraph], vocabulary: Vocabulary, config: MathAMRConfig, total: int, verbose: bool
) -> list[GraphTensors]:
    """Make the arrays of graphs, all at once; see :func:`stream_tensors`."""
    return list(stream_tensors(graphs, vocabulary, config, total, verbose))


def stream_tensors(
    graphs: Iterable[MathAMRGraph], vocabulary: Vocabulary, config: MathAMRConfig, total: int, verbose: bool
) -> Iterator[GraphTensors]:
    """Make the arrays of graphs under the configuration's formula mode and virtual nodes, one after the other.

    Args:
        graphs: read once.
        vocabulary: gives the ids.
        config: ``formulas``, ``virtual_nodes`` and ``auxiliary``.
        total: the number of graphs.
        verbose: show progress.
    """
    for graph in progress(graphs, "graph tensors", "graph", verbose=verbose, total=total):
        yield graph_tensors(
            graph,
            vocabulary,
            formulas=config.formulas,
            virtual_nodes=config.virtual_nodes,
            auxiliary=config.auxiliary,
        )
