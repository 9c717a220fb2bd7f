"""Steps as CUDA graphs: what a step launches is recorded once and from then on done by one call.

The first run of a plan is made launch by launch: kernels are compiled, libraries choose. The second one is recorded,
if all that it does besides launching is known to be the same each time. What is recorded holds addresses: arguments
are copied to where the first ones were, results from where they are made, and variables have to be changed in place.
A step for which that does not hold runs launch by launch, and `run --explain` says why.
"""

# numpy's arrays of an unknown type
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

import numpy as np

from toolkit.compiler.backends.base import Entry, HostSide
from toolkit.compiler.backends.cuda.conditionals.bounded import BoundedArray
from toolkit.compiler.backends.cuda.conditionals.nodes import DeviceNumber, kept
from toolkit.compiler.backends.cuda.recording.drawing import DRAWS, GENERATORS, draws_numbers
from toolkit.compiler.backends.cuda.recording.replayed import (
    Bound,
    DeviceGraph,
    HostGraph,
    RecordedVariable,
    RecordedVariables,
    SavedVariable,
    giver,
    is_repeated,
)
from toolkit.compiler.backends.kernels.function import KernelFunction
from toolkit.compiler.context import RunningStep
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.errors import (
    FailedPreconditionError,
    GraphmillError,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
)
from toolkit.forks import free_in_children
from toolkit.kernels.context import DEAD, RefVariable
from toolkit.kernels.cuda.checks import Checks, UpdatedBeforeError
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.draws import AREA, Draws
from toolkit.kernels.cuda.fixed_copies import Fed, Fetched
from toolkit.kernels.cuda.libraries.precision import allow_tf32
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.prepared import noted
from toolkit.kernels.cuda.recording import Recording
from toolkit.kernels.registry import Kind
from toolkit.kernels.resources.handles import ResourceHandle
from toolkit.kernels.resources.variables import Variable, find

#: a step is recorded again when its variables have other arrays, or its host arguments other values
_MOST_RECORDINGS = 8
#: bytes of an argument in host memory, whose value a recording depends on: axes and sizes, not data
_LARGEST_VALUE = 256
#: stateful ops whose kernels do nothing on the host that a replay would have to do; what is asserted of numbers of the
#: host was so when they were recorded
_REPLAYED = ("Assert", "ReadVariableOp", "VarHandleOp", "Variable", "Assign", "Apply", "ResourceApply", "Scatter",
             "Resource", "SparseApply", "IsVariableInitialized", "VarIsInitializedOp", "TensorArray", "Stack",
             "Stateless", "_Fused")  # fmt: skip
#: ops that take a variable's handle and leave the variable as it is
_READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp"})
_SEED = "seed2"
#: what a step raises because of what it was given
_OF_A_STEP = (InvalidArgumentError, FailedPreconditionError, OutOfRangeError)
#: bytes that an H100 reads and writes (2.9 TB/s together) in the time that a launch takes Python (9 us): so much may be
#: copied into variables for each operation of a step that is recorded for it
_BYTES_A_LAUNCH = 13 << 20
_ARRAYS = (np.ndarray, np.generic)
_Result = TypeVar("_Result")


def refusal(block: Block) -> str | None:
    """Why a block cannot become a graph, as far as its operations tell; None where only a recording can show it."""
    for operation in block.walk():
        if not isinstance(operation, Call):
            continue
        node = operation.step.node
        if operation.step.kind is Kind.ASYNC:
            return f"{node.name} waits for others ({node.op})"
        if (
            operation.step.kind is Kind.STATEFUL
            and node.op not in DRAWS | GENERATORS
            and (not node.op.startswith(_REPLAYED) or node.attr(_SEED, None) is not None)
        ):
            return f"{node.name} does something on the host each time ({node.op})"
    return _mixed(block)


