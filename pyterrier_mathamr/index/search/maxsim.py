"""S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc (eq. 3.4): of all documents in float32, and of a few exactly.

The scan of all documents has a known error; it finds the candidates whose exact scores decide the ranking. Documents of
a part are ordered by number of rows, so a block of them is a few runs of one length ``n``; a run of ``D`` documents is
read in place as ``[D, n, d]``, multiplied with the ``T`` rows of all queries at once, and reduced::

    [D * n, d] @ [d, T]  ->  [D, n, T]  --max over n-->  [D, T]  --sum over each query's rows-->  [D, queries]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    Rows,
    ScaledRows,
    Scores,
    StoredRows,
    Weights,
    unpack_codes,
)

from .queries import QueryBatch

BLOCK_ROWS = 4096
"""Rows in one product at most."""

_PRODUCTS = 1 << 17
"""Numbers in one product from which a block has fewer rows: larger ones leave the CPU's caches."""

_LEAST_ROWS = 512

_PIECES = 16
_SHARED = 1 << 29
"""Multiplications from which threads share a scan: below, they wait for each other longer than they compute."""

_WIDE = 64
"""Columns from which numpy finds maxima over rows at full speed."""


def scan(rows: StoredRows, offsets: Numbers, queries: QueryBatch) -> Scores:
    """Score documents against all queries, within :func:`float32_error`, on one thread or, if it is long."""
    columns = np.ascontiguousarray(queries.rows.T)
    scores = np.empty((len(queries), len(offsets) - 1), dtype=np.float32)
    block = min(max(_PRODUCTS // columns.shape[1], _LEAST_ROWS), BLOCK_ROWS)

    def score(piece: tuple[int, int]) -> None:
        workspace, base = Workspace(columns), piece[0]
        for first, last in blocks(offsets[base : piece[1] + 1], block):
            of = offsets[base + first : base + last + 1]
            scores[:, base + first : base + last] = _score_block(rows, of, workspace, queries).T

    shared = len(rows) * columns.size >= _SHARED
    on_threads(score, blocks(offsets, max(len(rows) // _PIECES, BLOCK_ROWS)) if shared else [(0, len(offsets) - 1)])
    return scores


def float32_error(queries: QueryBatch, max_norm: float, dimensions: int) -> Weights:
    """Bound the error of a score computed in float32, in any order of summation."""
    steps = dimensions + np.diff(queries.offsets) + 2  # the longest sum has a term for each row and one more
    return 2 * steps * 2.0**-24 * queries.weighted_lengths() * max_norm


def blocks(offsets: Numbers, rows: int | None = None) -> Iterator[tuple[int, int]]:
    """Cut documents into blocks of at most so many rows, at least one document each."""
    first, documents = 0, len(offsets) - 1
    rows = rows or BLOCK_ROWS
    while first < documents:
        last = int(np.searchsorted(offsets, offsets[first] + rows, side="right")) - 1
        last = max(first + 1, last)
        yield first, last
        first = last


def run_bounds(offsets: Numbers) -> Numbers:
    """Find where the number of rows changes."""
    lengths = np.diff(offsets)
    changes = np.flatnonzero(lengths[1:] != lengths[:-1]) + 1
    return np.concatenate([[0], changes, [len(lengths)]])


class Workspace:
    """The memory of one thread for the products of blocks; each product overwrites the one before."""

    def __init__(self, columns: Rows) -> None:
        self.columns = columns
        self._rows, self._products = (np.empty((0, width), dtype=np.float32) for width in columns.shape)

    def product(self, rows: StoredRows) -> Rows:
        """Multiply some rows with all columns: ``[r, d]`` to float32 ``[r, T]``."""
        if len(rows) > len(self._products):
            self._rows, self._products = (np.empty((len(rows), of), dtype=np.float32) for of in self.columns.shape)
        wide, product = self._rows[: len(rows)], self._products[: len(rows)]
        if isinstance(rows, ScaledRows):  # it costs less to scale the products than the rows
            np.copyto(wide, unpack_codes(rows.codes))
            np.matmul(wide, self.columns, out=product)
            product *= rows.scales[:, None]
            return product
        return np.matmul(rows if rows.dtype == np.float32 else widened(rows, wide), self.columns, out=product)


def _score_block(rows: StoredRows, offsets: Numbers, workspace: Workspace, queries: QueryBatch) -> Scores:
    """Score the documents of one block: float32 ``[D, queries]``."""
    start, end = int(offsets[0]), int(offsets[-1])
    if end - start > 2 * BLOCK_ROWS:  # one document, multiplied in pieces of bounded memory
        cuts = [*range(start, end, BLOCK_ROWS), end]
        pieces = [workspace.product(rows[slice(*cut)]).max(axis=0) for cut in pairwise(cuts)]
        best = np.max(pieces, axis=0, keepdims=True)
        own = workspace.product(rows[end - 1 : end])
    else:
        products = workspace.product(rows[start:end])
        best = _best(products, offsets)
        own = products if queries.document_weights is None else products[offsets[1:] - start - 1]
    if queries.weights is not None:
        best *= queries.weights
    return _sum_rows(best, queries, own)


def _best(products: Rows, offsets: Numbers) -> Rows:
    """Find the greatest product of each document with each query row: ``[rows, T]`` to ``[documents, T]``."""
    starts = offsets - offsets[0]
    best = np.empty((len(starts) - 1, products.shape[1]), dtype=products.dtype)
    for first, last in pairwise(run_bounds(starts).tolist()):
        run = products[starts[first] : starts[last]].reshape(last - first, int(starts[first + 1] - starts[first]), -1)
        _greatest(run, best[first:last])
    return best


def _greatest(products: Rows, out: Rows) -> None:
    """Find the greatest product of each document with each column: ``[D, n, T]`` to ``[D, T]``."""
    left = products.shape[1]
    if products.shape[2] >= _WIDE:
        np.max(products, axis=1, out=out)
        return
    while left > 1:
        half = (left + 1) // 2
        products, left = np.maximum(products[:, :half], products[:, left - half :]), half
    out[:] = products[:, 0]


def _sum_rows(best: Rows, queries: QueryBatch, own: Rows) -> Scores:
    """Sum over each query's rows, and add the weighted product of the document vectors."""
    sums: Scores
    if len(queries.offsets) == len(queries.rows) + 1:
        sums = best  # one row each
    elif len(queries) == 1:
        sums = best.sum(axis=1, keepdims=True)
    else:
        sums = np.add.reduceat(best, queries.offsets[:-1], axis=1)
    if queries.document_weights is not None:
        sums = sums + own[:, queries.offsets[1:] - 1] * queries.document_weights.astype(np.float32)
    return sums


_AT_ONCE = 1 << 15  # numbers below which torch computes on the calling thread


def widened(rows: StoredRows, out: Rows | None = None) -> Rows:
    """Convert rows to float32, by default in new memory; float16 by torch, four times as fast as by numpy."""
    into = np.empty(rows.shape, dtype=np.float32) if out is None else out
    if isinstance(rows, ScaledRows):
        return np.multiply(unpack_codes(rows.codes), rows.scales[:, None], out=into)
    if rows.dtype == np.float32:
        into[:] = rows
        return into
    import torch

    step = max((_AT_ONCE - 1) // max(rows.shape[1], 1), 1)
    parts = (torch.split(torch.from_numpy(of), step) for of in (into, rows))
    for target, some in zip(*parts, strict=True):
        target.copy_(some)
    return into


def exact_scores(backend: Backend, query: QueryBatch, pieces: Sequence[Numbers], field: Field = "all") -> ExactScores:
    """Score documents against one query exactly; the vectors of each piece are read at once."""
    return score_pieces(query, (backend.stored(some, field) for some in pieces), field)


def score_pieces(query: QueryBatch, pieces: Iterable[tuple[StoredRows, Numbers]], field: Field = "all") -> ExactScores:
    """Score documents, given as stored rows and offsets, against one query by ``model.exact_maxsim``."""
    from pyterrier_mathamr.model import exact_maxsim  # loads torch, which opening an index does not need

    asked = query.last_rows() if field == "doc" else query
    blend = None if asked.document_weights is None else float(asked.document_weights[0])
    scores = [np.empty(0)]
    for rows, offsets in pieces:
        values, scales = (
            (unpack_codes(rows.codes), rows.scales) if isinstance(rows, ScaledRows) else (widened(rows), None)
        )
        scores.append(exact_maxsim(asked.rows, values, offsets, asked.weights, blend, scales))
    return np.concatenate(scores)


def best_of(backend: Backend, numbers: Numbers, scores: ExactScores, k: int) -> Hits:
    """Return the best ``k`` of some scored documents."""
    best = best_places(scores, k, lambda places: backend.texts("docno", numbers[places]))
    return Hits(numbers[best], scores[best])
