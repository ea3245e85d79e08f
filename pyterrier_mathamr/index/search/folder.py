"""The index in a folder as a backend: candidates by a scan that is proven to find the best, or by HNSW graphs.

A scan of all documents is fast and approximate, and its maximum error is known: every document that can be
among the best ``k`` is kept, and scored exactly. Which of three scans is used depends on speed; the answer
does not. See docs/how-it-works.md::

    float32           maxsim      few documents for each result, and document vectors
    int8, by torch    int8        the codes stay memory-mapped, or are copied to a GPU once; threads share the shards
    int8, compiled    compiled    the same on processors for which llvmlite is installed

Approximate candidates come from FAISS, as in the paper (MathAMR+, section 3.5.2, efSearch 128). A graph is
built on first use, on one thread so that it is the same each time, and stays in memory with the snapshot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr._common.running.processes import usable_cores
from pyterrier_mathamr._common.running.resources import on_threads
from pyterrier_mathamr.index.backend import (
    Backend,
    ExactScores,
    Field,
    Hits,
    How,
    Numbers,
    QueryBatch,
    Scores,
    Weights,
    blocks,
)
from pyterrier_mathamr.index.parts import CODES, IndexMeta, Shard, VectorParts
from pyterrier_mathamr.index.subsets import kept_columns, read_where
from pyterrier_mathamr.store import DamagedError, Kind
from pyterrier_mathamr.store import Snapshot as StoredSnapshot

from .compiled import Columns, CompiledScan, compiled
from .int8 import CodedQueries, CodeScan, Memory, encode_queries, exactly, on_device, usable
from .maxsim import best_of, exact_scores, float32_error, run_bounds, scan, widened

QUERY_ROWS = 160  # query rows scanned at once: with more the products leave the CPU's caches
_FEW = 1 << 14  # documents of one query from which hopeless ones are dropped, which bounds the memory
_LONG = 1 << 19  # a scan of this many rows in float32 lasts as long as loading the compiler
_ROUNDED = 2.0**-23  # the error of exact scores, which are rounded to float32, and more

FEW_OF = 32
"""The share of documents up to which reading only their rows is faster than a scan of all, as one of so many."""

CODES_PAY = 8
"""Documents for each result above which the compiled scan of codes is faster; torch's needs eight times as many."""


