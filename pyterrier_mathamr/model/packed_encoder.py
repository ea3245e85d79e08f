"""The bundled text encoder, ``minilm-math``: the library ``tokenizers``, and BERT by numpy or by torch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from .encoder.batching import batches_by_size
from .packed_bert import PackedBert, Rows

if TYPE_CHECKING:
    from .bert import TorchBert

BUNDLED_ENCODER = "minilm-math"
"""The text encoder that comes with the package: all-MiniLM-L6-v2, trained further on mathematical texts."""

BUNDLED_FOLDER = Path(__file__).parent.parent / "data" / BUNDLED_ENCODER
_LONGEST = 256  # pieces of a text, including two special ones, for which the encoder was trained


class Pieces(NamedTuple):
    """The pieces of a text, without special ones."""

    ids: list[int]
    starts: list[int]  # the first character of each
    ends: list[int]  # the character after the last of each

    def between(self, start: int, end: int) -> tuple[int, int]:
        """Return the first and the end piece that share a character with ``start`` to ``end``."""
        first, last = bisect_right(self.ends, start), bisect_left(self.starts, end)
        return first, max(first, last)


class PackedEncoder:
    """A MiniLM of six layers (Wang et al., NeurIPS 2020; Reimers and Gurevych, EMNLP 2019), from packed weights."""

    width = 384
    before = 1  # special pieces at the beginning of a text, and as many at its end
    room = _LONGEST - 2

    def __init__(self, network: PackedBert | TorchBert, folder: Path = BUNDLED_FOLDER) -> None:
        from tokenizers import Tokenizer

        self.network, self.at_once = network, network.at_once
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.head, self.tail = self._tokenizer.encode("").ids

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [Pieces(one.ids, [start for start, _ in one.offsets], [end for _, end in one.offsets]) for one in found]

    def states(self, texts: Sequence[Sequence[int]]) -> list[Rows]:
        """Compute the states of texts, each float32 ``[pieces and two special ones, d]``."""
        return self.network.states([[self.head, *own, self.tail] for own in texts])

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Average the states of each text, cut to the longest length: float32 ``[n, d]``."""
        ids = [one.ids[: self.room] for one in self.pieces(texts)]
        means = np.zeros((len(ids), self.width), np.float32)
        for members in batches_by_size([len(own) + 2 for own in ids], self.at_once):
            for i, states in zip(members, self.states([ids[i] for i in members]), strict=True):
                means[i] = states.mean(axis=0)
        return means

    def word_vectors(self, words: Sequence[str]) -> npt.NDArray[np.float32]:
        """Average the input embeddings of the pieces of each word: float32 ``[n, d]``, zeros without pieces."""
        found = np.zeros((len(words), self.width), np.float32)
        for i, one in enumerate(self.pieces(words)):
            if one.ids:
                found[i] = self.network.words(one.ids).mean(axis=0)
        return found
