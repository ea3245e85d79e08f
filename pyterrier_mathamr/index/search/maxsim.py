"""The exhaustive scan: S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ of many queries with every document of a shard (MathAMR+, eq. 3.4).

A query may also count the product of the two VIRTUAL_DOCUMENTs, the last rows: + a q_doc · d_doc. It is among the
products that are made anyway.

Documents of a shard lie by number of rows, so that a block of them is a few runs of one length ``n``; a run of ``D``
documents is read in place as ``[D, n, d]``, multiplied with the ``T`` rows of all queries at once, and reduced::

    [D * n, d] @ [d, T]  ->  [D, n, T]  --max over n-->  [D, T]  --sum over each query's rows-->  [D, queries]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.threads import one_blas_thread
from pyterrier_mathamr.index.protocols import Numbers, Rows, Scores, StoredRows, Weights

BLOCK_ROWS = 4096
"""Rows in one product: with 1,000 query rows its result is 16 MB; larger blocks leave the processor's caches."""

_WIDE = 64
"""Columns from which numpy finds the greatest over rows at full speed."""

Real = TypeVar("Real", np.float32, np.float64)


@dataclass(frozen=True)
class QueryBatch:
    """Some queries: their rows end to end, a weight for each row, and what the documents' own product counts.

    Args:
        rows: float32 ``[T, d]``.
        offsets: int64 ``[queries + 1]``; query ``i`` owns ``rows[offsets[i]:offsets[i + 1]]``, at least one row.
        weights: float64 ``[T]``, or ``None`` where each is 1.
        document_weights: float64 ``[queries]``, a of each query, or ``None`` where each is 0.
    """

    rows: Rows
    offsets: Numbers
    weights: Weights | None = None
    document_weights: Weights | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def last_rows(self) -> QueryBatch:
        """Each query by its document's vector alone, with weight 1."""
        return QueryBatch(self.rows[self.offsets[1:] - 1], np.arange(len(self) + 1, dtype=np.int64))

    def part(self, first: int, last: int) -> QueryBatch:
        """Some of the queries, from ``first`` to the one before ``last``."""
        offsets = self.offsets[first : last + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        weights = None if self.weights is None else self.weights[rows]
        blend = None if self.document_weights is None else self.document_weights[first:last]
        return QueryBatch(self.rows[rows], offsets - offsets[0], weights, blend)

    def one(self, query: int) -> QueryBatch:
        """One of the queries."""
        return self.part(query, query + 1)

    def groups(self, rows: int) -> Iterator[QueryBatch]:
        """All queries in groups of at most so many rows, or of one query that has more."""
        first = 0
        while first < len(self):
            last = int(np.searchsorted(self.offsets, self.offsets[first] + rows, side="right")) - 1
            last = max(last, first + 1)
            yield self.part(first, last)
            first = last

    def counts(self) -> Weights:
        """float64 ``[T]``: |wᵢ|, and |a| more for a last row: how often an error in that row's products counts."""
        counts = np.ones(len(self.rows)) if self.weights is None else np.abs(self.weights)
        if self.document_weights is not None:
            counts[self.offsets[1:] - 1] += np.abs(self.document_weights)
        return counts

    def weighted_lengths(self) -> npt.NDArray[np.float64]:
        """float64 ``[queries]``: Σᵢ |wᵢ| |qᵢ| + |a| |q_doc|, what a score can be at most over unit rows."""
        lengths = np.sqrt(np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.float64)) * self.counts()
        sums: Weights = np.add.reduceat(lengths, self.offsets[:-1])
        return sums


def scan(rows: StoredRows, offsets: Numbers, queries: QueryBatch) -> Iterator[tuple[int, Scores]]:
    """Score all documents of a shard against all queries, block by block.

    Args:
        rows: float32 ``[r, d]``, or float16, of which each block is converted.
        offsets: int64 ``[m + 1]``; lengths that never fall make the longest runs, but any order is right.
        queries: the queries.

    Yields:
        The first document of a block and float32 ``[documents of the block, queries]``, all blocks in order.
    """
    transposed, blended = np.ascontiguousarray(queries.rows.T), queries.document_weights is not None
    for first, last in blocks(offsets):
        if offsets[last] - offsets[first] > 2 * BLOCK_ROWS:
            best = _long_document(rows[offsets[first] : offsets[last]], transposed)
            own = (
                rows[offsets[last] - 1 : offsets[last]].astype(np.float32, copy=False) @ transposed if blended else best
            )
        else:
            products = multiply(rows[offsets[first] : offsets[last]].astype(np.float32, copy=False), transposed)
            best = _best(products, offsets[first : last + 1])
            own = products[offsets[first + 1 : last + 1] - offsets[first] - 1] if blended else best
        if queries.weights is not None:
            best *= queries.weights
        yield first, sum_rows(best, queries, own)


