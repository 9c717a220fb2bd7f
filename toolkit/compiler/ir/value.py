"""Values: what flows between operations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.compiler.ir.operation import Operation


class Value:
    """A tensor, or another thing that flows.

    Attributes:
        dtype: its numpy type; None for what is not an array.
        shape: None when it is not known before running.
        constant: what it always is; None when it is computed.
        producer: the operation that makes it; None for constants and arguments.
        users: the operations that take it, and how many times each does.
        is_result: the program returns it.
        facts: what is known of a tensor list (`list_facts.ListFacts`).
        decides: the operations that run, or do not, by what it is; None where it never was a predicate.
    """

    __slots__ = ("constant", "decides", "dtype", "facts", "is_result", "producer", "shape", "users")

    def __init__(self, dtype: Any, shape: tuple[int, ...] | None, constant: Any = None):
        self.dtype = dtype
        self.shape = shape
        self.constant = constant
        self.producer: Operation | None = None
        self.users: dict[Operation, int] = {}
        self.is_result = False
        self.decides: dict[Operation, None] | None = None
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
        assert self.shape is not None
        return math.prod(self.shape) * int(self.dtype.itemsize)

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

    @property
    def is_predicate(self) -> bool:
        """Whether it decides if operations run."""
        return bool(self.decides)

    def gain(self, user: Operation) -> None:
        """Somebody takes it from now on."""
        self.users[user] = self.users.get(user, 0) + 1

    def lose(self, user: Operation) -> None:
        """Somebody takes it once less."""
        times = self.users.get(user, 0) - 1
        if times > 0:
            self.users[user] = times
        else:
            self.users.pop(user, None)
