"""The scan of int8 codes by a function compiled for this processor, with the extra ``compiled``.

It multiplies and reduces in registers, where torch writes to a cache and reads again, in less than a third of the time.
Without llvmlite, on a processor without AVX-512 VNNI, or if its result is wrong, :class:`~.int8.CodeScan` scans
instead: the answer is the same.

One instruction, ``vpdpbusd``, multiplies four bytes of a row of codes with the same four of sixteen query rows, and
adds them up. Products stay in registers, where the maximum of each document is found::

    document:  codes + 128, at most CHUNK rows of it    ->  scratch          unsigned bytes, its operands
        group: sixteen query rows, or twice as many
            tile: TILE rows of scratch                  ->  greatest so far  int32 [16]; float32 where each row
                                                                             has a scale
    each query:  sum of greatest times factors          ->  its score        float32

Four-bit codes become whole bytes on the way to the scratch memory.

A document's last tile repeats its last row until it is full, which changes no maximum, so the last register has the
products of the document's own row. Where all documents have one row, as formulas do, a tile is eight documents, and
there is no maximum to find.

A typed question has two to five rows, which would leave most of the sixteen lanes empty. For at most :data:`FEW` query
rows, of whole cache lines, one instruction multiplies 64 bytes of a row of codes with the same 64 of one query row, and
the lanes are summed at the end.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.index.backend import GROUP, STEP, Array, Codes, Numbers, QueryBatch, Scores, pack_codes

from .int8 import CodedQueries, Coding

LANES = 16  # query rows in one register
TILE = 8  # rows multiplied side by side: as many sums as the processor has under way at once
FEW = 6  # query rows up to which the lanes of a register are parts of one row, not different rows
CHUNK = 64  # rows of one document in the scratch memory, which stays in the nearest cache
_AHEAD = 2048  # bytes that are prefetched; memory that is not there is not read

_POINTERS = (
    "codes",
    "row_scales",
    "offsets",
    "query",
    "bias",
    "starts",
    "slots",
    "factors",
    "scores",
    "best",
    "scratch",
    "lines",
)
_NUMBERS = ("first", "last", "words", "few", "groups", "queries", "stride")  # few: 0, or the number of query rows


def _operator(instruction: str) -> Callable[[_Index, _Index | int], _Index]:
    def apply(one: _Index, other: _Index | int) -> _Index:
        value = one.value.type(other) if isinstance(other, int) else other.value
        return _Index(one.builder, getattr(one.builder, instruction)(one.value, value))

    return apply


class _Index:
    """A 64-bit integer of the function that is built, with Python's operators."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    __add__, __sub__, __mul__, __floordiv__ = map(_operator, ("add", "sub", "mul", "udiv"))

    def __lt__(self, other: _Index) -> Any:
        return self.builder.icmp_unsigned("<", self.value, other.value)


