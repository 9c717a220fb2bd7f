"""The generated function made ready to run: an arena, arrays and memories over it, prepared calls."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from toolkit.compiler.backends.base import SOURCE_NAME, Entry
from toolkit.compiler.backends.cpu.emission.arena import ArenaLayout
from toolkit.compiler.backends.cpu.emission.marked import CheckedSource, MarkedSource
from toolkit.compiler.context import RunningStep
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.errors import InternalError, InvalidArgumentError
from toolkit.kernels.cpu.memory import guard
from toolkit.kernels.cpu.memory.addresses import Pinned, Slot, Table, aligned
from toolkit.kernels.cpu.onednn.library import library, require
from toolkit.kernels.cpu.onednn.memory import Desc, Memory
from toolkit.kernels.cpu.onednn.primitive import Primitive, PrimitiveCall, new_stream, table_of
from toolkit.kernels.types import Array

if TYPE_CHECKING:
    from toolkit.compiler.backends.cpu.emission.emit import Emitter


class Scratch:
    """A place for intermediate results of a primitive; each instance has one of its own."""

    __slots__ = ("desc",)

    def __init__(self, desc: Desc):
        self.desc = desc


@dataclass(frozen=True, slots=True)
class Workspace:
    """A part of the memory that operations use one after the other, for nothing that outlives them.

    Attributes:
        offset: bytes from its start.
    """

    offset: int


Operand = Value | Memory | Scratch | Workspace


@dataclass(frozen=True, slots=True, eq=False)
class PreparedPrimitive:
    """A primitive that machine code executes: function, handle, stream, number of arguments and arguments, int64s.

    Attributes:
        operands: what it takes.
        numbers: int64s that follow.
    """

    primitive: Primitive
    operands: Sequence[tuple[int, Operand, Desc | None]]
    numbers: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """The operands of a compiled function that another one calls."""

    operands: Sequence[Region]


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """What a compiled function is given the address of, and the bytes that it touches: its geometry says which.

    Attributes:
        thing: a tensor, or what it works with.
        stop, start: the bytes from the address on.
        offset: bytes from the start of `thing` to the address.
    """

    thing: Value | Array | Workspace
    stop: int
    start: int = 0
    offset: int = 0

    def room(self) -> int | None:
        """Bytes of the thing; None where that is not known yet."""
        return None if isinstance(self.thing, Workspace) else int(self.thing.nbytes)

    def fits(self) -> bool:
        """Whether the thing has these bytes, as far as that is known."""
        room = self.room()
        return room is None or (self.offset + self.start >= 0 and self.offset + self.stop <= room)


def whole(array: Array) -> Span:
    """All of an array that is kept for compiled code."""
    return Span(array, int(array.nbytes))


#: what a compiled function takes: an address, a number, or what it works with
Region = Span | int | PreparedPrimitive | Nested


class Emitted:
    """A compiled function, still without an arena.

    Attributes:
        owners: the operation behind each line of the source.
        source: for people.
        is_whole: it is a loop with all of its iterations.
        initialises: it assigns variables what depends on constants alone, and does nothing else.
    """

    is_whole = False
    initialises = False
    replays = False

    def __init__(self, emitter: Emitter, source: str, owners: list[Operation | None]):
        self.source = source
        self.owners = owners
        self.code: CodeType = compile(source, SOURCE_NAME, "exec")
        self.body = next(constant for constant in self.code.co_consts if isinstance(constant, CodeType))
        self.inner = list(emitter.inner.values())
        self.block = emitter.block
        self._emitter = emitter
        self._marked: MarkedSource | None = None
        self._checked: CheckedSource | None = None

    def marked(self) -> MarkedSource:
        """The source that notes the time behind each thing that is done."""
        if self._marked is None:
            self._marked = MarkedSource(self.source, self.owners, self._emitter.marks, self.block, self.layout)
        return self._marked

    def checked(self) -> CheckedSource:
        """The source that looks at the floating tensors that are made."""
        if self._checked is None:
            emitter = self._emitter
            self._checked = CheckedSource(self.source, self.owners, emitter.marks, emitter.known)
        return self._checked

    def owner(self, code: CodeType, line: int) -> Operation | None:
        """The operation behind a line of this function or of a loop in it."""
        if code is self.body:
            return self.owners[line - 1]
        for watched in (self._marked, self._checked):
            if watched is not None and code is watched.body:
                return watched.owners[line - 1]
        return next((found for each in self.inner if (found := each.owner(code, line)) is not None), None)

    @property
    def layout(self) -> ArenaLayout:
        return self._emitter.layout

    def all(self) -> Iterator[Emitted]:
        """This function and those of the loops in it."""
        yield self
        for each in self.inner:
            yield from each.all()

    def named(self) -> Iterator[tuple[str, str]]:
        """The nodes whose outputs are outside the arena, and the local variables that hold them."""
        for operation in self.block.operations:
            for index, value in enumerate(operation.outputs):
                local = self._emitter.local(value)
                if local is not None:
                    yield f"{operation.name}:{index}" if index else operation.name, local

    def inputs_of(
        self, operation: Operation, there: Mapping[str, Any], everywhere: Mapping[str, Any]
    ) -> list[Any] | None:
        """What the node behind an operation was given, None for what is not to be found; None if it is not one node.

        Args:
            there, everywhere: the variables of the function, and of its module.
        """
        if len(operation.inputs) != len(operation.step.inputs) or len(operation.steps) != 1:
            return None
        names = [self._emitter.known(value) for value in operation.inputs]
        return [
            value.constant if value.is_constant else there.get(name, everywhere.get(name))
            for value, name in zip(operation.inputs, names, strict=True)
        ]

    def primitives(self) -> dict[Operation, list[str]]:
        """The implementations that oneDNN chose, by operation."""
        found: dict[Operation, list[str]] = {}
        for operation, primitive in self._emitter.chosen:
            found.setdefault(operation, []).append(primitive.implementation)
        return found

    def packed(self) -> dict[int, int]:
        """Constants in layouts that primitives and kernels want, loops included: bytes by what tells shared ones."""
        emitter = self._emitter
        prepared = [
            region.operands for _, given in emitter.natives for region in given if isinstance(region, PreparedPrimitive)
        ]
        lists = [*(operands for _, _, operands in emitter.calls), *prepared]
        found = {memory.start: memory.size for each in lists for _, memory, _ in each if isinstance(memory, Memory)}
        arrays: list[Any] = [thing for thing in emitter.keep if isinstance(thing, np.ndarray)]
        found |= {id(array): array.nbytes for array in arrays}
        for each in self.inner:
            found |= each.packed()
        return found

    def instantiate(self) -> ArenaInstance:
        """The function with an arena of its own; one thread may run it at a time."""
        return ArenaInstance(self, self._emitter)


class ArenaInstance:
    """A function over its own arena.

    Attributes:
        run: (arguments, running step) -> results.
        namespace: the function's globals.
        calls, tables: prepared primitives, and what compiled functions take, by the names of those globals.
    """

    def __init__(self, emitted: Emitted, emitter: Emitter):
        layout = emitter.layout
        if guard.is_on():
            self.arena = guard.zoned(layout.size, "the arena", layout.pieces())
        else:
            self.arena = aligned(layout.size)
        self._memories: dict[tuple[int, int], Memory] = {}
        self._pinned: dict[Value, list[Memory]] = {}
        self._slots: dict[Value, list[Slot]] = {}
        self._scratches: dict[Scratch, Memory] = {}
        self.namespace: dict[str, Any] = dict(emitter.shared)
        found = library() if emitter.calls or emitter.workspace else None
        if found is not None:
            self.namespace["x"], self.namespace["y"] = found.execute, found.execute_held
            self.stream: Any = new_stream()
        self._workspace = aligned(emitter.workspace, "the workspace")
        self._workspace.fill(0)  # what is multiplied along without being used must not be slow numbers
        needed = [desc.size for _, primitive, _ in emitter.calls if (desc := primitive.scratch) is not None]
        self.scratch = aligned(max(needed, default=0), "scratch memory of primitives")
        self.calls: dict[str, PrimitiveCall] = {}
        for value, name in emitter.arrays.items():
            self.namespace[name] = self._array(layout, value)
        for name, loop in emitter.inner.items():
            instance = loop.instantiate()
            self.namespace[name] = instance.run
            emitter.keep.append(instance)
        for name, (value, index) in emitter.views.items():
            self.namespace[name] = self._array(layout, value)[index]
        for name, primitive, operands in emitter.calls:
            call = self.calls[name] = self._call(layout, primitive, self.stream, operands, self.scratch)
            self.namespace[name] = call.prepared
        self.tables: dict[str, Table] = {}
        for name, operands in emitter.natives:
            table = self.tables[name] = self._operands(layout, operands)
            self.namespace[name] = table.pointer
        told = {value: self._told(value) for value in (*emitter.pinned, *emitter.places)}
        assert all(value in told for value in (*self._pinned, *self._slots)), "an operand has no place"
        for value, name in emitter.places.items():
            self.namespace[name] = VariableBinding(value, told[value])
        for value, name in emitter.pinned.items():
            self.namespace[name] = told[value]
        exec(emitted.code, self.namespace)  # defines the function
        run = self.namespace["run"]
        assert isinstance(run, FunctionType)
        self.run = run
        self._emitted = emitted
        self._run_marked: FunctionType | None = None
        self._run_checked: FunctionType | None = None

    def run_marked(
        self, arguments: Sequence[Any], running: RunningStep
    ) -> tuple[list[Any], Sequence[Entry], list[int]]:
        """See `Instance.run_marked`."""
        marked = self._emitted.marked()
        namespace = self.namespace
        if self._run_marked is None:
            namespace["now_"] = time.perf_counter_ns
            exec(marked.code, namespace)
            self._run_marked, namespace["run"] = namespace["run"], self.run
            assert self._run_marked is not None
        marks = namespace["marks_"] = [0] * (len(marked.entries) + 1)
        marks[-1] = time.perf_counter_ns()
        return self._run_marked(arguments, running), marked.entries, marks

    def run_checked(self, arguments: Sequence[Any], running: RunningStep) -> tuple[list[Any], list[Operation]]:
        """See `Instance.run_checked`."""
        checked = self._emitted.checked()
        namespace = self.namespace
        if self._run_checked is None:
            for name, value in checked.arrays.items():
                namespace[name] = self._array(self._emitted.layout, value)
            exec(checked.code, namespace)
            self._run_checked, namespace["run"] = namespace["run"], self.run
            assert self._run_checked is not None
        bad: list[Operation] = []

        def look(number: int, *values: Any) -> None:
            if not all(map(_is_finite, values)):
                bad.append(checked.operations[number])

        namespace["look_"] = look
        return self._run_checked(arguments, running), bad

    def close(self) -> None:
        """Give the arena back at once: the function and its globals hold each other."""
        self.namespace.clear()

    def _array(self, layout: ArenaLayout, value: Value) -> Any:
        offset = layout.offset(value)
        assert value.shape is not None
        return np.ndarray(value.shape, value.dtype, self.arena, offset)

    def _told(self, value: Value) -> Pinned:
        """Who must be told where a value outside the arena is."""
        handles = [(require().set_handle, memory.handle) for memory in self._pinned.get(value, ())]
        return Pinned(value.nbytes, self._slots.get(value, []), handles)

    def _operands(self, layout: ArenaLayout, operands: Sequence[Region]) -> Table:
        """The addresses of a compiled loop's operands; those of values outside the arena are filled in later."""
        table = Table(len(operands))
        for index, region in enumerate(operands):
            match region:
                case int():
                    table.number(index, region)
                case PreparedPrimitive():
                    table.table(index, self._prepare(layout, region))
                case Nested():
                    table.table(index, self._operands(layout, region.operands))
                case Span(Workspace(start), stop, first, offset):
                    table.point(index, self._workspace, stop, first, start + offset)
                case Span(Value() as value, stop, first, offset) if value in layout.storage:
                    table.point(index, self._array(layout, value), stop, first, offset)
                case Span(Value() as value, stop, first, offset):
                    if not region.fits():
                        raise InternalError(f"{stop} bytes of a tensor of {value.nbytes} were to be touched")
                    self._slots.setdefault(value, []).append(table.slot(index, offset))
                case Span(array, stop, first, offset):
                    table.point(index, cast("Array", array), stop, first, offset)
        return table

    def _prepare(self, layout: ArenaLayout, region: PreparedPrimitive) -> Table:
        """A primitive's arguments for machine code; they are its own, for several threads may be in it."""
        return table_of(self._call(layout, region.primitive, new_stream(), region.operands), region.numbers)

    def _call(
        self, layout: ArenaLayout, primitive: Primitive, stream: Any,
        operands: Sequence[tuple[int, Operand, Desc | None]], scratch: Array | None = None,
    ) -> PrimitiveCall:  # fmt: skip
        memories = [(arg, self._memory(layout, operand, desc)) for arg, operand, desc in operands]
        return PrimitiveCall(primitive, stream, memories, scratch)

    def _memory(self, layout: ArenaLayout, operand: Operand, desc: Desc | None) -> Memory:
        if isinstance(operand, Memory):
            return operand
        if isinstance(operand, Workspace):
            assert desc is not None
            return Memory(desc, self._workspace, operand.offset)
        if isinstance(operand, Scratch):
            found = self._scratches.get(operand)
            if found is None:
                found = Memory(operand.desc, aligned(operand.desc.size, "a scratch tensor"))
                self._scratches[operand] = found
            return found
        assert desc is not None
        if operand not in layout.storage:
            return self._outside(operand, desc)
        key = (layout.offset(operand), id(desc))
        found = self._memories.get(key)
        if found is None or found.size > operand.nbytes:
            found = self._memories[key] = Memory(desc, self._array(layout, operand))
        return found

    def _outside(self, value: Value, desc: Desc) -> Memory:
        """A memory that is pointed to a value's array when that is known."""
        known = self._pinned.setdefault(value, [])
        for memory in known:
            if memory.desc is desc:
                return memory
        memory = Memory(desc)
        if memory.size > value.nbytes:
            raise InternalError(f"{memory.size} bytes of a tensor of {value.nbytes} were to be given to oneDNN")
        known.append(memory)
        return memory


def _is_finite(value: Any) -> bool:
    """Whether every number is finite; a sum takes no memory, and says most of it."""
    if not isinstance(value, np.ndarray | np.generic):  # of a branch that was not taken
        return True
    array = cast("Array", value)
    return bool(np.isfinite(np.sum(array)) or np.isfinite(array).all())


class VariableBinding:
    """Where compiled loops find a variable, which is told to them again when it has another array.

    Args:
        value: what type and shape it must have.
        told: who wants to know its address.

    Attributes:
        array: a weak reference to the array that they have, for a strong one would make writers copy it.
    """

    __slots__ = ("_told", "_value", "array")

    def __init__(self, value: Value, told: Pinned):
        self._value = value
        self._told = told
        self.array: Callable[[], Any] = _nothing

    def move(self, array: Array) -> None:
        """
        Raises:
            InvalidArgumentError: the variable has changed its type or shape.
        """
        if array.shape != self._value.shape or array.dtype != self._value.dtype:
            raise InvalidArgumentError(
                f"the variable is {array.dtype}{list(array.shape)} now; it was {self._value.dtype}"
                f"{list(self._value.shape or ())} when the program was compiled"
            )
        self._told.point(array)
        self.array = weakref.ref(array)


def _nothing() -> None:
    return None
