"""Training data: question-answer pairs, the documents that may be negatives of a question, and batches of their ids.

::

    pairs  ──split by question──▶  validation pairs
           └─▶  training pairs  ──shuffle by (seed, epoch)──▶  batches of an epoch, with their hard negatives

Hard negatives are wrong answers that look right. They are given for each question, redrawn for each epoch, and
become further columns of the score matrix::

                 answers of the batch      hard negatives of the batch, each once
    question 0   own   a₁    a₂    a₃   |  h₀₁   h₀₂   h₁₁   …       every question is also contrasted with the others'
    question 1   a₀    own   a₂    a₃   |  h₀₁   –     h₁₁   …       negatives, except its known answers (–)
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Protocol

import pandas as pd
import torch
from torch import Tensor

from pyterrier_mathamr._common.errors import ConfigError, listed
from pyterrier_mathamr.graph import MathAMRGraph

from .config import MathAMRConfig
from .errors import TrainingError

Pair = tuple[str, str]
"""Query id and docno of a right answer."""

Pairs = Iterable[Pair] | pd.DataFrame
PairBatch = tuple[list[Pair], list[str]]  # the B pairs of a batch, and H hard negatives
_NEGATIVES = 10_000_018  # in place of a batch's number: the generator that draws an epoch's hard negatives


def read_pairs(pairs: Pairs) -> tuple[Pair, ...]:
    """Read pairs in any form that ``fit`` accepts: distinct pairs of ids as text, in order of first appearance."""
    if isinstance(pairs, pd.DataFrame):
        missing = {"qid", "docno"} - set(pairs.columns)
        if missing:
            raise TrainingError(f"the frame of pairs lacks the column(s) {', '.join(sorted(missing))}.")
        pairs = zip(pairs["qid"], pairs["docno"], strict=True)
    distinct: dict[Pair, None] = {}
    for item in pairs:
        if isinstance(item, str) or not isinstance(item, Sized) or len(item) != 2:
            raise TrainingError(f"a pair is (question id, answer id), not {item!r}.")
        distinct[str(item[0]), str(item[1])] = None
    return tuple(distinct)


def split_pairs(pairs: Sequence[Pair], share: float, seed: int) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Split pairs into training and validation by question, so that no question is in both (MathAMR+, 3.4.5).

    At least one question is held out if there are two and ``share`` is not 0.
    """
    questions = sorted(
        {question for question, _ in pairs}, key=lambda name: hashlib.sha256(f"{seed}\t{name}".encode()).digest()
    )
    count = min(max(round(share * len(questions)), int(share > 0)), len(questions) - 1) if questions else 0
    held = set(questions[:count])
    return tuple(pair for pair in pairs if pair[0] not in held), tuple(pair for pair in pairs if pair[0] in held)


def batches_of(pairs: Sequence[Pair], size: int, generator: torch.Generator | None = None) -> list[list[Pair]]:
    """Cut pairs into batches, shuffled if a generator is given; a last batch of one pair is left out."""
    order = range(len(pairs)) if generator is None else torch.randperm(len(pairs), generator=generator).tolist()
    chosen = [pairs[i] for i in order]
    batches = [chosen[start : start + size] for start in range(0, len(chosen), size)]
    return [batch for batch in batches if len(batch) > 1]  # one pair has no negative


def generator_of(seed: int, epoch: int, batch: int) -> torch.Generator:
    """Make the random generator of one batch, so that an epoch can begin at any batch."""
    return torch.Generator().manual_seed((seed * 1_000_003 + epoch) * 10_000_019 + batch & (2**63 - 1))


class PairAnswers:
    """The known right answers of each question, which are never its negatives."""

    def __init__(self, pairs: Iterable[Pair], never: Mapping[str, Iterable[str]] | None = None) -> None:
        self._answers: defaultdict[str, set[str]] = defaultdict(set)
        for question, answer in pairs:
            self._answers[question].add(answer)
        for question, others in (never or {}).items():
            self._answers[str(question)].update(map(str, others))

    def known(self, question: str, document: str) -> bool:
        """Return whether a document is known to be right for a question, or is the question itself."""
        return document == question or document in self._answers.get(question, ())

    def allowed(self, batch: Sequence[Pair], others: Sequence[str] = ()) -> Tensor:
        """Return a mask of the batch: the documents that may be negatives of each question."""
        columns = [*(answer for _, answer in batch), *others]
        rows = [[not self.known(question, document) for document in columns] for question, _ in batch]
        return torch.tensor(rows, dtype=torch.bool).fill_diagonal_(True)


