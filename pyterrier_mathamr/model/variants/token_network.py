"""The states that a text encoder has for the pieces of a text, before it takes their mean."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyterrier_mathamr._common.errors import ConfigError


class Pieces(NamedTuple):
    """The pieces of a text.

    Attributes:
        ids: of the pieces, without special tokens.
        starts: the first character of each.
        ends: the character after the last of each.
    """

    ids: list[int]
    starts: list[int]
    ends: list[int]

    def between(self, start: int, end: int) -> tuple[int, int]:
        """Return the first and the end piece that share a character with ``start`` to ``end``."""
        first, last = bisect_right(self.ends, start), bisect_left(self.starts, end)
        return first, max(first, last)


class TokenNetwork:
    """The first part of a sentence-transformers model, as a function from pieces to states."""

    def __init__(self, model: Any) -> None:
        tokenizer: Any = getattr(model, "tokenizer", None)
        if not getattr(tokenizer, "is_fast", False):
            needed = "text_context='alone' for an encoder without a fast tokenizer, or a sentence-transformers model"
            raise ConfigError("text_model", type(model).__qualname__, needed)
        self._model, self._tokenizer = model, tokenizer
        probe = tokenizer("x", add_special_tokens=False)["input_ids"]
        whole = tokenizer("x")["input_ids"]
        self.before = next(i for i in range(len(whole)) if whole[i : i + len(probe)] == probe)
        self._head, self._tail = whole[: self.before], whole[self.before + len(probe) :]
        self.room = int(model.max_seq_length) - len(self._head) - len(self._tail)
        self.width = int(self.states([[]])[0].size(1))

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """Cut texts into pieces, without special tokens."""
        if not texts:
            return []
        options = {"add_special_tokens": False, "return_offsets_mapping": True, "truncation": False, "verbose": False}
        found = self._tokenizer(list(texts), **options)
        return [
            Pieces(ids, [start for start, _ in places], [end for _, end in places])
            for ids, places in zip(found["input_ids"], found["offset_mapping"], strict=True)
        ]

    @torch.inference_mode()
    def states(self, texts: Sequence[Sequence[int]]) -> list[Tensor]:
        """Compute the states of texts, which are padded to the longest."""
        ids = [[*self._head, *own, *self._tail] for own in texts]
        length = max(map(len, ids))
        pad = self._tokenizer.pad_token_id or 0
        inputs = {
            "input_ids": torch.tensor([[*own, *[pad] * (length - len(own))] for own in ids]),
            "attention_mask": torch.tensor([[1] * len(own) + [0] * (length - len(own)) for own in ids]),
        }
        part = self._model[0]
        found = part({name: value.to(self._model.device) for name, value in inputs.items()})["token_embeddings"]
        found = found.float().cpu()
        return [found[i, : len(own)] for i, own in enumerate(ids)]
