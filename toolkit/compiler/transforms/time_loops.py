"""Recognition of loops over time steps that are layers of LSTM or GRU cells: their turns, states, inputs, outputs."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.list_facts import ListFacts
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Loop, Test
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.cells import Cell, find_cells
from toolkit.compiler.transforms.elements import is_float
from toolkit.compiler.transforms.forms import MismatchError, Turn

Predicate = Callable[[Operation], bool]
_WRITES = frozenset({"TensorListSetItem", "TensorArrayWriteV3"})
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
        length: how often it turns.
        counters: by index of the state, its first value and what is added in every turn.
        cells: each after those whose output it takes.
        written: the lists that it writes.
        gone: the operations that are not needed any more where the cells are computed otherwise: the loop itself, what
            stacks its lists, and what makes tensor arrays for it.

    Raises:
        MismatchError: it does something else than cells do.
    """

    def __init__(self, loop: Loop, has_effect: Predicate):
        self.loop = loop
        self.body: Block = loop.body
        self.counters: dict[int, tuple[int, int]] = {}
        self.gone: set[Operation] = {loop}
        self._index = {value: i for i, value in enumerate(self.body.arguments) if value is not None}
        self._known: set[Operation] = set()  # what the body reads and writes
        lists, states = self._sorted_states()
        self.length = self._count_turns()
        turn = Turn(self._read)
        for index in states:
            turn.name(self._argument(index), "state", index)
        for index in states:
            turn.name(self.body.results[index], "next", index)
        self.cells = find_cells({index: turn.definition(self.body.results[index]) for index in states})
        for cell in self.cells:
            self._check_states(cell)
        self.written = [self._check_written(index) for index in lists]
        for operation in self.body.operations:
            if has_effect(operation) and not isinstance(operation, Test) and operation not in self._known:
                raise MismatchError(f"{operation.name} must run in every turn")

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
            producer = after.producer
            if after is before:
                continue
            if producer is not None and producer.op in _WRITES:
                lists.append(index)
            elif is_float(before) and is_float(after) and len(before.shape or ()) == 2 and before.shape == after.shape:
                tensors.append(index)
            elif not self._is_counter(index, before, producer):
                what = producer.op if producer is not None else "another state"
                raise MismatchError(f"a state is made by {what}, which no cell needs for inference")
        return lists, tensors

    def _is_counter(self, index: int, before: Value, producer: Operation | None) -> bool:
        first = _integer(self.loop.inputs[index])
        if first is None or producer is None or producer.op not in ("Add", "AddV2") or before not in producer.inputs:
            return False
        steps = [_integer(value) for value in producer.inputs if value is not before]
        if len(steps) != 1 or steps[0] is None or steps[0] < 1:
            return False
        self.counters[index] = (first, steps[0])
        return True

    def _count_turns(self) -> int:
        """How often the loop turns: until one of its counters reaches its limit."""
        conditions = [operation.condition for operation in self.body if isinstance(operation, Test)]
        turns: list[int] = []
        while conditions:
            producer = conditions.pop().producer
            if producer is not None and producer.op == "LogicalAnd":
                conditions += producer.inputs
                continue
            limit = _integer(producer.inputs[1]) if producer is not None and producer.op == "Less" else None
            counter = self.counters.get(self._index.get(producer.inputs[0], -1)) if producer is not None else None
            if limit is None or counter is None:
                raise MismatchError("how often it turns is not known")
            first, step = counter
            turns.append(-((first - limit) // step))
        if not turns or min(turns) < 1:
            raise MismatchError("it may not turn at all")
        return min(turns)

    def _is_step(self, value: Value) -> bool:
        """Whether a value is the number of the turn."""
        return self.counters.get(self._index.get(value, -1)) == (0, 1)

    def _outside(self, value: Value) -> Value:
        """The value outside of what the turns do not change."""
        index = self._index.get(value)
        if index is None or (index < len(self.body.results) and self.body.results[index] is not value):
            raise MismatchError("a list is changed while it is read")
        return self.loop.inputs[index]

    def _read(self, operation: Operation) -> Value:
        """The tensor whose steps a turn reads."""
        if not self._is_step(operation.inputs[1]):
            raise MismatchError(f"{operation.name} does not read step after step")
        self._known.add(operation)
        source = self._outside(operation.inputs[0]).producer
        if operation.op == "TensorArrayReadV3":
            source = self._scattered(self._outside(operation.inputs[0]), self._outside(operation.inputs[2]))
            tensor = source.inputs[2]
        elif source is not None and source.kind == "TensorListFromTensor":
            tensor = source.inputs[0]
        else:
            raise MismatchError(f"{operation.name} reads from a list that was not made from one tensor")
        if not is_float(tensor) or len(tensor.shape or ()) != 3 or (tensor.shape or (0,))[0] < self.length:
            raise MismatchError(f"the shape of what {operation.name} reads is not known")
        return tensor

    def _scattered(self, handle: Value, flow: Value) -> Operation:
        """What fills a tensor array that is for nothing but this loop to read."""
        scatter = flow.producer
        if scatter is None or scatter.op != "TensorArrayScatterV3" or scatter.inputs[0] is not handle:
            raise MismatchError("an array is read that was not made from one tensor")
        self._claim_array(handle, scatter)
        if not _counts(scatter.inputs[1]):
            raise MismatchError(f"{scatter.name} changes the order of the steps")
        return scatter

    def _claim_array(self, handle: Value, other: Operation) -> None:
        """Let a tensor array go that only one operation and the loop use."""
        array = handle.producer
        if array is None or array.op != "TensorArrayV3" or array.outputs[0] is not handle:
            raise MismatchError("an array is used that was not made for it")
        values = array.outputs if other.op in _STACKS else [*array.outputs, *other.outputs]
        users = {user for value in values for user in value.users}
        if any(value.is_result for value in values) or not users <= {self.loop, other}:
            raise MismatchError(f"{array.name} is used by others too")
        self.gone |= {array, other}

    def _check_written(self, index: int) -> Written:
        """What a list takes up in every turn, and what becomes of it."""
        write = self.body.results[index].producer
        assert write is not None
        self._known.add(write)
        stack = self.loop.outputs[index].sole_user
        if stack is None or stack.op not in _STACKS:
            raise MismatchError(f"what {write.name} writes is not only stacked")
        if write.op == "TensorListSetItem":
            taken, at, item = write.inputs
            facts = self.loop.inputs[index].facts
            length = facts.length if isinstance(facts, ListFacts) and facts.is_empty else None
        else:
            handle, at, item, taken = write.inputs
            array = self._outside(handle)
            self._claim_array(array, stack)
            if stack.inputs[0] is not array or not _counts(stack.inputs[1]):
                raise MismatchError(f"{stack.name} changes the order of the steps")
            assert array.producer is not None
            length = _integer(array.producer.inputs[0])
        if taken is not self._argument(index) or len(taken.users) != 1:
            raise MismatchError(f"{write.name} is not all that happens to a list")
        is_last_only = length == 1 and _integer(at) == 0 and write.op == "TensorListSetItem"  # an array refuses this
        if not is_last_only and not (self._is_step(at) and length == self.length):
            raise MismatchError(f"{write.name} does not write step after step to a list as long as the loop")
        cell = next((cell for cell in self.cells if self.body.results[cell.hidden] is item), None)
        if cell is None:
            raise MismatchError(f"{write.name} does not write the output of a cell")
        if stack.output.shape != (1 if is_last_only else self.length, *(item.shape or ())):
            raise MismatchError(f"the shape of {stack.name} is not known")
        self.gone.add(stack)
        return Written(cell, stack, is_last_only)

    def _check_states(self, cell: Cell) -> None:
        """The states have the shapes that cells have, and the input theirs."""
        shape = self._argument(cell.hidden).shape
        assert shape is not None
        batch = cell.source.what.shape[1] if cell.source.kind == "read" else shape[0]
        inputs = cell.source.what.shape[2] if cell.source.kind == "read" else cell.weights.layer.shape[0]
        memory = shape if cell.memory is None else self._argument(cell.memory).shape
        fits = shape == (batch, cell.weights.units) and memory == shape and inputs == cell.weights.layer.shape[0]
        if not fits or not all((*shape, inputs)):
            raise MismatchError("the shapes of a cell's states do not fit its weights")


def _integer(value: Value) -> int | None:
    constant = value.constant
    if isinstance(constant, np.ndarray | np.generic) and constant.shape == () and constant.dtype.kind == "i":
        return int(constant)
    return None


def _counts(indices: Value) -> bool:
    """Whether these are 0, 1, 2, ..."""
    return indices.is_constant and np.array_equal(indices.constant, np.arange(np.size(indices.constant)))
