"""Factors, determinants, inverses and linear systems of small matrices; large ones are the CPU's.

What is found not to be invertible is an error, so that the host waits for these ops, as TensorFlow's does.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels import registry
from toolkit.kernels.boundary import through_copies
from toolkit.kernels.cpu.linalg.decompositions import check_square
from toolkit.kernels.cpu.linalg.solve import check_batches, check_rows_of, check_same_batch
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.arrays.gather import gathered
from toolkit.kernels.gpu.linalg import factor_kernels
from toolkit.kernels.gpu.primitives.copying import copy_part, part
from toolkit.kernels.gpu.primitives.indexing import blocks_for
from toolkit.kernels.gpu.primitives.layout import ElementLayout, layout_of, stand_in
from toolkit.kernels.registry import COMPLEX, Compute, Factory, KernelNode

_TYPES = {"T": frozenset({dtypes.float32, dtypes.float64}) | COMPLEX}


def _small_matrices(*ops: str) -> Callable[[Factory], Factory]:
    """Register a factory; matrices of too many rows are computed by the CPU's kernel, through copies."""

    def register(factory: Factory) -> Factory:
        def made(op: KernelNode) -> Compute:
            small = factory(op)
            large = functools.cache(lambda: through_copies(registry.get(op.node, "CPU", defining=True))(op))

            def compute(x: GpuArray, *more: GpuArray) -> Any:
                is_large = x.ndim > 1 and x.shape[-1] > factor_kernels.MOST_ROWS
                return (large() if is_large else small)(x, *more)

            return compute

        made.__module__ = factory.__module__
        registry.kernel(*ops, types=_TYPES, device="GPU", label="simt")(made)
        return factory

    return register


def _transposed(device: CudaDevice, x: GpuArray) -> GpuArray:
    base = stand_in(x.shape, x.dtype)
    return part(device, x, layout_of(np.swapaxes(base, -1, -2), base))


def _conjugated(device: CudaDevice, x: GpuArray) -> GpuArray:
    """The conjugates; of real numbers themselves."""
    if x.dtype.kind != "c" or not x.size:
        return x
    made = device.copied(x)
    device.launch(factor_kernels.conjugate(x.dtype.name), blocks_for(made.size), made, made.size)
    return made


def _adjoint(device: CudaDevice, x: GpuArray) -> GpuArray:
    """The conjugate transposes of matrices."""
    return _conjugated(device, _transposed(device, x))


def _factored(device: CudaDevice, x: GpuArray) -> tuple[GpuArray, GpuArray, GpuArray]:
    """L and U in one matrix with rows in order, the order of rows, and `state`; see `factor_kernels.lu`."""
    n = x.shape[-1]
    batch = math.prod(x.shape[:-2])
    work, order = device.copied(x), device.empty((batch, n), np.int32)
    state = device.empty((batch, 2), np.int32)
    device.launch(factor_kernels.lu(x.dtype.name), batch, work, order, state, n)
    return gathered(device, work, order, x.shape, (batch, 1, n, n, n)), order, state


def _require_inverse(device: CudaDevice, state: GpuArray, message: str) -> None:
    if device.to_host(state)[:, 0].any():
        raise InvalidArgumentError(message)


def _solved(device: CudaDevice, matrix: GpuArray, rhs: GpuArray, message: str) -> GpuArray:
    """x of matrix x = rhs; one batch shape."""
    if not rhs.size or not matrix.size:
        return device.zeros(rhs.shape, rhs.dtype)
    n, m = rhs.shape[-2:]
    batch, type = math.prod(rhs.shape[:-2]), rhs.dtype.name
    factors, order, state = _factored(device, matrix)
    _require_inverse(device, state, message)
    y = gathered(device, rhs, order, rhs.shape, (batch, 1, n, m, n))
    columns = _transposed(device, factors)
    device.launch(factor_kernels.substitute(type, True, True), batch * m, columns, y, n, m)
    device.launch(factor_kernels.substitute(type, False, False), batch * m, columns, y, n, m)
    return y


@_small_matrices("MatrixSolve")
def matrix_solve(op: KernelNode) -> Compute:
    device, is_adjoint = device_of(op.node), bool(op.attr("adjoint"))

    def compute(matrix: GpuArray, rhs: GpuArray) -> GpuArray:
        check_square(matrix)
        check_rows_of(matrix, rhs)
        check_same_batch(matrix, rhs)
        left = _adjoint(device, matrix) if is_adjoint else matrix
        return _solved(device, left, rhs, "Input matrix is not invertible.")

    return compute


