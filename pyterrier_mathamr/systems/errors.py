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


class CheckpointFormError(SystemsError):
    """A folder holds no ColBERT checkpoint of a known form."""

    path: Path
    found: str
    template = "{path}: no ColBERT checkpoint of a known form: {found}."
    advice = (
        "Give a multi-vector model of sentence-transformers or PyLate, a Stanford checkpoint (HF_ColBERT) or one of "
        "Approach Zero (ColBERT); ColBERT.new(backbone) begins the training of a bare encoder."
    )


class TooManyDocumentsError(SystemsError):
    """An index that is scanned whole for each query has too many documents."""

    path: Path
    documents: int
    most: int
    template = "{path}: it has {documents:,} documents, and every view of at most {most:,} is scanned."
    advice = "Put a first stage before the scorer: bm25 >> marf.query_encoder() >> index.scorer()."
