"""Which numbers of host memory only the device knows while a step is recorded: those that follow from its tensors.

A predicate that is computed of tensors is copied to the host, which then takes a branch or goes on with a loop. A CUDA
graph cannot wait for that: in it, such a number stays on the device, and so does what is computed of it, such as the
counter of a loop whose end it decides. Whoever asks for its value on the host (an index into a list, a shape) cannot be
recorded.
"""

# numpy's arrays of an unknown type
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from toolkit.compiler.backends.cuda.conditionals.array_kernels import READ, WRITE
from toolkit.compiler.backends.cuda.conditionals.arrays import GATHER, INSIDE, SIZE
from toolkit.compiler.backends.cuda.conditionals.bounded import by_rows
from toolkit.compiler.backends.cuda.conditionals.host_numbers import HostNumber
from toolkit.compiler.backends.cuda.conditionals.list_uses import (
    GET,
    IDENTITIES,
    POP,
    PUSH,
    SET,
    STACK,
    STACK_POP,
    STACK_PUSH,
    ListUses,
    enlarges,
)
from toolkit.compiler.backends.cuda.loops.collected import Collect
from toolkit.compiler.backends.cuda.recording.drawing import DRAWS, GENERATORS
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.elementwise import ELEMENTWISE
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Loop, Select, Test
from toolkit.compiler.ir.value import Value
from toolkit.kernels.facts import COPY_IN, COPY_OUT, stays_on_host
from toolkit.kernels.gpu.elementwise import nests
from toolkit.kernels.registry import Kind

_DEVICE = "GPU"
#: what is computed of such numbers on the device instead, beside what one function of NumPy computes of them; nothing
#: that fails for some numbers, as integer divisions do
_COMPUTED = frozenset({"Equal", "NotEqual", "Cast"})
#: what it tells is the host's to print
ASSERT = "Assert"
#: the numbers from one to another
RANGE = "Range"
#: what asks for a whole list, and for its length
WHOLE, LENGTH = "TensorListStack", "TensorListLength"
#: what is done with stacks, wherever they are kept
_ENDS = frozenset({STACK_PUSH, STACK_POP})
_RESHAPES = frozenset({"Reshape", "ExpandDims", "Squeeze"})
_WHOLE = ("int32", "int64")
#: reductions whose numbers do not hang on an order, and the types that the host keeps
_REDUCED = {"Max": _WHOLE, "Min": _WHOLE, "Sum": _WHOLE, "All": ("bool",), "Any": ("bool",)}
#: these fail for a second number that is 0, and overflow for -1
_DIVISIONS = frozenset({"FloorDiv", "FloorMod"})
#: stateful ops that change nothing but variables, in place: a body may do them any number of times
_REPEATED = (
    "ReadVariableOp", "VarHandleOp", "Variable", "Assign", "Apply", "Scatter", "Resource", "SparseApply",
    "IsVariableInitialized", "VarIsInitializedOp", "Stateless", "_Fused", "Assert",
)  # fmt: skip


