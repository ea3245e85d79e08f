"""Hard negatives: wrong answers that look right, given for each question, drawn anew for each epoch.

They are further columns of the score matrix::

                 answers of the batch      hard negatives of the batch, each once
    question 0   own   a₁    a₂    a₃   |  h₀₁   h₀₂   h₁₁   …       every question sees those of the others, too,
    question 1   a₀    own   a₂    a₃   |  h₀₁   –     h₁₁   …       but none that is known to be right for it (–)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch

from .pairs import Answers, Pair


class HardNegatives:
    """The wrong answers of each question.

    Args:
        of: question id to documents that are not known to answer it; a question may have none.
        answers: what is known to be right; such documents are left out.
    """

    def __init__(self, of: Mapping[str, Sequence[str]], answers: Answers) -> None:
        self._of = {
            str(question): [name for name in map(str, dict.fromkeys(found)) if not answers.known(str(question), name)]
            for question, found in of.items()
        }

    def documents(self, pairs: Iterable[Pair]) -> list[str]:
        """List the documents that may be drawn for some pairs, each once, in order."""
        questions = dict.fromkeys(question for question, _ in pairs)
        return list(dict.fromkeys(name for question in questions for name in self._of.get(question, ())))

    def draw(self, pairs: Sequence[Pair], count: int, generator: torch.Generator) -> dict[Pair, tuple[str, ...]]:
        """Draw for each pair some of its question's wrong answers.

        Args:
            pairs: all pairs of the epoch, always in the same order.
            count: documents for a pair; fewer where the question has fewer.
            generator: the source of chance; one with the same seed draws the same.

        Returns:
            The documents of each pair.
        """
        drawn = {}
        for pair in pairs:
            found = self._of.get(pair[0], [])
            order = torch.randperm(len(found), generator=generator).tolist()
            drawn[pair] = tuple(found[i] for i in order[:count])
        return drawn


def columns_of(batch: Sequence[Pair], drawn: Mapping[Pair, Sequence[str]]) -> list[str]:
    """List the hard negatives of a batch, each once; an answer of the batch is a column of its own already.

    Args:
        batch: B pairs.
        drawn: what was drawn for the epoch.

    Returns:
        H documents.
    """
    answers = {answer for _, answer in batch}
    names = dict.fromkeys(name for pair in batch for name in drawn.get(pair, ()))
    return [name for name in names if name not in answers]
