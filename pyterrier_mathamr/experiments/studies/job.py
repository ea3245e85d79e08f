"""One training run of a study: what is asked for, and what it costs and finds, kept in a folder of its own.

The folder ``runs/<key>`` of the work::

    stages/*.json            settings and cost of each stage
    training/                the state after each epoch, until the model is whole
    model/                   weights, vocabulary, configuration
    cost.json                what training cost
    answers.mathamr          vectors of the answers
    measured-<key>.csv       each measure of each topic by each strategy; with -speed, the time of single queries
    formulas-<key>.csv       the same of Task 2, where the study asks for it

The key is made of the options that differ from the defaults and of the pairs, so that studies share the runs that they
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


@dataclass(frozen=True, slots=True)
class Job:
    """One training run and what is measured of it.

    Attributes:
        collection: a local ARQMath folder.
        workdir: where all is kept.
        config: of the training.
        recipe: which pairs and wrong answers it is trained on.
        pairs: files of pairs from outside the collection that are trained on.
        years: whose topics are searched with.
        strategies: names of the ways to search.
        depth: length of the rankings.
        device: where to compute; ``None`` takes the best there is.
        task2: formulas are searched for, too.
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
        """What the trained model depends on: options that differ from the defaults, recipe, files of pairs."""
        choices = self.recipe.choices()
        if choices.get("pairs") == "collection":  # which is to have no files of pairs
            del choices["pairs"]
        recipe = {f"recipe {name}": value for name, value in choices.items()}
        return {**self.config.choices(), **recipe, "pairs": sorted(file.name for file in self.pairs)}

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.workdir / "runs" / _digest(self.settings)

    @property
    def measured_strategies(self) -> tuple[str, ...]:
        """The strategies that this model has the vectors for."""
        whole = self.config.virtual_nodes != "none"
        return tuple(name for name in self.strategies if whole or not STRATEGIES[name].needs_document)

    @property
    def measurement(self) -> dict[str, Any]:
        """What the measured values depend on, beside the model."""
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
        """The file that says what training cost."""
        return self.folder / "cost.json"

    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.measured.is_file() and (not self.task2 or self.formulas.is_file())

    def to_json(self) -> str:
        """Write the job down for another process."""
        return json.dumps({**dataclasses.asdict(self), "config": self.config.to_dict()}, default=str)

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Read what :meth:`to_json` wrote."""
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
