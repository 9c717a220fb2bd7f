"""Steps as CUDA graphs: what a step launches is recorded once and from then on done by one call.

The first run of a plan is made launch by launch: kernels are compiled, libraries choose. The second one is recorded,
if all that it does besides launching is known to be the same each time. What is recorded holds addresses: arguments
are copied to where the first ones were, results from where they are made, and variables have to be changed in place.
A step for which that does not hold runs launch by launch, and `run --explain` says why.
"""

# numpy's arrays of an unknown type
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.compiler.backends.base import Entry
from toolkit.compiler.backends.kernels.function import KernelFunction
from toolkit.compiler.context import RunningStep
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.errors import GraphmillError
from toolkit.kernels.context import DEAD, RefVariable
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.libraries.precision import allow_tf32
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.recording import Recording
from toolkit.kernels.handles import ResourceHandle
from toolkit.kernels.registry import Kind
from toolkit.kernels.variables import Variable, find

#: a step is recorded again when its variables have other arrays, or its host arguments other values
_MOST_RECORDINGS = 8
#: bytes of an argument in host memory, whose value a recording depends on: axes and sizes, not data
_LARGEST_VALUE = 256
#: stateful ops whose kernels do nothing on the host that a replay would have to do
_REPLAYED = ("ReadVariableOp", "VarHandleOp", "Variable", "Assign", "Apply", "ResourceApply", "Scatter", "Resource",
             "SparseApply", "IsVariableInitialized", "VarIsInitializedOp", "TensorArray", "Stack", "Stateless",
             "_Fused")  # fmt: skip
_DRAWS = "seed2"
#: bytes that an H100 reads and writes (2.9 TB/s together) in the time that a launch takes Python (9 us): so much may be
#: copied into variables for each operation of a step that is recorded for it
_BYTES_A_LAUNCH = 13 << 20
_TENSORS = (GpuArray, np.ndarray, np.generic, RefVariable)


def refusal(block: Block) -> str | None:
    """Why a block cannot become a graph, as far as its operations tell; None where only a recording can show it."""
    for operation in block.walk():
        if not isinstance(operation, Call):
            continue
        node = operation.step.node
        if operation.step.kind is Kind.ASYNC:
            return f"{node.name} waits for others ({node.op})"
        if operation.step.kind is Kind.STATEFUL and (
            not node.op.startswith(_REPLAYED) or node.attr(_DRAWS, None) is not None
        ):
            return f"{node.name} does something on the host each time ({node.op})"
    return None


def cells_of(block: Block, running: RunningStep) -> list[RefVariable | Variable] | None:
    """The variables that a block names; None where it finds one only when it runs."""
    found: dict[int, RefVariable | Variable] = {}
    for operation in block.walk():
        for value in operation.inputs:
            constant = value.constant
            if isinstance(constant, ResourceHandle) and constant.kind in ("", "Var"):
                try:
                    cell = find(running, constant)
                except GraphmillError:
                    return None
                found[id(cell)] = cell
            elif isinstance(constant, RefVariable):
                found[id(constant)] = constant
    return list(found.values())


class _Cell:
    """A variable as it was when a step was recorded."""

    __slots__ = ("_array", "_block_users", "_users", "cell")

    def __init__(self, cell: RefVariable | Variable):
        self.cell = cell
        value = cell.value
        self._array = weakref.ref(value) if isinstance(value, GpuArray) else None
        self._users = sys.getrefcount(value)
        self._block_users = sys.getrefcount(value.block) if isinstance(value, GpuArray) else 0

    def is_same(self) -> bool:
        """Whether it still has its array."""
        return self._array is not None and self._array() is self.cell.value

    def holds(self) -> bool:
        """Whether it has, and nobody else holds it, who would see it change."""
        value = self.cell.value
        return (
            self._array is not None
            and self._array() is value
            and sys.getrefcount(value) <= self._users + 1  # and what the weak reference gave
            and sys.getrefcount(value.block) <= self._block_users
        )

    def restore(self) -> None:
        """Give it the array that it had."""
        if self._array is not None:
            self.cell.value = self._array()


class _Graph:
    """A recorded step.

    Attributes:
        inputs: by argument: where it has to be copied, a value on the host, or None where nothing is known of it.
        results: where they are made.
    """

    def __init__(self, recording: Recording, inputs: list[Any], cells: list[_Cell], results: list[Any]):
        self.recording = recording
        self.inputs = inputs
        self.cells = cells
        self.results = results

    def fits(self, arguments: Sequence[Any]) -> bool:
        """Whether a replay does what the step would do."""
        for there, given in zip(self.inputs, arguments, strict=True):
            if isinstance(there, np.ndarray) and not np.array_equal(there, given):
                return False
        return all(cell.holds() for cell in self.cells)

    def replay(self, device: CudaDevice, arguments: Sequence[Any]) -> list[Any]:
        """Do it all."""
        context, stream = device.context, device.compute
        for there, given in zip(self.inputs, arguments, strict=True):
            if isinstance(there, GpuArray) and there.nbytes:
                context.copy(there.address, given.address, there.nbytes, stream)
        self.recording.replay()
        return [_own(device, result) for result in self.results]


