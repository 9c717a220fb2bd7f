"""From a program and the shapes of its arguments to a block of operations.

Shapes are those that the shape functions prove from the arguments' shapes, never those that were merely seen.
What depends on constants alone is computed here, once. Variables that the program reads but nobody in it writes are
taken as constants too; the plan holds while they keep their arrays (`Guard`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.errors import GraphmillError
from toolkit.graph.attrs import FuncRef
from toolkit.graph.infer import ShapeMap
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape
from toolkit.kernels import variables
from toolkit.kernels.context import RefVariable
from toolkit.kernels.handles import ResourceHandle
from toolkit.kernels.registry import Kind
from toolkit.runtime.program import Program, Role, Step, as_outputs
from toolkit.runtime.segments.ir import Block, Operation, Value
from toolkit.runtime.step import Step as RunningStep

_FOLD_LIMIT = 1 << 26  # bytes: a constant bigger than this is not made ahead of time unless it shrinks

#: ops that hand on their input as it is
IDENTITIES = frozenset({"Identity", "Snapshot", "StopGradient", "PreventGradient", "PlaceholderWithDefault"})
_SHAPE_OPS = frozenset({"Shape", "ShapeN", "Size", "Rank"})
#: ops that may use a resource or reference without changing it
_READERS = frozenset(
    {
        "IsVariableInitialized",
        "ReadVariableOp",
        "VariableShape",
        "VarIsInitializedOp",
        "ResourceGather",
        "ResourceGatherNd",
    }
)

Guard = tuple[Any, Any]  # a variable and the array it must still hold


class Lifter:
    """Lifts one program; functions that it calls are put in its place.

    Attributes:
        block: the result.
        guards: what must still be so when the plan runs again.
    """

    def __init__(self, running: RunningStep, *, capture: bool = True):
        self.block = Block()
        self._captures = capture
        self.guards: list[Guard] = []
        self._running = running
        self._guarded: set[int] = set()

    def lift(self, program: Program, arguments: Sequence[Any]) -> None:
        """Fill the block."""
        inputs: list[Value] = []
        for argument in arguments:
            value = _value_of(argument)
            inputs.append(value)
        self.block.arguments = list(inputs)
        results = self._body(program, inputs, arguments)
        self.block.results = results
        for value in results:
            value.is_result = True

    def _body(self, program: Program, inputs: Sequence[Value], arguments: Sequence[Any]) -> list[Value]:
        shapes = ShapeMap()
        for step in program.steps:
            if step.role is Role.ARG and step.index < len(inputs):
                shape = inputs[step.index].shape
                shapes.feed(Output(step.node, 0), Shape(shape))
        written = _written(program)
        self.block.keeps_nan = self.block.keeps_nan or bool(written)
        values: list[list[Value]] = []
        results: list[Any] = [None] * program.num_results
        ends: list[tuple[Step, list[Value]]] = []
        for step in program.steps:
            given = [values[src][index] for src, index in step.inputs]
            match step.role:
                case Role.CONSTANT:
                    shapes.visit(step.node, strict=False)
                    values.append([Value(_dtype_of(step.constant), _shape_of(step.constant), step.constant)])
                case Role.ARG:
                    shapes.visit(step.node, strict=False)
                    values.append([inputs[step.index]])
                case Role.RETVAL:
                    values.append([])
                    ends.append((step, given))
                case _:
                    known = [_concrete(shape) for shape in shapes.visit(step.node, strict=False)]
                    values.append(self._operation(step, given, known, written))
        for step, given in ends:  # of a reference the value at the end of the step is wanted
            results[step.index] = self._dereferenced(step, given, written)[0]
        return results

    def _operation(
        self, step: Step, given: list[Value], shapes: list[tuple[int, ...] | None], written: set[int]
    ) -> list[Value]:
        op = step.node.op
        if op in IDENTITIES and not step.deref and step.num_outputs == 1:
            return [given[0]]
        if op == "IdentityN" and not step.deref:
            return given
        if op in _SHAPE_OPS and all(value.shape is not None for value in given):
            return [self._shape_fact(step, value) for value in given]
        if op == "ReadVariableOp" and id(step) not in written:
            captured = self._captured_resource(step, given[0])
            if captured is not None:
                return [captured]
        given = self._dereferenced(step, given, written)
        if op in IDENTITIES and step.num_outputs == 1:
            return [given[0]]
        if step.kind is Kind.PURE and all(isinstance(value.constant, np.ndarray | np.generic) for value in given):
            folded = self._folded(step, given, shapes)
            if folded is not None:
                return folded
        if op in ("VarHandleOp", "VariableV2", "Variable") and step.kind is Kind.STATEFUL:
            made = self._handle(step)
            if made is not None:
                return made
        outputs = [
            Value(_numpy_type(dtype), shape) for dtype, shape in zip(step.node.output_types, shapes, strict=True)
        ]
        self.block.operations.append(Operation(op, given, outputs, [step]))
        return outputs

    @staticmethod
    def _shape_fact(step: Step, value: Value) -> Value:
        """The answer to a question about a shape that is known."""
        assert value.shape is not None
        dtype = _numpy_type(step.node.output_types[0])
        match step.node.op:
            case "Size":
                fact = np.asarray(value.size, dtype)
            case "Rank":
                fact = np.asarray(len(value.shape), dtype)
            case _:
                fact = np.asarray(value.shape, dtype)
        return Value(dtype, fact.shape, fact)

    def _handle(self, step: Step) -> list[Value] | None:
        """Handles and reference variables are the same in every step of a session."""
        try:
            made = as_outputs(step, step.compute(self._running))
        except GraphmillError:
            return None
        return [Value(None, None, thing) for thing in made]

    def _dereferenced(self, step: Step, given: list[Value], written: set[int]) -> list[Value]:
        """Plain tensors in place of references."""
        if not step.deref:
            return given
        given = list(given)
        for index in step.deref:
            cell = given[index].constant
            if isinstance(cell, RefVariable) and id(cell) not in written and id(step) not in written:
                captured = self._capture(cell)
                if captured is not None:
                    given[index] = captured
                    continue
            shape = _concrete(cell.shape) if isinstance(cell, RefVariable) else None
            plain = Value(given[index].dtype or _numpy_type(step.node.input_types[index]), shape)
            if isinstance(cell, RefVariable):
                plain.dtype = _numpy_type(cell.dtype)
            self.block.operations.append(Operation("deref", [given[index]], [plain], [step]))
            given[index] = plain
        return given

    def _captured_resource(self, step: Step, handle: Value) -> Value | None:
        if not isinstance(handle.constant, ResourceHandle):
            return None
        try:
            cell = variables.find(self._running, handle.constant)
        except GraphmillError:
            return None
        return self._capture(cell) if cell.dtype is step.node.attr("dtype") else None

    def _capture(self, cell: Any) -> Value | None:
        array = cell.value
        if not self._captures or array is None or not isinstance(array, np.ndarray):
            return None
        if id(cell) not in self._guarded:
            self._guarded.add(id(cell))
            self.guards.append((cell, array))
        else:
            array = next(held for guarded, held in self.guards if guarded is cell)
        return Value(array.dtype, array.shape, array)

    def _folded(self, step: Step, given: list[Value], shapes: list[tuple[int, ...] | None]) -> list[Value] | None:
        before = sum(value.nbytes for value in given if value.shape is not None and value.dtype is not None)
        after = sum(
            int(np.prod(shape)) * dtype.numpy.itemsize
            for dtype, shape in zip(step.node.output_types, shapes, strict=True)
            if shape is not None
        )
        if after > max(before, _FOLD_LIMIT):
            return None
        try:
            with np.errstate(all="ignore"):
                outputs = as_outputs(step, step.compute(*[value.constant for value in given]))
        except Exception:  # whatever is wrong is reported when the step runs
            return None
        if any(output is None for output in outputs):
            return None
        return [Value(_dtype_of(output), _shape_of(output), output) for output in outputs]


def _written(program: Program) -> set[int]:
    """Reads that may not be taken ahead of time: ids of all steps of a program that may change a variable."""
    if any(_may_write(step) for step in program.steps if step.role is Role.KERNEL):
        return {id(step) for step in program.steps}
    return set()


def _may_write(step: Step) -> bool:
    if step.node.op in _READERS:
        return False
    if any(dtype.is_ref for dtype in step.node.input_types):
        return True
    if step.kind is Kind.PURE:
        return False
    return _calls_functions(step) or any(dtype.name in ("resource", "variant") for dtype in step.node.input_types)


def _calls_functions(step: Step) -> bool:
    return any(isinstance(value, FuncRef) for value in step.node.attrs.values())


def _value_of(argument: Any) -> Value:
    if isinstance(argument, np.ndarray | np.generic):
        return Value(argument.dtype, argument.shape)
    return Value(None, None)


def _shape_of(value: Any) -> tuple[int, ...] | None:
    return tuple(value.shape) if isinstance(value, np.ndarray | np.generic) else None


def _dtype_of(value: Any) -> Any:
    return value.dtype if isinstance(value, np.ndarray | np.generic) else None


def _concrete(shape: Shape) -> tuple[int, ...] | None:
    return tuple(shape.as_list()) if shape.is_fully_defined else None


def _numpy_type(dtype: Any) -> Any:
    base = dtype.base
    return None if base.name in ("resource", "variant") else base.numpy
