"""Read a treebank in CoNLL-U, and vary it to resemble posts and questions.

Of the ten columns of a word these are used: form, universal tag, Penn tag, head and relation (2, 4, 5, 7 and 8).
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_KEPT_PRONOUNS = ("I", "you", "it", "that", "which", "who", "what")


@dataclass(frozen=True)
class Tree:
    """A sentence with its analysis, one entry for each word; a head is a position in the sentence, -1 for the root."""

    words: list[str]
    upos: list[str]
    tags: list[str]
    heads: list[int]
    relations: list[str]

    def without_last(self) -> Tree:
        """Copy the tree without its last word, which must have no dependents."""
        return Tree(self.words[:-1], self.upos[:-1], self.tags[:-1], self.heads[:-1], self.relations[:-1])


def rows(path: Path) -> Iterator[list[list[str]]]:
    """Yield the columns of the words of each sentence of a gzipped CoNLL-U file."""
    for block in gzip.decompress(path.read_bytes()).decode().split("\n\n"):
        words = [line.split("\t") for line in block.splitlines() if line[:1].isdigit()]
        words = [row for row in words if row[0].isdigit()]  # no ranges and empty words, such as 3-4 and 5.1
        if words:
            yield words


def read(path: Path) -> list[Tree]:
    """Read the sentences of a gzipped CoNLL-U file."""
    return [
        Tree([r[1] for r in words], [r[3] for r in words], [r[4] for r in words],
             [int(r[6]) - 1 for r in words], [r[7] for r in words])
        for words in rows(path)
    ]  # fmt: skip


def varied(tree: Tree, rng: random.Random) -> Tree:
    """Replace some bare nominals by formulas; sometimes lower the case or drop the final period."""
    words, tags = list(tree.words), list(tree.tags)
    has_child = set(tree.heads)
    rate = rng.choice((0.0, 0.0, 0.25, 0.5))
    for i, upos in enumerate(tree.upos):
        bare = upos in ("NOUN", "PROPN", "PRON", "NUM") and i not in has_child and words[i] not in _KEPT_PRONOUNS
        if bare and rng.random() < rate:
            words[i], tags[i] = "FORMULA_0", "NN"
    if rng.random() < 0.25:
        words = [word if word.startswith("FORMULA_") else word.lower() for word in words]
    tree = Tree(words, tree.upos, tags, tree.heads, tree.relations)
    last = len(words) - 1
    if last > 1 and tree.upos[last] == "PUNCT" and last not in has_child and rng.random() < 0.3:
        tree = tree.without_last()
    return tree
