"""Errors of the systems that MathAMR+ is compared with or built upon."""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError


class SystemsError(MathAMRError):
    """The base of the errors of this room (the plain name is one of Python's own)."""


class NothingJudgedError(SystemsError):
    """Weights cannot be fitted."""

    queries: int
    template = "none of the candidates of {queries} query(ies) is judged."
    advice = "Give judgments of these queries whose docno is a formula's id or its visual id."


class NoEncoderError(SystemsError):
    """An index has lost the encoder of its formulas."""

    path: Path
    template = "{path}: the index keeps no encoder, since all of its formulas were deleted."
    advice = "Build it again with mode='overwrite'."


class NothingToTrainError(SystemsError):
    """There are too few formulas to train on."""

    formulas: int
    min_count: int
    template = "no pair of symbols of {formulas} formulas occurs {min_count} times, so that nothing can be trained."
    advice = (
        "Give more posts, the model= of another index, or fewer occurrences: training=FastTextOptions(min_count=1)."
    )


class NoModelError(SystemsError):
    """An index of vectors has no model to encode formulas with."""

    path: Path
    template = "{path}: the index was opened without the model that encodes formulas."
    advice = "Give it: InOutIndex(path, model)."
