"""Rows as text vectors: each text encoded by itself, or a post in windows (late chunking); not in the paper.

::

    formula    x = unit(e(LaTeX))
    sentence   x = unit(e(sentence) + e(its passage))          with ``text_context="passages"``; "alone": e(sentence)
    document   x = unit(e(whole text) + unit(Σ e(passage)))    likewise: an encoder reads the beginning of a long text

    h⁰ = h⁰ + W_in x                  the state of the row's node before the first layer
    row = unit(P x) + s_k unit(z)     z: what the graph makes of it; s_k starts at 0, so at step 0 the row is P x

P starts as the principal directions of the training texts, or as the identity where nothing is cut: with
``projection=text_dimension`` an untrained model is the text encoder itself.

With ``text_context="windows"`` one pass of the encoder gives the vectors of all rows that it reads::

    sentences ──pieces──▶ | window: as many whole sentences as the encoder reads | window | …
                                             │ one pass each: a state for each piece
    sentence   x = unit(Σ states of its pieces)
    formula    x = unit(Σ states of its pieces)       where it first stands
    document   x = unit(Σ unit(mean of a window's states))

Each piece is read once, with the sentences around it. A sentence that is longer than a window is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr.graph import (
    GraphBatch,
    MathAMRGraph,
    Passages,
    Segments,
    VirtualKind,
    passages_of,
    row_texts,
    segments_of,
)

from .config import MathAMRConfig
from .encoder.batching import batches_by_size
from .encoder.encoder import Encoder
from .errors import ShapeError
from .text_encoder import TextEncoder, TokenNetwork, unit_rows

Features = npt.NDArray[np.float16]

_Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PostTexts:
    """The texts of a post.

    Attributes:
        kinds: the :class:`VirtualKind` of each row.
        own: the text of each row.
        passages: of the post, where the model has them.
    """

    kinds: list[int]
    own: list[str]
    passages: Passages | None

    @classmethod
    def of(cls, graph: MathAMRGraph, kinds: list[int], config: MathAMRConfig) -> PostTexts:
        """Collect the texts of a graph."""
        return cls(
            kinds, row_texts(graph, kinds), passages_of(graph) if config.text.text_context == "passages" else None
        )

    @property
    def around(self) -> tuple[str, ...]:
        """The texts of the passages."""
        return self.passages.texts if self.passages else ()


def text_features(posts: Sequence[PostTexts], config: MathAMRConfig, text: TextEncoder | None) -> list[Features]:
    """Encode the texts of posts, each distinct one once."""
    text = text or TextEncoder(config.text.text_model)
    own = text.encode([line for post in posts for line in post.own])
    if len(own) and own.shape[1] != config.text.text_dimension:
        raise ConfigError("text_dimension", config.text.text_dimension, f"{own.shape[1]} with {text!r}")
    around = text.encode([line for post in posts for line in post.around])
    found = []
    row = passage = 0
    for post in posts:
        features = own[row : row + len(post.own)].reshape(-1, config.text.text_dimension)
        if post.passages:
            vectors = around[passage : passage + len(post.around)].astype(np.float32)
            features = _with_passages(features, post.kinds, vectors, post.passages.of_sentence)
        found.append(features)
        row, passage = row + len(post.own), passage + len(post.around)
    return found


def _with_passages(own: Features, kinds: list[int], passages: _Floats, of_sentence: Sequence[int]) -> Features:
    """Add to sentences the vector of their passage, and to the document the direction of all of them."""
    sums = own.astype(np.float32)
    sentences = [row for row, kind in enumerate(kinds) if kind == VirtualKind.SENTENCE]
    documents = [row for row, kind in enumerate(kinds) if kind == VirtualKind.DOCUMENT]
    sums[sentences] += passages[list(of_sentence[: len(sentences)])]
    sums[documents] += unit_rows(passages.sum(axis=0, keepdims=True))
    return unit_rows(sums).astype(np.float16)


class TextVectors(nn.Module):
    """P, W_in and s of the equations above."""

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.width, self.residual = config.text.text_dimension, config.text.text_residual
        alone = self.residual and config.layers == 0
        if self.residual:
            self.project = nn.Linear(self.width, config.projection, bias=False)
        if self.residual and not alone:
            self.share = nn.Parameter(torch.zeros(len(VirtualKind)))
        if not alone:
            self.enter = nn.Linear(self.width, config.hidden, bias=False)

    def features(self, batch: GraphBatch) -> Tensor:
        """Return the features of a batch: float32 ``[r, d_text]``."""
        expected = f"[r, {self.width}]: encode graphs with MathAMR.encode or a transformer, which add text features"
        if batch.features is None or batch.features.size(1) != self.width:
            found = None if batch.features is None else tuple(batch.features.shape)
            raise ShapeError("features", found, expected)
        return batch.features.float()


class TextAlone(nn.Module):
    """The network of ``features='text'`` without layers: row = unit(P x)."""

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.text = TextVectors(config)

    def forward(self, batch: GraphBatch) -> Tensor:
        """Encode a batch of graphs: float32 ``[r, d_p]``, unit rows."""
        return F.normalize(self.text.project(self.text.features(batch)), dim=1)


class TextRowEncoder(Encoder):
    """The paper's encoder with text in the first states and, with ``text_residual``, in the rows."""

    def __init__(self, config: MathAMRConfig, num_labels: int, num_relations: int) -> None:
        text = TextVectors(config)
        super().__init__(config, num_labels, num_relations)
        self.text = text

    def first_states(self, batch: GraphBatch) -> Tensor:
        """Compute h⁰ + W_in x: float ``[N, d]``."""
        h = super().first_states(batch)
        return h.index_add(0, batch.virtual, self.text.enter(self.text.features(batch)).to(h.dtype))

    def project(self, batch: GraphBatch) -> Tensor:
        """Compute unit(P x) + s_k unit(z), or z without ``text_residual``: float ``[r, d_p]``."""
        z = super().project(batch)  # [r, d_p]
        if not self.text.residual:
            return z
        rows = F.normalize(self.text.project(self.text.features(batch)), dim=1)  # [r, d_p]
        return rows + self.text.share[batch.kinds].unsqueeze(1) * F.normalize(z, dim=1)


