r"""From formulas to the vectors of their symbol pairs, as fastText defines them: read by numpy, trained by gensim.

A formula's symbol pairs are words, and their tokens are characters. ``x^2+1``, the symbol pairs of its layout tree
within two edges, and the characters of the first::

    (x, 2, a)  (2, end, n)  (x, +, n)  (x, 1, nn)  (+, 1, n)  (1, end, n)

    V!  x  N!  2  a        in the tree of types: V!  N!  a

A formula has four sentences, one for each representation: layout tree (``slt``) and operator tree (``opt``), and both
trees of types, where ``V!x`` is ``V!``.

A word of the vocabulary has its own vector. Any other is the mean of its n-grams, each with the row of its bucket; of
a million buckets only the ones with an n-gram of the vocabulary are kept::

    <V!xa>     <V!  <V!x  <V!xa  <V!xa>  V!x  V!xa  …        one character each: V! is one
       │
       └─ FNV-1a of its UTF-8 bytes, modulo the number of buckets ──▶ row
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.extending import (
    COUNT,
    Arrays,
    Count,
    Natural,
    Options,
    Rule,
    at_least,
    read_texts,
    require,
    text_arrays,
)
from pyterrier_mathamr.formula import FormulaPair, FormulaTree
from pyterrier_mathamr.store import Array, DamagedError

TreeForm = Literal["slt", "opt", "slt_type", "opt_type"]
REPRESENTATIONS: tuple[TreeForm, ...] = get_args(TreeForm)

Word = tuple[str, ...]
"""The tokens of a symbol pair; tokens of the path between its nodes begin with :data:`EDGE`."""

EDGE = "\0"
WINDOW = 2
_FIRST = 0xF0000  # private use: no token equals a bracket, with which fastText marks the ends of a word
_CHARACTERS = 0x110000 - _FIRST - 1
UNKNOWN = chr(0x10FFFF)
"""The character of a token without one; no n-gram with it was trained."""


def sentences(pair: FormulaPair) -> dict[TreeForm, list[Word]]:
    """Write a formula in each representation, without those whose tree it lacks."""
    written: dict[TreeForm, list[Word]] = {}
    if pair.slt is not None:
        written["slt"], written["slt_type"] = _words(pair.slt, digits=True)
    if pair.opt is not None:
        written["opt"], written["opt_type"] = _words(pair.opt, digits=False)
    return written


def _words(tree: FormulaTree, *, digits: bool) -> tuple[list[Word], list[Word]]:
    known: dict[str, tuple[Word, Word]] = {}

    def tokens(label: str) -> tuple[Word, Word]:
        if label not in known:
            known[label] = (_tokens(label, digits=digits), (label[:2] if label[1:2] == "!" else label,))
        return known[label]

    plain, types = [], []
    for above, below, path, _ in tree.tuples(WINDOW, eob=True):
        edges = tuple(EDGE + label for label in path)
        one, other = tokens(above), tokens(below)
        plain.append((*one[0], *other[0], *edges))
        types.append((*one[1], *other[1], *edges))
    return plain, types


def _tokens(label: str, *, digits: bool) -> Word:
    """Split a label into its type and its value, and in layout trees a number into its digits."""
    if label[1:2] != "!" or label == "O!":
        return (label,)
    kind, value = label[:2], label[2:].partition("!")[0]
    return (kind, *value) if digits and kind == "N!" else (kind, value)


class Characters:
    """The characters of tokens, numbered in the order of the tokens."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tokens

    @classmethod
    def of_words(cls, counts: Mapping[Word, int]) -> Characters:
        """Number the tokens of some words; the rarest have no character where there are too many."""
        times = Counter[str]()
        for word, count in counts.items():
            for token in word:
                times[token] += count
        kept = sorted(times, key=lambda token: (-times[token], token))[:_CHARACTERS]
        return cls(sorted(kept))

    @cached_property
    def _known(self) -> dict[str, str]:
        return {token: chr(_FIRST + number) for number, token in enumerate(self.tokens)}

    def spell(self, word: Word) -> str:
        """Write a word, one character for each token."""
        known = self._known
        return "".join([known.get(token, UNKNOWN) for token in word])


_DIMENSIONS = Rule("an integer from 1 to 1000", lambda value: COUNT.holds(value) and value <= 1000)
"""With more, products of int8 vectors are not exact in float32."""


@dataclass(frozen=True, slots=True)
class FastTextOptions(Options):
    """Options of fastText: skip-gram with negative sampling, as in Tangent-CFT.

    The dissertation gives n-grams, context and the kind of training; dimensions, negatives and epochs are from the
    published program, and the rest from its library.

    Attributes:
        dimensions: of a vector.
        epochs: passes over all formulas.
        context: the number of words on each side that a word predicts.
        negatives: negative samples for each word.
        min_ngram: characters of the shortest n-grams, including the marks of both ends of a word.
        max_ngram: of the longest.
        min_count: rarer words have no vector.
        seed: of all random numbers.

    Raises:
        ConfigError: a value is out of its range.
    """

    dimensions: Annotated[int, _DIMENSIONS] = 300
    epochs: Count = 30
    context: Count = 5
    negatives: Count = 20
    min_ngram: Count = 3
    max_ngram: Count = 6
    min_count: Count = 5
    seed: Natural = 42

    def __post_init__(self) -> None:
        super(FastTextOptions, self).__post_init__()
        at_least(self.min_ngram).check("max_ngram", self.max_ngram)

    @classmethod
    def small(cls) -> FastTextOptions:
        """Return options that train a tenth as long: 100 dimensions, 10 epochs."""
        return cls(dimensions=100, epochs=10)