class HardNegatives:
    """The wrong answers of each question that look right."""

    def __init__(self, negatives: Mapping[str, Sequence[str]], answers: PairAnswers) -> None:
        self._negatives = {
            question: [name for name in dict.fromkeys(names) if not answers.known(question, name)]
            for question, names in negatives.items()
        }

    def documents(self, pairs: Iterable[Pair]) -> list[str]:
        """List the documents that may be drawn for some pairs, each once, in order."""
        questions = dict.fromkeys(question for question, _ in pairs)
        return list(dict.fromkeys(name for question in questions for name in self._negatives.get(question, ())))

    def draw(self, pairs: Sequence[Pair], count: int, generator: torch.Generator) -> dict[Pair, list[str]]:
        drawn = {}
        for pair in pairs:
            names = self._negatives.get(pair[0], [])
            drawn[pair] = [names[i] for i in torch.randperm(len(names), generator=generator).tolist()[:count]]
        return drawn


def columns_of(batch: Sequence[Pair], drawn: Mapping[Pair, Sequence[str]]) -> list[str]:
    """List the hard negatives of a batch, each once; an answer of the batch already has a column."""
    answers = {answer for _, answer in batch}
    names = dict.fromkeys(name for pair in batch for name in drawn.get(pair, ()))
    return [name for name in names if name not in answers]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The pairs of a run and the allowed negatives."""

    train: tuple[Pair, ...]
    held: tuple[Pair, ...]  # for validation; none of their questions is trained on
    first: tuple[Pair, ...]  # of the first ``first_epochs`` epochs, instead of ``train``
    answers: PairAnswers
    negatives: HardNegatives
    digest: str  # sha256 of all of it

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
        """Read the arguments of ``Trainer.fit``, and check that they agree with the configuration."""
        for option, what, given in (
            ("hard_negatives", "negatives", negatives is not None),
            ("first_epochs", "first pairs", first is not None),
        ):
            value = getattr(config.training, option)
            if given != (value > 0):
                raise ConfigError(option, value, f"at least 1 with {what} given to fit(), 0 without")
        everything = read_pairs(pairs)
        if validation is None:
            train, held = split_pairs(everything, config.training.validation_share, config.training.seed)
        else:
            train, held = everything, read_pairs(validation)
        hidden = {question for question, _ in held}
        train = tuple(pair for pair in train if pair[0] not in hidden)
        early = tuple(pair for pair in read_pairs(first or ()) if pair[0] not in hidden)
        for part, name in ((train, "training"), (early, "training in the first epochs")):
            if len(part) < 2 and (part is train or first is not None):
                raise TrainingError(f"{name} needs at least two pairs, and {len(part)} are left after the split.")
        answers = PairAnswers((*train, *held, *early), never)
        wrong = {str(question): list(map(str, names)) for question, names in (negatives or {}).items()}
        known = {str(question): sorted(map(str, names)) for question, names in (never or {}).items()}
        content = json.dumps([train, held, early, wrong, known], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()
        return cls(train, held, early, answers, HardNegatives(wrong, answers), digest)

    def trained(self) -> list[str]:
        """List the posts of the training pairs, whose labels make the vocabulary, sorted by name."""
        return sorted({name for pair in (*self.train, *self.first) for name in pair})

    def posts(self) -> list[str]:
        """List all posts whose graphs are needed, each once."""
        names = dict.fromkeys(name for pair in (*self.train, *self.held, *self.first) for name in pair)
        return list(names | dict.fromkeys(self.negatives.documents((*self.train, *self.first))))

    def batches(self, config: MathAMRConfig, epoch: int, processes: int = 1) -> list[PairBatch]:
        """Shuffle the pairs of an epoch, cut them into batches and draw their hard negatives."""
        options = config.training
        pairs = self.first if epoch <= options.first_epochs else self.train
        drawn: dict[Pair, list[str]] = {}
        if options.hard_negatives:
            chance = generator_of(options.seed, epoch, _NEGATIVES)
            drawn = self.negatives.draw(pairs, options.hard_negatives, chance)
        batches = batches_of(pairs, options.batch_size * processes, generator_of(options.seed, epoch, 0))
        return [(batch, columns_of(batch, drawn)) for batch in batches]


class PairGraphs(Protocol):
    """Graphs by id: a ``GraphStore`` or a mapping."""

    def __getitem__(self, key: str, /) -> MathAMRGraph: ...

    def __contains__(self, key: object, /) -> bool: ...


def require_graphs(names: Iterable[str], graphs: PairGraphs) -> None:
    if missing := [name for name in names if name not in graphs]:
        posts = f"{len(missing)} post(s) of the pairs have no graph: {listed(missing)}"
        raise TrainingError(f"{posts}. Build their graphs first.")
