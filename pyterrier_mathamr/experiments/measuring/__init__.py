"""What rankings are worth: measures, paired tests, random orders to compare with, weights of fusions, and time."""

from __future__ import annotations

from .chance import DRAWS, FLOOR, RANDOM_ANSWERS, random_floor, random_known_items
from .comparison import Comparison, NearRandom, compare, near_random, near_random_remark
from .fusion import fitted_weight, fusion_weights
from .rankings import (
    KNOWN_ITEM_MEASURES,
    SHORT_NAMES,
    Rankings,
    evaluate_known_item,
    measure,
    measure_by_topic,
    measured_formulas,
    run_systems,
)
from .significance import ALPHA, PairedTest, paired_test
from .timing import TIMED_QUERIES, Way, time_queries

__all__ = [
    "ALPHA",
    "DRAWS",
    "FLOOR",
    "KNOWN_ITEM_MEASURES",
    "RANDOM_ANSWERS",
    "SHORT_NAMES",
    "TIMED_QUERIES",
    "Comparison",
    "NearRandom",
    "PairedTest",
    "Rankings",
    "Way",
    "compare",
    "evaluate_known_item",
    "fitted_weight",
    "fusion_weights",
    "measure",
    "measure_by_topic",
    "measured_formulas",
    "near_random",
    "near_random_remark",
    "paired_test",
    "random_floor",
    "random_known_items",
    "run_systems",
    "time_queries",
]
