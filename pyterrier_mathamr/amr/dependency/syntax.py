"""Tokens, tags, heads and relations of sentences: a small convolutional network in exact integer arithmetic.

    "FORMULA_0-module doesn't"  ->  FORMULA_0  -  module  does  n't         as in Universal Dependencies

    token features -> sum of embeddings -> 4 residual blocks (k = 3) -> tag
                                                                     -> head: dependent . head + distance
                                                                     -> relation of the chosen arc

A tenth of the tokens of Math Stack Exchange are not in the treebank, and word endings mislead the network, especially
for verbs ("FORMULA_0 converges" as a plural noun). For these words the network reads a stand-in: a word of the
treebank with the same syntax. The graph keeps the word.

All activations are integers of at most 127 and weights have 8 bits, so that each float32 sum of products stays below
2**24 and is exact: the result depends neither on the batch nor on the order of additions. Trained on Universal
Dependencies English EWT, see ``data/parser``. `tree_heads` chooses the best tree of the scores of its arcs.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.running.processes import runs_within
from pyterrier_mathamr._common.running.resources import one_blas_thread

from .lexicon import TABLES

_TOKEN = re.compile(
    r"FORMULA_\d+|if\s+and\s+only\s+if\b|https?://\S+|www\.\S+"
    r"|(?:[A-Za-z]\.){2,}|\d+(?:[.,]\d+)*|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b"
    r"|\bcan(?=not\b)|[^\W\d_]+?(?=n['’]t\b)|[^\W\d_]+(?:\d+)?|\.{2,}|\S",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"FORMULA_\d+")
_DIGIT = re.compile(r"\d")


def tokenize(sentence: str) -> list[str]:
    """Split a sentence into tokens; a placeholder is one token, and "if and only if" is the token "iff"."""
    return ["iff" if token[:3].lower() == "if " else token for token in _TOKEN.findall(sentence)]


def is_placeholder(token: str) -> bool:
    return _PLACEHOLDER.fullmatch(token) is not None


class Features(NamedTuple):
    """The features of a token; each has its own entries in the vocabulary, written ``feature=value``."""

    word: str
    suffix3: str
    suffix2: str
    prefix3: str
    shape: str


FEATURES = Features._fields


def features_of(token: str) -> Features:
    if is_placeholder(token):
        return Features("FORMULA", "", "", "", "formula")
    lower = _DIGIT.sub("0", token.lower().replace("’", "'"))
    if token.isalpha():
        shape = "lower" if token.islower() else "upper" if token.isupper() else "title" if token.istitle() else "mixed"
    else:
        shape = "number" if lower[0] == "0" else "other" if lower.isalnum() else "mark" if len(lower) == 1 else "marks"
    return Features(lower, lower[-3:], lower[-2:], lower[:3], shape)


def feature_ids(
    tokens: Sequence[str], vocabulary: Mapping[str, int], memory: dict[str, tuple[int, ...]]
) -> list[tuple[int, ...]]:
    rows = []
    for token in tokens:
        ids = memory.get(token)
        if ids is None:
            features = features_of(token)
            if features.word in STAND_INS and f"word={features.word}" not in vocabulary:
                features = features_of(STAND_INS[features.word])._replace(shape=features.shape)
            values = zip(FEATURES, features, strict=True)
            ids = memory[token] = tuple(vocabulary.get(f"{name}={value}", 0) for name, value in values)
        rows.append(ids)
    return rows


_VERBS = (
    (TABLES["STAND_IN_TRANSITIVE"], "use uses used using"),
    ("prove:proves:proved:proving imply:implies:implied:implying", "show shows shown showing"),
    (TABLES["STAND_IN_INTRANSITIVE"], "go goes went going"),
)

STAND_INS: dict[str, str] = {
    **dict.fromkeys(TABLES["STAND_IN_PLURALS"].split(), "questions"),
    **dict.fromkeys(TABLES["STAND_IN_NOUNS"].split(), "question"),
    **dict.fromkeys(TABLES["STAND_IN_ADJECTIVES"].split(), "large"),
    **{
        form: stand_in
        for verbs, stand_ins in _VERBS
        for verb in verbs.split()
        for form, stand_in in zip(verb.split(":"), stand_ins.split(), strict=True)
    },
    "iff": "if",
    "modulo": "under",
}
"""The stand-in of each word that the network's vocabulary may lack."""


Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]

