"""Scattering into new tensors by index. Indices out of range are left out, as TensorFlow's GPUs do.

Sums of 32 and 64 bits are atomic additions, in any order; everything else, and sums where results must be the same
each time (`CudaDevice.deterministic`), is done in the order of the updates (`primitives.ordering`), as the CPU does it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from toolkit.kernels.cpu.arrays.gather import check_scatter, ignores_bad_indices
from toolkit.kernels.cpu.arrays.misc import check_rows_in_place
from toolkit.kernels.cpu.arrays.shape import checked_shape
from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import FLOATING, SIZES, TYPES, SimtKernel
from toolkit.kernels.gpu.primitives.copying import WORDS
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.primitives.ordering import order_of
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


@functools.cache
def _numbers(ids: str, depth: int, wraps: bool) -> SimtKernel:
    """Row-major numbers of coordinates, -1 for those out of range.

    Args:
        wraps: coordinates out of range are counted from the end, and around.
    """
    k = KernelBuilder(f"rows{depth}_{ids}", BLOCK)
    indices, rows = k.buffer("indices", ids), k.buffer("rows", "i64", written=True)
    n = k.scalar("n", "i64")
    limits = [k.scalar(f"limit{d}", "i64") for d in range(depth)]
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, n)):
        number: Lanes = k.number(0, "i64")
        inside: Lanes = k.number(True, "i1")
        for d, limit in enumerate(limits):
            place = k.add(k.mul(i, k.number(depth, "i64")), k.number(d, "i64"))
            at: Lanes = k.convert(k.load(indices, place), "i64")
            if wraps:
                at = k.rem(at, limit)
                at = k.select(k.compare("slt", at, k.number(0, "i64")), k.add(at, limit), at)
            inside = k.both(inside, k.compare("ult", at, limit))
            number = k.add(k.mul(number, limit), at)
        k.store(rows, i, k.select(inside, number, k.number(-1, "i64")))
    return k.finish()


def row_numbers(device: CudaDevice, indices: GpuArray, limits: Sequence[int], *, wraps: bool = False) -> GpuArray:
    """The numbers [n] of the slices that coordinates [..., depth] name in the first axes of a shape."""
    count = math.prod(indices.shape[:-1])
    if not limits:
        return device.zeros((count,), "int64")
    rows = device.empty((count,), "int64")
    kernel = _numbers(WORDS[indices.dtype.itemsize], len(limits), wraps)
    device.launch(kernel, blocks_for(count), indices, rows, count, *limits)
    return rows


@functools.cache
def _at_once(type: str, negates: bool, index: str) -> SimtKernel:
    """Atomic sums; rows out of range are left out."""
    k = KernelBuilder(f"scatter_{'sub' if negates else 'add'}_{type}", BLOCK)
    y, updates, rows = k.buffer("y", type, written=True), k.buffer("updates", type), k.buffer("rows", "i64")
    n, limit = k.scalar("n", index), k.scalar("limit", "i64")
    inner = Divisor.argument(k, "inner", index)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        update, column = coordinates(k, i, [inner])
        row = k.load(rows, update)
        with k.when(k.compare("ult", row, limit)):
            value: Lanes = k.load(updates, i)
            value = k.neg(value) if negates else value
            place = k.add(k.mul(k.convert(row, index), inner.size), column)
            k.atomic("fadd" if type in FLOATING else "add", y, place, value)
    return k.finish()


def _combined(k: KernelBuilder, how: str, a: Lanes, b: Lanes) -> Lanes:
    """What becomes of `a` by an update `b`."""
    match how:
        case "update":
            return b
        case "add":
            return k.add(a, b)
        case "sub":
            return k.sub(a, b)
        case _:
            less = "lt" if how == "min" else "gt"
            if a.type not in FLOATING:
                return k.select(k.compare(f"s{less}", a, b), a, b)
            chosen = k.select(k.compare(f"o{less}", a, b), a, b)
            return k.select(k.compare("uno", a, b), k.add(a, b), chosen)


@functools.cache
def _in_order(type: str, how: str, index: str) -> SimtKernel:
    """The thread of the first update of a row does them all; narrow floats are rounded once, behind the last."""
    k = KernelBuilder(f"scatter_{how}_in_order_{type}", BLOCK)
    wide = "float" if type in ("half", "bfloat") and how != "update" else type
    y, updates, rows = k.buffer("y", type, written=True), k.buffer("updates", type), k.buffer("rows", "i64")
    again, behind = k.buffer("again", "i32"), k.buffer("behind", "i32")
    n, count = k.scalar("n", index), k.scalar("count", "i32")
    inner = Divisor.argument(k, "inner", index)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        update, column = coordinates(k, i, [inner])
        with k.when(k.compare("eq", k.load(again, update), k.number(0, "i32"))):
            place = k.add(k.mul(k.convert(k.load(rows, update), index), inner.size), column)
            total = k.variable(k.convert(k.load(y, place), wide))
            turn = k.variable(k.convert(update, "i32"))
            with k.while_(lambda: k.compare("slt", turn.get(), count)):
                now = turn.get()
                given = k.load(updates, k.add(k.mul(k.convert(now, index), inner.size), column))
                total.set(_combined(k, how, total.get(), k.convert(given, wide)))
                turn.set(k.load(behind, now))
            k.store(y, place, k.convert(total.get(), type))
    return k.finish()


def scatter_rows(device: CudaDevice, y: GpuArray, updates: GpuArray, rows: GpuArray, limit: int, how: str) -> None:
    """Change rows of a tensor in place.

    Args:
        rows: int64 [n], of `limit` that there are.
        how: "update", "add", "sub", "min" or "max".
    """
    if not updates.size or not y.size:
        return
    dtype = y.dtype
    type, parts = TYPES.get(dtype.name, ""), 1
    if how == "update":
        width = min(dtype.itemsize, 8)
        type, parts = WORDS[width], dtype.itemsize // width
    elif dtype.kind == "c":
        type, parts = ("float" if dtype.itemsize == 8 else "double"), 2
    elif dtype.kind == "b":
        type = "i8"
    n = updates.size * parts
    inner = n // rows.size
    index = index_type(n, limit * inner)
    if how in ("add", "sub") and SIZES[type] >= 4 and (type not in FLOATING or not device.deterministic):
        kernel = _at_once(type, how == "sub", index)
        device.launch(kernel, blocks_for(n), y, updates, rows, n, limit, *divisors([inner], index))
        return
    again, behind = order_of(device, rows, limit)
    kernel = _in_order(type, how, index)
    device.launch(kernel, blocks_for(n), y, updates, rows, again, behind, n, rows.size, *divisors([inner], index))


def _scatter_slices(device: CudaDevice, y: GpuArray, indices: GpuArray, updates: GpuArray, how: str) -> None:
    depth = indices.shape[-1]
    limits = y.shape[:depth]
    if updates.size:
        rows = row_numbers(device, indices, limits)
        scatter_rows(device, y, updates, rows, math.prod(limits), how)


def _as_rows(indices: GpuArray) -> GpuArray:
    """A vector of indices is one of scalar indices."""
    return indices.reshaped((*indices.shape, 1)) if indices.ndim == 1 else indices


@gpu_kernel("ScatterNd")
def scatter_nd(op: KernelNode) -> Compute:
    """Zeros with the updates added at their indices."""
    device = device_of(op.node)
    ignores_bad_indices(op)  # both policies are one here; others are refused

    def compute(indices: GpuArray, updates: GpuArray, shape: Array) -> GpuArray:
        sizes = tuple(checked_shape(shape))
        require(indices.ndim >= 1, f"Indices shape must have rank at least one. Found:{shape_text(indices)}")
        require(updates.ndim >= 1, f"Updates shape must have rank at least one. Found:{shape_text(updates)}")
        rows = _as_rows(indices)
        check_scatter(sizes, rows, updates, len(sizes))
        y = device.zeros(sizes, updates.dtype)
        _scatter_slices(device, y, rows, updates, "add")
        return y

    return compute


_HOW = {
    "TensorScatterUpdate": "update", "TensorScatterAdd": "add", "TensorScatterSub": "sub",
    "TensorScatterMin": "min", "TensorScatterMax": "max", "ScatterNdNonAliasingAdd": "add",
}  # fmt: skip


@gpu_kernel(*_HOW)
def tensor_scatter(op: KernelNode) -> Compute:
    device, how = device_of(op.node), _HOW[op.op]
    ignores_bad_indices(op)

    def compute(tensor: GpuArray, indices: GpuArray, updates: GpuArray) -> GpuArray:
        require(tensor.ndim >= 1, f"Tensor must be at least 1-D, got shape {shape_text(tensor)}")
        rows = _as_rows(indices)
        check_scatter(tensor.shape, rows, updates, tensor.size)
        if not updates.size:
            return tensor
        y = device.copied(tensor)
        _scatter_slices(device, y, rows, updates, how)
        return y

    return compute


_IN_PLACE = {"InplaceUpdate": "update", "InplaceAdd": "add", "InplaceSub": "sub"}


@gpu_kernel(*_IN_PLACE)
def inplace(op: KernelNode) -> Compute:
    """Rows of x replaced or changed; the name is TensorFlow's, the result is a new tensor. Numbers go around."""
    device, how = device_of(op.node), _IN_PLACE[op.op]

    def compute(x: GpuArray, rows: GpuArray, v: GpuArray) -> GpuArray:
        check_rows_in_place(x, rows, v)
        y = device.copied(x)
        if v.size:
            limit = x.shape[0]
            numbers = row_numbers(device, rows.reshaped((rows.size, 1)), [limit], wraps=True)
            scatter_rows(device, y, v, numbers, limit, how)
        return y

    return compute
