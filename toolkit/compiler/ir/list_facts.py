"""What is known of a list, stack or array of tensors: what its elements have in common, and how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.compiler.ir.value import Value

Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Invariant:
    """A value from outside a loop that every iteration puts in.

    Attributes:
        home: whose value it is (a `lift.Lifter`).
    """

    value: Value
    home: Any


@dataclass(frozen=True, slots=True, eq=False)
class ListFacts:
    """Attributes:
    element: the shape of every element that was put in; None for unknown.
    constant: the value of every element, where all are one constant, or one value from outside the loop (Invariant).
    is_empty: nothing was put in yet, so that `element` is whatever comes first.
    length: how many elements, None if not known.
    """

    element: Dims | None
    is_empty: bool
    length: int | None
    constant: Any = None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ListFacts)
            and (self.element, self.is_empty, self.length) == (other.element, other.is_empty, other.length)
            and _same(self.constant, other.constant)
        )

    def __hash__(self) -> int:
        return hash((self.element, self.is_empty, self.length))


EMPTY = ListFacts(None, True, None)


class SharedListFacts:
    """The facts of a stack or tensor array, which is changed through its handle wherever that goes."""

    __slots__ = ("facts",)

    def __init__(self, facts: ListFacts):
        self.facts: ListFacts | None = facts

    def add(self, shape: Dims | None, constant: Any = None) -> None:
        self.facts = None if shape is None else join(self.facts, ListFacts(shape, False, None, constant))


def join(first: ListFacts | None, second: ListFacts | None) -> ListFacts | None:
    """What holds of a list that is the one or the other."""
    if first is None or second is None:
        return None
    length = first.length if first.length == second.length else None
    if first.is_empty or second.is_empty:
        other = second if first.is_empty else first
        return ListFacts(other.element, first.is_empty and second.is_empty, length, other.constant)
    element = first.element if first.element == second.element else None
    return ListFacts(element, False, length, first.constant if _same(first.constant, second.constant) else None)


def _same(first: Any, second: Any) -> bool:
    if first is None or second is None:
        return first is second
    if isinstance(first, Invariant) or isinstance(second, Invariant):
        return first == second
    return first is second or (first.dtype == second.dtype and np.array_equal(first, second))