DATA = Path(__file__).resolve().parents[2] / "data" / "parser"
MAX_TOKENS = 160
"""Longest sentence that is analyzed at once; the cost of arcs is quadratic."""

_WINDOW = 1000  # tokens at a time, whose activations fit the CPU's cache


class Syntax(NamedTuple):
    """A sentence's tokens, each with its Penn tag, head (-1 for the root) and dependency relation."""

    words: list[str]
    tags: list[str]
    heads: list[int]
    relations: list[str]


class _Linear(NamedTuple):
    """An integer weight, with a factor and a bias that scale the layer's value by 127."""

    weight: Floats
    factor: np.float32
    bias: Floats

    def __call__(self, x: Floats, low: float | None) -> Floats:
        """Apply the layer; clip to ``[low, 127]`` and round unless ``low`` is None."""
        return self.scaled(x @ self.weight, low)

    def scaled(self, value: Floats, low: float | None) -> Floats:
        """Apply the layer to a value that is multiplied already, which is overwritten."""
        value *= self.factor
        value += self.bias
        return value if low is None else _clipped(value, low)


def _clipped(value: Floats, low: float) -> Floats:
    np.clip(value, low, 127, out=value)
    return np.rint(value, out=value)


class SyntaxNet:
    """The network and its vocabulary."""

    def __init__(self, folder: Path = DATA) -> None:
        with gzip.open(folder / "syntax.json.gz", "rt", encoding="utf-8") as file:
            names: dict[str, Any] = json.load(file)
        self.tags: list[str] = names["tags"]
        self.relations: list[str] = names["relations"]
        self.lemmas: dict[str, str] = names.get("lemmas", {})
        self._dilations: list[int] = names["dilations"]
        self._vocabulary = {entry: i for i, entry in enumerate(names["vocabulary"])}
        self._memory: dict[str, tuple[int, ...]] = {}
        with np.load(folder / "syntax.npz", allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        self._embedding: npt.NDArray[np.int8] = arrays["embedding"]
        self._layers = {
            name[:-7]: _Linear(
                value.astype(np.float32),
                np.float32(arrays[f"{name[:-7]}.scale"] * 127),
                arrays[f"{name[:-7]}.bias"] * np.float32(127),
            )
            for name, value in arrays.items()
            if name.endswith(".weight")
        }
        self._root = arrays["root"].astype(np.float32)
        self._root_label = arrays["root_label"] * np.float32(127)
        reach = len(arrays["distance"]) // 2
        positions = np.arange(MAX_TOKENS)
        gap = np.clip(positions[None, :] - positions[:, None], -reach, reach) + reach
        self._distance = np.zeros((MAX_TOKENS, MAX_TOKENS + 1), np.float32)  # [dependent, head], head 0 is the root
        self._distance[:, 1:] = arrays["distance"][gap]
        self._distance[positions, positions + 1] = -1e9  # no token is its own head

    def analyze(self, sentences: Sequence[list[str]]) -> list[Syntax]:
        with one_blas_thread():
            windows = runs_within(map(len, sentences), _WINDOW)
            return [analysis for run in windows for analysis in self._analyze(sentences[run.start : run.stop])]

    def _analyze(self, sentences: Sequence[list[str]]) -> Iterator[Syntax]:
        starts = np.cumsum([0, *map(len, sentences)])
        bounds = starts.tolist()
        hidden = self._hidden(sentences, starts)
        tags = self._layers["tag"](hidden, None).argmax(axis=1).tolist()
        dependents = self._layers["dependent"](hidden, -127)
        heads = self._layers["head"](hidden, -127)
        roots = dependents @ self._root
        trees: list[list[int]] = []
        for start, end in pairwise(bounds):
            n = end - start
            scores = self._distance[:n, : n + 1].copy()
            scores[:, 0] += roots[start:end]
            scores[:, 1:] += dependents[start:end] @ heads[start:end].T
            trees.append(tree_heads(scores))
        relations = self._relations(hidden, trees, bounds)
        for sentence, tree, start in zip(sentences, trees, bounds, strict=False):
            end = start + len(sentence)
            yield Syntax(
                sentence,
                [self.tags[tag] for tag in tags[start:end]],
                tree,
                [self.relations[relation] for relation in relations[start:end]],
            )

    def _hidden(self, sentences: Sequence[list[str]], starts: Numbers) -> Floats:
        """Compute the hidden states of all tokens: integers as float32 ``[tokens, width]``."""
        rows: dict[str, int] = {}
        row = np.array([rows.setdefault(token, len(rows)) for sentence in sentences for token in sentence])
        words = self._words([*rows])  # [distinct tokens + 1, width]
        count, width = len(row), words.shape[1]
        state = np.zeros((count + 1, width), np.float32)  # the last row is the padding
        np.take(words, row, axis=0, out=state[:-1])
        lengths = np.diff(starts)
        first, last = np.repeat(starts[:-1], lengths), np.repeat(starts[1:] - 1, lengths)
        positions = np.arange(count)
        for i, dilation in enumerate(self._dilations):
            left = np.where(positions - dilation >= first, positions - dilation, count)
            right = np.where(positions + dilation <= last, positions + dilation, count)
            wide = self._layers[f"wide{i}"]
            if i == 0:
                before, center, after = words @ wide.weight.reshape(3, width, -1)
                row = np.append(row, len(rows))
                value = before[row[left]]
                value += center[row[:-1]]
                value += after[row[right]]
            else:
                value = np.concatenate([state[left], state[:-1], state[right]], axis=1) @ wide.weight
            state[:-1] += self._layers[f"back{i}"](wide.scaled(value, 0), None)
            _clipped(state, -127)
        return state[:-1]

    def _words(self, tokens: Sequence[str]) -> Floats:
        """Sum the embeddings of the features of tokens: integers as float32, the last row is the padding."""
        ids = np.array(feature_ids(tokens, self._vocabulary, self._memory))
        if len(self._memory) > 200_000:
            self._memory.clear()
        words = np.zeros((len(tokens) + 1, self._embedding.shape[1]), np.float32)
        words[:-1] = _clipped(self._embedding[ids].sum(axis=1, dtype=np.int32).astype(np.float32), -127)
        return words

    def _relations(self, hidden: Floats, trees: list[list[int]], starts: Sequence[int]) -> list[int]:
        """Choose the relation of each token to its head."""
        shifted = [
            head + start if head >= 0 else len(hidden)
            for tree, start in zip(trees, starts, strict=False)
            for head in tree
        ]
        from_head = np.concatenate([self._layers["label_head"](hidden, None), self._root_label[None]])
        arc = _clipped(self._layers["label_dependent"](hidden, None) + from_head[shifted], 0)
        relations: list[int] = self._layers["label"](arc, None).argmax(axis=1).tolist()
        return relations


@lru_cache(maxsize=1)
def bundled_net() -> SyntaxNet:
    """Load the network of the package, once."""
    return SyntaxNet()


def tree_heads(scores: npt.NDArray[np.float32]) -> list[int]:
    """Choose heads that form a tree with one root."""
    heads: list[int] = (scores.argmax(axis=1) - 1).tolist()
    roots = [token for token, head in enumerate(heads) if head < 0]
    if not roots:
        root = int(scores[:, 0].argmax())
        heads[root] = -1
    elif len(roots) > 1:
        root = max(roots, key=lambda token: (scores[token, 0], -token))
        for token in roots:
            if token != root:
                _move(token, heads, scores)
    while cycle := _cycle(heads):
        best = max(cycle, key=lambda token: (_gain(token, cycle, scores), -token))
        _move(best, heads, scores)
    return heads


def _gain(token: int, cycle: set[int], scores: npt.NDArray[np.float32]) -> float:
    """Return the change in score of moving a token to the best head outside the cycle."""
    row = scores[token, 1:].copy()
    row[list(cycle)] = -np.inf
    return float(row.max() - scores[token].max()) if len(row) > len(cycle) else -np.inf


def _move(token: int, heads: list[int], scores: npt.NDArray[np.float32]) -> None:
    """Move a token to the best head that is not below it."""
    below = {token}
    while more := {i for i, head in enumerate(heads) if head in below} - below:
        below |= more
    row = scores[token, 1:].copy()
    row[list(below)] = -np.inf
    heads[token] = int(row.argmax())


def _cycle(heads: list[int]) -> set[int]:
    """Return the tokens of a cycle among the heads, or none."""
    state = [0] * len(heads)  # 0 if not visited, else the walk that visited it
    for start in range(len(heads)):
        token = start
        while token >= 0 and not state[token]:
            state[token] = start + 1
            token = heads[token]
        if token >= 0 and state[token] == start + 1:
            cycle = {token}
            step = heads[token]
            while step != token:
                cycle.add(step)
                step = heads[step]
            return cycle
    return set()
