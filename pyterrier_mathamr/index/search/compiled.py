"""The scan of int8 codes by a function compiled for this processor, which the extra ``compiled`` brings.

It multiplies and reduces in registers what torch writes to a cache and reads again, in less than a third of the time.
Without llvmlite, on a processor without AVX-512 VNNI, or where its result is not right, :class:`~.int8.CodeScan` scans
instead: the answer is the same.

One instruction, ``vpdpbusd``, multiplies four bytes of a row of codes with the same four of sixteen query rows, and
adds them up. Products stay in registers, where the greatest of each document is found::

    document:  codes + 128, at most CHUNK rows of it    ->  scratch          bytes without sign, as it takes them
        group: sixteen query rows, or twice as many
            tile: TILE rows of scratch                  ->  greatest so far  int32 [16]
    each query:  sum of greatest times factors          ->  its score        float32

A document's last tile repeats its last row until it is full, which changes no maximum, so the last register has the
products of the document's own row.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.index.backend import Array, Codes, Numbers, Scores

from .int8 import CodedQueries
from .queries import QueryBatch

LANES = 16
"""Query rows in one register."""

TILE = 8
"""Rows multiplied side by side: as many sums as the processor has under way at once."""

CHUNK = 64
"""Rows of one document in the scratch memory, which stays in the nearest cache."""

_AHEAD = 2048
"""Bytes that are asked for before they are needed; memory that is not there is not read."""

_INTS, _FLOATS = f"<{LANES} x i32>", f"<{LANES} x float>"


def source() -> str:
    """Return the module, whose function ``scan`` has the arguments of :class:`~.compiled_scan.CompiledScan`."""
    return "\n".join([_DECLARED, _tile(1), _tile(2), _SCAN])


def _tile(groups: int) -> str:
    """Return the function that multiplies a tile with one or two groups of query rows."""
    lines = [
        f"define internal void @tile{groups}(ptr %tile, i64 %left, i64 %words, ptr %query, ptr %bias, ptr %best, "
        "ptr %own) alwaysinline {",
        "entry:",
        *_addresses(groups),
        "  br label %loop",
        "loop:",
        *_products(groups),
        "  br i1 %any, label %loop, label %done",
        "done:",
        *_maxima(groups),
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


def _addresses(groups: int) -> Iterator[str]:
    """Yield where the rows of a tile and the query rows begin, and what the sums begin with."""
    yield "  %last = sub i64 %left, 1"
    yield "  %width = shl i64 %words, 2"
    for row in range(TILE):
        yield f"  %number{row} = call i64 @llvm.umin.i64(i64 {row}, i64 %last)"
        yield f"  %byte{row} = mul i64 %number{row}, %width"
        yield f"  %row{row} = getelementptr i8, ptr %tile, i64 %byte{row}"
    for group in range(groups):
        yield f"  %word{group} = mul i64 %words, {group}"
        yield f"  %query{group} = getelementptr {_INTS}, ptr %query, i64 %word{group}"
        yield f"  %biases{group} = getelementptr {_INTS}, ptr %bias, i64 {group}"
        yield f"  %bias{group} = load {_INTS}, ptr %biases{group}, align 4"


def _products(groups: int) -> Iterator[str]:
    """Yield the body of the loop over words of four bytes: each row's times each group's are added to their sum."""
    sums = [(row, group) for row in range(TILE) for group in range(groups)]
    yield "  %word = phi i64 [0, %entry], [%next, %loop]"
    for row, group in sums:
        yield f"  %sum{row}.{group} = phi {_INTS} [%bias{group}, %entry], [%more{row}.{group}, %loop]"
    for group in range(groups):
        yield f"  %asked{group} = getelementptr {_INTS}, ptr %query{group}, i64 %word"
        yield f"  %bytes{group} = load {_INTS}, ptr %asked{group}, align 4"
    for row in range(TILE):
        yield f"  %code{row} = getelementptr i32, ptr %row{row}, i64 %word"
        yield f"  %four{row} = load i32, ptr %code{row}, align 4"
        yield f"  %one{row} = insertelement {_INTS} poison, i32 %four{row}, i64 0"
        yield f"  %all{row} = shufflevector {_INTS} %one{row}, {_INTS} poison, {_INTS} zeroinitializer"
    for row, group in sums:
        yield (
            f"  %more{row}.{group} = call {_INTS} @llvm.x86.avx512.vpdpbusd.512"
            f"({_INTS} %sum{row}.{group}, {_INTS} %all{row}, {_INTS} %bytes{group})"
        )
    yield "  %next = add i64 %word, 1"
    yield "  %any = icmp ult i64 %next, %words"


def _maxima(groups: int) -> Iterator[str]:
    """Yield what keeps the greatest product of each query row, and that of the document's own row."""
    for group in range(groups):
        yield f"  %bests{group} = getelementptr {_INTS}, ptr %best, i64 {group}"
        yield f"  %most0.{group} = load {_INTS}, ptr %bests{group}, align 4"
        for row in range(TILE):
            yield (
                f"  %most{row + 1}.{group} = call {_INTS} @llvm.smax.v{LANES}i32"
                f"({_INTS} %most{row}.{group}, {_INTS} %more{row}.{group})"
            )
        yield f"  store {_INTS} %most{TILE}.{group}, ptr %bests{group}, align 4"
        yield f"  %owns{group} = getelementptr {_INTS}, ptr %own, i64 {group}"
        yield f"  store {_INTS} %more{TILE - 1}.{group}, ptr %owns{group}, align 4"