_POSTS = 2048  # posts whose windows are batched by length together
_TOKENS = 8192  # pieces of a batch


@dataclass(frozen=True, slots=True)
class PostSegments:
    """The segments of a post and what its rows are.

    Attributes:
        kinds: the :class:`VirtualKind` of each row: formulas in order, sentences in order, the document.
        segments: the texts, and where sentences and formulas stand.
    """

    kinds: list[int]
    segments: Segments

    @classmethod
    def of(cls, graph: MathAMRGraph, kinds: list[int]) -> PostSegments:
        """Collect the segments of a graph."""
        return cls(kinds, segments_of(graph))


class _Window(NamedTuple):
    """A window: pieces, and which of them belong to which rows.

    Attributes:
        ids: of the pieces.
        rows: ``(row, first, end)``: pieces ``first`` to ``end`` belong to a row, numbered over all posts.
        document: the row of the post, numbered likewise.
    """

    ids: list[int]
    rows: list[tuple[int, int, int]]
    document: int


def window_features(posts: Sequence[PostSegments], config: MathAMRConfig, text: TextEncoder | None) -> list[Features]:
    """Encode posts in windows; a post that the encoder's cache knows is not encoded again."""
    text = text or TextEncoder(config.text.text_model)
    width = config.text.text_dimension
    keys = [repr((post.kinds, post.segments)) for post in posts]
    distinct = dict(zip(keys, posts, strict=True))
    found = text.kept(
        "#windows", list(distinct), _POSTS, lambda missing: _encode([distinct[key] for key in missing], text)
    )
    return [found[key].reshape(-1, width) for key in keys]


