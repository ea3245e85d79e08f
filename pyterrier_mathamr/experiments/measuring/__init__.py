"""What rankings are worth: measures, paired tests, random orders to compare with, weights of fusions."""

from __future__ import annotations

from .chance import DRAWS, random_floor
from .fusion import fitted_weight, fusion_weights
from .rankings import (
    KNOWN_ITEM_MEASURES,
    Rankings,
    evaluate_known_item,
    measure,
    measure_by_topic,
    measured_formulas,
    run_systems,
)
from .significance import ALPHA, PairedTest, paired_test

__all__ = [
    "ALPHA",
    "DRAWS",
    "KNOWN_ITEM_MEASURES",
    "PairedTest",
    "Rankings",
    "evaluate_known_item",
    "fitted_weight",
    "fusion_weights",
    "measure",
    "measure_by_topic",
    "measured_formulas",
    "paired_test",
    "random_floor",
    "run_systems",
]
