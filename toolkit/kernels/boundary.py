"""What crosses between host code and the kernels of a device with a memory of its own.

Arguments that TensorFlow's registrations for an accelerator keep in host memory (shapes, axes, handles, 32-bit
integers of small ops) must come as host arrays, and all others as arrays of the device itself; anything else is a
mistake of placement, partitioning or of an executor, and is told as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from toolkit.errors import InternalError
from toolkit.graph.device import DeviceSpec
from toolkit.graph.node import Node
from toolkit.kernels import device_types
from toolkit.kernels.context import DEAD
from toolkit.kernels.device_memory import DeviceMemory
from toolkit.kernels.facts import stays_on_host
from toolkit.kernels.registry import Compute, Kernel, KernelNode, Kind
from toolkit.kernels.resources.tensor_space import HOST, Composite, space_at
from toolkit.kernels.types import Array

_TENSORS = (np.ndarray, np.generic)


def memory_of(node: Node) -> DeviceMemory:
    """The memory of the device that a node is on, which has one."""
    spec = DeviceSpec.parse(node.device)
    found = device_types.memory(spec.device_type or "CPU", spec.device_index or 0)
    assert found is not None
    return found


class Boundary:
    """What crosses between host code and one node on a device."""

    def __init__(self, node: Node):
        spec = DeviceSpec.parse(node.device)
        kind = spec.device_type or "CPU"
        self.memory = memory_of(node)
        self._space = space_at(kind, spec.device_index or 0)
        self._name, self._op, self._device = node.name, node.op, node.device
        self._host_inputs = [stays_on_host(node, kind, index, output=False) for index in range(len(node.inputs))]
        self._host_outputs = [stays_on_host(node, kind, index, output=True) for index in range(node.num_outputs)]
        # what is read from a reference variable is the variable's own array, wherever that is
        self._from_variable = [
            source.node.output_types[source.index].is_ref or source.node.op == "Identity" for source in node.inputs
        ]

    def given(self, arguments: Sequence[Any]) -> list[Any]:
        """Arguments as the CPU's kernel takes them.

        Raises:
            InternalError: one is not where it should be.
        """
        found: list[Any] = []
        for index, value in enumerate(arguments):
            host = self._host_inputs[index] if index < len(self._host_inputs) else True
            if self.memory.owns(value):
                if host:
                    raise self._misplaced(index, "in host memory", repr(value))
                value = self.memory.copy_out(value)
            elif isinstance(value, Composite):
                value = value.on_host()
            elif isinstance(value, _TENSORS) and not host and not self._from_variable[index]:
                array = cast("Array", value)
                there = f"a host array {array.dtype}{list(array.shape)}"
                raise self._misplaced(index, f"in the memory of {self._device}", there)
            found.append(value)
        return found

    def made(self, result: Any) -> Any:
        """What a kernel returned, each output where it belongs."""
        if isinstance(result, tuple | list):
            return [self._output(index, value) for index, value in enumerate(cast("Sequence[Any]", result))]
        return self._output(0, result)

    def _output(self, index: int, value: Any) -> Any:
        if isinstance(value, Composite):
            return value if self._space is HOST else value.moved(self.memory.copy_in, self._space)
        host = index >= len(self._host_outputs) or self._host_outputs[index]
        return value if host or not isinstance(value, _TENSORS) else self.memory.copy_in(value)

    def _misplaced(self, index: int, wanted: str, there: str) -> InternalError:
        return InternalError(f"input {index} of {self._op} must be {wanted}; it is {there}", node=self._name)


def through_copies(entry: Kernel) -> Callable[[KernelNode], Compute]:
    """A factory for a device out of the CPU's: its kernels are given copies in host memory, its results are copied."""

    def factory(op: KernelNode) -> Compute:
        compute, boundary = entry.factory(op), Boundary(op.node)
        given, made = boundary.given, boundary.made

        def pure(*arguments: Any) -> Any:
            return made(compute(*given(arguments)))

        def stateful(step: Any, *arguments: Any) -> Any:
            return made(compute(step, *given(arguments)))

        def start(step: Any, done: Callable[[Any], None], *arguments: Any) -> None:
            def arrived(result: Any) -> None:
                done(result if result is DEAD or isinstance(result, BaseException) else made(result))

            compute(step, arrived, *given(arguments))

        return {Kind.PURE: pure, Kind.STATEFUL: stateful, Kind.ASYNC: start}[entry.kind]

    return factory
