"""What was recorded of a step, with what has to be the same for a replay to do what the step would do."""

# numpy's arrays of an unknown type
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from toolkit.compiler.backends.cuda.conditionals.bounded import cut
from toolkit.kernels.context import DEAD, RefVariable
from toolkit.kernels.cuda.checks import Checks
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.draws import Draws
from toolkit.kernels.cuda.fixed_copies import Fed, Fetched
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.prepared import Moment, Watch, changed
from toolkit.kernels.cuda.recording import Recording
from toolkit.kernels.resources.handles import ResourceHandle
from toolkit.kernels.resources.variables import Variable

#: a result that is cut to its length: its position, the axis, and the position of the length
Bound = tuple[int, int, int]
_TENSORS = (GpuArray, np.ndarray, np.generic, RefVariable)


class RecordedVariable:
    """A variable as it was when a step was recorded.

    Args:
        changes: the step may change it.

    Attributes:
        variable: itself.
        array: what refers to its array, but does not keep it; None for one in host memory.
        users, block_users: references to its array and to the array's memory when nobody else has one; 0 where that is
            of no interest, for it is only read.
    """

    __slots__ = ("array", "block_users", "users", "variable")

    def __init__(self, variable: RefVariable | Variable, *, changes: bool):
        self.variable = variable
        value = variable.value
        is_there = isinstance(value, GpuArray)
        self.array = weakref.ref(value) if is_there else None
        self.users = sys.getrefcount(value) if changes else 0
        self.block_users = sys.getrefcount(value.block) if changes and is_there else 0

    def is_same(self) -> bool:
        """Whether it still has its array."""
        return self.array is not None and self.array() is self.variable.value

    def restore(self) -> None:
        """Give it the array that it had."""
        if self.array is not None:
            self.variable.value = self.array()


class SavedVariable:
    """What a variable was before a replay, for one that is taken back: the recording begins with the copy."""

    def __init__(self, device: CudaDevice, cell: RecordedVariable):
        self._device = device
        self._variable = cell.variable
        self._before = device.copied(cell.variable.value)

    def give_back(self) -> None:
        """Behind a replay: the variable is what it was."""
        there, before = self._variable.value, self._before
        if before.nbytes:
            self._device.context.copy(there.address, before.address, before.nbytes, self._device.compute)


class RecordedVariables:
    """The variables of a recorded step.

    Args:
        prepared: the watches of what the step takes that was made of variables before it (`toolkit.kernels.cuda`).

    Attributes:
        prepares: whether there is such a thing.
    """

    def __init__(self, cells: Iterable[RecordedVariable], prepared: Sequence[Watch] = ()):
        self._prepared = list(dict.fromkeys(prepared))
        self.prepares = bool(prepared)
        self._seen: Moment | None = None  # when nothing of it was changed
        self._read = [(cell.variable, cell.array) for cell in cells if not cell.users]
        self._changed = [(cell.variable, cell.array, cell.users, cell.block_users) for cell in cells if cell.users]

    def hold(self) -> bool:
        """Whether all have their arrays, and nobody else holds one that the step changes, and would see that.

        Then a replay follows: whoever made something of what it changes is told.
        """
        if self._prepared and (self._seen is None or not self._seen.is_now()):
            if any(watch.changed for watch in self._prepared):
                return False
            self._seen = Moment()
        for variable, array in self._read:
            if array is None or array() is not variable.value:
                return False
        count = sys.getrefcount
        for variable, array, users, block_users in self._changed:
            value = variable.value
            if array is None or array() is not value or count(value) > users or count(value.block) > block_users:
                return False
            if value.watch is not None:
                changed(value)
        return True


class DeviceGraph:
    """A recorded step whose arguments are in the device's memory, as its results are wanted to be.

    Args:
        inputs: by argument: where it has to be copied, a value on the host, or None where nothing is known of it.
        results: where they are made.
    """

    def __init__(
        self, device: CudaDevice, recording: Recording, inputs: list[Any], cells: RecordedVariables, results: Any
    ):
        self._device = device
        self._recording = recording
        self._inputs = inputs
        self._cells = cells
        self._results: list[Any] = results

    def replay(self, arguments: Sequence[Any]) -> list[Any] | None:
        """Do it all; None where it would not do what the step does, and nothing was done."""
        for there, given in zip(self._inputs, arguments, strict=True):
            if isinstance(there, np.ndarray) and not np.array_equal(there, given):
                return None
        if not self._cells.hold():
            return None
        context, stream = self._device.context, self._device.compute
        for there, given in zip(self._inputs, arguments, strict=True):
            if isinstance(there, GpuArray) and there.nbytes:
                context.copy(there.address, given.address, there.nbytes, stream)
        self._recording.replay()
        return [_own(self._device, result) for result in self._results]

    @property
    def prepares(self) -> bool:
        """Whether it takes what was made before it was recorded."""
        return self._cells.prepares

    def close(self) -> None:
        """Give the graph and its memory back."""
        self._results, self._inputs = [], []
        self._recording.close()


