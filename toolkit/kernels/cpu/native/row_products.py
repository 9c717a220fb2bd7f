"""Products of a few rows with weights packed in panels, whose sums go to memory that a cache holds.

A panel has the columns of all gates of a recurrent cell for `LANES` of its units, so that whoever takes the sums has
all that goes into these units, and lies in memory in the order in which it is read. One row is a product of a vector
and a matrix, as fast as weights come from the cache; of more rows each weight that was loaded serves all. Nothing is
asked for ahead: the processor sees by itself how it goes on, and asking takes the place of loads (a fifth of the time
of a product of one row, on a Cascade Lake).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.kernels.cpu.memory.addresses import aligned
from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.loops import ATTRIBUTES

_FLOAT = 4
_GIVEN = "ptr %x, i64 %apart, ptr %weights, i64 %depth, ptr %sums, i64 %sums_apart"


class RowTile(NamedTuple):
    """What is in registers.

    Attributes:
        columns: of a panel.
        lanes: floats of a register.
        vectors: registers with sums of one row at a time; the columns of a panel take one or more times as many.
        rows: at most.
        in_flight: sums that are added to in turns at least: one alone waits for its last addition.
    """

    columns: int
    lanes: int
    vectors: int
    rows: int
    in_flight: int

    @staticmethod
    def of(columns: int, lanes: int, registers: int, in_flight: int) -> RowTile:
        """The largest tile that leaves a quarter of the registers to weights and inputs."""
        vectors = columns // lanes
        while vectors > _MOST_VECTORS and vectors % 2 == 0:
            vectors //= 2
        rows = max(1, registers * 3 // 4 // vectors)
        return RowTile(columns, lanes, vectors, rows, in_flight)


#: as many weights are in registers at a time
_MOST_VECTORS = 4


def pack_gates(weights: Any) -> Any:
    """[rows, gates, units] -> [panels, rows, gates, LANES] in aligned memory, float32, with zeros where no unit is."""
    rows, gates, units = weights.shape
    panels = -(-units // LANES)
    made = aligned(_FLOAT * panels * rows * gates * LANES).view(np.float32).reshape(panels, rows, gates, LANES)
    made.fill(0.0)
    for panel in range(panels):
        part = weights[:, :, panel * LANES : (panel + 1) * LANES]
        made[panel, :, :, : part.shape[2]] = part
    return made


def heights(count: int, most: int) -> set[int]:
    """How many rows the tiles have that `tiled` makes of so many."""
    tiles = -(-count // most)
    least, more = divmod(count, tiles)
    return {least, least + 1} if more else {least}


@functools.cache
def row_kernel(tile: RowTile, height: int) -> str:
    """The text of a module that multiplies so many rows, `void run(ptr x, i64 apart, ptr weights, i64 depth, ptr sums,
    i64 sums_apart)`.

    Rows of x and of the sums are so many floats apart; `depth` numbers of each row of x are multiplied by as many rows
    of a panel.
    """
    vector = f"<{tile.lanes} x float>"
    return "\n".join([
        f"declare {vector} @llvm.fma.v{tile.lanes}f32({vector}, {vector}, {vector})",
        *_of_height("run", tile, height), f"attributes #0 = {ATTRIBUTES}", "",
    ])  # fmt: skip


def row_product(name: str, kernels: str, rows: str, given: Sequence[str]) -> list[str]:
    """Lines that call a kernel out of a table of addresses of those for 1, 2, ... rows.

    Args:
        name: of the registers.
        kernels, rows: registers with the table, and with how many rows there are.
        given: what kernels take, one by one.
    """
    typed = [f"{type} {each}" for type, each in zip(("ptr", "i64", "ptr", "i64", "ptr", "i64"), given, strict=True)]
    return [
        f"  %{name}_n = sub i64 {rows}, 1", f"  %{name}_at = getelementptr ptr, ptr {kernels}, i64 %{name}_n",
        f"  %{name}_kernel = load ptr, ptr %{name}_at", f"  call void %{name}_kernel({', '.join(typed)})",
    ]  # fmt: skip


def _of_height(name: str, tile: RowTile, height: int) -> list[str]:
    lines = [f"define void @{name}({_GIVEN}) #0 {{", "entry:"]
    for row in range(height):
        lines += [f"  %xo{row} = mul i64 %apart, {row}", f"  %x{row} = getelementptr float, ptr %x, i64 %xo{row}"]
    # where there are few sums, each is made in several parts
    chains = -(-tile.in_flight // (height * tile.vectors))
    unrolled = max(4, 1 << (chains - 1).bit_length())
    lines += [f"  %whole = and i64 %depth, {-unrolled}", "  %some = icmp ne i64 %whole, 0",
              "  %left = icmp ult i64 %whole, %depth"]  # fmt: skip
    before = "entry"
    for part in range(tile.columns // (tile.vectors * tile.lanes)):
        lines += _part(tile, part, height, chains, unrolled, before)
        before = f"done{part}"
    return [*lines, "  ret void", "}"]


def _part(tile: RowTile, part: int, height: int, chains: int, unrolled: int, before: str) -> list[str]:
    """The product with some columns of the panel.

    Args:
        before: the label of the block that ends here.
    """
    vector = f"<{tile.lanes} x float>"
    sums = [(row, v) for row in range(height) for v in range(tile.vectors)]
    lines = [f"  br i1 %some, label %body{part}, label %rest{part}", f"body{part}:",
             f"  %k{part} = phi i64 [0, %{before}], [%kn{part}, %body{part}]"]  # fmt: skip
    current: dict[tuple[int, int, int], str] = {}
    steps: list[str] = []
    for row, v in sums:
        for chain in range(chains):
            current[row, v, chain] = f"%p{part}_{row}_{v}_{chain}"
    first = dict(current)
    for step in range(unrolled):
        steps += _step(tile, part, height, current, f"%k{part}", step, f"{part}_{step}", step % chains)
    for key, name in first.items():
        lines.append(f"  {name} = phi {vector} [zeroinitializer, %{before}], [{current[key]}, %body{part}]")
    lines += [*steps, f"  %kn{part} = add i64 %k{part}, {unrolled}",
              f"  %more{part} = icmp ult i64 %kn{part}, %whole",
              f"  br i1 %more{part}, label %body{part}, label %rest{part}", f"rest{part}:"]  # fmt: skip
    for (row, v, chain), last in current.items():
        lines.append(f"  %m{part}_{row}_{v}_{chain} = phi {vector} [zeroinitializer, %{before}], [{last}, %body{part}]")
    whole: dict[tuple[int, int, int], str] = {}
    for row, v in sums:
        whole[row, v, 0] = f"%m{part}_{row}_{v}_0"
        for chain in range(1, chains):
            made = f"%c{part}_{row}_{v}_{chain}"
            lines.append(f"  {made} = fadd {vector} {whole[row, v, 0]}, %m{part}_{row}_{v}_{chain}")
            whole[row, v, 0] = made
    lines += [f"  br i1 %left, label %single{part}, label %done{part}", f"single{part}:",
              f"  %q{part} = phi i64 [%whole, %rest{part}], [%qn{part}, %single{part}]"]  # fmt: skip
    current = {key: f"%s{part}_{key[0]}_{key[1]}" for key in whole}
    first = dict(current)
    steps = _step(tile, part, height, current, f"%q{part}", 0, f"{part}_s", 0)
    for key, name in first.items():
        lines.append(f"  {name} = phi {vector} [{whole[key]}, %rest{part}], [{current[key]}, %single{part}]")
    lines += [*steps, f"  %qn{part} = add i64 %q{part}, 1", f"  %again{part} = icmp ult i64 %qn{part}, %depth",
              f"  br i1 %again{part}, label %single{part}, label %done{part}", f"done{part}:"]  # fmt: skip
    for row, v in sums:
        lines.append(f"  %e{part}_{row}_{v} = phi {vector} [{whole[row, v, 0]}, %rest{part}], "
                     f"[{current[row, v, 0]}, %single{part}]")  # fmt: skip
    size = _FLOAT * tile.lanes
    for row, v in sums:
        column = (part * tile.vectors + v) * tile.lanes
        lines += [f"  %to{part}_{row}_{v} = mul i64 %sums_apart, {row}",
                  f"  %tc{part}_{row}_{v} = add i64 %to{part}_{row}_{v}, {column}",
                  f"  %tp{part}_{row}_{v} = getelementptr float, ptr %sums, i64 %tc{part}_{row}_{v}",
                  f"  store {vector} %e{part}_{row}_{v}, ptr %tp{part}_{row}_{v}, align {size}"]  # fmt: skip
    return lines


def _step(
    tile: RowTile, part: int, height: int, current: dict[tuple[int, int, int], str], index: str, offset: int,
    name: str, chain: int,
) -> list[str]:  # fmt: skip
    """Add the products of one row of the panel, `offset` behind `index`, to the sums; `current` names the new ones.

    Args:
        chain: which part of each sum it is added to.
    """
    vector = f"<{tile.lanes} x float>"
    zeros = f"<{tile.lanes} x i32> zeroinitializer"
    start = part * tile.vectors * tile.lanes
    lines = [f"  %i{name} = add i64 {index}, {offset}", f"  %w{name} = mul i64 %i{name}, {tile.columns}"]
    for v in range(tile.vectors):
        lines += [f"  %wo{name}_{v} = add i64 %w{name}, {start + v * tile.lanes}",
                  f"  %wp{name}_{v} = getelementptr float, ptr %weights, i64 %wo{name}_{v}",
                  f"  %wv{name}_{v} = load {vector}, ptr %wp{name}_{v}, align {_FLOAT * tile.lanes}"]  # fmt: skip
    for row in range(height):
        lines += [f"  %xp{name}_{row} = getelementptr float, ptr %x{row}, i64 %i{name}",
                  f"  %xs{name}_{row} = load float, ptr %xp{name}_{row}, align {_FLOAT}",
                  f"  %xi{name}_{row} = insertelement {vector} poison, float %xs{name}_{row}, i64 0",
                  f"  %xv{name}_{row} = shufflevector {vector} %xi{name}_{row}, {vector} poison, {zeros}"]  # fmt: skip
        for v in range(tile.vectors):
            made = f"%n{name}_{row}_{v}"
            lines.append(f"  {made} = call {vector} @llvm.fma.v{tile.lanes}f32({vector} %xv{name}_{row}, "
                         f"{vector} %wv{name}_{v}, {vector} {current[row, v, chain]})")  # fmt: skip
            current[row, v, chain] = made
    return lines
