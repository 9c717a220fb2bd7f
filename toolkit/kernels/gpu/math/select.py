"""Choices between two tensors."""

from __future__ import annotations

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.elementwise.node import ElementwiseLaunches, number_kernel
from toolkit.kernels.registry import Compute, KernelNode


@number_kernel("Select")
def select(op: KernelNode) -> Compute:
    """The V1 form: `condition` is a scalar, a vector that chooses rows, or of the branches' shape."""
    run = ElementwiseLaunches.of(op).run

    def compute(condition: GpuArray, x: GpuArray, y: GpuArray) -> GpuArray:
        if x.shape != y.shape:
            raise InvalidArgumentError(
                f"'then' and 'else' must have the same size, but received: {shape_text(x)} vs. {shape_text(y)}"
            )
        chosen = condition.shape
        if condition.ndim == 1 and x.ndim >= 1 and chosen != x.shape:
            require(
                chosen[0] == x.shape[0],
                f"Number of batches of 'then' must match size of 'cond', but saw: {x.shape[0]} vs. {chosen[0]}",
            )
            chosen = (*chosen, *(1,) * (x.ndim - 1))
        elif condition.ndim and chosen != x.shape:
            raise InvalidArgumentError(
                f"'then' and 'else' must have the same size as 'cond': {shape_text(x)} vs. {shape_text(condition)}"
            )
        return run(x.shape, condition, x, y, shapes=(chosen, x.shape, y.shape))

    return compute


@number_kernel("SelectV2")
def select_v2(op: KernelNode) -> Compute:
    run = ElementwiseLaunches.of(op).run

    def compute(condition: GpuArray, x: GpuArray, y: GpuArray) -> GpuArray:
        try:
            shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
        except ValueError:
            raise InvalidArgumentError(
                f"condition {shape_text(condition)}, then {shape_text(x)}, and else {shape_text(y)} must be "
                "broadcastable"
            ) from None
        return run(shape, condition, x, y)

    return compute