def _encode(posts: Sequence[PostSegments], text: TextEncoder) -> list[Features]:
    """Encode posts, each float16 ``[rows, d_text]``."""
    network = text.tokens
    offsets = np.cumsum([0, *(len(post.kinds) + 1 for post in posts)])  # the last row of each is its document
    windows = list(_windows(posts, offsets.tolist(), network))
    sums = torch.zeros(int(offsets[-1]), network.width)
    batches = batches_by_size([len(window.ids) for window in windows], _TOKENS)
    for members in progress(batches, "encoding texts", "batches", verbose=text.verbose):
        batch = [windows[i] for i in members]
        _add(sums, batch, network.states([window.ids for window in batch]), network.before)
    rows = sums.numpy()
    found = []
    for i, post in enumerate(posts):
        own = unit_rows(rows[offsets[i] : offsets[i + 1]])
        own[~own.any(axis=1)] = own[-1]  # a sentence without a piece, or a formula that was cut away, is the document
        kinds = np.asarray(post.kinds, np.int64)
        own[:-1][kinds == VirtualKind.DOCUMENT] = own[-1]
        found.append(own[:-1].astype(np.float16))
    return found


def _windows(posts: Sequence[PostSegments], offsets: Sequence[int], network: TokenNetwork) -> Iterator[_Window]:
    """Cut posts into windows of whole segments."""
    pieces = iter(network.pieces([line for post in posts for line in post.segments.texts]))
    for i, post in enumerate(posts):
        own = [next(pieces) for _ in post.segments.texts]
        spans = _spans(post, own, offsets[i])
        document = offsets[i + 1] - 1
        lengths = [len(one.ids) for one in own]
        starts = np.cumsum([0, *lengths]).tolist()
        ids = [piece for one in own for piece in one.ids]
        for first, end in _cuts(lengths, starts, network.room):
            rows = [
                (row, max(low, first) - first, min(high, end) - first)
                for row, low, high in spans
                if low < end and high > first
            ]
            yield _Window(ids[first:end], rows, document)


def _spans(post: PostSegments, own: Sequence[Any], offset: int) -> list[tuple[int, int, int]]:
    """List the pieces of each row of a post: ``(row, first, end)``, counted over the whole post."""
    starts = np.cumsum([0, *(len(one.ids) for one in own)]).tolist()
    spans = []
    formulas, sentences = iter(post.segments.of_formula), iter(post.segments.of_sentence)
    for row, kind in enumerate(post.kinds, offset):
        if kind == VirtualKind.FORMULA:
            place = next(formulas)
            low, high = own[place.segment].between(place.start, place.end)
            spans.append((row, starts[place.segment] + low, starts[place.segment] + high))
        elif kind == VirtualKind.SENTENCE:
            segment = next(sentences)
            spans.append((row, starts[segment], starts[segment + 1]))
    return spans


def _cuts(lengths: Sequence[int], starts: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the end piece of each window; an empty post has one without a piece."""
    for run in runs_within(lengths, room):
        first, end = starts[run[0]], starts[run[-1] + 1]
        for low in range(first, max(end, first + 1), room):
            yield low, min(low + room, end)


def _add(sums: Tensor, batch: Sequence[_Window], states: Sequence[Tensor], before: int) -> None:
    """Add the states of windows to the rows that they belong to."""
    for window, own in zip(batch, states, strict=True):
        mean = own.mean(0)
        sums[window.document] += mean / mean.norm().clamp_min(torch.finfo(mean.dtype).tiny)
        if window.rows:
            until = torch.cat([torch.zeros(1, own.size(1)), own[before:].cumsum(0)])
            rows, low, high = (torch.tensor(part) for part in zip(*window.rows, strict=True))
            sums.index_add_(0, rows, until[high] - until[low])
