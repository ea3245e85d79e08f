"""Graphs to vectors: the arrays of graphs, features of their rows from a text encoder, and batches of both.

::

    MathAMRGraph ──tensors_of──▶ GraphTensors, features [n, d_text] ──encode_in_batches──▶ network ──▶ float32 [n, d]

Features are not in the paper. One pass of the text encoder gives the vectors of all rows in a window (late chunking)::

    sentences ──pieces──▶ | window: as many whole sentences as the encoder reads | window | …
                                             │ one pass each: a state for each piece
    sentence   x = unit(Σ states of its pieces)
    formula    x = unit(Σ states of its pieces)       at its first occurrence
    document   x = unit(Σ unit(mean of a window's states))

Each piece is read once, with the sentences around it. A sentence that is longer than a window is cut.

A graph of several million nodes is encoded in pieces, and then needs the memory of one::

    root, VIRTUAL_DOCUMENT ──┬── sentences 1 … 900   ┐        each piece has the root and the document's node;
                             ├── sentences 901 … …   ├──▶     rows of formulas and sentences come from their piece,
                             └── …                   ┘        the document's is the normalized sum of all of them

Without the root and the document's node a graph falls into components, one or more sentences each, and is only cut
between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress, work_done
from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr._common.running.resources import keep_freed_memory, one_torch_thread
from pyterrier_mathamr.graph import (
    GraphTensors,
    MathAMRGraph,
    Segments,
    VirtualKind,
    Vocabulary,
    graph_tensors,
    segments_of,
)

from .batching import batches_by_size
from .config import MathAMRConfig
from .text_encoder import Float16, PackedEncoder, TextEncoder, TokenNetwork, unit_rows

if TYPE_CHECKING:
    import torch
    from torch import nn

Embeddings = npt.NDArray[np.float32]
"""float32 ``[n, d]`` with rows of unit length: formulas in order, sentences in order, the document last."""

_AT_ONCE = 2048  # posts that are encoded together, each distinct one once
_NODE_BUDGET = 8_192  # of a batch, whose states fit the CPU's cache; twice as many take a fifth longer
_MOST_NODES = 65_536  # of a graph; a larger one, of some 100,000 words, is cut between its sentences


def vocabulary_of(graphs: Iterable[MathAMRGraph], config: MathAMRConfig) -> Vocabulary:
    """Number the labels and relations of training graphs, as many as the configuration asks for."""
    options = config.vocabulary
    return Vocabulary.build(
        graphs,
        size=options.vocabulary_size,
        min_number_count=options.min_number_count,
        min_role_count=options.min_role_count,
    )


def tensors_of(
    graphs: Iterable[MathAMRGraph],
    vocabulary: Vocabulary,
    config: MathAMRConfig,
    text: TextEncoder | None = None,
    *,
    total: int | None = None,
    verbose: bool = False,
) -> Iterator[GraphTensors]:
    """Compute the arrays of graphs, with the features of a model that reads text."""
    arrays_of = partial(
        graph_tensors,
        vocabulary=vocabulary,
        formulas=config.formulas,
        virtual_nodes=config.virtual_nodes,
        auxiliary=config.auxiliary,
    )
    shown = progress(graphs, "graph tensors", "graphs", verbose=verbose, total=total)
    arrays = ((graph, arrays_of(graph)) for graph in shown)
    if config.text.features != "text":
        yield from (tensors for _, tensors in arrays)
        return
    encoder, width = text or TextEncoder(config.text.text_model), config.text.text_dimension
    # no graph stays in memory until its block is encoded
    posts = ((tensors, PostSegments(tensors.kinds.tolist(), segments_of(graph))) for graph, tensors in arrays)
    while block := list(islice(posts, _AT_ONCE)):
        features = window_features([segments for _, segments in block], width, encoder)
        for (tensors, _), rows in zip(block, features, strict=True):
            yield replace(tensors, features=rows)


class PostSegments(NamedTuple):
    """The kind of each row of a post, and the places of its sentences and formulas in its texts."""

    kinds: list[int]
    segments: Segments


def window_features(posts: Sequence[PostSegments], width: int, text: TextEncoder) -> list[Float16]:
    """Encode posts in windows, except those in the encoder's cache: float16 ``[rows, width]`` of each post."""
    keys = [repr(tuple(post)) for post in posts]
    distinct = dict(zip(keys, posts, strict=True))
    known = text.kept(
        "#windows", list(distinct), _AT_ONCE, lambda missing: _encode_windows([distinct[key] for key in missing], text)
    )
    features = [known[key].reshape(len(post.kinds), -1) for key, post in zip(keys, posts, strict=True)]
    if features and features[0].shape[1] != width:
        raise ConfigError("text_dimension", width, f"{features[0].shape[1]} with {text!r}")
    return features


def _encode_windows(posts: Sequence[PostSegments], text: TextEncoder) -> list[Float16]:
    network = text.tokens
    offsets = np.cumsum([0, *(len(post.kinds) + 1 for post in posts)])  # the last row of each is its document
    windows = list(windows_of(posts, offsets.tolist(), network))
    sums = np.zeros((int(offsets[-1]), network.width), np.float32)
    batches = batches_by_size([len(window.ids) for window in windows], network.at_once)
    total, read, told = sum(len(window.ids) for window in windows), 0, 0
    for members in progress(batches, "encoding texts", "batches", verbose=text.verbose):
        of_batch = network.states([windows[i].ids for i in members])
        for window, states in zip((windows[i] for i in members), of_batch, strict=True):
            sums[window.document] += unit_rows(states.mean(axis=0, keepdims=True))[0]
            if window.rows:
                zero = np.zeros((1, states.shape[1]), np.float32)
                until = np.concatenate([zero, states[network.before :].cumsum(axis=0)])
                rows, first, end = np.array(window.rows).T
                sums[rows] += until[end] - until[first]  # each row is in a window once
            read += len(window.ids)
        share = len(posts) * read // max(total, 1)  # long windows come first, so this is the share of the time, too
        work_done(share - told)
        told = share
    features = []
    for post, post_sums in zip(posts, np.split(sums, offsets[1:-1]), strict=True):
        vectors = unit_rows(post_sums)
        # a sentence without a piece, or a formula that was cut away, gets the document's vector
        vectors[~vectors.any(axis=1)] = vectors[-1]
        vectors[:-1][np.asarray(post.kinds, np.int64) == VirtualKind.DOCUMENT] = vectors[-1]
        features.append(vectors[:-1].astype(np.float16))
    return features


