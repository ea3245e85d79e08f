"""What rankings are worth: topics and judgments, measures, paired tests, random orders, fusions, and time."""

from __future__ import annotations

from .chance import DRAWS, FLOOR, RANDOM_ANSWERS, RANDOM_FORMULAS, random_floor, random_known_items
from .comparison import Comparison, NearRandom, compare, near_random, near_random_remark
from .fusion import fitted_weight, fusion_weights
from .missing import Missing, with_missing
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
from .run_files import DEFAULT_MEASURES, Evaluation, evaluate_runs, read_judgements, read_rankings
from .significance import ALPHA, PairedTest, paired_test
from .timing import TIMED_QUERIES, Way, time_queries

__all__ = [
    "ALPHA",
    "DEFAULT_MEASURES",
    "DRAWS",
    "FLOOR",
    "KNOWN_ITEM_MEASURES",
    "RANDOM_ANSWERS",
    "RANDOM_FORMULAS",
    "SHORT_NAMES",
    "TIMED_QUERIES",
    "Comparison",
    "Evaluation",
    "Missing",
    "NearRandom",
    "PairedTest",
    "Rankings",
    "Way",
    "compare",
    "evaluate_known_item",
    "evaluate_runs",
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
    "read_judgements",
    "read_rankings",
    "run_systems",
    "time_queries",
    "with_missing",
]
