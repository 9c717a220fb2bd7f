"""Copies of float32 values in 16 bits: by the kernel that makes them, or many by one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.compiler.backends.cuda.convolutions import stays
from toolkit.compiler.backends.cuda.narrow_operations import NarrowCopies
from toolkit.compiler.backends.cuda.operations import FusedCall
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.kernels.tensors import F32


class Copies:
    """The copies that operations of a block want.

    Args:
        dtype: theirs.
        keeps: what is made of variables is kept until these are changed.

    Attributes:
        made: the copies that kernels of fused operations store.
    """

    def __init__(self, block: Block, dtype: Any, *, keeps: bool):
        self._block, self._dtype, self._keeps = block, dtype, keeps
        self._positions = block.positions()
        self._of: dict[tuple[Value, Any], Value] = {}
        self._wanted: list[tuple[Operation, Value, Value]] = []  # who wants it first, what, the copy
        self.made: set[Value] = set()

    def take(self, operation: Operation, values: Sequence[Value]) -> None:
        """Let an operation take copies of those values that are float32."""
        moved = {value: self._copy(operation, value) for value in values if value.dtype == F32}
        if moved:
            operation.replace_operands(moved)

    def _copy(self, operation: Operation, value: Value) -> Value:
        producer = value.producer
        fused = isinstance(producer, FusedCall) and producer.block is self._block
        key = (value, None if fused else operation.conditions)
        found = self._of.get(key)
        if found is None:
            found = self._of[key] = Value(self._dtype, value.shape)
            if fused:
                assert isinstance(producer, FusedCall)
                place = producer.stores[producer.outputs.index(value)]
                producer.set_outputs([*producer.outputs, found])
                producer.stores = (*producer.stores, place)
                self.made.add(found)
            else:
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
