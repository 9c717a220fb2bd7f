"""Gathering slices by index.

Indices are in the memory of the GPU, so those out of range give zeros, as TensorFlow's do there.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from toolkit.kernels.cpu.arrays.gather import check_gather_nd, gather_axes, ignores_bad_indices
from toolkit.kernels.cpu.common import require
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.primitives.copying import WORDS, copy_part
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.primitives.layout import ElementLayout
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.tensors import row_major
from toolkit.kernels.types import Array


def slice_words(nbytes: int, *addresses: int) -> int:
    """The widest word, up to 8 bytes, that slices of so many bytes at these addresses are made of."""
    return math.gcd(nbytes, 8, *addresses)


@functools.cache
def _gather(word: str, ids: str, index: str, is_plain: bool) -> SimtKernel:
    """params is [batch, outer, limit, inner], indices [batch, count], the result [batch, outer, count, inner].

    Args:
        is_plain: batch and outer are 1.
    """
    k = KernelBuilder(f"gather_{word}", BLOCK)
    params, indices, y = k.buffer("params", word), k.buffer("indices", ids), k.buffer("y", word, written=True)
    n, limit = k.scalar("n", index), k.scalar("limit", index)
    names = ("inner",) if is_plain else ("outer", "count", "inner")
    sizes = [Divisor.argument(k, name, index) for name in names]
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        *outside, row, column = coordinates(k, i, sizes)
        at = row if is_plain else k.add(k.mul(outside[0], sizes[1].size), row)
        chosen = k.convert(k.load(indices, at), "i64")
        with k.when(k.compare("ult", chosen, k.convert(limit, "i64"))):
            source: Lanes = k.convert(chosen, index)
            if not is_plain:
                block = k.add(k.mul(outside[0], sizes[0].size), outside[1])
                source = k.add(k.mul(block, limit), source)
            source = k.add(k.mul(source, sizes[-1].size), column)
            k.store(y, i, k.load(params, source))
        with k.otherwise():
            k.store(y, i, k.number(0, word))
    return k.finish()


def gathered(
    device: CudaDevice, params: GpuArray, indices: GpuArray, shape: Sequence[int], sizes: tuple[int, int, int, int, int]
) -> GpuArray:
    """Slices of `params` by `indices`.

    Args:
        shape: of the result.
        sizes: batch, outer, limit and inner of params, and the indices of each batch (count).
    """
    y = device.empty(shape, params.dtype)
    if not y.size:
        return y
    batch, outer, limit, inner, count = sizes
    width = slice_words(inner * params.dtype.itemsize, params.address)
    words = inner * params.dtype.itemsize // width
    n = batch * outer * count * words
    index = index_type(n, batch * outer * limit * words)
    is_plain = batch * outer == 1
    kernel = _gather(WORDS[width], WORDS[indices.dtype.itemsize], index, is_plain)
    dims = [words] if is_plain else [outer, count, words]
    device.launch(kernel, blocks_for(n), params, indices, y, n, limit, *divisors(dims, index))
    return y


@gpu_kernel("Gather")
def gather(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(params: GpuArray, indices: GpuArray) -> GpuArray:
        require(params.ndim >= 1, "params must be at least 1 dimensional")
        return gather_rows(device, params, indices)

    return compute


def gather_rows(device: CudaDevice, params: GpuArray, indices: GpuArray) -> GpuArray:
    """Rows of a tensor by a tensor of indices of any shape; rows that it does not have are zeros."""
    inner = params.shape[1:]
    sizes = (1, 1, params.shape[0], math.prod(inner), indices.size)
    return gathered(device, params, indices, (*indices.shape, *inner), sizes)


@gpu_kernel("GatherV2")
def gather_v2(op: KernelNode) -> Compute:
    device, batch_dims = device_of(op.node), op.attr("batch_dims")

    def compute(params: GpuArray, indices: GpuArray, axis_input: Array) -> GpuArray:
        axis, batch = gather_axes(params, indices, axis_input, batch_dims)
        lead, outer, inner = params.shape[:batch], params.shape[batch:axis], params.shape[axis + 1 :]
        rows = indices.shape[batch:]
        sizes = (math.prod(lead), math.prod(outer), params.shape[axis], math.prod(inner), math.prod(rows))
        return gathered(device, params, indices, (*lead, *outer, *rows, *inner), sizes)

    return compute


@functools.cache
def _gather_nd(word: str, ids: str, index: str, depth: int) -> SimtKernel:
    """Slices of `inner` words at places with `depth` coordinates."""
    k = KernelBuilder(f"gather_nd{depth}_{word}", BLOCK)
    params, indices, y = k.buffer("params", word), k.buffer("indices", ids), k.buffer("y", word, written=True)
    n, inner = k.scalar("n", index), Divisor.argument(k, "inner", index)
    dims = [(k.scalar(f"limit{d}", "i64"), k.scalar(f"step{d}", index)) for d in range(depth)]
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        row, column = coordinates(k, i, [inner])
        first = k.mul(k.convert(row, "i64"), k.number(depth, "i64"))
        inside: Lanes = k.number(True, "i1")
        source: Lanes = column
        for d, (limit, step) in enumerate(dims):
            at = k.convert(k.load(indices, k.add(first, k.number(d, "i64"))), "i64")
            inside = k.both(inside, k.compare("ult", at, limit))
            source = k.add(source, k.mul(k.convert(at, index), step))
        with k.when(inside):
            k.store(y, i, k.load(params, source))
        with k.otherwise():
            k.store(y, i, k.number(0, word))
    return k.finish()


@gpu_kernel("GatherNd")
def gather_nd(op: KernelNode) -> Compute:
    device = device_of(op.node)
    ignores_bad_indices(op)  # both policies are one here; others are refused

    def compute(params: GpuArray, indices: GpuArray) -> GpuArray:
        depth = check_gather_nd(params, indices)
        shape = (*indices.shape[:-1], *params.shape[depth:])
        if not depth:
            y = device.empty(shape, params.dtype)
            spread = (0,) * (indices.ndim - 1) + row_major(params.shape)
            copy_part(device, params, ElementLayout(shape, spread), y, ElementLayout.dense(shape))
            return y
        return gather_nd_slices(device, params, indices)

    return compute


def gather_nd_slices(device: CudaDevice, params: GpuArray, indices: GpuArray) -> GpuArray:
    """Slices at the places that the rows of `indices` name; zeros where there is none."""
    depth = indices.shape[-1]
    y = device.empty((*indices.shape[:-1], *params.shape[depth:]), params.dtype)
    if not y.size:
        return y
    nbytes = math.prod(params.shape[depth:]) * params.dtype.itemsize
    width = slice_words(nbytes, params.address)
    words = nbytes // width
    n = y.nbytes // width
    index = index_type(n, params.nbytes // width)
    dims = [number for limit, step in zip(params.shape, row_major(params.shape[:depth]), strict=False)
            for number in (limit, step * words)]  # fmt: skip
    kernel = _gather_nd(WORDS[width], WORDS[indices.dtype.itemsize], index, depth)
    device.launch(kernel, blocks_for(n), params, indices, y, n, *divisors([words], index), *dims)
    return y
