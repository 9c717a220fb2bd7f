"""Copies of float32 values in 16 bits: by the kernel that makes them, many by one launch, or from outside a loop."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from toolkit.compiler.backends.cuda.fusion.convolutions import stays
from toolkit.compiler.backends.cuda.operations import FusedCall
from toolkit.compiler.backends.cuda.precision.operations import NarrowCopies
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Loop
from toolkit.compiler.ir.value import Value
from toolkit.kernels.tensors import F32


class Copies:
    """The copies that operations of a block want.

    Args:
        dtype: theirs.
        keeps: what is made of variables is kept until these are changed.
        given: arguments of the block whose copies can be had from outside.

    Attributes:
        made: the copies that kernels of fused operations store.
        outside: the arguments of which copies are wanted from outside, with these.
    """

    def __init__(self, block: Block, dtype: Any, *, keeps: bool, given: Collection[Value] = ()):
        self._block, self._dtype, self._keeps, self._given = block, dtype, keeps, given
        self.outside: dict[Value, Value] = {}
        self._positions = block.positions()
        self._of: dict[tuple[Value, Any], Value] = {}
        self._wanted: list[tuple[Operation, Value, Value]] = []  # who wants it first, what, the copy
        self.made: set[Value] = set()

    def take(self, operation: Operation, values: Sequence[Value]) -> None:
        """Let an operation take copies of those values that are float32."""
        moved = {value: self._copy(operation, value) for value in values if value.dtype == F32}
        if moved:
            operation.replace_operands(moved)

    def take_in(self, loop: Loop, places: Collection[int]) -> None:
        """Let a loop take copies of those of its operands that are float32."""
        count = len(loop.states)
        given = [
            self._copy(loop, value) if place in places and value.dtype == F32 else value
            for place, value in enumerate(loop.inputs)
        ]
        loop.states, loop.invariants = tuple(given[:count]), tuple(given[count:])

    def stored(self, value: Value) -> Value:
        """The copy of what a kernel of fused operations makes: that stores both."""
        producer = value.producer
        assert isinstance(producer, FusedCall)
        found = self._of.get((value, None))
        if found is None:
            found = self._of[value, None] = Value(self._dtype, value.shape)
            place = producer.stores[producer.outputs.index(value)]
            producer.set_outputs([*producer.outputs, found])
            producer.stores = (*producer.stores, place)
            self.made.add(found)
        return found

    def _copy(self, operation: Operation, value: Value) -> Value:
        if value in self._given:
            return self.outside.setdefault(value, Value(self._dtype, value.shape))
        if isinstance(value.producer, FusedCall) and value.producer.block is self._block:
            return self.stored(value)
        key = (value, operation.conditions)
        found = self._of.get(key)
        if found is None:
            found = self._of[key] = Value(self._dtype, value.shape)
            self._wanted.append((operation, value, found))
        return found

    def put(self) -> None:
        """Make the copies: each launch makes all that are wanted later and are there already."""
        waiting = self._wanted
        while waiting:
            first, value, _ = waiting[0]
            kept, place = self._is_kept(value), self._positions[first]
            now = [each for each in waiting if self._is_there(each, first, place) and self._is_kept(each[1]) is kept]
            made = NarrowCopies(
                values=tuple(value for _, value, _ in now), stays=kept, outputs=[copy for _, _, copy in now],
                steps=[first.step], conditions=first.conditions,
            )  # fmt: skip
            self._block.insert_before(first, [made])
            waiting = [each for each in waiting if each not in now]

    def _is_there(self, wanted: tuple[Operation, Value, Value], first: Operation, place: int) -> bool:
        user, value, _ = wanted
        if user.conditions != first.conditions:
            return False
        producer = value.producer
        if producer is None or user is first:
            return True
        return self._positions.get(producer, place) < place

    def _is_kept(self, value: Value) -> bool:
        return value.is_constant or (self._keeps and stays(value))
