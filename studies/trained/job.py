"""One training run of a study: its settings, and the files of what it costs and finds.

The folder ``runs/<key>`` of the work::

    stages/*.json            settings and cost of each stage
    training/                the training state, until the model is saved
    model/                   weights, vocabulary, configuration
    cost.json                what training cost
    answers.mathamr          vectors of the answers
    measured-<key>.csv       each measure of each topic by each strategy; with -speed, the times of single queries
    formulas.mathamr         vectors of the formulas of all posts, and
    formulas-<key>.csv       each measure of each formula topic, if the study measures Task 2

The key is a hash of the pairs and of the options that differ from the defaults, so studies share the runs that they
have in common.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyterrier_mathamr.experiments.search import STRATEGIES, Depth
from pyterrier_mathamr.model import MathAMRConfig

from .definition import Recipe

KNOWN_ITEM = "known item"
FORMULAS = "formula vectors"


def formula_label(year: str) -> str:
    """Name the formula topics of a year among the topics of all results."""
    return f"{year}, formulas"


@dataclass(frozen=True, slots=True)
class Job:
    """One training run and what is measured of it.

    Attributes:
        collection: a local ARQMath folder.
        workdir: where all is kept.
        config: of the training.
        recipe: which pairs and negatives it is trained on.
        pairs: files of pairs from outside the collection that are trained on.
        years: of the topics.
        strategies: names of the ways to search.
        depth: length of the rankings.
        device: where to compute; ``None`` is the best available.
        task2: Task 2 is measured, too.
    """

    collection: Path
    workdir: Path
    config: MathAMRConfig
    recipe: Recipe
    pairs: tuple[Path, ...]
    years: tuple[str, ...]
    strategies: tuple[str, ...]
    depth: Depth
    device: str | None = None
    task2: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """What the model depends on: options that differ from the defaults, recipe, files of pairs."""
        choices = self.recipe.choices()
        if choices.get("pairs") == "collection":  # the same as no files of pairs
            del choices["pairs"]
        recipe = {f"recipe {name}": value for name, value in choices.items()}
        return {**self.config.choices(), **recipe, "pairs": sorted(file.name for file in self.pairs)}

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.workdir / "runs" / _digest(self.settings)

    @property
    def measured_strategies(self) -> tuple[str, ...]:
        """The strategies that this model has vectors for."""
        whole = self.config.virtual_nodes != "none"
        return tuple(name for name in self.strategies if whole or not STRATEGIES[name].needs_document)

    @property
    def measurement(self) -> dict[str, Any]:
        """What the measured values depend on, in addition to the model."""
        return {
            "years": list(self.years),
            "strategies": list(self.measured_strategies),
            "depth": dataclasses.asdict(self.depth),
        }

    @property
    def measured(self) -> Path:
        """The file of the measured values."""
        return self.folder / f"measured-{_digest(self.measurement)}.csv"

    @property
    def speed(self) -> Path:
        """The file of the times of single queries."""
        return self.measured.with_name(f"{self.measured.stem}-speed.csv")

    @property
    def formulas(self) -> Path:
        """The file of the measured values of Task 2."""
        return self.folder / f"formulas-{_digest({'years': list(self.years)})}.csv"

    @property
    def cost(self) -> Path:
        """The file of what training cost."""
        return self.folder / "cost.json"

    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.measured.is_file() and (not self.task2 or self.formulas.is_file())

    def to_json(self) -> str:
        """Serialise the job for another process."""
        return json.dumps({**dataclasses.asdict(self), "config": self.config.to_dict()}, default=str)

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Read the result of :meth:`to_json`."""
        fields = json.loads(text)
        return cls(
            collection=Path(fields["collection"]),
            workdir=Path(fields["workdir"]),
            config=MathAMRConfig.from_dict(fields["config"]),
            recipe=Recipe(**fields["recipe"]),
            pairs=tuple(map(Path, fields["pairs"])),
            years=tuple(fields["years"]),
            strategies=tuple(fields["strategies"]),
            depth=Depth(**fields["depth"]),
            device=fields["device"],
            task2=fields["task2"],
        )


def _digest(settings: Mapping[str, Any]) -> str:
    """Name settings by 12 hexadecimal digits."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


Jobs = dict[tuple[str, int], Job]
"""The runs of a study by condition and seed."""
