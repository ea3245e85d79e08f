"""Graphs made into arrays under a model's conditions."""

from __future__ import annotations

from collections.abc import Iterable

from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr.graph import GraphTensors, MathAMRGraph, Vocabulary, graph_tensors

from .config import MathAMRConfig


def tensors_of(
    graphs: Iterable[MathAMRGraph], vocabulary: Vocabulary, config: MathAMRConfig, total: int, verbose: bool
) -> list[GraphTensors]:
    """Make the arrays of graphs under the configuration's formula mode and virtual nodes.

    Args:
        graphs: read once.
        vocabulary: gives the ids.
        config: ``formulas``, ``virtual_nodes`` and ``auxiliary``.
        total: the number of graphs.
        verbose: show progress.
    """
    return [
        graph_tensors(
            graph,
            vocabulary,
            formulas=config.formulas,
            virtual_nodes=config.virtual_nodes,
            auxiliary=config.auxiliary,
        )
        for graph in progress(graphs, "graph tensors", "graph", verbose=verbose, total=total)
    ]
