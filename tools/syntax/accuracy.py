"""Measure the accuracy of the weights on a treebank's tokens.

Usage::

    python tools/syntax/accuracy.py UD_FOLDER/en_ewt-ud-dev.conllu.gz [FOLDER_OF_WEIGHTS]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

from treebank import Tree, read

from pyterrier_mathamr.amr.dependency.syntax import DATA, MAX_TOKENS, SyntaxNet


class Accuracy(NamedTuple):
    """Percentage of the words, including punctuation, with the right tag, head, and head with relation."""

    tags: float
    heads: float
    relations: float

    def __str__(self) -> str:
        return f"tags {self.tags:.2f}, unlabeled arcs {self.heads:.2f}, labeled arcs {self.relations:.2f} %"


def accuracy(net: SyntaxNet, trees: list[Tree]) -> Accuracy:
    """Compare the network's analyses with the treebank's; words beyond `MAX_TOKENS` are wrong."""
    words = tags = heads = relations = 0
    for tree, found in zip(trees, net.analyze([tree.words[:MAX_TOKENS] for tree in trees]), strict=True):
        words += len(tree.words)
        for i, head in enumerate(found.heads):
            tags += found.tags[i] == tree.tags[i]
            heads += head == tree.heads[i]
            relations += (head, found.relations[i]) == (tree.heads[i], tree.relations[i])
    return Accuracy(*(100 * right / words for right in (tags, heads, relations)))


def main() -> None:
    """Read the command line and print the accuracy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("treebank", type=Path)
    parser.add_argument("weights", type=Path, nargs="?", default=DATA)
    options = parser.parse_args()
    print(accuracy(SyntaxNet(options.weights), read(options.treebank)))


if __name__ == "__main__":
    main()
