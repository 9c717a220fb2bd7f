"""Staging areas: tuples put aside for later, in order or by key."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from typing import Any

from toolkit.errors import InvalidArgumentError, ResourceExhaustedError
from toolkit.kernels.context import Cancellation, Done
from toolkit.kernels.queues.elements import own
from toolkit.kernels.queues.waiting import NOT_YET, Waiting


class _Bounded(Waiting):
    """What both kinds share: how much fits."""

    def __init__(self, capacity: int, memory_limit: int):
        super().__init__()
        self._capacity = capacity
        self._memory_limit = memory_limit
        self._bytes = 0

    def _check_limit(self, size: int) -> None:
        if 0 < self._memory_limit < size:
            raise ResourceExhaustedError(
                f"Attempted to insert tensors with combined size of '{size}' bytes into Staging Area "
                f"with a memory limit of '{self._memory_limit}'."
            )

    def _has_room(self, count: int, size: int) -> bool:
        if 0 < self._capacity <= count:
            return False
        return not self._memory_limit > 0 or self._bytes + size <= self._memory_limit


class StagingArea(_Bounded):
    """Tuples, first in first out.

    Args:
        capacity: how many tuples fit; 0: any number.
        memory_limit: how many bytes fit; 0: any number.
    """

    def __init__(self, capacity: int, memory_limit: int):
        super().__init__(capacity, memory_limit)
        self._tuples: deque[list[Any]] = deque()

    def put(self, values: Sequence[Any], cancellation: Cancellation, done: Done) -> None:
        """Add a tuple; waits while the area is full.

        Raises:
            ResourceExhaustedError: it could never fit.
        """
        element = [own(value) for value in values]
        size = num_bytes(element)
        self._check_limit(size)

        def trial() -> Any:
            if not self._has_room(len(self._tuples), size):
                return NOT_YET
            self._tuples.append(element)
            self._bytes += size
            return []

        self.attempt(trial, cancellation, done, "Stage")

    def get(self, cancellation: Cancellation, done: Done) -> None:
        """Take the oldest tuple; waits while there is none."""

        def trial() -> Any:
            if not self._tuples:
                return NOT_YET
            element = self._tuples.popleft()
            self._bytes -= num_bytes(element)
            return element

        self.attempt(trial, cancellation, done, "Unstage")

    def peek(self, index: int, cancellation: Cancellation, done: Done) -> None:
        """Look at a tuple, the oldest being number 0; waits until there are enough."""

        def trial() -> Any:
            return list(self._tuples[index]) if 0 <= index < len(self._tuples) else NOT_YET

        self.attempt(trial, cancellation, done, "StagePeek")

    def size(self) -> int:
        with self.lock:
            return len(self._tuples)

    def clear(self) -> None:
        with self.lock:
            self._tuples.clear()
            self._bytes = 0
        self.changed()


class StagingMap(_Bounded):
    """Tuples by key, which may arrive and leave component by component.

    Args:
        capacity, memory_limit: as for `StagingArea`.
        num_components: how long a complete tuple is.
        ordered: an unstage without a key takes the smallest key; otherwise the one that came first.
    """

    def __init__(self, capacity: int, memory_limit: int, num_components: int, ordered: bool):
        super().__init__(capacity, memory_limit)
        self._num_components = num_components
        self._ordered = ordered
        self._incomplete: dict[int, list[Any]] = {}
        self._complete: dict[int, list[Any]] = {}

    def _check_index(self, key: int, index: int) -> None:
        if not 0 <= index < self._num_components:
            raise InvalidArgumentError(f"Index '{index}' for key '{key}' was out of bounds '{self._num_components}'.")

    def put(
        self, key: int, indices: Sequence[int], values: Sequence[Any], cancellation: Cancellation, done: Done
    ) -> None:
        """Add components of a key; waits while the map is full.

        Raises:
            InvalidArgumentError: indices that are out of range, not increasing, or given before.
            ResourceExhaustedError: it could never fit.
        """
        if len(indices) != len(values):
            raise InvalidArgumentError(
                f"Number of tensors '{len(values)}' does not match the number of indices '{len(indices)}'"
            )
        if any(b <= a for a, b in itertools.pairwise(indices)):
            raise InvalidArgumentError("Indices are not strictly ordered")
        for index in indices:
            self._check_index(key, index)
        parts = [own(value) for value in values]
        size = num_bytes(parts)
        self._check_limit(size)

        def trial() -> Any:
            # Components of a key that is half there may always come: they are what makes it leave.
            is_begun = key in self._incomplete
            if not self._has_room(-1 if is_begun else len(self._complete) + len(self._incomplete), size):
                return NOT_YET
            element = self._incomplete.get(key, [None] * self._num_components)
            for index in indices:
                if element[index] is not None:
                    raise InvalidArgumentError(
                        f"The tensor for index '{index}' for key '{key}' was already initialized "
                        f"'{self._num_components}'."
                    )
            for index, part in zip(indices, parts, strict=True):
                element[index] = part
            self._bytes += size
            if all(part is not None for part in element):
                self._incomplete.pop(key, None)
                self._complete.setdefault(key, element)
            else:
                self._incomplete[key] = element
            return []

        self.attempt(trial, cancellation, done, "MapStage")

    def _pick(self, key: int, indices: Sequence[int]) -> list[Any]:
        element = self._complete[key]
        for index in indices:
            self._check_index(key, index)
            if element[index] is None:
                raise InvalidArgumentError(f"Tensor at index '{index}' for key '{key}' has already been removed.")
        return [element[index] for index in indices]

    def _remove(self, key: int, indices: Sequence[int]) -> list[Any]:
        picked = self._pick(key, indices)
        element = self._complete[key]
        for index in indices:
            element[index] = None
        self._bytes -= num_bytes(picked)
        if all(part is None for part in element):
            del self._complete[key]
        return picked

    def get(self, key: int, indices: Sequence[int], cancellation: Cancellation, done: Done) -> None:
        """Take components of a key; waits until it is complete."""
        self.attempt(
            lambda: self._remove(key, indices) if key in self._complete else NOT_YET, cancellation, done, "MapUnstage"
        )

    def peek(self, key: int, indices: Sequence[int], cancellation: Cancellation, done: Done) -> None:
        """Look at components of a key; waits until it is complete."""
        self.attempt(
            lambda: self._pick(key, indices) if key in self._complete else NOT_YET, cancellation, done, "MapPeek"
        )

    def pop(self, indices: Sequence[int], cancellation: Cancellation, done: Done) -> None:
        """Take components of some key, with the key first; waits until there is one."""

        def trial() -> Any:
            if not self._complete:
                return NOT_YET
            key = min(self._complete) if self._ordered else next(iter(self._complete))
            return key, self._remove(key, indices)

        self.attempt(trial, cancellation, done, "MapUnstageNoKey")

    def size(self) -> int:
        with self.lock:
            return len(self._complete)

    def incomplete_size(self) -> int:
        with self.lock:
            return len(self._incomplete)

    def clear(self) -> None:
        with self.lock:
            self._complete.clear()
            self._incomplete.clear()
            self._bytes = 0
        self.changed()


def num_bytes(values: Sequence[Any]) -> int:
    """What tensors occupy; handles and variants count as nothing."""
    return sum(int(getattr(value, "nbytes", 0)) for value in values)
