"""Sparse tensors and dense ones: products with a matrix, and tensors of all places.

Indices are in the memory of the GPU: what they name out of range is left out, and whether they are in order is not
looked at.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from toolkit.kernels.cpu.sparse.forms import check_dense_shape
from toolkit.kernels.cpu.sparse.math import check_product
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import KernelBuffer, SimtKernel, Value
from toolkit.kernels.gpu.arrays.scatter import row_numbers, scatter_rows
from toolkit.kernels.gpu.images.crop import narrowed
from toolkit.kernels.gpu.operators.complex_numbers import conj, mul
from toolkit.kernels.gpu.primitives.copying import WORDS, part
from toolkit.kernels.gpu.primitives.element_types import ComplexNumber, Number, load, number_type, real
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.primitives.layout import ElementLayout
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array


@functools.cache
def _products(name: str, ids: str, index: str, adjoint_a: bool, adjoint_b: bool) -> SimtKernel:
    """For each number of a sparse matrix, it times a row of a dense one, and the row that that is added to.

    Products of half numbers are floats.
    """
    type = number_type(name)
    made = number_type("float32") if name == "float16" else type
    k = KernelBuilder(f"sparse_products_{name}", BLOCK)
    indices, values, b = k.buffer("indices", ids), k.buffer("values", type.memory), k.buffer("b", type.memory)
    products, rows = k.buffer("products", made.memory, written=True), k.buffer("rows", "i64", written=True)
    n, limit, inner = k.scalar("n", index), k.scalar("limit", "i64"), k.scalar("inner", "i64")
    width = Divisor.argument(k, "width", index)
    i = k.global_thread(index)

    def first(at: Value) -> Value:
        return k.mul(at, k.number(type.parts, at.type)) if type.parts > 1 else at

    def loaded(buffer: KernelBuffer, at: Value, conjugate: bool) -> Number:
        number = load(k, buffer, first(at), 0, type)
        return conj(k, number) if conjugate and isinstance(number, ComplexNumber) else number

    with k.when(k.compare("slt", i, n)):
        entry, column = coordinates(k, i, [width])
        place = k.mul(k.convert(entry, "i64"), k.number(2, "i64"))
        one = k.convert(k.load(indices, place), "i64")
        other = k.convert(k.load(indices, k.add(place, k.number(1, "i64"))), "i64")
        row, across = (other, one) if adjoint_a else (one, other)
        inside = k.both(k.compare("ult", row, limit), k.compare("ult", across, inner))
        product = [k.variable(k.number(0.0, made.register)) for _ in range(made.parts)]
        with k.when(inside):
            wide_column = k.convert(column, "i64")
            if adjoint_b:
                at = k.add(k.mul(wide_column, inner), across)
            else:
                at = k.add(k.mul(across, k.convert(width.size, "i64")), wide_column)
            left, right = loaded(values, k.convert(entry, "i64"), adjoint_a), loaded(b, at, adjoint_b)
            if isinstance(left, ComplexNumber) and isinstance(right, ComplexNumber):
                found: Sequence[Value] = mul(k, left, right)
            else:
                found = [k.mul(real(left), real(right))]
            for variable, part in zip(product, found, strict=True):
                variable.set(part)
        for part, variable in enumerate(product):
            k.store(products, k.add(first(i), k.number(part, index)), variable.get())
        with k.when(k.compare("eq", column, k.number(0, index))):
            k.store(rows, entry, k.select(inside, row, k.number(-1, "i64")))
    return k.finish()


@kernel(
    "SparseTensorDenseMatMul",
    types={"T": ["half", "float", "double", "complex64", "complex128"], "Tindices": ["int32", "int64"]},
    device="GPU",
    label="simt",
)
def sparse_dense_matmul(op: KernelNode) -> Compute:
    """A sparse matrix times a dense one, either as its adjoint. Sums are float32 of half numbers."""
    device = device_of(op.node)
    adjoint_a, adjoint_b = bool(op.attr("adjoint_a")), bool(op.attr("adjoint_b"))

    def compute(indices: GpuArray, values: GpuArray, shape: Array, b: GpuArray) -> GpuArray:
        rows, inner, columns = check_product(indices, values, shape, b, adjoint_a, adjoint_b)
        wide = np.dtype(np.float32) if b.dtype == np.float16 else b.dtype
        y = device.zeros((rows, columns), wide)
        count = values.size * columns
        if count and y.size:
            products, numbers = device.empty((values.size, columns), wide), device.empty((values.size,), np.int64)
            index = index_type(2 * count)
            form = _products(b.dtype.name, WORDS[indices.dtype.itemsize], index, adjoint_a, adjoint_b)
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
