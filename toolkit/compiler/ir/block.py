"""Blocks: operations in an order in which they can run, and the ways to rewrite them.

The operations are a linked list, so that putting one in front of another, taking one out, or one in the place of
another takes the same time wherever it is. Passes walk over a copy (`operations`) and rewrite as they go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.relations import text
from toolkit.compiler.ir.value import Value


class Block:
    """A straight line of operations.

    Attributes:
        arguments: the values of the _Arg nodes by index; None for one that is not used.
        results: the values of the _Retval nodes.
        keeps_nan: the program changes variables: a NaN in it must be seen.
        device: of a program that runs on a device with a memory of its own; its tensors are there.
        turned: operations that run channels last where the graph has them channels first.
        notes: what a pass did or could not do, for people.
    """

    def __init__(self) -> None:
        self.arguments: list[Value | None] = []
        self.results: list[Value] = []
        self.keeps_nan = False
        self.device = ""
        self.turned = 0
        self.notes: list[str] = []
        self._first: Operation | None = None
        self._last: Operation | None = None
        self._count = 0
        self._listed: list[Operation] | None = None  # the operations in order, while they stay as they are

    # -- looking ---------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Operation]:
        """The operations in order. The one at hand may be taken out meanwhile."""
        operation = self._first
        while operation is not None:
            following = operation.next
            yield operation
            operation = following

    def __len__(self) -> int:
        return self._count

    @property
    def operations(self) -> list[Operation]:
        """The operations in order, as a list of its own."""
        if self._listed is None:
            self._listed = list(self)
        return list(self._listed)

    @property
    def first(self) -> Operation | None:
        return self._first

    @property
    def last(self) -> Operation | None:
        return self._last

    def walk(self) -> Iterator[Operation]:
        """The operations and, behind each, those inside it."""
        for operation in self:
            yield operation
            for region in operation.regions():
                yield from region.walk()

    def positions(self) -> dict[Operation, int]:
        """Where each operation stands."""
        return {operation: index for index, operation in enumerate(self)}

    # -- rewriting -------------------------------------------------------------------------------------------------

    def append(self, operation: Operation) -> None:
        """Put an operation behind all others."""
        self._link(operation, self._last, None)

    def insert_before(self, place: Operation, made: Iterable[Operation]) -> None:
        """Put operations in front of one that is here, in their order."""
        for operation in made:
            self._link(operation, place.previous, place)

    def insert_after(self, place: Operation, made: Iterable[Operation]) -> None:
        """Put operations behind one that is here, in their order."""
        for operation in made:
            self._link(operation, place, place.next)
            place = operation

    def weave(
        self,
        before: Mapping[Operation, Sequence[Operation]],
        after: Mapping[Operation, Sequence[Operation]] | None = None,
    ) -> None:
        """Put operations in front of others, and behind others."""
        for place, made in before.items():
            self.insert_before(place, made)
        for place, made in (after or {}).items():
            self.insert_after(place, made)

    def erase(self, operation: Operation) -> None:
        """Take an operation out; it takes nothing any more."""
        operation.drop_operands()
        self._unlink(operation)

    def remove(self, gone: Collection[Operation]) -> None:
        """Take operations out."""
        for operation in list(gone):
            if operation.block is self:
                self.erase(operation)

    def erase_after(self, place: Operation | None) -> None:
        """Take out all operations behind one, or all; the last one first."""
        while self._last is not None and self._last is not place:
            self.erase(self._last)

    def replace(self, old: Operation, new: Operation) -> None:
        """Put an operation in the place of another, which takes nothing any more."""
        previous, following = old.previous, old.next
        self.erase(old)
        self._link(new, previous, following)

    def move_before(self, place: Operation, operation: Operation) -> None:
        """Put an operation of this block in front of another."""
        self._unlink(operation)
        self._link(operation, place.previous, place)

    def reorder(self, order: Iterable[Operation]) -> None:
        """Have these operations, in this order: those that are here, without some, and new ones."""
        for operation in list(self):
            self._unlink(operation)
        for operation in order:
            self.append(operation)

    def replace_value(self, old: Value, new: Value) -> None:
        """Everybody who takes `old` takes `new`, and whom it decided `new` decides.

        Raises:
            ValueError: they are of two types, or of two shapes that are known: a mistake of the pass.
        """
        if new.dtype != old.dtype or (new.shape != old.shape and None not in (new.shape, old.shape)):
            raise ValueError(f"{text(new)} is put in the place of {text(old)}")
        for user in list(old.users):
            user.replace_operands({old: new})
        for decided in list(old.decides or ()):
            decided.conditions = decided.conditions.replaced(old, new)
        if old.is_result:
            self.results = [new if value is old else value for value in self.results]
            new.is_result = True
            old.is_result = False

    def drop_unused(self, has_effect: Callable[[Operation], bool]) -> None:
        """Take out operations whose outputs nobody needs.

        Args:
            has_effect: says of an operation whether it must run all the same.
        """
        operation = self._last
        while operation is not None:
            previous = operation.previous
            if not any(value.is_needed for value in operation.outputs) and not has_effect(operation):
                self.erase(operation)
            operation = previous

    # -- the list --------------------------------------------------------------------------------------------------

    def _link(self, operation: Operation, previous: Operation | None, following: Operation | None) -> None:
        assert operation.block is None, "an operation is in two places"
        operation.block, operation.previous, operation.next = self, previous, following
        if previous is None:
            self._first = operation
        else:
            previous.next = operation
        if following is None:
            self._last = operation
        else:
            following.previous = operation
        self._count += 1
        self._listed = None

    def _unlink(self, operation: Operation) -> None:
        assert operation.block is self, "an operation is taken out of where it is not"
        previous, following = operation.previous, operation.next
        if previous is None:
            self._first = following
        else:
            previous.next = following
        if following is None:
            self._last = previous
        else:
            following.previous = previous
        operation.block = operation.previous = operation.next = None
        self._count -= 1
        self._listed = None


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
    for operation in block:
        if operation.predicates or operation.regions():
            raise NotSupportedError(operation, "there are branches or loops in it")
        made.append(_copied(operation, copy))
    made.results = [copy(value) for value in block.results]
    return made


def _copied(operation: Operation, copy: Callable[[Value], Value]) -> Operation:
    """The same operation over other values."""
    outputs = [copy(value) for value in operation.outputs]
    moved = {value: copy(value) for value in operation.inputs}
    state: dict[str, Any] = {name: getattr(operation, name) for name in operation.fields}
    state |= {field.name: field.mapped(state[field.name], moved) for field in operation.operand_fields}
    return type(operation)(**{**state, "outputs": outputs})
