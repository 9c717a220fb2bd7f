"""Comparisons and logic."""

from __future__ import annotations

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import check_broadcast, np, require, shape_text
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.elementwise.node import ElementwiseLaunches, number_kernel
from toolkit.kernels.gpu.math.functions import binary
from toolkit.kernels.registry import Compute, KernelNode


@number_kernel("Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr")
def compare(op: KernelNode) -> Compute:
    return binary(op)


@number_kernel("Equal", "NotEqual")
def equal(op: KernelNode) -> Compute:
    """Without `incompatible_shape_error`, operands that do not broadcast are simply unequal: one scalar."""
    launches, strict = ElementwiseLaunches.of(op), op.attr("incompatible_shape_error")
    unequal = op.op == "NotEqual"

    def compute(x: GpuArray, y: GpuArray) -> GpuArray:
        try:
            shape = x.shape if x.shape == y.shape else check_broadcast(x, y)
        except InvalidArgumentError:
            if strict:
                raise
            return launches.device.full((), np.dtype(bool), unequal)
        return launches.run(shape, x, y)

    return compute


@number_kernel("ApproximateEqual")
def approximate_equal(op: KernelNode) -> Compute:
    run = ElementwiseLaunches.of(op).run

    def compute(x: GpuArray, y: GpuArray) -> GpuArray:
        require(x.shape == y.shape, f"x and y must be of the same shape. {shape_text(x)} vs. {shape_text(y)}")
        return run(x.shape, x, y)

    return compute
