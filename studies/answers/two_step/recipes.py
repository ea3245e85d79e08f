"""What is trained, how long: as published, or scaled down to an hour of a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.systems.two_step import FitOptions


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the models of the study are trained.

    Attributes:
        questions: what QQSim starts from.
        answers: what QASim starts from.
        links: of QQSim on duplicate and related questions.
        duplicates: of QQSim on duplicates alone, after that.
        parts: of the models of bodies, and of linearised titles, after that.
        pairs: of QASim on questions and their own answers, before judgments.
        judgments: of QASim on judgments.
        c: of the ranking SVM.
    """

    questions: str
    answers: str
    links: FitOptions
    duplicates: FitOptions
    parts: FitOptions
    pairs: FitOptions
    judgments: FitOptions
    c: float = 0.01


_MINI = FitOptions(epochs=1, batch_size=32, learning_rate=5e-5, layers=2)
_FULL = FitOptions(epochs=20)

RECIPES: Mapping[str, Recipe] = {
    "mini": Recipe(
        questions="all-MiniLM-L6-v2",
        answers="all-MiniLM-L6-v2",
        links=_MINI,
        duplicates=_MINI,
        parts=_MINI,
        pairs=_MINI,
        judgments=replace(_MINI, epochs=4),
    ),
    "full": Recipe(
        questions="hf:sentence-transformers/distilbert-base-nli-stsb-quora-ranking",
        answers="hf:cross-encoder/ms-marco-TinyBERT-L-6",
        links=_FULL,
        duplicates=_FULL,
        parts=_FULL,
        pairs=replace(_FULL, epochs=1),
        judgments=replace(_FULL, epochs=50),
    ),
}

_OPTIONS = {"epochs", "batch_size", "learning_rate", "layers"}


def recipe_of(preset: str, changes: Mapping[str, Any], seed: int) -> Recipe:
    """Return the recipe of a preset, with the options that were set by hand in all of its trainings."""
    if unknown := [name for name in changes if name not in _OPTIONS]:
        raise ConfigError("set", unknown[0], " or ".join(sorted(_OPTIONS)))
    recipe = RECIPES[preset]
    names = ("links", "duplicates", "parts", "pairs", "judgments")
    return replace(recipe, **{name: replace(getattr(recipe, name), **changes, seed=seed) for name in names})
