"""Recognition of loops over time steps that are layers of LSTM or GRU cells: their length, states, inputs, outputs."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.list_facts import ListFacts
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Loop, Test, call_of
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.cells import Cell, find_cells
from toolkit.compiler.transforms.elements import ADDS, is_float
from toolkit.compiler.transforms.forms import AtomKind, IterationForms, NotRecurrentError

Predicate = Callable[[Operation], bool]
_WRITES = ("TensorListSetItem", "TensorArrayWriteV3")
_STACKS = frozenset({"TensorListStack", "TensorArrayGatherV3"})


@dataclass(eq=False, slots=True)
class Written:
    """A list that a loop writes: whose output, what stacks it, and whether it has but one element."""

    cell: Cell
    stack: Operation
    is_last_only: bool


class TimeLoop:
    """A loop that is layers of cells over time.

    Attributes:
        length: how many iterations it has.
        counters: by index of the state, its first value and what is added in every iteration.
        cells: each after those whose output it takes.
        written: the lists that it writes.
        gone: the operations that are not needed any more where the cells are computed otherwise: the loop itself, what
            stacks its lists, and what makes tensor arrays for it.

    Raises:
        NotRecurrentError: it does something else than cells do.
    """

    def __init__(self, loop: Loop, has_effect: Predicate):
        self.loop = loop
        self.body: Block = loop.body
        self.counters: dict[int, tuple[int, int]] = {}
        self.gone: set[Operation] = {loop}
        self._index = {value: i for i, value in enumerate(self.body.arguments) if value is not None}
        self._known: set[Operation] = set()  # what the body reads and writes
        lists, states = self._sorted_states()
        self.length = self._count_iterations()
        iteration = IterationForms(self._read)
        for index in states:
            iteration.name(self._argument(index), AtomKind.STATE, index)
        for index in states:
            iteration.name(self.body.results[index], AtomKind.NEXT, index)
        self.cells = find_cells({index: iteration.definition(self.body.results[index]) for index in states})
        for cell in self.cells:
            self._check_states(cell)
        self.written = [self._check_written(index) for index in lists]
        for operation in self.body.operations:
            if has_effect(operation) and not isinstance(operation, Test) and operation not in self._known:
                raise NotRecurrentError(f"{operation.name} must run in every iteration")

    def _argument(self, index: int) -> Value:
        value = self.body.arguments[index]
        assert value is not None
        return value

    def _sorted_states(self) -> tuple[list[int], list[int]]:
        """The states that are lists, and those that are tensors; counters are noted."""
        lists: list[int] = []
        tensors: list[int] = []
        for index, after in enumerate(self.body.results):
            before = self._argument(index)
            if after is before:
                continue
            if call_of(after, *_WRITES) is not None:
                lists.append(index)
            elif is_float(before) and is_float(after) and len(before.shape or ()) == 2 and before.shape == after.shape:
                tensors.append(index)
            elif not self._is_counter(index, before, after):
                what = after.producer.kind if after.producer is not None else "another state"
                raise NotRecurrentError(f"a state is made by {what}, which no cell needs for inference")
        return lists, tensors

    def _is_counter(self, index: int, before: Value, after: Value) -> bool:
        first, total = _integer(self.loop.inputs[index]), call_of(after, *ADDS)
        if first is None or total is None or before not in total.inputs:
            return False
        steps = [_integer(value) for value in total.inputs if value is not before]
        if len(steps) != 1 or steps[0] is None or steps[0] < 1:
            return False
        self.counters[index] = (first, steps[0])
        return True

    def _count_iterations(self) -> int:
        """How often the body is computed: until one of the counters reaches its limit."""
        conditions = [operation.condition for operation in self.body if isinstance(operation, Test)]
        counts: list[int] = []
        while conditions:
            condition = conditions.pop()
            if (both := call_of(condition, "LogicalAnd")) is not None:
                conditions += both.inputs
                continue
            less = call_of(condition, "Less")
            limit = _integer(less.inputs[1]) if less is not None else None
            counter = self.counters.get(self._index.get(less.inputs[0], -1)) if less is not None else None
            if limit is None or counter is None:
                raise NotRecurrentError("how many iterations it has is not known")
            first, step = counter
            counts.append(-((first - limit) // step))
        if not counts or min(counts) < 1:
            raise NotRecurrentError("it may have no iteration at all")
        return min(counts)

    def _is_step(self, value: Value) -> bool:
        """Whether a value is the number of the iteration."""
        return self.counters.get(self._index.get(value, -1)) == (0, 1)

    def _outside(self, value: Value) -> Value:
        """The value outside of what no iteration changes."""
        index = self._index.get(value)
        if index is None or (index < len(self.body.results) and self.body.results[index] is not value):
            raise NotRecurrentError("a list is changed while it is read")
        return self.loop.inputs[index]

    def _read(self, operation: Operation) -> Value:
        """The tensor whose steps an iteration reads."""
        if not self._is_step(operation.inputs[1]):
            raise NotRecurrentError(f"{operation.name} does not read step after step")
        self._known.add(operation)
        held = self._outside(operation.inputs[0])
        if operation.op == "TensorArrayReadV3":
            tensor = self._scattered(held, self._outside(operation.inputs[2])).inputs[2]
        elif (made := call_of(held, "TensorListFromTensor")) is not None:
            tensor = made.inputs[0]
        else:
            raise NotRecurrentError(f"{operation.name} reads from a list that was not made from one tensor")
        if not is_float(tensor) or len(tensor.shape or ()) != 3 or (tensor.shape or (0,))[0] < self.length:
            raise NotRecurrentError(f"the shape of what {operation.name} reads is not known")
        return tensor

    def _scattered(self, handle: Value, flow: Value) -> Operation:
        """What fills a tensor array that is for nothing but this loop to read."""
        scatter = call_of(flow, "TensorArrayScatterV3")
        if scatter is None or scatter.inputs[0] is not handle:
            raise NotRecurrentError("an array is read that was not made from one tensor")
        self._claim_array(handle, scatter)
        if not _counts(scatter.inputs[1]):
            raise NotRecurrentError(f"{scatter.name} changes the order of the steps")
        return scatter

    def _claim_array(self, handle: Value, other: Operation) -> None:
        """Let a tensor array go that only one operation and the loop use."""
        array = call_of(handle, "TensorArrayV3")
        if array is None or array.outputs[0] is not handle:
            raise NotRecurrentError("an array is used that was not made for it")
        values = array.outputs if other.op in _STACKS else [*array.outputs, *other.outputs]
        users = {user for value in values for user in value.users}
        if any(value.is_result for value in values) or not users <= {self.loop, other}:
            raise NotRecurrentError(f"{array.name} is used by others too")
        self.gone |= {array, other}

    def _check_written(self, index: int) -> Written:
        """What a list takes up in every iteration, and what becomes of it."""
        write = self.body.results[index].producer
        assert write is not None
        self._known.add(write)
        stack = self.loop.outputs[index].sole_user
        if stack is None or stack.op not in _STACKS:
            raise NotRecurrentError(f"what {write.name} writes is not only stacked")
        is_list = write.op == "TensorListSetItem"
        if is_list:
            taken, at, item = write.inputs
            facts = self.loop.inputs[index].facts
            length = facts.length if isinstance(facts, ListFacts) and facts.is_empty else None
        else:
            handle, at, item, taken = write.inputs
            array = self._outside(handle)
            self._claim_array(array, stack)
            if stack.inputs[0] is not array or not _counts(stack.inputs[1]):
                raise NotRecurrentError(f"{stack.name} changes the order of the steps")
            assert array.producer is not None
            length = _integer(array.producer.inputs[0])
        if taken is not self._argument(index) or len(taken.users) != 1:
            raise NotRecurrentError(f"{write.name} is not all that happens to a list")
        is_last_only = length == 1 and _integer(at) == 0 and is_list  # an array refuses this
        if not is_last_only and not (self._is_step(at) and length == self.length):
            raise NotRecurrentError(f"{write.name} does not write step after step to a list as long as the loop")
        cell = next((cell for cell in self.cells if self.body.results[cell.hidden] is item), None)
        if cell is None:
            raise NotRecurrentError(f"{write.name} does not write the output of a cell")
        if stack.output.shape != (1 if is_last_only else self.length, *(item.shape or ())):
            raise NotRecurrentError(f"the shape of {stack.name} is not known")
        self.gone.add(stack)
        return Written(cell, stack, is_last_only)

    def _check_states(self, cell: Cell) -> None:
        """The states have the shapes that cells have, and the input theirs."""
        shape = self._argument(cell.hidden).shape
        assert shape is not None
        batch = cell.source.what.shape[1] if cell.reads else shape[0]
        inputs = cell.source.what.shape[2] if cell.reads else cell.weights.layer.shape[0]
        memory = shape if cell.memory is None else self._argument(cell.memory).shape
        fits = shape == (batch, cell.weights.units) and memory == shape and inputs == cell.weights.layer.shape[0]
        if not fits or not all((*shape, inputs)):
            raise NotRecurrentError("the shapes of a cell's states do not fit its weights")


def _integer(value: Value) -> int | None:
    constant = value.constant
    if isinstance(constant, np.ndarray | np.generic) and constant.shape == () and constant.dtype.kind == "i":
        return int(constant)
    return None


def _counts(indices: Value) -> bool:
    """Whether these are 0, 1, 2, ..."""
    return indices.is_constant and np.array_equal(indices.constant, np.arange(np.size(indices.constant)))
