"""Convolutions of each channel by itself: some neighbouring outputs of LANES channels are summed in registers.

A strip of some columns and a block of some channels is done for all rows of a share, so that an input is read from
farther away once and then found in the fastest cache for every row of the window. Numbers in memory are float or
bfloat16, sums float.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.kernels.cpu.memory.addresses import aligned
from toolkit.kernels.cpu.native.code import LANES, SIZES, Code, Lanes
from toolkit.kernels.cpu.native.loops import ATTRIBUTES, Body, loop
from toolkit.kernels.cpu.native.openmp import openmp_declarations
from toolkit.kernels.cpu.native.shares import part, start
from toolkit.kernels.cpu.native.tiles import loaded

#: LLVM's types in memory
FLOAT, BFLOAT = "float", "bfloat"


class DepthwiseOperand(enum.IntEnum):
    """The operands that all shares have in common: addresses. Then come those of the epilogue and one of each share."""

    INPUT = 0
    WEIGHTS = 1
    OUTPUT = 2
    ZEROS = 3  # LANES numbers: what is outside the image
    NUMBERS = 4


class DepthwiseSize(enum.IntEnum):
    """What is at DepthwiseOperand.NUMBERS, int64."""

    SHARES = 0
    HEIGHT = 1
    WIDTH = 2
    DOWN = 3  # rows of the output
    ACROSS = 4  # columns of the output
    CHANNELS = 5
    ABOVE = 6  # rows of padding
    LEFT = 7
    TILES = 8  # in a row of the output
    STRIP_TILES = 9  # that are done for all rows, before the next: what they have in common stays in the fastest cache
    BLOCK_GROUPS = 10  # of channels, that are done for all outputs before the next


class DepthwiseShareField(enum.IntEnum):
    """The numbers of a share, int64: rows of all outputs one below the other, and groups of LANES channels."""

    FROM = 0
    TO = 1
    FIRST = 2
    LAST = 3


class DepthwiseWindow(NamedTuple):
    """What a module is made for; two numbers are those along height and width.

    Attributes:
        tile: outputs that are summed at a time.
        source, target: types in memory.
    """

    size: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    tile: int
    source: str
    target: str

    @property
    def span(self) -> int:
        """Columns of the input under a tile."""
        return (self.tile - 1) * self.strides[1] + (self.size[1] - 1) * self.dilations[1] + 1


def pack(weights: Any) -> Any:
    """[height, width, channels] -> [groups of channels, height * width, LANES] in aligned memory, float32."""
    height, width, channels = weights.shape
    made = aligned(4 * weights.size).view(np.float32).reshape(channels // LANES, height * width, LANES)
    made[:] = weights.reshape(height * width, channels // LANES, LANES).transpose(1, 0, 2)
    return made


def depthwise(window: DepthwiseWindow, operands: int, body: Body, *, threads: bool) -> str:
    """The text of a module with `void run(ptr operands)`.

    Args:
        operands: of the epilogue, each a number for every channel.
        body: of lanes of the sums and of the operands, makes lanes of the output.
        threads: the shares are spread over threads of OpenMP.
    """
    code = Code()
    inside = _tile(window, operands, body, code, is_inside=True)
    edge = _tile(window, operands, body, code, is_inside=False)
    return "\n".join(
        [*openmp_declarations(threads=threads), *sorted(code.declared), *code.defined.values(),
         "define void @run(ptr %operands) {", *loaded([DepthwiseOperand.NUMBERS], "operands", "ptr"),
         *loaded([DepthwiseSize.SHARES], "numbers"), *start(threads=threads), "  ret void", "}",
         *_part(window, operands, threads), *inside, *edge, f"attributes #0 = {ATTRIBUTES}", ""]
    )  # fmt: skip


def _part(window: DepthwiseWindow, operands: int, threads: bool) -> list[str]:
    """What one thread does: of its shares, all tiles."""
    group = [f"  %channel = mul i64 %group, {LANES}", f"  %wo = mul i64 %channel, {window.size[0] * window.size[1]}",
             "  %w = getelementptr float, ptr %weights, i64 %wo",
             "  %ic = add i64 %io, %channel", f"  %in = getelementptr {window.source}, ptr %input, i64 %ic",
             "  %oc = add i64 %xo, %channel", f"  %out = getelementptr {window.target}, ptr %line, i64 %oc",
             "  br i1 %is_inside, label %inside, label %edge",
             "inside:", f"  call void @inside({_GIVEN})", "  br label %group_after",
             "edge:", f"  call void @edge({_GIVEN})", "  br label %group_after", "group_after:"]  # fmt: skip
    tile = [f"  %x1 = mul i64 %t, {window.tile}", "  %late = icmp ugt i64 %x1, %latest",
            "  %x = select i1 %late, i64 %latest, i64 %x1",  # the last tile may begin within the one before
            f"  %xs = mul i64 %x, {window.strides[1]}", "  %x0 = sub i64 %xs, %left",
            f"  %behind = add i64 %x0, {window.span}",
            "  %starts = icmp sge i64 %x0, 0", "  %ends = icmp sle i64 %behind, %width",
            "  %is_inside = and i1 %starts, %ends", "  %xo = mul i64 %x, %channels",
            *loop("group", "%block", "%block_end", 1, group)]  # fmt: skip
    row = ["  %image = udiv i64 %row, %down", "  %y = urem i64 %row, %down",
           f"  %ys = mul i64 %y, {window.strides[0]}", "  %y0 = sub i64 %ys, %above",
           "  %io = mul i64 %image, %image_size", "  %oo = mul i64 %row, %line_size",
           f"  %line = getelementptr {window.target}, ptr %output, i64 %oo",
           *loop("t", "%strip", "%strip_end", 1, tile)]  # fmt: skip
    strip = ["  %strip_to = add i64 %strip, %strip_tiles", "  %strip_cut = icmp ugt i64 %strip_to, %tiles",
             "  %strip_end = select i1 %strip_cut, i64 %tiles, i64 %strip_to",
             *loop("row", "%from", "%to", 1, row)]  # fmt: skip
    block = ["  %block_to = add i64 %block, %block_groups", "  %block_cut = icmp ugt i64 %block_to, %last",
             "  %block_end = select i1 %block_cut, i64 %last, i64 %block_to",
             *loop("strip", "0", "%tiles", "%strip_tiles", strip)]  # fmt: skip
    first = len(DepthwiseOperand) + operands
    head = [*loaded(list(DepthwiseOperand), "operands", "ptr"),
            *loaded(list(DepthwiseSize), "numbers"),
            "  %plane = mul i64 %height, %width", "  %image_size = mul i64 %plane, %channels",
            "  %line_size = mul i64 %across, %channels", f"  %latest = sub i64 %across, {window.tile}"]  # fmt: skip
    share = [f"  %own_n = add i64 %i, {first}",
             "  %own_at = getelementptr ptr, ptr %operands, i64 %own_n", "  %own = load ptr, ptr %own_at",
             *loaded(list(DepthwiseShareField), "own"),
             *loop("block", "%first", "%last", "%block_groups", block)]  # fmt: skip
    return part(head, share, threads=threads)


_NAMES = ("ptr %operands", "ptr %in", "ptr %w", "ptr %out", "ptr %zeros", "i64 %channel", "i64 %y0", "i64 %x0",
          "i64 %height", "i64 %width", "i64 %channels")  # fmt: skip
_GIVEN = ", ".join(_NAMES)


def _tile(window: DepthwiseWindow, operands: int, body: Body, shared: Code, *, is_inside: bool) -> list[str]:
    """A function for one tile; at the edges of an image every column is looked at, whether it is there.

    Args:
        shared: gets what the code declares and defines.
    """
    tile, vector = range(window.tile), f"<{LANES} x float>"
    code = Code(prefix="k")
    sums = _one_row(window, code, is_inside=is_inside)
    after = Code(prefix="e")
    place = functools.partial(after.emit, "ptr")
    columns: list[Lanes] = []
    for index in range(operands):
        base = place(f"getelementptr ptr, ptr %operands, i64 {len(DepthwiseOperand) + index}").name
        base = place(f"load ptr, ptr {base}").name
        base = place(f"getelementptr float, ptr {base}, i64 %channel").name
        columns.append(after.emit("float", f"load {vector}, ptr {base}, align 4"))
    for t in tile:
        (result,) = body(after, [Lanes(f"%sum{t}", "float"), *columns])
        offset = after.emit("i64", f"mul i64 %channels, {t}").name
        _store(after, place(f"getelementptr {window.target}, ptr %out, i64 {offset}").name, result, window.target)
    for each in (code, after):
        shared.declared |= each.declared
        shared.defined |= each.defined
    name = "inside" if is_inside else "edge"
    return [f"define internal void @{name}({_GIVEN}) #0 {{", "entry:", "  br label %rows",
            "rows:", "  %ky = phi i64 [0, %entry], [%ky1, %next]",
            *(f"  %old{t} = phi {vector} [zeroinitializer, %entry], [%sum{t}, %next]" for t in tile),
            f"  %yd = mul i64 %ky, {window.dilations[0]}", "  %y = add i64 %y0, %yd",
            "  %is_there = icmp ult i64 %y, %height",  # as unsigned, negative numbers are beyond too
            "  br i1 %is_there, label %sum, label %next", "sum:", "  %yw = mul i64 %y, %width",
            *(f"  {line}" for line in code.lines), "  br label %next", "next:",
            *(f"  %sum{t} = phi {vector} [%old{t}, %rows], [{sums[t].name}, %sum]" for t in tile),
            "  %ky1 = add i64 %ky, 1", f"  %more = icmp ult i64 %ky1, {window.size[0]}",
            "  br i1 %more, label %rows, label %finish", "finish:", *(f"  {line}" for line in after.lines),
            "  ret void", "}"]  # fmt: skip


def _one_row(window: DepthwiseWindow, code: Code, *, is_inside: bool) -> Sequence[Lanes]:
    """The sums with one row of the window; a column of the input is read once for all outputs that it is part of."""
    vector, step, apart, size = f"<{LANES} x float>", window.strides[1], window.dilations[1], window.size[1]
    code.declared.add(f"declare {vector} @llvm.fma.v{LANES}f32({vector}, {vector}, {vector})")
    start = code.emit("i64", f"mul i64 %ky, {size * LANES}").name
    weights: list[Lanes] = []
    for k in range(size):
        offset = code.emit("i64", f"add i64 {start}, {k * LANES}").name
        at = code.emit("ptr", f"getelementptr float, ptr %w, i64 {offset}").name
        weights.append(code.emit("float", f"load {vector}, ptr {at}, align 64"))
    first = code.emit("i64", "add i64 %yw, %x0").name
    sums = [Lanes(f"%old{t}", "float") for t in range(window.tile)]
    for column in range(window.span):
        users = [(t, k) for t in range(window.tile) for k in range(size) if t * step + k * apart == column]
        if not users:
            continue
        pixel = code.emit("i64", f"add i64 {first}, {column}").name
        offset = code.emit("i64", f"mul i64 {pixel}, %channels").name
        at = code.emit("ptr", f"getelementptr {window.source}, ptr %in, i64 {offset}").name
        if not is_inside:
            x = code.emit("i64", f"add i64 %x0, {column}").name
            is_there = code.emit("i1", f"icmp ult i64 {x}, %width").name
            at = code.emit("ptr", f"select i1 {is_there}, ptr {at}, ptr %zeros").name
        value = _load(code, at, window.source)
        for t, k in users:
            given = f"{vector} {value.name}, {vector} {weights[k].name}, {vector} {sums[t].name}"
            sums[t] = code.emit("float", f"call {vector} @llvm.fma.v{LANES}f32({given})")
    return sums


def _load(code: Code, at: str, memory: str) -> Lanes:
    narrow = "float" if memory == FLOAT else "i16"
    value = code.emit(narrow, f"load <{LANES} x {narrow}>, ptr {at}, align {SIZES[memory]}")
    return value if memory == FLOAT else code.widen(value)


def _store(code: Code, at: str, value: Lanes, memory: str) -> None:
    if memory != FLOAT:
        value = code.cast("fptrunc", value, memory)
    code.lines.append(f"store {value.vector} {value.name}, ptr {at}, align {SIZES[memory]}")
