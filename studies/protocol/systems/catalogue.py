"""The systems of Task 1 by their names, as the protocol measures them: each with what there is to choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from pyterrier_mathamr._common.errors import BrokenExtraError, ConfigError, MissingExtraError
from pyterrier_mathamr.experiments.choosing.definition import Choice, Fitted, Learned, ProtocolSystem, Questions
from pyterrier_mathamr.experiments.choosing.fused import Fused
from pyterrier_mathamr.experiments.choosing.strategies import SHIPPED, ModelSystems
from pyterrier_mathamr.experiments.search import BM25, COLBERT, FUSION, TASK1
from pyterrier_mathamr.experiments.tasks.preparing import Prepared
from pyterrier_mathamr.fusion import fuse_rankings
from studies.answers import AnswerParts, AnswerRow
from studies.answers.answer_systems import ALL, ANSWER_SYSTEMS
from studies.answers.rows.best_formula import IN_OUT_ROW
from studies.answers.rows.common import MATHAMR_ROW, SMALL_ROW
from studies.answers.rows.with_question import QUESTION_ROWS
from studies.answers.two_step.rows import QQSIM
from studies.protocol.costs import Cost, cost_of, kept_cost
from studies.protocol.material import Material

from .ensembles import ensembles

PLUS = " + "

_MORE = (IN_OUT_ROW, MATHAMR_ROW, *QUESTION_ROWS, QQSIM)
ROWS: Mapping[str, AnswerRow] = {**ANSWER_SYSTEMS, **{row.name: row for row in _MORE}}
WEIGHED = f"{FUSION}, weight of validation questions"
"""The fusion of Task 1: nothing is chosen on judged topics."""
LEARNED: dict[str, Learned] = ensembles()
"""Systems that are fitted on the training topics, beside fusions, by their names."""


def chosen_systems(names: Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """Choose systems, their parts included, each after its parts."""
    chosen: dict[str, tuple[str, ...]] = {BM25: (), SHIPPED: ()}
    every = [*TASK1, *ROWS, *LEARNED]
    for asked in names or TASK1:
        for name in every if asked.strip().lower() == ALL else [asked]:
            found = _known(name)
            parts = LEARNED[found[0]].parts if found[0] in LEARNED else found if len(found) > 1 else ()
            for part in parts:
                if part in ROWS and ROWS[part].fitted:
                    what = f"a fusion without {part}, which is fitted on the judgments of the other years"
                    raise ConfigError("systems", name, what)
                chosen.setdefault(part, ())
            chosen.setdefault(PLUS.join(found), parts)
    return chosen


def _known(name: str) -> tuple[str, ...]:
    """Find one system by its name, or several joined by ``+``, which some names have, too."""
    every = (SHIPPED, *TASK1, *ROWS, *LEARNED)
    known = {PLUS.join(_pieces(each)): each for each in every if each != FUSION}
    pieces, found = _pieces(name), list[str]()
    while pieces:
        length = next((end for end in range(len(pieces), 0, -1) if PLUS.join(pieces[:end]) in known), 0)
        if not length:
            raise ConfigError(
                "systems", name, f"{ALL}, or some of: {'; '.join(known.values())}; or several joined by +"
            )
        found.append(known[PLUS.join(pieces[:length])])
        del pieces[:length]
    return tuple(found)


def _pieces(name: str) -> list[str]:
    return [piece.strip().lower() for piece in name.split("+")]


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Makes systems of the artifacts of a work folder.

    Attributes:
        made: the model and the artifacts.
        material: the questions.
        seeds: of other systems that are trained; one of them is chosen.
    """

    made: Prepared
    material: Material
    seeds: tuple[int, ...]

    def systems(self, chosen: Mapping[str, tuple[str, ...]]) -> list[ProtocolSystem]:
        """Make systems."""
        made: dict[str, ProtocolSystem] = {}
        for name, parts in chosen.items():
            if name in LEARNED:
                made[name] = LEARNED[name]
            elif name == WEIGHED:
                made[name] = self._weighed()
            elif parts:
                known = all(made[part].known for part in parts)
                made[name] = Fused(parts, known=known, linked=all(made[part].linked for part in parts))
            else:
                made[name] = self._row(ROWS[name]) if name in ROWS else self._own.system(name)
        return list(made.values())

    def costs(self, chosen: Mapping[str, tuple[str, ...]]) -> dict[str, Cost]:
        """Measure what systems cost, each once in a work folder; without those that an extra is missing for."""
        found: dict[str, Cost] = {}
        for name, parts in chosen.items():
            if not parts:
                cost = self._row_cost(ROWS[name]) if name in ROWS else self._own_cost(name)
                found |= {} if cost is None else {name: cost}
            elif set(parts) <= set(found):
                found[name] = sum((found[part] for part in parts), Cost())
        return found

    def _row_cost(self, row: AnswerRow) -> Cost | None:
        """Measure a system of the answer studies, with what its fusion is made of."""
        if row.fitted:  # it ranks judged answers alone
            return None
        parts = replace(self._parts, live=True, asked=[])

        def measure() -> Cost:
            own = cost_of(row.make(parts), parts.found.topics)
            return sum(filter(None, map(self._row_cost, parts.asked)), own)

        try:
            return kept_cost(parts, row.name, measure, trained=row.trained, **row.settings)
        except (MissingExtraError, BrokenExtraError):
            return None

    def _own_cost(self, name: str) -> Cost:
        """Measure a way to search with the model."""
        shared, year = self.made.shared, self.material.years[0]

        def measure() -> Cost:
            way = self._own.search.ways(shared.topic_formulas(year))[BM25 if name == SHIPPED else name]
            system = way.search if way.encode is None else way.encode >> way.search
            return cost_of(system, shared.topics(year).topics)

        return kept_cost(self._parts, name, measure, model=self.made.model.identity)

    def _weighed(self) -> Choice:
        """Fuse BM25 and the model by the weight that is fitted to the validation questions, as Task 1 does."""
        parts = (SHIPPED, COLBERT)
        words, vectors = (self._own.system(name).candidates[0] for name in parts)

        def rank(questions: Questions) -> pd.DataFrame:
            return fuse_rankings(words.rank(questions), vectors.rank(questions), self._weight)

        return Choice(WEIGHED, (Fitted({}, rank),), parts)

    @cached_property
    def _weight(self) -> float:
        """The weight of the model beside BM25, fitted to the validation questions."""
        self._own.search.fit(self.made.shared.questions("validation"))
        return self._own.search.weight

    def _row(self, row: AnswerRow) -> Choice:
        """Offer a system of the answer studies, with each seed if it is trained and not fitted on other years."""
        chosen = row.trained and not row.fitted and len(self.seeds) > 1
        seeds = self.seeds if chosen else self.seeds[:1]
        candidates = tuple(self._trained(row, seed, chosen) for seed in seeds)
        return Choice(row.name, candidates, known=row.known, linked=row.linked)

    def _trained(self, row: AnswerRow, seed: int, chosen: bool) -> Fitted:
        return self.material.fitted(
            lambda of: self._parts.at(of=of, seed=seed).ranking(row), {"seed": seed} if chosen else {}
        )

    @cached_property
    def _own(self) -> ModelSystems:
        """BM25 and the ways to search with the model."""
        made, shared = self.made, self.made.shared
        return ModelSystems(
            lambda: (made.model, made.own.answers(made.model)),
            lambda: shared.bm25,
            lambda of: self._parts.at(of=of).found,
            self.material.fitted,
        )

    @cached_property
    def _parts(self) -> AnswerParts:
        preset = "full" if self.made.choices.get("preset") == "full" else "mini"
        years = self.material.years
        return AnswerParts(self.made.shared, years[0], years, self.seeds[0], preset)
