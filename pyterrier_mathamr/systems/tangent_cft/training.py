"""Training the vectors of symbol pairs by gensim's fastText."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr.formula import FormulaPair

from .options import FastTextOptions
from .word_vectors import WordVectors, ngram_buckets
from .words import REPRESENTATIONS, Characters, Representation, Word, sentences

_NO_SIZE = 1 << 32


class Corpus:
    """The sentences of one representation, four bytes a word, which fastText reads once for each epoch."""

    def __init__(self) -> None:
        self._numbers: dict[Word, int] = {}
        self._sentences: list[npt.NDArray[np.int32]] = []

    @classmethod
    def of_formulas(cls, pairs: Iterable[FormulaPair]) -> dict[Representation, Corpus]:
        """Write formulas in each representation."""
        corpora: dict[Representation, Corpus] = {name: cls() for name in REPRESENTATIONS}
        for pair in pairs:
            for name, sentence in sentences(pair).items():
                corpora[name].add(sentence)
        return corpora

    def add(self, sentence: list[Word]) -> None:
        """Take a sentence."""
        numbers = [self._numbers.setdefault(word, len(self._numbers)) for word in sentence]
        self._sentences.append(np.array(numbers, dtype=np.int32))

    def counts(self) -> dict[Word, int]:
        """Count how often each word occurs, in the order of first occurrences."""
        times = np.zeros(len(self._numbers), dtype=np.int64)
        for sentence in self._sentences:
            np.add.at(times, sentence, 1)
        return dict(zip(self._numbers, times.tolist(), strict=True))

    def spelled(self, characters: Characters) -> Spelled:
        """Write the words in characters."""
        return Spelled([characters.spell(word) for word in self._numbers], self._sentences)

    def digest(self, options: FastTextOptions) -> str:
        """Identify the vectors that are trained of these sentences."""
        state = hashlib.blake2b(repr((options, list(self._numbers))).encode("utf-8", "surrogatepass"), digest_size=16)
        for sentence in self._sentences:
            state.update(len(sentence).to_bytes(8, "little"))
            state.update(sentence.tobytes())
        return state.hexdigest()


class Spelled:
    """Sentences of spelled words, which can be iterated over many times."""

    def __init__(self, words: list[str], sentences: list[npt.NDArray[np.int32]]) -> None:
        self._words, self._sentences = words, sentences

    def __iter__(self) -> Iterator[list[str]]:
        words = self._words
        for sentence in self._sentences:
            yield [words[number] for number in sentence.tolist()]


def train(corpus: Corpus, options: FastTextOptions) -> WordVectors:
    """Train the vectors of one representation, by one thread: the same sentences and seed give the same bytes."""
    fasttext = require("gensim.models.fasttext", "cft")
    counts = corpus.counts()
    characters = Characters.of_words(counts)
    common = [characters.spell(word) for word, count in counts.items() if count >= options.min_count]
    ngrams = options.min_ngram, options.max_ngram
    hashes = {bucket for word in common for bucket in ngram_buckets(word, *ngrams, _NO_SIZE)}
    size = 1 << max(0, len(hashes) - 1).bit_length()
    if not common:
        return WordVectors.empty(characters.tokens, options.dimensions, size, ngrams)
    model: Any = fasttext.FastText(
        corpus.spelled(characters),
        sg=1,
        hs=0,
        negative=options.negatives,
        vector_size=options.dimensions,
        window=options.context,
        epochs=options.epochs,
        min_n=options.min_ngram,
        max_n=options.max_ngram,
        min_count=options.min_count,
        bucket=size,
        seed=options.seed,
        workers=1,
    )
    vectors = model.wv
    buckets = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *vectors.buckets_word]))
    return WordVectors(
        characters.tokens,
        list(vectors.index_to_key),
        np.asarray(vectors.vectors, dtype=np.float32),
        buckets.astype(np.int32),
        vectors.vectors_ngrams[buckets.astype(np.int64)].astype(np.float16),
        size,
        ngrams,
    )
