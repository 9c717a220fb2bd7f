"""What passes ask of constants: their numbers, and whether they are all one number."""

from __future__ import annotations

from typing import Any

from toolkit.errors import GraphmillError
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.passes.optimize.rewriting import Rewriting

#: constants with more elements are not looked through for one number
_MOST_ELEMENTS = 1 << 20


def is_constant(work: Rewriting, output: Output) -> bool:
    """Whether an output is a constant that nobody feeds."""
    return output.node.op == "Const" and not work.is_fed(output.node)


def array_of(work: Rewriting, output: Output) -> Any:
    """The elements of a constant as an array; None where the output is none, or damaged."""
    if not is_constant(work, output):
        return None
    from toolkit.formats.arrays.tensor import to_array

    try:
        return to_array(output.node.attr("value"))
    except GraphmillError:
        return None


def number_of(work: Rewriting, output: Output) -> Any:
    """The one number that all elements of a constant are, as NumPy's scalar of its type; None where they are several.

    -0.0 is another number than 0.0, and NaN is none.
    """
    if not is_constant(work, output) or output.dtype.base.kind not in "iufcb":
        return None
    array = array_of(work, output)
    if array is None or not 0 < array.size <= _MOST_ELEMENTS:
        return None
    first = array.flat[0]
    if array.size > 1:
        flat = array.reshape(-1)
        if (flat != first).any() or flat.tobytes() != first.tobytes() * array.size:
            return None
    return first if first == first else None


def is_number(work: Rewriting, output: Output, number: float) -> bool:
    """Whether all elements of a constant are this number; of 0.0 and -0.0 both are 0, see `is_negative_zero`."""
    found = number_of(work, output)
    return found is not None and bool(found == number)


def is_negative_zero(number: Any) -> bool:
    """Whether a floating-point zero has its sign set."""
    import math

    return not number and math.copysign(1.0, float(number)) < 0


def same_shape(a: Shape, b: Shape) -> bool:
    """Whether two shapes are fully known and equal."""
    return a.is_fully_defined and a == b


def keeps_shape(work: Rewriting, node: Node, source: Output, other: Output) -> bool:
    """Whether a node of two inputs that broadcast has the shape of `source`, whatever that is.

    It has where `other` is a single number without dimensions, or where the shapes say so: each of its sizes is 1 or
    the other's.
    """
    theirs, mine = work.shape(other), work.shape(source)
    if theirs.dims is not None and not theirs.dims:
        return True
    if mine.dims is not None and theirs.dims is not None and len(theirs.dims) <= len(mine.dims):
        last = mine.dims[len(mine.dims) - len(theirs.dims) :]
        if all(size == 1 or (size is not None and size == own) for size, own in zip(theirs.dims, last, strict=True)):
            return True
    return same_shape(mine, work.shape(node.output()))