def multiply(rows: npt.NDArray[Real], columns: npt.NDArray[Real]) -> npt.NDArray[Real]:
    """The product ``[r, d] @ [d, T]`` on this thread.

    Others save little on rows this short, and where other programs run they wait for each other many times longer than
    they compute.
    """
    with one_blas_thread():
        return rows @ columns


def blocks(offsets: Numbers, rows: int | None = None) -> Iterator[tuple[int, int]]:
    """Cut documents into blocks of at most so many rows, at least one document each.

    Args:
        offsets: int64 ``[m + 1]``.
        rows: of a block; :data:`BLOCK_ROWS` where not given.

    Yields:
        The first document of a block and the one after its last.
    """
    first, documents = 0, len(offsets) - 1
    rows = rows or BLOCK_ROWS
    while first < documents:
        last = int(np.searchsorted(offsets, offsets[first] + rows, side="right")) - 1
        last = max(first + 1, last)
        yield first, last
        first = last


def _best(products: npt.NDArray[Real], offsets: Numbers) -> npt.NDArray[Real]:
    """The greatest product of each document with each query row: ``[rows, T]`` to ``[documents, T]``."""
    starts = offsets - offsets[0]
    lengths = np.diff(starts)
    best = np.empty((len(lengths), products.shape[1]), dtype=products.dtype)
    runs = np.flatnonzero(np.diff(lengths, prepend=-1, append=-1))  # where the length changes
    for first, last in zip(runs[:-1].tolist(), runs[1:].tolist(), strict=True):
        run = products[starts[first] : starts[last]].reshape(last - first, int(lengths[first]), -1)
        _greatest(run, best[first:last])
    return best


def _greatest(products: npt.NDArray[Real], out: npt.NDArray[Real]) -> None:
    """The greatest product of each document with each column: ``[D, n, T]`` to ``[D, T]``.

    Where there are few columns, the first half of all rows is compared with the second (of an odd number of rows, that
    in the middle with itself), and so on: numpy compares long pieces of memory several times faster than short ones.
    """
    left = products.shape[1]
    if products.shape[2] >= _WIDE:
        np.max(products, axis=1, out=out)
        return
    while left > 1:
        half = (left + 1) // 2
        products, left = np.maximum(products[:, :half], products[:, left - half :]), half
    out[:] = products[:, 0]


def _long_document(rows: StoredRows, transposed: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The same for one document of any number of rows, in bounded memory: ``[1, T]``."""
    cuts = (rows[at : at + BLOCK_ROWS].astype(np.float32, copy=False) for at in range(0, len(rows), BLOCK_ROWS))
    pieces = [multiply(cut, transposed).max(axis=0) for cut in cuts]
    best: npt.NDArray[np.float32] = np.max(pieces, axis=0, keepdims=True)
    return best


def sum_rows(best: npt.NDArray[np.float32], queries: QueryBatch, own: npt.NDArray[np.float32]) -> Scores:
    """Sum over each query's rows, and add what the product of the document vectors counts.

    Args:
        best: float32 ``[documents, T]``, the weighted best products.
        queries: the queries.
        own: float32 ``[documents, T]``, the products of each document's last row; read where queries count them.

    Returns:
        float32 ``[documents, queries]``.
    """
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


def document_scores(
    rows: Rows, offsets: Numbers, query: QueryBatch, dtype: type[np.float32] | type[np.float64] = np.float64
) -> Scores:
    """Score documents against one query, in double precision unless told, rounded once to float32.

    In double precision what else is scored with a document changes its sum too little to be seen in float32, so that
    retrievers and scorers give the same document the same score, in any batch (docs/exactness.md).

    Args:
        rows: float32 ``[r, d]``.
        offsets: int64 ``[m + 1]``, each document at least one row; fast where equal lengths lie together.
        query: one query of ``q`` rows.
        dtype: what is computed in.

    Returns:
        float32 ``[m]``.
    """
    if len(offsets) == 1:
        return np.empty(0, dtype=np.float32)
    columns = np.ascontiguousarray(query.rows.astype(dtype, copy=False).T)
    products = multiply(rows.astype(dtype, copy=False), columns)
    best = _best(products, offsets)
    if query.weights is not None:
        best *= query.weights
    sums = best.sum(axis=1)
    if query.document_weights is not None:
        sums += products[offsets[1:] - offsets[0] - 1, -1] * query.document_weights[0]
    scores: Scores = sums.astype(np.float32)
    return scores
