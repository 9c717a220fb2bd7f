"""Rows of tables by number: gathered, or changed one after the other, once every number was found to be in range.

The compiled functions take the address of six numbers (`ARGUMENTS`). They return 0, or one more than the position of
the first number that is out of range; then nothing was read or written.
"""

from __future__ import annotations

import functools

from toolkit.kernels.cpu.memory.addresses import address, record
from toolkit.kernels.cpu.native.code import LANES, SIZES, TYPES
from toolkit.kernels.cpu.native.compiler import INT64, Function, compiler, is_enabled
from toolkit.kernels.types import Array
from toolkit.target.target import Target
from toolkit.target.thresholds import TableThresholds

#: addresses of the table, the numbers and the rows; how many numbers there are; rows of the table; the length of a row
#: (in elements, or in bytes for "gather")
ARGUMENTS = ("table", "ids", "rows", "count", "limit", "width")

#: what a change does to a row: the instruction for floats, and for integers
_CHANGES: dict[str, tuple[str, str | None]] = {
    "add": ("fadd", "add"), "subtract": ("fsub", "sub"), "multiply": ("fmul", "mul"), "divide": ("fdiv", None),
}  # fmt: skip
_IDS = {"int32": "i32", "int64": "i64"}


def gatherer(ids: str, sizes: TableThresholds) -> Function | None:
    """The function that gathers rows by numbers of this type; None where there is none."""
    return _function("gather", "", ids, sizes)


def changer(how: str, values: str, ids: str, sizes: TableThresholds) -> Function | None:
    """The function that changes rows of this type; None where there is none.

    Args:
        how: "add", "subtract", "multiply", "divide".
        values, ids: names of numpy types.
    """
    return _function(how, values, ids, sizes)


def change(how: str, table: Array, ids: Array, rows: Array, target: Target) -> int | None:
    """table[id] = how(table[id], row) for one id after the other, in place; arrays lie densely.

    Args:
        ids: any shape, not empty.
        rows: [ids.shape, ...].

    Returns:
        0, or one more than the position of the first of `ids` that is out of range; None where this cannot be done.
    """
    function = changer(how, table.dtype.name, ids.dtype.name, target.tables) if is_enabled() else None
    if function is None:
        return None
    limit, width = table.shape[0], rows.size // ids.size
    size = table.itemsize * width
    arguments = record(
        address(table, limit * size), address(ids, ids.nbytes), address(rows, ids.size * size), ids.size, limit, width
    )
    return (function.call_held if rows.nbytes < target.threads.released else function.call)(arguments)


@functools.cache
def _function(what: str, values: str, ids: str, sizes: TableThresholds) -> Function | None:
    machine = compiler()
    if machine is None or ids not in _IDS:
        return None
    if what == "gather":
        return machine.function(_module(_IDS[ids], "i8", _COPY, sizes), {}, INT64)
    kind = TYPES.get(values)
    if kind is None or what not in _CHANGES:
        return None
    instruction = _CHANGES[what][kind not in ("float", "double")]
    if instruction is None or kind == "i1":
        return None
    return machine.function(_module(_IDS[ids], kind, _change(instruction, kind), sizes), {}, INT64)


#: each text is the work on row %r: from %row, which is in the table, and %given
_COPY = """
  call void @llvm.memcpy.p0.p0.i64(ptr %given, ptr %row, i64 %width, i1 false)
  br label %latch
"""


def _change(instruction: str, kind: str) -> str:
    """A row is taken in whole vectors, and what is left element by element."""
    vector, size = f"<{LANES} x {kind}>", SIZES[kind]
    return f"""
  br i1 %wide, label %vectors, label %rest
vectors:
  %i = phi i64 [0, %head], [%in, %vectors]
  %p = getelementptr {kind}, ptr %row, i64 %i
  %g = getelementptr {kind}, ptr %given, i64 %i
  %a = load {vector}, ptr %p, align {size}
  %b = load {vector}, ptr %g, align {size}
  %c = {instruction} {vector} %a, %b
  store {vector} %c, ptr %p, align {size}
  %in = add i64 %i, {LANES}
  %more = icmp ult i64 %in, %whole
  br i1 %more, label %vectors, label %rest
rest:
  br i1 %even, label %latch, label %single
single:
  %j = phi i64 [%whole, %rest], [%jn, %single]
  %sp = getelementptr {kind}, ptr %row, i64 %j
  %sg = getelementptr {kind}, ptr %given, i64 %j
  %sa = load {kind}, ptr %sp
  %sb = load {kind}, ptr %sg
  %sc = {instruction} {kind} %sa, %sb
  store {kind} %sc, ptr %sp
  %jn = add i64 %j, 1
  %again = icmp ult i64 %jn, %width
  br i1 %again, label %single, label %latch
"""


def _module(ids: str, kind: str, work: str, sizes: TableThresholds) -> str:
    """Two loops: one over the numbers, one over their rows."""
    widened = "%found = add i64 %id, 0" if ids == "i64" else "%found = sext i32 %id to i64"
    coming = "%later = add i64 %soon, 0" if ids == "i64" else "%later = sext i32 %soon to i64"
    load = "\n".join(
        f"  %{name}_ = getelementptr i64, ptr %arguments, i64 {index}\n"
        f"  %{name} = load {'ptr' if index < 3 else 'i64'}, ptr %{name}_"
        for index, name in enumerate(ARGUMENTS)
    )
    fetch = "\n".join(
        f"  %line{line} = getelementptr i8, ptr %next, i64 {64 * line}\n"
        f"  call void @llvm.prefetch.p0(ptr %line{line}, i32 {int(kind != 'i8')}, i32 3, i32 1)"
        for line in range(sizes.lines)
    )
    return f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
define i64 @run(ptr %arguments) #0 {{
entry:
{load}
  %whole = and i64 %width, {-LANES}
  %even = icmp eq i64 %whole, %width
  %wide = icmp ne i64 %whole, 0
  %last = sub i64 %count, 1
  br label %check
check:
  %n = phi i64 [0, %entry], [%nn, %good]
  %where = getelementptr {ids}, ptr %ids, i64 %n
  %id = load {ids}, ptr %where
  {widened}
  %nn = add i64 %n, 1
  %inside = icmp ult i64 %found, %limit
  br i1 %inside, label %good, label %bad
bad:
  ret i64 %nn
good:
  %unchecked = icmp ult i64 %nn, %count
  br i1 %unchecked, label %check, label %ready
ready:
  br label %head
head:
  %r = phi i64 [0, %ready], [%rn, %latch]
  %at = getelementptr {ids}, ptr %ids, i64 %r
  %this = load {ids}, ptr %at
  %number = {"add i64 %this, 0" if ids == "i64" else "sext i32 %this to i64"}
  %far = add i64 %r, {sizes.ahead}
  %within = icmp ult i64 %far, %last
  %ahead = select i1 %within, i64 %far, i64 %last
  %then = getelementptr {ids}, ptr %ids, i64 %ahead
  %soon = load {ids}, ptr %then
  {coming}
  %jump = mul i64 %later, %width
  %next = getelementptr {kind}, ptr %table, i64 %jump
{fetch}
  %start = mul i64 %number, %width
  %row = getelementptr {kind}, ptr %table, i64 %start
  %passed = mul i64 %r, %width
  %given = getelementptr {kind}, ptr %rows, i64 %passed
{work}
latch:
  %rn = add i64 %r, 1
  %left = icmp ult i64 %rn, %count
  br i1 %left, label %head, label %done
done:
  ret i64 0
}}
attributes #0 = {{ nounwind "min-legal-vector-width"="512" "prefer-vector-width"="512" }}
"""