class FolderSnapshot(StoredSnapshot, VectorParts, Backend):
    """All parts of an index; documents are numbered from 0 through all of them, deleted ones included."""

    path: Path

    def __init__(self, path: Path, kind: Kind) -> None:
        super().__init__(path, kind)
        self.meta = IndexMeta.read(self.manifest.details, path)
        for shard in self.shards:
            rows, expected = (f"{described.dtype}[r, {described.dimensions}]" for described in (shard, self.meta))
            if rows != expected:
                raise DamagedError(shard.part.path, f"its rows are {rows}, not {expected}")

    def select(self, queries: QueryBatch, k: int, field: Field, how: How) -> list[Hits]:
        """Find the best ``k`` documents of each query among candidates, which by exact search contain all of them."""
        asked = queries.last_rows() if field == "doc" else queries
        if how.where is not None:
            passing = self.passing(how.where)
            searched = [np.intersect1d(numbers, passing, assume_unique=True) for numbers in asked.among or ()]
            asked = replace(asked, among=tuple(searched) if asked.among else (passing,) * len(asked))
        if how.exact:
            candidates = exact_candidates(self, asked, k, field, how.device)
        else:
            candidates = graph_candidates(self, asked, k, k if field == "doc" else how.hits, field, how.hnsw_ef)
            if not how.scored:
                return [Hits(numbers, np.zeros(len(numbers))) for numbers in candidates]
        scores = self.score(queries, candidates, field)
        return [best_of(self, numbers, exact, k) for numbers, exact in zip(candidates, scores, strict=True)]

    def passing(self, where: str) -> Numbers:
        """Return the documents whose kept columns meet a condition, ascending; the last answer is remembered."""
        known: tuple[str, Numbers] | None = self.caches.get("passing")
        if known is None or known[0] != where:
            texts, condition = self.texts("kept", self.live), read_where(where)
            passing = {text for text in set(texts) if condition.holds(kept_columns(text))}
            known = self.caches["passing"] = where, self.live[[text in passing for text in texts]]
        return known[1]

    def score(self, queries: QueryBatch, numbers: Sequence[Numbers], field: Field = "all") -> list[ExactScores]:
        together = np.concatenate([np.empty(0, dtype=np.int64), *numbers])
        if len(numbers) < 2 or len(self.pieces(together, field)) != 1:
            pieces = [(self.stored(some, field) for some in self.pieces(wanted, field)) for wanted in numbers]
            return [exact_scores(*of_query, field) for of_query in zip(queries.of_size(1), pieces, strict=True)]
        rows, offsets = self.stored(together, field)  # a few documents for each of many queries are read at once
        cuts = pairwise(np.cumsum([0, *map(len, numbers)]).tolist())
        parts = [(rows[offsets[a] : offsets[b]], offsets[a : b + 1] - offsets[a]) for a, b in cuts]
        return [exact_scores(query, [part], field) for query, part in zip(queries.of_size(1), parts, strict=True)]

    def bounds(self, query: QueryBatch, k: int) -> tuple[Weights, Weights]:
        """Bound the exact score of every document for one query, to find about ``k``.

        The first scan is in float32 unless it is long: for a single search, loading a compiler, or torch without one,
        costs more time than it saves.

        Returns:
            The least and the greatest possible score of each document that is not deleted, float64 ``[m]``.
        """
        first = "scanned" not in self.caches and sum(len(shard.part["rows"]) for shard in self.shards) < _LONG
        self.caches["scanned"] = True
        codes = not first and _codes_pay(self, k)
        scans = scan_codes(self.shards, query, None) if codes else scan_floats(self, query, "all")
        scores, errors = np.empty((2, int(self.bases[-1])))
        for (start, end), (_, of_shard, error) in zip(pairwise(self.bases.tolist()), scans, strict=True):
            scores[start:end], errors[start:end] = of_shard[0], error[0]
        scores, errors = scores[self.live], errors[self.live]
        errors += np.abs(scores) * _ROUNDED
        return scores - errors, scores + errors


