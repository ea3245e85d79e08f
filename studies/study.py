"""A study as data: its conditions, seeds and baselines, and where it was published.

::

    Study ── run_study ──▶ Setting ── measure ──▶ Outcome ── report ──▶ studies/<name> of the work folder

    of models     conditions, each a way to train MathAMR+ or In+Out, times the ways to search with the trained model
    of answers    systems of Task 1
    of formulas   In+Out; of contexts: MathAMR with Sentence-BERT
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from mathamr_systems.experiments.measuring import Missing
from mathamr_systems.experiments.preparing import FULL_PAIRS
from mathamr_systems.experiments.stages import ExperimentError
from mathamr_systems.experiments.systems import COLBERT, ONCE, AnswerParts, AnswerSystem
from mathamr_systems.experiments.workdir import Artifacts
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.running.processes import Executor
from pyterrier_mathamr.arqmath import LinkedQuestions
from pyterrier_mathamr.arqmath.from_sources import Miner

from .tables import REFERENCE, Key, Results

Kind = Literal["models", "answers", "formulas", "contexts"]
Settings = Literal["experiments", "benchmark"]
PairSources = Literal["all", "collection", "first"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The data of a training run."""

    # all; only the collection's; or outside pairs in the first epochs (first_epochs) and the collection's in the others
    pairs: PairSources = "all"
    # what mines hard negatives (hard_negatives of them), or none; model is a model that is trained with the same
    # configuration without hard negatives
    negatives: Miner | Literal["none"] = "none"
    links: LinkedQuestions = "none"  # linked questions that are also trained on as pairs
    # after training, fit the weights of the kinds of rows and of the document vector to the validation questions
    fitted: bool = False

    def choices(self) -> dict[str, Any]:
        """Return the values that differ from the defaults."""
        usual, own = dataclasses.asdict(Recipe()), dataclasses.asdict(self)
        return {name: value for name, value in own.items() if value != usual[name]}


@dataclass(frozen=True, slots=True)
class Condition:
    """One way to train: options that differ from the study's settings, and the pairs and negatives trained on."""

    name: str
    changes: tuple[tuple[str, Any], ...] = ()
    recipe: Recipe = field(default_factory=Recipe)


_PLAIN_RECIPE = Recipe()


def condition(name: str, recipe: Recipe = _PLAIN_RECIPE, **changes: Any) -> Condition:
    """Define a condition."""
    return Condition(name, tuple(changes.items()), recipe)


@dataclass(frozen=True, slots=True)
class Cell:
    """Where a figure was published: table, row and column, as printed."""

    table: str
    row: str
    column: str = "nDCG'"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a study's table: a condition searched by one system."""

    condition: str
    system: str = COLBERT
    against: Key | None = None  # condition and system of the row that this one is tested against, or None
    published: Cell | None = None  # where the paper has the nDCG' of this row, or None

    @property
    def key(self) -> Key:
        """Condition and system."""
        return self.condition, self.system


@dataclass(frozen=True, eq=False)
class Study:
    """One table, or several of the same runs."""

    name: str  # for the command line, such as paper/4.6
    title: str
    # how it is measured: models of MathAMR+, systems that find answers, models of formulas or of their contexts
    kind: Kind = "models"
    conditions: tuple[Condition, ...] = ()  # ways to train, each with each seed
    rows: tuple[Row, ...] = ()  # of the table; by default each condition by ColBERT-style search
    # of an answer study. Its common systems come first; a system with the name of a common one replaces it.
    systems: tuple[AnswerSystem, ...] = ()
    seeds: tuple[int, ...] = (42, 43, 44)  # of the full run
    published: tuple[tuple[str, tuple[str, ...]], ...] = ()  # where its tables were printed: publication and numbers
    notes: tuple[str, ...] = ()  # sentences to be read with its tables
    # further tables by their captions, made from the outcome
    more: Callable[[Outcome], Mapping[str, pd.DataFrame]] | None = None
    about: Mapping[str, str] = field(default_factory=dict)  # caption to the description of such a table
    # of models, the paper's: from its experiments (Table 4.5) or its benchmark run (4.18)
    settings: Settings = "experiments"
    scales_depth: bool = False  # shorten rankings and candidates on a smaller collection, since the study is about them
    task2: bool = False  # also measure the vectors of single formulas on Task 2, since the study is about them
    against: str | None = None  # of formula models, the condition that all others are tested against; None for Tangent
    combinations: tuple[Any, ...] = ()  # of formula models, how the scores of both graphs are combined
    formulas: int | None = None  # how many formulas are trained on at most; None for all

    def __post_init__(self) -> None:
        if not self.rows:
            object.__setattr__(self, "rows", tuple(Row(one.name) for one in self.conditions))
        names = self.compared
        keys = [row.key for row in self.rows]
        if len(set(names)) < len(names) or len(set(keys)) < len(keys):
            raise ConfigError("conditions", self.name, "each condition, system and row once")
        for row in self.rows:
            if row.condition not in names:
                raise ConfigError("rows", row.key, f"conditions of study {self.name}")
            if row.against is not None and (row.against not in keys or row.against == row.key):
                raise ConfigError("against", row.against, f"another row of study {self.name}")

    @property
    def compared(self) -> list[str]:
        """The names of the compared systems."""
        return [*(one.name for one in self.conditions), *(one.name for one in self.systems)]


