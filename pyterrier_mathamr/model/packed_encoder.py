"""Text encoders with packed weights: the library ``tokenizers``, and BERT or MPNet by numpy or by torch."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from .batching import batches_by_size
from .packed_bert import BertSize, PackedBert, Rows

if TYPE_CHECKING:
    from .bert import TorchBert

BUNDLED_ENCODER = "minilm-math"
"""The text encoder that comes with the package: all-MiniLM-L6-v2, trained further on mathematical texts."""

BUNDLED_FOLDER = Path(__file__).parent.parent / "data" / BUNDLED_ENCODER
_LENGTHS = "sentence_bert_config.json"  # the file in which sentence-transformers limits a text
_LONGEST = 256  # pieces of a text without that file, special ones included; minilm-math was trained for so many


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
    """An encoder whose vector of a text is the mean of its pieces' states (Reimers and Gurevych, EMNLP 2019)."""

    before = 1  # special pieces at the beginning of a text, and as many at its end

    def __init__(self, network: PackedBert | TorchBert, folder: Path = BUNDLED_FOLDER) -> None:
        from tokenizers import Tokenizer

        self.network, self.at_once = network, network.at_once
        size, limit = BertSize.read(folder / "config.json"), folder / _LENGTHS
        longest = int(json.loads(limit.read_bytes())["max_seq_length"]) if limit.is_file() else _LONGEST
        self.width, self.room = size.hidden_size, min(longest, size.max_position_embeddings - size.first_position) - 2
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        if self._tokenizer.get_vocab_size() > size.vocab_size:
            raise ValueError("tokenizer.json has more pieces than the table of config.json")
        if self.room < 1:
            raise ValueError(f"a text of {longest} pieces is too short")
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
