"""The model of an experiment on a folder: the default one, a given one, or one that a preset trains.

=========  ===============================  ==========================================================================
preset     chosen                           the model
=========  ===============================  ==========================================================================
bundled    unless options are given         the default, which comes with the package; nothing is trained
mini       with options, for fewer than     labels start from word vectors, rows as sums of them (``best/lookup``,
           40,000 pairs                     condition bags)
full       with options, for more           trained as in the paper (Table 4.5)
labels     by its name                      labels are learned only from the pairs: virtual nodes start as means, two
                                            layers, ten times the paper's learning rate (``ablation/layers``)
=========  ===============================  ==========================================================================

The paper trains on about 45,000 pairs. ``docs/archive/models.md`` has the measurements behind the limits.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pyterrier_mathamr.arqmath import TrainingPairs, read_training_pairs, train_on_pairs
from pyterrier_mathamr.extending import ConfigError, MathAMRWarning, NothingToFitError
from pyterrier_mathamr.graph import GraphStore
from pyterrier_mathamr.model import DEFAULT_MODEL, MathAMR, MathAMRConfig, TrainingError, fit_score_weights

from .stages import to_stderr
from .workdir import Artifacts, ModelArtifacts

FULL_PAIRS = 40_000
"""Training pairs from which the paper's settings are chosen. The paper has about 45,000; with 2,669 and 23,531 pairs
other settings were far better (``docs/archive/models.md``)."""


@dataclass(frozen=True, slots=True)
class TrainingPreset:
    """One way to make a model."""

    name: str
    config: MathAMRConfig | None  # None: the bundled model is used
    fitted: bool  # fit the score weights to the validation questions after training
    what: str  # the model in a few words


MEAN: Mapping[str, Any] = {"initialisation": "mean", "learned": "projection"}
"""Virtual nodes start from the mean of their members."""
BEST_LOOKUP: Mapping[str, Any] = {
    **MEAN,
    "features": "words",
    "hidden": 128,
    "projection": 128,
    "bases": 32,
    "layers": 1,
    "node_mask": 0.3,
    "edge_dropout": 0.2,
    "beta": 0.5,
    "batch_size": 128,
    "weight_decay": 0.01,
}
BEST_BAGS: Mapping[str, Any] = {
    **BEST_LOOKUP,
    "word_residual": True,
    "hidden": 256,
    "bases": 16,
    "learned": "none",
    "kind_weights": (0.15, 0.2, 0.0),  # near the weights that are fitted in the end, since training hardly changes them
    "document_blend": 1.0,
    "normalise_scores": False,
    "temperature": 0.04,
    "learning_rate": 1e-3,
}
"""The best options for few pairs, without a text encoder at query time."""
_paper = MathAMRConfig.paper_experiments

TRAINING_PRESETS: Mapping[str, TrainingPreset] = {
    preset.name: preset
    for preset in (
        TrainingPreset("full", MathAMRConfig(), False, "trained with the settings of the paper"),
        TrainingPreset("mini", _paper(**BEST_BAGS, seed=42), True, "for few pairs: labels start from word vectors"),
        TrainingPreset(
            "labels",
            _paper(**MEAN, layers=2, learning_rate=1e-3, seed=42),
            False,
            "for few pairs, without word vectors: labels are learned only from the pairs",
        ),
        TrainingPreset("bundled", None, False, f"nothing is trained, {DEFAULT_MODEL} is used"),
    )
}


def choose_training(preset: str, pairs: int, changes: Mapping[str, Any]) -> tuple[TrainingPreset, str]:
    """Choose how the model is made; return also the reason."""
    names = ("auto", *TRAINING_PRESETS)
    if preset not in names:
        raise ConfigError("preset", preset, f"one of {', '.join(names)}")
    trained = "full" if pairs >= FULL_PAIRS else "mini"
    found = TRAINING_PRESETS[preset if preset != "auto" else trained if changes else "bundled"]
    if found.config is None and changes:
        raise ConfigError("preset", preset, "one that trains a model, whose options --set changes")
    why = "chosen by itself; --model chooses another" if preset == "auto" else "given"
    return found, f"{pairs:,} training pairs: preset {found.name} ({found.what}), {why}"


class Prepared(NamedTuple):
    """The starting point of an experiment."""

    own: ModelArtifacts  # including the artifacts of the collection
    model: MathAMR
    note: str  # how the model was made, for the report
    who: str  # the same in a few words, for each table
    advice: str  # how to improve a system that is near a random order
    choices: Mapping[str, Any]  # settings for the report

    @property
    def shared(self) -> Artifacts:
        return self.own.shared

    def settings(self, **own: Any) -> dict[str, Any]:
        """Describe the subject of a report: the collection, settings of the task, and the model."""
        collection, model = str(self.shared.collection.path), self.model
        return {"collection": collection, **self.choices, **own, "model": model.identity, **model.config.to_dict()}


def years_of(years: int | str | Sequence[int | str]) -> list[str]:
    """Read years: one, several, or several joined by commas."""
    given = str(years).split(",") if isinstance(years, (int, str)) else [str(year) for year in years]
    distinct = list(dict.fromkeys(year.strip() for year in given if year.strip()))
    if not distinct:
        raise ConfigError("years", years, "at least one year")
    return distinct


def prepare(
    path: str | Path,
    workdir: str | Path,
    *,
    model: str | MathAMRConfig | None = None,
    changes: Mapping[str, Any] | None = None,
    verbose: bool,
) -> Prepared:
    """Build the graphs, and open the given model or train one on the collection's training questions.

    A model is trained by a configuration, or by a preset and its ``changes``; by default none is trained.
    """
    given, changes = model or "auto", changes or {}
    by_preset = given in ("auto", *TRAINING_PRESETS)
    if changes and not by_preset:
        raise ConfigError("changes", dict(changes), f"options where a preset trains the model, not with {given!r:.60}")
    say = to_stderr if verbose else None
    shared = Artifacts(path, Path(workdir), say=say, verbose=verbose)
    artifacts = ModelArtifacts(shared, shared.stages, shared.origin, verbose)
    if isinstance(given, str) and not by_preset:
        return _with_model(artifacts, given, f"The model {given} was given; nothing was trained.", {})
    pairs = shared.training_pairs
    if isinstance(given, MathAMRConfig):
        line = f"{pairs:,} training pairs: the configuration was given"
        return _trained(artifacts, given, False, f"{line}.", {"training pairs": pairs})
    chosen, line = choose_training(given, pairs, changes)
    if say is not None:
        say(line)
    choices = {"training pairs": pairs, "preset": chosen.name}
    if chosen.config is None:
        return _with_model(artifacts, DEFAULT_MODEL, f"{line}.", choices)
    return _trained(artifacts, chosen.config.replace(**changes), chosen.fitted, f"{line}.", choices)


def _with_model(artifacts: ModelArtifacts, model: str, note: str, choices: Mapping[str, Any]) -> Prepared:
    better = "" if model == DEFAULT_MODEL else f"the default one (`--model {DEFAULT_MODEL}`), "
    advice = f"Take {better}another model, train one on more pairs (`mathamr train`), or take more topics."
    artifacts.shared.graphs  # noqa: B018  # the first stage
    return Prepared(artifacts, MathAMR.from_pretrained(model), note, f"Model {model}.", advice, choices)


def _trained(
    artifacts: ModelArtifacts, config: MathAMRConfig, fitted: bool, note: str, choices: Mapping[str, Any]
) -> Prepared:
    graphs, path = artifacts.shared.graphs, artifacts.shared.collection.path

    def train(checkpoint: Path) -> MathAMR:
        pairs = read_training_pairs(path)
        model = train_on_pairs([pairs], graphs, config, checkpoint, verbose=artifacts.verbose)
        return _fitted(model, pairs, graphs, artifacts.verbose) if fitted else model

    settings: dict[str, Any] = {"config": config.to_dict()}
    model = artifacts.model({**settings, "fitted": True} if fitted else settings, train)
    number = artifacts.shared.training_pairs
    small = "" if choices.get("preset") in ("mini", "labels") else ", a preset for few pairs (`--model mini`)"
    advice = (
        f"The model may have learned too little from {number:,} pairs: take a trained one (`--model {DEFAULT_MODEL}`)"
        f"{small}, train on more pairs (`mathamr train`), or take more topics (`--years`)."
    )
    who = f"One model, trained on {number:,} pairs with seed {config.training.seed}."
    return Prepared(artifacts, model, note, who, advice, choices)


def _fitted(model: MathAMR, pairs: TrainingPairs, graphs: GraphStore, verbose: bool) -> MathAMR:
    """Fit the score weights to the validation questions; warn if these do not determine any."""
    known = [pair for pair in pairs.validation if pair[0] in graphs and pair[1] in graphs]
    try:
        if known:
            return fit_score_weights(model, known, graphs, verbose=verbose)
        reason = "there are no validation questions."
    except (NothingToFitError, TrainingError) as error:
        reason = str(error)
    warnings.warn(f"the score weights are the preset's: {reason}", MathAMRWarning, stacklevel=2)
    return model
