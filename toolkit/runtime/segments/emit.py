"""Code generation: a block becomes the source of one Python function.

Values outside the arena are local variables; constants, arrays over the arena, kernels and prepared primitives are
globals of the function. A line belongs to an operation, so an error's line number says which node failed, and the
hot path pays nothing for it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from toolkit.errors import InternalError, InvalidArgumentError
from toolkit.kernels import variables
from toolkit.kernels.cpu.onednn.library import library
from toolkit.kernels.cpu.onednn.memory import Desc, Memory, address_of, aligned
from toolkit.kernels.cpu.onednn.primitive import Call, Primitive
from toolkit.kernels.registry import Kind
from toolkit.runtime.program import as_outputs, dereference
from toolkit.runtime.segments.arena import Layout
from toolkit.runtime.segments.ir import Block, Operation, Value


class Scratch:
    """A place for intermediate results of a primitive; each instance has one of its own."""

    __slots__ = ("desc",)

    def __init__(self, desc: Desc):
        self.desc = desc


Operand = Value | Memory | Scratch
_SEQUENCES = (tuple, list)
SOURCE_NAME = "<plan>"


class Emitted:
    """A compiled function, still without an arena.

    Attributes:
        owners: the operation behind each line of the source.
        source: for people.
    """

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
        """Bytes of constants in layouts of oneDNN's own, those of loops included."""
        fixed = {id(m): m for _, _, operands in self._emitter.calls for _, m, _ in operands if isinstance(m, Memory)}
        return sum(memory.desc.size for memory in fixed.values()) + sum(each.packed_bytes() for each in self.inner)

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
        found = library() if emitter.calls or emitter.pinned else None
        if found is not None:
            self.namespace["x"], self.namespace["y"] = found.execute, found.execute_held
            self.stream: Any = ctypes.c_void_p(found.new_stream())
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
        for value, name in emitter.pinned.items():
            assert found is not None
            self.namespace[name] = [(found.set_handle, m.handle) for m in self._pinned.get(value, ())]
        exec(emitted.code, self.namespace)  # defines the function
        run = self.namespace["run"]
        assert isinstance(run, FunctionType)
        self.run = run

    def _array(self, layout: Layout, value: Value) -> Any:
        offset = layout.storage[value].offset
        assert value.shape is not None
        return self.arena[offset : offset + value.nbytes].view(value.dtype).reshape(value.shape)

    def _memory(self, layout: Layout, operand: Operand, desc: Desc | None) -> Memory:
        if isinstance(operand, Memory):
            return operand
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
        offset = layout.storage[operand].offset
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


