"""Matrix products with constant weights, which are read in the order in which they lie, ahead of where they are needed.

Weights are packed in panels of some columns, each with all of its rows (`pack`). A kernel multiplies a few rows of x
with a part of a panel, with all sums in registers (Goto and van de Geijn, Anatomy of High-Performance Matrix
Multiplication, 2008); meanwhile it asks for the part that comes next, so that weights which no cache holds cost next to
nothing more than those that one does. Libraries wait for them: a network's weights are read once a step.

Two kinds of modules: `kernel` of one tile, and `product`, which goes over panels and calls kernels by their addresses.
Sizes are numbers in memory, so that all products of a program with the same epilogue are one module.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.kernels.cpu.memory.addresses import aligned
from toolkit.kernels.cpu.native.code import LANES, Code, Lanes
from toolkit.kernels.cpu.native.loops import ATTRIBUTES, MASK, Body, load_masked, loop, store_masked
from toolkit.kernels.cpu.native.openmp import openmp_declarations
from toolkit.kernels.cpu.native.shares import part, start
from toolkit.kernels.cpu.native.tiles import loaded

LINE = 64  # bytes that come at once when one of them is asked for
_BEHIND = 1 << 16  # bytes behind the weights that may be asked for
_VECTOR = f"<{LANES} x float>"


class Tile(NamedTuple):
    """What a kernel has in registers.

    Attributes:
        rows: of x.
        vectors: of LANES columns.
        ahead: lines of the next part of the weights that each iteration of its innermost loop asks for.
        unrolled: rows of a panel in an iteration; more are quicker, and take LLVM as much longer.
        is_even: whole iterations are asked for, and at least one.
    """

    rows: int
    vectors: int
    ahead: int
    unrolled: int
    is_even: bool = False

    @property
    def columns(self) -> int:
        return self.vectors * LANES


class GemmOperand(enum.IntEnum):
    """The operands that all shares have in common: addresses. Then come those of the epilogue, then `OF_A_SHARE`."""

    INPUT = 0
    WEIGHTS = 1
    OUTPUT = 2
    KERNELS = 3  # addresses of the kernels for 1, 2, ... rows
    NUMBERS = 4


class GemmSize(enum.IntEnum):
    """What is at GemmOperand.NUMBERS, int64."""

    SHARES = 0
    INNER = 1  # columns of x
    COLUMNS = 2  # of the output
    TILE = 3  # rows of one
    WIDE = 4  # columns of one
    DEPTH = 5  # rows of a panel that are multiplied at a time
    BLOCK = 6  # rows of x that are, a multiple of TILE


#: addresses for each share: sums [BLOCK, WIDE], numbers
OF_A_SHARE = 2


class GemmShareField(enum.IntEnum):
    """The numbers of a share, int64."""

    FROM = 0  # the first row
    TO = 1  # behind the last
    FIRST = 2  # panel
    LAST = 3  # behind the last


class OperandForm(enum.Enum):
    """How the operand of an epilogue goes with the output."""

    COLUMNS = "a number for each column"
    TENSOR = "of the output's shape"


def pack(weights: Any, columns: int) -> Any:
    """[inner, n] -> [panels, inner, columns] in aligned memory, float32, with zeros where there is no column."""
    inner, n = weights.shape
    panels = -(-n // columns)
    size = panels * inner * columns
    made = aligned(4 * size + _BEHIND)[: 4 * size].view(np.float32).reshape(panels, inner, columns)
    full = n // columns
    made[:full] = weights[:, : full * columns].reshape(inner, full, columns).transpose(1, 0, 2)
    if full < panels:
        made[full] = 0.0
        made[full, :, : n - full * columns] = weights[:, full * columns :]
    return made


_DECLARED = (
    f"declare {_VECTOR} @llvm.fma.v{LANES}f32({_VECTOR}, {_VECTOR}, {_VECTOR})",
    "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
)


@functools.cache
def kernel(tile: Tile) -> str:
    """The text of a module: sums += x . weights for one tile.

    `void run(ptr x, ptr weights, ptr sums, ptr ahead, i64 inner, i64 depth, i1 fresh)`: rows of x are `inner` floats
    apart, `depth` of them are used; sums are the tile's, and taken as 0 where `fresh`; weights are asked for from
    `ahead` on.
    """
    sums = [(r, v) for r in range(tile.rows) for v in range(tile.vectors)]
    given = "ptr %x, ptr %weights, ptr %sums, ptr %ahead, i64 %inner, i64 %depth, i1 %fresh"
    lines = [*_DECLARED, f"define void @run({given}) #0 {{", "entry:", "  br i1 %fresh, label %start, label %known",
             "known:"]  # fmt: skip
    for r, v in sums:
        lines += [f"  %sp{r}_{v} = getelementptr float, ptr %sums, i64 {r * tile.columns + v * LANES}",
                  f"  %l{r}_{v} = load {_VECTOR}, ptr %sp{r}_{v}, align {LINE}"]  # fmt: skip
    lines += ["  br label %start", "start:"]
    lines += [f"  %s{r}_{v} = phi {_VECTOR} [zeroinitializer, %entry], [%l{r}_{v}, %known]" for r, v in sums]
    lines += _multiplication(tile)
    for r, v in sums:
        lines += [f"  %d{r}_{v} = getelementptr float, ptr %sums, i64 {r * tile.columns + v * LANES}",
                  f"  store {_VECTOR} %e{r}_{v}, ptr %d{r}_{v}, align {LINE}"]  # fmt: skip
    return "\n".join([*lines, "  ret void", "}", f"attributes #0 = {ATTRIBUTES}", ""])


def finishing_kernel(tile: Tile, kinds: Sequence[OperandForm], body: Body) -> str:
    """The text of a module for one tile whose sums never leave the registers: the epilogue follows at once.

    `void run(ptr x, ptr weights, ptr operands, ptr ahead, i64 inner, i64 depth, i64 columns, i64 row, i64 column)`: the
    operands of `product`, and where in an output of so many columns, all of which are there, the tile is.
    """
    code = Code(prefix="f")
    place = functools.partial(code.emit, "ptr")

    def number(text: str) -> str:
        return code.emit("i64", text).name

    def load(base: str, index: str) -> Lanes:
        at = place(f"getelementptr float, ptr {base}, i64 {index}").name
        return code.emit("float", f"load {_VECTOR}, ptr {at}, align 4")

    bases = [
        place(f"load ptr, ptr {place(f'getelementptr ptr, ptr %operands, i64 {index}').name}").name
        for index in (GemmOperand.OUTPUT, *range(len(GemmOperand), len(GemmOperand) + len(kinds)))
    ]
    for v in range(tile.vectors):
        column = number(f"add i64 %column, {v * LANES}")
        known = {
            base: load(base, column) for base, kind in zip(bases[1:], kinds, strict=True) if kind is OperandForm.COLUMNS
        }
        for r in range(tile.rows):
            row = number(f"add i64 %row, {r}")
            at = number(f"add i64 {number(f'mul i64 {row}, %columns')}, {column}")
            operands = [known[base] if base in known else load(base, at) for base in bases[1:]]
            (result,) = body(code, [Lanes(f"%e{r}_{v}", "float"), *operands])
            target = place(f"getelementptr float, ptr {bases[0]}, i64 {at}").name
            code.lines.append(f"store {_VECTOR} {result.name}, ptr {target}, align 4")
    given = ("ptr %x, ptr %weights, ptr %operands, ptr %ahead, i64 %inner, i64 %depth, i64 %columns, i64 %row, "
             "i64 %column")  # fmt: skip
    start = [f"  %s{r}_{v} = phi {_VECTOR} [zeroinitializer, %entry]"
             for r in range(tile.rows) for v in range(tile.vectors)]  # fmt: skip
    return "\n".join(
        [*sorted({*_DECLARED, *code.declared}), *code.defined.values(), f"define void @run({given}) #0 {{", "entry:",
         "  br label %start", "start:", *start, *_multiplication(tile), *(f"  {line}" for line in code.lines),
         "  ret void", "}", f"attributes #0 = {ATTRIBUTES}", ""]
    )  # fmt: skip


def _multiplication(tile: Tile) -> list[str]:
    """The rest of the block %start, and all up to the block %done, which has the sums %e from those, %s, before."""
    sums = [(r, v) for r in range(tile.rows) for v in range(tile.vectors)]
    after = "done" if tile.is_even else "rest"
    lines: list[str] = []
    for r in range(tile.rows):
        lines += [f"  %xo{r} = mul i64 %inner, {r}", f"  %x{r} = getelementptr float, ptr %x, i64 %xo{r}"]
    lines.append(f"  %whole = and i64 %depth, {-tile.unrolled}")
    if tile.is_even:
        lines.append("  br label %body")
    else:
        lines += ["  %some = icmp ne i64 %whole, 0", "  br i1 %some, label %body, label %rest"]
    lines += ["body:", "  %k = phi i64 [0, %start], [%k1, %body]"]
    lines += [f"  %a{r}_{v} = phi {_VECTOR} [%s{r}_{v}, %start], [%a{r}_{v}_{tile.unrolled}, %body]" for r, v in sums]
    lines.append(f"  %ahead_o = mul i64 %k, {LINE * tile.ahead // tile.unrolled}")
    for line in range(tile.ahead):
        lines += [f"  %ahead_n{line} = add i64 %ahead_o, {LINE * line}",
                  f"  %ahead_p{line} = getelementptr i8, ptr %ahead, i64 %ahead_n{line}",
                  f"  call void @llvm.prefetch.p0(ptr %ahead_p{line}, i32 0, i32 2, i32 1)"]  # fmt: skip
    current = {(r, v): f"%a{r}_{v}" for r, v in sums}
    for u in range(tile.unrolled):
        lines += _multiplied(tile, current, f"_{u + 1}", "%k", u)
    lines += [f"  %k1 = add i64 %k, {tile.unrolled}", "  %more = icmp ult i64 %k1, %whole",
              f"  br i1 %more, label %body, label %{after}", f"{after}:"]  # fmt: skip
    if tile.is_even:
        return lines + [f"  %e{r}_{v} = phi {_VECTOR} [{current[r, v]}, %body]" for r, v in sums]
    lines += [f"  %m{r}_{v} = phi {_VECTOR} [%s{r}_{v}, %start], [{current[r, v]}, %body]" for r, v in sums]
    lines += ["  %left = icmp ult i64 %whole, %depth", "  br i1 %left, label %single, label %done",
              "single:", "  %q = phi i64 [%whole, %rest], [%q1, %single]"]  # fmt: skip
    lines += [f"  %b{r}_{v} = phi {_VECTOR} [%m{r}_{v}, %rest], [%b{r}_{v}_s, %single]" for r, v in sums]
    current = {(r, v): f"%b{r}_{v}" for r, v in sums}
    lines += _multiplied(tile, current, "_s", "%q", 0)
    lines += ["  %q1 = add i64 %q, 1", "  %again = icmp ult i64 %q1, %depth",
              "  br i1 %again, label %single, label %done", "done:"]  # fmt: skip
    return lines + [f"  %e{r}_{v} = phi {_VECTOR} [%m{r}_{v}, %rest], [{current[r, v]}, %single]" for r, v in sums]


def _multiplied(tile: Tile, current: dict[tuple[int, int], str], suffix: str, index: str, offset: int) -> list[str]:
    """Add the products of one row of the panel, `offset` behind `index`, to the sums; `current` names the new ones."""
    first = f"<{LANES} x i32> zeroinitializer"
    vector, name = f"<{LANES} x float>", suffix[1:]
    lines = [f"  %i{name} = add i64 {index}, {offset}", f"  %w{name} = mul i64 %i{name}, {tile.columns}"]
    for v in range(tile.vectors):
        lines += [f"  %wo{name}_{v} = add i64 %w{name}, {v * LANES}",
                  f"  %wp{name}_{v} = getelementptr float, ptr %weights, i64 %wo{name}_{v}",
                  f"  %wv{name}_{v} = load {vector}, ptr %wp{name}_{v}, align {LINE}"]  # fmt: skip
    for r in range(tile.rows):
        lines += [f"  %xp{name}_{r} = getelementptr float, ptr %x{r}, i64 %i{name}",
                  f"  %xs{name}_{r} = load float, ptr %xp{name}_{r}, align 4",
                  f"  %xi{name}_{r} = insertelement {vector} poison, float %xs{name}_{r}, i64 0",
                  f"  %xv{name}_{r} = shufflevector {vector} %xi{name}_{r}, {vector} poison, {first}"]  # fmt: skip
        for v in range(tile.vectors):
            made = f"{'%a' if index == '%k' else '%b'}{r}_{v}{suffix}"
            lines.append(
                f"  {made} = call {vector} @llvm.fma.v{LANES}f32({vector} %xv{name}_{r}, {vector} %wv{name}_{v}, "
                f"{vector} {current[r, v]})"
            )
            current[r, v] = made
    return lines


def product(kinds: Sequence[OperandForm], body: Body | None, *, threads: bool) -> str:
    """The text of a module with `void run(ptr operands)`.

    Args:
        kinds: of the epilogue's operands.
        body: of lanes of the sums and of the operands, makes lanes of the output; None where the kernels are those
            that finish, which need that DEPTH is all of INNER and that COLUMNS are whole panels.
        threads: the shares are spread over threads of OpenMP.
    """
    first = len(GemmOperand) + len(kinds)
    calls = _CALL if body else _FINISHING_CALL
    run = ["define void @run(ptr %operands) {", *loaded([GemmOperand.NUMBERS], "operands", "ptr"),
           *loaded([GemmSize.SHARES], "numbers"), *start(threads=threads), "  ret void", "}"]  # fmt: skip
    head = [*loaded([GemmOperand.INPUT, GemmOperand.WEIGHTS, GemmOperand.KERNELS, GemmOperand.NUMBERS], "operands",
                    "ptr"),
            *loaded(list(GemmSize), "numbers")]  # fmt: skip
    share = [f"  %so = mul i64 %i, {OF_A_SHARE}", f"  %s0 = add i64 %so, {first}", f"  %s1 = add i64 %so, {first + 1}",
             "  %sums_at = getelementptr ptr, ptr %operands, i64 %s0", "  %sums = load ptr, ptr %sums_at",
             "  %own_at = getelementptr ptr, ptr %operands, i64 %s1", "  %own = load ptr, ptr %own_at",
             *loaded(list(GemmShareField), "own"), *loop("row", "%from", "%to", "%block", _block(calls))]  # fmt: skip
    epilogue, code = _epilogue(kinds, body) if body else (list[str](), Code())
    return "\n".join(
        [*openmp_declarations(threads=threads), *sorted(code.declared), *code.defined.values(), *run,
         *part(head, share, threads=threads), *epilogue, f"attributes #0 = {ATTRIBUTES}", ""]
    )  # fmt: skip


_CALL = (
    "  call void %kernel(ptr %x, ptr %w, ptr %sum, ptr %ahead, i64 %inner, i64 %deep, i1 %fresh)",
    "  br i1 %is_last, label %finish, label %tile_done", "finish:",
    "  call void @epilogue(ptr %operands, ptr %numbers, ptr %sum, i64 %xr, i64 %count, i64 %panel)",
    "  br label %tile_done", "tile_done:",
)  # fmt: skip
_PLACE = "i64 %columns, i64 %xr, i64 %col"
_FINISHING_CALL = (
    "  %col = mul i64 %panel, %wide",
    f"  call void %kernel(ptr %x, ptr %w, ptr %operands, ptr %ahead, i64 %inner, i64 %deep, {_PLACE})",
)


def _block(call: Sequence[str]) -> list[str]:
    """The rows of a block times all panels of the share, part by part."""
    tile = ["  %end0 = add i64 %t, %tile", "  %short = icmp ugt i64 %end0, %rows",
            "  %end = select i1 %short, i64 %rows, i64 %end0", "  %count = sub i64 %end, %t",
            "  %kernel_n = sub i64 %count, 1", "  %kernel_p = getelementptr ptr, ptr %kernels, i64 %kernel_n",
            "  %kernel = load ptr, ptr %kernel_p",
            "  %xr = add i64 %row, %t", "  %xo = mul i64 %xr, %inner", "  %xk = add i64 %xo, %k",
            "  %x = getelementptr float, ptr %input, i64 %xk",
            "  %sumo = mul i64 %t, %wide", "  %sum = getelementptr float, ptr %sums, i64 %sumo",
            # while the first rows are multiplied, the first lines of the next part are asked for
            "  %part_size = mul i64 %floats, 4", "  %asked = mul i64 %part_size, %t",
            "  %asked_from = udiv i64 %asked, %rows",
            f"  %asked_line = and i64 %asked_from, {-LINE}",
            "  %ahead = getelementptr i8, ptr %after, i64 %asked_line",
            "  %rows_size = mul i64 %tile, %inner", "  %later = getelementptr float, ptr %x, i64 %rows_size",
            *call]  # fmt: skip
    each = ["  %deep0 = sub i64 %inner, %k", "  %beyond = icmp ugt i64 %deep0, %depth",
            "  %deep = select i1 %beyond, i64 %depth, i64 %deep0", "  %is_last = xor i1 %beyond, true",
            "  %fresh = icmp eq i64 %k, 0",
            "  %wo = mul i64 %panel, %inner", "  %wk = add i64 %wo, %k", "  %wf = mul i64 %wk, %wide",
            "  %w = getelementptr float, ptr %weights, i64 %wf",
            "  %floats = mul i64 %deep, %wide", "  %after = getelementptr float, ptr %w, i64 %floats",
            *loop("t", "0", "%rows", "%tile", tile)]  # fmt: skip
    return ["  %rows0 = sub i64 %to, %row", "  %cut = icmp ugt i64 %rows0, %block",
            "  %rows = select i1 %cut, i64 %block, i64 %rows0",
            *loop("panel", "%first", "%last", 1, loop("k", "0", "%inner", "%depth", each))]  # fmt: skip


def _epilogue(kinds: Sequence[OperandForm], body: Body) -> tuple[list[str], Code]:
    """What becomes of sums, from row %xr on, and where it is written to; the code that it calls."""
    once, code = Code(prefix="o"), Code(prefix="e")
    lanes = [load_masked(code, "%sum", "%so", "float")]
    for index, kind in enumerate(kinds):
        by_columns = kind is OperandForm.COLUMNS
        lanes.append(load_masked(once if by_columns else code, f"%p{index}", "%col" if by_columns else "%at", "float"))
    (result,) = body(code, lanes)
    store_masked(code, "%output", "%at", result)
    row = ["  %sr = mul i64 %r, %wide", "  %so = add i64 %sr, %c", "  %y = add i64 %xr, %r",
           "  %yo = mul i64 %y, %columns", "  %at = add i64 %yo, %col",
           *(f"  {line}" for line in code.lines)]  # fmt: skip
    vector = ["  %col = add i64 %col0, %c", "  %left = sub i64 %columns, %col", *MASK,
              *(f"  {line}" for line in once.lines), *loop("r", "0", "%rows", 1, row)]  # fmt: skip
    given = "ptr %operands, ptr %numbers, ptr %sum, i64 %xr, i64 %rows, i64 %panel"
    lines = [f"define internal void @epilogue({given}) #0 {{", "entry:",
             *loaded([GemmOperand.OUTPUT], "operands", "ptr"),
             *loaded([GemmSize.COLUMNS, GemmSize.WIDE], "numbers"),
             "  %col0 = mul i64 %panel, %wide", "  %own0 = sub i64 %columns, %col0",
             "  %cut = icmp ugt i64 %own0, %wide", "  %own = select i1 %cut, i64 %wide, i64 %own0"]  # fmt: skip
    for index in range(len(kinds)):
        lines += [f"  %p{index}_at = getelementptr ptr, ptr %operands, i64 {len(GemmOperand) + index}",
                  f"  %p{index} = load ptr, ptr %p{index}_at"]  # fmt: skip
    code.declared |= once.declared
    return [*lines, *loop("c", "0", "%own", LANES, vector), "  ret void", "}"], code
