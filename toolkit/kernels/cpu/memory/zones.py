"""Red zones around the data of every NumPy array of the process, variables included, and pages that end them.

NumPy is given an allocator of our own, in machine code. Each block lies between zones of bytes that nobody may write,
and, where pages are wanted, ends at a page that nobody may touch: a read or a write beyond ends the process there.

    | header | zone | block | slack | zone, or a page that may not be touched |

The slack is there because blocks begin at multiples of 16 bytes, as those of `malloc` do.
"""

# ctypes' functions and structures have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import atexit
import ctypes
import mmap
from collections.abc import Iterator
from typing import Any, NamedTuple

from toolkit.kernels.cpu.memory import allocator
from toolkit.kernels.cpu.native.compiler import INT64, compiler, library_functions

ZONE = 256  # bytes on either side: several vectors, and a row of most tensors in tests
POISON = 0xFF  # what a fresh block is filled with: four are NaN as float32, eight as float64, two as bfloat16
#: what zones are filled with, by address modulo 8. Signalling NaNs: who computes with one leaves another number, and
#: not again what was there, as with the quiet NaNs of `POISON`
PATTERN = (0xFFF7FFFF_FFBFFFFF).to_bytes(8, "little")
PAGE = mmap.PAGESIZE  # 64 KB on some aarch64 systems
_HEADER = 64
_MARK = 0xFFFFFFFFFFED6772  # twice before a block, to know our own; two NaNs of 32 bits
_MOST_PAGES = 20_000  # blocks at one time: the system keeps 65530 mappings for a process


class _Header(ctypes.Structure):
    """What is kept of a block."""

    _fields_ = tuple(
        (name, ctypes.c_int64) for name in ("before", "next", "size", "base", "mapped", "stop", "start", "unused")
    )


class _Book(ctypes.Structure):
    """What the functions below read and write."""

    _fields_ = (
        ("first", ctypes.c_int64),
        ("mapped", ctypes.c_int64),
        ("most", ctypes.c_int64),
        ("pattern", ctypes.c_int64),
        ("context", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in allocator.KINDS),
    )


class Allocation(NamedTuple):
    """The data of an array.

    Attributes:
        start, size: of it.
        first, last: of everything that belongs to it, zones and pages included.
    """

    start: int
    size: int
    first: int
    last: int


