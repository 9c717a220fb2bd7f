"""Code generation: a block becomes the source of one Python function.

Values outside the arena are local variables; constants, arrays over the arena, kernels and prepared primitives are
globals of the function. A line belongs to an operation, so an error's line number says which node failed, and the
hot path pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from toolkit.compiler.backends.cpu.emission.arena import ArenaLayout
from toolkit.compiler.backends.cpu.emission.instance import Emitted, Nested, Operand, Region, Scratch, Span, Workspace
from toolkit.compiler.backends.cpu.emission.marked import Mark
from toolkit.compiler.backends.cpu.emission.sizes import check_primitive, check_regions
from toolkit.compiler.backends.python import last_uses
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Loop, Test
from toolkit.compiler.ir.operations.memory import Alias
from toolkit.compiler.ir.value import Value
from toolkit.errors import InternalError
from toolkit.kernels.cpu.memory import guard
from toolkit.kernels.cpu.memory.addresses import fresh, held
from toolkit.kernels.cpu.native.compiler import Function
from toolkit.kernels.cpu.onednn.memory import Desc
from toolkit.kernels.cpu.onednn.primitive import Primitive
from toolkit.target.target import Target

T = TypeVar("T")

_SEQUENCES = (tuple, list)


class Emitter:
    """Writes the function line by line.

    Attributes:
        shared: globals that do not depend on the arena.
        arrays: globals that are arrays over the arena, by value.
        views: globals that are parts of such arrays: value and index.
        pinned: for values outside the arena that primitives take, the global with those who must be told where.
        inner: globals that are functions of loops.
        calls: globals that are prepared primitives: name, primitive, and (argument, where, descriptor) each.
        natives: globals that are addresses of compiled loops' operands: name, and what lies there; numbers are given
            in the places of addresses.
        places: globals that tell compiled loops where a variable's array is, by the value that stands for it.
        workspace: bytes of memory that operations use one after the other.
        alone: how many multiplications a product has at least that is made by several threads.
        donated: values that are computed in arrays of their own, for variables to have.
        marks: the place behind each operation that has lines.
        target: the processor that code is made for.
    """

    def __init__(self, block: Block, layout: ArenaLayout, target: Target, donated: Container[Value] = ()):
        self.layout = layout
        self.target = target
        self.donated = donated
        has_loops = any(isinstance(operation, Loop) for operation in block)
        self.alone = target.threads.product_by_loops if has_loops else target.threads.product
        self.shared: dict[str, Any] = {
            "array": np.asarray, "contiguous": np.ascontiguousarray, "point": _point, "mismatch": _mismatch,
            "np": np, "copyto": np.copyto, "sequences": frozenset(_SEQUENCES), "bad": _failed, "empty": np.empty,
        }  # fmt: skip
        self._guards = guard.is_on()
        if self._guards:
            self.shared.update(contiguous=held, empty=fresh, look=guard.check, enter=guard.enter)
        self.arrays: dict[Value, str] = {}
        self.views: dict[str, tuple[Value, Any]] = {}
        self.calls: list[tuple[str, Primitive, list[tuple[int, Operand, Desc | None]]]] = []
        self.natives: list[tuple[str, list[Region]]] = []
        self.places: dict[Value, str] = {}
        self.workspace = 0
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
        self._alike: dict[Hashable, Any] = {}
        self._functions: dict[tuple[Function, bool], str] = {}  # globals that are compiled functions
        self._indent = "    "
        self._open: list[tuple[Value, bool]] = []
        self._branch: str | None = None  # the line that opens it, until there is something in it
        self._drops = last_uses(block)
        self.marks: list[Mark] = []

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

    def ends(self, value: Value, operation: Operation) -> bool:
        """Whether an operation is the last to take a tensor that nobody but the function has, as far as it knows."""
        if value.dtype is None or value in self.layout.exposed:
            return False
        return value in self._drops.get(operation, ()) and self._is_droppable(value)

    def known(self, value: Value) -> str:
        """The name of a value in the function, "" if it has none."""
        return self._names.get(value, "")

    def local(self, value: Value) -> str | None:
        """The local variable that holds a value, if one does."""
        return self._names.get(value) if self.is_local(value) else None

    def is_local(self, value: Value) -> bool:
        return not value.is_constant and value not in self.layout.storage

    def execute(self, primitive: Primitive, operands: Sequence[tuple[int, Operand, Desc | None]]) -> None:
        """Run a primitive over values in the arena and fixed memories.

        Raises:
            NotSupportedError: it would touch more bytes than there are.
        """
        check_primitive(self.at(), primitive, operands)
        name = self.fresh("c")
        self.calls.append((name, primitive, list(operands)))
        if self._operation is not None:
            self.chosen.append((self._operation, primitive))
        is_short = sum(_bytes_of(operand) for _, operand, _ in operands) < self.target.threads.released
        self.line(f"{'y' if is_short else 'x'}(*{name}) and bad()")

    def execute_native(self, function: Function, operands: Sequence[Region]) -> None:
        """Run a compiled loop over values in the arena and constants."""
        self.line(self.native(function, operands, sum(_touched(operand) for operand in operands)))

    def alike(self, key: Hashable, make: Callable[[], T]) -> T:
        """What the first operation with a key needed to be made, for all that are like it.

        Args:
            key: all that it follows from, with a thing of the writer's own in it.
        """
        found = self._alike.get(key)
        if found is None:
            found = self._alike[key] = make()
        return found

    def execute_checked(self, function: Function, operands: Sequence[Region]) -> None:
        """Run a compiled function that returns oneDNN's status."""
        self.line(f"{self.native(function, operands, sum(map(_touched, operands)))} and bad()")

    def native(self, function: Function, operands: Sequence[Region], touched: int) -> str:
        """An expression: the call of a compiled function that goes over so many bytes.

        Raises:
            NotSupportedError: it would touch more than there are.
        """
        check_regions(self.at(), operands)
        name = self.fresh("n")
        self.natives.append((name, list(operands)))
        is_short = touched < self.target.threads.released
        called = self._functions.get((function, is_short))
        if called is None:
            called = self.share("f", function.call_held if is_short else function.call)
            self._functions[function, is_short] = called
        return f"{called}({name})"

    def at(self) -> Operation:
        """The operation at hand."""
        assert self._operation is not None
        return self._operation

    def place(self, value: Value) -> str:
        """A global that is told where the array of a value outside the arena is (`instance.VariableBinding`)."""
        name = self.places[value] = self.fresh("p")
        return name

    def kept(self, array: Any) -> Any:
        """An array that machine code is told the address of."""
        if self._guards and isinstance(array, np.ndarray):
            array = held(array, f"a constant of '{self.at().name}'")
        self.keep.append(array)
        return array

    def stays(self, value: Value) -> bool:
        """Whether a value is the same every time that what is written here runs: then it may be `packed`."""
        return False

    def packed(self, value: Value, plain: Desc, wanted: Desc) -> tuple[Operand, Desc | None]:
        """A value that stays, in the layout that a primitive wants."""
        raise NotImplementedError

    def scratch(self, desc: Desc) -> Scratch:
        """A buffer of the instance's own with a layout that only oneDNN knows."""
        return Scratch(desc)

    def passing(self, size: int) -> Workspace:
        """The start of the memory that operations use one after the other, with so many bytes at least."""
        self.workspace = max(self.workspace, size)
        return Workspace(0)

    # -- the whole -------------------------------------------------------------------------------------------

    def write(self, writers: Writers, otherwise: Writer) -> Emitted:
        """The whole function.

        Args:
            writers: what writes which operations.
            otherwise: what writes the others.
        """
        for index, value in enumerate(self.block.arguments):
            if value is not None and value.is_needed:
                self._names[value] = f"a{index}"
        used = [f"a{i}" if v is not None and v in self._names else "_" for i, v in enumerate(self.block.arguments)]
        if any(name != "_" for name in used):
            self.line(f"{', '.join(used)}{',' if len(used) == 1 else ''} = A")
        for operation in self.block.operations:
            self._operation = operation
            self._enter(operation.predicates)
            for value in operation.outputs:
                if value in self.donated:
                    self._make(value)
            writer = writers.get(type(operation), otherwise)
            looks = (
                self._guards
                and writer is not otherwise
                and not isinstance(operation, Test)
                and not isinstance(operation, Alias)
            )
            if looks:
                self.line(f"enter({operation.name!r})")
            before = len(self._lines)
            writer(self, operation)
            operation.release()  # what was folded is packed, and what comes takes its memory
            if len(self._lines) > before:
                self.marks.append(Mark(len(self._lines), self._indent, operation))
            if looks and not isinstance(operation, Loop):
                self.line(f"look({operation.name!r})")
            gone = [self._names[v] for v in self._drops.get(operation, ()) if self._is_droppable(v)]
            if gone:
                self.line(" = ".join([*gone, "None"]))
        self._operation = None
        self._enter([])
        self.line(f"return [{', '.join(map(self.read_owned, self.block.results))}]")
        source = "\n".join(self._lines) + "\n"
        self._lines, self._drops, self._alike = [], {}, {}  # the plan lives on, and nobody asks for these again
        return Emitted(self, source, self._owners)

    def _make(self, value: Value) -> None:
        """A new array for a value, and word of it to those that write it."""
        name, memories = self.bind(value), self.fresh("p")
        self.pinned[value] = memories
        self.line(f"{name} = empty({self.share('k', value.shape)}, {self.share('k', value.dtype)})")
        self.line(f"point({memories}, {name})")

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


def _touched(region: Region) -> int:
    if isinstance(region, Nested):
        return sum(map(_touched, region.operands))
    return region.room() or 0 if isinstance(region, Span) else 0


def _bytes_of(operand: Operand) -> int:
    if isinstance(operand, Workspace):
        return 0
    return operand.nbytes if isinstance(operand, Value) else operand.desc.size


def _point(pinned: Any, array: Any) -> None:
    pinned.point(array)


def _mismatch(array: Any, shape: tuple[int, ...], dtype: Any) -> None:
    raise InternalError(
        f"a tensor of shape {list(array.shape)} and type {array.dtype} came where {list(shape)} and {dtype} was proved"
    )


def _failed() -> None:
    raise RuntimeError("a oneDNN primitive failed")


#: takes an emitter and an operation of the class that it is for
Writer = Callable[[Any, Any], None]
#: what writes the operations of a class
Writers = Mapping[type[Operation], Writer]
