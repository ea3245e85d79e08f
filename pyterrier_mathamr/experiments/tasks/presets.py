"""How the model of an experiment on a folder is made, chosen by the number of its training pairs.

=========  ==================  =======================================================================================
preset     pairs               the model
=========  ==================  =======================================================================================
full       from 40,000         trained as in the paper (Table 4.5)
mini       from 2,000          labels start from word vectors, rows as sums of them (``best/lookup``, condition bags)
labels     from 2,000, where   labels are learned from the pairs alone: virtual nodes start as means, two layers, ten
           the extra ``text``  times the paper's learning rate (``ablation/layers``)
           is missing
bundled    fewer               mathamr-plus-mini, which comes with the package; nothing is trained
=========  ==================  =======================================================================================

The paper trains on about 45,000 pairs. ``docs/studies.md`` has the measurements behind the limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.model import MathAMRConfig
from studies.trained import FULL_PAIRS, find_study

TRAINED_PAIRS = 2_000
"""With fewer pairs, the bundled model finds more than one that is trained on them."""
BUNDLED = "mathamr-plus-mini"


@dataclass(frozen=True, slots=True)
class TrainingPreset:
    """One way to make a model.

    Attributes:
        name: of the preset.
        config: of the training, or ``None`` to use the bundled model.
        fitted: fit the score weights to the validation questions after training.
        what: the model in a few words.
    """

    name: str
    config: MathAMRConfig | None
    fitted: bool
    what: str


def _condition(study: str, name: str, **changes: Any) -> MathAMRConfig:
    """Return the configuration of a condition of a study, with the paper's seed."""
    found = find_study(study)
    return found.config(next(one for one in found.conditions if one.name == name), seed=42, changes=changes)


TRAINING_PRESETS: Mapping[str, TrainingPreset] = {
    preset.name: preset
    for preset in (
        TrainingPreset("full", MathAMRConfig(), False, "trained with the settings of the paper"),
        TrainingPreset(
            "mini", _condition("best/lookup", "bags"), True, "for few pairs: labels start from word vectors"
        ),
        TrainingPreset(
            "labels",
            _condition("ablation/layers", "layers = 2", learning_rate=1e-3),
            False,
            "for few pairs, without word vectors: labels are learned from the pairs alone",
        ),
        TrainingPreset("bundled", None, False, f"nothing is trained, {BUNDLED} is used"),
    )
}


def choose_training(preset: str, pairs: int, changes: Mapping[str, Any]) -> tuple[TrainingPreset, str]:
    """Choose how the model is made, and say why."""
    names = ("auto", *TRAINING_PRESETS)
    if preset not in names:
        raise ConfigError("preset", preset, f"one of {', '.join(names)} for an experiment on a folder")
    found = TRAINING_PRESETS[_by_pairs(pairs, bool(changes)) if preset == "auto" else preset]
    if found.config is None and changes:
        raise ConfigError("preset", preset, "one that trains a model, whose options --set changes")
    why = f"chosen by that number{_missing(found)}; --preset or --model choose another" if preset == "auto" else "given"
    return found, f"{pairs:,} training pairs: preset {found.name} ({found.what}), {why}"


def _by_pairs(pairs: int, train: bool) -> str:
    """Choose a preset by the number of pairs."""
    if pairs >= FULL_PAIRS:
        return "full"
    if pairs < TRAINED_PAIRS and not train:
        return "bundled"
    return "mini" if _has_word_vectors() else "labels"


def _has_word_vectors() -> bool:
    """Whether the extra ``text`` is installed, which the word vectors come from."""
    return find_spec("sentence_transformers") is not None


def _missing(found: TrainingPreset) -> str:
    """Say what a better preset needs."""
    return "; mini finds more and needs the extra text-offline" if found.name == "labels" else ""
