"""Tensors of devices for probes that look into them: they are copied to host memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.graph.device import DeviceSpec
from toolkit.kernels import device_types
from toolkit.kernels.device_memory import DeviceArray


def on_host(values: Sequence[Any], device: str) -> Sequence[Any]:
    """The values, tensors in the memory of the device copied.

    Args:
        device: the name of the one that made or took them.
    """
    if not any(isinstance(value, DeviceArray) for value in values):
        return values
    spec = DeviceSpec.parse(device)
    memory = device_types.memory(spec.device_type or "CPU", spec.device_index or 0)
    if memory is None:
        return values
    return [memory.copy_out(value) if memory.owns(value) else value for value in values]
