"""Convolutions by Winograd's algorithm (`interpolation`): tiles transformed, multiplied with filters, transformed back.

A module has `i32 run(ptr operands)`, which returns 0 or oneDNN's status. The operands are addresses, in the order of
`Place`; then there are `OF_A_SHARE` for every share of the work. Sizes are numbers in memory, so that all convolutions
of a program with the same window are one module.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from fractions import Fraction

from toolkit.kernels.cpu.native.code import LANES, Code, Lanes
from toolkit.kernels.cpu.native.interpolation import Axis, Rows
from toolkit.kernels.cpu.native.loops import ATTRIBUTES


class Place(enum.IntEnum):
    """The operands that all shares have in common: addresses."""

    INPUT = 0
    OUTPUT = 1
    BIAS = 2  # a float for each filter
    ADDED = 3  # a tensor of the output's shape
    ZEROS = 4  # as many floats as there are channels: what is outside the image
    SPARE = 5  # as many floats as there are filters: where outputs beyond the edge go
    NUMBERS = 6


class Number(enum.IntEnum):
    """What is at Place.NUMBERS, int64: shares, tiles along height and width of an image, sizes in pixels, ..."""

    SHARES = 0
    DOWN = 1
    ACROSS = 2
    HEIGHT = 3
    WIDTH = 4
    OUTPUT_HEIGHT = 5
    OUTPUT_WIDTH = 6
    CHANNELS = 7  # a multiple of LANES
    FILTERS = 8
    ABOVE = 9  # rows of padding
    LEFT = 10
    BLOCK = 11  # tiles that are transformed and multiplied at a time


#: addresses for each share: transformed inputs [points, block, channels], products [points, block, filters], numbers
OF_A_SHARE = 3


class Share(enum.IntEnum):
    """The numbers of a share, int64: how to execute its product, and which part of the outputs it makes."""

    EXECUTE = 0  # dnnl_primitive_execute
    HANDLE = 1
    STREAM = 2
    COUNT = 3
    ARGUMENTS = 4
    STATUS = 5  # what that returned
    FROM = 6  # the first tile
    TO = 7  # behind the last
    FIRST = 8  # filter
    FILTERS = 9  # how many, a multiple of LANES


@functools.cache
def winograd(window: tuple[int, int], *, adds: bool, low: float | None, high: float | None, threads: bool) -> str:
    """The text of a module.

    Args:
        window: height and width of the filter.
        adds: a tensor of the output's shape is added.
        low, high: the range that outputs are clipped to, None where there is no bound. NaN becomes the bound.
        threads: the shares are spread over threads of OpenMP.
    """
    vector = f"<{LANES} x float>"
    down, across = map(Axis, window)
    functions = [*_run(threads), *_part(threads), *_gather(down, across), *_scatter(down, across, adds, low, high)]
    declared = f"declare {vector} @llvm.fmuladd.v{LANES}f32({vector}, {vector}, {vector})"
    return "\n".join([declared, *functions, f"attributes #0 = {ATTRIBUTES}", ""])


def _numbers(names: Sequence[enum.IntEnum], base: str) -> list[str]:
    """Load numbers; the register of HEIGHT is %height."""
    lines: list[str] = []
    for name in names:
        register = f"%{name.name.lower()}"
        lines += [f"  {register}_at = getelementptr i64, ptr %{base}, i64 {int(name)}",
                  f"  {register} = load i64, ptr {register}_at"]  # fmt: skip
    return lines


def _operands(names: Sequence[Place]) -> list[str]:
    lines: list[str] = []
    for name in names:
        register = f"%{name.name.lower()}"
        lines += [f"  {register}_at = getelementptr ptr, ptr %operands, i64 {int(name)}",
                  f"  {register} = load ptr, ptr {register}_at"]  # fmt: skip
    return lines


def _run(threads: bool) -> list[str]:
    """All shares, then the worst of their statuses."""
    lines = ["define i32 @run(ptr %operands) {"]
    if threads:
        lines = ["declare void @GOMP_parallel(ptr, ptr, i32, i32)", "declare i32 @omp_get_thread_num()",
                 "declare i32 @omp_get_num_threads()", *lines]  # fmt: skip
    lines += ["entry:", *_operands([Place.NUMBERS]), *_numbers([Number.SHARES], "numbers")]
    if threads:
        lines += ["  %shares32 = trunc i64 %shares to i32",
                  "  call void @GOMP_parallel(ptr @part, ptr %operands, i32 %shares32, i32 0)"]  # fmt: skip
    else:
        lines.append("  call void @part(ptr %operands)")
    return [*lines, "  br label %share", "share:", "  %i = phi i64 [0, %entry], [%i1, %share]",
            "  %worst = phi i64 [0, %entry], [%worse, %share]", *_own(2, "own"),
            *_numbers([Share.STATUS], "own"), "  %worse = or i64 %worst, %status", "  %i1 = add i64 %i, 1",
            "  %more = icmp ult i64 %i1, %shares", "  br i1 %more, label %share, label %done",
            "done:", "  %code = trunc i64 %worse to i32", "  ret i32 %code", "}"]  # fmt: skip


def _own(which: int, name: str) -> list[str]:
    """Load an address of share %i."""
    return [f"  %{name}_m = mul i64 %i, {OF_A_SHARE}", f"  %{name}_n = add i64 %{name}_m, {len(Place) + which}",
            f"  %{name}_p = getelementptr ptr, ptr %operands, i64 %{name}_n",
            f"  %{name} = load ptr, ptr %{name}_p"]  # fmt: skip


def _part(threads: bool) -> list[str]:
    """What one thread does: of each of its shares block after block, gathered, multiplied, scattered."""
    lines = ["define internal void @part(ptr %operands) #0 {", "entry:"]
    if threads:  # there may be fewer of them than shares
        lines += ["  %me32 = call i32 @omp_get_thread_num()", "  %all32 = call i32 @omp_get_num_threads()",
                  "  %me = zext i32 %me32 to i64", "  %all = zext i32 %all32 to i64"]  # fmt: skip
    else:
        lines += ["  %me = add i64 0, 0", "  %all = add i64 0, 1"]
    lines += [*_operands([Place.NUMBERS]), *_numbers([Number.SHARES, Number.BLOCK], "numbers"),
              "  %some = icmp ult i64 %me, %shares", "  br i1 %some, label %share, label %done",
              "share:", "  %i = phi i64 [%me, %entry], [%i1, %after]",
              *_own(0, "in"), *_own(1, "out"), *_own(2, "own"),
              *_numbers([Share.COUNT, Share.FROM, Share.TO], "own"),
              "  %count32 = trunc i64 %count to i32"]  # fmt: skip
    for name in (Share.EXECUTE, Share.HANDLE, Share.STREAM, Share.ARGUMENTS):
        register = f"%{name.name.lower()}"
        lines += [f"  {register}_at = getelementptr i64, ptr %own, i64 {int(name)}",
                  f"  {register} = load ptr, ptr {register}_at"]  # fmt: skip
    return [*lines, f"  %status_at = getelementptr i64, ptr %own, i64 {int(Share.STATUS)}",
            "  store i64 0, ptr %status_at", "  br label %work",
            "work:", "  %first = phi i64 [%from, %share], [%next, %good]",
            "  %next = add i64 %first, %block", "  %over = icmp ugt i64 %next, %to",
            "  %end = select i1 %over, i64 %to, i64 %next",
            "  call void @gather(ptr %operands, ptr %numbers, ptr %in, i64 %first, i64 %end)",
            "  %code = call i32 %execute(ptr %handle, ptr %stream, i32 %count32, ptr %arguments)",
            "  %failed = icmp ne i32 %code, 0", "  br i1 %failed, label %bad, label %good",
            "bad:", "  %code64 = zext i32 %code to i64", "  store i64 %code64, ptr %status_at", "  br label %after",
            "good:", "  call void @scatter(ptr %operands, ptr %numbers, ptr %own, ptr %out, i64 %first, i64 %end)",
            "  %more = icmp ult i64 %next, %to", "  br i1 %more, label %work, label %after",
            "after:", "  %i1 = add i64 %i, %all", "  %again = icmp ult i64 %i1, %shares",
            "  br i1 %again, label %share, label %done", "done:", "  ret void", "}"]  # fmt: skip


def _tiles(down: Axis, across: Axis) -> list[str]:
    """The start of the loop over tiles: which image, and the first row and column of its outputs."""
    return ["  br label %tile", "tile:", "  %t = phi i64 [%first, %entry], [%t1, %after]",
            "  %at = sub i64 %t, %first", "  %image = udiv i64 %t, %tiles", "  %rest = urem i64 %t, %tiles",
            "  %ty = udiv i64 %rest, %across", "  %tx = urem i64 %rest, %across",
            f"  %row = mul i64 %ty, {down.tile}", f"  %column = mul i64 %tx, {across.tile}"]  # fmt: skip


_TAIL = [
    "after:", "  %t1 = add i64 %t, 1", "  %again = icmp ult i64 %t1, %end",
    "  br i1 %again, label %tile, label %done", "done:", "  ret void", "}",
]  # fmt: skip


def _places(rows: int, columns: int, base: str, outside: str, start: int = 0) -> list[str]:
    """Put the addresses of rows x columns pixels into the table; of those beyond the edges of the image, another's.

    The pixels are those from %y0 and %x0 on, of an image of %h x %w with %depth numbers each.
    """
    lines = [f"  %{base}_hw = mul i64 %h, %w", f"  %{base}_size = mul i64 %{base}_hw, %depth",
             f"  %{base}_image = mul i64 %image, %{base}_size", f"  %{base}_line = mul i64 %w, %depth"]  # fmt: skip
    for name, count, size, step in (("y", rows, "%h", f"%{base}_line"), ("x", columns, "%w", "%depth")):
        for index in range(count):
            it = f"%{base}_{name}{index}"
            lines += [f"  {it} = add i64 %{name}0, {index}",
                      f"  {it}_in = icmp ult i64 {it}, {size}",  # as unsigned, negative numbers are beyond too
                      f"  {it}_o = mul i64 {it}, {step}"]  # fmt: skip
    for r in range(rows):
        for c in range(columns):
            it, y, x = f"%{base}_{r}_{c}", f"%{base}_y{r}", f"%{base}_x{c}"
            lines += [f"  {it}_in = and i1 {y}_in, {x}_in", f"  {it}_a = add i64 {y}_o, {x}_o",
                      f"  {it}_b = add i64 {it}_a, %{base}_image",
                      f"  {it}_c = getelementptr float, ptr %{base}, i64 {it}_b",
                      f"  {it} = select i1 {it}_in, ptr {it}_c, ptr %{outside}",
                      f"  {it}_p = getelementptr ptr, ptr %table, i64 {start + r * columns + c}",
                      f"  store ptr {it}, ptr {it}_p"]  # fmt: skip
    return lines


def _gather(down: Axis, across: Axis) -> list[str]:
    """Transform the inputs of some tiles: [points, block, channels]."""
    code = Code(prefix="l")
    pixels = [[_load_from(code, r * across.size + c) for c in range(across.size)] for r in range(down.size)]
    place = code.emit("ptr", "getelementptr float, ptr %data, i64 %d").name
    for row in _both_ways(code, down.input_rows(), across.input_rows(), pixels):
        for value in row:
            code.lines.append(f"store {value.vector} {value.name}, ptr {place}, align 64")
            place = code.emit("ptr", f"getelementptr float, ptr {place}, i64 %step").name
    return ["define internal void @gather(ptr %operands, ptr %numbers, ptr %data, i64 %first, i64 %end) #0 {", "entry:",
            f"  %table = alloca ptr, i64 {down.size * across.size}", *_operands([Place.INPUT, Place.ZEROS]),
            *_numbers([Number.DOWN, Number.ACROSS, Number.HEIGHT, Number.WIDTH, Number.CHANNELS, Number.ABOVE,
                       Number.LEFT, Number.BLOCK], "numbers"),
            "  %tiles = mul i64 %down, %across", "  %step = mul i64 %block, %channels",
            "  %h = add i64 %height, 0", "  %w = add i64 %width, 0", "  %depth = add i64 %channels, 0",
            *_tiles(down, across), "  %y0 = sub i64 %row, %above", "  %x0 = sub i64 %column, %left",
            *_places(down.size, across.size, "input", "zeros"),
            "  %start = mul i64 %at, %channels", "  br label %lanes", "lanes:",
            "  %c = phi i64 [0, %tile], [%c1, %lanes]", "  %d = add i64 %start, %c", *_indented(code),
            f"  %c1 = add i64 %c, {LANES}", "  %more = icmp ult i64 %c1, %channels",
            "  br i1 %more, label %lanes, label %after", *_TAIL]  # fmt: skip


def _scatter(down: Axis, across: Axis, adds: bool, low: float | None, high: float | None) -> list[str]:
    """Transform products [points, block, filters] to the outputs of some tiles."""
    outputs = down.tile * across.tile
    code = Code(prefix="l")
    products: list[list[Lanes]] = []
    place = code.emit("ptr", "getelementptr float, ptr %data, i64 %d").name
    for _ in range(down.size):
        products.append([])
        for _ in range(across.size):
            products[-1].append(code.emit("float", f"load <{LANES} x float>, ptr {place}, align 64"))
            place = code.emit("ptr", f"getelementptr float, ptr {place}, i64 %step").name
    place = code.emit("ptr", "getelementptr float, ptr %bias, i64 %c").name
    bias = code.emit("float", f"load <{LANES} x float>, ptr {place}, align 4")
    made = _both_ways(code, down.output_rows(), across.output_rows(), products)
    for index, value in enumerate(value for row in made for value in row):
        value = code.add(value, bias)
        if adds:
            value = code.add(value, _load_from(code, outputs + index))
        for bound, predicate in ((low, "ogt"), (high, "olt")):
            if bound is not None:
                number = code.number(bound, "float")
                value = code.select(code.compare(predicate, value, number), value, number)
        code.lines.append(f"store {value.vector} {value.name}, ptr {_pixel(code, index)}, align 4")
    return ["define internal void @scatter(ptr %operands, ptr %numbers, ptr %own, ptr %data, i64 %first, i64 %end)",
            "#0 {", "entry:", f"  %table = alloca ptr, i64 {2 * outputs}",
            *_operands([Place.OUTPUT, Place.BIAS, Place.ADDED, Place.SPARE]),
            *_numbers([Number.DOWN, Number.ACROSS, Number.OUTPUT_HEIGHT, Number.OUTPUT_WIDTH, Number.BLOCK], "numbers"),
            f"  %depth_at = getelementptr i64, ptr %numbers, i64 {int(Number.FILTERS)}",
            "  %depth = load i64, ptr %depth_at",
            f"  %own_at = getelementptr i64, ptr %own, i64 {int(Share.FIRST)}", "  %skipped = load i64, ptr %own_at",
            *_numbers([Share.FILTERS], "own"),
            "  %tiles = mul i64 %down, %across", "  %step = mul i64 %block, %filters",
            "  %h = add i64 %output_height, 0", "  %w = add i64 %output_width, 0",
            "  %last = add i64 %skipped, %filters",
            *_tiles(down, across), "  %y0 = add i64 %row, 0", "  %x0 = add i64 %column, 0",
            *_places(down.tile, across.tile, "output", "spare"),
            *(_places(down.tile, across.tile, "added", "spare", outputs) if adds else ()),
            "  %whole = mul i64 %at, %filters", "  %start = sub i64 %whole, %skipped", "  br label %lanes", "lanes:",
            "  %c = phi i64 [%skipped, %tile], [%c1, %lanes]", "  %d = add i64 %start, %c", *_indented(code),
            f"  %c1 = add i64 %c, {LANES}", "  %more = icmp ult i64 %c1, %last",
            "  br i1 %more, label %lanes, label %after", *_TAIL]  # fmt: skip


def _pixel(code: Code, index: int) -> str:
    """Where the channels at hand of a pixel are."""
    entry = code.emit("ptr", f"getelementptr ptr, ptr %table, i64 {index}")
    start = code.emit("ptr", f"load ptr, ptr {entry.name}")
    return code.emit("ptr", f"getelementptr float, ptr {start.name}, i64 %c").name


def _load_from(code: Code, index: int) -> Lanes:
    return code.emit("float", f"load <{LANES} x float>, ptr {_pixel(code, index)}, align 4")


def _both_ways(code: Code, down: Rows, across: Rows, grid: Sequence[Sequence[Lanes]]) -> list[list[Lanes]]:
    """down . grid . across^T"""
    half = _transposed([_apply(code, down, column) for column in _transposed(grid)])
    return [_apply(code, across, row) for row in half]


def _apply(code: Code, rows: Rows, values: Sequence[Lanes]) -> list[Lanes]:
    """A small matrix times a vector of lanes; rows of opposite points share their even and odd powers."""
    made: list[Lanes] = []
    index = 0
    while index < len(rows):
        row = rows[index]
        other = rows[index + 1] if index + 1 < len(rows) else None
        if other is None or any(abs(a) != abs(b) for a, b in zip(row, other, strict=True)) or row == other:
            made.append(_combine(code, row, values))
            index += 1
            continue
        assert other is not None
        same = _combine(code, [a if a == b else Fraction(0) for a, b in zip(row, other, strict=True)], values)
        opposite = _combine(code, [a if a != b else Fraction(0) for a, b in zip(row, other, strict=True)], values)
        made += [code.add(same, opposite), code.sub(same, opposite)]
        index += 2
    return made


def _combine(code: Code, factors: Sequence[Fraction], values: Sequence[Lanes]) -> Lanes:
    """The sum of values times factors."""
    terms = sorted(((f, v) for f, v in zip(factors, values, strict=True) if f), key=lambda term: abs(term[0]) != 1)
    factor, value = terms[0]
    total = value if factor == 1 else code.mul(value, code.number(float(factor), "float"))
    for factor, value in terms[1:]:
        if abs(factor) == 1:
            total = code.add(total, value) if factor == 1 else code.sub(total, value)
        else:
            total = code.fma(value, code.number(float(factor), "float"), total)
    return total


def _transposed(grid: Sequence[Sequence[Lanes]]) -> list[list[Lanes]]:
    return [list(column) for column in zip(*grid, strict=True)]


def _indented(code: Code) -> list[str]:
    return [f"  {line}" for line in code.lines]