_DECLARED = f"""
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare {_INTS} @llvm.smax.v{LANES}i32({_INTS}, {_INTS})
declare {_INTS} @llvm.x86.avx512.vpdpbusd.512({_INTS}, {_INTS}, {_INTS})
declare float @llvm.vector.reduce.fadd.v{LANES}f32(float, {_FLOATS})
"""

_SCAN = f"""
define void @scan(ptr %codes, ptr %offsets, i64 %first, i64 %last, i64 %words, i64 %groups, ptr %query, ptr %bias,
    i64 %queries, ptr %starts, ptr %slots, ptr %factors, ptr %scores, i64 %stride, ptr %best, ptr %scratch) {{
entry:
  %own = getelementptr {_INTS}, ptr %best, i64 %groups
  %width = shl i64 %words, 2
  %any = icmp ult i64 %first, %last
  br i1 %any, label %document, label %end

document:
  %d = phi i64 [%first, %entry], [%d.next, %document.done]
  %d.next = add i64 %d, 1
  %begins = getelementptr i64, ptr %offsets, i64 %d
  %ends = getelementptr i64, ptr %offsets, i64 %d.next
  %begin = load i64, ptr %begins
  %end.row = load i64, ptr %ends
  %length = sub i64 %end.row, %begin
  %begin.byte = mul i64 %begin, %width
  %rows = getelementptr i8, ptr %codes, i64 %begin.byte
  br label %clear
clear:
  %c = phi i64 [0, %document], [%c.next, %clear]
  %cleared = getelementptr {_INTS}, ptr %best, i64 %c
  store {_INTS} splat (i32 -2147483648), ptr %cleared, align 4
  %c.next = add i64 %c, 1
  %c.more = icmp ult i64 %c.next, %groups
  br i1 %c.more, label %clear, label %chunk

chunk:
  %base = phi i64 [0, %clear], [%base.next, %chunk.done]
  %left = sub i64 %length, %base
  %some = call i64 @llvm.umin.i64(i64 %left, i64 {CHUNK})
  %size = mul i64 %some, %words
  %base.byte = mul i64 %base, %width
  %source = getelementptr i8, ptr %rows, i64 %base.byte
  %whole = and i64 %size, -{LANES}
  %any.whole = icmp ugt i64 %whole, 0
  br i1 %any.whole, label %copy, label %rest
copy:
  %i = phi i64 [0, %chunk], [%i.next, %copy]
  %signed = getelementptr i32, ptr %source, i64 %i
  %ahead = getelementptr i8, ptr %signed, i64 {_AHEAD}
  call void @llvm.prefetch.p0(ptr %ahead, i32 0, i32 3, i32 1)
  %bytes = load {_INTS}, ptr %signed, align 1
  %lifted = xor {_INTS} %bytes, splat (i32 u0x80808080)
  %unsigned = getelementptr i32, ptr %scratch, i64 %i
  store {_INTS} %lifted, ptr %unsigned, align 4
  %i.next = add i64 %i, {LANES}
  %i.more = icmp ult i64 %i.next, %whole
  br i1 %i.more, label %copy, label %rest
rest:
  %any.rest = icmp ult i64 %whole, %size
  br i1 %any.rest, label %single, label %group
single:
  %j = phi i64 [%whole, %rest], [%j.next, %single]
  %j.signed = getelementptr i32, ptr %source, i64 %j
  %j.bytes = load i32, ptr %j.signed, align 1
  %j.lifted = xor i32 %j.bytes, u0x80808080
  %j.unsigned = getelementptr i32, ptr %scratch, i64 %j
  store i32 %j.lifted, ptr %j.unsigned, align 4
  %j.next = add i64 %j, 1
  %j.more = icmp ult i64 %j.next, %size
  br i1 %j.more, label %single, label %group

group:
  %g = phi i64 [0, %rest], [0, %single], [%g.next, %group.done]
  %g.left = sub i64 %groups, %g
  %g.word = mul i64 %g, %words
  %g.query = getelementptr {_INTS}, ptr %query, i64 %g.word
  %g.bias = getelementptr {_INTS}, ptr %bias, i64 %g
  %g.best = getelementptr {_INTS}, ptr %best, i64 %g
  %g.own = getelementptr {_INTS}, ptr %own, i64 %g
  %two = icmp uge i64 %g.left, 2
  br i1 %two, label %pair, label %alone
pair:
  %p = phi i64 [0, %group], [%p.next, %pair]
  %p.left = sub i64 %some, %p
  %p.byte = mul i64 %p, %width
  %p.tile = getelementptr i8, ptr %scratch, i64 %p.byte
  call void @tile2(ptr %p.tile, i64 %p.left, i64 %words, ptr %g.query, ptr %g.bias, ptr %g.best, ptr %g.own)
  %p.next = add i64 %p, {TILE}
  %p.more = icmp ult i64 %p.next, %some
  br i1 %p.more, label %pair, label %group.done
alone:
  %a = phi i64 [0, %group], [%a.next, %alone]
  %a.left = sub i64 %some, %a
  %a.byte = mul i64 %a, %width
  %a.tile = getelementptr i8, ptr %scratch, i64 %a.byte
  call void @tile1(ptr %a.tile, i64 %a.left, i64 %words, ptr %g.query, ptr %g.bias, ptr %g.best, ptr %g.own)
  %a.next = add i64 %a, {TILE}
  %a.more = icmp ult i64 %a.next, %some
  br i1 %a.more, label %alone, label %group.done
group.done:
  %taken = phi i64 [2, %pair], [1, %alone]
  %g.next = add i64 %g, %taken
  %g.more = icmp ult i64 %g.next, %groups
  br i1 %g.more, label %group, label %chunk.done
chunk.done:
  %base.next = add i64 %base, {CHUNK}
  %base.more = icmp ult i64 %base.next, %length
  br i1 %base.more, label %chunk, label %score

score:
  %q = phi i64 [0, %chunk.done], [%q.next, %summed]
  %q.next = add i64 %q, 1
  %from = getelementptr i64, ptr %starts, i64 %q
  %to = getelementptr i64, ptr %starts, i64 %q.next
  %s.first = load i64, ptr %from
  %s.end = load i64, ptr %to
  br label %sum
sum:
  %s = phi i64 [%s.first, %score], [%s.next, %sum]
  %total = phi {_FLOATS} [zeroinitializer, %score], [%total.next, %sum]
  %slot.at = getelementptr i64, ptr %slots, i64 %s
  %slot = load i64, ptr %slot.at
  %found.at = getelementptr {_INTS}, ptr %best, i64 %slot
  %found = load {_INTS}, ptr %found.at, align 4
  %number = sitofp {_INTS} %found to {_FLOATS}
  %factor.at = getelementptr {_FLOATS}, ptr %factors, i64 %s
  %factor = load {_FLOATS}, ptr %factor.at, align 4
  %weighted = fmul contract {_FLOATS} %number, %factor
  %total.next = fadd contract {_FLOATS} %total, %weighted
  %s.next = add i64 %s, 1
  %s.more = icmp ult i64 %s.next, %s.end
  br i1 %s.more, label %sum, label %summed
summed:
  %result = call reassoc float @llvm.vector.reduce.fadd.v{LANES}f32(float 0.0, {_FLOATS} %total.next)
  %line = mul i64 %q, %stride
  %place = add i64 %line, %d
  %into = getelementptr float, ptr %scores, i64 %place
  store float %result, ptr %into
  %q.more = icmp ult i64 %q.next, %queries
  br i1 %q.more, label %score, label %document.done
document.done:
  %d.more = icmp ult i64 %d.next, %last
  br i1 %d.more, label %document, label %end

end:
  ret void
}}
"""


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
