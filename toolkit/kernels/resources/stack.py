"""Stacks: what loops of TensorFlow 1 keep values in for their gradients (per-step resources)."""

from __future__ import annotations

import threading
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph.dtypes import DType
from toolkit.kernels.resources.tensor_space import HOST


class Stack:
    """A stack of tensors of one type that forward loops fill and backward loops empty.

    Attributes:
        limit: how many it may hold; negative: any number.
    """

    def __init__(self, name: str, dtype: DType, limit: int = -1):
        self.name = name
        self.dtype = dtype
        self.limit = limit
        self.dense: Any = None  # a tensor whose first rows the elements are, if they are known to be
        self._values: list[Any] | None = []  # None: the rows of the tensor, which nobody has asked for yet
        self._length = 0
        self._closed = False
        self._lock = threading.Lock()

    @property
    def length(self) -> int:
        """How many elements there are."""
        self._check_open()
        return self._length if self._values is None else len(self._values)

    @property
    def rows(self) -> Any:
        """The elements as one tensor, where that is there already."""
        return None if self.dense is None else self.dense[: self.length]

    def state(self) -> list[Any]:
        """The elements, the first pushed first."""
        self._check_open()
        return list(self._elements())

    def replace(self, values: list[Any]) -> None:
        """Hold these elements."""
        self._values = values
        self.dense = None

    def replace_rows(self, dense: Any, length: int) -> None:
        """Hold the first rows of a tensor."""
        self._values, self._length, self.dense = None, length, dense

    def _elements(self) -> list[Any]:
        if self._values is None:
            self._values = HOST.rows(self.dense, self._length)  # compiled code of the host alone makes it
        return self._values

    def push(self, value: Any, dtype: DType) -> None:
        """Raises InvalidArgumentError: closed, full, or of another type."""
        with self._lock:
            self._check_open()
            if dtype is not self.dtype:
                raise InvalidArgumentError(f"Must have type {self.dtype} but got {dtype}")
            elements = self._elements()
            if 0 <= self.limit <= len(elements):
                raise InvalidArgumentError(f"Stack[{self.name}] overflowed its max_size ({self.limit})")
            elements.append(value)
            self.dense = None

    def pop(self) -> Any:
        """Raises InvalidArgumentError: closed or empty."""
        with self._lock:
            self._check_open()
            elements = self._elements()
            if not elements:
                raise InvalidArgumentError(f"Stack[{self.name}] is empty when calling Pop().")
            return elements.pop()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._values, self.dense = [], None

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgumentError(f"Stack[{self.name}] has already been closed.")
