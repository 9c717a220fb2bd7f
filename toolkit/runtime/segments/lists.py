"""What is known of tensor lists: the shape that their elements have in common, and how many there are.

Shape functions see only the element shape that a list was made with, often [?, n]; here it is followed through what
is put into a list, so that loops over time steps have known shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolkit.runtime.segments.ir import Value

Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ListFacts:
    """Attributes:
    element: the shape of every element that was put in; () of unknown for None.
    is_empty: nothing was put in yet, so that `element` is whatever comes first.
    length: how many elements, None if not known.
    """

    element: Dims | None
    is_empty: bool
    length: int | None


def join(first: ListFacts | None, second: ListFacts | None) -> ListFacts | None:
    """What holds of a list that is the one or the other."""
    if first is None or second is None:
        return None
    length = first.length if first.length == second.length else None
    if first.is_empty or second.is_empty:
        other = second if first.is_empty else first
        return ListFacts(other.element, first.is_empty and second.is_empty, length)
    return ListFacts(first.element if first.element == second.element else None, False, length)


def follow(op: str, given: list[Value], outputs: list[Value]) -> None:
    """Note what an operation on lists does, and the shapes that follow."""
    match op:
        case "TensorListReserve" | "EmptyTensorList":
            length = 0 if op == "EmptyTensorList" else _number(given[1])
            outputs[0].facts = ListFacts(None, True, length)
        case "TensorListFromTensor":
            shape = given[0].shape
            if shape:
                outputs[0].facts = ListFacts(shape[1:], False, shape[0])
        case "TensorListSetItem":
            outputs[0].facts = _with(given[0].facts, given[2].shape)
        case "TensorListPushBack":
            after = _with(given[0].facts, given[1].shape)
            outputs[0].facts = after and ListFacts(after.element, False, None)
        case "TensorListPopBack":
            facts = given[0].facts
            if facts is not None:
                outputs[0].facts = ListFacts(facts.element, facts.is_empty, None)
                _shaped(outputs[1], facts.element)
        case "TensorListGetItem":
            if given[0].facts is not None and not given[0].facts.is_empty:
                _shaped(outputs[0], given[0].facts.element)
        case "TensorListStack":
            facts = given[0].facts
            if facts is not None and facts.element is not None and facts.length is not None:
                _shaped(outputs[0], (facts.length, *facts.element))
        case _:
            pass


def _with(facts: ListFacts | None, shape: Dims | None) -> ListFacts | None:
    if facts is None or shape is None:
        return None
    return join(facts, ListFacts(shape, False, facts.length))


def _shaped(value: Value, shape: Dims | None) -> None:
    if value.shape is None:
        value.shape = shape


def _number(value: Value) -> int | None:
    constant = value.constant
    return int(constant) if isinstance(constant, np.ndarray | np.generic) and constant.size == 1 else None
