"""Elementwise operations that wait to become nests, in groups of one shape.

Large tensors that have nothing to do with each other are in groups of their own: computed together, all of them would
be there at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value


class Group:
    """Operations of one shape, on one branch, that nobody has asked for yet."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self.operations: list[Operation] = []
        self.weight = 0
        self.operands: set[Value] = set()


class Groups:
    """All that wait, and who takes what.

    Args:
        separate: elements from which on a loop of its own costs nothing.

    Attributes:
        place: of a value that waits.
    """

    def __init__(self, separate: int) -> None:
        self._separate = separate
        self.place: dict[Value, Group] = {}
        self._all: dict[Group, None] = {}
        self._small: dict[Any, Group] = {}
        self._readers: dict[tuple[Value, Any], Group] = {}

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._all))

    def related(self, operation: Operation, key: Any) -> list[Group]:
        """Those that an operation may join: of its shape; if that is large, those that it shares something with."""
        if operation.output.size < self._separate:
            return [self._small[key]] if key in self._small else []
        found = [self.place.get(value) or self._readers.get((value, key)) for value in operation.inputs]
        return list(dict.fromkeys(group for group in found if group is not None))

    def add(self, operation: Operation, weight: int, key: Any, related: Sequence[Group]) -> None:
        """Let an operation wait; what it joins becomes one."""
        group = related[0] if related else Group(key)
        if not related:
            self._all[group] = None
            if operation.output.size < self._separate:
                self._small[key] = group
        self.merge([group, *related[1:]])
        self._put(group, operation)
        group.weight += weight

    def merge(self, groups: Sequence[Group]) -> None:
        """Put groups of one key, of which none takes what waits in another, into the first one."""
        group = groups[0]
        for other in groups[1:]:
            self.remove(other)
            for each in other.operations:
                self._put(group, each)
            group.weight += other.weight

    def _put(self, group: Group, operation: Operation) -> None:
        group.operations.append(operation)
        for value in operation.inputs:
            if value not in self.place:
                group.operands.add(value)
                if not value.is_constant and value.size >= self._separate:
                    self._readers[value, group.key] = group
        self.place[operation.output] = group

    def remove(self, group: Group) -> None:
        """It waits no more."""
        del self._all[group]
        if self._small.get(group.key) is group:
            del self._small[group.key]
        for operation in group.operations:
            self.place.pop(operation.output, None)
        for value in group.operands:
            if self._readers.get((value, group.key)) is group:
                del self._readers[value, group.key]