class Emitter:
    """Writes the function line by line.

    Attributes:
        shared: globals that do not depend on the arena.
        arrays: globals that are arrays over the arena, by value.
        views: globals that are parts of such arrays: value and index.
        pinned: for values outside the arena that primitives take, the global with the memories over them.
        inner: globals that are functions of loops.
        calls: globals that are prepared primitives: name, primitive, and (argument, where, descriptor) each.
    """

    def __init__(self, block: Block, layout: Layout, names: dict[str, Any] | None = None):
        self.layout = layout
        self.shared: dict[str, Any] = {
            "array": np.asarray, "contiguous": np.ascontiguousarray, "point": _point, "mismatch": _mismatch,
            "np": np, "copyto": np.copyto, "sequences": frozenset(_SEQUENCES), "bad": _failed, **(names or {}),
        }  # fmt: skip
        self.arrays: dict[Value, str] = {}
        self.views: dict[str, tuple[Value, Any]] = {}
        self.calls: list[tuple[str, Primitive, list[tuple[int, Operand, Desc | None]]]] = []
        self.chosen: list[tuple[Operation, Primitive]] = []
        self.inner: dict[str, Emitted] = {}
        self.pinned: dict[Value, str] = {}
        self.keep: list[Any] = []
        self.block = block
        self._names: dict[Value, str] = {}
        self._lines: list[str] = ["def run(A, R):"]
        self._owners: list[Operation | None] = [None]
        self._operation: Operation | None = None
        self._counter = 0
        self._indent = "    "
        self._open: list[tuple[Value, bool]] = []
        self._branch: str | None = None  # the line that opens it, until there is something in it
        self._drops = _drops(block)

    # -- what the writers of single kinds use ----------------------------------------------------------------

    def line(self, text: str) -> None:
        """A statement on behalf of the operation at hand."""
        if self._branch is not None:
            self._lines.append(self._branch)
            self._owners.append(self._operation)
            self._branch = None
        self._lines.append(self._indent + text)
        self._owners.append(self._operation)

    def fresh(self, prefix: str) -> str:
        self._counter += 1
        return f"{prefix}{self._counter}"

    def share(self, prefix: str, thing: Any) -> str:
        """A global with this value; its name."""
        name = self.fresh(prefix)
        self.shared[name] = thing
        return name

    def read(self, value: Value) -> str:
        """An expression for a value."""
        found = self._names.get(value)
        if found is not None:
            return found
        if value.is_constant:
            found = self.share("k", value.constant)
        elif value in self.layout.storage:
            found = self.fresh("b")
            self.arrays[value] = found
        else:
            raise AssertionError("a value is read before it is made")
        self._names[value] = found
        return found

    def view(self, value: Value, index: Any) -> str:
        """A global that is a part of a value in the arena."""
        name = self.fresh("w")
        self.views[name] = (value, index)
        return name

    def read_owned(self, value: Value) -> str:
        """An expression for a value that somebody may keep: not a view of the arena."""
        text = self.read(value)
        return f"{text}.copy()" if value in self.layout.storage or value in self.layout.exposed else text

    def bind(self, value: Value) -> str:
        """A local variable for a value that is made now."""
        name = self._names[value] = self.fresh("v")
        return name

    def same(self, value: Value, other: Value) -> None:
        """Read `value` where `other` is."""
        self._names[value] = self.read(other)

    def is_local(self, value: Value) -> bool:
        return not value.is_constant and value not in self.layout.storage

    def execute(self, primitive: Primitive, operands: Sequence[tuple[int, Operand, Desc | None]]) -> None:
        """Run a primitive over values in the arena and fixed memories."""
        name = self.fresh("c")
        self.calls.append((name, primitive, list(operands)))
        if self._operation is not None:
            self.chosen.append((self._operation, primitive))
        held = sum(_bytes_of(operand) for _, operand, _ in operands) < _SHORT
        self.line(f"{'y' if held else 'x'}(*{name}) and bad()")

    def scratch(self, desc: Desc) -> Scratch:
        """A buffer of the instance's own with a layout that only oneDNN knows."""
        return Scratch(desc)

    # -- the whole -------------------------------------------------------------------------------------------

    def write(self, writers: dict[str, Callable[[Emitter, Operation], None]]) -> Emitted:
        """The whole function.

        Args:
            writers: kind of operation to what writes it; others are called as kernels.
        """
        for index, value in enumerate(self.block.arguments):
            if value is not None and value.is_needed:
                self._names[value] = f"a{index}"
        used = [f"a{i}" if v is not None and v in self._names else "_" for i, v in enumerate(self.block.arguments)]
        if any(name != "_" for name in used):
            self.line(f"{', '.join(used)}{',' if len(used) == 1 else ''} = A")
        for operation in self.block.live():
            self._operation = operation
            self._enter(operation.predicates)
            writer = writers.get(operation.kind, write_kernel)
            writer(self, operation)
            gone = [self._names[v] for v in self._drops.get(operation, ()) if self._is_droppable(v)]
            if gone:
                self.line(" = ".join([*gone, "None"]))
        self._operation = None
        self._enter([])
        self.line(f"return [{', '.join(map(self.read_owned, self.block.results))}]")
        return Emitted(self, "\n".join(self._lines) + "\n", self._owners)

    def _enter(self, predicates: list[tuple[Value, bool]]) -> None:
        """Open the branch that the next operation is on."""
        if predicates == self._open:
            return
        self._open = predicates
        self._indent = "    "
        self._branch = None
        if predicates:
            terms = [self.read(value) if wanted else f"not {self.read(value)}" for value, wanted in predicates]
            self._branch = f"    if {' and '.join(terms)}:"
            self._indent = "        "

    def _is_droppable(self, value: Value) -> bool:
        return self.is_local(value) and self._names.get(value, "").startswith("v")


_SHORT = 1 << 17  # bytes that a primitive touches: below, it is over before another thread could get going


def _bytes_of(operand: Operand) -> int:
    return operand.nbytes if isinstance(operand, Value) else operand.desc.size


def write_kernel(emitter: Emitter, operation: Operation) -> None:
    """Call the node's own kernel."""
    step = operation.step
    function = emitter.share("f", step.compute)
    stateful = step.kind is Kind.STATEFUL
    inputs = [emitter.read_owned(v) if keeps_inputs(operation) else emitter.read(v) for v in operation.inputs]
    # numbers travel as numpy's scalars, kernels take arrays
    inputs = [
        f"array({text})" if value.shape == () and value.dtype is not None and emitter.is_local(value) else text
        for text, value in zip(inputs, operation.inputs, strict=True)
    ]
    if stateful:
        emitter.line("if R.cancellation.is_cancelled: R.check_cancelled()")
    call = f"{function}({', '.join((['R'] if stateful else []) + inputs)})"
    outputs = operation.outputs
    if len(outputs) == 1:
        name = emitter.bind(outputs[0])
        emitter.line(f"{name} = {call}")
        checked = emitter.share("o", _outputs_of(step))
        emitter.line(f"if {name}.__class__ in sequences: {name}, = {checked}({name})")
    elif outputs:
        checked = emitter.share("o", _outputs_of(step))
        emitter.line(f"{', '.join(map(emitter.bind, outputs))} = {checked}({call})")
    else:
        emitter.line(call)


