"""Barrier: tuples that arrive component by component, by key, and leave whole."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import SCALAR, Shape
from toolkit.kernels.context import Cancellation, Done
from toolkit.kernels.queues.elements import own_row, shape_of
from toolkit.kernels.queues.kinds import PriorityQueue
from toolkit.kernels.types import Array


class Barrier:
    """Collects the components of each key; complete tuples wait in the order in which their keys first came.

    Args:
        name: for messages.
        types, shapes: of the components of a tuple.
    """

    def __init__(self, name: str, types: Sequence[DType], shapes: Sequence[Shape]):
        self.name = name
        self.types = list(types)
        self.shapes = list(shapes)
        self._lock = threading.Lock()
        self._ready = PriorityQueue(f"{name}_queue", [dtypes.string, *types], [SCALAR, *shapes], -1)
        self._incomplete: dict[bytes, tuple[int, list[Any]]] = {}
        self._next_index = -(2**63)
        self._closed = False
        self._cancelled = False

    def insert_many(self, component: int, keys: Array, values: Array, cancellation: Cancellation, done: Done) -> None:
        """Give each key its value of one component.

        Raises:
            InvalidArgumentError: there is no such component, a key has it already, or the values do not fit.
            CancelledError: the barrier is closed and these keys are new.
        """
        if component >= len(self.types):
            raise InvalidArgumentError(
                f"The component ID is out of range {component} > num_components (= {len(self.types)})"
            )
        shape = shape_of(values)
        if len(keys) and not np.size(values):
            raise InvalidArgumentError(
                f"Tensors with no elements are not supported {self.name}: received shape {Shape(shape)}"
            )
        if not shape or shape[0] != len(keys) or not self.shapes[component].is_compatible_with(Shape(shape[1:])):
            expected = Shape([len(keys)]).concatenate(self.shapes[component])
            raise InvalidArgumentError(
                f"Shape mismatch in tuple component {component}. Expected {expected}, got {Shape(shape)}"
            )
        complete: list[list[Any]] = []
        with self._lock:
            if self._closed and (self._cancelled or (len(keys) and not self._incomplete)):
                raise CancelledError(
                    f"Barrier {self.name} is closed.  Pending enqueues cancelled: {int(self._cancelled)}.  "
                    f"Number of new insertions: {len(keys)}.  Number of incomplete keys: {len(self._incomplete)}."
                )
            is_new = False
            try:
                for i, key in enumerate(keys.tolist()):
                    is_new |= self._insert_one(component, key, own_row(values, i), i, complete)
            finally:
                if is_new:
                    self._next_index += 1
        batch = [np.array([row[i] for row in complete], np.int64 if i == 0 else object) for i in range(2)]
        batch += [np.stack([row[2 + i] for row in complete]) if complete else () for i in range(len(self.types))]

        def enqueued(result: Any) -> None:
            with self._lock:
                finished = self._closed and not self._incomplete
            if isinstance(result, Exception) or not finished:
                done(result)
            else:
                self._ready.close(False, lambda _: done(result))

        if complete:
            self._ready.enqueue_many(batch, cancellation, enqueued)
        else:
            done([])

    def _insert_one(self, component: int, key: bytes, value: Any, position: int, complete: list[list[Any]]) -> bool:
        entry = self._incomplete.get(key)
        is_new = entry is None
        if entry is None:
            if self._closed:
                raise CancelledError(
                    f"Barrier {self.name} is closed, but attempted to insert a brand new key: {key.decode('latin1')}.  "
                    f"Pending enqueues cancelled: {int(self._cancelled)}.  Insertion index: {position}.  "
                    f"Number of incomplete keys: {len(self._incomplete)}."
                )
            entry = self._incomplete[key] = (self._next_index, [None] * len(self.types))
        index, components = entry
        if components[component] is not None:
            raise InvalidArgumentError(
                f"Key {key.decode('latin1')} already has a value for component {component} in barrier {self.name}"
            )
        components[component] = value
        if all(part is not None for part in components):
            del self._incomplete[key]
            complete.append([index, key, *components])
        return is_new

    def take_many(self, count: int, allow_small_batch: bool, cancellation: Cancellation, done: Done) -> None:
        """Take complete tuples: indices, keys and one batch per component.

        Raises:
            OutOfRangeError: the barrier is closed and cannot give so many.
        """
        with self._lock:
            if self._closed:
                available = self._ready.size()
                if allow_small_batch:
                    count = min(count, available)
                else:
                    available += len(self._incomplete)
                if available < max(count, 1):
                    raise OutOfRangeError(
                        f"Barrier '{self.name}' is closed and has insufficient elements "
                        f"(requested {count}, total size {available})"
                    )
        self._ready.dequeue_many(count, allow_small_batch, cancellation, done)

    def close(self, cancel_pending_enqueues: bool, done: Done) -> None:
        """Let no new keys in; keys that have begun may be completed unless they are cancelled.

        Raises:
            CancelledError: it is closed already.
        """
        with self._lock:
            if self._closed and (self._cancelled or not cancel_pending_enqueues):
                raise CancelledError(f"Barrier '{self.name}' is already closed.")
            self._closed = True
            self._cancelled = cancel_pending_enqueues
            if cancel_pending_enqueues:
                self._incomplete.clear()
            finished = not self._incomplete
        if finished:
            self._ready.close(cancel_pending_enqueues, done)
        else:
            done([])

    def ready_size(self) -> int:
        return self._ready.size()

    def incomplete_size(self) -> int:
        with self._lock:
            return len(self._incomplete)

    def waiting(self) -> list[Any]:
        """The attempts that wait now, for tests."""
        return list(self._ready._dequeues)  # pyright: ignore[reportPrivateUsage]
