"""The arrays of graphs, with vectors of rows from a pretrained text encoder; the latter are not in the paper.

One pass of the encoder gives the vectors of all rows in a window (late chunking)::

    sentences ──pieces──▶ | window: as many whole sentences as the encoder reads | window | …
                                             │ one pass each: a state for each piece
    sentence   x = unit(Σ states of its pieces)
    formula    x = unit(Σ states of its pieces)       at its first occurrence
    document   x = unit(Σ unit(mean of a window's states))

Each piece is read once, with the sentences around it. A sentence that is longer than a window is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress, work_done
from pyterrier_mathamr._common.running.processes import runs_within
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
from .packed_bert import Rows
from .packed_encoder import PackedEncoder
from .text_encoder import TextEncoder, TokenNetwork, unit_rows

Features = npt.NDArray[np.float16]
"""float16 ``[rows, width]`` of one post."""

_AT_ONCE = 2048  # posts that are encoded together, each distinct one once


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
    arrays = partial(
        graph_tensors,
        vocabulary=vocabulary,
        formulas=config.formulas,
        virtual_nodes=config.virtual_nodes,
        auxiliary=config.auxiliary,
    )
    shown = progress(graphs, "graph tensors", "graphs", verbose=verbose, total=total)
    made = ((graph, arrays(graph)) for graph in shown)
    if config.text.features != "text":
        yield from (tensors for _, tensors in made)
        return
    encoder, width = text or TextEncoder(config.text.text_model), config.text.text_dimension
    posts = ((tensors, PostSegments.of(graph, tensors.kinds.tolist())) for graph, tensors in made)  # lets go of graphs
    while block := list(islice(posts, _AT_ONCE)):
        found = window_features([post for _, post in block], width, encoder)
        for (tensors, _), features in zip(block, found, strict=True):
            yield replace(tensors, features=features)


def vocabulary_of(graphs: Iterable[MathAMRGraph], config: MathAMRConfig) -> Vocabulary:
    """Number the labels and relations of training graphs, as many as the configuration asks for."""
    options = config.vocabulary
    return Vocabulary.build(
        graphs,
        size=options.vocabulary_size,
        min_number_count=options.min_number_count,
        min_role_count=options.min_role_count,
    )


class PostSegments(NamedTuple):
    """The kind of each row of a post, and the places of its sentences and formulas in its texts."""

    kinds: list[int]
    segments: Segments

    @classmethod
    def of(cls, graph: MathAMRGraph, kinds: list[int]) -> PostSegments:
        return cls(kinds, segments_of(graph))


class Window(NamedTuple):
    """A window of pieces; rows are numbered over all posts."""

    ids: list[int]
    rows: list[tuple[int, int, int]]  # (row, first, end): pieces first to end belong to a row
    document: int  # the row of the post


def window_features(posts: Sequence[PostSegments], width: int, text: TextEncoder) -> list[Features]:
    """Encode posts in windows; a post that the encoder's cache knows is not encoded again."""
    keys = [repr(tuple(post)) for post in posts]
    distinct = dict(zip(keys, posts, strict=True))
    found = text.kept(
        "#windows", list(distinct), _AT_ONCE, lambda missing: _encode([distinct[key] for key in missing], text)
    )
    features = [found[key].reshape(len(post.kinds), -1) for key, post in zip(keys, posts, strict=True)]
    if features and features[0].shape[1] != width:
        raise ConfigError("text_dimension", width, f"{features[0].shape[1]} with {text!r}")
    return features


def _encode(posts: Sequence[PostSegments], text: TextEncoder) -> list[Features]:
    """Encode posts, each float16 ``[rows, d_text]``."""
    network = text.tokens
    offsets = np.cumsum([0, *(len(post.kinds) + 1 for post in posts)])  # the last row of each is its document
    windows = list(windows_of(posts, offsets.tolist(), network))
    sums = np.zeros((int(offsets[-1]), network.width), np.float32)
    batches = batches_by_size([len(window.ids) for window in windows], network.at_once)
    read, total, told = 0, sum(len(window.ids) for window in windows), 0
    for members in progress(batches, "encoding texts", "batches", verbose=text.verbose):
        found = network.states([windows[i].ids for i in members])
        for i, states in zip(members, found, strict=True):
            _add(sums, windows[i], states, network.before)
        read += sum(len(windows[i].ids) for i in members)
        share = len(posts) * read // max(total, 1)  # long windows come first, so this is the share of the time, too
        work_done(share - told)
        told = share
    features = []
    for post, rows in zip(posts, np.split(sums, offsets[1:-1]), strict=True):
        own = unit_rows(rows)
        own[~own.any(axis=1)] = own[-1]  # a sentence without a piece, or a formula that was cut away, is the document
        own[:-1][np.asarray(post.kinds, np.int64) == VirtualKind.DOCUMENT] = own[-1]
        features.append(own[:-1].astype(np.float16))
    return features


def windows_of(
    posts: Sequence[PostSegments], offsets: Sequence[int], network: PackedEncoder | TokenNetwork
) -> Iterator[Window]:
    """Cut posts into windows of whole segments; one that is longer than a window is cut, too."""
    pieces = iter(network.pieces([line for post in posts for line in post.segments.texts]))
    for i, post in enumerate(posts):
        own = [next(pieces) for _ in post.segments.texts]
        lengths = [len(one.ids) for one in own]
        starts = np.cumsum([0, *lengths]).tolist()
        spans = []  # the pieces of each row, counted over the whole post
        formulas, sentences = iter(post.segments.of_formula), iter(post.segments.of_sentence)
        for row, kind in enumerate(post.kinds, offsets[i]):
            if kind == VirtualKind.FORMULA:
                place = next(formulas)
                low, high = own[place.segment].between(place.start, place.end)
                spans.append((row, starts[place.segment] + low, starts[place.segment] + high))
            elif kind == VirtualKind.SENTENCE:
                segment = next(sentences)
                spans.append((row, starts[segment], starts[segment + 1]))
        ids = [piece for one in own for piece in one.ids]
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


def _add(sums: Rows, window: Window, states: Rows, before: int) -> None:
    """Add the states of a window to the rows that they belong to."""
    sums[window.document] += unit_rows(states.mean(axis=0, keepdims=True))[0]
    if window.rows:
        until = np.concatenate([np.zeros((1, states.shape[1]), np.float32), states[before:].cumsum(axis=0)])
        rows, low, high = np.array(window.rows).T
        sums[rows] += until[high] - until[low]  # each row is in a window once
