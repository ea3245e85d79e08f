"""Many graphs through a network: batches of similar sizes, whose states fit the CPU's cache, on a device.

::

    root, VIRTUAL_DOCUMENT ──┬── sentences 1 … 900   ┐        each piece has the root and the document's node;
                             ├── sentences 901 … …   ├──▶     rows of formulas and sentences come from their piece,
                             └── …                   ┘        the document's is the normalized sum of all of them

Without the root and the document's node a graph falls into components, one or more sentences each, and is only cut
between them. A graph of several million nodes then needs the memory of one piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr._common.running.resources import keep_freed_memory, one_torch_thread
from pyterrier_mathamr.graph import GraphTensors, VirtualKind

if TYPE_CHECKING:
    import torch
    from torch import nn


def choose_device(name: str | None) -> torch.device:
    import torch

    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(
            "device", name, f"a device of this machine, or None ({str(error).splitlines()[0]})"
        ) from error
    return device


def has_bfloat16(device: torch.device) -> bool:
    """Return whether a device multiplies matrices faster in bfloat16 than in float32: AVX-512 BF16, AMX, ARM, GPUs."""
    import torch

    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    known: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)() if device.type == "cpu" else {}
    return any(known.get(name, False) for name in ("avx512_bf16", "amx_bf16", "arm_bf16", "bf16"))


def batches_by_size(sizes: Sequence[int], budget: int) -> list[list[int]]:
    """Group graphs of similar sizes into batches of at most ``budget`` nodes, at least one graph each."""
    order = sorted(range(len(sizes)), key=lambda i: (-sizes[i], i))
    return [[order[at] for at in run] for run in runs_within((sizes[i] for i in order), budget)]


class GraphPiece(NamedTuple):
    """A part of a graph, with the root and the document's node of the whole."""

    graph: GraphTensors
    rows: npt.NDArray[np.int64]  # [n], the row of the whole that each of its rows is


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
    order = np.argsort(first)  # as written
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
    """Put the rows of pieces together: float32 ``[rows, d]``; the document's is the normalized sum of theirs."""
    if len(pieces) == 1:
        return encoded[0]
    whole = np.zeros((rows, encoded[0].shape[1]), dtype=np.float32)
    for piece, part in zip(pieces, encoded, strict=True):
        whole[piece.rows] += part
    last = whole[-1]
    last /= max(float(np.linalg.norm(last)), np.finfo(np.float32).tiny)
    return whole


Embeddings = npt.NDArray[np.float32]
"""float32 ``[n, d]`` with rows of unit length: formulas in order, sentences in order, the document last."""

_NODE_BUDGET = 8_192  # of a batch, whose states fit the CPU's cache; twice as many take a fifth longer
_MOST_NODES = 65_536  # of a graph; a larger one, of some 100,000 words, is cut between its sentences


def encode_in_batches(
    network: nn.Module, graphs: Sequence[GraphTensors], place: torch.device, width: int, *, verbose: bool = False
) -> list[Embeddings]:
    """Encode graphs in batches of similar sizes."""
    import torch

    from pyterrier_mathamr.graph import collate

    cut = [pieces_of(graph, _MOST_NODES) for graph in graphs]
    pieces = [piece.graph for of_graph in cut for piece in of_graph]
    results: list[Embeddings] = [np.empty((0, width), np.float32)] * len(pieces)
    batches = batches_by_size([len(piece.nodes) for piece in pieces], _NODE_BUDGET)
    if place.type == "cpu" and len(batches) > 1:
        keep_freed_memory()
    # The products of a batch are small: a second CPU thread costs more time than it saves.
    with torch.no_grad(), one_torch_thread() if place.type == "cpu" else nullcontext():
        for members in progress(batches, "encoding", "batches", verbose=verbose):
            batch = collate([pieces[i] for i in members]).to(place)
            rows = network(batch).cpu().numpy()  # [r, d]
            for i, part in zip(members, np.split(rows, batch.offsets[1:-1].cpu().numpy()), strict=True):
                results[i] = np.ascontiguousarray(part)
    rest = iter(results)
    return [
        joined(of_graph, list(islice(rest, len(of_graph))), len(graph.virtual))
        for graph, of_graph in zip(graphs, cut, strict=True)
    ]
