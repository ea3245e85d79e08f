"""MaxSim of one query with many documents, summed in float64: the score of every search and scorer, and its weights.

A block of documents at a time stays in a cache. A sum that may round to either of two float32 numbers is computed again
from exact products, each sum rounded once, so that a score depends on the query and the rows of its document, and not
on the processor::

    rows, or codes ──▶ float64 [r, d] ──▶ products [q, r] ──▶ greatest [q, documents] ──▶ sums ──▶ float32
                                                                                            │ doubtful
                                         the products that can be greatest, exactly  ◀──────┘
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.running.resources import one_blas_thread
from pyterrier_mathamr.graph import MathAMRGraph

from .config import MathAMRConfig
from .errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor

_BLOCK = 1 << 18  # numbers of the rows that are multiplied at a time: two megabytes in float64, which stay in a cache
_UNIT = 2.0**-53

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


def exact_maxsim(
    query: npt.NDArray[np.float32],
    rows: npt.NDArray[np.float32] | npt.NDArray[np.int8],
    offsets: Numbers,
    weights: Floats | None = None,
    blend: float | None = None,
    scales: npt.NDArray[np.float32] | None = None,
) -> Floats:
    """Score each document against one query: S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc (MathAMR+, eq. 3.4).

    Computed in float64 on one thread and rounded once to float32 precision. A score depends on the query and the rows
    of its document: not on the other documents in the call, nor on the processor.

    Args:
        query: float32 ``[q, d]``, the document's row last.
        rows: float32 ``[r, d]``, the rows of all documents end to end, each document's own row last; or int8 codes.
        offsets: int64 ``[m + 1]``; document ``i`` owns ``rows[offsets[i]:offsets[i + 1]]``.
        weights: w, float64 ``[q]``, or ``None`` for plain MaxSim, where each is 1.
        blend: a, the weight of the product of the two documents' rows; ``None`` for 0.
        scales: of codes, float32 ``[r]`` of at most 17 significant bits: row ``j`` is ``scales[j] * rows[j]``.

    Returns:
        float64 ``[m]``, each a float32 number; minus infinity for a document without rows, 0 for a query without rows.

    Raises:
        ModelError: the widths differ, or the offsets do not span ``rows``.
    """
    check_ragged(query, rows, offsets)
    filled = offsets[1:] > offsets[:-1]
    if not len(query) or not filled.any():
        return np.where(filled | (len(query) == 0), 0.0, -np.inf)
    wide_query, weights = query.astype(np.float64), np.ones(len(query)) if weights is None else weights
    ends, width = np.concatenate([[0], offsets[1:][filled]]), rows.shape[1]
    scored, memory, first = [], np.empty((0, width)), 0
    with one_blas_thread():
        while first < len(ends) - 1:  # a block of documents, of at most so many rows, at least one document
            end = ends[first] + _BLOCK // max(width, 1)
            last = max(int(np.searchsorted(ends, end, side="right")) - 1, first + 1)
            block = slice(int(ends[first]), int(ends[last]))
            bounds = ends[first : last + 1] - ends[first]
            if bounds[-1] > len(memory):
                memory = np.empty((int(bounds[-1]), width))
            wide = memory[: bounds[-1]]
            np.copyto(wide, rows[block])
            wide_scales = None if scales is None else scales[block].astype(np.float64)
            scored.append(_scores(wide_query, weights, blend or 0.0, wide, wide_scales, bounds))
            first = last
    scores = np.full(len(filled), -np.inf)
    scores[filled] = np.concatenate(scored)
    return scores


def check_ragged(
    other: Tensor | npt.NDArray[Any], rows: Tensor | npt.NDArray[Any], offsets: Tensor | npt.NDArray[Any]
) -> None:
    """Raise an error for ragged rows that do not fit together."""
    for name, matrix in (("query", other), ("rows", rows)):
        if matrix.ndim != 2:
            raise ModelError(f"{name} has shape {tuple(matrix.shape)}; expected [rows, d].")
    if other.shape[1] != rows.shape[1]:
        raise ModelError(f"rows has shape {tuple(rows.shape)}; expected [r, {other.shape[1]}], as wide as the query.")
    spans = offsets.ndim == 1 and len(offsets) > 0 and int(offsets[0]) == 0 and int(offsets[-1]) == len(rows)
    if not spans or bool((offsets[1:] < offsets[:-1]).any()):
        raise ModelError(f"offsets has shape {tuple(offsets.shape)}; expected [m + 1], from 0 up to {len(rows)}.")


def _scores(
    query: Floats, weights: Floats, blend: float, rows: Floats, scales: Floats | None, ends: Numbers
) -> npt.NDArray[np.float32]:
    """Score the documents of a block: float32 ``[m]``."""
    starts, last = ends[:-1], ends[1:] - 1
    products = query @ rows.T  # [q, r]
    if scales is not None:
        products *= scales
    best = np.maximum.reduceat(products, starts, axis=1)  # [q, m]
    sums = weights @ best + blend * products[-1, last]
    greatest = float(np.abs(rows).max() if scales is None else 127 * scales.max())
    error = sum_error(query, weights, blend, greatest)
    scores: npt.NDArray[np.float32] = sums.astype(np.float32)
    doubtful = (sums - error).astype(np.float32) != (sums + error).astype(np.float32)
    if doubtful.any():
        document = np.repeat(np.arange(len(last)), np.diff(ends))  # of each row
        least = best - 2 * product_errors(query, greatest)[:, None]
        needed = (products >= least[:, document]) & doubtful[document]
        needed[-1, last] |= doubtful
        exact = np.full(products.shape, -np.inf)
        exact[needed] = _exact_products(query, rows, scales, *np.nonzero(needed))
        best = np.maximum.reduceat(exact, starts, axis=1)[:, doubtful]
        terms = np.vstack([weights[:, None] * best, blend * exact[-1, last[doubtful]]])
        scores[doubtful] = rounded_sums(terms.T)
    return scores


def product_errors(query: Floats, greatest: float) -> Floats:
    """Bound the error of each row's product with a row of numbers up to ``greatest``, in any order of summation."""
    errors: Floats = 1.01 * (query.shape[1] + 4) * _UNIT * np.abs(query).sum(axis=1) * greatest
    return errors


