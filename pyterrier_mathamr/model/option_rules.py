"""What values each option of a configuration may have: a test, and the words that say it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, TypeGuard

from pyterrier_mathamr._common.types import FORMULA_MODES

_Rule = tuple[Callable[[Any], bool], str]


def _one_of(*values: str) -> _Rule:
    return lambda value: isinstance(value, str) and value in values, " or ".join(map(repr, values))


def _whole(least: int) -> _Rule:
    return (
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least,
        f"a whole number of at least {least}",
    )


def _real(low: float, high: float = math.inf, *, open_low: bool = False, open_high: bool = False) -> _Rule:
    def holds(value: Any) -> bool:
        if not _is_finite(value):
            return False
        return (value > low if open_low else value >= low) and (value < high if open_high else value <= high)

    left = f"above {low:g}" if open_low else f"from {low:g}"
    right = "" if high == math.inf else (f" and below {high:g}" if open_high else f" to {high:g}")
    return holds, f"a number {left}{right}"


def _is_finite(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_weight(value: Any) -> bool:
    return _is_finite(value) and value >= 0


def _are_kind_weights(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("none", "learned")
    return isinstance(value, tuple) and len(value) == 3 and all(map(_is_weight, value))


_FLAG: _Rule = (lambda value: isinstance(value, bool), "True or False")
_COUNT_HOLDS, _COUNT_TEXT = _whole(1)

RULES: dict[str, _Rule] = {
    "formulas": _one_of(*FORMULA_MODES),
    "virtual_nodes": _one_of("hierarchy", "none", "global"),
    "auxiliary": _one_of("none", "sequential", "circular", "full"),
    "initialisation": _one_of("zero", "random", "mean"),
    "learned": _one_of("none", "embedding", "projection", "typed_projection"),
    "aggregation": _one_of("mean", "attention"),
    "layers": _whole(0),
    "hidden": _whole(1),
    "projection": _whole(2),
    "bases": (lambda value: value is None or _COUNT_HOLDS(value), f"None or {_COUNT_TEXT}"),
    "edge_attributes": _FLAG,
    "kind_weights": (_are_kind_weights, "'none', 'learned' or three numbers of at least 0"),
    "document_blend": (
        lambda value: _is_weight(value) or value in ("none", "learned"),
        "'none', 'learned' or a number of at least 0",
    ),
    "features": _one_of("lookup", "words", "text"),
    "text_model": (lambda value: isinstance(value, str) and bool(value), "the name or path of a model"),
    "text_dimension": _whole(1),
    "text_rows": _one_of("all", "no_formulas", "document"),
    "text_passages": _FLAG,
    "text_residual": _FLAG,
    "text_concepts": _FLAG,
    "word_vectors": _one_of("input", "encoded"),
    "word_residual": _FLAG,
    "node_mask": _real(0, 1),
    "edge_dropout": _real(0, 1, open_high=True),
    "temperature": _real(0, open_low=True),
    "normalise_scores": _FLAG,
    "beta": _real(0, 1),
    "batch_size": _whole(2),
    "stop_by": _one_of("loss", "maxsim", "document"),
    "precision": _one_of("float32", "bf16"),
    "node_budget": (lambda value: value is None or _COUNT_HOLDS(value), f"None or {_COUNT_TEXT}"),
    "epochs": _whole(1),
    "learning_rate": _real(0, open_low=True),
    "min_learning_rate": _real(0),
    "weight_decay": _real(0),
    "clip": _real(0, open_low=True),
    "patience": _whole(1),
    "validation_share": _real(0, 1, open_high=True),
    "seed": _whole(0),
    "hard_negatives": _whole(0),
    "formula_contrast": _real(0),
    "subexpression": _real(0),
    "sentence_dropout": _real(0, 1),
    "first_epochs": _whole(0),
    "vocabulary_size": _whole(1),
    "min_number_count": _whole(1),
    "min_role_count": _whole(1),
}
