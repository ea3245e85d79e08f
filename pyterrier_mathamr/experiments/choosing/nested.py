"""Run systems fold by fold: fit on the training topics, rank the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import pandas as pd

from pyterrier_mathamr._common.errors import BrokenExtraError, ConfigError, MissingExtraError
from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.experiments.measuring import Missing, measure_by_topic

from .definition import Fitted, ProtocolSystem, Questions, Training
from .folds import Fold

MAIN = TASK1_MEASURES[0]
"""nDCG', by which everything is chosen on ARQMath."""


class Nested:
    """Fits systems on training topics; what they find for the other topics is all that comes out."""

    def __init__(
        self, systems: Sequence[ProtocolSystem], questions: Questions, qrels: pd.DataFrame, measure: Any = MAIN
    ) -> None:
        self.systems = {system.name: system for system in systems}
        self.questions, self._qrels, self._measure = questions, qrels, measure
        self.missing: Missing = {}
        self._values: Callable[[Fitted], pd.Series[float]] = cache(self._measured)
        before: set[str] = set()
        for system in systems:
            if not before.issuperset(system.parts):
                raise ConfigError("parts", system.parts, f"systems before {system.name!r}: {'; '.join(before)}")
            before.add(system.name)

    def fit(self, qids: frozenset[str]) -> dict[str, Fitted]:
        """Fit all systems on some topics; one that an extra is missing for is left out, with what is made of it."""
        questions = self.questions.only(qids)
        fitted: dict[str, Fitted] = {}
        training = Training(
            questions,
            questions.kept(self._qrels),
            fitted.__getitem__,
            partial(self._mean, list(questions.topics["qid"])),
        )
        for name, system in self.systems.items():
            lacking = [self.missing[part] for part in (name, *system.parts) if part in self.missing]
            try:
                if lacking:
                    raise lacking[0]
                one = system.fit(training)
                if len(system.parts) == 0:
                    one.rank(questions)  # an extra may be missing only now
                fitted[name] = one
            except (MissingExtraError, BrokenExtraError) as error:
                self.missing[name] = error
        return fitted

    def run(self, folds: Sequence[Fold]) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
        """Fit on the training topics of each fold, and rank its test topics."""
        found: dict[str, list[pd.DataFrame]] = {name: [] for name in self.systems}
        chosen = []
        for fold in folds:
            asked = self.questions.only(fold.test)
            for name, fitted in self.fit(fold.training).items():
                found[name].append(asked.kept(fitted.rank(asked)))
                if fitted.chosen:
                    chosen.append((fold.name, name, described(fitted.chosen)))
        rankings = {name: pd.concat(parts) for name, parts in found.items() if len(parts) == len(folds)}
        return rankings, pd.DataFrame(chosen, columns=["fold", "system", "chosen"])

    def _mean(self, qids: list[str], fitted: Fitted) -> float:
        return float(self._values(fitted)[qids].mean())

    def _measured(self, fitted: Fitted) -> pd.Series[float]:
        """Measure a candidate on all topics, by qid, 0 where nothing judged was found."""
        topics = self.questions.topics
        values = measure_by_topic({"": fitted.rank(self.questions)}, topics, self._qrels, [self._measure])
        by_topic: pd.Series[float] = values.set_index("qid")["value"].reindex(topics["qid"]).fillna(0.0)
        return by_topic


def described(chosen: Mapping[str, object]) -> str:
    """Write what was chosen in one line, such as ``k1 2, b 1``."""
    return ", ".join(f"{name} {f'{value:g}' if isinstance(value, float) else value}" for name, value in chosen.items())
