"""The scan of int8 codes in the language of LLVM, for x86 processors with AVX-512 VNNI.

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

from collections.abc import Iterator

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
