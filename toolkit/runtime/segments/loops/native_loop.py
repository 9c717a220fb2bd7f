"""Loops that run without the interpreter: bodies of compiled nests, primitives and operations on sequences.

The state of a loop has a place of its own in the arena, so have the elements of lists while they are used. Whatever
is irregular (an element that was never set, an index out of range) leaves everything as it was, and the loop is run
again from its start by the interpreter, which knows what that means.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from toolkit.errors import InternalError
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.turns import LIMIT, STATUS, Moving, Status, Turns
from toolkit.kernels.cpu.native.turns import Sequence as CompiledSequence
from toolkit.kernels.cpu.onednn.library import library, one_thread, require
from toolkit.kernels.cpu.onednn.memory import address_of
from toolkit.runtime.segments.emission.instance import Emitted, Instance
from toolkit.runtime.segments.ir import Operation, Value
from toolkit.runtime.segments.loops.interpreted import Fallback, Interpreted
from toolkit.runtime.segments.loops.sequences import Sequence
from toolkit.runtime.segments.loops.steps import TurnEmitter
from toolkit.runtime.segments.loops.totals import Adder
from toolkit.runtime.segments.loops.values import Held, is_shared
from toolkit.runtime.step import Step as RunningStep

_TURNS = 16  # in one go at first; then somebody may have cancelled
_MOST_TURNS = 100_000
_GO = 0.01  # seconds that one go shall take about
_TRIES = 3  # runs that turn out irregular before compiled code is not tried again


class NativeLoop(Emitted):
    """A compiled loop, still without an arena.

    Args:
        states: how many of the block's arguments change from turn to turn.
        fallback: makes the loop that the interpreter runs.

    Attributes:
        irregular: how many runs the interpreter had to repeat.
    """

    is_whole = True

    def __init__(self, emitter: TurnEmitter, states: int, sequences: list[Sequence], fallback: Interpreted):
        super().__init__(emitter, "def run(A, R):\n    raise NotImplementedError\n", [None, None])
        self.emitter = emitter
        self.states = states
        self.sequences = sequences
        self.fallback = fallback
        self.irregular = 0

    def owner(self, code: CodeType, line: int) -> Operation | None:
        """The operation behind a line of the turn that the interpreter ran."""
        return None if self.fallback.emitted is None else self.fallback.emitted.owner(code, line)

    def instantiate(self) -> NativeInstance:
        return NativeInstance(self)


class NativeInstance(Instance):
    """A loop over an arena of its own: `run` executes all of its turns."""

    def __init__(self, loop: NativeLoop):
        emitter = loop.emitter
        super().__init__(loop, emitter)
        self._loop = loop
        self._fallback: Fallback | None = None
        self._entries: dict[int, Any] = {}
        self._keep: list[Any] = [emitter]
        self._adders: list[tuple[Adder, int]] = []  # and the entries that say how much is put aside
        block = loop.block
        self._places: list[tuple[int, Any]] = []
        self._pointed: list[tuple[int, Value, Any]] = []
        for index, value in enumerate(block.arguments):
            if value is None or value.dtype is None:
                continue
            if value in emitter.layout.storage:
                self._places.append((index, self._array(emitter.layout, value)))
            elif value in emitter.pinned:
                self._pointed.append((index, value, self.namespace[emitter.pinned[value]]))
        self._before = [self.namespace[name] for name in emitter.before]
        text = self._turns()
        self._table: Any = (ctypes.c_int64 * self._length)()
        for entry, address in self._entries.items():
            self._table[entry] = address
        self._table[LIMIT] = _TURNS
        machine = compiler()
        assert machine is not None
        self._function = machine.function(text, {})
        self._pointer = ctypes.c_void_p(ctypes.addressof(self._table))
        self.run = self._run

    # -- compiling -------------------------------------------------------------------------------------------------

    def _turns(self) -> str:
        """The text of the loop; the table's entries are noted."""
        loop, emitter = self._loop, self._loop.emitter
        turns = Turns()
        compiled: dict[Sequence, CompiledSequence] = {}
        for sequence in loop.sequences:
            size = int(np.prod(sequence.element, dtype=np.int64)) * int(sequence.dtype.itemsize)
            compiled[sequence] = turns.sequence(
                size, flags=sequence.reads or sequence.writes, once=sequence.kind == "array"
            )

        def entry(address: int) -> int:
            made = turns.reserve()
            self._entries[made] = address
            return made

        def of(value: Value) -> int:
            return moving[value].entry if value in moving else entry(self._address(value))

        found = library()
        set_handle = entry(ctypes.cast(found.set_handle, ctypes.c_void_p).value or 0) if found is not None else 0
        moving = {
            value: self._moving(turns.reserve(), self.namespace[emitter.pinned[value]], entry, set_handle)
            for value in emitter.floating
        }

        def read_by(value: Value) -> int | Moving:
            return moving[value] if value in moving else of(value)

        for value, slot in emitter.floating.items():
            if slot is not None:
                turns.move_to_push(compiled[slot.sequence], slot.which, moving[value])
        execute = entry(ctypes.cast(found.execute, ctypes.c_void_p).value or 0) if found is not None else 0
        for step in emitter.steps:
            match step[0]:
                case "function":
                    turns.function(entry(step[2].address), entry(self.namespace[step[1]].value))
                case "primitive":
                    handle, stream, count, arguments = self.namespace[step[1]]
                    turns.primitive(
                        execute, entry(handle.value), entry(stream.value), count.value,
                        entry(ctypes.addressof(arguments)),
                    )  # fmt: skip
                case "copy":
                    turns.copy(of(step[1]), of(step[2]), step[1].nbytes)
                case "push":
                    turns.push(compiled[step[1]], of(step[2]))
                case "count":
                    turns.count(compiled[step[1]])
                case "pop":
                    turns.pop(compiled[step[1]], read_by(step[2]))
                case "drop":
                    turns.drop(compiled[step[1]])
                case "get":
                    turns.get(compiled[step[1]], of(step[2]), step[2].dtype.itemsize * 8, read_by(step[3]))
                case "set":
                    turns.set(compiled[step[1]], of(step[2]), step[2].dtype.itemsize * 8, of(step[3]))
                case "total":
                    _, total, *factors = step
                    adder = Adder(total, self._address(total.state))
                    filled = turns.reserve()
                    self._adders.append((adder, filled))
                    places = [entry(address_of(buffer)) for buffer in adder.buffers]
                    handle, stream, count, arguments = adder.whole.prepared
                    turns.total(
                        filled, total.turns, list(zip(places, map(of, factors), total.sizes(), strict=True)),
                        (execute, entry(handle.value), entry(stream.value), count.value,
                         entry(ctypes.addressof(arguments))),
                    )  # fmt: skip
                case "test":
                    turns.test(of(step[1]))
                case _:
                    raise AssertionError(step)
        position = {value: index for index, value in enumerate(loop.block.arguments)}
        self._held = [(Held(one, compiled[one].entry), position[one.argument]) for one in loop.sequences]
        self._same = {
            one: value.constant if value.is_constant else position[value]
            for one in loop.sequences
            if (value := one.same) is not None
        }
        text = turns.text()
        self._length = turns.entries
        return text

    @staticmethod
    def _moving(own: int, setters: list[tuple[Any, Any]], entry: Callable[[int], int], set_handle: int) -> Moving:
        """What must be told where a tensor is: slots are pairs with their offset, memories are handles."""
        slots = [target for _, target in setters if isinstance(target, tuple)]
        memories = [target for _, target in setters if not isinstance(target, tuple)]
        return Moving(
            own,
            tuple((entry(ctypes.addressof(slot)), offset) for slot, offset in slots),
            tuple(entry(handle.value) for handle in memories),
            set_handle,
        )

    def _address(self, value: Value) -> int:
        if value.is_constant:
            array = np.ascontiguousarray(value.constant)
            self._keep.append(array)
            return address_of(array)
        return self._base + self._loop.layout.offset(value)

    # -- running ---------------------------------------------------------------------------------------------------

    def _run(self, arguments: list[Any], running: RunningStep) -> list[Any]:
        """All turns: the final state from the initial state and what every turn takes from outside."""
        if self._loop.irregular >= _TRIES:
            return self._interpreted(arguments, running)
        table = self._table
        for index, place in self._places:
            given = arguments[index]
            if given.shape != place.shape or given.dtype != place.dtype:
                raise _unproved(given, place)
            np.copyto(place, given)
        for index, value, setters in self._pointed:
            given = np.ascontiguousarray(arguments[index])
            if given.shape != value.shape or given.dtype != value.dtype:
                raise _unproved(given, value)
            arguments[index] = given
            address = ctypes.c_void_p(address_of(given))
            for set_address, target in setters:
                set_address(target, address)
        for held, index in self._held:
            if not held.bind(arguments[index], table, running):
                return self._interpreted(arguments, running)
        if is_shared([held for held, _ in self._held]):
            return self._interpreted(arguments, running)
        self._pack()
        for _, filled in self._adders:
            table[filled] = 0
        call = self._function.call
        while True:
            began = time.perf_counter()
            call(self._pointer)
            match table[STATUS]:
                case Status.DONE:
                    break
                case Status.PAUSED:
                    if running.cancellation.is_cancelled:
                        running.check_cancelled()
                    table[LIMIT] = _turns(table[LIMIT], time.perf_counter() - began)
                case Status.GROW:
                    for held, _ in self._held:
                        held.grow(table)
                case Status.IRREGULAR:
                    self._loop.irregular += 1
                    return self._interpreted(arguments, running)
                case _:
                    raise _failed()
        if not all(adder.add_rest(table[filled]) for adder, filled in self._adders):
            raise _failed()
        results: list[Any] = list(arguments[: self._loop.states])
        for index, place in self._places:
            if index < len(results):
                results[index] = place.copy() if place.shape else place[()]
        for held, _ in self._held:
            same = self._same.get(held.sequence)
            changed = held.finish(table, arguments[same] if isinstance(same, int) else same)
            if held.sequence.result is not None:
                results[held.sequence.result] = changed
        return results

    def _pack(self) -> None:
        """Pack what stays what it is over the turns."""
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


def _turns(made: int, seconds: float) -> int:
    """How many turns to make next, when so many took so long."""
    return max(1, min(_MOST_TURNS, int(made * min(8.0, _GO / max(seconds, 1e-6)))))


def _failed() -> Exception:
    return RuntimeError("a oneDNN primitive failed")


def _unproved(given: Any, wanted: Any) -> InternalError:
    return InternalError(
        f"a tensor of shape {list(given.shape)} and type {given.dtype} came where {list(wanted.shape)} and "
        f"{wanted.dtype} was proved"
    )
