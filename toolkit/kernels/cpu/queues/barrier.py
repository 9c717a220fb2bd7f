"""The ops of barriers."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph.dtypes import DType
from toolkit.kernels.context import Done, StepContext
from toolkit.kernels.cpu.common import require, require_scalar, require_vector
from toolkit.kernels.queues.barrier import Barrier
from toolkit.kernels.queues.elements import whole_shapes
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources.handles import lookup, resource_name, string_handle
from toolkit.kernels.types import Array


@kernel("Barrier", kind=Kind.STATEFUL)
def make_barrier(op: KernelNode) -> Compute:
    types: list[DType] = op.attr("component_types")
    shapes = whole_shapes(op.attr("shapes"))
    require(
        len(shapes) == len(types),
        f"All of the component shapes must be specified: {len(types)} types, {len(shapes)} shapes",
    )
    for shape in shapes:
        require(shape.is_fully_defined, f"a barrier cannot hold components of shape {shape}; sizes must be known")
    container, name = resource_name(op)
    handle = string_handle(container, name)

    def compute(step: StepContext) -> Any:
        barrier = step.resources.get_or_create(container, name, Barrier, lambda: Barrier(name, types, shapes))
        if barrier.types != types or barrier.shapes != shapes:
            raise InvalidArgumentError(f"Shared barrier '{name}' has other component types or shapes")
        return handle

    return compute


@kernel("BarrierInsertMany", kind=Kind.ASYNC)
def insert_many(op: KernelNode) -> Compute:
    component: int = op.attr("component_index")
    dtype = op.attr("T")

    def compute(step: StepContext, done: Done, handle: Any, keys: Array, values: Array) -> None:
        barrier = lookup(step, handle, Barrier)
        require_vector(keys, "keys")
        if component < len(barrier.types) and barrier.types[component] != dtype:
            raise InvalidArgumentError(
                f"Signature mismatch: component {component} of barrier '{barrier.name}' is "
                f"{barrier.types[component]}, the values are {dtype}"
            )
        barrier.insert_many(component, keys, values, step.cancellation, done)

    return compute


@kernel("BarrierTakeMany", kind=Kind.ASYNC)
def take_many(op: KernelNode) -> Compute:
    allow_small_batch: bool = op.attr("allow_small_batch")
    types: list[DType] = op.attr("component_types")
    require(op.attr("timeout_ms", -1) == -1, "Timeout not supported yet.")

    def compute(step: StepContext, done: Done, handle: Any, count: Array) -> None:
        barrier = lookup(step, handle, Barrier)
        require_scalar(count, "num_elements")
        require(int(count) >= 0, f"BarrierTakeMany requested {int(count)} < 0 elements")
        require(
            barrier.types == types,
            f"Signature mismatch: the outputs are {[str(t) for t in types]}, "
            f"the components of barrier '{barrier.name}' {[str(t) for t in barrier.types]}",
        )
        barrier.take_many(int(count), allow_small_batch, step.cancellation, done)

    return compute


@kernel("BarrierClose", kind=Kind.ASYNC)
def close(op: KernelNode) -> Compute:
    cancel: bool = op.attr("cancel_pending_enqueues")

    def compute(step: StepContext, done: Done, handle: Any) -> None:
        lookup(step, handle, Barrier).close(cancel, done)

    return compute


@kernel("BarrierReadySize", kind=Kind.STATEFUL)
def ready_size(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any) -> Array:
        return np.int32(lookup(step, handle, Barrier).ready_size())

    return compute


@kernel("BarrierIncompleteSize", kind=Kind.STATEFUL)
def incomplete_size(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any) -> Array:
        return np.int32(lookup(step, handle, Barrier).incomplete_size())

    return compute