#: stateful ops that are done with their inputs when they return
_SCRATCH = ("Assign", "ResourceApply", "Apply", "ResourceScatter", "Scatter", "ResourceSparseApply", "SparseApply",
            "Random", "Stateless", "TruncatedNormal", "Assert", "Print", "Save", "Write", "ResourceGather")  # fmt: skip


def keeps_inputs(operation: Operation) -> bool:
    """Whether a kernel may hold on to its inputs after it has returned: in a queue, a list, a stack."""
    if any(value.dtype is None for value in operation.outputs):
        return True
    return operation.step.kind is Kind.STATEFUL and not operation.kind.startswith(_SCRATCH)


def write_select(emitter: Emitter, operation: Operation) -> None:
    """The value of the side that was taken."""
    predicate, taken, other = (emitter.read(value) for value in operation.inputs)
    emitter.line(f"{emitter.bind(operation.output)} = {taken} if {predicate} else {other}")


def write_test(emitter: Emitter, operation: Operation) -> None:
    """The end of a loop."""
    emitter.line(f"if not {emitter.read(operation.inputs[0])}: return None")


def write_loop(emitter: Emitter, operation: Operation) -> None:
    """A loop: a function that makes one turn, called until it says that there are no more."""
    turn = emitter.fresh("l")
    emitter.inner[turn] = operation.attrs["emitted"]
    inputs = [emitter.read_owned(value) for value in operation.inputs]
    count = len(operation.outputs)
    state, constant, after = emitter.fresh("s"), emitter.fresh("i"), emitter.fresh("t")
    emitter.line(f"{state} = [{', '.join(inputs[:count])}]; {constant} = [{', '.join(inputs[count:])}]")
    emitter.line(f"{after} = {turn}({state} + {constant}, R)")
    emitter.line(f"while {after} is not None:")
    emitter.line("    if R.cancellation.is_cancelled: R.check_cancelled()")
    emitter.line(f"    {state} = {after}; {after} = {turn}({after} + {constant}, R)")
    if count:
        emitter.line(f"{', '.join(map(emitter.bind, operation.outputs))}{',' if count == 1 else ''} = {state}")


def write_dereference(emitter: Emitter, operation: Operation) -> None:
    """The present value of a reference variable."""
    step = operation.step

    def value_of(cell: Any) -> Any:
        held = [cell] * (max(step.deref) + 1)
        dereference(step, held)
        return held[step.deref[0]]

    cell = emitter.read(operation.inputs[0])
    name = emitter.bind(operation.output)
    emitter.line(f"{name} = {cell}.value")
    emitter.line(f"if {name} is None: {emitter.share('f', value_of)}({cell})")


def write_read_variable(emitter: Emitter, operation: Operation) -> None:
    """The present array of a resource variable, which must have kept its shape."""
    name = emitter.bind(operation.output)
    cell, shape = emitter.share("k", operation.attrs["cell"]), emitter.share("k", operation.output.shape)
    emitter.line(f"{name} = {cell}.value")
    emitter.line(f"if {name} is None or {name}.shape != {shape}: {emitter.share('f', _unreadable)}({cell}, {shape})")


def _unreadable(cell: Any, shape: tuple[int, ...]) -> None:
    value = variables.read(cell)
    raise InvalidArgumentError(
        f"the variable {cell.name} has shape {list(value.shape)} now, but it was declared as {list(shape)}"
    )


def write_pin(emitter: Emitter, operation: Operation) -> None:
    """Point the primitives that take a value from outside the arena to where it is."""
    value = operation.output
    source, name = emitter.read(operation.inputs[0]), emitter.bind(value)
    memories = emitter.pinned[value] = emitter.fresh("p")
    shape, dtype = emitter.share("k", value.shape), emitter.share("k", value.dtype)
    emitter.line(f"{name} = contiguous({source})")
    emitter.line(f"if {name}.shape != {shape} or {name}.dtype != {dtype}: mismatch({name}, {shape}, {dtype})")
    emitter.line(f"point({memories}, {name})")


def _point(memories: Any, array: Any) -> None:
    address = ctypes.c_void_p(array.__array_interface__["data"][0])
    for set_handle, memory in memories:
        set_handle(memory, address)


def _mismatch(array: Any, shape: tuple[int, ...], dtype: Any) -> None:
    raise InternalError(
        f"a tensor of shape {list(array.shape)} and type {array.dtype} came where {list(shape)} and {dtype} was proved"
    )


def _outputs_of(step: Any) -> Callable[[Any], Sequence[Any]]:
    return lambda result: as_outputs(step, result)


def _drops(block: Block) -> dict[Operation, list[Value]]:
    """The values that each operation uses last."""
    last: dict[Value, Operation] = {}
    for operation in block.live():
        for value in operation.outputs:
            last[value] = operation
        for value in operation.inputs:
            last[value] = operation
    drops: dict[Operation, list[Value]] = {}
    for value, operation in last.items():
        if not value.is_result and not value.is_predicate:
            drops.setdefault(operation, []).append(value)
    return drops


def _failed() -> None:
    raise RuntimeError("a oneDNN primitive failed")
