"""Text encoders for tests: one that needs no weights, and one that must not be asked."""

from collections import Counter

import numpy as np

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


class Broken:
    """An encoder that must not be asked."""

    __qualname__ = "Words"

    def encode(self, texts):
        raise AssertionError(f"asked for {texts}")
