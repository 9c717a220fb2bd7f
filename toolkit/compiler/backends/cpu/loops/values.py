"""Lists, stacks and arrays of tensors as one block of memory each, while a compiled loop runs."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from toolkit.compiler.context import RunningStep
from toolkit.compiler.ir.operations.sequences import SequenceKind, TensorSequence
from toolkit.kernels.cpu.memory.addresses import Table, fresh
from toolkit.kernels.cpu.native.iterations import BASE, CAPACITY, FLAGS, GONE, LENGTH, SET, UNSET
from toolkit.kernels.resources.handles import ResourceHandle
from toolkit.kernels.resources.stack import Stack
from toolkit.kernels.resources.tensor_array import TensorArray
from toolkit.kernels.resources.tensor_list import UNBOUNDED, TensorList, admits

_FIRST = 16  # elements there is room for at first


class SequenceBuffer:
    """One sequence of a loop, from run to run.

    Args:
        entry: the first of its entries in the loop's table.
    """

    def __init__(self, sequence: TensorSequence, entry: int):
        self.sequence = sequence
        self._entry = entry
        self._stride = math.prod(sequence.element) * int(sequence.dtype.itemsize)
        self._capacity = _FIRST
        self._own: Any = None  # memory that is used again when nobody else holds it
        self._array: Any = None
        self._flags: Any = None
        self._given: Any = None

    @property
    def owner(self) -> Any:
        """The stack or array that is bound, None for a list: that is a value."""
        return None if self.sequence.kind is SequenceKind.LIST else _owner(self._given)

    def bind(self, given: Any, table: Table, running: RunningStep) -> bool:
        """Take over what a list, stack or array holds; False where the loop must not be run as compiled."""
        sequence = self.sequence
        if sequence.opener is not None:
            given = sequence.opener.compute(running, given, np.zeros((), np.float32))[0]
        self._given = given
        if not self._is_expected(given):
            return False
        owner = _owner(given)
        rows = owner.rows
        length: int = owner.length
        self._array = self._flags = None
        if sequence.same is not None or (sequence.pops and not sequence.takes and sequence.kind is SequenceKind.STACK):
            self._place(table, length)
            return True
        changes = sequence.pushes or sequence.writes
        gone: set[int] = set()
        items: list[Any] | None = None
        if rows is None or not self._fits(rows):
            items, gone = self._items(owner)
            if any(item is None for item in items) and not (sequence.reads or sequence.writes):
                return False
            if any(item is not None and not self._is_element(item) for item in items):
                return False
        if items is None and not changes:
            self._array = rows
        else:
            self._array = self._room(max(length, self._capacity if sequence.pushes else 1), keep=changes)
            if items is None:
                self._array[:length] = rows
            else:
                for index, item in enumerate(items):
                    if item is not None:
                        self._array[index] = item
        if sequence.reads or sequence.writes:
            self._flags = np.full(max(length, 1), UNSET if items is not None or not length else SET, np.uint8)
            for index, item in enumerate(items or ()):
                if item is not None:
                    self._flags[index] = SET
            for index in gone:
                self._flags[index] = GONE
        self._place(table, length)
        return True

    def grow(self, table: Table) -> None:
        """Make room for more elements."""
        if not self.sequence.pushes or self._array is None:
            return
        length = table.cells[self._entry + LENGTH]
        self._capacity = max(2 * len(self._array), self._capacity)
        larger = fresh((self._capacity, *self.sequence.element), self.sequence.dtype, "a sequence")
        larger[:length] = self._array[:length]
        self._array = self._own = larger
        self._place(table, length)

    def finish(self, table: Table, same: Any = None) -> Any:
        """What the loop leaves: a new list, or the stack or array with other contents.

        Args:
            same: what every push pushed, where they were only counted.
        """
        sequence, array, flags, given = self.sequence, self._array, self._flags, self._given
        self._given = self._array = self._flags = None
        length = int(table.cells[self._entry + LENGTH])
        owner = _owner(given)
        if sequence.pops:
            return self._shortened(given, length)
        if sequence.kind is not SequenceKind.ARRAY and not (sequence.pushes or sequence.writes):
            return given
        if sequence.kind is SequenceKind.ARRAY and not sequence.writes:
            if owner.clear_after_read:
                self._clear(owner, flags)
            return given
        items: list[Any] | None = None
        cleared: set[int] = set()
        if sequence.same is not None:
            items = self._repeated(owner, length, same)
        elif flags is not None and not bool((flags[:length] == SET).all()):
            items = [array[index, ...] if flags[index] == SET else None for index in range(length)]
            cleared = {index for index in range(length) if flags[index] == GONE}
        match sequence.kind:
            case SequenceKind.LIST if items is None:
                return TensorList.of_rows(given.dtype, given.shape, array, length, given.max_items)
            case SequenceKind.LIST:
                return given.with_items(items)
            case SequenceKind.STACK if items is None:
                owner.replace_rows(array, length)
            case SequenceKind.STACK:
                owner.replace(items)
            case _ if items is None:
                owner.replace_rows(array[:length])
            case _:
                owner.replace(items, cleared if owner.clear_after_read else set())
        return given

    def _shortened(self, given: Any, length: int) -> Any:
        """A list or stack after elements were popped."""
        owner = _owner(given)
        rows = owner.rows
        if isinstance(owner, Stack):
            if rows is None:
                owner.replace(owner.state()[:length])
            else:
                owner.replace_rows(owner.dense, length)
            return given
        if rows is None:
            return given.with_items(given.items[:length])
        return TensorList.of_rows(given.dtype, given.shape, given.dense, length, given.max_items)

    def _repeated(self, owner: Any, length: int, same: Any) -> list[Any]:
        """The elements there were, and one tensor as often as it was pushed."""
        before: list[Any] = self._items(owner)[0]
        if length == len(before):
            return before
        room = self._room(1, keep=True)
        room[0] = same  # what comes from outside may be a part of somebody's arena
        return [*before, *[room[0, ...]] * (length - len(before))]

    @staticmethod
    def _clear(owner: TensorArray, flags: Any) -> None:
        """Let go of the elements that were read."""
        if bool((flags[: owner.size] == GONE).all()):
            owner.clear()
            return
        before, gone = owner.state()
        cleared = {index for index in range(len(before)) if flags[index] == GONE}
        if cleared != gone:
            owner.replace([None if index in cleared else item for index, item in enumerate(before)], cleared)

    @staticmethod
    def _items(owner: Any) -> tuple[list[Any], set[int]]:
        """The elements, None where there is none, and which of them were read and let go."""
        match owner:
            case TensorList():
                return owner.items, set()
            case Stack():
                return owner.state(), set()
            case _:
                return owner.state()

    def _is_expected(self, given: Any) -> bool:
        owner, sequence = _owner(given), self.sequence
        if getattr(owner, "dtype", None) is None or owner.dtype.numpy != sequence.dtype:
            return False
        match owner:
            case TensorList() if sequence.kind is SequenceKind.LIST:
                unbounded = owner.max_items == UNBOUNDED or not sequence.pushes
                return unbounded and admits(owner.shape.dims, sequence.element)
            case Stack() if sequence.kind is SequenceKind.STACK:
                return owner.limit < 0 or not sequence.pushes
            case TensorArray() if sequence.kind is SequenceKind.ARRAY:
                # where reading lets nothing go, a second read of an element is the interpreter's all the same
                return admits(owner.shape.dims, sequence.element)
            case _:
                return False

    def _is_element(self, item: Any) -> bool:
        return item.shape == self.sequence.element and item.dtype == self.sequence.dtype

    def _fits(self, rows: Any) -> bool:
        return rows.dtype == self.sequence.dtype and rows.shape[1:] == self.sequence.element and (
            rows.flags.c_contiguous
        )  # fmt: skip

    def _room(self, capacity: int, *, keep: bool) -> Any:
        """Memory for so many elements; that of the run before if nobody looks at it any more."""
        own = self._own
        if keep and own is not None and len(own) >= capacity and sys.getrefcount(own) <= _UNSHARED:
            return own
        made = fresh((capacity, *self.sequence.element), self.sequence.dtype, "a sequence")
        if keep:
            self._own = made
        return made

    def _place(self, table: Table, length: int) -> None:
        array, flags, entry = self._array, self._flags, self._entry
        table.number(entry + LENGTH, length)
        if array is None:  # elements are counted, never touched
            table.number(entry + BASE, 0)
            table.number(entry + CAPACITY, _ANY_NUMBER)
        else:
            capacity = len(array)
            table.number(entry + CAPACITY, capacity)
            table.place(entry + BASE, array, max(capacity, length) * self._stride)
        if flags is None:
            table.number(entry + FLAGS, 0)
        else:
            table.place(entry + FLAGS, flags, length)


_ANY_NUMBER = 1 << 62
_UNSHARED = 3  # references: the attribute, the local name, the argument of getrefcount


def _owner(given: Any) -> Any:
    return given.owned if isinstance(given, ResourceHandle) else given


def is_shared(held: list[SequenceBuffer]) -> bool:
    """Whether one stack or array came in two places, and is changed in one of them."""
    owners = [each.owner for each in held if each.owner is not None]
    return len({id(owner) for owner in owners}) < len(owners)