def all_systems(study: Study, common: Sequence[AnswerSystem]) -> tuple[AnswerSystem, ...]:
    """Return the systems of an answer study: the common ones, then its own."""
    systems = {system.name: system for system in (*common, *study.systems)}
    for system in systems.values():
        for name in system.against:
            if name not in systems:
                raise ConfigError("against", name, f"a system of {study.name}: {'; '.join(systems)}")
    return tuple(systems.values())


def baselines(system: AnswerSystem, words: str) -> tuple[str, ...]:
    """List the baselines of a system, first the BM25 that all are tested against."""
    return tuple(name for name in dict.fromkeys((words, *system.against)) if name != system.name)


@dataclass(frozen=True, slots=True)
class Preset:
    """The scale at which a study is run."""

    name: str
    changes: tuple[tuple[str, Any], ...]  # options that differ from the study's settings
    seeds: tuple[int, ...] | None  # instead of the study's, or None
    scales_depth: bool  # shorten rankings and candidates with the collection in studies of search
    why: str  # what differs from the paper, for the notes of the report


PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("full", (), None, False, "Settings and seeds as in the paper."),
        Preset(
            "mini",
            (("learning_rate", 1e-3),),
            (42, 43, 44),
            True,
            "Scaled down for a small collection: a learning rate of 1e-3 instead of 1e-4, since 7 epochs of 2,700 "
            "pairs are 600 steps where the paper has 9,800; three seeds instead of five; and in the studies of search, "
            "rankings and candidates are the same share of the collection as in the paper, whose index has 33,771 "
            "answers. Everything else is as in Table 4.5 (or 4.18).",
        ),
    )
}


def find_preset(name: str, pairs: int = 0) -> Preset:
    """Look up a preset."""
    if name == "auto":
        return PRESETS["full" if pairs >= FULL_PAIRS else "mini"]
    if name not in PRESETS:
        raise ConfigError("preset", name, "one of " + ", ".join(map(repr, ("auto", *PRESETS))) + " for a study")
    return PRESETS[name]


@dataclass(frozen=True, eq=False)
class Setting:
    """One run of a study on a collection."""

    study: Study
    shared: Artifacts
    years: tuple[str, ...]
    seeds: tuple[int, ...]
    preset: Preset
    changes: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 1
    executor: Executor | None = None
    device: str | None = None

    @property
    def folder(self) -> Path:
        """Where the report is written."""
        return self.shared.workdir / "studies" / self.study.name.replace("/", "-")

    def say(self, text: str) -> None:
        """Report on stderr, unless the run is quiet."""
        if self.shared.say is not None:
            self.shared.say(text)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The results of a study."""

    setting: Setting
    results: Results  # values by topic, of everything that was measured and of random orders
    systems: tuple[AnswerSystem, ...] = ()  # of an answer study, all in order, also systems that could not be measured
    missing: Missing = field(default_factory=dict)  # systems that an extra is missing for
    failed: Mapping[tuple[str, int], str] = field(default_factory=dict)  # why runs failed, by condition and seed
    extra: Any = None  # data for the report that only this kind of study has

    @property
    def parts(self) -> AnswerParts:
        """The artifacts for systems of the first year; ``parts.at(of=…, seed=…)`` has the others."""
        parts: AnswerParts = self.extra
        return parts

    def measured(self, *, known: bool = False) -> list[AnswerSystem]:
        """List the systems that were measured on the topics of all years, or on known items."""
        return [one for one in self.systems if one.name not in self.missing and (one.known or not known)]

    def ranking(self, name: str, of: str, seed: int = ONCE) -> pd.DataFrame:
        """Return the ranking of a system of an answer study: ``qid``, ``docno``, ``score``, ``rank``."""
        return self.parts.at(of=of, seed=seed).ranking(next(one for one in self.systems if one.name == name))


class RunsFailedError(ExperimentError):
    """Some runs of a study failed; the results of the others are kept."""

    folder: Path
    reasons: Mapping[tuple[str, int], str]
    template = "{count} runs failed: {runs}."
    advice = "The report on the other runs is in {folder}; the same command retries the failed runs."

    @property
    def count(self) -> int:
        """How many runs failed."""
        return len(self.reasons)

    @property
    def runs(self) -> str:
        """The runs that failed, each with its reason."""
        return "; ".join(f"{name!r} with seed {seed}: {why}" for (name, seed), why in self.reasons.items())


def reference(name: str) -> Key:
    """Return by what :class:`Results` finds a system that depends on no condition."""
    return REFERENCE, name
