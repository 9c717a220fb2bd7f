"""Max pools whose windows lie side by side, with what often comes before them: relu and a bias. And their gradients.

A module has `void run(ptr operands)`. The operands of a pool are x and y, those of a gradient x, dy and dx, all
channels last, and where biases have gradients their sums [channels] and memory to work with, [threads, channels].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.kernels.cpu.native.code import LANES, literal
from toolkit.kernels.cpu.native.loops import ATTRIBUTES, loop
from toolkit.kernels.cpu.native.openmp import numbered, openmp_declarations, started

_VECTOR = f"<{LANES} x float>"
_MASK = f"<{LANES} x i1>"


@dataclass(frozen=True, slots=True)
class MaxPool:
    """A pool whose windows cover its input without gaps.

    Attributes:
        images, rows, columns, channels: of the output; channels is a multiple of `LANES`.
        height, width: of a window.
        relu: what is not positive is 0, and the gradient there too.
        sums: gradients are added up for each channel.
        threads: rows are spread over so many.
    """

    images: int
    rows: int
    columns: int
    channels: int
    height: int
    width: int
    relu: bool
    sums: bool
    threads: int

    @property
    def output_bytes(self) -> int:
        return 4 * self.images * self.rows * self.columns * self.channels

    @property
    def input_bytes(self) -> int:
        return self.output_bytes * self.height * self.width


def max_pool(pool: MaxPool) -> str:
    """The text of a module. A window with NaN in it gives NaN."""
    return _module(pool, ["x", "y"], _largest(pool))


def max_pool_gradient(pool: MaxPool) -> str:
    """The text of a module. Of equal numbers the first has the gradient; NaN is no larger than another.

    Whether x is before or after relu makes no difference.
    """
    return _module(pool, ["x", "dy", "dx", *(["sums", "own_all"] if pool.sums else [])], _given_back(pool))


def _module(pool: MaxPool, names: Sequence[str], window: Sequence[str]) -> str:
    """All rows of windows, over threads.

    Args:
        names: of the operands.
        window: the body for one window and `LANES` channels.
    """
    load = [line for index, name in enumerate(names) for line in
            (f"  %{name}_at = getelementptr ptr, ptr %operands, i64 {index}",
             f"  %{name} = load ptr, ptr %{name}_at")]  # fmt: skip
    spread = pool.threads > 1
    lines = ["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)", *openmp_declarations(threads=spread)]
    size = pool.channels * 4
    lines += ["define void @run(ptr %operands) #0 {", *load]
    if pool.sums:
        lines.append(f"  call void @llvm.memset.p0.i64(ptr %own_all, i8 0, i64 {size * pool.threads}, i1 false)")
    lines.append(started(pool.threads, threads=spread))
    if pool.sums:
        lines += loop("c", "0", str(pool.channels), LANES, _total(pool))
    lines += ["  ret void", "}", "define internal void @part(ptr %operands) #0 {", *load, *numbered(threads=spread)]
    rows = pool.images * pool.rows
    lines += [f"  %fa = mul i64 %me, {rows}", "  %from = udiv i64 %fa, %all", "  %next = add i64 %me, 1",
              f"  %ta = mul i64 %next, {rows}", "  %to = udiv i64 %ta, %all",
              f"  %line = alloca float, i64 {pool.channels}, align 64",
              f"  %own_i = mul i64 %me, {pool.channels}",
              *(["  %own = getelementptr float, ptr %own_all, i64 %own_i"] if pool.sums else []),
              "  %some = icmp ult i64 %from, %to", "  br i1 %some, label %begin, label %end", "begin:",
              *loop("row", "%from", "%to", 1, _row(pool, window)),
              "  br label %end", "end:", "  ret void", "}"]  # fmt: skip
    return "\n".join([*lines, f"attributes #0 = {ATTRIBUTES}", ""])


def _total(pool: MaxPool) -> list[str]:
    """The sums of all threads."""
    lines: list[str] = []
    total = "zeroinitializer"
    for thread in range(pool.threads):
        lines += [f"  %i{thread} = add i64 %c, {thread * pool.channels}",
                  f"  %t{thread} = getelementptr float, ptr %own_all, i64 %i{thread}",
                  f"  %v{thread} = load {_VECTOR}, ptr %t{thread}, align 4",
                  f"  %s{thread} = fadd {_VECTOR} %v{thread}, {total}"]  # fmt: skip
        total = f"%s{thread}"
    return [*lines, "  %t = getelementptr float, ptr %sums, i64 %c", f"  store {_VECTOR} {total}, ptr %t, align 4"]


def _row(pool: MaxPool, body: Sequence[str]) -> list[str]:
    """A row of windows; its sums are added to those of the thread at the end, so that errors do not grow."""
    channels = pool.channels
    lines = [f"  %top = mul i64 %row, {pool.height * pool.columns * pool.width * channels}",
             f"  %made = mul i64 %row, {pool.columns * channels}"]  # fmt: skip
    if pool.sums:
        lines.append(f"  call void @llvm.memset.p0.i64(ptr %line, i8 0, i64 {channels * 4}, i1 false)")
    window = [f"  %left_i = mul i64 %column, {pool.width * channels}", "  %left = add i64 %top, %left_i",
              f"  %here_i = mul i64 %column, {channels}", "  %here = add i64 %made, %here_i",
              *loop("c", "0", str(channels), LANES, body)]  # fmt: skip
    lines += loop("column", "0", str(pool.columns), 1, window)
    if pool.sums:
        add = ["  %la = getelementptr float, ptr %line, i64 %k", "  %oa = getelementptr float, ptr %own, i64 %k",
               f"  %lv = load {_VECTOR}, ptr %la, align 4", f"  %ov = load {_VECTOR}, ptr %oa, align 4",
               f"  %both = fadd {_VECTOR} %lv, %ov", f"  store {_VECTOR} %both, ptr %oa, align 4"]  # fmt: skip
        lines += loop("k", "0", str(channels), LANES, add)
    return lines


def _numbers(pool: MaxPool) -> tuple[list[str], int]:
    """Load x0, x1, ... of a window, and how many they are; %i0, %i1, ... are where they stand."""
    lines = ["  %base = add i64 %left, %c"]
    across = pool.columns * pool.width * pool.channels
    offsets = [r * across + c * pool.channels for r in range(pool.height) for c in range(pool.width)]
    for index, offset in enumerate(offsets):
        lines += [f"  %i{index} = add i64 %base, {offset}", f"  %p{index} = getelementptr float, ptr %x, i64 %i{index}",
                  f"  %x{index} = load {_VECTOR}, ptr %p{index}, align 4"]  # fmt: skip
    return [*lines, "  %ii = add i64 %here, %c"], len(offsets)


def _largest(pool: MaxPool) -> list[str]:
    """One window, for some channels: the largest number."""
    lines, count = _numbers(pool)
    best, undefined = "%x0", "%n0"
    for index in range(count):
        lines.append(f"  %n{index} = fcmp uno {_VECTOR} %x{index}, zeroinitializer")
        if index == 0:
            continue
        lines += [f"  %u{index} = or {_MASK} {undefined}, %n{index}",
                  f"  %g{index} = fcmp ogt {_VECTOR} %x{index}, {best}",
                  f"  %b{index} = select {_MASK} %g{index}, {_VECTOR} %x{index}, {_VECTOR} {best}"]  # fmt: skip
        best, undefined = f"%b{index}", f"%u{index}"
    if pool.relu:
        lines += [f"  %positive = fcmp ogt {_VECTOR} {best}, zeroinitializer",
                  f"  %kept = select {_MASK} %positive, {_VECTOR} {best}, {_VECTOR} zeroinitializer"]  # fmt: skip
        best = "%kept"
    nan = f"splat (float {literal(math.nan, 'float')})"
    return [*lines, f"  %made_y = select {_MASK} {undefined}, {_VECTOR} {nan}, {_VECTOR} {best}",
            "  %yy = getelementptr float, ptr %y, i64 %ii", f"  store {_VECTOR} %made_y, ptr %yy, align 4"]  # fmt: skip


def _given_back(pool: MaxPool) -> list[str]:
    """One window, for some channels: where the largest number is, and dy there."""
    place, mask = f"<{LANES} x i32>", _MASK
    best, where = "%x0", "zeroinitializer"
    lines, count = _numbers(pool)
    for index in range(1, count):
        lines += [f"  %g{index} = fcmp ogt {_VECTOR} %x{index}, {best}",
                  f"  %b{index} = select {mask} %g{index}, {_VECTOR} %x{index}, {_VECTOR} {best}",
                  f"  %w{index} = select {mask} %g{index}, {place} splat (i32 {index}), {place} {where}"]  # fmt: skip
        best, where = f"%b{index}", f"%w{index}"
    lines += ["  %pp = getelementptr float, ptr %dy, i64 %ii",
              f"  %given = load {_VECTOR}, ptr %pp, align 4"]  # fmt: skip
    given = "%given"
    if pool.relu:
        lines += [f"  %positive = fcmp ogt {_VECTOR} {best}, zeroinitializer",
                  f"  %kept = select {mask} %positive, {_VECTOR} %given, {_VECTOR} zeroinitializer"]  # fmt: skip
        given = "%kept"
    for index in range(count):
        lines += [f"  %m{index} = icmp eq {place} {where}, splat (i32 {index})",
                  f"  %d{index} = select {mask} %m{index}, {_VECTOR} {given}, {_VECTOR} zeroinitializer",
                  f"  %q{index} = getelementptr float, ptr %dx, i64 %i{index}",
                  f"  store {_VECTOR} %d{index}, ptr %q{index}, align 4"]  # fmt: skip
    if pool.sums:
        lines += ["  %sa = getelementptr float, ptr %line, i64 %c", f"  %sv = load {_VECTOR}, ptr %sa, align 4",
                  f"  %sw = fadd {_VECTOR} %sv, {given}", f"  store {_VECTOR} %sw, ptr %sa, align 4"]  # fmt: skip
    return lines
