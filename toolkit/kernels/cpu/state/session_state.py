"""Tensors that stay in the session between steps, by handle (tf.get_session_handle)."""

from __future__ import annotations

import itertools
from typing import Any, cast

import numpy as np

from toolkit.errors import InvalidArgumentError, NotFoundError
from toolkit.graph.device import LOCAL_JOB, DeviceSpec
from toolkit.graph.dtypes import DType
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import require_scalar
from toolkit.kernels.device_memory import DeviceArray
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources.handles import ResourceHandle
from toolkit.kernels.types import Array

#: where the session keeps them
CONTAINER = "_session_tensors"
_CPU = DeviceSpec(LOCAL_JOB, 0, 0, "CPU", 0)
_numbers = itertools.count()


class KeptTensor:
    """A tensor of the session."""

    def __init__(self, value: Any, dtype: DType):
        self.value, self.dtype = value, dtype


def keep(op: KernelNode, step: StepContext, value: Any) -> str:
    """Keep a tensor under a new name, which begins with the node's and ends with the device.

    Args:
        value: of the keeper's own, where it is no array of NumPy.
    """
    asked = DeviceSpec.parse(op.device).device_type
    device = str(_CPU) if not op.device or asked not in (None, op.device_type or asked) else op.device
    name = f"{op.name};{next(_numbers)};{device}"
    own = cast("Array", value).copy() if isinstance(value, np.ndarray) else value
    step.resources.create(CONTAINER, name, KeptTensor(own, op.attr("T")))
    return name


@kernel("GetSessionHandle", kind=Kind.STATEFUL)
def get_handle(op: KernelNode) -> Compute:
    def compute(step: StepContext, value: Any) -> Array:
        return np.array(keep(op, step, value).encode(), object)

    return compute


@kernel("GetSessionHandleV2", kind=Kind.STATEFUL)
def get_resource_handle(op: KernelNode) -> Compute:
    def compute(step: StepContext, value: Any) -> ResourceHandle:
        return ResourceHandle(CONTAINER, keep(op, step, value), KeptTensor.__name__)

    return compute


@kernel("GetSessionTensor", kind=Kind.STATEFUL)
def get_tensor(op: KernelNode) -> Compute:
    dtype: DType = op.attr("dtype")

    def compute(step: StepContext, handle: Array) -> Any:
        found = kept_tensor(step, handle, dtype)
        return found.memory.copy_out(found) if isinstance(found, DeviceArray) else found

    return compute


def kept_tensor(step: StepContext, handle: Array, dtype: DType) -> Any:
    """The tensor of a handle, where it is.

    Raises:
        NotFoundError: there is none, or no longer.
        InvalidArgumentError: it has another type.
    """
    require_scalar(handle, "handle")
    name = handle[()].decode()
    try:
        kept = step.resources.get(CONTAINER, name, KeptTensor)
    except NotFoundError:
        raise NotFoundError(f"the session keeps no tensor of the handle '{name}'; was it deleted?") from None
    if kept.dtype != dtype:
        raise InvalidArgumentError(f"the tensor of the handle '{name}' has type {kept.dtype}, not {dtype}")
    return kept.value


@kernel("DeleteSessionTensor", kind=Kind.STATEFUL)
def delete_tensor(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Array) -> None:
        require_scalar(handle, "handle")
        name = handle[()].decode()
        try:
            step.resources.delete(CONTAINER, name)
        except NotFoundError:
            raise NotFoundError(f"the session keeps no tensor of the handle '{name}'; was it deleted before?") from None

    return compute
