"""The vectors of symbol pairs as fastText defines them, read by numpy alone.

A word of the vocabulary has a vector of its own. Any other is the mean of its n-grams, each of which has the row of its
bucket; of a million buckets only those are kept into which an n-gram of the vocabulary falls::

    <V!xa>     <V!  <V!x  <V!xa  <V!xa>  V!x  V!xa  …        one character each: V! is one
       │
       └─ FNV-1a of its UTF-8 bytes, modulo the number of buckets ──▶ row
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.sparse.texts import Arrays, read_texts, text_arrays
from pyterrier_mathamr.store import Array, DamagedError

from .words import UNKNOWN, Characters, Word

Vector = npt.NDArray[np.float32]

_OFFSET, _PRIME, _MASK = 2166136261, 16777619, 0xFFFFFFFF
_REMEMBERED = 1 << 16
_NO_BUCKET = -1


@dataclass(eq=False)
class WordVectors:
    """The words of one representation.

    Attributes:
        tokens: the tokens that have a character, ascending.
        words: ``v`` words, spelled.
        vectors: float32 ``[v, d]``.
        buckets: int32 ``[r]``, ascending.
        rows: float16 ``[r, d]``, of the buckets.
        size: the number of all buckets.
        ngrams: characters of the shortest and the longest n-grams.
    """

    tokens: Sequence[str]
    words: Sequence[str]
    vectors: Vector
    buckets: npt.NDArray[np.int32]
    rows: npt.NDArray[np.float16]
    size: int
    ngrams: tuple[int, int]
    _known: dict[Word, Vector] = field(default_factory=dict, repr=False)

    @classmethod
    def empty(
        cls, tokens: Sequence[str], dimensions: int, size: int = 1, ngrams: tuple[int, int] = (3, 6)
    ) -> WordVectors:
        """Return the vectors of no words; each word is a zero vector."""
        rows = np.zeros((0, dimensions))
        nothing = np.zeros(0, dtype=np.int32)
        return cls(tokens, [], rows.astype(np.float32), nothing, rows.astype(np.float16), size, ngrams)

    @classmethod
    def of_part(cls, part: Arrays, name: str) -> WordVectors:
        """Open what a part, or a file, keeps of one representation."""
        hashing = part[f"{name}_hashing"].tolist()
        if len(hashing) != 3 or not (hashing[0] > 0 and 0 < hashing[1] <= hashing[2]):
            raise DamagedError(part.path, f"{name}_hashing is wrong")
        return cls(
            read_texts(part, f"{name}_tokens"),
            read_texts(part, f"{name}_words"),
            part[f"{name}_word_vectors"],
            part[f"{name}_buckets"],
            part[f"{name}_bucket_vectors"],
            hashing[0],
            (hashing[1], hashing[2]),
        )

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by name."""
        return {
            **text_arrays("tokens", self.tokens),
            **text_arrays("words", self.words),
            "word_vectors": self.vectors,
            "buckets": self.buckets,
            "bucket_vectors": self.rows,
            "hashing": np.array([self.size, *self.ngrams], dtype=np.int64),
        }

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def _characters(self) -> Characters:
        return Characters(self.tokens)

    def mean(self, sentence: Sequence[Word]) -> Vector:
        """Compute the mean of the words of a sentence: float32 ``[d]``, zeros for none."""
        if not sentence:
            return np.zeros(self.vectors.shape[1], dtype=np.float32)
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        for word in sentence:
            if word not in self._known:
                self._known[word] = self.vector(self._characters.spell(word))
        mean: Vector = np.mean([self._known[word] for word in sentence], axis=0, dtype=np.float32)
        return mean

    def vector(self, spelled: str) -> Vector:
        """Return the vector of a spelled word: float32 ``[d]``."""
        number = self._numbers.get(spelled)
        if number is not None:
            own: Vector = self.vectors[number]
            return own
        buckets = np.array(ngram_buckets(spelled, *self.ngrams, self.size), dtype=np.int64)
        places = np.searchsorted(self.buckets, buckets)
        places = places[np.append(self.buckets, _NO_BUCKET - 1)[places] == buckets]
        mean: Vector = self.rows[places].sum(axis=0, dtype=np.float32) / np.float32(max(1, len(buckets)))
        return mean


def ngram_buckets(spelled: str, shortest: int, longest: int, size: int) -> list[int]:
    """Compute the bucket of each n-gram of a word; -1 for one with a token that has no character."""
    characters = [character.encode("utf-8") for character in f"<{spelled}>"]
    unknown, found = UNKNOWN.encode("utf-8"), list[int]()
    for start in range(len(characters)):
        state, known = _OFFSET, True
        for length, character in enumerate(characters[start : start + longest], 1):
            known = known and character != unknown
            for byte in character:  # as a signed one, which fastText has made part of its format
                state = ((state ^ (byte if byte < 0x80 else byte | 0xFFFFFF00)) * _PRIME) & _MASK
            if length >= shortest:
                found.append(state % size if known else _NO_BUCKET)
    return found
