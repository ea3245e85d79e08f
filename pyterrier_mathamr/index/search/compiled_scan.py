"""The scan of int8 codes by a function compiled for this processor, which the extra ``compiled`` brings.

It multiplies and reduces in registers what torch writes to a cache and reads again, in less than a third of the time.
Without llvmlite, on another processor, or where its result is not right, :class:`~.int8_scoring.CodeScan` scans
instead: the answer is the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.index.protocols import Array, Codes, Numbers, Scores

from .compiled_code import CHUNK, LANES, source
from .int8_coding import CodedQueries
from .queries import QueryBatch

Number = TypeVar("Number", np.int8, np.int32, np.float32)

_FOUR = 4  # bytes of a row that one instruction takes
_MOST = 1 << 12
"""Dimensions up to which the scratch memory stays in a cache."""

_LINE = 64
_NEEDED = "avx512vnni"
_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_ARGUMENTS = (
    *(_ADDRESS, _ADDRESS, _NUMBER, _NUMBER, _NUMBER, _NUMBER, _ADDRESS, _ADDRESS),
    *(_NUMBER, _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS, _NUMBER, _ADDRESS, _ADDRESS),
)


@lru_cache(maxsize=16)
def compiled(dimensions: int) -> Callable[..., None] | None:
    """Return the compiled function, tested once for vectors of some width; ``None`` where it cannot be used."""
    if dimensions % _FOUR or not 0 < dimensions <= _MOST:
        return None
    try:
        function = _compile()
    except (ImportError, AttributeError, OSError, RuntimeError):  # no llvmlite, or another release of it
        return None
    return function if function is not None and _right(function, dimensions) else None


@lru_cache(maxsize=1)
def _compile() -> Callable[..., None] | None:
    """Compile the function; ``None`` on a processor without the instruction."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    if not features.get(_NEEDED):
        return None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=2
    )
    module = llvm.parse_assembly(source())
    module.verify()
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(None, *_ARGUMENTS)(engine.get_function_address("scan"))
    function.engine = engine  # type: ignore[attr-defined]  # the code goes with it
    return function


class Columns:
    """Which sums of sixteen products are whose: the same for all shards that some queries are scanned in."""

    def __init__(self, queries: QueryBatch) -> None:
        rows = len(queries.rows)
        self.queries, self.groups = queries, -(-rows // LANES)
        starts, slots = [0], list[int]()
        sources = []
        for first, last in pairwise(queries.offsets.tolist()):
            of = np.full(self.groups * LANES, -1)
            of[first:last] = np.arange(first, last)
            groups = range(first // LANES, (last - 1) // LANES + 1)
            slots += groups
            sources += [of[group * LANES : (group + 1) * LANES] for group in groups]
            if queries.document_weights is not None:  # the product with the document's own row has a sum of its own
                own = np.full(LANES, -1)
                own[(last - 1) % LANES] = rows + len(starts) - 1
                slots.append(self.groups + groups[-1])
                sources.append(own)
            starts.append(len(slots))
        self.starts, self.slots = np.array(starts, dtype=np.int64), np.array(slots, dtype=np.int64)
        self._sources = np.array(sources)  # [slots, 16], the number of the factor, or -1 for 0

    def factors(self, coded: CodedQueries) -> npt.NDArray[np.float32]:
        """Return the factor of each sum: float32 ``[slots, 16]``."""
        known = [coded.factors]
        if self.queries.document_weights is not None:
            last = coded.steps[self.queries.offsets[1:] - 1]
            known.append((last * self.queries.document_weights).astype(np.float32))
        found: npt.NDArray[np.float32] = np.concatenate([*known, np.zeros(1, dtype=np.float32)])[self._sources]
        return _aligned(found)


class CompiledScan:
    """Scores documents of one shard against some queries, within ``coded.errors`` of the true scores."""

    def __init__(
        self, function: Callable[..., None], codes: Codes, offsets: Numbers, coded: CodedQueries, columns: Columns
    ) -> None:
        self.function, self.columns = function, columns
        self.codes, self.offsets = np.ascontiguousarray(codes), np.ascontiguousarray(offsets)
        rows, width = coded.codes.shape
        self.words = width // _FOUR
        asked = np.zeros((columns.groups * LANES, width), dtype=np.int8)
        asked[:rows] = coded.codes
        by_word = asked.reshape(columns.groups, LANES, self.words, _FOUR).transpose(0, 2, 1, 3)
        self.asked = _aligned(by_word)  # [groups, words, 16, 4]
        self.bias = _aligned(-128 * asked.sum(axis=1, dtype=np.int32))  # the codes have 128 added
        self.factors = columns.factors(coded)

    def fill(self, first: int, last: int, scores: Scores) -> None:
        """Score the documents from ``first`` to the one before ``last`` into their columns of ``scores``."""
        columns = self.columns
        best = _aligned(np.empty((2 * columns.groups, LANES), dtype=np.int32))
        scratch = _aligned(np.empty(CHUNK * self.words, dtype=np.int32))
        asked = (self.words, columns.groups, _at(self.asked), _at(self.bias))
        summed = (len(columns.starts) - 1, _at(columns.starts), _at(columns.slots), _at(self.factors))
        documents = (_at(self.codes), _at(self.offsets), first, last)
        self.function(*documents, *asked, *summed, _at(scores), scores.shape[1], _at(best), _at(scratch))


def _at(array: Array) -> int:
    """Return the address of an array."""
    return int(array.ctypes.data)


def _aligned(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Copy an array to memory that begins with a line of the cache, so that no register is read from two."""
    memory = np.empty(array.nbytes + _LINE, dtype=np.uint8)
    start = -_at(memory) % _LINE
    copy: npt.NDArray[Number] = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _right(function: Callable[..., None], dimensions: int) -> bool:
    """Compare the scores of some documents with those of plain products."""
    rng = np.random.default_rng(0)
    lengths, sizes = (1, 7, 8, 9, 2 * CHUNK + 3), (1, LANES, 2 * LANES + 3)
    offsets, ends = (np.cumsum([0, *of], dtype=np.int64) for of in (lengths, sizes))
    codes, asked = (rng.integers(-127, 128, (of[-1], dimensions)).astype(np.int8) for of in (offsets, ends))
    queries = QueryBatch(asked.astype(np.float32), ends, None, np.ones(len(sizes)))
    ones = np.ones(len(asked), dtype=np.float32)
    scores = np.empty((len(sizes), len(lengths)), dtype=np.float32)
    coded = CodedQueries(asked, ones, ones, np.zeros(len(sizes)))
    CompiledScan(function, codes, offsets, coded, Columns(queries)).fill(0, len(lengths), scores)
    products = asked.astype(np.float64) @ codes.T.astype(np.float64)
    best = np.maximum.reduceat(products, offsets[:-1], axis=1)
    true = np.add.reduceat(best, ends[:-1], axis=0) + products[np.ix_(ends[1:] - 1, offsets[1:] - 1)]
    return bool((np.abs(scores - true) <= 1e-5 * np.abs(products).max() * len(asked)).all())
