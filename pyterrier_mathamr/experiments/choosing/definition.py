"""What a system has to offer to be measured on topics that chose nothing.

::

    Training ── system.fit ──▶ Fitted ── rank(Questions) ──▶ ranking
    topics and judgments       what was chosen   other topics, without judgments

A :class:`Choice` picks one of several settings by the mean nDCG' of the training topics. :class:`Learned` is anything
else that is fitted, such as an ensemble. Both may use other systems of the report as parts, fitted on the same topics.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import pandas as pd

JUDGED = "judged topics"
"""The topics of all years, each qid with its year in front: ``2020 A.1``."""


class Questions(NamedTuple):
    """Questions to rank documents for.

    Attributes:
        of: :data:`JUDGED` or ``known item``.
        topics: ``qid``, ``query``, ``title``, ``body``.
    """

    of: str
    topics: pd.DataFrame

    def only(self, qids: Collection[str]) -> Questions:
        """Return some of the questions, in the same order."""
        return Questions(self.of, self.topics[self.topics["qid"].isin(list(qids))].reset_index(drop=True))

    def kept(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of rankings or judgments that belong to these questions."""
        found: pd.DataFrame = rows[rows["qid"].isin(self.topics["qid"])].reset_index(drop=True)
        return found


@dataclass(frozen=True, eq=False)
class Fitted:
    """A system with everything chosen.

    Attributes:
        chosen: what was chosen, such as ``{"k1": 2.0, "b": 1.0}``; empty where there was nothing to choose.
        rank: ranks at most 1000 documents for each question: ``qid``, ``docno``, ``score``, ``rank``. What it finds for
            one question must not depend on the others that it is given.
    """

    chosen: Mapping[str, object]
    rank: Callable[[Questions], pd.DataFrame]


@dataclass(frozen=True, eq=False)
class Training:
    """The topics that everything is chosen on.

    Attributes:
        questions: the topics.
        qrels: their judgments, and no others: ``qid``, ``docno``, ``label``.
        part: another system of the report by its name, fitted on the same topics.
        mean: the mean of a fitted system over these topics, of nDCG' on ARQMath.
    """

    questions: Questions
    qrels: pd.DataFrame
    part: Callable[[str], Fitted]
    mean: Callable[[Fitted], float]

    def ranking(self, name: str) -> pd.DataFrame:
        """Return what a part finds for the training topics."""
        return self.part(name).rank(self.questions)


class ProtocolSystem(Protocol):
    """A system that can be measured by the protocol."""

    @property
    def name(self) -> str:
        """The name in every table."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the systems that it is made of, which it is tested against."""

    @property
    def known(self) -> bool:
        """Whether it can search for known items; see :class:`AnswerRow`."""

    @property
    def linked(self) -> bool:
        """Whether it can search for the answers of linked questions; see :class:`AnswerRow`."""

    def fit(self, training: Training) -> Fitted:
        """Choose everything on the training topics."""


@dataclass(frozen=True, eq=False)
class Choice:
    """A grid of settings, of which that with the highest mean nDCG' on the training topics is taken.

    Attributes:
        name: in every table.
        candidates: at least one; of equal ones the first is taken.
        parts: names of the systems that it is made of.
        known: whether it can search for known items.
        linked: whether it can search for the answers of linked questions.
    """

    name: str
    candidates: tuple[Fitted, ...]
    parts: tuple[str, ...] = ()
    known: bool = True
    linked: bool = True

    def fit(self, training: Training) -> Fitted:
        """Choose a candidate."""
        if len(self.candidates) == 1:
            return self.candidates[0]
        return max(self.candidates, key=training.mean)


@dataclass(frozen=True, eq=False)
class Learned:
    """A system that is fitted on judged topics.

    A fusion whose weights are learned::

        def learn(training: Training) -> Fitted:
            parts = [training.part(name) for name in PARTS]
            weights = fit_fusion_weights([part.rank(training.questions) for part in parts], training.qrels)
            fuse = lambda asked: ranked(standard_scores([part.rank(asked) for part in parts]), weights, 1000)
            return Fitted({"weights": weights}, fuse)

        Learned("Ensemble", PARTS, learn)

    Attributes:
        name: in every table.
        parts: names of the systems that it is made of; they are measured, too.
        learn: fits it.
        known: whether it can search for known items.
        linked: whether it can search for the answers of linked questions.
    """

    name: str
    parts: tuple[str, ...]
    learn: Callable[[Training], Fitted] = field(repr=False)
    known: bool = True
    linked: bool = True

    def fit(self, training: Training) -> Fitted:
        """Fit it."""
        return self.learn(training)