def exact_candidates(
    snapshot: FolderSnapshot, queries: QueryBatch, k: int, field: Field, device: str | None
) -> list[Numbers]:
    """Select the documents among which the best ``k`` of each query are, by a scan of all documents."""
    selected: list[Numbers] = []
    for first, last in blocks(queries.offsets, QUERY_ROWS):
        group = queries.part(first, last)
        if group.among is not None and max(map(len, group.among)) <= max(k, len(snapshot) // FEW_OF):
            selected += group.among
            continue
        best = [_Best(k, among) for among in group.among or [None] * len(group)]
        as_codes = field == "all" or (snapshot.kind.type == "formula_index" and snapshot.meta.dtype in CODES)
        codes = as_codes and (device is not None or _codes_pay(snapshot, k))
        scans = scan_codes(snapshot.shards, group, device) if codes else scan_floats(snapshot, group, field)
        for shard, scores, errors in scans:
            for best_of_query, query_scores, error in zip(best, scores, errors.tolist(), strict=True):
                best_of_query.add(shard, query_scores, error)
        if not codes:
            selected += [best_of_query.left()[0] for best_of_query in best]
        elif len(group) == 1:
            selected.append(_narrow(snapshot, group, best[0], k, on_threads))
        else:  # each thread scans for one query, which needs fewer threads than splitting each query
            each = zip(group.of_size(1), best, strict=True)
            selected += on_threads(lambda of_query: _narrow(snapshot, *of_query, k, map), each)
    return selected


def _codes_pay(snapshot: FolderSnapshot, k: int) -> bool:
    """Decide whether the scan of codes is faster: it saves on each document, but leaves more to rescore."""
    documents, least = len(snapshot), CODES_PAY * k
    if documents < least:
        return False
    return all(map(_compiled, snapshot.shards)) or (documents >= 8 * least and usable(snapshot.meta.dimensions))


def _narrow(snapshot: FolderSnapshot, query: QueryBatch, best: _Best, k: int, each: Callable[..., Any]) -> Numbers:
    """Rescore candidates in float32, the most promising first, and drop any that cannot be among the best ``k``.

    ``each`` is ``map``, or the same on threads.
    """
    numbers, most = best.left()
    if len(numbers) <= k:
        return numbers

    def rescored(some: Numbers) -> Scores:
        pieces = each(lambda piece: scan(*snapshot.rows(piece), query)[0], snapshot.pieces(some))
        return np.concatenate([np.empty(0, dtype=np.float32), *pieces])

    error = float(float32_error(query, snapshot.max_norm, snapshot.meta.dimensions)[0])
    promising = min(len(numbers), k + k // 4 + 16)
    first = most >= np.partition(most, -promising)[-promising]
    some, scores = numbers[first], rescored(numbers[first])
    others = numbers[~first & (most >= np.partition(scores, -k)[-k] - 2 * error)]
    some, scores = np.concatenate([some, others]), np.concatenate([scores, rescored(others)])
    kept: Numbers = np.sort(some[scores >= np.partition(scores, -k)[-k] - 2 * error])
    return kept


class _Best:
    """The documents of one query, or ``among`` some, that can be the best ``k``, and the upper bound of each score."""

    def __init__(self, k: int, among: Numbers | None = None) -> None:
        self.k, self._among = k, among
        self._base = 0
        self._numbers: list[Numbers] = [np.empty(0, dtype=np.int64)]
        self._most: list[Weights] = [np.empty(0)]
        self._least: Weights = np.empty(0)  # the best k of them; the rest can no longer become the floor
        self._floor = -np.inf
        self._full = _FEW

    def add(self, shard: Shard, scores: Scores, error: float) -> None:
        """Add the scores of the next shard, float32 ``[m]``, each within ``error`` of the true one."""
        reach = np.nextafter(np.float32(self._floor - error), np.float32(-np.inf))  # in float32, and not too high
        if self._among is not None:
            ends = np.searchsorted(self._among, (self._base, self._base + len(shard)))
            local = self._among[slice(*ends)] - self._base
            local = local[scores[local] >= reach]
        else:
            local = np.flatnonzero(scores >= reach)
            if len(shard.part.deleted):
                local = local[shard.part.alive[local]]
        exact = scores[local].astype(np.float64)
        higher = exact[exact > self._floor + error] - error
        exact += error
        local += self._base
        self._base += len(shard)
        self._numbers.append(local)
        self._most.append(exact)
        self._least = np.concatenate([self._least, higher])
        if len(higher) and len(self._least) >= self.k:
            place = len(self._least) - self.k
            self._least = np.partition(self._least, place)[place:]
            self._floor = float(self._least[0])
        if sum(map(len, self._numbers)) > self._full:
            numbers, most = self.left()
            self._numbers, self._most, self._full = [numbers], [most], 2 * len(numbers) + _FEW

    def left(self) -> tuple[Numbers, Weights]:
        numbers, most = np.concatenate(self._numbers), np.concatenate(self._most)
        keep = most >= self._floor
        return numbers[keep], most[keep]


_NEIGHBORS = 32
_EF_CONSTRUCTION = 128


def graph_candidates(
    snapshot: FolderSnapshot, queries: QueryBatch, k: int, nearest: int, field: Field, ef: int
) -> list[Numbers]:
    """Find the documents that own one of the nearest vectors of a field to some row of each query.

    At first ``nearest`` vectors of each row; where fewer than ``k`` documents, of those that are searched, own them,
    twice as many, and so on.
    """
    if not len(snapshot):
        return [np.empty(0, dtype=np.int64)] * len(queries)
    faiss = require("faiss")

    graph, ends = _graph(snapshot, field, faiss), np.cumsum(snapshot.lengths(snapshot.live, field))
    each, searched = queries.of_size(1), list(queries.among or [snapshot.live] * len(queries))
    selected = list(searched)
    left = list(range(len(queries)))
    while left and nearest < graph.ntotal:
        parameters = faiss.SearchParametersHNSW(efSearch=max(ef, nearest))
        rows = np.concatenate([each[i].rows for i in left])
        _, nearest_rows = graph.search(np.ascontiguousarray(rows), nearest, params=parameters)
        of_query = np.split(nearest_rows, np.cumsum([len(each[i].rows) for i in left])[:-1])
        for i, vectors in zip(left, of_query, strict=True):
            owners = np.searchsorted(ends, vectors[vectors >= 0], side="right")  # -1 where the graph found no more
            selected[i] = np.intersect1d(snapshot.live[owners], searched[i])
        nearest, left = 2 * nearest, [i for i in left if len(selected[i]) < min(k, len(searched[i]))]
    for i in left:
        selected[i] = searched[i]
    return selected


def _graph(snapshot: FolderSnapshot, field: Field, faiss: Any) -> Any:
    """Return the HNSW graph of the vectors of one field, built on first use."""
    name = f"hnsw-{field}"
    if name not in snapshot.caches:
        graph = faiss.IndexHNSWFlat(snapshot.meta.dimensions, _NEIGHBORS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = _EF_CONSTRUCTION
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # of this thread only
        try:
            for shard in snapshot.shards:
                graph.add(widened(shard.live_rows(field)))
        finally:
            faiss.omp_set_num_threads(threads)
        snapshot.caches[name] = graph
    return snapshot.caches[name]


_PIECES = 8  # for each of several threads, one after the other, so that all end at about the same time
_PIECE_ROWS = 1 << 15, 1 << 19  # of a piece, at least and at most


def scan_floats(snapshot: FolderSnapshot, queries: QueryBatch, field: Field) -> Iterator[tuple[Shard, Scores, Weights]]:
    """Score all documents in float32; yield each shard with its scores, ``[queries, m]``, and their errors."""
    errors = float32_error(queries, snapshot.max_norm, snapshot.meta.dimensions)
    for shard in snapshot.shards:
        yield shard, scan(*shard.field(field), queries), errors


def scan_codes(
    shards: Sequence[Shard], queries: QueryBatch, device: str | None
) -> Iterator[tuple[Shard, Scores, Weights]]:
    """Score all documents by their codes; yield the same."""
    memory, cores, columns = Memory(device or "cpu"), usable_cores(), Columns(queries)
    functions = [None if device else _compiled(shard) for shard in shards]
    least, most = _PIECE_ROWS
    piece_rows = most
    if cores > 1:
        piece_rows = min(max(sum(len(shard.coding.codes) for shard in shards) // (_PIECES * cores), least), most)

    def fill(scan: CompiledScan | CodeScan, piece: tuple[int, int], scores: Scores) -> None:
        with nullcontext() if all(functions) else exactly():
            scan.fill(*piece, scores)

    waiting: deque[tuple[list[Future[None]], Shard, Scores, Weights]] = deque()
    with ThreadPoolExecutor(1 if device else cores) as pool:
        for shard, function in zip(shards, functions, strict=True):
            coding, offsets = shard.coding, shard.field("all")[1]
            coded = encode_queries(queries, coding.scales, coding.bounds)
            scan: CompiledScan | CodeScan
            if function is None:
                scan = _torch_scan(shard, queries, coded, memory, device)
            else:
                scan = CompiledScan(function, coding, offsets, coded, columns)
            scores = np.empty((len(queries), len(shard)), dtype=np.float32)
            pieces = [(0, len(shard))] if device else blocks(offsets, piece_rows)
            waiting.append(([pool.submit(fill, scan, piece, scores) for piece in pieces], shard, scores, coded.errors))
            while len(waiting) > 2 * cores or (waiting and shard is shards[-1]):  # of a few shards, not of all
                running, scanned, scanned_scores, errors = waiting.popleft()
                for piece in running:
                    piece.result()
                yield scanned, scanned_scores, errors


def _compiled(shard: Shard) -> Callable[..., None] | None:
    coding = shard.coding
    single = len(coding.codes) == len(shard)
    return compiled(shard.dimensions, coding.row_scales is not None, single, coding.packed)


def _torch_scan(shard: Shard, queries: QueryBatch, coded: CodedQueries, memory: Memory, device: str | None) -> CodeScan:
    """Return the scan of one shard by torch; its codes are copied to a GPU once."""
    import torch

    codes, row_scales, offsets = shard.coding.codes, shard.coding.row_scales, shard.field("all")[1]
    tensor = shard.kept(device, partial(on_device, codes, device)) if device else torch.from_numpy(codes)
    scales = None if row_scales is None else torch.from_numpy(row_scales)
    if scales is not None and device:
        scales = shard.kept(f"row scales on {device}", partial(scales.to, device))
    runs = shard.kept("runs", partial(run_bounds, offsets))
    return CodeScan(tensor, scales, offsets, coded, queries, memory, runs=runs, padded=device is not None)