def _own(device: CudaDevice, result: Any) -> Any:
    """A result that the next replay does not change."""
    if isinstance(result, _Cell):
        result = result.cell.value
    if isinstance(result, GpuArray):
        return device.copied(result)
    return result.copy() if isinstance(result, np.ndarray) else result


def _is_repeated(result: Any) -> bool:
    """Whether a replay gives a result of this kind as the step would."""
    if isinstance(result, ResourceHandle):
        return result.owned is None
    return result is None or result is DEAD or isinstance(result, (*_TENSORS, _Cell))


class RecordedFunction:
    """An instance of a function that becomes a CUDA graph in its second run.

    Args:
        function: the plan's.
        why_not: why it cannot; None where it may.
        tf32: products of float32 numbers may be computed so.
    """

    def __init__(self, function: KernelFunction, device: CudaDevice, why_not: str | None, *, tf32: bool = False):
        self._function = function
        self._device = device
        self._why_not = why_not
        self._tf32 = tf32
        self._graph: _Graph | None = None
        self._runs = 0
        self._recordings = 0

    def run(self, arguments: Sequence[Any], running: RunningStep) -> list[Any]:
        """Execute once; see `backends.base.Instance`."""
        allow_tf32(self._tf32)
        if self._device.is_recording:  # it is a part of another step
            return self._function.run(arguments, running)
        graph = self._graph
        if graph is not None and graph.fits(arguments):
            return graph.replay(self._device, arguments)
        self._runs += 1
        if self._why_not is None and self._runs > 1:
            graph = self._record(arguments, running)
            if graph is not None:
                return graph.replay(self._device, arguments)
        return self._function.run(arguments, running)

    def _record(self, arguments: Sequence[Any], running: RunningStep) -> _Graph | None:
        """The step as a graph; None where it is none, and the reason is noted."""
        self._let_go()
        self._recordings += 1
        if self._recordings > _MOST_RECORDINGS:
            return self._refuse("its variables or its host arguments change from step to step")
        inputs: list[Any] = []
        for given in arguments:
            if isinstance(given, np.ndarray | np.generic):
                if given.nbytes > _LARGEST_VALUE:
                    return self._refuse("a large argument is in host memory")
                inputs.append(np.array(given))
            elif isinstance(given, GpuArray):
                inputs.append(self._device.copied(given))
            elif given is DEAD or given is None:
                inputs.append(given)
            else:  # a stack or list of this step, or a variable that nobody watches
                return self._refuse(f"an argument is a {type(given).__name__}, which is another one each time")
        found = cells_of(self._function.block, running)
        if found is None:
            return None  # a variable that has no value yet: the step itself says so
        if any(cell.value is None for cell in found):
            return None
        if not all(isinstance(cell.value, GpuArray) for cell in found):
            return self._refuse("a variable is in host memory")
        cells = [_Cell(cell) for cell in found]
        self._device.synchronize()
        try:
            with self._device.recording(_BYTES_A_LAUNCH * len(self._function.block)) as recording:
                results = self._function.run(inputs, running)
        except GraphmillError as error:
            for cell in cells:
                cell.restore()
            return self._refuse(error.message)
        # whoever held a variable's array would keep it from being changed in place
        by_array = {id(cell.cell.value): cell for cell in cells}
        results = [by_array.get(id(result), result) for result in results]
        fresh = next((each for each in results if not _is_repeated(each)), None)
        if fresh is not None:
            recording.close()
            return self._refuse(f"a result is a {type(fresh).__name__}, which has to be made anew each time")
        moved = next((cell for cell in cells if not cell.is_same()), None)
        graph = _Graph(recording, inputs, cells, results)
        if moved is not None:
            for cell in cells:
                cell.restore()
            recording.close()
            return self._refuse(f"the variable {moved.cell.name} is not changed in place")
        self._graph = graph
        return graph

    def _refuse(self, why: str) -> None:
        self._why_not = why
        self._function.block.notes.append(f"the step runs launch by launch, not as a CUDA graph: {why}")

    def _let_go(self) -> None:
        graph, self._graph = self._graph, None
        if graph is not None:
            recording, graph.results, graph.inputs = graph.recording, [], []
            recording.close()

    def run_marked(
        self, arguments: Sequence[Any], running: RunningStep
    ) -> tuple[list[Any], Sequence[Entry], list[int]]:
        """Whoever looks sees launches."""
        return self._function.run_marked(arguments, running)

    def run_checked(self, arguments: Sequence[Any], running: RunningStep) -> tuple[list[Any], list[Operation]]:
        """Whoever looks sees launches."""
        return self._function.run_checked(arguments, running)

    def close(self) -> None:
        """Give the graph and its memory back."""
        self._let_go()
