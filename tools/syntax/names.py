"""Features, tags and relations by number, and trees as tensors of the numbers."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import torch
from treebank import Tree

from pyterrier_mathamr.amr.dependency.syntax import FEATURES, feature_ids, features_of

_LEAST = {"word": 2, "suffix3": 4, "suffix2": 3, "prefix3": 4, "shape": 1}
_BEHIND = -100  # after the end of a sentence; ignored by the cross-entropy


@dataclass(frozen=True)
class Names:
    """The names of the network's inputs and outputs, each list in the order of the numbers."""

    vocabulary: list[str]
    tags: list[str]
    relations: list[str]

    @classmethod
    def of(cls, trees: list[Tree]) -> Names:
        """Collect the names of a treebank; features rarer than `_LEAST` are left out."""
        counts = Counter(f"{name}={value}" for tree in trees for word in tree.words
                         for name, value in zip(FEATURES, features_of(word), strict=True))  # fmt: skip
        kept = sorted(key for key, n in counts.items() if n >= _LEAST[key.partition("=")[0]])
        return cls(
            ["", "word=FORMULA", "shape=formula", *kept],
            sorted({tag for tree in trees for tag in tree.tags} | {"NN"}),  # the tag of a formula
            sorted({relation for tree in trees for relation in tree.relations}),
        )

    @cached_property
    def _ids(self) -> tuple[dict[str, int], ...]:
        return tuple({name: i for i, name in enumerate(own)} for own in (self.vocabulary, self.tags, self.relations))

    @cached_property
    def _memory(self) -> dict[str, tuple[int, ...]]:
        return {}

    @cached_property
    def words(self) -> torch.Tensor:
        """Mark the features that are words and no formulas, bool ``[features]``."""
        return torch.tensor([key.startswith("word=") and key != "word=FORMULA" for key in self.vocabulary])

    def tensors(self, trees: list[Tree]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Convert trees to numbers of features, tags, heads and relations; see `network.Net.loss` for shapes."""
        vocabulary, tag_ids, relation_ids = self._ids
        longest = max(len(tree.words) for tree in trees)
        ids = torch.zeros(len(trees), longest, len(FEATURES), dtype=torch.long)
        tags, heads, relations = (torch.full((len(trees), longest), _BEHIND) for _ in range(3))
        for i, tree in enumerate(trees):
            n = len(tree.words)
            ids[i, :n] = torch.tensor(feature_ids(tree.words, vocabulary, self._memory))
            tags[i, :n] = torch.tensor([tag_ids[tag] for tag in tree.tags])
            heads[i, :n] = torch.tensor(tree.heads)
            relations[i, :n] = torch.tensor([relation_ids[relation] for relation in tree.relations])
        return ids, tags, heads, relations


def batches(trees: list[Tree], size: int, rng: random.Random) -> list[list[Tree]]:
    """Group sentences of similar length, at most ``size`` tokens with padding, in random order."""
    order = sorted(range(len(trees)), key=lambda i: (len(trees[i].words), rng.random()))
    groups: list[list[Tree]] = []
    group: list[Tree] = []
    for i in order:
        if group and len(trees[i].words) * (len(group) + 1) > size:
            groups.append(group)
            group = []
        group.append(trees[i])
    groups.append(group)
    rng.shuffle(groups)
    return groups
