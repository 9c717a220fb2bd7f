"""The ops of staging areas and staging maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.kernels.context import Done, StepContext
from toolkit.kernels.cpu.common import integer, require_scalar, require_vector, to_ints
from toolkit.kernels.device_memory import DeviceArray
from toolkit.kernels.queues.staging import StagingArea, StagingMap
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources.handles import resource_name
from toolkit.kernels.types import Array


def _area(op: KernelNode) -> Callable[[StepContext], StagingArea]:
    container, name = resource_name(op)
    capacity, limit = op.attr("capacity"), op.attr("memory_limit")

    def find(step: StepContext) -> StagingArea:
        return step.resources.get_or_create(container, name, StagingArea, lambda: StagingArea(capacity, limit))

    return find


def _map(op: KernelNode) -> Callable[[StepContext], StagingMap]:
    container, name = resource_name(op)
    capacity, limit, count = op.attr("capacity"), op.attr("memory_limit"), len(op.attr("dtypes"))
    ordered = op.op.startswith("Ordered")

    def find(step: StepContext) -> StagingMap:
        return step.resources.get_or_create(
            container, name, StagingMap, lambda: StagingMap(capacity, limit, count, ordered)
        )

    return find


def _to_host(op: KernelNode, done: Done) -> Done:
    """What hands a node of a CPU what was put aside, in host memory: a device may have put it there."""
    if op.device_type not in ("", "CPU"):
        return done  # whose kernels bring it where they want it

    def finish(result: Any) -> None:
        try:
            if not isinstance(result, Exception):
                result = [each.memory.copy_out(each) if isinstance(each, DeviceArray) else each for each in result]
        except Exception as error:  # whoever put something aside runs this, and has nothing to do with it
            result = error
        done(result)

    return finish


@kernel("Stage", kind=Kind.ASYNC)
def stage(op: KernelNode) -> Compute:
    area = _area(op)

    def compute(step: StepContext, done: Done, *values: Any) -> None:
        area(step).put(values, step.cancellation, done)

    return compute


@kernel("Unstage", kind=Kind.ASYNC)
def unstage(op: KernelNode) -> Compute:
    area = _area(op)

    def compute(step: StepContext, done: Done) -> None:
        area(step).get(step.cancellation, _to_host(op, done))

    return compute


@kernel("StagePeek", kind=Kind.ASYNC)
def stage_peek(op: KernelNode) -> Compute:
    area = _area(op)

    def compute(step: StepContext, done: Done, index: Array) -> None:
        require_scalar(index, "index")
        area(step).peek(integer(index, "index"), step.cancellation, _to_host(op, done))

    return compute


@kernel("StageSize", kind=Kind.STATEFUL)
def stage_size(op: KernelNode) -> Compute:
    area = _area(op)

    def compute(step: StepContext) -> Array:
        return np.int32(area(step).size())

    return compute


@kernel("StageClear", kind=Kind.STATEFUL)
def stage_clear(op: KernelNode) -> Compute:
    area = _area(op)

    def compute(step: StepContext) -> None:
        area(step).clear()

    return compute


@kernel("MapStage", "OrderedMapStage", kind=Kind.ASYNC)
def map_stage(op: KernelNode) -> Compute:
    find = _map(op)

    def compute(step: StepContext, done: Done, key: Array, indices: Array, *values: Any) -> None:
        require_scalar(key, "key")
        require_vector(indices, "indices")
        find(step).put(integer(key, "key"), to_ints(indices), values, step.cancellation, done)

    return compute


@kernel("MapUnstage", "OrderedMapUnstage", "MapPeek", "OrderedMapPeek", kind=Kind.ASYNC)
def map_unstage(op: KernelNode) -> Compute:
    find = _map(op)
    is_peek = op.op.endswith("Peek")

    def compute(step: StepContext, done: Done, key: Array, indices: Array) -> None:
        require_scalar(key, "key")
        require_vector(indices, "indices")
        found = find(step)
        take = found.peek if is_peek else found.get
        take(integer(key, "key"), to_ints(indices), step.cancellation, _to_host(op, done))

    return compute


@kernel("MapUnstageNoKey", "OrderedMapUnstageNoKey", kind=Kind.ASYNC)
def map_unstage_no_key(op: KernelNode) -> Compute:
    find = _map(op)

    def compute(step: StepContext, done: Done, indices: Array) -> None:
        require_vector(indices, "indices")

        deliver = _to_host(op, done)

        def finish(result: Any) -> None:
            deliver(result if isinstance(result, Exception) else [np.int64(result[0]), *result[1]])

        find(step).pop(to_ints(indices), step.cancellation, finish)

    return compute


@kernel("MapSize", "OrderedMapSize", "MapIncompleteSize", "OrderedMapIncompleteSize", kind=Kind.STATEFUL)
def map_size(op: KernelNode) -> Compute:
    find = _map(op)
    incomplete = "Incomplete" in op.op

    def compute(step: StepContext) -> Array:
        found = find(step)
        return np.int32(found.incomplete_size() if incomplete else found.size())

    return compute


@kernel("MapClear", "OrderedMapClear", kind=Kind.STATEFUL)
def map_clear(op: KernelNode) -> Compute:
    find = _map(op)

    def compute(step: StepContext) -> None:
        find(step).clear()

    return compute
