"""Programs on devices with a memory of their own: what comes in is copied there, what is fetched is copied back."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from toolkit.compiler.backends.base import HostSide
from toolkit.compiler.program import Program
from toolkit.compiler.steps import Role
from toolkit.errors import ResourceExhaustedError
from toolkit.graph.device import DeviceSpec
from toolkit.kernels.device_memory import CopiesLater, DeviceMemory
from toolkit.kernels.facts import stays_on_host
from toolkit.kernels.resources.tensor_space import HOST, Composite, space_at
from toolkit.runtime.executors.planned import CompiledExecutor
from toolkit.runtime.steps.step import DeviceStep

if TYPE_CHECKING:
    from toolkit.runtime.executors.choice import Executor

_TENSORS = (np.ndarray, np.generic)
#: the name of the node that stands for what is fed, around the name of the node that it is fed for
_FED = re.compile(r"^_arg_(.*)_\d+_\d+$")


class DeviceExecutor:
    """Runs a program with the kernels of its device.

    Arguments may be in host memory or in the device's; each is copied where its `_Arg` has it.

    Args:
        inner: the executor, which hands values from kernel to kernel and looks into none but those that TensorFlow
            keeps in host memory.
        to_host: results are wanted in host memory; else, but for texts, handles and references, in the device's.
    """

    def __init__(self, program: Program, inner: Executor, memory: DeviceMemory, *, to_host: bool = True):
        self._inner = inner
        self._memory = memory
        self._on_host: list[tuple[int, bool]] = []  # arguments, and whether they stay in host memory
        self._names: dict[int, str] = {}  # of the arguments' nodes
        self._moved: list[int] = []  # results that may be in the device's memory
        for step in program.steps:
            if step.role is Role.ARG:
                self._names[step.index] = step.node.name
                self._on_host.append((step.index, stays_on_host(step.node, program.device_type, 0, output=True)))
            elif step.role is Role.RETVAL and not (dtype := step.node.input_types[0]).is_ref and dtype.kind not in "sr":
                self._moved.append(step.index)
        self._to_host = to_host
        self._again: Callable[[Sequence[Any]], list[Any] | None] | None = None
        there = {index: not on_host for index, on_host in self._on_host}
        self._boundary = HostSide(there, tuple(self._moved)) if to_host else None
        spec = DeviceSpec.parse(program.device)
        self._space = space_at(program.device_type, spec.device_index or 0)
        self._later = memory if isinstance(memory, CopiesLater) else None

    def run_again(self, arguments: Sequence[Any]) -> list[Any] | None:
        """Execute once, if a recorded step fits these arguments: no kernel of it is called on the host, and nobody can
        stop it, so that there need be no `DeviceStep`. None where none fits, and nothing was done."""
        again = self._again
        return None if again is None else again(arguments)

    def run(self, arguments: Sequence[Any], running: DeviceStep) -> list[Any]:
        """Execute once."""
        if self._boundary is not None and isinstance(self._inner, CompiledExecutor):
            self._again = None
            found = self._inner.run_from_host(arguments, running, self._boundary)
            if found is not None:
                results, self._again = found
                return results
        results = self._inner.run(self._given(arguments), running)
        if self._to_host:
            self._fetch(results)
        else:
            for index in self._moved:
                results[index] = self._brought(results[index], to_host=False)
        return results

    def _fetch(self, results: list[Any]) -> None:
        """Bring all results to host memory: where the memory can, all copies are under way before one is waited for."""
        memory = self._memory
        there = [index for index in self._moved if memory.owns(results[index])]
        if self._later is not None and len(there) > 1:
            waits = [self._later.begin_copy_out(results[index]) for index in there]
            for index, wait in zip(there, waits, strict=True):
                results[index] = wait()
        else:
            for index in there:
                results[index] = memory.copy_out(results[index])
        memory.synchronize()  # a step is over when all that it asked for is done
        for index in self._moved:
            if isinstance(results[index], Composite):
                results[index] = results[index].on_host()

    def explain(self, arguments: Sequence[Any], running: DeviceStep) -> list[str]:
        """What it does for these arguments, in lines; nothing is run."""
        return self._inner.explain(self._given(arguments), running)

    def notes(self) -> list[str]:
        """What was left to kernels until now, and why, in lines."""
        return self._inner.notes()

    def _given(self, arguments: Sequence[Any]) -> list[Any]:
        given = list(arguments)
        for index, on_host in self._on_host:
            try:
                given[index] = self._brought(given[index], to_host=on_host)
            except ResourceExhaustedError as error:
                raise error.at(node=_FED.sub(r"\1", self._names[index])) from None
        return given

    def _brought(self, value: Any, *, to_host: bool) -> Any:
        """A tensor in the memory where it is wanted; whatever is none stays what it is."""
        if self._memory.owns(value):
            return self._memory.copy_out(value) if to_host else value
        if isinstance(value, Composite):
            if to_host:
                return value.on_host()
            is_there = value.space is self._space or self._space is HOST
            return value if is_there else value.on_host().moved(self._memory.copy_in, self._space)
        return value if to_host or not isinstance(value, _TENSORS) else self._memory.copy_in(value)