def _mixed(block: Block) -> str | None:
    """A draw from a generator in a variable that the block itself reads or changes: a replay does that on the host,
    where nothing in it waits."""
    draws: dict[ResourceHandle, str] = {}
    others: set[ResourceHandle] = set()
    for operation in block.walk():
        for index, value in enumerate(operation.inputs):
            handle = value.constant
            if index == 0 and isinstance(operation, Call) and operation.op in GENERATORS:
                if not isinstance(handle, ResourceHandle):
                    return f"{operation.name} draws from a variable that is known only when it runs"
                draws[handle] = operation.name
            elif isinstance(handle, ResourceHandle):
                others.add(handle)
    mixed = next((name for handle, name in draws.items() if handle in others), None)
    return mixed and f"{mixed} draws from a variable that the step itself reads or changes"


def cells_of(block: Block, running: RunningStep) -> list[RecordedVariable] | None:
    """The variables that a block names; None where it finds one only when it runs.

    Those whose generators it draws from are not among them: whoever replays changes them on the host.
    """
    found: dict[int, RefVariable | Variable] = {}
    changed: set[int] = set()
    for operation in block.walk():
        for index, value in enumerate(operation.inputs):
            if index == 0 and isinstance(operation, Call) and operation.op in GENERATORS:
                continue
            constant = value.constant
            if isinstance(constant, ResourceHandle) and constant.kind in ("", "Var"):
                try:
                    cell = find(running, constant)
                except GraphmillError:
                    return None
            elif isinstance(constant, RefVariable):
                cell = constant
            else:
                continue
            found[id(cell)] = cell
            if not _only_reads(operation, index):
                changed.add(id(cell))
    return [RecordedVariable(cell, changes=number in changed) for number, cell in found.items()]


def _only_reads(operation: Operation, index: int) -> bool:
    """Whether an operation leaves a variable that it is given as it is."""
    if not isinstance(operation, Call) or index >= len(operation.step.node.input_types):
        return False
    wanted = operation.step.node.input_types[index]
    return operation.op in _READS if wanted.kind == "r" else not wanted.is_ref


