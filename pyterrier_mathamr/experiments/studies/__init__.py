"""Studies: the paper's experiments and our ablations as data, and the one function that runs any of them."""

from __future__ import annotations

from .definition import Cell, Condition, Row, Study, condition
from .published import Figure, Publication, PublishedTable, published
from .recipe import Recipe
from .registry import PRESETS, STUDIES, Preset, find_preset, find_study
from .run import run_study
from .strategies import STRATEGIES, Depth, Strategy

__all__ = [
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
