"""A study as data: its conditions, the rows of its table with their baselines, and where they were published."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import LinkedQuestions
from pyterrier_mathamr.experiments.search import COLBERT, EQUAL_FUSION, STRATEGIES, TASK1
from pyterrier_mathamr.experiments.training.negatives import Miner
from pyterrier_mathamr.model import MathAMRConfig

SEEDS = (42, 43, 44, 45, 46)
"""The paper trains with five seeds and names one of them, 42 (Table 4.15); the others are ours."""

STANDARD = (*(strategy.name for strategy in TASK1.values()), EQUAL_FUSION)
"""The strategies that are measured for every condition."""

PairSources = Literal["all", "collection", "first"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The data of a training run.

    Attributes:
        pairs: ``all``; those of the ``collection`` only; or those from outside in the ``first`` epochs
            (``first_epochs``) and those of the collection in the others.
        negatives: what mines hard negatives (``hard_negatives`` of them), or ``none``; ``model`` is a model that is
            trained with the same configuration without hard negatives.
        links: linked questions that are also trained on as pairs.
        fitted: after training, fit the weights of the kinds of rows and of the document vector to the validation
            questions.
    """

    pairs: PairSources = "all"
    negatives: Miner | Literal["none"] = "none"
    links: LinkedQuestions = "none"
    fitted: bool = False

    def choices(self) -> dict[str, Any]:
        """Return the values that differ from the defaults."""
        usual = Recipe()
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != getattr(usual, field.name)
        }


_PLAIN_RECIPE = Recipe()

Settings = Literal["experiments", "benchmark"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One way to train.

    Attributes:
        name: as in the table.
        changes: options that differ from the study's settings, with their values.
        recipe: which pairs and negatives it is trained on.
    """

    name: str
    changes: tuple[tuple[str, Any], ...] = ()
    recipe: Recipe = field(default_factory=Recipe)


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
    """One row of a study's table: a condition searched in one way.

    Attributes:
        condition: its name.
        strategy: its name.
        against: condition and strategy of the row that this one is tested against, or ``None``.
        published: where the paper has the nDCG' of this row, or ``None``.
    """

    condition: str
    strategy: str = COLBERT
    against: tuple[str, str] | None = None
    published: Cell | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Condition and strategy."""
        return self.condition, self.strategy


@dataclass(frozen=True, slots=True)
class Study:
    """One table, or several of the same experiment.

    Attributes:
        name: by which it is run, such as ``paper/4.6``.
        title: one line.
        conditions: each is trained once for each seed.
        rows: of the table, in order.
        tables: numbers of the paper's tables that belong to it.
        settings: the paper's, which conditions change: of its experiments (Table 4.5) or its benchmark run (4.18).
        seeds: of the full run.
        scales_depth: shorten rankings and candidates on a smaller collection, since the study is about them.
        task2: also measure the vectors of single formulas on Task 2, since the study is about them.
    """

    name: str
    title: str
    conditions: tuple[Condition, ...]
    rows: tuple[Row, ...]
    tables: tuple[str, ...] = ()
    settings: Settings = "experiments"
    seeds: tuple[int, ...] = SEEDS
    scales_depth: bool = False
    task2: bool = False

    def __post_init__(self) -> None:
        names = [condition.name for condition in self.conditions]
        keys = [row.key for row in self.rows]
        if len(set(names)) < len(names) or len(set(keys)) < len(keys):
            raise ConfigError("conditions", self.name, "each condition and each row once")
        for row in self.rows:
            if row.condition not in names or row.strategy not in STRATEGIES:
                raise ConfigError("rows", row.key, f"conditions and strategies of study {self.name}")
            if row.against is not None and (row.against not in keys or row.against == row.key):
                raise ConfigError("against", row.against, f"another row of study {self.name}")

    @property
    def strategies(self) -> tuple[str, ...]:
        """Every strategy that is measured: the standard ones and those of the rows, in the order of ``STRATEGIES``."""
        wanted = {*STANDARD, *(row.strategy for row in self.rows)}
        return tuple(name for name in STRATEGIES if name in wanted)

    def config(
        self, condition: Condition, seed: int, changes: Mapping[str, Any] = MappingProxyType({})
    ) -> MathAMRConfig:
        """Return the configuration of one training run.

        Args:
            condition: one of the study's.
            seed: of the run.
            changes: options of a preset, which the condition's own override.

        Raises:
            ConfigError: an option does not exist, or options are incompatible.
        """
        make = MathAMRConfig.paper_benchmark if self.settings == "benchmark" else MathAMRConfig.paper_experiments
        return make(**{**changes, **dict(condition.changes), "seed": seed})
