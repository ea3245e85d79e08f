"""Question-answer pairs: reading, splitting without leaks, batching, and who may be a negative of whom."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd
import torch
from torch import Tensor

from pyterrier_mathamr.model.errors import TrainingError

Pair = tuple[str, str]
"""Query id and docno of a right answer."""


def read_pairs(pairs: Iterable[Pair] | pd.DataFrame) -> tuple[Pair, ...]:
    """Take pairs in any of the forms ``fit`` accepts.

    Args:
        pairs: pairs of ids, or a frame with the columns ``qid`` and ``docno``.

    Returns:
        Distinct pairs of text ids in order of first appearance.

    Raises:
        TrainingError: a frame lacks a column, or an item is no pair.
    """
    if isinstance(pairs, pd.DataFrame):
        missing = {"qid", "docno"} - set(pairs.columns)
        if missing:
            raise TrainingError(f"the frame of pairs lacks the column(s) {', '.join(sorted(missing))}.")
        pairs = zip(pairs["qid"], pairs["docno"], strict=True)
    found: dict[Pair, None] = {}
    for item in pairs:
        if isinstance(item, str) or len(item) != 2:
            raise TrainingError(f"a pair is (question id, answer id), not {item!r}.")
        found[str(item[0]), str(item[1])] = None
    return tuple(found)


def split_pairs(pairs: Sequence[Pair], share: float, seed: int) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Split pairs into training and validation by question, so that no question is in both (MathAMR+, 3.4.5).

    Args:
        pairs: all pairs.
        share: part of the questions for validation, 0 to below 1; at least one where there are two and it is not 0.
        seed: of the shuffle.

    Returns:
        Training pairs and validation pairs, each in the order given.
    """
    questions = sorted({question for question, _ in pairs}, key=lambda name: _shuffle_key(name, seed))
    count = min(max(round(share * len(questions)), int(share > 0)), len(questions) - 1) if questions else 0
    held = set(questions[:count])
    return (
        tuple(pair for pair in pairs if pair[0] not in held),
        tuple(pair for pair in pairs if pair[0] in held),
    )


def batches_of(pairs: Sequence[Pair], size: int, generator: torch.Generator | None = None) -> list[list[Pair]]:
    """Cut pairs into batches, shuffled where a generator is given; a last batch of one pair is left out.

    Args:
        pairs: all pairs of the epoch.
        size: pairs in a batch.
        generator: the source of chance.
    """
    order = range(len(pairs)) if generator is None else torch.randperm(len(pairs), generator=generator).tolist()
    chosen = [pairs[i] for i in order]
    batches = [chosen[start : start + size] for start in range(0, len(chosen), size)]
    return [batch for batch in batches if len(batch) > 1]  # one pair has no negative


class Answers:
    """What is known to be right for each question, and so never its negative.

    Args:
        pairs: questions and right answers.
        never: further documents by question id, such as the answers of linked questions.
    """

    def __init__(self, pairs: Iterable[Pair], never: Mapping[str, Iterable[str]] | None = None) -> None:
        self._of: defaultdict[str, set[str]] = defaultdict(set)
        for question, answer in pairs:
            self._of[question].add(answer)
        for question, others in (never or {}).items():
            self._of[str(question)].update(map(str, others))

    def known(self, question: str, document: str) -> bool:
        """Tell whether a document is known to be right for a question, or is the question itself."""
        return document == question or document in self._of.get(question, ())

    def allowed(self, batch: Sequence[Pair], others: Sequence[str] = ()) -> Tensor:
        """Tell which documents of a batch may count against which questions.

        Args:
            batch: B pairs.
            others: H further documents, such as hard negatives.

        Returns:
            bool ``[B, B + H]``: the diagonal, and (i, j) where document j is not known to be right for question i. So
            pairs of the same question, or with the same answer, are never negatives of each other.
        """
        columns = [*(answer for _, answer in batch), *others]
        rows = [[not self.known(question, document) for document in columns] for question, _ in batch]
        return torch.tensor(rows, dtype=torch.bool).fill_diagonal_(True)


def _shuffle_key(name: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\t{name}".encode()).digest()
