"""Rows as int8 codes: a scan reads a quarter of the memory, and the bound of its error is known and stored.

A row ``x`` becomes integers ``c = round(x / s)`` with a scale ``s`` for each dimension, fitted to the shard so that its
greatest number becomes 127. A query row ``q`` becomes ``u = round((q s) / t)`` in the same way. Then::

    q · x  =  t (u · c)  +  (q s) · e  +  ((q s) - t u) · c          with e = x / s - c, and so
    |q · x - t (u · c)|  <=  ‖q s‖ max‖e‖  +  ‖(q s) - t u‖ max‖c‖
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.index.protocols import Codes, Rows, Weights

from .queries import QueryBatch

_GREATEST = 127
_PIECE = 1 << 16
_SLACK = 1 + 1e-5  # covers that the norms themselves are computed in floating point


def encode_rows(rows: Rows) -> tuple[Codes, npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """Quantise rows to int8."""
    greatest = np.abs(rows).max(axis=0)
    scales = np.where(greatest > _GREATEST * 1e-38, greatest / _GREATEST, 1).astype(np.float32)
    codes = np.empty(rows.shape, dtype=np.int8)
    bounds = np.zeros(2)
    for start in range(0, len(rows), _PIECE):
        scaled = rows[start : start + _PIECE] / scales
        rounded = np.clip(np.rint(scaled), -_GREATEST, _GREATEST)
        codes[start : start + _PIECE] = rounded
        scaled -= rounded
        squares = [float(np.einsum("ij,ij->i", of, of).max()) for of in (scaled, rounded)]
        bounds = np.maximum(bounds, np.sqrt(squares) + 1e-4)  # x / s is itself rounded, by less than 127 · 2⁻²⁴ each
    return codes, scales, bounds * _SLACK


@dataclass(frozen=True)
class CodedQueries:
    """Query rows as codes for one shard."""

    codes: Codes
    factors: npt.NDArray[np.float32]
    steps: npt.NDArray[np.float32]
    errors: Weights


def encode_queries(queries: QueryBatch, scales: npt.NDArray[np.float32], bounds: Weights) -> CodedQueries:
    """Quantise query rows for a shard of the given scales."""
    scaled = queries.rows.astype(np.float64) * scales
    steps = np.maximum(np.abs(scaled).max(axis=1), 1e-300) / _GREATEST
    codes = np.rint(scaled / steps[:, None])
    rest = scaled - steps[:, None] * codes
    weights, totals = np.ones(len(scaled)) if queries.weights is None else queries.weights, queries.row_weights()
    lengths = np.linalg.norm(scaled, axis=1), np.linalg.norm(rest, axis=1)
    errors = (lengths[0] * bounds[0] + lengths[1] * bounds[1]) * totals * _SLACK
    # the factors and the sum are in float32: each score has at most the length of q s times that of c, twice rounded
    rounding = (np.diff(queries.offsets) + 4) * 2.0**-23 * _sums(lengths[0] * totals, queries) * bounds[1]
    factors = [(steps * of).astype(np.float32) for of in (weights, np.ones(len(weights)))]
    return CodedQueries(codes.astype(np.int8), factors[0], factors[1], _sums(errors, queries) + rounding)


def _sums(values: Weights, queries: QueryBatch) -> Weights:
    sums: Weights = np.add.reduceat(values, queries.offsets[:-1])
    return sums
