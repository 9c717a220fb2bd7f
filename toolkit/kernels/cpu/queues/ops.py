"""The ops that use queues. Those that may have to wait are asynchronous: no thread is held meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph.dtypes import DType
from toolkit.kernels.context import Done, StepContext
from toolkit.kernels.cpu.common import require, require_scalar
from toolkit.kernels.queues.base import QueueResource
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources.handles import lookup
from toolkit.kernels.types import Array


def _no_timeout(op: KernelNode) -> None:
    if op.attr("timeout_ms", -1) != -1:
        raise InvalidArgumentError("Timeout not supported yet.")


def _check_signature(have: Sequence[DType], queue: QueueResource, what: str) -> None:
    if list(have) != queue.types:
        raise InvalidArgumentError(
            f"Signature mismatch: the {what} are {[str(t) for t in have]}, "
            f"the components of queue '{queue.name}' {[str(t) for t in queue.types]}"
        )


@kernel("QueueEnqueue", "QueueEnqueueV2", kind=Kind.ASYNC)
def enqueue(op: KernelNode) -> Compute:
    _no_timeout(op)
    types = op.input_types[1:]

    def compute(step: StepContext, done: Done, handle: Any, *values: Any) -> None:
        queue = lookup(step, handle, QueueResource)
        _check_signature(types, queue, "inputs")
        queue.enqueue(values, step.cancellation, done)

    return compute


@kernel("QueueEnqueueMany", "QueueEnqueueManyV2", kind=Kind.ASYNC)
def enqueue_many(op: KernelNode) -> Compute:
    _no_timeout(op)
    types = op.input_types[1:]

    def compute(step: StepContext, done: Done, handle: Any, *values: Any) -> None:
        queue = lookup(step, handle, QueueResource)
        _check_signature(types, queue, "inputs")
        queue.enqueue_many(values, step.cancellation, done)

    return compute


@kernel("QueueDequeue", "QueueDequeueV2", kind=Kind.ASYNC)
def dequeue(op: KernelNode) -> Compute:
    _no_timeout(op)
    types = op.output_types

    def compute(step: StepContext, done: Done, handle: Any) -> None:
        queue = lookup(step, handle, QueueResource)
        _check_signature(types, queue, "outputs")
        queue.dequeue(step.cancellation, done)

    return compute


@kernel("QueueDequeueMany", "QueueDequeueManyV2", "QueueDequeueUpTo", "QueueDequeueUpToV2", kind=Kind.ASYNC)
def dequeue_many(op: KernelNode) -> Compute:
    _no_timeout(op)
    types = op.output_types
    up_to = "UpTo" in op.op
    name = "DequeueUpToOp" if up_to else "DequeueManyOp"

    def compute(step: StepContext, done: Done, handle: Any, count: Array) -> None:
        queue = lookup(step, handle, QueueResource)
        require_scalar(count, "n")
        require(int(count) >= 0, f"{name} requested {int(count)} < 0 elements")
        _check_signature(types, queue, "outputs")
        queue.dequeue_many(int(count), up_to, step.cancellation, done)

    return compute


@kernel("QueueClose", "QueueCloseV2", kind=Kind.ASYNC)
def close(op: KernelNode) -> Compute:
    cancel: bool = op.attr("cancel_pending_enqueues")

    def compute(step: StepContext, done: Done, handle: Any) -> None:
        lookup(step, handle, QueueResource).close(cancel, done)

    return compute


@kernel("QueueSize", "QueueSizeV2", kind=Kind.STATEFUL)
def size(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any) -> Array:
        return np.int32(lookup(step, handle, QueueResource).size())

    return compute


@kernel("QueueIsClosed", "QueueIsClosedV2", kind=Kind.STATEFUL)
def is_closed(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any) -> Array:
        return np.bool_(lookup(step, handle, QueueResource).is_closed())

    return compute
