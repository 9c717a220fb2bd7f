"""Loops that run without the interpreter: bodies of compiled nests, primitives and operations on sequences.

The state of a loop has a place of its own in the arena, so have the elements of lists while they are used. Whatever
is irregular (an element that was never set, an index out of range) leaves everything as it was, and the loop is run
again from its start by the interpreter, which knows what that means.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import time
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.emission.instance import ArenaInstance, Emitted
from toolkit.compiler.backends.cpu.loops.accumulation import Adder
from toolkit.compiler.backends.cpu.loops.instructions import (
    AccumulateProduct,
    CallFunction,
    CopyTensor,
    ExecutePrimitive,
    GetElement,
    LeaveUnless,
    PopElement,
    PushElement,
    SetElement,
)
from toolkit.compiler.backends.cpu.loops.interpreted import Fallback, Interpreted
from toolkit.compiler.backends.cpu.loops.iteration import IterationEmitter
from toolkit.compiler.backends.cpu.loops.values import SequenceBuffer, is_shared
from toolkit.compiler.context import RunningStep
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.sequences import SequenceKind, TensorSequence
from toolkit.compiler.ir.value import Value
from toolkit.errors import InternalError
from toolkit.kernels.cpu.memory import guard
from toolkit.kernels.cpu.memory.addresses import Pinned, Table, held
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.iterations import LIMIT, STATUS, Iterations, Moving, Status
from toolkit.kernels.cpu.native.iterations import Sequence as CompiledSequence
from toolkit.kernels.cpu.onednn.library import library, one_thread, require
from toolkit.kernels.types import Array
from toolkit.target.thresholds import LoopThresholds

_TRIES = 3  # runs that turn out irregular before compiled code is not tried again


class NativeLoop(Emitted):
    """A compiled loop, still without an arena.

    Args:
        states: how many of the block's arguments change from iteration to iteration.
        fallback: makes the loop that the interpreter runs.

    Attributes:
        irregular: how many runs the interpreter had to repeat.
    """

    is_whole = True

    def __init__(self, emitter: IterationEmitter, states: int, sequences: list[TensorSequence], fallback: Interpreted):
        super().__init__(emitter, "def run(A, R):\n    raise NotImplementedError\n", [None, None])
        self.emitter = emitter
        self.states = states
        self.sequences = sequences
        self.fallback = fallback
        self.irregular = 0

    def owner(self, code: CodeType, line: int) -> Operation | None:
        """The operation behind a line of the iteration that the interpreter ran."""
        return None if self.fallback.emitted is None else self.fallback.emitted.owner(code, line)

    def instantiate(self) -> NativeInstance:
        return NativeInstance(self)


class NativeInstance(ArenaInstance):
    """A loop over an arena of its own: `run` executes all of its iterations."""

    def __init__(self, loop: NativeLoop):
        emitter = loop.emitter
        super().__init__(loop, emitter)
        self._loop = loop
        self._fallback: Fallback | None = None
        self._entries: dict[int, tuple[Array, int] | int] = {}  # arrays with the bytes of them that are touched
        self._keep: list[Any] = [emitter]
        self._adders: list[tuple[Adder, int]] = []  # and the entries that say how much is put aside
        block = loop.block
        self._places: list[tuple[int, Any]] = []
        self._pointed: list[tuple[int, Value, Pinned]] = []
        for index, value in enumerate(block.arguments):
            if value is None or value.dtype is None:
                continue
            if value in emitter.layout.storage:
                self._places.append((index, self._array(emitter.layout, value)))
            elif value in emitter.pinned:
                self._pointed.append((index, value, self.namespace[emitter.pinned[value]]))
        self._guarded = guard.is_on()
        self._dense: Callable[[Any], Array] = held if self._guarded else np.ascontiguousarray
        self._before = [self.namespace[name] for name in emitter.before]
        text = self._turns()
        self._table = Table(self._length)
        for entry, thing in self._entries.items():
            if isinstance(thing, int):
                self._table.number(entry, thing)
            else:
                self._table.point(entry, *thing)
        self._sizes = emitter.target.loops
        self._table.number(LIMIT, self._sizes.iterations)
        machine = compiler()
        assert machine is not None
        self._function = machine.function(text, {})
        self._pointer = self._table.pointer
        self.run = self._run

    # -- compiling -------------------------------------------------------------------------------------------------

    def _turns(self) -> str:
        """The text of the loop; the table's entries are noted."""
        loop, emitter = self._loop, self._loop.emitter
        iterations = Iterations()
        compiled: dict[TensorSequence, CompiledSequence] = {}
        for sequence in loop.sequences:
            size = int(np.prod(sequence.element, dtype=np.int64)) * int(sequence.dtype.itemsize)
            compiled[sequence] = iterations.sequence(
                size, flags=sequence.reads or sequence.writes, once=sequence.kind is SequenceKind.ARRAY
            )

        def entry(thing: tuple[Array, int] | int) -> int:
            made = iterations.reserve()
            self._entries[made] = thing
            return made

        def of(value: Value, size: int) -> int:
            """The entry for a tensor of which so many bytes are touched."""
            if value in moving:
                if size > value.nbytes:
                    raise _too_small(value, size)
                return moving[value].entry
            return entry((self._tensor(value), size))

        found = library()
        set_handle = entry(found.set_handle_address) if found is not None else 0
        moving = {
            value: self._moving(iterations.reserve(), self.namespace[emitter.pinned[value]], entry, set_handle)
            for value in emitter.floating
        }

        def read_by(value: Value, sequence: TensorSequence) -> int | Moving:
            """What a tensor is told, or given, of a sequence's element."""
            size = compiled[sequence].stride
            if value in moving and value.nbytes > size:
                raise _too_small(value, size)
            return moving[value] if value in moving else of(value, size)

        for value, slot in emitter.floating.items():
            if slot is not None:
                if value.nbytes > compiled[slot.sequence].stride:
                    raise _too_small(value, compiled[slot.sequence].stride)
                iterations.move_to_push(compiled[slot.sequence], slot.which, moving[value])
        execute = entry(found.execute_address) if found is not None else 0
        for instruction in emitter.instructions:
            match instruction:
                case CallFunction(operands, function):
                    iterations.function(entry(function.address), entry(self.tables[operands].address))
                case ExecutePrimitive(name):
                    _, handle, stream, count, arguments = self.calls[name].numbers()
                    iterations.primitive(execute, entry(handle), entry(stream), count, entry(arguments))
                case CopyTensor(target, source):
                    iterations.copy(of(target, target.nbytes), of(source, target.nbytes), target.nbytes)
                case PushElement(sequence, element) if element is not None:
                    iterations.push(compiled[sequence], of(element, compiled[sequence].stride))
                case PushElement(sequence):
                    iterations.count(compiled[sequence])
                case PopElement(sequence, target) if target is not None:
                    iterations.pop(compiled[sequence], read_by(target, sequence))
                case PopElement(sequence):
                    iterations.drop(compiled[sequence])
                case GetElement(sequence, index, target):
                    width = int(index.dtype.itemsize)
                    iterations.get(compiled[sequence], of(index, width), 8 * width, read_by(target, sequence))
                case SetElement(sequence, index, element):
                    width = int(index.dtype.itemsize)
                    source = of(element, compiled[sequence].stride)
                    iterations.set(compiled[sequence], of(index, width), 8 * width, source)
                case AccumulateProduct(accumulation, factors):
                    adder = Adder(instruction, self._tensor(accumulation.state))
                    filled = iterations.reserve()
                    self._adders.append((adder, filled))
                    sizes, many = accumulation.sizes(), accumulation.iterations
                    places = [entry((buffer, size * many)) for buffer, size in zip(adder.buffers, sizes, strict=True)]
                    _, handle, stream, count, arguments = adder.whole.numbers()
                    iterations.total(
                        filled, many, list(zip(places, map(of, factors, sizes), sizes, strict=True)),
                        (execute, entry(handle), entry(stream), count, entry(arguments)),
                    )  # fmt: skip
                case LeaveUnless(condition):
                    iterations.test(of(condition, 1))
        position = {value: index for index, value in enumerate(loop.block.arguments)}
        self._buffers = [(SequenceBuffer(one, compiled[one].entry), position[one.argument]) for one in loop.sequences]
        self._same = {
            one: value.constant if value.is_constant else position[value]
            for one in loop.sequences
            if (value := one.same) is not None
        }
        text = iterations.text()
        self._entries |= iterations.numbers
        self._length = iterations.entries
        return text

    @staticmethod
    def _moving(own: int, told: Pinned, entry: Callable[[int], int], set_handle: int) -> Moving:
        """What must be told where a tensor is, by compiled code."""
        return Moving(
            own,
            tuple((entry(slot.address), slot.offset) for slot in told.slots),
            tuple(entry(handle.value) for _, handle in told.memories),
            set_handle,
        )

    def _tensor(self, value: Value) -> Array:
        if value.is_constant:
            array = held(value.constant, "a constant of a loop")
            self._keep.append(array)
            return array
        return self._array(self._loop.layout, value)

    # -- running ---------------------------------------------------------------------------------------------------

    def _run(self, arguments: list[Any], running: RunningStep) -> list[Any]:
        """All iterations: the final state from the initial state and what every iteration takes from outside."""
        if self._loop.irregular >= _TRIES:
            return self._interpreted(arguments, running)
        table, cells = self._table, self._table.cells
        for index, place in self._places:
            given = arguments[index]
            if given.shape != place.shape or given.dtype != place.dtype:
                raise _unproved(given, place)
            np.copyto(place, given)
        for index, value, told in self._pointed:
            given = self._dense(arguments[index])
            if given.shape != value.shape or given.dtype != value.dtype:
                raise _unproved(given, value)
            arguments[index] = given
            told.point(given)
        for one, index in self._buffers:
            if not one.bind(arguments[index], table, running):
                return self._interpreted(arguments, running)
        if is_shared([one for one, _ in self._buffers]):
            return self._interpreted(arguments, running)
        self._pack()
        for _, filled in self._adders:
            cells[filled] = 0
        call = self._function.call
        while True:
            began = time.perf_counter()
            call(self._pointer)
            if self._guarded:
                guard.check(self._loop.emitter.block.operations[0].name)
            match cells[STATUS]:
                case Status.DONE:
                    break
                case Status.PAUSED:
                    if running.cancellation.is_cancelled:
                        running.check_cancelled()
                    cells[LIMIT] = _turns(cells[LIMIT], time.perf_counter() - began, self._sizes)
                case Status.GROW:
                    for one, _ in self._buffers:
                        one.grow(table)
                case Status.IRREGULAR:
                    self._loop.irregular += 1
                    return self._interpreted(arguments, running)
                case _:
                    raise _failed()
        if not all(adder.add_rest(cells[filled]) for adder, filled in self._adders):
            raise _failed()
        results: list[Any] = list(arguments[: self._loop.states])
        for index, place in self._places:
            if index < len(results):
                results[index] = place.copy() if place.shape else place[()]
        for one, _ in self._buffers:
            same = self._same.get(one.sequence)
            changed = one.finish(table, arguments[same] if isinstance(same, int) else same)
            if one.sequence.result is not None:
                results[one.sequence.result] = changed
        return results

    def _pack(self) -> None:
        """Pack what stays what it is over the iterations."""
        if self._before:
            execute = require().execute
            with one_thread():  # some copies ask for threads only when they run
                if any(execute(*prepared) for prepared in self._before):
                    raise _failed()

    def _interpreted(self, arguments: list[Any], running: RunningStep) -> list[Any]:
        if self._fallback is None:
            self._fallback = self._loop.fallback()
        # lists and results may keep what they are given, which here may be a part of somebody's arena
        owned = [given.copy() if isinstance(given, np.ndarray) else given for given in arguments]
        return self._fallback(owned, running)


def _turns(made: int, seconds: float, sizes: LoopThresholds) -> int:
    """How many iterations to make next, when so many took so long."""
    return max(1, min(sizes.most_iterations, int(made * min(8.0, sizes.seconds / max(seconds, 1e-6)))))


def _failed() -> Exception:
    return RuntimeError("a oneDNN primitive failed")


def _too_small(value: Value, size: int) -> InternalError:
    return InternalError(f"{size} bytes of a tensor of {value.nbytes} bytes were to be touched by a compiled loop")


def _unproved(given: Any, wanted: Any) -> InternalError:
    return InternalError(
        f"a tensor of shape {list(given.shape)} and type {given.dtype} came where {list(wanted.shape)} and "
        f"{wanted.dtype} was proved"
    )