class DeviceNumbers:
    """What is found of a block and of the loops in it.

    Args:
        lists: the lists and stacks in it.
        fed: arguments in host memory that are other ones in each step: the device gets them.

    Attributes:
        values: numbers of host memory that the device alone knows in a recording; and some of the device's own.
        lists: the lists and stacks in it.
        repeated: the loops that such a number decides.
        decided: the operations on branches that such a number decides.
        bounded: tensors whose length the device alone knows (`bounded`).
        places: the numbers below such a length, which only tell what is taken of an array.
        why_not: why the block cannot be recorded for all that; "" where it can, as far as that shows here.
    """

    def __init__(self, block: Block, lists: ListUses, fed: Iterable[Value] = ()):
        self.values: set[Value] = set(fed)
        self.repeated: set[Loop] = set()
        self.decided: set[Operation] = set()
        self.why_not = ""
        self.lists = lists
        self.bounded: set[Value] = set()
        self.places: set[Value] = set()
        self._grown: set[Value] = set()  # the arrays and lists that grow where the device decides
        self._stacks: set[Value] = set()  # those that the device keeps, for it decides what they hold
        count = -1
        while (known := self._known()) != count:
            count = known
            self._block(block, is_inside=False)

    def _known(self) -> int:
        """How much was found so far."""
        return sum(map(len, (self.values, self._stacks, self._grown, self.bounded, self.places)))

    def _block(self, block: Block, *, is_inside: bool) -> None:
        """One walk over a block.

        Args:
            is_inside: it is done any number of times.
        """
        for operation in block:
            is_decided = any(value in self.values for value, _ in operation.predicates)
            if is_decided:
                self.decided.add(operation)
            inside = is_inside or is_decided
            if any(value in self.bounded or value in self.places for value in operation.inputs):
                self._bound(operation, is_inside=inside)
                continue
            match operation:
                case Loop():
                    self._loop(operation, is_inside=inside)
                case Call():
                    self._call(operation, is_inside=inside)
                case HostNumber():
                    if self.values.intersection(operation.numbers):
                        self.values.add(operation.output)
                case Select():
                    if operation.predicate in self.values or {operation.taken, operation.other} & self.values:
                        self.values.add(operation.output)
                case _:
                    pass

    def _bound(self, operation: Operation, *, is_inside: bool) -> None:
        """An operation that takes a tensor whose length the device alone knows."""
        if isinstance(operation, Call) and not is_inside:
            takes = self.places.intersection(operation.inputs)
            if operation.op == GATHER and takes and operation.inputs[1] in takes:
                self.bounded.add(operation.output)
                return
            if not takes and (operation.op == COPY_OUT or by_rows(operation)):
                self.bounded.add(operation.output)
                return
        self._refuse(f"{operation.name} takes a tensor whose length the device alone knows")

    def is_grown(self, handle: Value) -> bool:
        """Whether an array, or a list, grows where the device decides."""
        return self.lists.root(handle) in self._grown

    def _grows(self, call: Call, *, is_inside: bool) -> bool:
        """What is written to, or asked for the size of, an array that grows; whether it was that."""
        handle = call.inputs[0]
        if call.op == WRITE and (is_inside or self.given(call)) and self.lists.grows(handle):
            self._grown.add(self.lists.root(handle))
        if call.op == SIZE and self.is_grown(handle):
            self.values.add(call.output)
        return call.op == SIZE

    def _loop(self, loop: Loop, *, is_inside: bool) -> None:
        body, count = loop.body, len(loop.states)
        own = body.arguments[:count]
        for outer, inner in zip((*loop.states, *loop.invariants), body.arguments, strict=True):
            if outer in self.values and inner is not None:
                self.values.add(inner)
        self._block(body, is_inside=is_inside or loop in self.repeated)
        for argument, after, output in zip(own, body.results, loop.outputs, strict=True):
            if argument is not None and (after in self.values or argument in self.values):
                self.values.update((argument, output))
        if any(isinstance(each, Test) and each.condition in self.values for each in body):
            self.repeated.add(loop)
            if any(isinstance(each, Collect) for each in body):
                self._refuse(f"{loop.name} keeps what each of its iterations gives on the host")
            for argument, after, output in zip(own, body.results, loop.outputs, strict=True):
                if after is not argument:
                    self.values.add(output)
                    if argument is not None:
                        self.values.add(argument)

    def _call(self, call: Call, *, is_inside: bool) -> None:
        node = call.step.node
        if call.op == COPY_OUT:
            self.values.add(call.output)
            return
        if call.op == COPY_IN:
            return
        if self._list(call, is_inside=is_inside):
            return
        if call.op in _ENDS:
            self._end(call, is_inside=is_inside)
            return
        if call.op in (WRITE, SIZE) and self._grows(call, is_inside=is_inside):
            return
        if self._ranges(call) and not is_inside:
            self.places.add(call.output)
            return
        is_repeated = node.op.startswith(_REPEATED) or node.op in DRAWS | GENERATORS | INSIDE
        if is_inside and call.step.kind is Kind.STATEFUL and not is_repeated:
            self._refuse(
                f"{node.name} ({node.op}) does something on the host in a loop or branch that the device decides"
            )
        if not self.given(call) or node.op in (READ, WRITE, ASSERT):
            return
        if call.op in (GET, SET):
            if call.op == GET and call.inputs[2] in self.values:
                self._refuse(f"{node.name} (TensorListGetItem) takes a shape that the device alone knows")
            return  # an element, or a list: no numbers of host memory
        known = _is_computed(call) or is_reduced(call) or self.is_reshaped(call) or self.is_filled(call)
        if call.op not in IDENTITIES and not known:
            self._refuse(f"{node.name} ({node.op}) takes a number that the device alone knows")
        self.values.update(call.outputs)

    def _list(self, call: Call, *, is_inside: bool) -> bool:
        """A list that may grow where the device decides; whether no more is to be found of what is done with it."""
        if call.op in (PUSH, POP) or enlarges(call):
            if is_inside or self.given(call):
                self._grown.add(self.lists.root(call.inputs[0]))
            return False
        if call.op not in (WHOLE, LENGTH) or not self.is_grown(call.inputs[0]):
            return False
        if call.op == LENGTH:
            self.values.add(call.output)
            return True
        self.bounded.add(call.output)
        if is_inside or call.step.node.attr("num_elements", -1) != -1:
            self._refuse(f"{call.name} takes a list whose length the device alone knows")
        return True

    def _end(self, call: Call, *, is_inside: bool) -> None:
        """An element is pushed to a stack or popped from it."""
        root = self.lists.root(call.inputs[0])
        if is_inside or self.given(call):
            self._stacks.add(root)
        if root not in self._stacks:
            return
        is_number = call.op == STACK_POP and _is_on_host(call)
        if is_number or (call.op == STACK_PUSH and call.inputs[1] in self.values):
            self.values.add(call.output)

    def _ranges(self, call: Call) -> bool:
        """Whether it gives the numbers below one that the device alone knows."""
        if call.op != RANGE or call.inputs[1] not in self.values or call.output.dtype != np.int32:
            return False
        begin, step = (call.inputs[place].constant for place in (0, 2))
        return begin is not None and step is not None and (np.size(begin), np.size(step)) == (1, 1) and (
            int(np.asarray(begin).reshape(())), int(np.asarray(step).reshape(()))
        ) == (0, 1)  # fmt: skip

    def is_filled(self, call: Call) -> bool:
        """Whether it repeats a number that the device alone knows as often as everybody knows."""
        return call.op == "Fill" and call.inputs[1] in self.values and call.inputs[0] not in self.values

    def is_reshaped(self, call: Call) -> bool:
        """Whether it gives numbers that the device alone knows another shape, which everybody knows."""
        return (
            call.op in _RESHAPES
            and call.inputs[0] in self.values
            and not any(value in self.values for value in call.inputs[1:])
            and call.output.shape is not None
            and call.inputs[0].shape is not None
        )

    def keeps_stack(self, call: Call) -> bool:
        """Whether a call makes or takes a stack that the device keeps."""
        if call.op == STACK:
            return self.lists.root(call.outputs[0]) in self._stacks
        return call.op in _ENDS and self.lists.root(call.inputs[0]) in self._stacks

    def given(self, call: Call) -> bool:
        """Whether a call takes such a number where it wants one in host memory."""
        wanted = range(min(len(call.inputs), len(call.step.node.input_types)))
        return any(
            call.inputs[index] in self.values and stays_on_host(call.step.node, _DEVICE, index, output=False)
            for index in wanted
        )

    def _refuse(self, why: str) -> None:
        self.why_not = self.why_not or why