WordVector = npt.NDArray[np.float32]

_OFFSET, _PRIME, _MASK = 2166136261, 16777619, 0xFFFFFFFF
_REMEMBERED = 1 << 16
_NO_BUCKET = -1


@dataclass(eq=False)
class WordVectors:
    """The ``v`` words of one representation."""

    tokens: Sequence[str]  # the tokens that have a character, ascending
    words: Sequence[str]  # spelled
    vectors: WordVector  # [v, d]
    buckets: npt.NDArray[np.int32]  # [r], ascending
    rows: npt.NDArray[np.float16]  # [r, d], of the buckets
    size: int  # all buckets
    ngrams: tuple[int, int]  # characters of the shortest and of the longest n-grams
    _known: dict[Word, WordVector] = field(default_factory=dict, repr=False)

    @classmethod
    def empty(
        cls, tokens: Sequence[str], dimensions: int, size: int = 1, ngrams: tuple[int, int] = (3, 6)
    ) -> WordVectors:
        """Return the vectors of no words: any word is a zero vector."""
        rows = np.zeros((0, dimensions))
        nothing = np.zeros(0, dtype=np.int32)
        return cls(tokens, [], rows.astype(np.float32), nothing, rows.astype(np.float16), size, ngrams)

    @classmethod
    def of_part(cls, part: Arrays, name: str) -> WordVectors:
        """Memory-map the arrays of one representation in a part, or a file."""
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

    def mean(self, sentence: Sequence[Word]) -> WordVector:
        """Compute the mean of the words of a sentence: float32 ``[d]``, zeros for none."""
        if not sentence:
            return np.zeros(self.vectors.shape[1], dtype=np.float32)
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        for word in sentence:
            if word not in self._known:
                self._known[word] = self.vector(self._characters.spell(word))
        mean: WordVector = np.mean([self._known[word] for word in sentence], axis=0, dtype=np.float32)
        return mean

    def vector(self, spelled: str) -> WordVector:
        """Return the vector of a spelled word: float32 ``[d]``."""
        number = self._numbers.get(spelled)
        if number is not None:
            known: WordVector = self.vectors[number]
            return known
        buckets = np.array(ngram_buckets(spelled, *self.ngrams, self.size), dtype=np.int64)
        places = np.searchsorted(self.buckets, buckets)
        places = places[np.append(self.buckets, _NO_BUCKET - 1)[places] == buckets]
        mean: WordVector = self.rows[places].sum(axis=0, dtype=np.float32) / np.float32(max(1, len(buckets)))
        return mean


def ngram_buckets(spelled: str, shortest: int, longest: int, size: int) -> list[int]:
    """Compute the bucket of each n-gram of a word; -1 for one with a token that has no character."""
    characters = [character.encode("utf-8") for character in f"<{spelled}>"]
    unknown, buckets = UNKNOWN.encode("utf-8"), list[int]()
    for start in range(len(characters)):
        state, known = _OFFSET, True
        for length, character in enumerate(characters[start : start + longest], 1):
            known = known and character != unknown
            for byte in character:  # as a signed one, which fastText has made part of its format
                state = ((state ^ (byte if byte < 0x80 else byte | 0xFFFFFF00)) * _PRIME) & _MASK
            if length >= shortest:
                buckets.append(state % size if known else _NO_BUCKET)
    return buckets


_NO_SIZE = 1 << 32


class WordCorpus:
    """The sentences of one representation, four bytes a word, which fastText reads once for each epoch."""

    def __init__(self) -> None:
        self._numbers: dict[Word, int] = {}
        self._sentences: list[npt.NDArray[np.int32]] = []

    @classmethod
    def of_formulas(cls, pairs: Iterable[FormulaPair]) -> dict[TreeForm, WordCorpus]:
        corpora: dict[TreeForm, WordCorpus] = {name: cls() for name in REPRESENTATIONS}
        for pair in pairs:
            for name, sentence in sentences(pair).items():
                corpora[name].add(sentence)
        return corpora

    def add(self, sentence: list[Word]) -> None:
        numbers = [self._numbers.setdefault(word, len(self._numbers)) for word in sentence]
        self._sentences.append(np.array(numbers, dtype=np.int32))

    def counts(self) -> dict[Word, int]:
        """Count how often each word occurs, in the order of first occurrences."""
        times = np.zeros(len(self._numbers), dtype=np.int64)
        for sentence in self._sentences:
            np.add.at(times, sentence, 1)
        return dict(zip(self._numbers, times.tolist(), strict=True))

    def spelled(self, characters: Characters) -> Spelled:
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


def train(corpus: WordCorpus, options: FastTextOptions) -> WordVectors:
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
