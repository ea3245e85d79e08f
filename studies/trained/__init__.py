"""Studies: ways to train compared in one table, such as the tables of the MathAMR+ paper.

::

    definition ─▶ paper, ablations ─▶ registry      studies and presets as data
                                         ▼
                                     study_run      from a study to its report
                                         │
          ┌──────────────────────────────┴───┐
          ▼                                  ▼
    job ─▶ workers ─▶ job_run ── files ─▶ results ─▶ tables ─▶ reporting
           processes  train, index, measure          means, tests, costs
           spread: the same on the nodes of a cluster
"""

from __future__ import annotations

from pyterrier_mathamr.experiments.reporting.published import Figure, Publication, PublishedTable, published
from pyterrier_mathamr.experiments.search import STRATEGIES, Depth, Strategy

from .definition import Cell, Condition, Recipe, Row, Study, condition
from .registry import FULL_PAIRS, PRESETS, STUDIES, Preset, find_preset, find_study
from .study_run import run_study

__all__ = [
    "FULL_PAIRS",
    "PRESETS",
    "STRATEGIES",
    "STUDIES",
    "Cell",
    "Condition",
    "Depth",
    "Figure",
    "Preset",
    "Publication",
    "PublishedTable",
    "Recipe",
    "Row",
    "Strategy",
    "Study",
    "condition",
    "find_preset",
    "find_study",
    "published",
    "run_study",
]