_TEXT = f"""
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @mprotect(ptr, i64, i32)
declare i32 @munmap(ptr, i64)
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @memcmp(ptr, ptr, i64)
declare ptr @memcpy(ptr, ptr, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64, i64)

define internal i64 @field(ptr %at, i64 %index) {{
  %place = getelementptr i64, ptr %at, i64 %index
  %value = load i64, ptr %place
  ret i64 %value
}}

define internal void @put(ptr %at, i64 %index, i64 %value) {{
  %place = getelementptr i64, ptr %at, i64 %index
  store i64 %value, ptr %place
  ret void
}}

define internal ptr @pattern(ptr %book, ptr %at) {{
  %number = ptrtoint ptr %at to i64
  %phase = and i64 %number, 7
  %first = call i64 @field(ptr %book, i64 3)
  %pattern = inttoptr i64 %first to ptr
  %found = getelementptr i8, ptr %pattern, i64 %phase
  ret ptr %found
}}

define internal i1 @marked(ptr %data) {{
  %one = call i64 @field(ptr %data, i64 -1)
  %two = call i64 @field(ptr %data, i64 -2)
  %first = icmp eq i64 %one, {_MARK}
  %second = icmp eq i64 %two, {_MARK}
  %both = and i1 %first, %second
  ret i1 %both
}}

define internal ptr @allocate(ptr %book, i64 %size, i8 %fill) {{
  %huge = icmp ugt i64 %size, {1 << 46}
  br i1 %huge, label %no, label %which
which:
  %mapped = call i64 @field(ptr %book, i64 1)
  %most = call i64 @field(ptr %book, i64 2)
  %pages = icmp slt i64 %mapped, %most
  br i1 %pages, label %page, label %heap
page:
  %more = add i64 %size, 15
  %rounded = and i64 %more, -16
  %needed = add i64 %rounded, {_HEADER + ZONE + PAGE - 1}
  %room = and i64 %needed, {-PAGE}
  %total = add i64 %room, {PAGE}
  %map = call ptr @mmap(ptr null, i64 %total, i32 3, i32 34, i32 -1, i64 0)
  %map.number = ptrtoint ptr %map to i64
  %failed = icmp eq i64 %map.number, -1
  br i1 %failed, label %no, label %protect
protect:
  %end = getelementptr i8, ptr %map, i64 %room
  %status = call i32 @mprotect(ptr %end, i64 {PAGE}, i32 0)
  %one.more = add i64 %mapped, 1
  call void @put(ptr %book, i64 1, i64 %one.more)
  %back = sub i64 0, %rounded
  %page.data = getelementptr i8, ptr %end, i64 %back
  br label %filled
heap:
  %asked = add i64 %size, {_HEADER + 2 * ZONE}
  %block = call ptr @malloc(i64 %asked)
  %none = icmp eq ptr %block, null
  br i1 %none, label %no, label %had
had:
  %heap.data = getelementptr i8, ptr %block, i64 {_HEADER + ZONE}
  %heap.end = getelementptr i8, ptr %block, i64 %asked
  br label %filled
filled:
  %data = phi ptr [%page.data, %protect], [%heap.data, %had]
  %base = phi ptr [%map, %protect], [%block, %had]
  %stop = phi ptr [%end, %protect], [%heap.end, %had]
  %length = phi i64 [%total, %protect], [0, %had]
  %header = getelementptr i8, ptr %data, i64 {-_HEADER - ZONE}
  %zone = getelementptr i8, ptr %data, i64 {-ZONE}
  %front = call ptr @pattern(ptr %book, ptr %zone)
  %copied = call ptr @memcpy(ptr %zone, ptr %front, i64 {ZONE})
  call void @put(ptr %data, i64 -1, i64 {_MARK})
  call void @put(ptr %data, i64 -2, i64 {_MARK})
  call void @llvm.memset.p0.i64(ptr %data, i8 %fill, i64 %size, i1 0)
  %behind = getelementptr i8, ptr %data, i64 %size
  %behind.number = ptrtoint ptr %behind to i64
  %stop.number = ptrtoint ptr %stop to i64
  %rest = sub i64 %stop.number, %behind.number
  %back.pattern = call ptr @pattern(ptr %book, ptr %behind)
  %copied.too = call ptr @memcpy(ptr %behind, ptr %back.pattern, i64 %rest)
  %base.number = ptrtoint ptr %base to i64
  %data.number = ptrtoint ptr %data to i64
  %header.number = ptrtoint ptr %header to i64
  call void @put(ptr %header, i64 0, i64 0)
  %next = call i64 @field(ptr %book, i64 0)
  call void @put(ptr %header, i64 1, i64 %next)
  call void @put(ptr %header, i64 2, i64 %size)
  call void @put(ptr %header, i64 3, i64 %base.number)
  call void @put(ptr %header, i64 4, i64 %length)
  call void @put(ptr %header, i64 5, i64 %stop.number)
  call void @put(ptr %header, i64 6, i64 %data.number)
  call void @put(ptr %book, i64 0, i64 %header.number)
  %alone = icmp eq i64 %next, 0
  br i1 %alone, label %done, label %link
link:
  %follower = inttoptr i64 %next to ptr
  call void @put(ptr %follower, i64 0, i64 %header.number)
  br label %done
done:
  ret ptr %data
no:
  ret ptr null
}}

define internal i1 @damaged(ptr %book, ptr %header) {{
  %zone = getelementptr i8, ptr %header, i64 {_HEADER}
  %front.pattern = call ptr @pattern(ptr %book, ptr %zone)
  %front = call i32 @memcmp(ptr %zone, ptr %front.pattern, i64 {ZONE - 16})
  %data = getelementptr i8, ptr %header, i64 {_HEADER + ZONE}
  %marked = call i1 @marked(ptr %data)
  %size = call i64 @field(ptr %header, i64 2)
  %behind = getelementptr i8, ptr %data, i64 %size
  %behind.number = ptrtoint ptr %behind to i64
  %stop = call i64 @field(ptr %header, i64 5)
  %rest = sub i64 %stop, %behind.number
  %back.pattern = call ptr @pattern(ptr %book, ptr %behind)
  %back = call i32 @memcmp(ptr %behind, ptr %back.pattern, i64 %rest)
  %either = or i32 %front, %back
  %written = icmp ne i32 %either, 0
  %lost = xor i1 %marked, true
  %answer = or i1 %written, %lost
  ret i1 %answer
}}

define internal void @release(ptr %book, ptr %data) {{
  %header = getelementptr i8, ptr %data, i64 {-_HEADER - ZONE}
  %damaged = call i1 @damaged(ptr %book, ptr %header)
  br i1 %damaged, label %stays, label %goes
stays:
  ret void
goes:
  %before = call i64 @field(ptr %header, i64 0)
  %next = call i64 @field(ptr %header, i64 1)
  %first = icmp eq i64 %before, 0
  %previous = inttoptr i64 %before to ptr
  %previous.next = getelementptr i64, ptr %previous, i64 1
  %place = select i1 %first, ptr %book, ptr %previous.next
  store i64 %next, ptr %place
  %last = icmp eq i64 %next, 0
  br i1 %last, label %unlinked, label %link
link:
  %follower = inttoptr i64 %next to ptr
  call void @put(ptr %follower, i64 0, i64 %before)
  br label %unlinked
unlinked:
  %base.number = call i64 @field(ptr %header, i64 3)
  %base = inttoptr i64 %base.number to ptr
  %length = call i64 @field(ptr %header, i64 4)
  %heap = icmp eq i64 %length, 0
  br i1 %heap, label %freed, label %unmapped
freed:
  call void @free(ptr %base)
  ret void
unmapped:
  %mapped = call i64 @field(ptr %book, i64 1)
  %fewer = sub i64 %mapped, 1
  call void @put(ptr %book, i64 1, i64 %fewer)
  %status = call i32 @munmap(ptr %base, i64 %length)
  ret void
}}
"""
_FUNCTIONS = {
    "malloc": f"""
define ptr @run(ptr %book, i64 %size) {{
  %data = call ptr @allocate(ptr %book, i64 %size, i8 {POISON})
  ret ptr %data
}}
""",
    "calloc": """
define ptr @run(ptr %book, i64 %count, i64 %each) {
  %product = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %each)
  %size = extractvalue { i64, i1 } %product, 0
  %over = extractvalue { i64, i1 } %product, 1
  %wanted = select i1 %over, i64 -1, i64 %size
  %data = call ptr @allocate(ptr %book, i64 %wanted, i8 0)
  ret ptr %data
}
""",
    "realloc": f"""
define ptr @run(ptr %book, ptr %old, i64 %size) {{
  %none = icmp eq ptr %old, null
  br i1 %none, label %new, label %some
some:
  %ours = call i1 @marked(ptr %old)
  br i1 %ours, label %new, label %other
new:
  %data = call ptr @allocate(ptr %book, i64 %size, i8 {POISON})
  %failed = icmp eq ptr %data, null
  %over = or i1 %none, %failed
  br i1 %over, label %done, label %move
move:
  %had = call i64 @field(ptr %old, i64 {(16 - _HEADER - ZONE) // 8})
  %less = icmp ult i64 %had, %size
  %kept = select i1 %less, i64 %had, i64 %size
  call void @llvm.memcpy.p0.p0.i64(ptr %data, ptr %old, i64 %kept, i1 0)
  call void @release(ptr %book, ptr %old)
  br label %done
done:
  ret ptr %data
other:
  %context.number = call i64 @field(ptr %book, i64 4)
  %context = inttoptr i64 %context.number to ptr
  %inner.number = call i64 @field(ptr %book, i64 7)
  %inner = inttoptr i64 %inner.number to ptr
  %block = call ptr %inner(ptr %context, ptr %old, i64 %size)
  ret ptr %block
}}
""",
    "free": """
define void @run(ptr %book, ptr %data, i64 %size) {
  %none = icmp eq ptr %data, null
  br i1 %none, label %done, label %some
some:
  %ours = call i1 @marked(ptr %data)
  br i1 %ours, label %own, label %other
own:
  call void @release(ptr %book, ptr %data)
  br label %done
other:
  %context.number = call i64 @field(ptr %book, i64 4)
  %context = inttoptr i64 %context.number to ptr
  %inner.number = call i64 @field(ptr %book, i64 8)
  %inner = inttoptr i64 %inner.number to ptr
  call void %inner(ptr %context, ptr %data, i64 %size)
  br label %done
done:
  ret void
}
""",
}
_CHECK = """
define i64 @run(ptr %book) {
entry:
  %first = call i64 @field(ptr %book, i64 0)
  br label %head
head:
  %at = phi i64 [%first, %entry], [%next, %fine]
  %over = icmp eq i64 %at, 0
  br i1 %over, label %done, label %look
look:
  %header = inttoptr i64 %at to ptr
  %next = call i64 @field(ptr %header, i64 1)
  %damaged = call i1 @damaged(ptr %book, ptr %header)
  br i1 %damaged, label %done, label %fine
fine:
  br label %head
done:
  ret i64 %at
}
"""

