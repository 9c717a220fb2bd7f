"""Relations between shapes and types that the `verify` of several operations asks for.

Each yields what is wrong, a sentence each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolkit.compiler.ir.value import Value

Shape = tuple[int, ...]


def shape(value: Value) -> Shape:
    """Its shape; one that goes with no other where it is not known."""
    return value.shape if value.shape is not None else (-1,)


def shapes(*values: Value) -> list[Shape]:
    """Of each its `shape`."""
    return [shape(value) for value in values]


def same(what: str, *values: Value) -> Iterator[str]:
    """All have one known shape and type."""
    first = values[0]
    for value in values:
        if value.shape is None or value.shape != first.shape or value.dtype != first.dtype:
            yield f"{what}: {text(value)} beside {text(first)}"


def text(value: Value) -> str:
    """Its type and shape, for messages."""
    return f"{value.dtype}{' of unknown shape' if value.shape is None else list(value.shape)}"


def vector(what: str, value: Value, size: int) -> Iterator[str]:
    """It has that many elements along one axis."""
    if value.shape != (size,):
        yield f"{what} is {text(value)}, not a vector of {size}"


def constant(what: str, array: Any, size: int) -> Iterator[str]:
    """An array that may be missing has that many elements."""
    if array is not None and array.size != size:
        yield f"{what} has {array.size} numbers, not {size}"


def broadcasts(given: Shape, target: Shape) -> bool:
    """Whether a shape is broadcast to another without making that larger."""
    padded = (1,) * (len(target) - len(given)) + given
    return len(padded) == len(target) and all(a in (1, b) for a, b in zip(padded, target, strict=True))
