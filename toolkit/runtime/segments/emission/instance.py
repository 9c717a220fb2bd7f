"""The generated function made ready to run: an arena, arrays and memories over it, prepared calls."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.onednn.library import library, require
from toolkit.kernels.cpu.onednn.memory import Desc, Memory, address_of, aligned
from toolkit.kernels.cpu.onednn.primitive import Call, Primitive
from toolkit.kernels.types import Array
from toolkit.runtime.segments.emission.arena import Layout
from toolkit.runtime.segments.ir import Operation, Value

if TYPE_CHECKING:
    from toolkit.runtime.segments.emission.emit import Emitter


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
class Prepared:
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


#: what a compiled loop goes over: a tensor, perhaps from an element on, a number, or what it works with
Region = Value | Array | int | tuple[Value | Array, int] | Workspace | Prepared | Nested
SOURCE_NAME = "<plan>"


class Emitted:
    """A compiled function, still without an arena.

    Attributes:
        owners: the operation behind each line of the source.
        source: for people.
        is_whole: it is a loop with all of its turns.
        initialises: it assigns variables what depends on constants alone, and does nothing else.
    """

    is_whole = False
    initialises = False

    def __init__(self, emitter: Emitter, source: str, owners: list[Operation | None]):
        self.source = source
        self.owners = owners
        self.code: CodeType = compile(source, SOURCE_NAME, "exec")
        self.body = next(constant for constant in self.code.co_consts if isinstance(constant, CodeType))
        self.inner = list(emitter.inner.values())
        self.block = emitter.block
        self._emitter = emitter

    def owner(self, code: CodeType, line: int) -> Operation | None:
        """The operation behind a line of this function or of a loop in it."""
        if code is self.body:
            return self.owners[line - 1]
        return next((found for each in self.inner if (found := each.owner(code, line)) is not None), None)

    @property
    def layout(self) -> Layout:
        return self._emitter.layout

    def primitives(self) -> dict[Operation, list[str]]:
        """The implementations that oneDNN chose, by operation."""
        found: dict[Operation, list[str]] = {}
        for operation, primitive in self._emitter.chosen:
            found.setdefault(operation, []).append(primitive.implementation)
        return found

    def packed_bytes(self) -> int:
        """Bytes of constants in layouts that primitives and kernels want, those of loops included."""
        emitter = self._emitter
        prepared = [region.operands for _, given in emitter.natives for region in given if isinstance(region, Prepared)]
        lists = [*(operands for _, _, operands in emitter.calls), *prepared]
        fixed = {id(memory): memory for operands in lists for _, memory, _ in operands if isinstance(memory, Memory)}
        kept = sum(thing.nbytes for thing in emitter.keep if isinstance(thing, np.ndarray))
        return kept + sum(memory.desc.size for memory in fixed.values()) + sum(e.packed_bytes() for e in self.inner)

    def instantiate(self) -> Instance:
        """The function with an arena of its own; one thread may run it at a time."""
        return Instance(self, self._emitter)


class Instance:
    """A function over its own arena.

    Attributes:
        run: (arguments, running step) -> results.
        namespace: the function's globals.
    """

    def __init__(self, emitted: Emitted, emitter: Emitter):
        self.arena = aligned(emitter.layout.size)
        self._base = address_of(self.arena)
        self._memories: dict[tuple[int, int], Memory] = {}
        self._pinned: dict[Value, list[Memory]] = {}
        self._scratches: dict[Scratch, Memory] = {}
        self.namespace: dict[str, Any] = dict(emitter.shared)
        found = library() if emitter.calls or emitter.workspace else None
        if found is not None:
            self.namespace["x"], self.namespace["y"] = found.execute, found.execute_held
            self.stream: Any = ctypes.c_void_p(found.new_stream())
        self._workspace = aligned(emitter.workspace)
        self._workspace.fill(0)  # what is multiplied along without being used must not be slow numbers
        needed = [desc.size for _, primitive, _ in emitter.calls if (desc := primitive.scratch) is not None]
        self.scratch = aligned(max(needed, default=0))
        self._calls: list[Call] = []
        for value, name in emitter.arrays.items():
            self.namespace[name] = self._array(emitter.layout, value)
        for name, loop in emitter.inner.items():
            instance = loop.instantiate()
            self.namespace[name] = instance.run
            emitter.keep.append(instance)
        for name, (value, index) in emitter.views.items():
            self.namespace[name] = self._array(emitter.layout, value)[index]
        for name, primitive, operands in emitter.calls:
            memories = [(arg, self._memory(emitter.layout, operand, desc)) for arg, operand, desc in operands]
            call = Call(primitive, self.stream, memories, self.scratch)
            self._calls.append(call)
            self.namespace[name] = call.prepared
        self._addresses: list[Any] = []
        slots: dict[Value, list[Any]] = {}
        for name, operands in emitter.natives:
            self.namespace[name] = self._operands(emitter.layout, operands, slots)
        for value, name in emitter.places.items():
            self.namespace[name] = Place(value, slots.get(value, ()))
        lost = [
            value for value in (*self._pinned, *slots) if value not in emitter.pinned and value not in emitter.places
        ]
        assert not lost, "a compiled operation takes what has no place"
        for value, name in emitter.pinned.items():
            handles = [(require().set_handle, memory.handle) for memory in self._pinned.get(value, ())]
            self.namespace[name] = [*handles, *((_fill, slot) for slot in slots.get(value, ()))]
        exec(emitted.code, self.namespace)  # defines the function
        run = self.namespace["run"]
        assert isinstance(run, FunctionType)
        self.run = run

    def close(self) -> None:
        """Give the arena back at once: the function and its globals hold each other."""
        self.namespace.clear()

    def _array(self, layout: Layout, value: Value) -> Any:
        offset = layout.offset(value)
        assert value.shape is not None
        return self.arena[offset : offset + value.nbytes].view(value.dtype).reshape(value.shape)

    def _operands(self, layout: Layout, operands: Sequence[Region], slots: dict[Value, list[Any]]) -> Any:
        """The addresses of a compiled loop's operands; those of values outside the arena are filled in later."""
        addresses: Any = (ctypes.c_void_p * len(operands))()
        for index, region in enumerate(operands):
            if isinstance(region, int):
                addresses[index] = region
                continue
            if isinstance(region, Workspace):
                addresses[index] = address_of(self._workspace) + region.offset
                continue
            if isinstance(region, Prepared):
                addresses[index] = self._prepare(layout, region)
                continue
            if isinstance(region, Nested):
                addresses[index] = self._operands(layout, region.operands, slots).value
                continue
            operand, offset = _from(region)
            if not isinstance(operand, Value):
                addresses[index] = address_of(operand) + offset
            elif operand in layout.storage:
                addresses[index] = self._base + layout.offset(operand) + offset
            else:
                slot = ctypes.c_void_p.from_buffer(addresses, index * ctypes.sizeof(ctypes.c_void_p))
                slots.setdefault(operand, []).append((slot, offset))
        self._addresses.append(addresses)
        return ctypes.c_void_p(ctypes.addressof(addresses))

    def _prepare(self, layout: Layout, region: Prepared) -> int:
        """The address of a primitive's arguments; they are its own, for several threads may be in it."""
        found = library()
        assert found is not None
        memories = [(arg, self._memory(layout, operand, desc)) for arg, operand, desc in region.operands]
        call = Call(region.primitive, ctypes.c_void_p(found.new_stream()), memories)
        handle, stream, count, arguments = call.prepared
        execute = ctypes.cast(found.execute, ctypes.c_void_p).value
        numbers: Any = np.array(
            [execute, handle.value, stream.value, count.value, ctypes.addressof(arguments), *region.numbers], np.int64
        )
        self._calls.append(call)
        self._addresses.append(numbers)
        return address_of(numbers)

    def _memory(self, layout: Layout, operand: Operand, desc: Desc | None) -> Memory:
        if isinstance(operand, Memory):
            return operand
        if isinstance(operand, Workspace):
            assert desc is not None
            return Memory(desc, address_of(self._workspace) + operand.offset, keep=(self._workspace, desc))
        if isinstance(operand, Scratch):
            found = self._scratches.get(operand)
            if found is None:
                buffer = aligned(operand.desc.size)
                found = Memory(operand.desc, address_of(buffer), keep=(buffer, operand.desc))
                self._scratches[operand] = found
            return found
        assert desc is not None
        if operand not in layout.storage:
            return self._outside(operand, desc)
        offset = layout.offset(operand)
        found = self._memories.get((offset, id(desc)))
        if found is None:
            found = self._memories[(offset, id(desc))] = Memory(desc, self._base + offset, keep=(self.arena, desc))
        return found

    def _outside(self, value: Value, desc: Desc) -> Memory:
        """A memory that is pointed to a value's array when that is known."""
        known = self._pinned.setdefault(value, [])
        for memory in known:
            if memory.desc is desc:
                return memory
        memory = Memory(desc, self._base, keep=desc)
        known.append(memory)
        return memory


