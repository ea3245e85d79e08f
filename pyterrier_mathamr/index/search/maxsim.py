"""S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc (eq. 3.4): of all documents in float32, and of a few exactly.

The scan of all documents has a known error; it finds the candidates whose exact scores decide the ranking. Documents of
a part are ordered by number of rows, so a block of them is a few runs of one length ``n``; a run of ``D`` documents is
read in place as ``[D, n, d]``, multiplied with the ``T`` rows of all queries at once, and reduced::

    [D * n, d] @ [d, T]  ->  [D, n, T]  --max over n-->  [D, T]  --sum over each query's rows-->  [D, queries]
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from pyterrier_mathamr._common.frames import best_places
from pyterrier_mathamr._common.running.resources import on_threads
from pyterrier_mathamr.index.backend import (
    Backend,
    ExactScores,
    Field,
    Hits,
    Numbers,
    QueryBatch,
    Rows,
    ScaledRows,
    Scores,
    StoredRows,
    Weights,
    blocks,
    unpack_codes,
)

BLOCK_ROWS = 4096  # rows in one product at most
_PRODUCTS = 1 << 17  # numbers in one product from which a block has fewer rows: larger ones leave the CPU's caches
_LEAST_ROWS = 512

_PIECES = 16
_SHARED = 1 << 29
"""Multiplications from which threads share a scan: below, they wait for each other longer than they compute."""

_WIDE = 64  # columns from which numpy finds maxima over rows at full speed


def scan(rows: StoredRows, offsets: Numbers, queries: QueryBatch) -> Scores:
    """Score documents against all queries, within :func:`float32_error`, on one thread or, if it is long, on several.

    Returns:
        float32 ``[queries, m]``.
    """
    columns = np.ascontiguousarray(queries.rows.T)  # [d, T]
    scores = np.empty((len(queries), len(offsets) - 1), dtype=np.float32)
    block_rows = min(max(_PRODUCTS // columns.shape[1], _LEAST_ROWS), BLOCK_ROWS)
    most_rows = max(block_rows, min(int(np.diff(offsets).max(initial=0)), 2 * BLOCK_ROWS))  # multiplied at once

    def score(piece: tuple[int, int]) -> None:
        wide, products = (np.empty((most_rows, width), dtype=np.float32) for width in columns.shape)

        def multiply(some: StoredRows) -> Rows:
            """Multiply rows with all columns, float32 ``[r, T]``, in memory that the next product overwrites."""
            left, out = wide[: len(some)], products[: len(some)]
            if isinstance(some, ScaledRows):  # it costs less to scale the products than the rows
                np.copyto(left, unpack_codes(some.codes))
                np.matmul(left, columns, out=out)
                out *= some.scales[:, None]
                return out
            return np.matmul(some if some.dtype == np.float32 else widened(some, left), columns, out=out)

        for first, last in blocks(offsets[piece[0] : piece[1] + 1], block_rows):
            documents = slice(piece[0] + first, piece[0] + last)
            ends = offsets[documents.start : documents.stop + 1]
            start, end = int(ends[0]), int(ends[-1])
            last_products = None  # the products of each document's last row
            if end - start > 2 * BLOCK_ROWS:  # one document, multiplied in pieces of bounded memory
                cuts = pairwise([*range(start, end, BLOCK_ROWS), end])
                best = np.max([multiply(rows[slice(*cut)]).max(axis=0) for cut in cuts], axis=0, keepdims=True)
                if queries.document_weights is not None:
                    last_products = multiply(rows[end - 1 : end])
            else:
                block = multiply(rows[start:end])
                best = greatest(block, ends - start)
                if queries.document_weights is not None:
                    last_products = block[ends[1:] - start - 1]
            if queries.weights is not None:
                best *= queries.weights
            if len(queries) == len(queries.rows):
                sums = best
            elif len(queries) == 1:
                sums = best.sum(axis=1, keepdims=True)
            else:
                sums = np.add.reduceat(best, queries.offsets[:-1], axis=1)
            if queries.document_weights is not None and last_products is not None:
                sums = sums + last_products[:, queries.offsets[1:] - 1] * queries.document_weights.astype(np.float32)
            scores[:, documents] = sums.T

    shared = len(rows) * columns.size >= _SHARED
    on_threads(score, blocks(offsets, max(len(rows) // _PIECES, BLOCK_ROWS)) if shared else [(0, len(offsets) - 1)])
    return scores


def greatest(products: Rows, starts: Numbers) -> Rows:
    """Find the greatest product of each document with each column: ``[r, T]`` and ``[m + 1]`` to ``[m, T]``."""
    columns = products.shape[1]
    best = np.empty((len(starts) - 1, columns), dtype=products.dtype)
    for first, last in pairwise(run_bounds(starts).tolist()):
        run = products[starts[first] : starts[last]].reshape(last - first, -1, columns)  # [D, n, T]
        if columns >= _WIDE:
            np.max(run, axis=1, out=best[first:last])
            continue
        left = run.shape[1]
        while left > 1:
            half = (left + 1) // 2
            run, left = np.maximum(run[:, :half], run[:, left - half :]), half
        best[first:last] = run[:, 0]
    return best


def run_bounds(offsets: Numbers) -> Numbers:
    lengths = np.diff(offsets)
    changes = np.flatnonzero(lengths[1:] != lengths[:-1]) + 1
    return np.concatenate([[0], changes, [len(lengths)]])


def float32_error(queries: QueryBatch, max_norm: float, dimensions: int) -> Weights:
    """Bound the error of a score computed in float32, in any order of summation: float64 ``[queries]``."""
    steps = dimensions + np.diff(queries.offsets) + 2  # the longest sum has a term for each row and one more
    lengths = np.sqrt(np.einsum("ij,ij->i", queries.rows, queries.rows, dtype=np.float64))
    return 2 * steps * 2.0**-24 * queries.sums(lengths * queries.row_weights()) * max_norm


_AT_ONCE = 1 << 15  # numbers below which torch computes on the calling thread


def widened(rows: StoredRows, out: Rows | None = None) -> Rows:
    """Convert rows to float32, by default in new memory; float16 by torch, four times as fast as by numpy."""
    wide = np.empty(rows.shape, dtype=np.float32) if out is None else out
    if isinstance(rows, ScaledRows):
        return np.multiply(unpack_codes(rows.codes), rows.scales[:, None], out=wide)
    if rows.dtype == np.float32:
        wide[:] = rows
        return wide
    import torch

    step = max((_AT_ONCE - 1) // max(rows.shape[1], 1), 1)
    parts = (torch.split(torch.from_numpy(array), step) for array in (wide, rows))
    for target, source in zip(*parts, strict=True):
        target.copy_(source)
    return wide


def exact_scores(query: QueryBatch, pieces: Iterable[tuple[StoredRows, Numbers]], field: Field = "all") -> ExactScores:
    """Score documents, given piece by piece as stored rows and offsets, against one query by ``model.exact_maxsim``."""
    from pyterrier_mathamr.model import exact_maxsim  # loads torch, which opening an index does not need

    if field == "doc":
        query = query.last_rows()
    blend = None if query.document_weights is None else float(query.document_weights[0])
    scores = [np.empty(0)]
    for rows, offsets in pieces:
        values, scales = (
            (unpack_codes(rows.codes), rows.scales) if isinstance(rows, ScaledRows) else (widened(rows), None)
        )
        scores.append(exact_maxsim(query.rows, values, offsets, query.weights, blend, scales))
    return np.concatenate(scores)


def best_of(backend: Backend, numbers: Numbers, scores: ExactScores, k: int) -> Hits:
    """Return the best ``k`` of some scored documents."""
    best = best_places(scores, k, lambda places: backend.texts("docno", numbers[places]))
    return Hits(numbers[best], scores[best])
