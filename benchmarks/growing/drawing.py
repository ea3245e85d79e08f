r"""New words and symbols for a copy of a collection, so that its vocabulary grows as a real one does.

Words are drawn independently. With the probability of a new word, after Good and Turing the share of words that occur
once, ``n₁ / n``, a new word is drawn: its rank ``r`` has ``P(r > x) = (x / v)^-(1/β - 1)``, whose
vocabulary grows with ``n^β``; ``β = n₁ / v`` is the exponent that the small collection itself shows (Heaps' law). Any
other word is a known one, with its frequency there. Nothing is remembered from copy to copy, so any copy can be
drawn independently, in constant memory.

Half of the letters and numbers of a post keep their place. The others become letters with the collection's
frequencies, all different, and numbers from a distribution without a mean, ``P(n > x) = x^-0.8``: short formulas repeat
each other, and most of the long ones are new.
"""

from __future__ import annotations

from bisect import bisect
from itertools import accumulate
from random import Random

import numpy as np

from .templates import LETTERS, Source, italic

_KEPT = 0.5
_LARGEST = 10**6
_SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstvz" for vowel in "aeiou"]


class Drawing:
    """Draws for copies of a collection.

    Args:
        source: the collection.
        seed: equal seeds give equal draws.
    """

    def __init__(self, source: Source, seed: int) -> None:
        self._source, self._seed = source, seed
        self._names = [word for word, _ in source.words.most_common()]
        counts = np.array([source.words[word] for word in self._names], dtype=np.float64)
        once = float(np.count_nonzero(counts == 1))
        self.new, self.beta = once / counts.sum(), min(0.95, once / len(counts))
        self._bounds = np.cumsum(counts / counts.sum())
        self._both = self._names + [word.capitalize() for word in self._names]
        letters = source.letters.most_common()
        self._letters, self._letter_bounds = [name for name, _ in letters], list(accumulate(n for _, n in letters))

    def words(self, copy: int, capitals: np.ndarray) -> list[str]:
        """Draw words.

        Args:
            copy: the number of the copy.
            capitals: bool ``[w]``; whether each begins with a capital.
        """
        rng = np.random.default_rng([self._seed, copy])
        size = len(self._names)
        ranks = np.minimum(np.searchsorted(self._bounds, rng.random(len(capitals))), size - 1)
        found = list(map(self._both.__getitem__, (ranks + size * capitals).tolist()))
        new = np.flatnonzero(rng.random(len(capitals)) < self.new)
        beyond = size * (1 - rng.random(len(new))) ** (-self.beta / (1 - self.beta))
        for place, rank in zip(new.tolist(), np.minimum(beyond, 1e12).astype(np.int64).tolist(), strict=True):
            word = coined(rank)
            found[place] = word.capitalize() if capitals[place] else word
        return found

    def random(self, copy: int) -> Random:
        """Return the random generator of the symbols of a copy."""
        return Random(f"{self._seed}, {copy}")

    def symbols(self, rng: Random, post: int) -> dict[str, str]:
        """Draw the new symbol of each symbol of a post."""
        old = self._source.symbols[post]
        drawn = {name: name for name in old}
        letters = [name for name in old if name in LETTERS]
        moved = [name for name in letters if rng.random() >= _KEPT]
        taken = set(letters).difference(moved)
        for name in moved:
            drawn[name] = self._letter(rng, taken)
            taken.add(drawn[name])
        for name in old:
            if name not in LETTERS and rng.random() >= _KEPT:
                drawn[name] = str(min(_LARGEST, int((1 - rng.random()) ** (-1 / 0.8))))
        return drawn | {italic(name): italic(drawn[name]) for name in letters}

    def _letter(self, rng: Random, taken: set[str]) -> str:
        """Draw a letter that is not taken."""
        for _ in range(20):
            drawn = self._letters[bisect(self._letter_bounds, rng.random() * self._letter_bounds[-1])]
            if drawn not in taken:
                return drawn
        return min(LETTERS.difference(taken))  # as many as there are letters are never all taken: those moved are free


def coined(rank: int) -> str:
    """Return the word of a rank: another for each."""
    word = ""
    while rank or not word:
        rank, digit = divmod(rank, len(_SYLLABLES))
        word += _SYLLABLES[digit]
    return word
