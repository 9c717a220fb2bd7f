"""Tensors that stay in the session between steps, in the memory of a GPU (tf.get_session_handle)."""

from __future__ import annotations

import numpy as np

from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.state.session_state import CONTAINER, KeptTensor, keep, kept_tensor
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.elementwise.node import number_kernel
from toolkit.kernels.registry import Compute, KernelNode, Kind
from toolkit.kernels.resources.handles import ResourceHandle
from toolkit.kernels.types import Array


@number_kernel("GetSessionHandle", kind=Kind.STATEFUL)
def get_handle(op: KernelNode) -> Compute:
    """What is kept is a copy: the step that has made it uses its memory again."""
    device = device_of(op.node)

    def compute(step: StepContext, value: GpuArray) -> Array:
        return np.array(keep(op, step, device.copied(value)).encode(), object)

    return compute


@number_kernel("GetSessionHandleV2", kind=Kind.STATEFUL)
def get_resource_handle(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(step: StepContext, value: GpuArray) -> ResourceHandle:
        return ResourceHandle(CONTAINER, keep(op, step, device.copied(value)), KeptTensor.__name__)

    return compute


@number_kernel("GetSessionTensor", kind=Kind.STATEFUL)
def get_tensor(op: KernelNode) -> Compute:
    """The tensor, brought here from wherever it is."""
    device, dtype = device_of(op.node), op.attr("dtype")

    def compute(step: StepContext, handle: Array) -> GpuArray:
        found = kept_tensor(step, handle, dtype)
        if not isinstance(found, GpuArray):
            return device.to_device(found)
        return found if found.device.index == device.index else device.copied(found)

    return compute
