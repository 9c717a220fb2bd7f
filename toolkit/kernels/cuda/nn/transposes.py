"""Matrices turned over in tiles through shared memory, so that rows are read and written as they lie."""

from __future__ import annotations

import functools
from typing import Any

from toolkit.kernels.cuda.nn.common import BLOCK, index_type, split
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel

_TILE = 32
_ROWS = BLOCK // _TILE  # of a tile that a block moves at a time
_BITS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


@functools.cache
def transpose_kernel(type: str, index: str) -> SimtKernel:
    """(batch, rows, columns) to (batch, columns, rows), of any numbers with so many bits."""
    k = KernelBuilder(f"transpose_{type}", BLOCK)
    x, y = k.buffer("x", type), k.buffer("y", type, written=True)
    rows, columns = k.scalar("rows", index), k.scalar("columns", index)
    tile = k.shared("tile", type, _TILE * (_TILE + 1))  # one more, for columns then lie in different banks

    def up(size: Any) -> Any:
        return k.div(k.add(size, k.number(_TILE - 1, index)), k.number(_TILE, index))

    batch, down, right = split(k, k.convert(k.block_index, index), up(rows), up(columns))
    thread = k.convert(k.thread, index)
    side = k.number(_TILE, index)
    lane, line = k.rem(thread, side), k.div(thread, side)
    first_row, first_column = k.mul(down, side), k.mul(right, side)
    start = k.mul(batch, k.mul(rows, columns))
    for step in range(0, _TILE, _ROWS):
        within = k.add(line, k.number(step, index))
        row, column = k.add(first_row, within), k.add(first_column, lane)
        with k.when(k.both(k.compare("slt", row, rows), k.compare("slt", column, columns))):
            value = k.load(x, k.add(start, k.add(k.mul(row, columns), column)))
            k.store(tile, k.add(k.mul(within, k.number(_TILE + 1, index)), lane), value)
    k.barrier()
    for step in range(0, _TILE, _ROWS):
        within = k.add(line, k.number(step, index))
        row, column = k.add(first_row, lane), k.add(first_column, within)
        with k.when(k.both(k.compare("slt", row, rows), k.compare("slt", column, columns))):
            value = k.load(tile, k.add(k.mul(lane, k.number(_TILE + 1, index)), within))
            k.store(y, k.add(start, k.add(k.mul(column, rows), row)), value)
    return k.finish()


def transposed(device: Any, x: Any, batch: int, rows: int, columns: int, shape: tuple[int, ...]) -> Any:
    """x as (batch, rows, columns), its last two axes exchanged, as an array of a shape."""
    y = device.empty(shape, x.dtype)
    if y.nbytes:
        blocks = batch * -(-rows // _TILE) * -(-columns // _TILE)
        device.launch(transpose_kernel(_BITS[x.dtype.itemsize], index_type(x)), blocks, x, y, rows, columns)
    return y