class _ScanSource:
    """Builds the function ``scan`` of :data:`_POINTERS` and :data:`_NUMBERS`; an ``alloca`` becomes a register.

    With ``scaled``, a product is multiplied by the scale of its row before the greatest is found. With ``single``, each
    document has one row. With ``packed``, codes have four bits.
    """

    def __init__(self, scaled: bool, single: bool, packed: bool) -> None:
        from llvmlite import ir

        self.scaled, self.single, self.packed = scaled, single, packed

        self.ir, self.module = ir, ir.Module("scan")
        self.byte, self.word, self.index, self.float = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType()
        self.ints, self.floats = ir.VectorType(self.word, LANES), ir.VectorType(self.float, LANES)
        self.kept = self.floats if scaled else self.ints  # the type of the maxima
        pointer = ir.PointerType()
        self.umin = self._declared("llvm.umin.i64", self.index, self.index, self.index)
        self.smax = self._declared(f"llvm.smax.v{LANES}i32", self.ints, self.ints, self.ints)
        self.fetch = self._declared("llvm.prefetch.p0", ir.VoidType(), pointer, *3 * [self.word])
        self.multiply = self._declared("llvm.x86.avx512.vpdpbusd.512", self.ints, *3 * [self.ints])
        self.add = self._declared(f"llvm.vector.reduce.add.v{LANES}i32", self.word, self.ints)
        self.sum = self._declared(f"llvm.vector.reduce.fadd.v{LANES}f32", self.float, self.float, self.floats)
        scan = self._declared("scan", ir.VoidType(), *[pointer] * len(_POINTERS), *[self.index] * len(_NUMBERS))
        self.b = ir.IRBuilder(scan.append_basic_block())
        self.zero = _Index(self.b, self.index(0))
        self.memory = dict(zip(_POINTERS, scan.args, strict=False))
        numbers = [_Index(self.b, argument) for argument in scan.args[len(_POINTERS) :]]
        self.first, self.last, self.words, self.few, self.groups, self.queries, self.stride = numbers
        self.sums = [[self.b.alloca(self.ints) for _ in range(2)] for _ in range(TILE)]
        self.total = self.b.alloca(self.floats)
        self.zeros = ir.Constant(self.ints, [0] * LANES)

    def _declared(self, name: str, result: Any, *arguments: Any) -> Any:
        return self.ir.Function(self.module, self.ir.FunctionType(result, arguments), name)

    def _least(self, one: int, other: _Index) -> _Index:
        return _Index(self.b, self.b.call(self.umin, [self.index(one), other.value]))

    def _at(self, base: Any, place: _Index | int, kind: Any) -> Any:
        """Return the address of one of several values in memory, which an argument's name or an address begins."""
        base = self.memory[base] if isinstance(base, str) else base
        return self.b.gep(base, [self.index(place) if isinstance(place, int) else place.value], source_etype=kind)

    def _read(self, base: Any, place: _Index | int, kind: Any, align: int = 4) -> Any:
        return self.b.load(self._at(base, place, kind), typ=kind, align=align)

    def _number(self, base: str, place: _Index) -> _Index:
        return _Index(self.b, self._read(base, place, self.index, 8))

    @contextmanager
    def _loop(self, first: _Index, last: _Index, step: int = 1) -> Iterator[_Index]:
        """Repeat for numbers from ``first`` on while they are less than ``last``, at least once."""
        b, before, body = self.b, self.b.block, self.b.append_basic_block()
        b.branch(body)
        b.position_at_end(body)
        phi = b.phi(self.index)
        phi.add_incoming(first.value, before)
        number = _Index(b, phi)
        yield number
        following = number + step
        phi.add_incoming(following.value, b.block)
        after = b.append_basic_block()
        b.cbranch(following < last, body, after)
        b.position_at_end(after)

    def build(self) -> str:
        b, zero = self.b, self.zero
        self.per_document = self.groups * 2  # sums of a document: the greatest, and its own row's
        self.width = self.words * 4
        self.stored = self.words * (2 if self.packed else 4)  # bytes of a row of codes
        step = TILE if self.single else 1
        with b.if_then(self.first < self.last), self._loop(self.first, self.last, step) as document:
            begin = self._number("offsets", document)
            rows = self._at("codes", begin * self.stored, self.byte)
            if self.single:
                documents = self._least(TILE, self.last - document)
                self._lift(rows, documents * self.words)
                self._multiply_groups(begin, documents)
            else:
                documents = zero + 1
                self._multiply_document(begin, rows, self._number("offsets", document + 1) - begin)
            with self._loop(zero, documents) as one, self._loop(zero, self.queries) as query:
                self._score(query, document + one, self._at("best", one * self.per_document, self.kept))
        b.ret_void()
        return str(self.module)

    def _multiply_document(self, begin: _Index, rows: Any, length: _Index) -> None:
        """Find the greatest products of the rows of one document."""
        with self._loop(self.zero, self.groups) as group:
            least = self.ir.Constant(self.kept, [-math.inf if self.scaled else -(2**31)] * LANES)
            self.b.store(least, self._at("best", group, self.kept), align=4)
        with self._loop(self.zero, length, CHUNK) as start:
            some = self._least(CHUNK, length - start)
            self._lift(self._at(rows, start * self.stored, self.byte), some * self.words)
            self._multiply_groups(begin + start, some)

    def _lift(self, source: Any, size: _Index) -> None:
        """Copy words of codes to the scratch memory, with 128 added to each byte."""
        b = self.b
        stored = size // 2 if self.packed else size
        whole = stored // LANES * LANES
        with b.if_then(self.zero < whole), self._loop(self.zero, whole, LANES) as word:
            signed = self._at(source, word, self.word)
            b.call(self.fetch, [self._at(signed, _AHEAD, self.byte), *(self.word(value) for value in (0, 3, 1))])
            self._lift_words(b.load(signed, typ=self.ints, align=1), word)
        with b.if_then(whole < stored), self._loop(whole, stored) as word:
            self._lift_words(self._read(source, word, self.word, 1), word)

    def _lift_words(self, codes: Any, word: _Index) -> None:
        """Write one word of codes, or sixteen, to the scratch memory; packed ones become twice as many."""
        b, lanes = self.b, LANES if codes.type == self.ints else 1

        def each(value: int) -> Any:
            return self.ir.Constant(codes.type, [value] * LANES if lanes > 1 else value)

        def lift(whole: Any, place: _Index) -> None:
            b.store(b.xor(whole, each(0x80808080)), self._at("scratch", place, self.word), align=4)

        if not self.packed:
            lift(codes, word)
            return
        halves = tuple(b.and_(shifted, each(0xF0F0F0F0)) for shifted in (b.shl(codes, each(4)), codes))
        if lanes > 1:  # the low bits of a word become the word before that of its high bits
            order = [lane + LANES * high for lane in range(LANES) for high in range(2)]
            orders = (self.ir.Constant(self.ints, order[start : start + LANES]) for start in (0, LANES))
            halves = tuple(b.shuffle_vector(*halves, lanes_of) for lanes_of in orders)
        for half, at in zip(halves, (0, lanes), strict=True):
            lift(half, word * 2 + at)

    def _multiply_groups(self, base: _Index, rows: _Index) -> None:
        """Multiply the rows in the scratch memory with few query rows, or with two groups of them at a time."""
        b, zero = self.b, self.zero
        with b.if_else(zero < self.few) as (few, many):
            with few, self._loop(zero, rows, TILE) as row:
                self._tile(base + row, row, rows - row, zero, 0)
            with many, self._loop(zero, self.groups, 2) as group, b.if_else(group + 1 < self.groups) as branches:
                for branch, groups in zip(branches, (2, 1), strict=True):
                    with branch, self._loop(zero, rows, TILE) as row:
                        self._tile(base + row, row, rows - row, group, groups)

    def _tile(self, number: _Index, row: _Index, left: _Index, group: _Index, groups: int) -> None:
        """Multiply a tile with few query rows or one or two groups; keep the greatest products and the last row's.

        If each row is a document, the products of all rows are kept.
        """
        b = self.b
        tile = self._at("scratch", row * self.width, self.byte)
        places, within = [group + i for i in range(groups or 1)], [self._least(i, left - 1) for i in range(TILE)]
        lines = [line * self.words for line in within]
        tiles = self._products(tile, lines, places) if groups else [self._few_products(tile, lines)]
        for place, products in zip(places, tiles, strict=True):
            if self.scaled:
                scales = [self._repeated(self._read("row_scales", number + line, self.float)) for line in within]
                products = [
                    b.fmul(b.sitofp(sums, self.floats), scale) for sums, scale in zip(products, scales, strict=True)
                ]
            if self.single:
                for line, own in enumerate(products):
                    self._keep(own, own, place + self.per_document * line)
                continue
            most = self._read("best", place, self.kept)
            for own in products:
                greater = b.fcmp_ordered(">", own, most) if self.scaled else None
                most = b.select(greater, own, most) if greater else b.call(self.smax, [most, own])
            self._keep(most, products[-1], place)

    def _products(self, tile: Any, lines: list[_Index], places: list[_Index]) -> list[list[Any]]:
        """Multiply the rows of a tile, four bytes at a time, with sixteen query rows of each group."""
        b = self.b
        query = [self._at("query", place * self.words, self.ints) for place in places]
        for sums in self.sums:
            for place, total in zip(places, sums, strict=False):
                b.store(self._read("bias", place, self.ints), total)
        with self._loop(self.zero, self.words) as word:
            asked = [self._read(rows, word, self.ints) for rows in query]
            for line, sums in zip(lines, self.sums, strict=True):
                four = self._read(tile, line + word, self.word)
                for rows, total in zip(asked, sums, strict=False):
                    b.store(b.call(self.multiply, [b.load(total, typ=self.ints), self._repeated(four), rows]), total)
        return [[b.load(sums[i], typ=self.ints) for sums in self.sums] for i in range(len(places))]

    def _few_products(self, tile: Any, lines: list[_Index]) -> list[Any]:
        """Multiply the rows of a tile, 64 bytes at a time, with each of few query rows."""
        b = self.b
        with self._loop(self.zero, self.few) as asked:
            query = self._at("query", asked * self.words, self.word)
            for total, _ in self.sums:
                b.store(self.zeros, total)
            with self._loop(self.zero, self.words, LANES) as word:
                rows = b.load(self._at(query, word, self.word), typ=self.ints, align=4)
                for line, (total, _) in zip(lines, self.sums, strict=True):
                    codes = b.load(self._at(tile, line + word, self.word), typ=self.ints, align=4)
                    b.store(b.call(self.multiply, [b.load(total, typ=self.ints), codes, rows]), total)
            bias = self._read("bias", asked, self.word)
            for place, (total, _) in enumerate(self.sums):
                product = b.add(b.call(self.add, [b.load(total, typ=self.ints)]), bias)
                b.store(product, self._at(self._at("lines", place, self.ints), asked, self.word), align=4)
        return [self._read("lines", place, self.ints) for place in range(TILE)]

    def _keep(self, most: Any, own: Any, place: _Index) -> None:
        """Store the greatest products of a document with a group of query rows, and its own row's."""
        for value, at in ((most, place), (own, place + self.groups)):
            self.b.store(value, self._at("best", at, self.kept), align=4)

    def _repeated(self, value: Any) -> Any:
        undefined = self.ir.Constant(self.floats if value.type == self.float else self.ints, self.ir.Undefined)
        one = self.b.insert_element(undefined, value, self.index(0))
        return self.b.shuffle_vector(one, one, self.zeros)

    def _score(self, query: _Index, document: _Index, best: Any) -> None:
        """Sum the greatest products of one query times their factors."""
        b = self.b
        b.store(self.ir.Constant(self.floats, [0.0] * LANES), self.total)
        with self._loop(self._number("starts", query), self._number("starts", query + 1)) as place:
            greatest = self._read(best, self._number("slots", place), self.kept)
            factors = self._read("factors", place, self.floats)
            numbers = greatest if self.scaled else b.sitofp(greatest, self.floats)
            product = b.fmul(numbers, factors, flags=["contract"])
            b.store(b.fadd(b.load(self.total, typ=self.floats), product, flags=["contract"]), self.total)
        total = b.load(self.total, typ=self.floats)
        score = b.call(self.sum, [self.ir.Constant(self.float, 0.0), total], fastmath=["reassoc"])
        b.store(score, self._at("scores", query * self.stride + document, self.float), align=4)


