"""Rows as text vectors: encode the texts of posts one by one, and let vectors of text enter the network.

::

    formula    x = unit(e(LaTeX))
    sentence   x = unit(e(sentence) + e(its passage))          with ``text_context="passages"``; "alone": e(sentence)
    document   x = unit(e(whole text) + unit(Σ e(passage)))    likewise: an encoder reads the beginning of a long text

    h⁰ = h⁰ + W_in x                  the state of the row's node before the first layer
    row = unit(P x) + s_k unit(z)     z: what the graph makes of it; s_k starts at 0, so at step 0 the row is P x

P starts as the principal directions of the training texts, or as the identity where nothing is cut: with
``projection=text_dimension`` an untrained model is the text encoder itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.graph import GraphBatch, MathAMRGraph, Passages, VirtualKind, passages_of, row_texts
from pyterrier_mathamr.model.config.config import MathAMRConfig
from pyterrier_mathamr.model.encoder.encoder import Encoder
from pyterrier_mathamr.model.errors import ShapeError

from .text import TextEncoder, unit_rows

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