_book: Any = _Book()
_pattern = ctypes.create_string_buffer(PATTERN * (2 * ZONE // 8))
_kept: list[Any] = []
_check: Any = None


def install(*, pages: bool) -> bool:
    """Put every array that is made from now on, by any thread, between zones; False where there is no LLVM.

    Args:
        pages: it ends at a page that may not be touched.
    """
    global _check
    machine = compiler()
    if machine is None or _check is not None:
        return _check is not None
    inner = allocator.in_place()
    _book.most = _MOST_PAGES if pages else 0
    _book.pattern = ctypes.addressof(_pattern)
    allocator.put(_book, inner)
    handler = allocator.Handler(context=ctypes.addressof(_book))
    for name, text in _FUNCTIONS.items():
        function = machine.function(_TEXT + text, {})
        _kept.append(function)
        setattr(handler, name, function.address)
    check = machine.function(_TEXT + _CHECK, {}, INT64)
    _check = check.call_held
    _kept.extend((check, inner))
    allocator.replace_everywhere(handler)
    atexit.register(_give_back, inner)
    return True


def _give_back(inner: Any) -> None:
    """Machine code goes before the last arrays do: those are left to the system."""
    allocator.put(inner, _book)
    inner.free = library_functions(["abs"])["abs"]  # something that takes anything and does nothing


def damaged() -> tuple[Allocation, int, int] | None:
    """A block beside which somebody has written, the first byte of that and how many; mends the zone."""
    at = 0 if _check is None else _check(ctypes.addressof(_book))
    if not at:
        return None
    block, header = _block(at), _Header.from_address(at)
    zone = block.start - ZONE
    mark = _MARK.to_bytes(8, "little") * 2
    behind = block.start + block.size
    wanted = {zone: expected(zone, ZONE - 16) + mark, behind: expected(behind, header.stop - behind)}
    found: list[int] = []
    for place, held in wanted.items():
        present = ctypes.string_at(place, len(held))
        found += [place + i for i, (is_, was) in enumerate(zip(present, held, strict=True)) if is_ != was]
        ctypes.memmove(place, held, len(held))
    return block, min(found), len(found)


def expected(place: int, size: int) -> bytes:
    """What a zone at an address holds."""
    phase = place % len(PATTERN)
    return (PATTERN * (size // len(PATTERN) + 2))[phase : phase + size]


def blocks() -> Iterator[Allocation]:
    """All that are there."""
    at = _book.first
    while at:
        yield _block(at)
        at = _Header.from_address(at).next


def _block(at: int) -> Allocation:
    header = _Header.from_address(at)
    last = header.base + header.mapped if header.mapped else header.stop
    return Allocation(header.start, header.size, header.base, last)