class HostGraph:
    """A recorded step from host memory to host memory: a replay is one launch, and one wait for its end.

    Args:
        fed: the arguments that are copied to the device.
        draws: the random numbers that it draws; the last of the results are the places of generators that it moved
            on, where there are such.
        values: the others, by position; the step was recorded for them.
        results: where they are made, or what they are.
        fetched: those that are copied to the host.
        checks: what may be wrong; the result before that is the word that says so. None where nothing may be.
        saved: what variables were before, where a replay changes some before it is known that it counts.
        bounds: results that are as long as the device says; their lengths are the last of the others.

    Attributes:
        is_undone: a list had more elements than there was memory for: what was done is as if it were not, and has to
            be done without the recording.
    """

    def __init__(
        self, device: CudaDevice, recording: Recording, fed: Fed, draws: Draws, values: dict[int, Any],
        cells: RecordedVariables, results: list[Any], fetched: Fetched, checks: Checks | None = None,
        saved: Sequence[SavedVariable] = (), bounds: Sequence[Bound] = (),
    ):  # fmt: skip
        self._checks = checks
        self._bounds = bounds
        self._saved = saved
        self._device = device
        self._recording = recording
        self._fed = fed
        self._draws = draws
        self._values = [(position, key_of(value)) for position, value in values.items()]
        self._cells = cells
        self._results = [None if k in fetched.positions else each for k, each in enumerate(results)]
        self._kept = [(k, each) for k, each in enumerate(self._results) if isinstance(each, _COPIED)]
        self._fetched = fetched
        self._counts = (len(fed.arrays), len(fetched.positions))
        self._is_under_way = False  # a step that was interrupted left it so
        self.is_undone = False

    def replay(self, arguments: Sequence[Any]) -> list[Any] | None:
        """Do it all; None where it would not do what the step does, and nothing was done."""
        if not self._cells.hold():
            return None
        for position, known in self._values:
            if key_of(arguments[position]) != known:
                return None
        device = self._device
        if self._is_under_way:
            device.synchronize()
        if not self._fed.write(arguments):
            return None
        self._draws.take()
        self._is_under_way = True
        self._recording.replay()
        results = self._results.copy()
        for position, each in self._kept:
            results[position] = _own(device, each)
        waits = self._fetched.begin()
        device.synchronize()
        self._is_under_way = False
        self._fetched.read(results)
        for position, wait in waits:
            results[position] = wait()
        into, out = self._counts
        if into or out:
            device.memory.moved(into, out)
        ends = None if self._draws.ends is None else results.pop()
        if self._checks is not None:
            word: Any = results.pop()
            found = int(word[0])
            if self._checks.is_for_host(found):
                self._draws.give_back()
                for each in self._saved:
                    each.give_back()
                self.is_undone = True
                return None
            if ends is not None:
                self._draws.settle(ends)
            self._checks.require(found)
        elif ends is not None:
            self._draws.settle(ends)
        if self._bounds:
            for position, axis, length in self._bounds:
                count: Any = results[length]
                results[position] = cut(results[position], axis, int(count))
            del results[self._bounds[0][2] :]
        return results

    def changed_values(self, arguments: Sequence[Any]) -> list[int]:
        """Positions of arguments in host memory that are other numbers now, of the same kind; none where something else
        is in their place."""
        found: list[int] = []
        for position, known in self._values:
            given = key_of(arguments[position])
            if given == known:
                continue
            if not (isinstance(given, tuple) and isinstance(known, tuple) and given[1:] == known[1:]):
                return []
            if known[2].kind not in "biuf":
                return []
            found.append(position)
        return found

    @property
    def prepares(self) -> bool:
        """Whether it takes what was made before it was recorded."""
        return self._cells.prepares

    def close(self) -> None:
        """Give the graph and its memory back."""
        recording = self._recording
        self._results, self._kept, self._saved = [], [], []
        del self._fed, self._fetched, self._draws
        recording.close()


def key_of(value: Any) -> Any:
    """What is compared of an argument in host memory: a plan may depend on each bit of it."""
    return (value.tobytes(), value.shape, value.dtype) if isinstance(value, np.ndarray | np.generic) else value


def _own(device: CudaDevice, result: Any) -> Any:
    """A result that the next replay does not change."""
    if isinstance(result, RecordedVariable):
        result = result.variable.value
    if isinstance(result, GpuArray):
        return device.copied(result)
    return result.copy() if isinstance(result, np.ndarray) else result


def giver(result: Any) -> Callable[[], GpuArray] | None:
    """What gives a result that is in the device's memory; None for others."""
    if isinstance(result, RecordedVariable):
        return lambda: result.variable.value
    return (lambda: result) if isinstance(result, GpuArray) else None


def is_repeated(result: Any) -> bool:
    """Whether a replay gives a result of this kind as the step would."""
    if isinstance(result, ResourceHandle):
        return result.owned is None
    return result is None or result is DEAD or isinstance(result, (*_TENSORS, RecordedVariable))


#: results that each step gives a copy of
_COPIED = (GpuArray, np.ndarray, RecordedVariable)
