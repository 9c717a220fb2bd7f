"""The ops of conditional accumulators."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape
from toolkit.kernels.context import Done, StepContext
from toolkit.kernels.cpu.common import integer, require, require_scalar
from toolkit.kernels.queues.accumulators import Accumulator, DenseAccumulator, SparseAccumulator
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources.handles import ResourceHandle, lookup, resource_name, string_handle
from toolkit.kernels.types import Array


@kernel("ConditionalAccumulator", "ResourceConditionalAccumulator", "SparseConditionalAccumulator", kind=Kind.STATEFUL)
def make_accumulator(op: KernelNode) -> Compute:
    make = SparseAccumulator if op.op.startswith("Sparse") else DenseAccumulator
    dtype: DType = op.attr("dtype")
    shape: Shape = op.attr("shape")
    reduction = op.text("reduction_type")
    require(reduction in ("MEAN", "SUM"), f"reduction_type must be MEAN or SUM, not '{reduction}'")
    container, name = resource_name(op)
    is_resource = op.op.startswith("Resource")
    handle: Any = ResourceHandle(container, name, make.kind) if is_resource else string_handle(container, name)

    def compute(step: StepContext) -> Any:
        found = step.resources.get_or_create(
            container, name, Accumulator, lambda: make(name, dtype, shape, reduction == "MEAN")
        )
        if not isinstance(found, make) or found.dtype != dtype or found.shape != shape:
            raise InvalidArgumentError(
                f"Shared conditional accumulator '{name}' is a {found.kind} of {found.dtype} {found.shape}, "
                f"the node wants a {make.kind} of {dtype} {shape}"
            )
        return handle

    return compute


def _find(step: StepContext, handle: Any, kind: type[Accumulator], dtype: DType) -> Any:
    found = lookup(step, handle, Accumulator)
    if not isinstance(found, kind):
        raise InvalidArgumentError(f"'{found.name}' is a {found.kind}, not a {kind.kind}")
    if found.dtype != dtype:
        raise InvalidArgumentError(f"Signature mismatch: '{found.name}' holds {found.dtype}, the gradient is {dtype}")
    return found


@kernel("AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient", kind=Kind.STATEFUL)
def apply_gradient(op: KernelNode) -> Compute:
    dtype: DType = op.attr("dtype")

    def compute(step: StepContext, handle: Any, local_step: Array, gradient: Array) -> None:
        accumulator: DenseAccumulator = _find(step, handle, DenseAccumulator, dtype)
        require_scalar(local_step, "Argument local_step")
        accumulator.apply(integer(local_step, "local_step"), gradient)

    return compute


@kernel("SparseAccumulatorApplyGradient", kind=Kind.STATEFUL)
def sparse_apply_gradient(op: KernelNode) -> Compute:
    dtype: DType = op.attr("dtype")
    known: bool = op.attr("has_known_shape")

    def compute(step: StepContext, handle: Any, local_step: Array, indices: Array, values: Array, shape: Array) -> None:
        accumulator: SparseAccumulator = _find(step, handle, SparseAccumulator, dtype)
        require_scalar(local_step, "Argument local_step")
        accumulator.apply(integer(local_step, "local_step"), indices, values, shape, known)

    return compute


@kernel("AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient", "SparseAccumulatorTakeGradient", kind=Kind.ASYNC)
def take_gradient(op: KernelNode) -> Compute:
    dtype: DType = op.attr("dtype")
    kind = SparseAccumulator if op.op.startswith("Sparse") else DenseAccumulator

    def compute(step: StepContext, done: Done, handle: Any, required: Array) -> None:
        accumulator: Accumulator = _find(step, handle, kind, dtype)
        require_scalar(required, "Argument num_required")
        accumulator.take(integer(required, "required"), step.cancellation, done)

    return compute


@kernel("AccumulatorNumAccumulated", "ResourceAccumulatorNumAccumulated", kind=Kind.STATEFUL)
def num_accumulated(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any) -> Array:
        return np.int32(lookup(step, handle, Accumulator).num_accumulated())

    return compute


@kernel("AccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep", kind=Kind.STATEFUL)
def set_global_step(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any, new_step: Array) -> None:
        require_scalar(new_step, "Argument new_global_step")
        lookup(step, handle, Accumulator).set_global_step(integer(new_step, "new_step"))

    return compute
