"""Programs on devices with a memory of their own: what comes in is copied there, what is fetched is copied back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from toolkit.compiler.program import Program, Role
from toolkit.kernels.device_types import DeviceMemory
from toolkit.kernels.facts import stays_on_host
from toolkit.runtime.step import Step

_TENSORS = (np.ndarray, np.generic)


class Inner(Protocol):
    """An executor of the device's kernels."""

    def run(self, arguments: Sequence[Any], running: Step) -> list[Any]: ...


class DeviceExecutor:
    """Runs a program node by node with the kernels of its device.

    Args:
        inner: the executor, which hands values from kernel to kernel and looks into none but those that TensorFlow
            keeps in host memory.
    """

    def __init__(self, program: Program, inner: Inner, memory: DeviceMemory):
        self._inner = inner
        self._memory = memory
        self._moved = [
            step.index
            for step in program.steps
            if step.role is Role.ARG and not stays_on_host(step.node, program.device_type, 0, output=True)
        ]

    def run(self, arguments: Sequence[Any], running: Step) -> list[Any]:
        """Execute once: host values in, host values out."""
        memory, given = self._memory, list(arguments)
        for index in self._moved:
            if isinstance(given[index], _TENSORS):
                given[index] = memory.copy_in(given[index])
        results = self._inner.run(given, running)
        memory.synchronize()
        return [memory.copy_out(value) if memory.owns(value) else value for value in results]
