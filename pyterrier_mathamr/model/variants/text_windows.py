"""Windows of a post: one pass of a text encoder for the vectors of all its rows (late chunking; not in the paper).

::

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
from torch import Tensor

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr.graph import MathAMRGraph, Segments, VirtualKind, segments_of
from pyterrier_mathamr.model.config.config import MathAMRConfig
from pyterrier_mathamr.model.inputs.batches_by_size import batches_by_size

from .text import TextEncoder, unit_rows
from .token_network import TokenNetwork

Features = npt.NDArray[np.float16]
_Floats = npt.NDArray[np.float32]

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
