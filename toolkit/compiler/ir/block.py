"""What the segment compiler works on: values with known shapes, and the operations between them, in order."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from toolkit.compiler.program import Step


class Value:
    """A tensor, or another thing that flows.

    Attributes:
        dtype: its numpy type; None for what is not an array.
        shape: None when it is not known before running.
        constant: what it always is; None when it is computed.
        producer: the operation that makes it; None for constants and arguments.
        users: the operations that take it, and how many times each does.
        is_result: the program returns it.
        facts: what is known of a tensor list (`lists.ListFacts`).
        is_predicate: it decides whether operations run.
    """

    __slots__ = ("constant", "dtype", "facts", "is_predicate", "is_result", "producer", "shape", "users")

    def __init__(self, dtype: Any, shape: tuple[int, ...] | None, constant: Any = None):
        self.dtype = dtype
        self.shape = shape
        self.constant = constant
        self.producer: Operation | None = None
        self.users: dict[Operation, int] = {}
        self.is_result = False
        self.is_predicate = False
        self.facts: Any = None

    @property
    def is_constant(self) -> bool:
        return self.constant is not None

    @property
    def size(self) -> int:
        """How many elements; the shape must be known."""
        assert self.shape is not None
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * int(self.dtype.itemsize)

    @property
    def sole_user(self) -> Operation | None:
        """The one operation that takes this value, if there is but one and nobody else sees it."""
        if len(self.users) != 1 or self.is_result or self.is_predicate:
            return None
        user, times = next(iter(self.users.items()))
        return user if times == 1 else None

    @property
    def is_needed(self) -> bool:
        return bool(self.users) or self.is_result or self.is_predicate


class Operation:
    """Something that is executed.

    Attributes:
        kind: the op of the graph ("Conv2D"), or after lowering what the emitter knows ("conv", "call").
        attrs: what it needs besides inputs, by kind.
        guard: the branches it is on (`control.Conditions`).
        steps: the program's steps that it does the work of, the one that errors are reported for last.
    """

    __slots__ = ("attrs", "guard", "inputs", "kind", "outputs", "steps")

    def __init__(
        self, kind: str, inputs: Iterable[Value], outputs: Iterable[Value], steps: Sequence[Step], **attrs: Any
    ):
        self.kind = kind
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.steps = list(steps)
        self.guard: Any = None
        self.attrs: dict[str, Any] = attrs
        self._use()
        for value in self.outputs:
            value.producer = self

    @property
    def output(self) -> Value:
        return self.outputs[0]

    @property
    def step(self) -> Step:
        return self.steps[-1]

    @property
    def name(self) -> str:
        return self.step.node.name

    @property
    def predicates(self) -> list[tuple[Value, bool]]:
        """What must hold for it to run: values and what they must be."""
        return list(self.guard.terms) if self.guard is not None else []

    def set_inputs(self, inputs: Iterable[Value]) -> None:
        """Take other inputs from now on."""
        for value in self.inputs:
            value.users.pop(self, None)
        self.inputs = list(inputs)
        self._use()

    def _use(self) -> None:
        for value in self.inputs:
            value.users[self] = value.users.get(self, 0) + 1

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"


class Block:
    """A straight line of operations.

    Attributes:
        operations: in an order in which they can run; None where one was taken out.
        arguments: the values of the _Arg nodes by index; None for one that is not used.
        results: the values of the _Retval nodes.
    """

    def __init__(self) -> None:
        self.operations: list[Operation | None] = []
        self.arguments: list[Value | None] = []
        self.results: list[Value] = []
        self.keeps_nan = False  # the program changes variables: a NaN in it must be seen
        self.turned = 0  # operations that run channels last where the graph has them channels first
        self.notes: list[str] = []  # what a pass did or could not do, for people

    def live(self) -> list[Operation]:
        """The operations that are there."""
        return [operation for operation in self.operations if operation is not None]

    def compact(self) -> None:
        """Close the gaps."""
        self.operations = list(self.live())

    def weave(
        self,
        before: Mapping[Operation, Sequence[Operation]],
        after: Mapping[Operation, Sequence[Operation]] | None = None,
    ) -> None:
        """Put operations in front of others, and behind others, in one pass."""
        after = after or {}
        self.operations = [each for one in self.live() for each in (*before.get(one, ()), one, *after.get(one, ()))]

    def remove(self, gone: Container[Operation]) -> None:
        """Take operations out; they take nothing any more."""
        for operation in self.live():
            if operation in gone:
                operation.set_inputs(())
        self.operations = [operation for operation in self.live() if operation not in gone]

    def positions(self) -> dict[Operation, int]:
        """Where each operation stands."""
        return {operation: index for index, operation in enumerate(self.operations) if operation is not None}

    def replace_value(self, old: Value, new: Value) -> None:
        """Everybody who takes `old` takes `new`."""
        for user in list(old.users):
            user.set_inputs([new if value is old else value for value in user.inputs])
        if old.is_result:
            self.results = [new if value is old else value for value in self.results]
            new.is_result = True
            old.is_result = False

    def drop_unused(self, has_effect: Any) -> None:
        """Take out operations whose outputs nobody needs.

        Args:
            has_effect: says of an operation whether it must run all the same.
        """
        for index in range(len(self.operations) - 1, -1, -1):
            operation = self.operations[index]
            if operation is None or has_effect(operation):
                continue
            if not any(value.is_needed for value in operation.outputs):
                operation.set_inputs(())
                self.operations[index] = None
        self.compact()


def clone(block: Block) -> Block:
    """A copy of a block without branches or loops in it, with values of its own; constants are shared."""
    copies: dict[Value, Value] = {}

    def copy(value: Value) -> Value:
        if value not in copies:
            copies[value] = made = Value(value.dtype, value.shape, value.constant)
            made.facts, made.is_result = value.facts, value.is_result
        return copies[value]

    made = Block()
    made.keeps_nan = block.keeps_nan
    made.arguments = [None if value is None else copy(value) for value in block.arguments]
    for operation in block.live():
        if operation.predicates or "body" in operation.attrs:
            raise NotSupportedError(operation, "there are branches or loops in it")
        inputs, outputs = map(copy, operation.inputs), map(copy, operation.outputs)
        made.operations.append(Operation(operation.kind, inputs, outputs, operation.steps, **operation.attrs))
    made.results = [copy(value) for value in block.results]
    return made


class NotSupportedError(Exception):
    """The compiled form of an operation cannot be had: it must run by its own kernel, or less must be fused to it.

    Attributes:
        nodes: names of the graph's nodes that are involved, the last one first.
    """

    def __init__(self, operation: Operation, reason: str):
        self.nodes = [step.node.name for step in reversed(operation.steps)]
        self.reason = reason
        super().__init__(f"{operation.name}: {reason}")
