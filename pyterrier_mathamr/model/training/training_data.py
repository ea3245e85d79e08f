"""What a run is trained on: pairs by their use, what is never a negative, and hard negatives."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import torch

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.model.config import MathAMRConfig
from pyterrier_mathamr.model.errors import TrainingError

from .negatives import HardNegatives
from .pairs import Answers, Pair, read_pairs, split_pairs

Pairs = Iterable[Pair] | pd.DataFrame


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The pairs of a run and who may be a negative of whom.

    Attributes:
        train: training pairs.
        held: validation pairs; none of their questions trains.
        first: pairs of the first ``first_epochs`` epochs, in place of ``train``.
        answers: what is right for each question, or may be.
        negatives: hard negatives of the training questions.
        digest: sha256 of all of it, 64 hexadecimal digits.
    """

    train: tuple[Pair, ...]
    held: tuple[Pair, ...]
    first: tuple[Pair, ...]
    answers: Answers
    negatives: HardNegatives
    digest: str

    @classmethod
    def read(
        cls,
        config: MathAMRConfig,
        pairs: Pairs,
        validation: Pairs | None = None,
        first: Pairs | None = None,
        negatives: Mapping[str, Sequence[str]] | None = None,
        never: Mapping[str, Iterable[str]] | None = None,
    ) -> TrainingData:
        """Take what ``Trainer.fit`` takes, and see that it fits the configuration.

        Raises:
            TrainingError: there are too few pairs.
            ConfigError: ``hard_negatives`` or ``first_epochs`` has no use, or lacks what it needs.
        """
        for option, value, given in (
            ("hard_negatives", config.hard_negatives, negatives is not None),
            ("first_epochs", config.first_epochs, first is not None),
        ):
            if given != (value > 0):
                what = {"hard_negatives": "negatives", "first_epochs": "first pairs"}[option]
                raise ConfigError(option, value, f"at least 1 with {what} given to fit(), 0 without")
        everything = read_pairs(pairs)
        if validation is None:
            train, held = split_pairs(everything, config.validation_share, config.seed)
        else:
            train, held = everything, read_pairs(validation)
        hidden = {question for question, _ in held}
        train, early = (tuple(pair for pair in of if pair[0] not in hidden) for of in (train, read_pairs(first or ())))
        for part, name in ((train, "training"), (early, "training in the first epochs")):
            if len(part) < 2 and (part is train or first is not None):
                raise TrainingError(f"{name} needs at least two pairs, and {len(part)} are left after the split.")
        answers = Answers((*train, *held, *early), never)
        wrong = {str(question): list(map(str, found)) for question, found in (negatives or {}).items()}
        known = {str(question): sorted(map(str, found)) for question, found in (never or {}).items()}
        content = json.dumps([train, held, early, wrong, known], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()
        return cls(train, held, early, answers, HardNegatives(wrong, answers), digest)

    def of_epoch(self, epoch: int, first_epochs: int) -> tuple[Pair, ...]:
        """Give the pairs of an epoch, numbered from 1."""
        return self.first if epoch <= first_epochs else self.train

    def trained(self) -> list[str]:
        """List the posts of the pairs that train, whose labels make the vocabulary, in the order of their names."""
        return sorted({name for pair in (*self.train, *self.first) for name in pair})

    def posts(self) -> list[str]:
        """List all posts whose graphs are needed, each once."""
        names = dict.fromkeys(name for pair in (*self.train, *self.held, *self.first) for name in pair)
        return list(names | dict.fromkeys(self.negatives.documents((*self.train, *self.first))))

    def draw(self, pairs: Sequence[Pair], count: int, chance: torch.Generator) -> dict[Pair, tuple[str, ...]]:
        """Draw the hard negatives of an epoch; see :meth:`HardNegatives.draw`."""
        return self.negatives.draw(pairs, count, chance) if count else {}
