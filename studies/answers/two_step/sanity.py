"""Whether QASim learns from judgments what it is meant to: the same with permuted judgments must learn nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pyterrier_mathamr.systems.two_step.qasim.losses import Example, split_folds
from studies.answers.parts import AnswerParts

from .models import answer_model_path, judged_examples

if TYPE_CHECKING:
    from studies.answers.definition import Outcome


def sanity_table(outcome: Outcome) -> pd.DataFrame:
    """Compare the least loss on the held-out fold of models that were trained on judgments and on permuted ones."""
    lines = []
    for year in outcome.years:
        of_seeds = [outcome.parts.at(of=year, seed=seed) for seed in outcome.seeds]
        lines.append(
            {
                "trained on": " and ".join(of_seeds[0].other_years),
                "held-out loss, chance": chance(of_seeds[0]),
                "held-out loss": float(np.mean([_least(parts) for parts in of_seeds])),
                "held-out loss, permuted": _least(of_seeds[0], permuted=True),
            }
        )
    return pd.DataFrame(lines)


def chance(parts: AnswerParts) -> float:
    """Compute the cross-entropy of the held-out fold for the mean target of the others."""
    examples = [Example(*example) for example in judged_examples(parts)]
    training, held_out = split_folds(examples, 10)
    mean = float(np.clip(np.mean([example.target for example in training]), 1e-6, 1 - 1e-6))
    targets = np.array([example.target for example in held_out])
    return float(-(targets * np.log(mean) + (1 - targets) * np.log(1 - mean)).mean())


def _least(parts: AnswerParts, *, permuted: bool = False) -> float:
    history = json.loads((answer_model_path(parts, permuted=permuted) / "history.json").read_text())
    return float(min(epoch["validation"] for epoch in history))
