"""A graph that is too large for the network, cut between its sentences.

::

    root, VIRTUAL_DOCUMENT ──┬── sentences 1 … 900   ┐        each piece has the root and the document's node;
                             ├── sentences 901 … …   ├──▶     rows of formulas and sentences come from their piece,
                             └── …                   ┘        the document's is the normalised sum of all of them

Without the root and the document's node a graph falls apart into what its sentences share nothing with; only there it
is cut. A graph of several million nodes then takes the memory of one piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr.graph import GraphTensors, VirtualKind


class GraphPiece(NamedTuple):
    """A part of a graph.

    Attributes:
        graph: with the root and the document's node of the whole.
        rows: int64 ``[n]``, the row of the whole that each of its rows is.
    """

    graph: GraphTensors
    rows: npt.NDArray[np.int64]


def pieces_of(graph: GraphTensors, most: int) -> list[GraphPiece]:
    """Cut a graph into pieces of about ``most`` nodes; one that is not larger is the only piece."""
    if len(graph.nodes) <= most:
        return [GraphPiece(graph, np.arange(len(graph.virtual)))]
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = len(graph.nodes)
    trunk = np.zeros(size, dtype=bool)
    trunk[0] = True
    trunk[graph.virtual[graph.kinds == VirtualKind.DOCUMENT]] = True
    sources, targets = graph.edges[:, ~trunk[graph.edges].any(axis=0)]
    links = coo_array((np.ones(len(sources), dtype=np.int8), (sources, targets)), shape=(size, size))
    _, component = connected_components(links, directed=False)
    _, first, sizes = np.unique(component, return_index=True, return_counts=True)
    order = np.argsort(first)  # as they are written
    piece_of_component = np.empty(len(order), dtype=np.int64)
    runs = runs_within(sizes[order].tolist(), most)
    for number, run in enumerate(runs):
        piece_of_component[order[run.start : run.stop]] = number
    piece = np.where(trunk, -1, piece_of_component[component])
    return [_piece(graph, trunk | (piece == number)) for number in range(len(runs)) if (piece == number).any()]


def _piece(graph: GraphTensors, kept: npt.NDArray[np.bool_]) -> GraphPiece:
    """Keep some nodes, and the edges between them."""
    place = (np.cumsum(kept) - 1).astype(np.int32)
    inside = kept[graph.edges].all(axis=0)
    rows = np.flatnonzero(kept[graph.virtual])
    cut = GraphTensors(
        nodes=graph.nodes[kept],
        edges=place[graph.edges[:, inside]],
        relations=graph.relations[inside],
        virtual=place[graph.virtual[rows]],
        kinds=graph.kinds[rows],
        features=None if graph.features is None else graph.features[rows],
    )
    return GraphPiece(cut, rows)


def joined(
    pieces: Sequence[GraphPiece], encoded: Sequence[npt.NDArray[np.float32]], rows: int
) -> npt.NDArray[np.float32]:
    """Put the rows of pieces together: float32 ``[rows, d]``; the document's is the normalised sum of theirs."""
    if len(pieces) == 1:
        return encoded[0]
    whole = np.zeros((rows, encoded[0].shape[1]), dtype=np.float32)
    for piece, part in zip(pieces, encoded, strict=True):
        whole[piece.rows] += part
    last = whole[-1]
    last /= max(float(np.linalg.norm(last)), np.finfo(np.float32).tiny)
    return whole
