"""Kernels of NULL devices: those of the CPU, which are given copies and whose results are copied.

Arguments that TensorFlow's registrations for an accelerator keep in host memory (shapes, axes, handles, 32-bit
integers of small ops) must come as host arrays, and all others as arrays of the device itself; anything else is a
mistake of placement, partitioning or of an executor, and is told as one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from toolkit.errors import InternalError
from toolkit.graph.device import DeviceSpec
from toolkit.graph.node import Node
from toolkit.kernels import registry
from toolkit.kernels.context import DEAD
from toolkit.kernels.facts import COPY_IN, COPY_OUT, stays_on_host
from toolkit.kernels.null.memory import NullArray, NullMemory, memory_of
from toolkit.kernels.registry import Compute, Kernel, KernelNode, Kind

NAME = "NULL"
_TENSORS = (np.ndarray, np.generic)


def _memory(node: Node) -> NullMemory:
    """Of the device that a node is on."""
    return memory_of(DeviceSpec.parse(node.device).device_index or 0)


class Boundary:
    """What crosses between host code and one node on a NULL device."""

    def __init__(self, node: Node):
        self.memory = _memory(node)
        self._name, self._op = node.name, node.op
        self._host_inputs = [stays_on_host(node, NAME, index, output=False) for index in range(len(node.inputs))]
        self._host_outputs = [stays_on_host(node, NAME, index, output=True) for index in range(node.num_outputs)]
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
            if isinstance(value, NullArray):
                if host:
                    raise self._misplaced(index, "in host memory", value)
                value = self.memory.copy_out(value)
            elif isinstance(value, _TENSORS) and not host and not self._from_variable[index]:
                raise self._misplaced(index, f"in {self.memory.name}", value)
            found.append(value)
        return found

    def made(self, result: Any) -> Any:
        """What a kernel returned, each output where it belongs."""
        if isinstance(result, tuple | list):
            return [self._output(index, value) for index, value in enumerate(cast("Sequence[Any]", result))]
        return self._output(0, result)

    def _output(self, index: int, value: Any) -> Any:
        host = index >= len(self._host_outputs) or self._host_outputs[index]
        return value if host or not isinstance(value, _TENSORS) else self.memory.copy_in(value)

    def _misplaced(self, index: int, wanted: str, value: Any) -> InternalError:
        there = value if isinstance(value, NullArray) else f"a host array {value.dtype}{list(value.shape)}"
        return InternalError(f"input {index} of {self._op} must be {wanted}; it is {there}", node=self._name)


def _through_copies(entry: Kernel) -> Callable[[KernelNode], Compute]:
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


@registry.kernel(COPY_OUT, COPY_IN, device=NAME)
def copy(op: KernelNode) -> Compute:
    memory, out = _memory(op.node), op.op == COPY_OUT

    def compute(value: Any) -> Any:
        if isinstance(value, NullArray):
            return memory.copy_out(value) if out else value
        return value if out else memory.copy_in(value)  # what is read of a reference variable is on the host already

    return compute


def _register() -> None:
    """All that the CPU has, by the same types."""
    for entry in registry.all_kernels("CPU"):
        if entry.priority == 0:
            registry.add(dataclasses.replace(entry, device_type=NAME, factory=_through_copies(entry)))


_register()
