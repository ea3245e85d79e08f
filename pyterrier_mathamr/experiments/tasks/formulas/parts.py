"""What the systems of Task 2 are made of: a collection, a model, the topics of a year, and weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.experiments.artifacts import Artifacts
from pyterrier_mathamr.experiments.measuring import Way
from pyterrier_mathamr.experiments.measuring.topics import formula_topics, visual_judgments
from pyterrier_mathamr.experiments.tasks.found import joined
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.index import MathAMRFormulaIndex
from pyterrier_mathamr.model import MathAMR

Weights = Mapping[str, float]
"""By the name of a feature, or of a system in a fusion."""


@dataclass(frozen=True)
class FormulaParts:
    """What a system is made of for the topics of a year.

    Attributes:
        shared: the artifacts of the collection.
        model: encodes queries.
        index: the vectors of formulas.
        year: of the topics.
        weights: of a system that is fitted; never on this year's judgments.
        found: what was found to fit weights on, which several other years are fitted on.
    """

    shared: Artifacts
    model: MathAMR
    index: MathAMRFormulaIndex
    year: str
    weights: Weights = field(default_factory=dict)
    found: dict[Callable[[FormulaParts], pt.Transformer], pd.DataFrame] = field(default_factory=dict, repr=False)

    @cached_property
    def trees(self) -> FormulaStore:
        """The official trees of the topics' formulas."""
        return self.shared.topic_formulas(self.year)

    @cached_property
    def judged(self) -> dict[str, pd.DataFrame]:
        """The judgments by their kind; see :func:`visual_judgments`."""
        return visual_judgments(self.shared.collection, self.year, self.shared.formulas, self.shared.visual_ids)

    @property
    def qrels(self) -> pd.DataFrame:
        """The judgments to fit weights on: by visual ids, where there are such."""
        return self.judged.get("visual ids", next(iter(self.judged.values())))

    @cached_property
    def topics(self) -> pd.DataFrame:
        """The topics with a relevant formula, by any kind of judgments."""
        topics = formula_topics(self.shared.collection, self.year)
        return topics[topics["qid"].isin(pd.concat(self.judged.values())["qid"])].reset_index(drop=True)

    def weighted(self, weights: Weights) -> FormulaParts:
        """Return the same with weights."""
        return replace(self, weights=weights)


@dataclass(frozen=True, slots=True)
class FormulaSystem:
    """A row of the table.

    Attributes:
        make: the system for the topics of a year. Where an extra is missing, it or its search raises
            ``MissingExtraError``, and the row says so.
        fit: for a system with weights, finds them on the topics of years other than the one they are used for.
    """

    make: Callable[[FormulaParts], Way]
    fit: Callable[[Sequence[FormulaParts]], Weights] | None = None


def examples(
    years: Sequence[FormulaParts], candidates: Callable[[FormulaParts], pt.Transformer]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rank the formulas of topics to fit weights on."""
    for parts in years:
        if candidates not in parts.found:
            parts.found[candidates] = candidates(parts)(parts.topics)
    rankings = {parts.year: parts.found[candidates] for parts in years}
    found = joined({year: ranking.assign(docno=ranking["visual_id"]) for year, ranking in rankings.items()})
    return found.reset_index(drop=True), joined({parts.year: parts.qrels for parts in years})
