"""The arrays of graphs, with vectors of rows from pretrained encoders; not in the paper.

Text: each row encoded by itself, or a post in windows (late chunking)::

    formula    x = unit(e(LaTeX))
    sentence   x = unit(e(sentence) + e(its passage))          with ``text_context="passages"``; "alone": e(sentence)
    document   x = unit(e(whole text) + unit(Σ e(passage)))    likewise: an encoder reads the beginning of a long text

With ``text_context="windows"`` one pass of the encoder gives the vectors of all rows in a window::

    sentences ──pieces──▶ | window: as many whole sentences as the encoder reads | window | …
                                             │ one pass each: a state for each piece
    sentence   x = unit(Σ states of its pieces)
    formula    x = unit(Σ states of its pieces)       at its first occurrence
    document   x = unit(Σ unit(mean of a window's states))

Each piece is read once, with the sentences around it. A sentence that is longer than a window is cut.

Formulas, with ``formula_vectors``: the vectors of In+Out::

    x = unit([mean of the layout graph's node vectors, mean of the operator graph's])     both means of unit length
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress, work_done
from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.graph import (
    GraphTensors,
    MathAMRGraph,
    Passages,
    Segments,
    VirtualKind,
    Vocabulary,
    graph_tensors,
    passages_of,
    row_texts,
    segments_of,
)

from .config import MathAMRConfig
from .encoder.batching import batches_by_size
from .packed_bert import Rows
from .packed_encoder import PackedEncoder
from .text_encoder import TextEncoder, TokenNetwork, unit_rows

if TYPE_CHECKING:
    from .in_out import InOut

Features = npt.NDArray[np.float16]
"""float16 ``[rows, width]`` of one post."""

FORMULA_WIDTH = 200
"""Of x: both graphs of a bundled In+Out model."""

_AT_ONCE = 2048  # posts whose rows are encoded together, each distinct text or formula once


def tensors_of(
    graphs: Iterable[MathAMRGraph],
    vocabulary: Vocabulary,
    config: MathAMRConfig,
    text: TextEncoder | None = None,
    *,
    total: int | None = None,
    verbose: bool = False,
) -> Iterator[GraphTensors]:
    """Compute the arrays of graphs, with the features of a model that reads text or the vectors of formulas."""
    arrays = partial(
        graph_tensors,
        vocabulary=vocabulary,
        formulas=config.formulas,
        virtual_nodes=config.virtual_nodes,
        auxiliary=config.auxiliary,
    )
    shown = progress(graphs, "graph tensors", "graphs", verbose=verbose, total=total)
    made = ((graph, arrays(graph)) for graph in shown)
    reader = _reader(config, text)
    if reader is None:
        yield from (tensors for _, tensors in made)
        return
    collect, encode = reader
    posts = ((tensors, collect(graph, tensors.kinds.tolist())) for graph, tensors in made)  # lets go of the graphs
    while block := list(islice(posts, _AT_ONCE)):
        for (tensors, _), features in zip(block, encode([post for _, post in block]), strict=True):
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


Collect = Callable[[MathAMRGraph, list[int]], Any]
Encode = Callable[[Sequence[Any]], Sequence[Features]]


def _reader(config: MathAMRConfig, text: TextEncoder | None) -> tuple[Collect, Encode] | None:
    """Return a function that reads the features of a post's rows from its graph, and one that encodes many posts'."""
    options = config.text
    if options.features == "text":
        encoder = text or TextEncoder(options.text_model)
        if options.text_context == "windows":
            return PostSegments.of, lambda posts: window_features(posts, options.text_dimension, encoder)
        passages = options.text_context == "passages"
        return (
            lambda graph, kinds: PostTexts(kinds, row_texts(graph, kinds), passages_of(graph) if passages else None),
            lambda posts: text_features(posts, options.text_dimension, encoder),
        )
    if options.formula_vectors != "none":
        return (
            lambda graph, kinds: (len(kinds), graph.trees()),
            lambda posts: formula_features(posts, options.formula_vectors),
        )
    return None


class PostTexts(NamedTuple):
    """The kind and the text of each row of a post, and its passages where the model has them."""

    kinds: list[int]
    own: list[str]
    passages: Passages | None


def text_features(posts: Sequence[PostTexts], width: int, text: TextEncoder) -> list[Features]:
    """Encode the texts of posts, each distinct one once."""
    encoded = text.encode([line for post in posts for line in post.own])
    if len(encoded) and encoded.shape[1] != width:
        raise ConfigError("text_dimension", width, f"{encoded.shape[1]} with {text!r}")
    texts = [post.passages.texts if post.passages else () for post in posts]
    around = text.encode([line for of_post in texts for line in of_post]).astype(np.float32)
    rows = np.split(encoded.reshape(-1, width), np.cumsum([len(post.own) for post in posts])[:-1])
    passages = np.split(around.reshape(-1, width), np.cumsum([len(of_post) for of_post in texts])[:-1])
    found = []
    for post, own, vectors in zip(posts, rows, passages, strict=True):
        if post.passages:  # sentences get the vector of their passage, the document the direction of all of them
            sums, kinds = own.astype(np.float32), np.asarray(post.kinds)
            sentences = np.flatnonzero(kinds == VirtualKind.SENTENCE)
            sums[sentences] += vectors[list(post.passages.of_sentence[: len(sentences)])]
            sums[kinds == VirtualKind.DOCUMENT] += unit_rows(vectors.sum(axis=0, keepdims=True))
            own = unit_rows(sums).astype(np.float16)
        found.append(own)
    return found


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
    return [found[key].reshape(-1, width) for key in keys]


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


def formula_features(posts: Sequence[tuple[int, Sequence[FormulaPair]]], name: str) -> list[Features]:
    """Encode the formulas of posts, the first of their rows, each distinct one once; other rows are zeros."""
    model = _in_out(name)
    numbers: dict[FormulaPair, int] = {}
    for _, formulas in posts:
        for pair in formulas:
            numbers.setdefault(pair, len(numbers))
    halves = []
    for kind in model.kinds:
        means = np.zeros((len(numbers), model.options.width), np.float32)
        for row, nodes in enumerate(model.encode([getattr(pair, kind) for pair in numbers], kind, distinct=False)):
            if len(nodes):
                means[row] = nodes.mean(axis=0)
        halves.append(unit_rows(means))
    vectors = unit_rows(np.concatenate(halves, axis=1))
    found = []
    for rows, formulas in posts:
        features = np.zeros((rows, FORMULA_WIDTH), np.float16)
        features[: len(formulas)] = vectors[[numbers[pair] for pair in formulas]]
        found.append(features)
    return found


@lru_cache(maxsize=1)
def _in_out(name: str) -> InOut:
    from .in_out import InOut  # loads torch, which reading text does not need

    return InOut.from_pretrained(name)