class RecordedFunction:
    """An instance of a function that becomes a CUDA graph in its second run.

    Args:
        function: the plan's.
        why_not: why it cannot; None where it may.
        tf32: products of float32 numbers may be computed so.
        recorded: what is run in its place while it is recorded, with conditional nodes; None where that is the same.
        decided_by: gives the same where some arguments in host memory, by their positions, are the device's.
    """

    def __init__(
        self, function: KernelFunction, device: CudaDevice, why_not: str | None, *, tf32: bool = False,
        recorded: KernelFunction | None = None,
        decided_by: Callable[[Sequence[int]], KernelFunction | None] | None = None,
    ):  # fmt: skip
        self._run_recorded: Callable[..., list[Any]] = function.run if recorded is None else recorded.run
        self._is_decided = recorded is not None
        self._by_value: tuple[Callable[..., list[Any]], bool] = self._run_recorded, self._is_decided
        self._decided_by = decided_by
        self._saves = False  # a replay keeps what variables were before
        self._varying: list[int] = []  # arguments in host memory that were others in some step
        self._function = function
        self._device = device
        self._why_not = why_not
        self._tf32 = tf32
        self._draws = draws_numbers(function.block)
        self._on_device: DeviceGraph | None = None
        self._from_host: HostGraph | None = None
        self._runs = 0
        self._recordings = 0
        self._doubt: str | None = None  # the note of a refusal that may be of this step alone
        self._prepares = False  # what was made of variables has to be made anew, by a step that is not recorded
        self._is_spared = False  # others wanted its memory
        self._use = threading.Lock()  # held by the step that runs it, and by who takes its memory
        free_in_children(self, "_use")

    def run(self, arguments: Sequence[Any], running: RunningStep) -> list[Any]:
        """Execute once; see `backends.base.Instance`."""
        with self._use:
            return self._precisely(self._run, arguments, running)

    def _precisely(self, run: Callable[..., _Result], *given: Any) -> _Result:
        """Run something with products as exact as the step wants them; what this thread runs next wants its own."""
        before = allow_tf32(self._tf32)
        try:
            return run(*given)
        finally:
            allow_tf32(before)

    def _run(self, arguments: Sequence[Any], running: RunningStep) -> list[Any]:
        if self._device.is_recording:  # it is a part of another step
            return self._function.run(arguments, running)
        if self._on_device is not None and (results := self._on_device.replay(arguments)) is not None:
            return results
        if self._on_device is not None and self._on_device.prepares:
            self._prepares = True
            self.close(self._on_device)
        if self._prepares:
            self._prepares = False
            return self._launched(arguments, running)
        self._runs += 1
        if self._why_not is None and not self._draws and self._runs > 1 and not self._varying:
            graph = self._record(arguments, running)
            results = None if graph is None else graph.replay(arguments)
            if results is not None:
                return results
        return self._launched(arguments, running)

    def _launched(self, arguments: Sequence[Any], running: RunningStep) -> list[Any]:
        """Execute once without a recording. Where that fails as the recording did, the failure was the step's own, such
        as an assertion that does not hold: it is recorded when it does not fail."""
        doubt, self._doubt = self._doubt, None
        try:
            return self._function.run(arguments, running)
        except GraphmillError:
            if doubt is not None:
                self._why_not = None
                self._recordings -= 1
                self._function.block.notes.remove(doubt)
            raise

    def run_from_host(self, arguments: Sequence[Any], running: RunningStep, boundary: HostSide) -> list[Any] | None:
        """Execute once; see `backends.base.Replays`."""
        with self._use:
            return self._run_from_host(arguments, running, boundary)

    def _run_from_host(self, arguments: Sequence[Any], running: RunningStep, boundary: HostSide) -> list[Any] | None:
        if self._why_not is not None or self._device.is_recording:
            return None
        if (results := self._replay(arguments)) is not None:
            return results
        if self._from_host is not None and self._from_host.prepares:
            self._prepares = True
            self.close(self._from_host)
        if self._prepares or not self._runs or not _is_from_host(arguments, boundary):
            return None
        if not all(isinstance(arguments[position], _ARRAYS) for position in self._varying):
            return None
        self._device.synchronize()
        self._let_vary(arguments)
        self._precisely(self._record_from_host, arguments, running, boundary)
        if self._why_not is not None and self._let_all_vary(arguments, boundary):
            self._precisely(self._record_from_host, arguments, running, boundary)
        return self._replay(arguments)

    def replay(self, arguments: Sequence[Any]) -> list[Any] | None:
        """Execute once, if what was recorded fits; see `backends.base.Replays`."""
        with self._use:
            return self._replay(arguments)

    def _replay(self, arguments: Sequence[Any]) -> list[Any] | None:
        graph = self._from_host
        if graph is None:
            return None
        results = graph.replay(arguments)
        if graph.is_undone:
            # the step is done again by the host, which tells how much memory the next recording wants
            self._prepares = True
            self._recordings -= 1  # as it at least doubles, there are not many
            self.close(graph)
        return results

    def _let_vary(self, arguments: Sequence[Any]) -> None:
        """Have the device get the arguments in host memory that are others than when the step was recorded last, if
        nobody on the host has to know them: a number of iterations, or the lengths of sequences."""
        found = None if self._from_host is None else self._from_host.changed_values(arguments)
        if found:
            self._vary(sorted({*self._varying, *found}))

    def _let_all_vary(self, arguments: Sequence[Any], boundary: HostSide) -> bool:
        """Likewise all numbers in host memory, for with these no recording was made: what is computed of them would be
        copied to the device in the middle of it. Whether one may be made now."""
        numbers = [k for k, there in boundary.arguments.items() if not there and _is_number(arguments[k])]
        if self._varying or not numbers or not self._vary(numbers):
            return False
        self._why_not = self._doubt = None
        self._function.block.notes.pop()
        return True

    def _vary(self, positions: list[int]) -> bool:
        made = None if self._decided_by is None else self._decided_by(positions)
        if made is None:
            return False
        self._varying = positions
        self._run_recorded, self._is_decided = made.run, True
        return True

    def _record(self, arguments: Sequence[Any], running: RunningStep) -> DeviceGraph | None:
        """The step as a graph; None where it is none, and the reason is noted."""
        self.close(self._on_device)
        inputs: list[Any] = []
        for given in arguments:
            if isinstance(given, GpuArray):
                try:
                    inputs.append(self._device.copied(given))
                except ResourceExhaustedError as error:  # the step itself may do with less
                    return self._refuse(error.message)
            else:
                inputs.append(np.array(given) if isinstance(given, _ARRAYS) else given)
        if (made := self._recorded(inputs, running, ())) is not None:
            recording, cells, results, *_ = made
            self._on_device = DeviceGraph(self._device, recording, inputs, cells, results)
            self._device.pool.spares.add(self)
        return self._on_device

    def _record_from_host(self, arguments: Sequence[Any], running: RunningStep, boundary: HostSide) -> None:
        """Likewise, with the copies from and to host memory."""
        self.close(self._from_host)
        moved = [k for k, there in boundary.arguments.items() if there and arguments[k] is not DEAD]
        moved += self._varying
        try:
            fed = Fed(self._device, {k: np.asarray(arguments[k]) for k in moved}, AREA if self._draws else 0)
        except ResourceExhaustedError as error:  # the step itself may do with less
            return self._refuse(error.message)
        inputs: list[Any] = [None] * len(arguments)
        for position in boundary.arguments:
            given = arguments[position]
            inputs[position] = fed.arrays.get(position, np.array(given) if isinstance(given, _ARRAYS) else given)
        for position in self._varying:
            inputs[position] = kept(fed.arrays[position])
        draws = Draws(self._device, fed.more)
        had_saved, saved = self._saves, list[SavedVariable]()
        if (made := self._recorded(inputs, running, boundary.results, fed, draws, saved)) is not None:
            recording, cells, results, fetched, checks, bounds = made
            values = {k: inputs[k] for k in boundary.arguments if k not in fed.arrays}
            self._from_host = HostGraph(
                self._device, recording, fed, draws, values, cells, results, fetched, checks, saved, bounds
            )
            self._device.pool.spares.add(self)
        elif self._saves and not had_saved:
            self._record_from_host(arguments, running, boundary)

    def _recorded(
        self, inputs: list[Any], running: RunningStep, moved: Sequence[int], fed: Fed | None = None,
        draws: Draws | None = None, saved: list[SavedVariable] | None = None,
    ) -> tuple[Recording, RecordedVariables, list[Any], Fetched, Checks | None, list[Bound]] | None:  # fmt: skip
        """What the step launches, the variables that it is about, and its results, of which some are fetched; what may
        turn out to be wrong with it, and which results are cut to their length."""
        self._recordings += 1
        if self._recordings > _MOST_RECORDINGS:
            why = "memory is short" if self._is_spared else "its variables or its host arguments change"
            return self._refuse(f"{why} from step to step")
        for given in inputs:
            if isinstance(given, np.ndarray):
                if given.nbytes > _LARGEST_VALUE:
                    return self._refuse("a large argument is in host memory")
            elif not (isinstance(given, GpuArray) or given is DEAD or given is None):
                # a stack or list of this step, or a variable that nobody watches
                return self._refuse(f"an argument is a {type(given).__name__}, which is another one each time")
        cells = cells_of(self._function.block, running)
        if cells is None or any(cell.variable.value is None for cell in cells):
            return None  # a variable that has no value yet: the step itself says so
        if any(cell.array is None for cell in cells):
            return self._refuse("a variable is in host memory")
        self._device.synchronize()
        try:
            most = _BYTES_A_LAUNCH * len(self._function.block)
            with noted() as prepared, self._device.recording(most, draws) as recording:
                checks: Checks | None = None
                if fed is None or not self._is_decided:
                    if fed is not None:
                        fed.record()
                    results = self._run_recorded(inputs, running)
                else:
                    fed.record()
                    if self._saves and saved is not None:
                        saved += [SavedVariable(self._device, cell) for cell in cells if cell.users]
                    with self._device.checking(saves=self._saves) as checks:
                        results = self._run_recorded(inputs, running)
                if on_device := [k for k, result in enumerate(results) if _is_of_host(result)]:
                    if fed is None:
                        raise UnimplementedError("a result in host memory follows from tensors")
                    moved = [*moved, *on_device]
                lengths = [(k, each) for k, each in enumerate(results) if isinstance(each, BoundedArray)]
                if any(k not in moved for k, _ in lengths):
                    raise UnimplementedError("a tensor whose length the device alone knows is to stay there")
                bounds = [(k, each.axis, len(results) + at) for at, (k, each) in enumerate(lengths)]
                moved, results = [*moved, *(k for *_, k in bounds)], [*results, *(each.count for _, each in lengths)]
                recording.held = checks.held if checks is not None else []
                # whoever held a variable's array would keep it from being changed in place
                by_array = {id(cell.variable.value): cell for cell in cells}
                results = [by_array.get(id(result), result) for result in results]
                if checks is not None and checks:
                    moved, results = [*moved, len(results)], [*results, checks.word]
                if draws is not None and draws.ends is not None:
                    moved, results = [*moved, len(results)], [*results, draws.ends]
                fetched = Fetched(self._device, {k: give for k in moved if (give := giver(results[k])) is not None})
        except GraphmillError as error:
            for cell in cells:
                cell.restore()
            if isinstance(error, UpdatedBeforeError) and not self._saves and fed is not None:
                self._saves = True
                self._recordings -= 1
                return None
            if isinstance(error, ResourceExhaustedError) and self._device.pool.spares.give_back():
                return None  # for the next one there is more room
            return self._refuse(error.message, may_be_once=isinstance(error, _OF_A_STEP))
        fresh = next((each for each in results if not is_repeated(each)), None)
        if fresh is not None:
            recording.close()
            return self._refuse(f"a result is a {type(fresh).__name__}, which has to be made anew each time")
        changed = next((cell for cell in cells if not cell.is_same()), None)
        if changed is not None:
            for cell in cells:
                cell.restore()
            recording.close()
            return self._refuse(f"the variable {changed.variable.name} is not changed in place")
        return recording, RecordedVariables(cells, prepared), results, fetched, checks or None, bounds

    def _refuse(self, why: str, *, may_be_once: bool = False) -> None:
        if self._varying:  # so the host keeps its numbers, and a recording is for these
            self._varying, self._decided_by = [], None
            self._run_recorded, self._is_decided = self._by_value
            if self._recordings < _MOST_RECORDINGS:
                return
        self._why_not = why
        note = f"the step runs launch by launch, not as a CUDA graph: {why}"
        self._function.block.notes.append(note)
        self._doubt = note if may_be_once else None

    def run_marked(
        self, arguments: Sequence[Any], running: RunningStep
    ) -> tuple[list[Any], Sequence[Entry], list[int]]:
        """Whoever looks sees launches."""
        return self._precisely(self._function.run_marked, arguments, running)

    def run_checked(self, arguments: Sequence[Any], running: RunningStep) -> tuple[list[Any], list[Operation]]:
        """Whoever looks sees launches."""
        return self._precisely(self._function.run_checked, arguments, running)

    def spare(self) -> bool:
        """See `toolkit.kernels.cuda.spares`: it is recorded again when it is run again."""
        if not self._use.acquire(blocking=False):
            return False
        try:
            had = self._on_device is not None or self._from_host is not None
            self.close()
            self._is_spared = had or self._is_spared
            return had
        finally:
            self._use.release()

    def close(self, *graphs: DeviceGraph | HostGraph | None) -> None:
        """Give graphs and their memory back, all by default; whatever the driver says, none of them is used again."""
        gone = [
            each for each in (self._on_device, self._from_host) if each is not None and (each in graphs or not graphs)
        ]
        self._on_device = None if self._on_device in gone else self._on_device
        self._from_host = None if self._from_host in gone else self._from_host
        with ExitStack() as all_of_them:
            for each in gone:
                all_of_them.callback(each.close)


def _is_of_host(result: Any) -> bool:
    """Whether a result belongs into host memory, and only the device has it."""
    return isinstance(result, DeviceNumber) or (isinstance(result, BoundedArray) and result.on_host)


def _is_number(given: Any) -> bool:
    """Whether an argument in host memory is numbers, few enough to be copied with what is fed."""
    return isinstance(given, _ARRAYS) and given.dtype.kind in "biuf" and given.nbytes <= _LARGEST_VALUE


def _is_from_host(arguments: Sequence[Any], boundary: HostSide) -> bool:
    """Whether all arguments that are wanted in the device's memory come from the host's."""
    return all(
        arguments[k] is DEAD or (isinstance(arguments[k], _ARRAYS) and not arguments[k].dtype.hasobject)
        for k, is_moved in boundary.arguments.items()
        if is_moved
    )
