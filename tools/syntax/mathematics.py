"""Draw mathematical sentences with their trees from the grammar in ``mathematics.txt``.

The treebank is web text without "let G be a group such that" and "there exists", and with few questions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from treebank import Tree

_LETTERS = ("x", "y", "z", "n", "k", "m", "f", "g", "p", "G", "H", "X", "V")
GRAMMAR = Path(__file__).with_name("mathematics.txt")
_DEPTH = 4  # below it, categories take their shortest line


class _Part(NamedTuple):
    what: str
    head: int
    relation: str


class _Word(NamedTuple):
    text: str
    tag: str
    head: int
    relation: str


class Grammar:
    """The categories and word classes of a grammar file, whose head describes the format.

    Args:
        path: the file.
    """

    def __init__(self, path: Path = GRAMMAR) -> None:
        self.categories: dict[str, list[list[_Part]]] = {}
        self.classes: dict[str, tuple[str, list[str]]] = {}
        for line in path.read_text("utf-8").splitlines():
            name, mark, text = line.partition(" = " if " = " in line and " : " not in line else " : ")
            if line[:1] == "#" or not mark:
                continue
            if mark == " = ":
                self.categories.setdefault(name, []).append([_part(part) for part in text.split()])
            else:
                word_class, _, tag = name.partition("/")
                self.classes[word_class] = tag, text.split()

    def sentences(self, number: int, rng: random.Random) -> Iterator[Tree]:
        """Draw sentences."""
        for _ in range(number):
            words = self._drawn("S", rng, 0)
            text = [word.text for word in words]
            if not text[0].startswith("FORMULA_"):
                text[0] = text[0][0].upper() + text[0][1:]
            yield Tree(
                ["I" if word == "i" else word for word in text],
                ["PUNCT" if word.relation == "punct" else "X" for word in words],
                [word.tag for word in words],
                [word.head for word in words],
                [word.relation for word in words],
            )

    def _drawn(self, category: str, rng: random.Random, depth: int) -> list[_Word]:
        """Draw a category; its own root has the head -1 and the relation of its line, or none."""
        lines = self.categories[category]
        parts = lines[0] if depth > _DEPTH else rng.choice(lines)
        drawn = [self._words(part.what, rng, depth + 1) for part in parts]
        starts = [sum(map(len, drawn[:i])) for i in range(len(drawn))]
        roots = [start + next(i for i, word in enumerate(own) if word.head < 0)
                 for start, own in zip(starts, drawn, strict=True)]  # fmt: skip
        found = []
        for part, own, start in zip(parts, drawn, starts, strict=True):
            head = roots[part.head - 1] if part.head else -1
            for word in own:
                at = (head, part.relation) if word.head < 0 else (start + word.head, word.relation)
                found.append(_Word(word.text, word.tag, *at))
        return found

    def _words(self, what: str, rng: random.Random, depth: int) -> list[_Word]:
        if what in self.categories:
            return self._drawn(what, rng, depth)
        if what == "F":
            return [_Word(rng.choice(_LETTERS) if rng.random() < 0.2 else "FORMULA_0", "NN", -1, "")]
        if what in self.classes:
            tag, words = self.classes[what]
            return [_Word(rng.choice(words), tag, -1, "")]
        text, _, tag = what.rpartition("/")
        return [_Word(text, tag, -1, "")]


def _part(text: str) -> _Part:
    what, head, *relation = text.split(":", 2)
    return _Part(what, int(head), *relation or [""])
