"""Text encoders for tests: of words, of input embeddings, one that must not be asked, and one with states of pieces."""

import re
from collections import Counter

import numpy as np
import torch

from pyterrier_mathamr.model import TextEncoder

WIDTH = 12


class Words:
    """A text encoder: a text is the sum of a random vector for each of its words."""

    def __init__(self):
        self.seen = Counter()

    def encode(self, texts):
        self.seen.update(texts)
        rows = [
            [np.random.default_rng([*word.encode()]).normal(size=WIDTH) for word in f"; {text}".split()]
            for text in texts
        ]
        return np.array([np.sum(row, axis=0) for row in rows])


class Table(TextEncoder):
    """A text encoder whose input embeddings are drawn from the text."""

    def word_vectors(self, words):
        rows = [np.random.default_rng([*word.encode(), 1]).normal(size=WIDTH) for word in words]
        return np.array(rows, dtype=np.float32)


class Broken:
    """An encoder that must not be asked."""

    __qualname__ = "Words"

    def encode(self, texts):
        raise AssertionError(f"asked for {texts}")


class Contextual(Words):
    """A text encoder with states of pieces, words and signs; each state also knows the mean of its window."""

    SIZE = 97
    is_fast = True
    pad_token_id = 0
    device = "cpu"

    def __init__(self, max_seq_length=14):
        super().__init__()
        self.max_seq_length = max_seq_length
        self.tokenizer = self
        self.table = torch.from_numpy(np.random.default_rng(7).normal(size=(self.SIZE, WIDTH))).float()
        self.windows = []

    def __call__(self, texts, add_special_tokens=True, **_):
        """Tokenize: a piece is a word or one other sign."""
        one = isinstance(texts, str)
        ids, places = [], []
        for text in [texts] if one else texts:
            found = list(re.finditer(r"\w+|[^\w\s]", text))
            pieces = [3 + sum(match[0].encode()) % (self.SIZE - 3) for match in found]
            ids.append([1, *pieces, 2] if add_special_tokens else pieces)
            places.append([match.span() for match in found])
        return {"input_ids": ids[0] if one else ids, "offset_mapping": places[0] if one else places}

    def __getitem__(self, part):
        return self.forward

    def forward(self, inputs):
        ids, mask = inputs["input_ids"], inputs["attention_mask"].unsqueeze(2).float()
        self.windows += [tuple(row[: int(keep.sum())].tolist()) for row, keep in zip(ids, mask, strict=True)]
        own = self.table[ids] * mask
        return {"token_embeddings": own + 0.5 * own.sum(1, keepdim=True) / mask.sum(1, keepdim=True)}
