"""From a program and the shapes of its arguments to a block of operations.

Shapes are those that the shape functions prove from the arguments' shapes, never those that were merely seen.
What depends on constants alone is computed here, once. Functions that are called are put in the call's place.
Variables that the program reads but nobody in it writes are taken as constants too; the plan holds while they keep
their arrays (`state.Guard`). What a loop or a branch is, is the business of `control`; loops are imported by `loops`.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from toolkit.compiler.importer import lists
from toolkit.compiler.importer.control import FrameLoop, ItemOrder, UnstructuredError, branch_conditions, merge_rule
from toolkit.compiler.importer.effects import HANDLES, callee, initialises, may_write
from toolkit.compiler.importer.facts import (
    TENSORS,
    concrete,
    dtype_of,
    is_known,
    numpy_type,
    shape_fact,
    shape_of,
    value_of,
)
from toolkit.compiler.importer.loops import import_frame_loop, import_function_loop
from toolkit.compiler.importer.scope import Scope
from toolkit.compiler.importer.state import ImportState
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.conditions import NONE, Conditions, Impossible, both
from toolkit.compiler.ir.lasting import note_lasting
from toolkit.compiler.ir.list_facts import Invariant, SharedListFacts
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Dereference, ReadVariable, Select, Test
from toolkit.compiler.ir.value import Value
from toolkit.compiler.program import Program
from toolkit.compiler.signatures import FunctionTypes
from toolkit.compiler.steps import Role, Step, as_outputs
from toolkit.errors import GraphmillError
from toolkit.graph.attrs import FuncRef
from toolkit.kernels.context import DEAD, RefVariable
from toolkit.kernels.facts import COPIES
from toolkit.kernels.registry import Kind
from toolkit.kernels.resources import variables
from toolkit.kernels.resources.handles import ResourceHandle

_MAX_DEPTH = 32  # of calls put in each other's place; recursion goes through the call kernel beyond that
_MAX_OPERATIONS = 100_000  # of a block: calls stay calls beyond that

#: ops that hand on their input as it is
IDENTITIES = frozenset({"Identity", "Snapshot", "StopGradient", "PreventGradient", "PlaceholderWithDefault"})
_RESHAPES = frozenset({"ExpandDims", "Reshape", "Squeeze"})
_SHAPE_OPS = frozenset({"Shape", "ShapeN", "Size", "Rank"})
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_BRANCHES = frozenset({"If", "StatelessIf"})
_LOOPS = frozenset({"While", "StatelessWhile"})
#: ops of which more is known than what a call of their kernels puts out
_PECULIAR = (
    IDENTITIES | _SHAPE_OPS | COPIES | _CALLS | _BRANCHES | _LOOPS
    | {"IdentityN", "VariableShape", "ReadVariableOp", "ZerosLike", "Sum"}
)  # fmt: skip


def _decides(value: Value) -> bool:
    """Whether a value is a truth value: one bool. Whatever else a graph may give, its kernels refuse or read."""
    return value.dtype == np.dtype(bool) and value.shape == ()


class Lifter:
    """Lifts programs into one block."""

    def __init__(
        self, state: ImportState, depth: int = 0, parent: Lifter | None = None, *, hoists: bool = False,
        read: dict[int, Value] | None = None,
    ):  # fmt: skip
        self.block = Block()
        self.state = state
        self._depth = depth
        self._conditions: Conditions = NONE
        self._parent = parent
        self._hoists = hoists  # the iterations of the loop that this is change no variable
        self.brought: dict[Value, Value] = {}
        self._outer: dict[Value, Value] = {}  # the other way around
        # variables that iterations read, by cell: their values before the loop, the same in every attempt to lift it
        self._read: dict[int, Value] = {} if read is None else read
        # between a device's memory and its host's, and on which branches; one predicate must stay one value
        self._copies: dict[tuple[Value, str], tuple[Value, Conditions]] = {}

    def lift(self, program: Program, arguments: Sequence[Any]) -> None:
        """Fill the block.

        Raises:
            UnstructuredError: the control flow is not made of branches and loops.
        """
        state = self.state
        state.writes = may_write(program, state.running)
        state.initialises = initialises(program)
        self.block.keeps_nan = state.writes
        self.block.device = program.device
        inputs = [_argument(argument, index in program.by_value) for index, argument in enumerate(arguments)]
        self.block.arguments = list(inputs)
        results: list[Any] = self.program(program, inputs)
        # of a step over several devices some results are another's, in whose program they are
        self.set_results([Value(None, None, DEAD) if each is None else each for each in results])

    def set_results(self, results: list[Value]) -> None:
        self.block.results = results
        for value in results:
            value.is_result = True

    # -- programs and frames -----------------------------------------------------------------------------------

    def program(self, program: Program, inputs: Sequence[Value]) -> list[Value]:
        """The results of a program whose arguments are these values."""
        scope = Scope(program)
        results: list[Any] = [None] * program.num_results
        ends: list[Step] = []
        for item in ItemOrder.of(program):
            if isinstance(item, FrameLoop):
                import_frame_loop(self, scope, item)
                continue
            step = program.steps[item]
            if step.role is Role.ARG:
                value = inputs[step.index]
                scope.set(item, [value], Conditions(impossible=True) if value.constant is DEAD else NONE)
            elif step.role is Role.RETVAL:
                scope.set(item, [], NONE)
                ends.append(step)
            else:
                self.step(scope, item, step)
        for step in ends:  # of a reference the value at the end of the step is wanted
            conditions = scope.reached(step)
            if conditions != NONE:
                if not program.is_part:
                    raise UnstructuredError("a result is on a branch that may not be taken")
                results[step.index] = self._dead_or(step, scope.inputs(step)[0], conditions)
                continue
            results[step.index] = self._dereferenced(step, scope.inputs(step), NONE)[0]
        return results

    def step(self, scope: Scope, item: int, step: Step) -> None:
        match step.role:
            case Role.CONSTANT:
                note_lasting(step.constant)
                value = Value(dtype_of(step.constant), shape_of(step.constant), step.constant)
                scope.set(item, [value], scope.reached(step))
            case Role.SWITCH:
                self._switch(scope, item, step)
            case Role.MERGE:
                self._merge(scope, item, step)
            case Role.ENTER:
                scope.set(item, scope.inputs(step), scope.reached(step))
            case Role.SEND:
                self._send(step, scope.inputs(step), scope.reached(step))
                scope.set(item, [], NONE)
            case Role.TRIGGER:  # it triggers whether or not what it waits for is reached
                scope.set(item, [], NONE)
            case Role.KERNEL:
                conditions = scope.reached(step)
                if conditions.impossible:
                    outputs = [Value(None, None) for _ in range(step.num_outputs)]
                else:
                    outputs = self._operation(step, scope.inputs(step), conditions)
                scope.set(item, outputs, conditions)
            case _:
                raise UnstructuredError(f"{step.node.op} outside a loop")

    def _switch(self, scope: Scope, item: int, step: Step) -> None:
        if step.node.op not in ("Switch",):
            raise UnstructuredError(f"{step.node.op}")
        data, predicate = scope.inputs(step)
        if not _decides(predicate):
            raise UnstructuredError(f"{step.node.name} is decided by what is no truth value")
        reached = scope.reached(step)
        scope.values[item] = [data, data]
        scope.conditions[item] = list(branch_conditions(reached, predicate))
        scope.deciding[item] = reached

    def _merge(self, scope: Scope, item: int, step: Step) -> None:
        if step.node.op != "Merge":
            raise UnstructuredError(f"{step.node.op}")
        choices = [(index, scope.values[src][at], scope.of(src, at)) for index, (src, at) in enumerate(step.inputs)]
        alive = [choice for choice in choices if not choice[2].impossible]
        if not alive:
            scope.set(item, [Value(None, None), Value(None, None)], Conditions(impossible=True))
            return
        if len(alive) == 1:
            index, value, conditions = alive[0]
            which = Value(np.dtype(np.int32), (), np.int32(index))
            scope.set(item, [value, which], conditions)
            return
        predicate, taken, other, rest = merge_rule(alive)
        outputs = [self._select(step, predicate, taken[1], other[1], rest)]
        if item in scope.asked_for_sides:
            numbers = [Value(np.dtype(np.int32), (), np.int32(choice[0])) for choice in (taken, other)]
            outputs.append(self._select(step, predicate, numbers[0], numbers[1], rest))
        else:
            outputs.append(Value(np.dtype(np.int32), ()))
        scope.set(item, outputs, rest)

    def _select(self, step: Step, predicate: Value, taken: Value, other: Value, conditions: Conditions) -> Value:
        same = taken.shape is not None and taken.shape == other.shape and taken.dtype == other.dtype
        value = Value(taken.dtype if taken.dtype == other.dtype else None, taken.shape if same else None)
        self.add(Select(predicate=predicate, taken=taken, other=other, outputs=[value], steps=[step]), conditions)
        return value

    def _dead_or(self, step: Step, value: Value, conditions: Conditions) -> Value:
        """A value, or a dead one where its branch was not taken."""
        dead = Value(None, None, DEAD)
        if conditions.impossible:
            return dead
        terms = conditions.terms
        for count in range(len(terms) - 1, -1, -1):
            predicate, wanted = terms[count]
            taken, other = (value, dead) if wanted else (dead, value)
            value = Value(value.dtype, None)
            select = Select(predicate=predicate, taken=taken, other=other, outputs=[value], steps=[step])
            self.add(select, Conditions(terms[:count]) if count else NONE)
        return value

    def _send(self, step: Step, given: list[Value], conditions: Conditions) -> None:
        """Send a value; where its branch is not taken, word of that, for who receives it waits."""
        if not conditions.impossible:
            self.add(Call(op=step.node.op, inputs=tuple(given), outputs=[], steps=[step]), conditions)
        compute = step.compute
        dead = replace(step, compute=lambda running: compute(running, DEAD, True))
        terms = conditions.terms
        branches = [(*terms[:count], (terms[count][0], not terms[count][1])) for count in range(len(terms))]
        for branch in ((),) if conditions.impossible else branches:
            self.add(Call(op=step.node.op, inputs=(), outputs=[], steps=[dead]), Conditions(branch) if branch else NONE)

    @contextmanager
    def under(self, conditions: Conditions) -> Generator[None]:
        """What is added meanwhile runs under these conditions, besides those that hold already."""
        before, self._conditions = self._conditions, both(self._conditions, conditions)
        try:
            yield
        finally:
            self._conditions = before

    def add(self, operation: Operation, conditions: Conditions) -> None:
        try:
            operation.conditions = both(self._conditions, conditions)
        except Impossible:
            operation.drop_operands()  # what it would have taken may be taken by others
            raise UnstructuredError("a step on a branch that cannot be taken") from None
        self.block.append(operation)

    # -- single steps ------------------------------------------------------------------------------------------

    def _operation(self, step: Step, given: list[Value], conditions: Conditions) -> list[Value]:
        op = step.node.op
        if op not in _PECULIAR and not step.deref:
            return self._call_of(step, given, conditions)
        if op in IDENTITIES and not step.deref and step.num_outputs == 1:
            return [given[0]]
        if op == "IdentityN" and not step.deref:
            return given
        if op == "VariableShape" and isinstance(given[0].constant, ResourceHandle):
            declared = given[0].constant.dtypes_and_shapes
            if declared and declared[0][1].is_fully_defined:
                sizes = np.asarray(declared[0][1].as_list(), numpy_type(step.node.output_types[0]))
                return [Value(sizes.dtype, sizes.shape, sizes)]
        if op == "ReadVariableOp" and self.state.on_host:
            known = self._known_variable(step, given[0], conditions)
            if known is not None:
                return [known]
        cells = [given[index].constant for index in step.deref]
        given = self._dereferenced(step, given, conditions)
        is_there = all(
            isinstance(cell, RefVariable) and cell.value is not None for cell in cells
        )  # else its kernel says so
        if op in _SHAPE_OPS and is_there and all(value.shape is not None for value in given):
            return [shape_fact(step, value) for value in given]
        if op in IDENTITIES and step.num_outputs == 1:
            return [given[0]]
        copied = self._copies.get((given[0], op)) if op in COPIES else None
        if copied is not None and copied[1] in (NONE, conditions):
            return [copied[0]]
        inlined = self._inlined(step, given, conditions)
        if inlined is not None:
            if step.is_target:
                _ask_for(step, inlined)
            return inlined
        if op == "ZerosLike" and self.state.on_host and given[0].shape is not None and given[0].dtype is not None:
            zeros = np.zeros(given[0].shape, given[0].dtype) if given[0].dtype.kind in "fiub" else None
            if zeros is not None:
                return [Value(zeros.dtype, zeros.shape, zeros)]
        if op == "Sum" and given[1].is_constant and np.size(given[1].constant) == 0:
            return [given[0]]
        return self._call_of(step, given, conditions)

    def _call_of(self, step: Step, given: list[Value], conditions: Conditions) -> list[Value]:
        """What a step puts out: known now, or the outputs of a call of its kernel."""
        op = step.node.op
        shapes = self.state.facts.infer(step, given)
        if op in _RESHAPES and shapes[0] is not None and shapes[0] == given[0].shape and given[0].dtype is not None:
            return [given[0]]
        if step.kind is Kind.PURE and all(isinstance(value.constant, TENSORS) for value in given):
            folded = self.state.facts.fold(step, given, shapes, once=self.state.initialises)
            if folded is not None:
                return folded
        if op in HANDLES:
            made = self._handle(step)
            if made is not None:
                return made
        outputs = [Value(numpy_type(dtype), shape) for dtype, shape in zip(step.node.output_types, shapes, strict=True)]
        self.add(Call(op=op, inputs=tuple(given), outputs=outputs, steps=[step]), conditions)
        if op in COPIES:
            self._copies.setdefault((given[0], op), (outputs[0], conditions))
        known_outputs = [self._inside(value) for value in lists.follow(step.node, given, outputs, self._outside)]
        for value in outputs:
            if isinstance(value.facts, SharedListFacts):
                self.state.held.append(value.facts)
        return known_outputs

    def _outside(self, value: Value) -> Invariant | None:
        """What a value from outside the loop is there."""
        outer = self._outer.get(value)
        return None if outer is None or self._parent is None else Invariant(outer, self._parent)

    def _inside(self, value: Any) -> Value:
        """A value of a list that is the same for all of its elements, here."""
        if not isinstance(value, lists.Element):
            return value
        invariant = value.invariant
        if invariant.home is self:
            return invariant.value
        return self.bring(invariant.value) if invariant.home is self._parent else value.plain

    def _handle(self, step: Step) -> list[Value] | None:
        """Handles and reference variables are the same in every step of a session."""
        try:
            context = [self.state.running] if step.kind is Kind.STATEFUL else []
            made = as_outputs(step, step.compute(*context))
        except GraphmillError:
            return None
        return [Value(None, None, thing) for thing in made]

    def _dereferenced(self, step: Step, given: list[Value], conditions: Conditions) -> list[Value]:
        """Plain tensors in place of references."""
        if not step.deref:
            return given
        given = list(given)
        for index in step.deref:
            cell = given[index].constant
            if isinstance(cell, RefVariable) and cell.dtype.base != step.node.input_types[index].base:
                raise UnstructuredError(f"the variable '{cell.name}' is of type {cell.dtype}")
            captured = self.state.capture(cell) if isinstance(cell, RefVariable) else None
            if captured is None:
                shape = concrete(cell.shape) if isinstance(cell, RefVariable) else None
                captured = Value(numpy_type(step.node.input_types[index]), shape)
                self.add(Dereference(reference=given[index], outputs=[captured], steps=[step]), conditions)
            given[index] = captured
        return given

    def _known_variable(self, step: Step, handle: Value, conditions: Conditions) -> Value | None:
        """A resource variable that is there already: its array as a constant, or a read without any lookup."""
        if not isinstance(handle.constant, ResourceHandle):
            return None
        try:
            cell = variables.find(self.state.running, handle.constant)
        except GraphmillError:
            return None
        if cell.dtype is not step.node.attr("dtype") or cell.dtype.kind in "rv":
            return None
        captured = self.state.capture(cell)
        if captured is not None:
            return captured
        if self._hoists and self._parent is not None:
            if id(cell) not in self._read:
                known = self._parent._known_variable(step, handle, NONE)
                if known is None:
                    return None
                self._read[id(cell)] = known
            return self.bring(self._read[id(cell)])
        array = cell.value
        if not isinstance(array, np.ndarray) or concrete(cell.shape) != array.shape:
            return None
        value = Value(array.dtype, array.shape)
        self.add(ReadVariable(cell=cell, outputs=[value], steps=[step]), conditions)
        return value

    # -- functions ---------------------------------------------------------------------------------------------

    def _inlined(self, step: Step, given: list[Value], conditions: Conditions) -> list[Value] | None:
        """The outputs of a call, branch or loop over functions, put in its place; None to leave it a kernel."""
        op = step.node.op
        if (op not in _CALLS and op not in _BRANCHES and op not in _LOOPS) or not self.state.on_host:
            return None
        if self._depth >= _MAX_DEPTH or len(self.block) >= _MAX_OPERATIONS:
            return None
        mark = self.block.last
        before, self._conditions, self._depth = self._conditions, both(self._conditions, conditions), self._depth + 1
        try:
            if op in _CALLS:
                return self._call(step, step.node.attr("f"), given)
            if op in _BRANCHES:
                return self._branch(step, given)
            return import_function_loop(self, step, given)
        except UnstructuredError:
            self.block.erase_after(mark)
            return None
        finally:
            self._conditions, self._depth = before, self._depth - 1

    def _call(self, step: Step, ref: FuncRef, given: list[Value]) -> list[Value]:
        program = self.callee(step, ref, (step.node.attr("Tin"), step.node.attr("Tout")))
        if program.num_arguments != len(given):
            raise UnstructuredError(ref.name)
        self.state.room -= len(program.steps)
        return self.program(program, given)

    def callee(self, step: Step, ref: FuncRef, types: FunctionTypes) -> Program:
        """The program of a function that may be put in the place of a call."""
        if not self.state.fits(step.node.graph.library, ref.name):
            raise UnstructuredError(f"{ref.name} is too large to be put in the place of its call")
        program = callee(self.state.running, step, ref, types, self.state.drawing)
        if program.is_asynchronous:
            raise UnstructuredError(f"{ref.name} waits")
        return program

    def _branch(self, step: Step, given: list[Value]) -> list[Value] | None:
        predicate, *arguments = given
        if not _decides(predicate):
            return None
        branches = [step.node.attr("then_branch"), step.node.attr("else_branch")]
        if predicate.is_constant:
            return self._call(step, branches[0] if predicate.constant else branches[1], arguments)
        before = self._conditions
        sides: list[list[Value]] = []
        for ref, conditions in zip(branches, reversed(branch_conditions(self._conditions, predicate)), strict=True):
            self._conditions = conditions
            sides.append(self._call(step, ref, arguments))
        self._conditions = before
        return [self._select(step, predicate, taken, other, NONE) for taken, other in zip(*sides, strict=True)]

    # -- loops -------------------------------------------------------------------------------------------------

    def inside(self, *, hoists: bool, read: dict[int, Value]) -> Lifter:
        """What imports an iteration of a loop.

        Args:
            hoists: the iterations change no variable.
            read: variables that iterations read, by cell; the same in every attempt to import one.
        """
        inner = Lifter(self.state, self._depth, self, hoists=hoists, read=read)
        inner.block.keeps_nan = self.state.writes
        return inner

    def test(self, step: Step, condition: Value) -> None:
        """Leave the loop here unless the condition holds."""
        if not _decides(condition):
            raise UnstructuredError("the condition of a loop is no truth value")
        self.add(Test(condition=condition, outputs=[], steps=[step]), NONE)

    def bring(self, outer: Value) -> Value:
        """A value from outside a loop, inside: a constant, or one more argument of the loop's block."""
        if outer.is_constant:
            return Value(outer.dtype, outer.shape, outer.constant)
        found = self.brought.get(outer)
        if found is None:
            found = self.brought[outer] = Value(outer.dtype, outer.shape)
            self._outer[found] = outer
            found.facts = outer.facts
        return found


def _argument(argument: Any, by_value: bool) -> Value:
    """What is known of an argument: its value, where that follows from shapes alone."""
    if argument is DEAD or (by_value and is_known(argument)):
        return Value(dtype_of(argument), shape_of(argument), argument)
    return value_of(argument)


def _ask_for(step: Step, values: Iterable[Value]) -> None:
    """Have what makes these values run because somebody asked for the call whose outputs they are."""
    for value in values:
        operation = value.producer
        if isinstance(operation, Select):
            _ask_for(step, (operation.taken, operation.other))
        elif operation is not None and step not in operation.steps:
            operation.steps.insert(0, step)
