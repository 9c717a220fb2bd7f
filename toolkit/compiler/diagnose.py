"""Why a kernel failed in a way that it did not foresee: the rules of its op, looked at once more.

Kernels check what they must know; what any op's definition and shape function say of its attributes and inputs is
checked when a kernel stumbles, so that steps that go well pay nothing for it. What breaks no rule is our mistake, and
stays an INTERNAL error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from toolkit.errors import GraphmillError, InvalidArgumentError
from toolkit.graph import check, opdefs
from toolkit.graph.infer import infer_node
from toolkit.graph.node import Node
from toolkit.graph.shape import UNKNOWN, Shape
from toolkit.kernels.context import RefVariable

#: elements of an input that a shape function may look at
_SMALL = 1 << 10


def broken_rule(node: Node, values: Sequence[Any] | None = None) -> GraphmillError | None:
    """The rule that a node breaks with its attributes, or with the values it was given; None where there is none.

    Args:
        values: of its inputs, where they are known.
    """
    for finding in check.check_node(node):
        if finding.level == check.ERROR:
            return InvalidArgumentError(finding.message, node=node.name)
    try:
        _inferred(node, values)
    except GraphmillError as error:
        return InvalidArgumentError(error.message, node=node.name)
    return None


def _inferred(node: Node, values: Sequence[Any] | None) -> list[Shape] | None:
    """The shapes of what a node puts out; None where its shape function stumbles as well.

    Raises:
        GraphmillError: it refuses the values.
    """
    given = [None] * len(node.inputs) if values is None else values
    arrays: list[Any] = [value.value if isinstance(value, RefVariable) else value for value in given]
    shapes = [Shape(np.shape(array)) if _is_tensor(array) else UNKNOWN for array in arrays]
    try:
        return infer_node(node, shapes, lambda index: _small(arrays[index]), lambda index: None)
    except GraphmillError:
        raise
    except Exception:  # it has no rule to tell
        return None


def beyond_int32(node: Node) -> GraphmillError | None:
    """Sizes, strides and counts in attributes that no tensor can have; None where there are none.

    To be asked when a number was too large for what computes with it. TensorFlow reads these attributes as int32.
    """
    definition = opdefs.find(node.op)
    for attr in definition.attrs.values() if definition is not None else ():
        if attr.type in ("int", "list(int)"):
            found = node.attr_or(attr.name, 0)
            numbers: list[int] = found if attr.type == "list(int)" and found else [found or 0]
            for number in numbers:
                if not -(1 << 31) <= number < 1 << 31:
                    message = f"attribute '{attr.name}' is {number}, out of range for an int32"
                    return InvalidArgumentError(message, node=node.name)
    return None


def beyond_addresses(node: Node, values: Sequence[Any] | None) -> GraphmillError | None:
    """A tensor with more bytes than there are addresses that a node asks for; None where there is none.

    To be asked when NumPy refused numbers, which it does before it asks for memory. What a node puts out is known by
    its shape function; what a kernel needs meanwhile is known by nobody, but numbers that no tensor of the widest type
    could have as its size are in the attributes or inputs then.

    Args:
        values: of the inputs, where they are known.
    """
    for dtype, shape in zip(node.output_types, _inferred(node, values) or (), strict=False):
        count = shape.num_elements
        if count is not None and count * dtype.base.numpy.itemsize > _ADDRESSES:
            message = f"{node.op} asks for a tensor of shape {shape}, which has more bytes than there are addresses"
            return InvalidArgumentError(message, node=node.name)
    for name, numbers in _numbers(node, values or ()):
        for number in (*numbers, math.prod(n for n in numbers if n > 0)):
            if abs(number) > _ADDRESSES // _WIDEST:
                message = f"{node.op} asks for more elements than there are addresses: {name} is {numbers}"
                return InvalidArgumentError(message, node=node.name)
    return None


#: addresses of a process, and bytes of an element of the widest type
_ADDRESSES, _WIDEST = (1 << 63) - 1, 16


def _numbers(node: Node, values: Sequence[Any]) -> Iterator[tuple[str, list[int]]]:
    """The integers in attributes and in small inputs, with names for both."""
    definition = opdefs.find(node.op)
    for attr in definition.attrs.values() if definition is not None else ():
        found = node.attr_or(attr.name, None)
        if attr.type == "int" and isinstance(found, int):
            yield f"attribute '{attr.name}'", [found]
        elif attr.type == "list(int)" and isinstance(found, list):
            yield f"attribute '{attr.name}'", list(cast("list[int]", found))
        elif attr.type == "shape" and isinstance(found, Shape):
            yield f"attribute '{attr.name}'", _sizes(found)
        elif attr.type == "list(shape)" and isinstance(found, list):
            for shape in cast("list[Shape]", found):
                yield f"a shape in attribute '{attr.name}'", _sizes(shape)
    for index, value in enumerate(values):
        if _is_tensor(value) and value.dtype.kind in "iu" and value.size <= _SMALL:
            yield f"input {index}", np.ravel(value).tolist()


def _sizes(shape: Shape) -> list[int]:
    """The sizes of a shape that are known."""
    return [size for size in shape.dims or () if size is not None]


def _small(value: Any) -> Any:
    """An integer tensor as a shape function wants it: a number, or lists."""
    return value.tolist() if _is_tensor(value) and value.dtype.kind in "iub" and value.size <= _SMALL else None


def _is_tensor(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic)
