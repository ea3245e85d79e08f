"""What a ColBERT model is trained on: pairs of questions and right answers, their texts, wrong answers.

::

    pairs  (qid, docno)                             posts   {docno, title, html}       negatives  {qid: docnos}
    pairs  {qid, question, aid, answer}             with their own texts               never      {qid: docnos}
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from pyterrier_mathamr._common.frames import documents
from pyterrier_mathamr.model.errors import TrainingError
from pyterrier_mathamr.model.training.data import (
    Answers,
    HardNegatives,
    Pair,
    batches_of,
    columns_of,
    generator_of,
    read_pairs,
)
from pyterrier_mathamr.posts import MathPost, document_post, post_from_any

from .options import ColBERTTraining

LEAST_VOTES = 8
"""Votes from which on an answer is right: more than 7 (Zhong et al. 2022, section 4.2)."""

Records = Iterable[Mapping[str, Any]]
_NEGATIVES = 10_000_018  # in place of a batch's number: the generator that draws an epoch's wrong answers
_OF_PAIR = ("qid", "question", "aid", "answer")


def positive_pairs(
    pairs: Iterable[Pair],
    votes: Mapping[str, int] | None = None,
    accepted: Collection[str] = (),
    duplicates: Mapping[str, Iterable[str]] | None = None,
) -> list[Pair]:
    """Choose the pairs to train on: accepted answers, those of duplicates, and answers with more than 7 votes."""
    every = list(dict.fromkeys(pairs))
    if not votes and not accepted:
        return every
    known = votes or {}
    of: defaultdict[str, list[str]] = defaultdict(list)
    for question, answer in every:
        if answer in accepted:
            of[question].append(answer)
    found = {pair: None for pair in every if pair[1] in accepted or known.get(pair[1], 0) >= LEAST_VOTES}
    for question, others in (duplicates or {}).items():
        found |= {(question, answer): None for other in others for answer in of.get(other, ())}
    return list(found)


@dataclass(frozen=True, slots=True)
class Batch:
    """The texts of one step, by name.

    Attributes:
        queries: B question ids.
        documents: their B right answers, then H wrong ones.
        allowed: bool ``[B, B + H]``; which documents may be negatives of which question.
        wrong: for each question the place of its first own wrong answer among the documents.
    """

    queries: list[str]
    documents: list[str]
    allowed: Tensor
    wrong: list[int | None]


@dataclass(frozen=True, slots=True)
class ColBERTData:
    """The pairs of a run, the posts in them, and who may be a negative of whom.

    Attributes:
        pairs: to train on.
        posts: by name: all questions and answers.
        answers: those known to be right.
        negatives: wrong answers.
    """

    pairs: tuple[Pair, ...]
    posts: dict[str, MathPost]
    answers: Answers
    negatives: HardNegatives

    @classmethod
    def read(
        cls,
        pairs: Iterable[Any] | pd.DataFrame,
        posts: Records | pd.DataFrame | None = None,
        negatives: Mapping[str, Sequence[str]] | None = None,
        never: Mapping[str, Iterable[str]] | None = None,
    ) -> ColBERTData:
        """Read what ``ColBERT.fit`` is given."""
        given = documents(pairs)
        texts: dict[str, MathPost] = {}
        ids = []
        for item in given:
            if isinstance(item, Mapping) and "question" in item:
                if missing := [name for name in _OF_PAIR if not isinstance(item.get(name), str)]:
                    raise TrainingError(f"a pair with texts lacks {', '.join(missing)}: {item!r:.200}")
                texts[item["qid"]] = post_from_any(item["question"])
                texts[item["aid"]] = post_from_any(item["answer"])
                ids.append((item["qid"], item["aid"]))
            else:
                ids.append((item["qid"], item["docno"]) if isinstance(item, Mapping) else item)
        wanted = read_pairs(ids)
        if len(wanted) < 2:
            raise TrainingError(f"training needs at least two pairs, and {len(wanted)} are given.")
        answers = Answers(wanted, never)
        wrong = HardNegatives(negatives or {}, answers)
        names = {name for pair in wanted for name in pair} | set(wrong.documents(wanted))
        for record in documents(posts if posts is not None else ()):
            if record["docno"] in names:
                texts[record["docno"]] = document_post(record)
        if missing := sorted(names - texts.keys()):
            shown = ", ".join(missing[:5])
            raise TrainingError(f"{len(missing)} posts of the pairs and negatives have no text: {shown}. Give posts=.")
        return cls(wanted, texts, answers, wrong)

    def batches(self, training: ColBERTTraining, epoch: int) -> list[Batch]:
        """Shuffle the pairs of an epoch, draw their wrong answers and cut them into batches."""
        chance = generator_of(training.seed, epoch, _NEGATIVES)
        drawn = self.negatives.draw(self.pairs, training.hard_negatives, chance)
        cut = batches_of(self.pairs, training.batch_size, generator_of(training.seed, epoch, 0))
        return [self._batch(pairs, drawn) for pairs in cut]

    def _batch(self, pairs: list[Pair], drawn: Mapping[Pair, Sequence[str]]) -> Batch:
        others = columns_of(pairs, drawn)
        documents = [*(answer for _, answer in pairs), *others]
        place = {name: i for i, name in reversed(list(enumerate(documents)))}
        wrong = [next((place[name] for name in drawn[pair]), None) for pair in pairs]
        allowed: Tensor = self.answers.allowed(pairs, others)
        return Batch([question for question, _ in pairs], documents, allowed.to(torch.bool), wrong)
