"""Text features: the vector of the text behind each row, and, with passages, of what stands around it.

::

    formula    unit(e(LaTeX))
    sentence   unit(e(sentence) + e(its passage))            with ``text_passages``, else unit(e(sentence))
    document   unit(e(whole text) + unit(Σ e(passage)))      likewise: an encoder reads the beginning of a long text
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.graph import MathAMRGraph, Passages, VirtualKind, passages_of, row_texts
from pyterrier_mathamr.model.config import MathAMRConfig

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
        """Collect the texts of a graph.

        Args:
            graph: a graph that was built from text.
            kinds: the :class:`VirtualKind` of each row.
            config: ``text_passages``.

        Raises:
            MissingTextsError: the graph has no texts.
        """
        return cls(kinds, row_texts(graph, kinds), passages_of(graph) if config.text_passages else None)

    @property
    def around(self) -> tuple[str, ...]:
        """The texts of the passages."""
        return self.passages.texts if self.passages else ()


def text_features(posts: Sequence[PostTexts], config: MathAMRConfig, text: TextEncoder | None) -> list[Features]:
    """Encode the texts of posts, each distinct one once.

    Args:
        posts: the texts.
        config: ``text_model`` and ``text_dimension``.
        text: the encoder; that of the configuration where not given.

    Returns:
        float16 ``[rows, d_text]`` for each post, rows of unit length.

    Raises:
        ConfigError: the encoder's vectors are of another width than ``text_dimension``.
    """
    text = text or TextEncoder(config.text_model)
    own = text.encode([line for post in posts for line in post.own])
    if own.shape[1] != config.text_dimension:
        raise ConfigError("text_dimension", config.text_dimension, f"{own.shape[1]} with {text!r}")
    around = text.encode([line for post in posts for line in post.around])
    found = []
    row = passage = 0
    for post in posts:
        features = own[row : row + len(post.own)]
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
