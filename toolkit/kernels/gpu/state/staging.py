"""Staging areas and maps of tensors in a GPU's memory.

They are the CPU's, with tensors of the device in them. Tensors are put aside as copies: memory of what is staged may be
used again by the step that staged it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.kernels import facts, registry
from toolkit.kernels.context import Done, StepContext
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.device_memory import DeviceArray
from toolkit.kernels.gpu.registering import cpu_compute, is_on_host
from toolkit.kernels.registry import Compute, Factory, KernelNode, Kind

_PUTS = ("Stage", "MapStage", "OrderedMapStage")
_GETS = (
    "Unstage", "StagePeek", "MapUnstage", "MapUnstageNoKey", "MapPeek", "OrderedMapUnstage", "OrderedMapUnstageNoKey",
    "OrderedMapPeek",
)  # fmt: skip
_CLEARS = ("StageClear", "MapClear", "OrderedMapClear")


def _register(*ops: str, kind: Kind) -> Callable[[Factory], Factory]:
    return registry.kernel(*ops, device="GPU", kind=kind)


@_register(*_PUTS, kind=Kind.ASYNC)
def put(op: KernelNode) -> Compute:
    compute = cpu_compute(op)
    if is_on_host(op.node):
        return compute
    device = device_of(op.node)

    def copying(step: StepContext, done: Done, *values: Any) -> None:
        compute(step, done, *(device.copied(value) if isinstance(value, GpuArray) else value for value in values))

    return copying


@_register(*_GETS, kind=Kind.ASYNC)
def get(op: KernelNode) -> Compute:
    """What was put aside, brought here from wherever it is."""
    compute = cpu_compute(op)
    if is_on_host(op.node):
        return compute
    device = device_of(op.node)
    on_host = [facts.stays_on_host(op.node, "GPU", i, output=True) for i in range(len(op.output_types))]

    def bring(value: Any, is_host: bool) -> Any:
        if is_host:
            return value.memory.copy_out(value) if isinstance(value, DeviceArray) else value
        if not isinstance(value, GpuArray):
            return device.to_device(value)
        return value if value.device.index == device.index else device.copied(value)

    def bringing(step: StepContext, done: Done, *values: Any) -> None:
        def finish(result: Any) -> None:
            try:
                if not isinstance(result, Exception):
                    result = [bring(value, is_host) for value, is_host in zip(result, on_host, strict=True)]
            except Exception as error:  # whoever put something aside runs this, and has nothing to do with it
                result = error
            done(result)

        compute(step, finish, *values)

    return bringing


@_register(*_CLEARS, kind=Kind.STATEFUL)
def clear(op: KernelNode) -> Compute:
    return cpu_compute(op)
