"""Matrix products without a library: one kernel for each type, any strides."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.common import index_type, llvm_type, sum_type
from toolkit.kernels.cuda.nn.tiles import BLOCK, tiles_of, write_tiles
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel


@functools.cache
def product_kernel(type: str, parts: int, conjugates: tuple[bool, bool], index: str, made: str = "") -> SimtKernel:
    """A batch of products.

    Args:
        type: of a number in memory, of a complex number's parts.
        parts: 2 for complex numbers.
        conjugates: of a and b.
        made: of the result's numbers in memory; "" for the same.
    """
    wide, made = sum_type(type), made or type
    k = KernelBuilder(f"product_{type}{'_complex' if parts == 2 else ''}", BLOCK)
    a, b, out = k.buffer("a", type), k.buffer("b", type), k.buffer("out", made, written=True)
    rows, columns, depth = (k.scalar(name, index) for name in ("rows", "columns", "depth"))
    a_first, a_batch, a_row, a_depth = (k.scalar(f"a_{name}", index) for name in ("first", "batch", "row", "depth"))
    b_first, b_batch, b_depth, b_column = (
        k.scalar(f"b_{name}", index) for name in ("first", "batch", "depth", "column")
    )
    out_first, out_batch, out_row = (k.scalar(f"out_{name}", index) for name in ("first", "batch", "row"))
    starts: dict[str, Lanes] = {}

    def prepare(batch: Lanes) -> None:
        starts["a"] = k.add(a_first, k.mul(batch, a_batch))
        starts["b"] = k.add(b_first, k.mul(batch, b_batch))
        starts["out"] = k.add(out_first, k.mul(batch, out_batch))

    def element(buffer: Any, start: Lanes, first: Lanes, second: Lanes, is_conjugate: bool) -> Sequence[Lanes]:
        where = k.add(start, k.add(first, second))
        if parts == 1:
            return [k.convert(k.load(buffer, where), wide)]
        real = k.mul(where, k.number(2, index))
        imaginary: Lanes = k.load(buffer, k.add(real, k.number(1, index)))
        return [k.load(buffer, real), k.neg(imaginary) if is_conjugate else imaginary]

    def load_a(row: Lanes, place: Lanes) -> Sequence[Lanes]:
        return element(a, starts["a"], k.mul(row, a_row), k.mul(place, a_depth), conjugates[0])

    def load_b(place: Lanes, column: Lanes) -> Sequence[Lanes]:
        return element(b, starts["b"], k.mul(place, b_depth), k.mul(column, b_column), conjugates[1])

    def store(row: Lanes, column: Lanes, values: Sequence[Lanes]) -> None:
        where: Lanes = k.add(starts["out"], k.add(k.mul(row, out_row), column))
        if parts == 1:
            k.store(out, where, k.convert(values[0], made))
            return
        real = k.mul(where, k.number(2, index))
        k.store(out, real, values[0])
        k.store(out, k.add(real, k.number(1, index)), values[1])

    write_tiles(k, (rows, columns, depth), prepare, load_a, load_b, store, wide, parts=parts)
    return k.finish()


def launch_product(
    device: Any,
    arrays: tuple[Any, Any, Any],
    sizes: tuple[int, int, int],
    turns: tuple[str, str],
    *,
    batch: int = 1,
    firsts: tuple[int, int, int] = (0, 0, 0),
    strides: tuple[int, int, int] = (0, 0, 0),
    leads: tuple[int, int, int] | None = None,
) -> None:
    """out = op(a) @ op(b) for each of a batch, on the device's compute stream.

    Args:
        arrays: a, b, out; the first two of one type.
        sizes: m, n, k.
        turns: "N", "T" or "C" of a and b.
        firsts: elements before the first matrix of each.
        strides: elements from one matrix to the next of each.
        leads: elements from one stored row to the next of each; by default rows lie one behind the other.
    """
    a, b, out = arrays
    m, n, depth = sizes
    parts = 2 if out.dtype.kind == "c" else 1
    type, made = (
        llvm_type(np.dtype(f"f{dtype.itemsize // 2}") if parts == 2 else dtype) for dtype in (a.dtype, out.dtype)
    )
    kernel = product_kernel(type, parts, (turns[0] == "C", turns[1] == "C"), _index(parts, a, b, out), made)
    lead_a, lead_b, lead_out = leads or (depth if turns[0] == "N" else m, n if turns[1] == "N" else depth, n)
    a_steps = (lead_a, 1) if turns[0] == "N" else (1, lead_a)
    b_steps = (lead_b, 1) if turns[1] == "N" else (1, lead_b)
    device.launch(
        kernel, batch * tiles_of(m, n), a, b, out, m, n, depth, firsts[0], strides[0], *a_steps, firsts[1],
        strides[1], *b_steps, firsts[2], strides[2], lead_out,
    )  # fmt: skip


def _index(parts: int, *arrays: Any) -> str:
    if parts == 2 and any(array.nbytes // array.dtype.itemsize >= 2**30 for array in arrays):
        return "i64"  # parts are numbered, not elements
    return index_type(*arrays)