def _from(region: Value | Array | tuple[Value | Array, int]) -> tuple[Value | Array, int]:
    """A tensor, and how many bytes in front of where a loop starts."""
    if not isinstance(region, tuple):
        return region, 0
    thing, first = cast("tuple[Any, int]", region)
    return thing, first * int(thing.dtype.itemsize)


def _fill(place: tuple[Any, int], address: ctypes.c_void_p) -> None:
    slot, offset = place
    slot.value = (address.value or 0) + offset


class Place:
    """Where compiled loops find a variable, which is told to them again when it has another array.

    Args:
        value: what type and shape it must have.
        slots: the addresses to fill in.

    Attributes:
        array: a weak reference to the array that they have, for a strong one would make writers copy it.
    """

    __slots__ = ("_slots", "_value", "array")

    def __init__(self, value: Value, slots: Sequence[Any]):
        self._value = value
        self._slots = slots
        self.array: Callable[[], Any] = _nothing

    def move(self, array: Array) -> None:
        """
        Raises:
            InvalidArgumentError: the variable has changed its shape.
        """
        if array.shape != self._value.shape or array.dtype != self._value.dtype:
            raise InvalidArgumentError(
                f"the variable is {array.dtype}{list(array.shape)} now; it was {self._value.dtype}"
                f"{list(self._value.shape or ())} when the program was compiled"
            )
        for slot, offset in self._slots:
            slot.value = address_of(array) + offset
        self.array = weakref.ref(array)


def _nothing() -> None:
    return None
