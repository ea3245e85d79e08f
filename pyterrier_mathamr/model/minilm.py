"""The bundled text encoder, ``minilm-math``, with :mod:`.bert` and the library ``tokenizers``."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .bert import Precision, int8_products_are_exact, load_bert
from .encoder.batching import batches_by_size, has_bfloat16

BUNDLED_ENCODER = "minilm-math"
"""The text encoder that comes with the package: all-MiniLM-L6-v2, trained further on mathematical texts."""

BUNDLED_FOLDER = Path(__file__).parent.parent / "data" / BUNDLED_ENCODER
_LONGEST = 256  # pieces of a text, two special ones included, for which the encoder was trained
_CACHED = 1024  # pieces of a batch whose states stay in a CPU's cache
_AT_ONCE = 16384  # pieces of a batch on a GPU


class Pieces(NamedTuple):
    """The pieces of a text, without special ones."""

    ids: list[int]
    starts: list[int]  # the first character of each
    ends: list[int]  # the character after the last of each

    def between(self, start: int, end: int) -> tuple[int, int]:
        """Return the first and the end piece that share a character with ``start`` to ``end``."""
        first, last = bisect_right(self.ends, start), bisect_left(self.starts, end)
        return first, max(first, last)


def best_precision(device: torch.device) -> Precision:
    """Choose how a device multiplies matrices fastest without a loss in rankings (docs/results/speed.md)."""
    known: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)() if device.type == "cpu" else {}
    if known.get("avx2") and int8_products_are_exact():
        return "int8"
    return "bfloat16" if has_bfloat16(device) else "float32"


class MiniLM:
    """A MiniLM of six layers (Wang et al., NeurIPS 2020; Reimers and Gurevych, EMNLP 2019), from packed weights."""

    width = 384
    before = 1  # special pieces at the beginning of a text, and as many at its end
    room = _LONGEST - 2

    def __init__(self, precision: Precision, device: torch.device, folder: Path = BUNDLED_FOLDER) -> None:
        from tokenizers import Tokenizer

        self.device = device
        self.at_once = _CACHED if device.type == "cpu" else _AT_ONCE
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._bert = load_bert(folder, precision, device)
        self.head, self.tail = self._tokenizer.encode("").ids

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """Cut texts into pieces."""
        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [Pieces(one.ids, [start for start, _ in one.offsets], [end for _, end in one.offsets]) for one in found]

    @torch.inference_mode()
    def states(self, texts: Sequence[Sequence[int]]) -> list[Tensor]:
        """Compute the states of texts, each float32 ``[pieces and two special ones, d]`` on the CPU."""
        ids = [[self.head, *own, self.tail] for own in texts]
        lengths, longest = torch.tensor(list(map(len, ids))), max(map(len, ids))
        padded = torch.tensor([[*own, *[0] * (longest - len(own))] for own in ids])
        found = self._bert(padded.to(self.device), lengths.to(self.device)).float().cpu()
        return [found[i, :length] for i, length in enumerate(lengths.tolist())]

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Average the states of each text, of which the beginning is read: float32 ``[n, d]``."""
        ids = [one.ids[: self.room] for one in self.pieces(texts)]
        means = np.zeros((len(ids), self.width), np.float32)
        for members in batches_by_size([len(own) + 2 for own in ids], self.at_once):
            for i, states in zip(members, self.states([ids[i] for i in members]), strict=True):
                means[i] = states.mean(0).numpy()
        return means

    def word_vectors(self, words: Sequence[str]) -> npt.NDArray[np.float32]:
        """Average the input embeddings of the pieces of each word: float32 ``[n, d]``, zeros without pieces."""
        found = np.zeros((len(words), self.width), np.float32)
        for i, one in enumerate(self.pieces(words)):
            if one.ids:
                vectors: Tensor = self._bert.words(torch.tensor(one.ids, device=self.device))
                found[i] = vectors.float().mean(0).detach().cpu().numpy()
        return found
