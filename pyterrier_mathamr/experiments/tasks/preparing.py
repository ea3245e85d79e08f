"""What Task 1 and Task 2 share: the graphs of a collection, and a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.experiments.artifacts import Artifacts, ModelArtifacts
from pyterrier_mathamr.experiments.sources import read_training_pairs
from pyterrier_mathamr.experiments.stages import to_stderr
from pyterrier_mathamr.experiments.training import train_on_pairs
from pyterrier_mathamr.model import MathAMR, MathAMRConfig


def prepared(
    path: str | Path, workdir: str | Path, config: MathAMRConfig | None, model: str | None, verbose: bool
) -> tuple[ModelArtifacts, MathAMR]:
    """Build the graphs, and train a model on the collection's training questions or open the given one."""
    if model is not None and config is not None:
        raise ConfigError("config", "a configuration", "either config= (to train a model) or model= (to use one)")
    shared = Artifacts(path, Path(workdir), say=to_stderr if verbose else None, verbose=verbose)
    own, graphs = ModelArtifacts(shared, shared.stages, shared.origin, verbose), shared.graphs
    if model is not None:
        return own, MathAMR.from_pretrained(model)
    chosen = config or MathAMRConfig()

    def train(checkpoint: Path) -> MathAMR:
        return train_on_pairs([read_training_pairs(path)], graphs, chosen, checkpoint, verbose=verbose)

    return own, own.model({"config": chosen.to_dict()}, train)


def described(shared: Artifacts, model: MathAMR, own: dict[str, Any]) -> dict[str, Any]:
    """Describe what a report is of: the collection, settings of the task, and the model."""
    return {"collection": str(shared.collection.path), **own, "model": model.identity, **model.config.to_dict()}