def sum_error(query: Floats, weights: Floats, blend: float, greatest: float) -> float:
    """Bound the error of Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc in float64, in any order of summation, and double it."""
    sums = np.abs(query).sum(axis=1)
    total = float(np.abs(weights) @ sums) + abs(blend) * float(sums[-1])
    steps = query.shape[1] + len(query) + 6
    return float(2.02 * steps * _UNIT * total * greatest)  # twice, and rounded itself


def _exact_products(query: Floats, rows: Floats, scales: Floats | None, i: Numbers, j: Numbers) -> Floats:
    """Multiply pairs of rows: each product of two numbers is exact, each sum rounded once."""
    sums, step = np.empty(len(i)), max(_BLOCK // max(rows.shape[1], 1), 1)
    for some in (slice(start, start + step) for start in range(0, len(i), step)):
        right = rows[j[some]] if scales is None else rows[j[some]] * scales[j[some], None]
        sums[some] = rounded_sums(query[i[some]] * right)
    return sums


def rounded_sums(terms: Floats) -> Floats:
    """Sum each row and round once, as ``math.fsum`` does: float64 ``[n, k]`` to ``[n]``.

    The rounding error of a sum of two numbers is a number, too (Knuth's TwoSum), so the sum of a row is exactly one
    number and many small errors. Where the error of summing these could change the result, ``fsum`` computes it.
    """
    high, low, size = terms, np.zeros(len(terms)), np.zeros(len(terms))
    while high.shape[1] > 1:
        half = high.shape[1] // 2
        a, b = high[:, :half], high[:, half : 2 * half]
        total = a + b
        of_b = total - a
        errors = (a - (total - of_b)) + (b - of_b)
        low += errors.sum(axis=1)
        size += np.abs(errors).sum(axis=1)
        high = np.hstack([total, high[:, 2 * half :]])
    bound = terms.shape[1] * 2 * _UNIT * size
    sums: Floats = high[:, 0] + (low - bound)
    for row in np.flatnonzero(sums != high[:, 0] + (low + bound)).tolist():
        sums[row] = math.fsum(terms[row].tolist())
    return sums


@dataclass(frozen=True, slots=True)
class ScoreWeights:
    """The weights of a model's score, S(Q, D) = Σᵢ w_kind(i) maxⱼ qᵢ · dⱼ + a q_doc · d_doc; plain MaxSim by default.

    Attributes:
        formula, sentence, document: w of a query row of each kind.
        blend: a.
        means: divide w by the number of a query's rows of the kind.
    """

    formula: float = 1.0
    sentence: float = 1.0
    document: float = 1.0
    blend: float = 0.0
    means: bool = False

    @classmethod
    def of(cls, config: MathAMRConfig) -> ScoreWeights | None:
        """Return the weights that a model of this configuration searches with; ``None`` for plain MaxSim."""
        kinds, blend = config.score.kind_weights, config.score.document_blend
        if kinds == "none" and blend == "none" and not config.score.kind_means:
            return None
        formula, sentence, document = (1.0, 1.0, 1.0) if isinstance(kinds, str) else kinds
        number = (0.0 if blend == "none" else 1.0) if isinstance(blend, str) else blend
        return cls(float(formula), float(sentence), float(document), float(number), config.score.kind_means)

    def of_rows(self, kinds: Sequence[int]) -> Floats:
        """Return the weight of each row of a query, given the kinds of its rows."""
        kind = np.array(kinds, np.int64)
        weights = np.array([self.formula, self.sentence, self.document])[kind]
        return weights / np.bincount(kind)[kind] if self.means else weights


def row_kinds(config: MathAMRConfig, graph: MathAMRGraph, rows: int) -> list[int]:
    """Determine the kind of each row of a query; empty for a blank one."""
    formulas = graph.n_formulas if config.formulas != "none" else 0
    documents = min(rows, int(config.virtual_nodes != "none"))
    return [0] * formulas + [1] * (rows - formulas - documents) + [2] * documents


def legible(number: float) -> float:
    """Round to six digits: people read them."""
    return float(f"{number:.6g}")
