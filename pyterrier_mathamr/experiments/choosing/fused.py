"""Fusions whose weights are chosen on the training topics, of any systems of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, pairwise
from math import comb

import pandas as pd

from pyterrier_mathamr.fusion import ranked, standard_scores

from .definition import Choice, Fitted, Questions, Training

STEPS = (20, 10, 5, 4, 3, 2, 1)
MOST = 70
"""Weights of a grid: steps of 1/20 for two systems, of 1/10 for three, of 1/5 for four."""
DEPTH = 1000

Rank = Callable[[Questions], pd.DataFrame]


@dataclass(frozen=True, eq=False)
class Fused:
    """The weighted sum of standard scores, with the weights of the highest mean nDCG' on the training topics.

    Attributes:
        parts: names of at least two systems of the report.
        known: whether all of them can search for known items.
        linked: whether all of them can search for the answers of linked questions.
        weights: of the parts, where they are not to be chosen.
    """

    parts: tuple[str, ...]
    known: bool = True
    linked: bool = True
    weights: tuple[float, ...] | None = None
    _choices: dict[tuple[Fitted, ...], Choice] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The names of the parts."""
        given = f", weights {' : '.join(f'{weight:g}' for weight in self.weights)}" if self.weights else ""
        return " + ".join(self.parts) + given

    def fit(self, training: Training) -> Fitted:
        """Choose the weights, for the parts as they are fitted on the same topics."""
        parts = tuple(training.part(name) for name in self.parts)
        if parts not in self._choices:  # folds that chose the same parts share what was measured
            self._choices[parts] = self._grid(parts)
        return self._choices[parts].fit(training)

    def _grid(self, parts: tuple[Fitted, ...]) -> Choice:
        scores: dict[tuple[str, ...], pd.DataFrame] = {}

        def joined(questions: Questions) -> pd.DataFrame:
            key = (questions.of, *questions.topics["qid"])
            if key not in scores:
                scores.clear()  # all weights are measured on one set of questions, then the chosen one on another
                scores[key] = standard_scores([part.rank(questions) for part in parts])
            return scores[key]

        def candidate(weights: tuple[float, ...]) -> Fitted:
            named = {f"weight of {name}": weight for name, weight in zip(self.parts, weights, strict=True)}
            chosen = {} if self.weights else named
            return Fitted(chosen, lambda questions: ranked(joined(questions), weights, DEPTH))

        grid = [self.weights] if self.weights else weight_grid(len(parts))
        return Choice(self.name, tuple(map(candidate, grid)), self.parts)


@cache
def weight_grid(systems: int) -> Sequence[tuple[float, ...]]:
    """List all weights that sum to 1, in the finest steps that give at most :data:`MOST`."""
    steps = next(steps for steps in STEPS if comb(steps + systems - 1, systems - 1) <= MOST or steps == 1)
    return tuple(tuple(share / steps for share in shares) for shares in _shares(systems, steps))


def _shares(systems: int, steps: int) -> Iterator[tuple[int, ...]]:
    """Split ``steps`` among systems in all ways, by the places of bars between stars."""
    last = steps + systems - 1
    for bars in combinations(range(last), systems - 1):
        edges = (-1, *bars, last)
        yield tuple(after - before - 1 for before, after in pairwise(edges))