@_small_matrices("MatrixInverse")
def matrix_inverse(op: KernelNode) -> Compute:
    device, is_adjoint = device_of(op.node), bool(op.attr("adjoint"))

    def compute(x: GpuArray) -> GpuArray:
        check_square(x)
        n, batch = x.shape[-1], math.prod(x.shape[:-2])
        identity = device.zeros(x.shape, x.dtype)
        ones = device.full((n,), x.dtype, 1)
        diagonal = ElementLayout((batch, n), (n * n, n + 1))
        copy_part(device, ones, ElementLayout((batch, n), (0, 1)), identity, diagonal)
        left = _adjoint(device, x) if is_adjoint else x
        return _solved(device, left, identity, "Input is not invertible.")

    return compute


@_small_matrices("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def matrix_triangular_solve(op: KernelNode) -> Compute:
    """Only one triangle is read; batch axes broadcast."""
    device = device_of(op.node)
    is_lower, is_adjoint = bool(op.attr("lower")), bool(op.attr("adjoint"))

    def compute(matrix: GpuArray, rhs: GpuArray) -> GpuArray:
        check_square(matrix)
        check_rows_of(matrix, rhs)
        lead = check_batches(matrix, rhs)
        n, m = rhs.shape[-2:]
        y = device.copied(_spread(device, rhs, lead))
        if not y.size:
            return y
        left = _spread(device, _conjugated(device, matrix) if is_adjoint else _transposed(device, matrix), lead)
        kernel = factor_kernels.substitute(y.dtype.name, is_lower != is_adjoint, False)
        device.launch(kernel, y.size // n, left, y, n, m)
        return y

    return compute


def _spread(device: CudaDevice, x: GpuArray, lead: tuple[int, ...]) -> GpuArray:
    """Matrices for every place of a batch."""
    base = stand_in(x.shape, x.dtype)
    return part(device, x, layout_of(np.broadcast_to(base, (*lead, *x.shape[-2:])), base))


@_small_matrices("Lu")
def lu(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.output_types[1].numpy

    def compute(x: GpuArray) -> list[GpuArray]:
        check_square(x)
        if not x.size:
            return [x, device.empty(x.shape[:-1], dtype)]
        factors, order, state = _factored(device, x)
        _require_inverse(device, state, "Input is not invertible.")
        if dtype != np.int32:
            order = device.to_device(device.to_host(order).astype(dtype))
        return [factors, order.reshaped(x.shape[:-1])]

    return compute


@_small_matrices("MatrixDeterminant", "LogMatrixDeterminant")
def matrix_determinant(op: KernelNode) -> Compute:
    """(sign, log |det|), or the determinant; that of a matrix without numbers is 1."""
    device, is_log = device_of(op.node), op.op == "LogMatrixDeterminant"

    def compute(x: GpuArray) -> Any:
        check_square(x)
        lead, n = x.shape[:-2], x.shape[-1]
        batch = math.prod(lead)
        if not n:
            made = [device.full(lead, x.dtype, number) for number in (1, 0)]
            return made if is_log else made[0]
        made = [device.empty(lead, x.dtype) for _ in range(1 + is_log)]
        if batch:
            factors, _, state = _factored(device, x)
            kernel = factor_kernels.determinants(x.dtype.name, is_log)
            device.launch(kernel, blocks_for(batch), factors, state, *made, n, batch)
        return made if is_log else made[0]

    return compute


@_small_matrices("Cholesky")
def cholesky(op: KernelNode) -> Compute:
    """The lower factor; that of a matrix which is not positive definite is NaN."""
    device = device_of(op.node)

    def compute(x: GpuArray) -> GpuArray:
        check_square(x)
        if not x.size:
            return x
        n, batch, type = x.shape[-1], math.prod(x.shape[:-2]), x.dtype.name
        y, bad = device.empty(x.shape, x.dtype), device.empty((batch,), np.int32)
        device.launch(factor_kernels.cholesky(type), batch, device.copied(x), y, bad, n)
        device.launch(factor_kernels.lower_or_nan(type), blocks_for(y.size), y, bad, n, y.size)
        return y

    return compute