Number = TypeVar("Number", np.int8, np.int32, np.float32)

_FOUR = 4  # bytes of a row in one instruction
_MOST = 1 << 12  # dimensions up to which the scratch memory stays in a cache
_LINE = 64
_NEEDED = "avx512vnni"


@lru_cache(maxsize=16)
def compiled(
    dimensions: int, scaled: bool = False, single: bool = False, packed: bool = False
) -> Callable[..., None] | None:
    """Return the function for vectors of some width, tested once; ``None`` where it cannot be used.

    ``single`` is for documents that have one row each, ``packed`` for codes of four bits.
    """
    if dimensions % (GROUP if packed else _FOUR) or not 0 < dimensions <= _MOST:
        return None
    try:
        function = _compile(scaled, single, packed)
    except (ImportError, AttributeError, OSError, RuntimeError):  # no llvmlite, or another release of it
        return None
    return function if function is not None and _right(function, dimensions, scaled, single, packed) else None


@lru_cache(maxsize=8)
def _compile(scaled: bool, single: bool, packed: bool) -> Callable[..., None] | None:
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
    module = llvm.parse_assembly(_ScanSource(scaled, single, packed).build())
    module.verify()
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    arguments = [ctypes.c_void_p] * len(_POINTERS) + [ctypes.c_int64] * len(_NUMBERS)
    function = ctypes.CFUNCTYPE(None, *arguments)(engine.get_function_address("scan"))
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
            row_of_lane = np.full(self.groups * LANES, -1)
            row_of_lane[first:last] = np.arange(first, last)
            groups = range(first // LANES, (last - 1) // LANES + 1)
            slots += groups
            sources += [row_of_lane[group * LANES : (group + 1) * LANES] for group in groups]
            if queries.document_weights is not None:  # the product with the document's own row has a separate sum
                blend_lane = np.full(LANES, -1)
                blend_lane[(last - 1) % LANES] = rows + len(starts) - 1
                slots.append(self.groups + groups[-1])
                sources.append(blend_lane)
            starts.append(len(slots))
        self.starts, self.slots = np.array(starts, dtype=np.int64), np.array(slots, dtype=np.int64)
        self._sources = np.array(sources)  # [slots, 16], the number of the factor, or -1 for 0

    def factors(self, coded: CodedQueries) -> npt.NDArray[np.float32]:
        """Return the factor of each sum: float32 ``[slots, 16]``."""
        known = [coded.factors]
        if self.queries.document_weights is not None:
            last = coded.steps[self.queries.offsets[1:] - 1]
            known.append((last * self.queries.document_weights).astype(np.float32))
        factors: npt.NDArray[np.float32] = np.concatenate([*known, np.zeros(1, dtype=np.float32)])[self._sources]
        return _aligned(factors)


class CompiledScan:
    """Scores documents of one shard against some queries, within ``coded.errors`` of the true scores."""

    def __init__(
        self, function: Callable[..., None], coding: Coding, offsets: Numbers, coded: CodedQueries, columns: Columns
    ) -> None:
        self.function, self.columns = function, columns
        self.codes, self.offsets = np.ascontiguousarray(coding.codes), np.ascontiguousarray(offsets)
        none = np.empty(0, dtype=np.float32)
        self.row_scales = none if coding.row_scales is None else np.ascontiguousarray(coding.row_scales)
        rows, width = coded.codes.shape
        self.words = width // _FOUR
        self.few = rows if rows <= FEW and width % _LINE == 0 else 0
        asked = np.zeros((columns.groups * LANES, width), dtype=np.int8)
        asked[:rows] = _in_packed_order(coded.codes) if coding.packed else coded.codes
        by_word = asked.reshape(columns.groups, LANES, self.words, _FOUR).transpose(0, 2, 1, 3)
        self.asked = _aligned(asked if self.few else by_word)  # [groups, words, 16, 4]
        self.bias = _aligned(-128 * asked.sum(axis=1, dtype=np.int32))  # the codes have 128 added
        self.factors = columns.factors(coded)

    def fill(self, first: int, last: int, scores: Scores) -> None:
        """Score the documents from ``first`` to the one before ``last`` into their columns of ``scores``."""
        columns = self.columns
        best = _aligned(np.empty((2 * TILE * columns.groups, LANES), dtype=np.int32))
        scratch = _aligned(np.empty(CHUNK * self.words, dtype=np.int32))
        lines = _aligned(np.zeros((TILE, LANES), dtype=np.int32))  # the products of a tile, for few query rows
        documents: tuple[Array, ...] = self.codes, self.row_scales, self.offsets
        asked: tuple[Array, ...] = self.asked, self.bias, columns.starts, columns.slots, self.factors
        numbers = (first, last, self.words, self.few, columns.groups, len(columns.starts) - 1, scores.shape[1])
        self.function(*map(_at, (*documents, *asked, scores, best, scratch, lines)), *numbers)


def _in_packed_order(codes: Codes) -> Codes:
    """Order the words of query rows as rows are unpacked: each word of the first half before its own of the second."""
    halves = codes.reshape(len(codes), 2, codes.shape[1] // GROUP, _FOUR)
    return halves.swapaxes(1, 2).reshape(codes.shape)


def _at(array: Array) -> int:
    return int(array.ctypes.data)


def _aligned(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Copy an array to memory that begins with a cache line, so that no register is read from two."""
    memory = np.empty(array.nbytes + _LINE, dtype=np.uint8)
    start = -_at(memory) % _LINE
    copy: npt.NDArray[Number] = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _right(function: Callable[..., None], dimensions: int, scaled: bool, single: bool, packed: bool) -> bool:
    """Compare the scores of some documents with plain products, for few and for many query rows."""
    rng = np.random.default_rng(0)
    lengths = (1,) * (2 * TILE + 3) if single else (1, 7, 8, 9, 2 * CHUNK + 3)
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    codes = rng.integers(-127, 128, (offsets[-1], dimensions)).astype(np.int8)
    codes = codes // STEP * STEP if packed else codes
    row_scales = rng.uniform(0.1, 1, len(codes)).astype(np.float32) if scaled else None
    stored = pack_codes(codes) if packed else codes
    coding = Coding(stored, np.ones(dimensions, dtype=np.float32), np.zeros(2), row_scales)
    for sizes in ((1, FEW - 1), (1, LANES, 2 * LANES + 3)):
        ends = np.cumsum([0, *sizes], dtype=np.int64)
        asked = rng.integers(-127, 128, (ends[-1], dimensions)).astype(np.int8)
        queries = QueryBatch(asked.astype(np.float32), ends, None, np.ones(len(sizes)))
        ones = np.ones(len(asked), dtype=np.float32)
        coded = CodedQueries(asked, ones, ones, np.zeros(len(sizes)))
        scores = np.empty((len(sizes), len(lengths)), dtype=np.float32)
        CompiledScan(function, coding, offsets, coded, Columns(queries)).fill(0, len(lengths), scores)
        products = asked.astype(np.float64) @ codes.T.astype(np.float64) * (1 if row_scales is None else row_scales)
        best = np.maximum.reduceat(products, offsets[:-1], axis=1)
        true = np.add.reduceat(best, ends[:-1], axis=0) + products[np.ix_(ends[1:] - 1, offsets[1:] - 1)]
        if not (np.abs(scores - true) <= 1e-5 * np.abs(products).max() * len(asked)).all():
            return False
    return True
