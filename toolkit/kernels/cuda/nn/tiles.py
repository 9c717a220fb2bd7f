"""Products in tiles: each block computes 16 x 16 numbers and keeps the strips that they are made of in shared memory.

What the operands are is the caller's: elements of matrices, or of an image as a matrix of its windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.common import split
from toolkit.kernels.cuda.simt.builder import KernelBuilder, RegisterVariable

TILE = 16
BLOCK = TILE * TILE
#: the parts of an element (of a complex number two), given its row or column and its place in the sum
Load = Callable[[Lanes, Lanes], Sequence[Lanes]]


def tiles_of(rows: int, columns: int) -> int:
    """Blocks of one product."""
    return -(-rows // TILE) * -(-columns // TILE)


def write_tiles(
    k: KernelBuilder,
    sizes: tuple[Lanes, Lanes, Lanes],
    prepare: Callable[[Lanes], None],
    load_a: Load,
    load_b: Load,
    store: Callable[[Lanes, Lanes, Sequence[Lanes]], None],
    type: str,
    *,
    parts: int = 1,
) -> None:
    """Write the body of a kernel: out[row, column] = sum over depth of a[row, depth] * b[depth, column].

    Args:
        sizes: rows, columns, depth.
        prepare: told which product of the batch the block computes.
        load_a: given row and depth; only within the sizes.
        load_b: given depth and column.
        type: of the sums.
        parts: 2 for complex numbers, the real part first.
    """
    rows, columns, depth = sizes
    index = rows.type
    side = k.number(TILE, index)
    zero = k.number(0.0 if type in ("float", "double") else 0, type)

    def up(size: Lanes) -> Lanes:
        return k.div(k.add(size, k.number(TILE - 1, index)), side)

    batch, tile_row, tile_column = split(k, k.convert(k.block_index, index), up(rows), up(columns))
    prepare(batch)
    thread = k.convert(k.thread, index)
    across, down = k.rem(thread, side), k.div(thread, side)
    row, column = k.add(k.mul(tile_row, side), down), k.add(k.mul(tile_column, side), across)
    shared_a = [k.shared(f"strip_a{part}", type, BLOCK) for part in range(parts)]
    shared_b = [k.shared(f"strip_b{part}", type, BLOCK) for part in range(parts)]
    sums = [k.variable(zero) for _ in range(parts)]
    with k.loop(k.number(0, index), depth, TILE) as first:
        for shared, place, load, (outer, size) in (
            (shared_a, k.add(first, across), load_a, (row, rows)),
            (shared_b, k.add(first, down), load_b, (column, columns)),
        ):
            elements = [k.variable(zero) for _ in range(parts)]
            with k.when(k.both(k.compare("slt", outer, size), k.compare("slt", place, depth))):
                for element, value in zip(
                    elements, load(outer, place) if load is load_a else load(place, outer), strict=True
                ):
                    element.set(value)
            for each, element in zip(shared, elements, strict=True):
                k.store(each, thread, element.get())
        k.barrier()
        base = k.mul(down, side)
        for step in range(TILE):
            left = [k.load(each, k.add(base, k.number(step, index))) for each in shared_a]
            right = [k.load(each, k.add(across, k.number(step * TILE, index))) for each in shared_b]
            _accumulate(k, sums, left, right)
        k.barrier()
    with k.when(k.both(k.compare("slt", row, rows), k.compare("slt", column, columns))):
        store(row, column, [each.get() for each in sums])


def _accumulate(
    k: KernelBuilder, sums: Sequence[RegisterVariable], left: Sequence[Lanes], right: Sequence[Lanes]
) -> None:
    """sums += left * right."""

    def add(which: int, a: Lanes, b: Lanes) -> None:
        now = sums[which].get()
        sums[which].set(k.fma(a, b, now) if a.type in ("float", "double") else k.add(k.mul(a, b), now))

    if len(sums) == 1:
        add(0, left[0], right[0])
        return
    (a, b), (c, d) = left, right  # (a + bi)(c + di)
    add(0, a, c)
    add(0, k.neg(b), d)
    add(1, a, d)
    add(1, b, c)
