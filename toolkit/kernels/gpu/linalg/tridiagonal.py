"""Matrices given by three diagonals: products (TridiagonalMatMul), a number of the result a thread, TridiagonalSolve.

Systems are solved by elimination: a thread factors a matrix, then one goes through each column of right-hand sides.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from toolkit.kernels.cpu.linalg.solve import check_diagonals, check_tridiagonal
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel, Value
from toolkit.kernels.gpu.linalg.factor_numbers import FactorNumbers
from toolkit.kernels.gpu.primitives.element_types import Number
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode


@functools.cache
def product_kernel(type: str) -> SimtKernel:
    """Takes above, main, below [batch, size], rhs and y [batch, size, columns], size, columns, count of numbers."""
    k = KernelBuilder(f"tridiagonal_product_{type}", BLOCK)
    f = FactorNumbers(k, type)
    above, main, below, rhs = (f.buffer(name) for name in ("above", "main", "below", "rhs"))
    y = f.buffer("y", written=True)
    size, columns, count = (k.scalar(name, "i64") for name in ("size", "columns", "count"))
    i, zero, one = k.global_thread("i64"), k.number(0, "i64"), k.number(1, "i64")
    with k.when(k.compare("slt", i, count)):
        line = k.div(i, columns)  # of all matrices, as the diagonals have their numbers
        row = k.rem(line, size)
        total = f.variable(f.mul(f.load(main, line), f.load(rhs, i)))
        with k.when(k.compare("slt", k.add(row, one), size)):
            total.set(f.add(total.get(), f.mul(f.load(above, line), f.load(rhs, k.add(i, columns)))))
        with k.when(k.compare("sgt", row, zero)):
            total.set(f.add(total.get(), f.mul(f.load(below, line), f.load(rhs, k.sub(i, columns)))))
        f.store(y, i, total.get())
    return k.finish()


@gpu_kernel("TridiagonalMatMul")
def tridiagonal_mat_mul(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(above: GpuArray, main: GpuArray, below: GpuArray, rhs: GpuArray) -> GpuArray:
        check_diagonals(above, main, below, rhs)
        made = device.empty(rhs.shape, rhs.dtype)
        if made.size:
            size, columns = rhs.shape[-2:]
            kernel = product_kernel(rhs.dtype.name)
            device.launch(kernel, blocks_for(made.size), above, main, below, rhs, made, size, columns, made.size)
        return made

    return compute


#: what a factored row consists of: the diagonal, two numbers above it, how much of it is taken from the next row
_PARTS = 4


@functools.cache
def factor_kernel(type: str, pivoting: bool) -> SimtKernel:
    """Rows of `_PARTS` numbers, whether each was exchanged with the next, and whether a pivot was 0.

    Takes diagonals [batch, 3, size], rows [batch, size, 4], swaps [batch, size], state [batch], size, batch.
    """
    k = KernelBuilder(f"tridiagonal_factor_{type}{'_pivoting' if pivoting else ''}", BLOCK)
    f = FactorNumbers(k, type)
    diagonals, rows = f.buffer("diagonals"), f.buffer("rows", written=True)
    swaps, state = k.buffer("swaps", "i8", written=True), k.buffer("state", "i32", written=True)
    size, batch = k.scalar("size", "i64"), k.scalar("batch", "i64")
    i, zero, one = k.global_thread("i64"), k.number(0, "i64"), k.number(1, "i64")
    with k.when(k.compare("slt", i, batch)):
        above = k.mul(i, k.mul(size, k.number(3, "i64")))
        main = k.add(above, size)
        below, first = k.add(main, size), k.mul(i, size)
        last = k.sub(size, one)
        nothing = f.number(0.0)
        found = k.variable(k.number(0, "i32"))
        current = [
            f.variable(f.load(diagonals, main)),
            f.variable(nothing),
        ]  # the row that is left, from its diagonal on
        with k.when(k.compare("sgt", size, one)):
            current[1].set(f.load(diagonals, above))

        def keep(row: Value, numbers: list[Number]) -> None:
            for part, number in enumerate(numbers):
                at = k.add(k.mul(k.add(first, row), k.number(_PARTS, "i64")), k.number(part, "i64"))
                f.store(rows, at, number)

        with k.loop(zero, last) as row:
            after = k.add(row, one)
            outer = f.variable(nothing)
            with k.when(k.compare("slt", after, last)):
                outer.set(f.load(diagonals, k.add(above, after)))
            ours = [current[0].get(), current[1].get(), nothing]
            theirs = [f.load(diagonals, k.add(below, after)), f.load(diagonals, k.add(main, after)), outer.get()]
            swap = k.compare("ogt", f.size(theirs[0]), f.size(ours[0])) if pivoting else k.number(0, "i1")
            kept = [f.choose(swap, b, a) for a, b in zip(ours, theirs, strict=True)]
            rest = [f.choose(swap, a, b) for a, b in zip(ours, theirs, strict=True)]
            found.set(k.select(f.is_zero(kept[0]), k.number(1, "i32"), found.get()))
            factor = f.div(rest[0], kept[0])
            keep(row, [*kept, factor])
            k.store_bool(swaps, k.add(first, row), swap)
            for place, variable in enumerate(current, 1):
                variable.set(f.sub(rest[place], f.mul(factor, kept[place])))
        keep(last, [current[0].get(), nothing, nothing, nothing])
        k.store(state, i, k.select(f.is_zero(current[0].get()), k.number(1, "i32"), found.get()))
    return k.finish()


@functools.cache
def substitute_kernel(type: str) -> SimtKernel:
    """A column of right-hand sides a thread: takes rows, swaps and state of `factor_kernel`, y [batch, size, columns],
    which is the right-hand sides at first, size, columns, all columns."""
    k = KernelBuilder(f"tridiagonal_substitute_{type}", BLOCK)
    f = FactorNumbers(k, type)
    rows, swaps, state = f.buffer("rows"), k.buffer("swaps", "i8"), k.buffer("state", "i32")
    y = f.buffer("y", written=True)
    size, columns, count = (k.scalar(name, "i64") for name in ("size", "columns", "count"))
    i, zero, one = k.global_thread("i64"), k.number(0, "i64"), k.number(1, "i64")
    with k.when(k.compare("slt", i, count)):
        matrix = k.div(i, columns)
        is_singular = k.convert(k.load(state, matrix), "i1")  # then nothing is a solution
        nan = f.number(math.nan)
        first = k.mul(matrix, size)
        start, last = k.add(k.mul(first, columns), k.rem(i, columns)), k.sub(size, one)

        def part(row: Value, which: int) -> Number:
            at = k.mul(k.add(first, row), k.number(_PARTS, "i64"))
            return f.load(rows, k.add(at, k.number(which, "i64")))

        def place(row: Value) -> Value:
            return k.add(start, k.mul(row, columns))

        current = f.variable(f.load(y, start))
        with k.loop(zero, last) as row:
            following = f.load(y, place(k.add(row, one)))
            swap = k.load_bool(swaps, k.add(first, row))
            kept = f.choose(swap, following, current.get())
            rest = f.choose(swap, current.get(), following)
            f.store(y, place(row), kept)
            current.set(f.sub(rest, f.mul(part(row, 3), kept)))
        below, beyond = f.variable(f.number(0.0)), f.variable(f.number(0.0))
        below.set(f.div(current.get(), part(last, 0)))
        f.store(y, place(last), f.choose(is_singular, nan, below.get()))
        with k.loop(zero, last) as step:
            row = k.sub(k.sub(last, one), step)
            known = f.sub(f.load(y, place(row)), f.mul(part(row, 1), below.get()))
            known = f.div(f.sub(known, f.mul(part(row, 2), beyond.get())), part(row, 0))
            f.store(y, place(row), f.choose(is_singular, nan, known))
            beyond.set(below.get())
            below.set(known)
    return k.finish()


@gpu_kernel("TridiagonalSolve")
def tridiagonal_solve(op: KernelNode) -> Compute:
    device, pivoting = device_of(op.node), bool(op.attr("partial_pivoting"))

    def compute(diagonals: GpuArray, rhs: GpuArray) -> GpuArray:
        check_tridiagonal(diagonals, rhs)
        if not rhs.size:
            return rhs
        size, columns = rhs.shape[-2:]
        batch, type = math.prod(rhs.shape[:-2]), rhs.dtype.name
        rows, swaps = device.empty((batch, size, _PARTS), rhs.dtype), device.empty((batch, size), bool)
        state = device.empty((batch,), np.int32)
        kernel = factor_kernel(type, pivoting)
        device.launch(kernel, blocks_for(batch), diagonals, rows, swaps, state, size, batch)
        made, count = device.copied(rhs), batch * columns
        device.launch(substitute_kernel(type), blocks_for(count), rows, swaps, state, made, size, columns, count)
        return made

    return compute
