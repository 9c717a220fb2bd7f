"""Lists, stacks and arrays that say no limit: which values are one list, and how many elements it had in earlier runs.

A list that grows where the device decides lies in memory that is there before (`growing`,
`stacks`). How much of it is wanted, runs of the host tell: each push notes how long the list is then.
"""

from __future__ import annotations

from typing import Any

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operations.calls import Call, Loop, Select, call_of
from toolkit.compiler.ir.value import Value
from toolkit.kernels.gpu.lists.tensor_array import held_by, stack_of
from toolkit.kernels.resources.tensor_list import TensorList

PUSH, POP = "TensorListPushBack", "TensorListPopBack"
GET, SET = "TensorListGetItem", "TensorListSetItem"
#: attribute of `SET` by which a list grows
GROWS = "resize_if_index_out_of_bounds"
ARRAY, ARRAY_WRITE = "TensorArrayV3", "TensorArrayWriteV3"
STACK, STACK_PUSH, STACK_POP = "StackV2", "StackPushV2", "StackPopV2"
_NEW = ("EmptyTensorList", "TensorListReserve", "TensorListFromTensor")
#: what hands its input on
IDENTITIES = frozenset({"Identity", "Snapshot", "StopGradient", "PreventGradient"})
#: elements that a list has memory for in any case: a second recording takes milliseconds, as long as a hundred replays
#: of a small step, and so few rows are seldom more than the rest of a step takes
_FEWEST = 16


class Capacity:
    """How many elements lists had that are one list in the program.

    Attributes:
        most: the most of them in runs of the host.
        shape: of an element, as far as the program tells; None where it does not, or elements differ.
        dtype: NumPy's, of an element; None where it is none of a tensor.
        inner: the same of the lists that are its elements; None where they are no lists that grow.
    """

    __slots__ = ("dtype", "inner", "most", "shape")

    def __init__(self, shape: tuple[int, ...] | None, dtype: Any = None):
        self.most = 0
        self.shape = shape
        self.dtype = dtype
        self.inner: Capacity | None = None

    def note(self, length: int) -> None:
        """A list of so many elements was seen."""
        if length > self.most:
            self.most = length

    @property
    def rows(self) -> int:
        """How many rows a recording has memory for: the next power of two, so that few recordings see it grow."""
        return max(_FEWEST, 1 << (self.most - 1).bit_length() if self.most else 0)


#: what lists, stacks and arrays are made longer by, with the input that the element is
_ITEMS = {PUSH: 1, STACK_PUSH: 1, ARRAY_WRITE: 2, SET: 2}


def enlarges(call: Call) -> bool:
    """Whether it sets an element of a list that becomes longer for one behind its end."""
    return call.op == SET and bool(call.step.node.attr(GROWS, False))


def note_list(running: Any, capacity: Capacity, value: TensorList) -> None:
    """A run of the host made a list."""
    del running
    capacity.note(value.length)


def note_stack(running: Any, capacity: Capacity, handle: Any) -> None:
    """A run of the host pushed to a stack."""
    capacity.note(stack_of(running, handle).length)


def note_array(running: Any, capacity: Capacity, handle: Any) -> None:
    """A run of the host wrote to an array."""
    capacity.note(held_by(running, handle).size)


class ListUses:
    """What is found of a block and of the loops in it."""

    def __init__(self, block: Block):
        self._same: dict[Value, Value] = {}
        self._pushes: list[Call] = []
        for operation in block.walk():
            match operation:
                case Loop():
                    self._loop(operation)
                case Select():
                    self._join(operation.output, operation.taken)
                    self._join(operation.output, operation.other)
                case Call() if operation.op in (PUSH, POP) or operation.op in IDENTITIES or enlarges(operation):
                    self._join(operation.outputs[0], operation.inputs[0])
                case _:
                    pass
            if isinstance(operation, Call) and operation.op in _ITEMS and (operation.op != SET or enlarges(operation)):
                self._pushes.append(operation)
        self._capacities: dict[Value, Capacity] = {}
        for push in self._pushes:
            item, root = push.inputs[_ITEMS[push.op]], self.root(push.inputs[0])
            shape = item.shape
            if push.op == ARRAY_WRITE and not self.grows(push.inputs[0]):
                continue
            known = self._capacities.get(root)
            if known is None:
                self._capacities[root] = Capacity(shape, item.dtype)
            elif known.shape != shape:
                known.shape = None
        for push in self._pushes:
            if push.op == PUSH:
                self._capacities[self.root(push.inputs[0])].inner = self._capacities.get(self.root(push.inputs[1]))

    def capacity(self, value: Value) -> Capacity | None:
        """Of a list, or of the stack or array that a handle is of; None where nothing is pushed to it."""
        return self._capacities.get(self.root(value))

    def grows(self, handle: Value) -> bool:
        """Whether an array of the block becomes longer where something is written behind its end."""
        made = call_of(self.root(handle), ARRAY)
        return made is not None and bool(made.step.node.attr("dynamic_size"))

    def root(self, value: Value) -> Value:
        """The value that stands for all that are the same list or stack."""
        while (other := self._same.get(value)) is not None:
            value = other
        return value

    def _join(self, one: Value, other: Value) -> None:
        one, other = self.root(one), self.root(other)
        if one is not other:
            self._same[one] = other

    def _loop(self, loop: Loop) -> None:
        count = len(loop.states)
        own = loop.body.arguments
        for outer, inner in zip((*loop.states, *loop.invariants), own, strict=True):
            # two lists that begin as one empty list have nothing in common
            if inner is not None and not outer.is_constant and call_of(outer, *_NEW) is None:
                self._join(inner, outer)
        for inner, after, output in zip(own[:count], loop.body.results, loop.outputs, strict=True):
            self._join(output, after)
            if inner is not None:
                self._join(inner, after)