def _is_on_host(pop: Call) -> bool:
    """Whether what is popped lies in host memory: its op has it so, and nobody takes it on the device as it is."""
    if not stays_on_host(pop.step.node, _DEVICE, 0, output=True):
        return False
    users = [user for user in pop.output.users if not isinstance(user, Loop)]
    return not users or any(
        value is pop.output and isinstance(user, Call) and stays_on_host(user.step.node, _DEVICE, index, output=False)
        for user in users
        for index, value in enumerate(user.inputs[: len(user.step.node.input_types)])
    )


def copies_numbers_out(block: Block) -> bool:
    """Whether a block copies a tensor to host memory on its way, so that it cannot be recorded as it is."""
    return any(isinstance(operation, Call) and operation.op == COPY_OUT for operation in block.walk())


def _is_computed(call: Call) -> bool:
    """Whether the device can compute it in the host's place."""
    node = call.step.node
    row = ELEMENTWISE.get(call.op)
    is_safe = row is not None and (row.numpy or call.op in _COMPUTED or _divides(call))
    if not is_safe or call.step.deref or len(call.outputs) != 1:
        return False
    types = [value.dtype.name for value in call.inputs if value.dtype is not None]
    output = call.output.dtype
    return len(types) == len(node.input_types) and output is not None and nests.is_writable(call.op, types, output.name)


def _divides(call: Call) -> bool:
    """Whether it is a division that fails for no number."""
    by = call.inputs[-1].constant
    return call.op in _DIVISIONS and isinstance(by, np.ndarray | np.generic) and bool(np.all(np.greater(by, 0)))


def is_reduced(call: Call) -> bool:
    """Whether it reduces numbers over axes that are known, which the device can do in the host's place."""
    if call.op not in _REDUCED or len(call.outputs) != 1 or not isinstance(call.inputs[1].constant, np.ndarray):
        return False
    dtype = call.output.dtype
    return dtype is not None and dtype.name in _REDUCED[call.op]
