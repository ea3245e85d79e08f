"""What the run of one model keeps: the model and its indexes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.experiments.stages import Stages
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex, index_documents
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, TextEncoder

from .collection import Artifacts


@dataclass(frozen=True, eq=False)
class ModelArtifacts:
    """A model and its indexes, in a folder with stages of its own.

    Attributes:
        shared: the collection's artifacts.
        stages: of the folder.
        origin: settings of all stages in addition to the model.
        verbose: show progress bars.
    """

    shared: Artifacts
    stages: Stages
    origin: Mapping[str, Any] = field(default_factory=dict)
    verbose: bool = False

    def model(
        self, settings: Mapping[str, Any], train: Callable[[Path], MathAMR], text: TextEncoder | None = None
    ) -> MathAMR:
        """Train a model, or open it if it is trained."""
        path, checkpoint = self.stages.workdir / "model", self.stages.workdir / "training"

        def build() -> None:
            shutil.rmtree(path, ignore_errors=True)  # of a run whose record was lost
            train(checkpoint).save(path)
            shutil.rmtree(checkpoint)

        self.stages.run("train", path, {**self.origin, **settings}, build, update=_with_todays_options)
        return MathAMR.from_pretrained(path, text=text)

    def answers(self, model: MathAMR) -> MathAMRIndex:
        """Encode and index the answers."""
        index, graphs = MathAMRIndex(self.stages.workdir / "answers.mathamr"), self.shared.graphs
        docnos = self.shared.bm25.snapshot()
        self.stages.run(
            "index",
            index.path,
            {**self.origin, "model": model.identity},
            lambda: index_documents(docnos, graphs, model, index, verbose=self.verbose),
        )
        return index

    def formulas(self, model: MathAMR) -> MathAMRFormulaIndex:
        """Encode all posts and index the vectors of their formulas."""
        index, graphs = MathAMRFormulaIndex(self.stages.workdir / "formulas.mathamr"), self.shared.graphs
        visual_ids = self.shared.formulas
        self.stages.run(
            "formula-index",
            index.path,
            {**self.origin, "model": model.identity},
            lambda: index_documents(graphs.ids(), graphs, model, index, verbose=self.verbose, visual_ids=visual_ids),
        )
        return index


def _with_todays_options(settings: dict[str, Any]) -> dict[str, Any]:
    """Convert a recorded configuration to today's options: drop removed ones, set new ones to their defaults."""
    if "config" not in settings:
        return settings
    try:
        return {**settings, "config": json.loads(MathAMRConfig.from_dict(settings["config"]).to_json())}
    except ConfigError:  # a removed option had another value than its default
        return settings
