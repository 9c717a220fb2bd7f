"""Why a kernel failed in a way that it did not foresee: the rules of its op, looked at once more.

Kernels check what they must know; what any op's definition and shape function say of its attributes and inputs is
checked when a kernel stumbles, so that steps that go well pay nothing for it. What breaks no rule is our mistake, and
stays an INTERNAL error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    given = [None] * len(node.inputs) if values is None else values
    arrays: list[Any] = [value.value if isinstance(value, RefVariable) else value for value in given]
    shapes = [Shape(np.shape(array)) if _is_tensor(array) else UNKNOWN for array in arrays]
    try:
        infer_node(node, shapes, lambda index: _small(arrays[index]), lambda index: None)
    except GraphmillError as error:
        return InvalidArgumentError(error.message, node=node.name)
    except Exception:  # a shape function that stumbles as well has no rule to tell
        return None
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


def _small(value: Any) -> Any:
    """An integer tensor as a shape function wants it: a number, or lists."""
    return value.tolist() if _is_tensor(value) and value.dtype.kind in "iub" and value.size <= _SMALL else None


def _is_tensor(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic)
