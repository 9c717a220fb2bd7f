"""Sparse tensors and dense ones: products with a matrix, and tensors of all places.

Indices are in the memory of the GPU: what they name out of range is left out, and whether they are in order is not
looked at.
"""

from __future__ import annotations

import functools

import numpy as np

from toolkit.kernels.cpu.sparse.forms import check_dense_shape
from toolkit.kernels.cpu.sparse.math import check_product
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import TYPES, SimtKernel
from toolkit.kernels.gpu.copying import WORDS, part
from toolkit.kernels.gpu.crop import narrowed
from toolkit.kernels.gpu.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.layout import ElementLayout
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.gpu.scatter import row_numbers, scatter_rows
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array


@functools.cache
def _products(type: str, wide: str, ids: str, index: str, transposes_a: bool, transposes_b: bool) -> SimtKernel:
    """For each number of a sparse matrix, it times a row of a dense one, and the row that that is added to."""
    k = KernelBuilder(f"sparse_products_{type}", BLOCK)
    indices, values, b = k.buffer("indices", ids), k.buffer("values", type), k.buffer("b", type)
    products, rows = k.buffer("products", wide, written=True), k.buffer("rows", "i64", written=True)
    n, limit, inner = k.scalar("n", index), k.scalar("limit", "i64"), k.scalar("inner", "i64")
    width = Divisor.argument(k, "width", index)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        entry, column = coordinates(k, i, [width])
        place = k.mul(k.convert(entry, "i64"), k.number(2, "i64"))
        first = k.convert(k.load(indices, place), "i64")
        second = k.convert(k.load(indices, k.add(place, k.number(1, "i64"))), "i64")
        row, across = (second, first) if transposes_a else (first, second)
        inside = k.both(k.compare("ult", row, limit), k.compare("ult", across, inner))
        product = k.variable(k.number(0.0, wide))
        with k.when(inside):
            wide_column = k.convert(column, "i64")
            if transposes_b:
                at = k.add(k.mul(wide_column, inner), across)
            else:
                at = k.add(k.mul(across, k.convert(width.size, "i64")), wide_column)
            product.set(k.mul(k.convert(k.load(values, entry), wide), k.convert(k.load(b, at), wide)))
        k.store(products, i, product.get())
        with k.when(k.compare("eq", column, k.number(0, index))):
            k.store(rows, entry, k.select(inside, row, k.number(-1, "i64")))
    return k.finish()


@kernel(
    "SparseTensorDenseMatMul",
    types={"T": ["half", "float", "double"], "Tindices": ["int32", "int64"]},
    device="GPU",
    label="simt",
)
def sparse_dense_matmul(op: KernelNode) -> Compute:
    """A sparse matrix times a dense one, either as its adjoint; real numbers only. Sums are float32 of half numbers."""
    device = device_of(op.node)
    adjoint_a, adjoint_b = bool(op.attr("adjoint_a")), bool(op.attr("adjoint_b"))

    def compute(indices: GpuArray, values: GpuArray, shape: Array, b: GpuArray) -> GpuArray:
        rows, inner, columns = check_product(indices, values, shape, b, adjoint_a, adjoint_b)
        wide = np.dtype(np.float64 if b.dtype == np.float64 else np.float32)
        y = device.zeros((rows, columns), wide)
        count = values.size * columns
        if count and y.size:
            products, numbers = device.empty((values.size, columns), wide), device.empty((values.size,), np.int64)
            index, type = index_type(count), TYPES[b.dtype.name]
            ids = WORDS[indices.dtype.itemsize]
            form = _products(type, TYPES[wide.name], ids, index, adjoint_a, adjoint_b)
            sizes = divisors([columns], index)
            device.launch(form, blocks_for(count), indices, values, b, products, numbers, count, rows, inner, *sizes)
            scatter_rows(device, y, products, numbers, rows, "add")
        return y if wide == b.dtype else narrowed(device, y, b.dtype)

    return compute


@gpu_kernel("SparseToDense")
def sparse_to_dense(op: KernelNode) -> Compute:
    """Of numbers for one place the last one stays."""
    device = device_of(op.node)

    def compute(indices: GpuArray, shape: Array, values: GpuArray, default: Array) -> GpuArray:
        sizes, count = check_dense_shape(indices, shape, values, default)
        y = device.full(sizes, values.dtype, default[()])
        if count and y.size:
            given = values if values.ndim else part(device, values, ElementLayout((count,), (0,)))
            numbers = row_numbers(device, indices.reshaped((count, len(sizes))), sizes)
            scatter_rows(device, y, given, numbers, y.size, "update")
        return y

    return compute
