"""Search with the formula topics of several years: each system, then the fusions, fitted on the other years."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pandas as pd

from pyterrier_mathamr._common.errors import BrokenExtraError, MissingExtraError
from pyterrier_mathamr.experiments.measuring import Missing, Way, random_floor, run_systems
from pyterrier_mathamr.experiments.search import DISTINCT_FORMULAS
from pyterrier_mathamr.experiments.tasks.found import FoundTopics, joined
from pyterrier_mathamr.fusion import ZScoreFusion, fit_fusion_weights, ranked, standard_scores
from studies.formulas.weights import shipped_weights

from .parts import FormulaParts, FormulaSystem, Weights
from .systems import FUSED, FUSIONS, MAKERS


@dataclass
class SearchedYear:
    """What systems find for the topics of a year.

    Attributes:
        parts: of the year.
        ways: each system.
        rankings: what each finds.
        weights: of the systems that have any.
    """

    parts: FormulaParts
    ways: dict[str, Way] = field(default_factory=dict)
    rankings: dict[str, pd.DataFrame] = field(default_factory=dict)
    weights: dict[str, Weights] = field(default_factory=dict)

    def add(self, name: str, way: Way) -> None:
        """Search with a system."""
        system = way.encode >> way.search if way.encode else way.search
        self.rankings |= run_systems({name: system}, self.parts.topics)[0]
        self.ways[name] = way

    def fuse(self, name: str, weights: Weights) -> None:
        """Fuse what systems found, with a weight for each."""
        ways = [self.ways[part] for part in weights]
        encode = next((way.encode for way in ways if way.encode), None)
        values = tuple(weights.values())
        fusion = ZScoreFusion(*(way.search for way in ways), weight=values, num_results=DISTINCT_FORMULAS)
        self.ways[name] = Way(fusion, encode)
        scores = standard_scores([self.rankings[part] for part in weights])
        self.rankings[name] = ranked(scores, values, DISTINCT_FORMULAS)

    def found(self, kind: str) -> FoundTopics:
        """Return what is measured by a kind of judgments."""
        qrels, topics = self.parts.judged[kind], self.parts.topics
        return FoundTopics(self.rankings, topics[topics["qid"].isin(qrels["qid"])], qrels, random_floor(qrels))


@dataclass
class SearchedYears:
    """What systems find for the topics of several years.

    Attributes:
        years: each.
        missing: systems that an extra is missing for.
        weights: fitted on all years together, of the systems that have any.
    """

    years: list[SearchedYear]
    missing: Missing = field(default_factory=dict)
    weights: dict[str, Weights] = field(default_factory=dict)

    def search(self, names: Sequence[str]) -> None:
        """Search with systems, and fuse."""
        for name in names:
            if name in MAKERS:
                try:
                    self._add(name, MAKERS[name])
                except (MissingExtraError, BrokenExtraError) as error:
                    self.missing[name] = error
        for name in names:
            if name in FUSIONS:
                self._fuse(name, [part for part in FUSIONS[name] if part not in self.missing])

    def _add(self, name: str, system: FormulaSystem) -> None:
        """Search with a system, whose weights are fitted on the other years."""
        fit = system.fit
        if fit is not None:
            self._weigh(name, lambda years: fit([year.parts for year in years]))
        for year in self.years:
            year.add(name, system.make(year.parts.weighted(year.weights.get(name, {}))))

    def _fuse(self, name: str, parts: Sequence[str]) -> None:
        """Fuse systems, with equal weights or with those that are fitted on the other years."""

        def fit(years: Sequence[SearchedYear]) -> Weights:
            found = [joined({year.parts.year: year.rankings[part] for year in years}) for part in parts]
            qrels = joined({year.parts.year: year.parts.qrels for year in years})
            return dict(zip(parts, fit_fusion_weights(found, qrels), strict=True))

        if name == FUSED:
            self._weigh(name, fit)
        equal = dict.fromkeys(parts, 1 / len(parts))
        for year in self.years:
            weights = year.weights.get(name, equal)
            year.fuse(name, {part: weights[part] for part in parts})

    def _weigh(self, name: str, fit: Callable[[Sequence[SearchedYear]], Weights]) -> None:
        """Find the weights for each year on all others; of a single year, those that come with the package."""
        if len(self.years) == 1:
            self.years[0].weights[name] = shipped_weights()[name]
            return
        self.weights[name] = fit(self.years)
        for year in self.years:
            year.weights[name] = fit([other for other in self.years if other is not year])
