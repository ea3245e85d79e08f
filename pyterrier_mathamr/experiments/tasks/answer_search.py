"""Search with the topics of Task 1 and with known items: the strategies of MathAMR+, then the other systems."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from pyterrier_mathamr._common.errors import BrokenExtraError, MissingExtraError
from pyterrier_mathamr.experiments.measuring import (
    KNOWN_ITEM_MEASURES,
    RANDOM_ANSWERS,
    Comparison,
    Missing,
    compare,
    fusion_weights,
    random_known_items,
    time_queries,
)
from pyterrier_mathamr.experiments.search import FUSION, TASK1, Search
from studies.answers import AnswerParts
from studies.answers.answer_systems import ChosenAnswers
from studies.trained.job import KNOWN_ITEM

from .found import FoundTopics, pooled
from .preparing import Prepared

SEED = 42
"""Of the other systems that are trained, as of the model."""


@dataclass(eq=False)
class AnswerSearch:
    """Searches with the systems of a table.

    Attributes:
        made: the model and the artifacts.
        chosen: the systems.
        years: of the topics.
        missing: systems that an extra is missing for.
        unfitted: systems that are fitted on the judgments of other years, where there is a single year.
    """

    made: Prepared
    chosen: ChosenAnswers
    years: tuple[str, ...]
    missing: Missing = field(default_factory=dict)

    def __post_init__(self) -> None:
        made, strategies = self.made, {name: TASK1[name] for name in self.chosen.strategies}
        self.search = Search(made.model, made.own.answers(made.model), made.shared.bm25, strategies)
        single = len(self.years) == 1
        self.unfitted = [row.name for row in self.chosen.rows if row.fitted and single]
        preset = "full" if made.choices.get("preset") == "full" else "mini"
        self.parts = AnswerParts(made.shared, self.years[0], self.years, SEED, preset)

    def fit(self) -> pd.DataFrame:
        """Fit the weight of the fusion, and measure each weight; nothing without a fusion."""
        if FUSION not in self.chosen.strategies:
            return pd.DataFrame()
        questions = self.made.shared.questions("validation")
        return fusion_weights(*self.search.fit(questions), questions.qrels)

    def topics(self) -> dict[str, Comparison]:
        """Compare the systems on the topics of all years together, if there are several, and of each."""
        found = {year: self._found(year) for year in self.years}
        chosen = {f"Task 1, {year}": one for year, one in found.items()}
        if len(found) > 1:
            chosen = {f"Task 1, {' and '.join(found)} pooled": pooled(found), **chosen}
        return {caption: compare(*one) for caption, one in chosen.items()}

    def known_items(self) -> Comparison:
        """Search with the test questions for their own answers."""
        found = self.made.shared.questions("test")
        floor = random_known_items(found.qrels, len(self.made.shared.bm25))
        rankings = self._rankings(KNOWN_ITEM)
        return compare(rankings, found.topics, found.qrels, floor, KNOWN_ITEM_MEASURES, floor_name=RANDOM_ANSWERS)

    def times(self) -> pd.DataFrame:
        """Answer topics of the first year one at a time with each strategy of MathAMR+."""
        shared, year = self.made.shared, self.years[0]
        return time_queries(self.search.ways(shared.topic_formulas(year)), shared.topics(year).topics)

    def _found(self, year: str) -> FoundTopics:
        """Search with the topics of a year."""
        shared = self.made.shared
        found, rankings = shared.topics(year), self._rankings(year)
        return FoundTopics(rankings, found.topics[["qid"]], found.qrels, shared.floor(year))

    def _rankings(self, of: str) -> dict[str, pd.DataFrame]:
        """Rank with each system; with known items, with those that can."""
        parts = self.parts.at(of=of)
        found = self.search.rankings(self.search.encode(parts.found))
        for row in self.chosen.rows:
            left_out = row.name in self.missing or row.name in self.unfitted
            if not left_out and (row.known or not parts.known):
                try:
                    found[row.name] = parts.ranking(row)
                except (MissingExtraError, BrokenExtraError) as error:
                    self.missing[row.name] = error
        return found
