"""Convolutions by Winograd's algorithm (`interpolation`): tiles transformed, multiplied with filters, transformed back.

A module has `i32 run(ptr operands)`, which returns 0 or oneDNN's status. The operands are addresses, in the order of
`WinogradOperand`; then there are `OF_A_SHARE` for every share of the work. Sizes are numbers in memory, so that all
convolutions of a program with the same window and tiles are one module.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.interpolation import Axes
from toolkit.kernels.cpu.native.loops import ATTRIBUTES
from toolkit.kernels.cpu.native.openmp import openmp_declarations
from toolkit.kernels.cpu.native.shares import part, start
from toolkit.kernels.cpu.native.tiles import (
    INPUTS,
    OF_A_SHARE,
    OUTPUTS,
    WinogradOperand,
    WinogradShareField,
    WinogradSize,
    gather,
    loaded,
    scatter,
)


@functools.cache
def winograd(axes: Axes, *, adds: bool, low: float | None, high: float | None, exact: bool, threads: bool) -> str:
    """The text of a module.

    Args:
        axes: the algorithm along height and width.
        adds: a tensor of the output's shape is added.
        low, high: the range that outputs are clipped to, None where there is no bound. NaN becomes the bound.
        exact: what a filter makes of nothing but zeros is exactly 0.
        threads: the shares are spread over threads of OpenMP.
    """
    down, across = axes
    inputs = gather("gather", (down.tile, across.tile), down.input_rows(), across.input_rows(), INPUTS, exact=exact)
    marks = ", ptr %marks" if exact else ""
    product = [
        f"  call void @gather(ptr %operands, ptr %numbers, ptr %in, i64 %first, i64 %end{marks})",
        *_EXECUTE,
        f"  call void @scatter(ptr %operands, ptr %numbers, ptr %own, ptr %out, i64 %first, i64 %end{marks})",
    ]
    outputs = scatter(down, across, adds, low, high, exact=exact)
    return _module([*_run(threads), *_part(threads, [], product), *inputs, *outputs])


@functools.cache
def winograd_gradient(axes: Axes, *, threads: bool) -> str:
    """The text of a module that makes sums of products at the points, from which comes the gradient by the filter.

    WinogradOperand.OUTPUT is the gradient by the outputs. A share has [points, block, channels + filters] for what is
    transformed, and leaves sums [points, channels, filters] in its second memory. Its tiles begin with a block.
    """
    down, across = (axis.of_filter for axis in axes)
    steps = (down.window, across.window)
    both = [*gather("x", steps, down.input_rows(), across.input_rows(), INPUTS),
            *gather("y", steps, down.filter_rows(), across.filter_rows(), OUTPUTS)]  # fmt: skip
    clear = [*loaded([WinogradSize.CHANNELS, WinogradSize.FILTERS], "numbers"),
             "  %matrix = mul i64 %channels, %filters", f"  %sums = mul i64 %matrix, {4 * down.size * across.size}",
             "  call void @llvm.memset.p0.i64(ptr align 64 %out, i8 0, i64 %sums, i1 false)",
             "  %lines = mul i64 %block, %channels", f"  %size = mul i64 %lines, {down.size * across.size}",
             "  %second = getelementptr float, ptr %in, i64 %size"]  # fmt: skip
    product = [
        "  call void @x(ptr %operands, ptr %numbers, ptr %in, i64 %first, i64 %next)",
        "  call void @y(ptr %operands, ptr %numbers, ptr %second, i64 %first, i64 %next)",
        *_EXECUTE,
    ]
    return _module([*_run(threads), *_part(threads, clear, product), *both])


def _module(functions: Sequence[str]) -> str:
    vector = f"<{LANES} x float>"
    return "\n".join([f"declare {vector} @llvm.fmuladd.v{LANES}f32({vector}, {vector}, {vector})",
                      "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)", *functions,
                      f"attributes #0 = {ATTRIBUTES}", ""])  # fmt: skip


def _run(threads: bool) -> list[str]:
    """All shares, then the worst of their statuses."""
    lines = [*openmp_declarations(threads=threads), "define i32 @run(ptr %operands) {", "entry:",
             *loaded([WinogradOperand.NUMBERS], "operands", "ptr"), *loaded([WinogradSize.SHARES], "numbers"),
             *start(threads=threads)]  # fmt: skip
    return [*lines, "  br label %share", "share:", "  %i = phi i64 [0, %entry], [%i1, %share]",
            "  %worst = phi i64 [0, %entry], [%worse, %share]", *_own(2, "own"),
            *loaded([WinogradShareField.STATUS], "own"), "  %worse = or i64 %worst, %status", "  %i1 = add i64 %i, 1",
            "  %more = icmp ult i64 %i1, %shares", "  br i1 %more, label %share, label %done",
            "done:", "  %code = trunc i64 %worse to i32", "  ret i32 %code", "}"]  # fmt: skip


def _own(which: int, name: str) -> list[str]:
    """Load an address of share %i."""
    return [f"  %{name}_m = mul i64 %i, {OF_A_SHARE}",
            f"  %{name}_n = add i64 %{name}_m, {len(WinogradOperand) + which}",
            f"  %{name}_p = getelementptr ptr, ptr %operands, i64 %{name}_n",
            f"  %{name} = load ptr, ptr %{name}_p"]  # fmt: skip


#: the product of a block, or out of the loop
_EXECUTE = [
    "  %code = call i32 %execute(ptr %handle, ptr %stream, i32 %count32, ptr %arguments)",
    "  %failed = icmp ne i32 %code, 0", "  br i1 %failed, label %bad, label %good",
    "bad:", "  %code64 = zext i32 %code to i64", "  store i64 %code64, ptr %status_at", "  br label %after", "good:",
]  # fmt: skip


def _part(threads: bool, begin: Sequence[str], product: Sequence[str]) -> list[str]:
    """What one thread does of each of its shares.

    Args:
        begin: before the first block.
        product: of the tiles from %first to %end, in a block that reaches to %next; it has `_EXECUTE`.
    """
    head = [*loaded([WinogradOperand.NUMBERS], "operands", "ptr"),
            *loaded([WinogradSize.SHARES, WinogradSize.BLOCK], "numbers"),
            "  %marks = alloca i64, i64 %block",  # what `zeros` finds in the tiles of a block
            ]  # fmt: skip
    share = [*_own(0, "in"), *_own(1, "out"), *_own(2, "own"),
             *loaded([WinogradShareField.COUNT, WinogradShareField.FROM, WinogradShareField.TO], "own"),
             "  %count32 = trunc i64 %count to i32",
             *loaded([WinogradShareField.EXECUTE, WinogradShareField.HANDLE, WinogradShareField.STREAM,
                      WinogradShareField.ARGUMENTS], "own", "ptr"),
             f"  %status_at = getelementptr i64, ptr %own, i64 {int(WinogradShareField.STATUS)}",
             "  store i64 0, ptr %status_at", *begin, "  br label %work",
             "work:", "  %first = phi i64 [%from, %share], [%next, %good]",
             "  %next = add i64 %first, %block", "  %over = icmp ugt i64 %next, %to",
             "  %end = select i1 %over, i64 %to, i64 %next", *product,
             "  %more = icmp ult i64 %next, %to", "  br i1 %more, label %work, label %after", "after:"]  # fmt: skip
    return part(head, share, threads=threads)
