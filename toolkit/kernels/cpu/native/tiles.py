"""Tiles of images for Winograd's algorithm: gathered and transformed, transformed back and scattered."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from toolkit.kernels.cpu.native.code import LANES, Code, Lanes
from toolkit.kernels.cpu.native.interpolation import Axis, Rows
from toolkit.kernels.cpu.native.loops import loop
from toolkit.kernels.cpu.native.zeros import marked, seen, sights


class WinogradOperand(enum.IntEnum):
    """The operands that all shares have in common: addresses."""

    INPUT = 0
    OUTPUT = 1
    BIAS = 2  # a float for each filter
    ADDED = 3  # a tensor of the output's shape
    ZEROS = 4  # as many floats as there are channels: what is outside the image
    SPARE = 5  # as many floats as there are filters: where outputs beyond the edge go
    NUMBERS = 6


class WinogradSize(enum.IntEnum):
    """What is at WinogradOperand.NUMBERS, int64: shares, tiles along height and width of an image, pixels, ..."""

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
    IMAGES = 12


#: addresses for each share: transformed inputs [points, block, channels], products [points, block, filters], numbers
OF_A_SHARE = 3


class WinogradShareField(enum.IntEnum):
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


def loaded(names: Sequence[enum.IntEnum], base: str, type: str = "i64") -> list[str]:
    """Load entries of what a register points to; the register of HEIGHT is %height.

    Args:
        type: "i64", or "ptr" for addresses.
    """
    lines: list[str] = []
    for name in names:
        register = f"%{name.name.lower()}"
        lines += [f"  {register}_at = getelementptr {type}, ptr %{base}, i64 {int(name)}",
                  f"  {register} = load {type}, ptr {register}_at"]  # fmt: skip
    return lines


def _tiles(steps: tuple[int, int], body: Sequence[str]) -> list[str]:
    """The loop over tiles: which image, and the first row and column of its outputs.

    Args:
        steps: rows and columns from one tile to the next.
    """
    head = ["  %at = sub i64 %t, %first", "  %image = udiv i64 %t, %tiles", "  %rest = urem i64 %t, %tiles",
            "  %there = icmp ult i64 %image, %images",  # the last block may be longer than what is left
            "  %ty = udiv i64 %rest, %across", "  %tx = urem i64 %rest, %across",
            f"  %row = mul i64 %ty, {steps[0]}", f"  %column = mul i64 %tx, {steps[1]}"]  # fmt: skip
    return [*loop("t", "%first", "%end", 1, [*head, *body]), "  ret void", "}"]


def _places(rows: int, columns: int, base: str, outside: str, start: int = 0) -> list[str]:
    """Put the addresses of rows x columns pixels into the table; of those beyond the edges of the image, another's.

    The pixels are those from %y0 and %x0 on, of an image of %h x %w with %depth numbers each.
    """
    r, c = f"{base}_r", f"{base}_c"
    pixel = [f"  %{c}_x = add i64 %x0, %{c}", f"  %{c}_in = icmp ult i64 %{c}_x, %w",
             f"  %{c}_both = and i1 %{r}_in, %{c}_in", f"  %{c}_i = add i64 %{r}_i, %{c}_x",
             f"  %{c}_o = mul i64 %{c}_i, %depth", f"  %{c}_p = getelementptr float, ptr %{base}, i64 %{c}_o",
             f"  %{c}_q = select i1 %{c}_both, ptr %{c}_p, ptr %{outside}",
             f"  %{c}_m = mul i64 %{r}, {columns}", f"  %{c}_l = add i64 %{c}_m, %{c}",
             f"  %{c}_k = add i64 %{c}_l, {start}", f"  %{c}_e = getelementptr ptr, ptr %table, i64 %{c}_k",
             f"  store ptr %{c}_q, ptr %{c}_e"]  # fmt: skip
    row = [f"  %{r}_y = add i64 %y0, %{r}",
           f"  %{r}_in0 = icmp ult i64 %{r}_y, %h",  # as unsigned, negative numbers are beyond too
           f"  %{r}_in = and i1 %{r}_in0, %there",
           f"  %{r}_t = mul i64 %image, %h", f"  %{r}_u = add i64 %{r}_t, %{r}_y", f"  %{r}_i = mul i64 %{r}_u, %w",
           *loop(c, "0", str(columns), 1, pixel)]  # fmt: skip
    return loop(r, "0", str(rows), 1, row)


Index = int | str
Load = Callable[[Code, Index, Index], Lanes]
Store = Callable[[Code, Index, Index, Lanes], None]


def _transform(down: Rows, across: Rows, load: Load, store: Store) -> list[str]:
    """down . grid . across^T for a grid of lanes: columns first, through %scratch, then rows.

    Args:
        load, store: lanes at a row and a column, which are numbers or registers.
    """
    rows, columns = len(down), len(across[0])
    lines: list[str] = []
    if len(down[0]) > 1:
        code = Code(prefix="d")
        is_last = columns == 1
        for r, value in enumerate(_apply(code, down, [load(code, r, "%k") for r in range(len(down[0]))])):
            if is_last:
                store(code, r, "%k", value)
            else:
                _store_at(code, "%scratch", _linear(code, r, "%k", columns, LANES), value)
        lines += loop("k", "0", str(columns), 1, _indented(code))
        if is_last:
            return lines

        load = functools.partial(_load_scratch, columns)
    code = Code(prefix="a")
    for c, value in enumerate(_apply(code, across, [load(code, "%i", c) for c in range(columns)])):
        store(code, "%i", c, value)
    return [*lines, *loop("i", "0", str(rows), 1, _indented(code))]


def _linear(code: Code, row: Index, column: Index, columns: int, unit: int | str) -> str:
    """(row * columns + column) * unit"""
    first = code.emit("i64", f"mul i64 {row}, {columns}").name
    second = code.emit("i64", f"add i64 {first}, {column}").name
    return code.emit("i64", f"mul i64 {second}, {unit}").name


def _load_at(code: Code, base: str, index: str) -> Lanes:
    place = code.emit("ptr", f"getelementptr float, ptr {base}, i64 {index}").name
    return code.emit("float", f"load <{LANES} x float>, ptr {place}, align 64")


def _load_scratch(columns: int, code: Code, row: Index, column: Index) -> Lanes:
    return _load_at(code, "%scratch", _linear(code, row, column, columns, LANES))


def _store_at(code: Code, base: str, index: str, value: Lanes) -> None:
    place = code.emit("ptr", f"getelementptr float, ptr {base}, i64 {index}").name
    code.lines.append(f"store {value.vector} {value.name}, ptr {place}, align 64")


def _pixel(code: Code, index: str) -> str:
    """Where the channels at hand of a pixel in the table are."""
    entry = code.emit("ptr", f"getelementptr ptr, ptr %table, i64 {index}").name
    start = code.emit("ptr", f"load ptr, ptr {entry}").name
    return code.emit("ptr", f"getelementptr float, ptr {start}, i64 %c").name


def _load_pixel(code: Code, index: str) -> Lanes:
    return code.emit("float", f"load <{LANES} x float>, ptr {_pixel(code, index)}, align 4")


class _Image(NamedTuple):
    """What tiles are taken from: numbers say how large it is, and how far outside it begins."""

    place: WinogradOperand
    height: WinogradSize
    width: WinogradSize
    depth: WinogradSize
    above: WinogradSize | None = None
    left: WinogradSize | None = None


INPUTS = _Image(
    WinogradOperand.INPUT,
    WinogradSize.HEIGHT,
    WinogradSize.WIDTH,
    WinogradSize.CHANNELS,
    WinogradSize.ABOVE,
    WinogradSize.LEFT,
)
OUTPUTS = _Image(WinogradOperand.OUTPUT, WinogradSize.OUTPUT_HEIGHT, WinogradSize.OUTPUT_WIDTH, WinogradSize.FILTERS)


def gather(
    name: str, steps: tuple[int, int], rows: Rows, columns: Rows, image: _Image, *, exact: bool = False
) -> list[str]:
    """A function that transforms the pixels of some tiles: [points, block, depth].

    Args:
        steps: rows and columns from one tile to the next.
        rows, columns: the matrices, along height and width.
        exact: it also says which pixels are zeros (`zeros`), for `scatter`.
    """
    height, width = len(rows[0]), len(columns[0])

    def load(code: Code, r: Index, c: Index) -> Lanes:
        return _load_pixel(code, _linear(code, r, c, width, 1))

    def store(code: Code, r: Index, c: Index, value: Lanes) -> None:
        _store_at(code, "%place", _linear(code, r, c, len(columns), "%step"), value)

    lanes = ["  %d = add i64 %start, %c", "  %place = getelementptr float, ptr %data, i64 %d",
             *_transform(rows, columns, load, store)]  # fmt: skip
    base = image.place.name.lower()
    tile = [f"  %y0 = sub i64 %row, {'0' if image.above is None else '%above'}",
            f"  %x0 = sub i64 %column, {'0' if image.left is None else '%left'}",
            *_places(height, width, base, "zeros"), *(marked(height * width) if exact else ()),
            "  %start = mul i64 %at, %depth", *loop("c", "0", "%depth", LANES, lanes)]  # fmt: skip
    sizes = [each for each in (image.height, image.width, image.depth, image.above, image.left) if each is not None]
    h, w, depth = (f"%{each.name.lower()}" for each in sizes[:3])
    taken = "ptr %operands, ptr %numbers, ptr %data, i64 %first, i64 %end"
    return [f"define internal void @{name}({taken}{', ptr %marks' if exact else ''}) #0 {{",
            "entry:", f"  %table = alloca ptr, i64 {height * width}",
            f"  %scratch = alloca float, i64 {len(rows) * width * LANES}, align 64",
            *loaded([image.place, WinogradOperand.ZEROS], "operands", "ptr"),
            *loaded([WinogradSize.DOWN, WinogradSize.ACROSS, WinogradSize.BLOCK, WinogradSize.IMAGES, *sizes],
                    "numbers"),
            "  %tiles = mul i64 %down, %across", f"  %step = mul i64 %block, {depth}",
            f"  %h = add i64 {h}, 0", f"  %w = add i64 {w}, 0", f"  %depth = add i64 {depth}, 0",
            *_tiles(steps, tile)]  # fmt: skip


def scatter(
    down: Axis, across: Axis, adds: bool, low: float | None, high: float | None, *, exact: bool = False
) -> list[str]:
    """Transform products [points, block, filters] to the outputs of some tiles.

    Args:
        exact: the filters make exactly 0 of nothing but zeros.
    """
    outputs = down.tile * across.tile

    def load(code: Code, r: Index, c: Index) -> Lanes:
        return _load_at(code, "%place", _linear(code, r, c, across.size, "%step"))

    def store(code: Code, r: Index, c: Index, value: Lanes) -> None:
        index = _linear(code, r, c, across.tile, 1)
        value = seen(code, value, index) if exact else value
        value = code.add(value, Lanes("%shift", "float"))
        if adds:
            value = code.add(value, _load_pixel(code, code.emit("i64", f"add i64 {index}, {outputs}").name))
        for bound, predicate in ((low, "ogt"), (high, "olt")):
            if bound is not None:
                number = code.number(bound, "float")
                value = code.select(code.compare(predicate, value, number), value, number)
        code.lines.append(f"store {value.vector} {value.name}, ptr {_pixel(code, index)}, align 4")

    lanes = ["  %d = add i64 %start, %c", "  %place = getelementptr float, ptr %data, i64 %d",
             "  %shift_at = getelementptr float, ptr %bias, i64 %c",
             f"  %shift = load <{LANES} x float>, ptr %shift_at, align 4",
             *_transform(down.output_rows(), across.output_rows(), load, store)]  # fmt: skip
    tile = ["  %y0 = add i64 %row, 0", "  %x0 = add i64 %column, 0",
            *_places(down.tile, across.tile, "output", "spare"),
            *(_places(down.tile, across.tile, "added", "spare", outputs) if adds else ()),
            *(sights(down, across) if exact else ()),
            "  %whole = mul i64 %at, %filters", "  %start = sub i64 %whole, %skipped",
            *loop("c", "%skipped", "%last", LANES, lanes)]  # fmt: skip
    taken = "ptr %operands, ptr %numbers, ptr %own, ptr %data, i64 %first, i64 %end"
    return [f"define internal void @scatter({taken}{', ptr %marks' if exact else ''}) #0 {{",
            "entry:", f"  %table = alloca ptr, i64 {2 * outputs}", f"  %sights = alloca i32, i64 {outputs}",
            f"  %scratch = alloca float, i64 {down.tile * across.size * LANES}, align 64",
            *loaded([WinogradOperand.OUTPUT, WinogradOperand.BIAS, WinogradOperand.ADDED, WinogradOperand.SPARE],
                    "operands", "ptr"),
            *loaded([WinogradSize.DOWN, WinogradSize.ACROSS, WinogradSize.OUTPUT_HEIGHT, WinogradSize.OUTPUT_WIDTH,
                     WinogradSize.BLOCK, WinogradSize.IMAGES], "numbers"),
            f"  %depth_at = getelementptr i64, ptr %numbers, i64 {int(WinogradSize.FILTERS)}",
            "  %depth = load i64, ptr %depth_at",
            f"  %own_at = getelementptr i64, ptr %own, i64 {int(WinogradShareField.FIRST)}",
            "  %skipped = load i64, ptr %own_at", *loaded([WinogradShareField.FILTERS], "own"),
            "  %tiles = mul i64 %down, %across", "  %step = mul i64 %block, %filters",
            "  %h = add i64 %output_height, 0", "  %w = add i64 %output_width, 0",
            "  %last = add i64 %skipped, %filters", *_tiles((down.tile, across.tile), tile)]  # fmt: skip


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


def _indented(code: Code) -> list[str]:
    return [f"  {line}" for line in code.lines]