class Window(NamedTuple):
    """A window of pieces; rows are numbered over all posts."""

    ids: list[int]
    rows: list[tuple[int, int, int]]  # (row, first, end): pieces first to end belong to a row
    document: int  # the row of the post


def windows_of(
    posts: Sequence[PostSegments], offsets: Sequence[int], network: PackedEncoder | TokenNetwork
) -> Iterator[Window]:
    """Cut posts into windows of whole segments; one that is longer than a window is cut, too."""
    all_pieces = iter(network.pieces([line for post in posts for line in post.segments.texts]))
    for i, post in enumerate(posts):
        pieces = list(islice(all_pieces, len(post.segments.texts)))
        lengths = [len(segment.ids) for segment in pieces]
        starts = np.cumsum([0, *lengths]).tolist()
        spans = []  # the pieces of each row, counted over the whole post
        formulas, sentences = iter(post.segments.of_formula), iter(post.segments.of_sentence)
        for row, kind in enumerate(post.kinds, offsets[i]):
            if kind == VirtualKind.FORMULA:
                place = next(formulas)
                low, high = pieces[place.segment].between(place.start, place.end)
                spans.append((row, starts[place.segment] + low, starts[place.segment] + high))
            elif kind == VirtualKind.SENTENCE:
                number = next(sentences)
                spans.append((row, starts[number], starts[number + 1]))
        ids = [piece for segment in pieces for piece in segment.ids]
        for run in runs_within(lengths, network.room):
            start, stop = starts[run[0]], starts[run[-1] + 1]
            for first in range(start, max(stop, start + 1), network.room):  # an empty post has one window
                end = min(first + network.room, stop)
                rows = [
                    (row, max(low, first) - first, min(high, end) - first)
                    for row, low, high in spans
                    if low < end and high > first
                ]
                yield Window(ids[first:end], rows, offsets[i + 1] - 1)


def encode_in_batches(
    network: nn.Module, graphs: Sequence[GraphTensors], device: torch.device, width: int, *, verbose: bool = False
) -> list[Embeddings]:
    """Encode graphs in batches of similar sizes."""
    import torch

    from pyterrier_mathamr.graph import collate

    pieces_by_graph = [pieces_of(graph, _MOST_NODES) for graph in graphs]
    pieces = [piece for of_graph in pieces_by_graph for piece, _ in of_graph]
    encoded: list[Embeddings] = [np.empty((0, width), np.float32)] * len(pieces)
    batches = batches_by_size([len(piece.nodes) for piece in pieces], _NODE_BUDGET)
    if device.type == "cpu" and len(batches) > 1:
        keep_freed_memory()
    # The products of a batch are small: a second CPU thread costs more time than it saves.
    with torch.no_grad(), one_torch_thread() if device.type == "cpu" else nullcontext():
        for members in progress(batches, "encoding", "batches", verbose=verbose):
            batch = collate([pieces[i] for i in members]).to(device)
            rows = network(batch).cpu().numpy()  # [r, d]
            for i, part in zip(members, np.split(rows, batch.offsets[1:-1].cpu().numpy()), strict=True):
                encoded[i] = np.ascontiguousarray(part)
    rest, embeddings = iter(encoded), []
    for graph, of_graph in zip(graphs, pieces_by_graph, strict=True):
        whole = next(rest)
        if len(of_graph) > 1:
            parts, whole = [whole, *islice(rest, len(of_graph) - 1)], np.zeros((len(graph.virtual), width), np.float32)
            for (_, places), part in zip(of_graph, parts, strict=True):
                whole[places] += part
            whole[-1] /= max(float(np.linalg.norm(whole[-1])), np.finfo(np.float32).tiny)
        embeddings.append(whole)
    return embeddings


def pieces_of(graph: GraphTensors, most: int) -> list[tuple[GraphTensors, npt.NDArray[np.int64]]]:
    """Cut a graph into pieces of about ``most`` nodes, each with the rows of the whole that its rows are.

    Each piece has the root and the document's node; a graph that is not larger is the only piece.
    """
    if len(graph.nodes) <= most:
        return [(graph, np.arange(len(graph.virtual)))]
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
    piece_of_node = np.where(trunk, -1, piece_of_component[component])

    pieces = []
    for number in range(len(runs)):
        if not (piece_of_node == number).any():
            continue
        kept = trunk | (piece_of_node == number)
        new_number = (np.cumsum(kept) - 1).astype(np.int32)
        inside = kept[graph.edges].all(axis=0)
        rows = np.flatnonzero(kept[graph.virtual])
        piece = GraphTensors(
            nodes=graph.nodes[kept],
            edges=new_number[graph.edges[:, inside]],
            relations=graph.relations[inside],
            virtual=new_number[graph.virtual[rows]],
            kinds=graph.kinds[rows],
            features=None if graph.features is None else graph.features[rows],
        )
        pieces.append((piece, rows))
    return pieces
