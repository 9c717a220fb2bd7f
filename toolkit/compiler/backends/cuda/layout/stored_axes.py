"""How a tensor lies in memory, axis by axis: what changes of shape and transpositions make of it without a copy.

Each axis is a list of factors, sizes with their strides in elements, the outermost first: an axis of 12 heads of 64
columns, which lie 8 * 64 elements apart, is (12, 512), (64, 1). A transposition orders axes anew; a change of shape
joins factors to other axes, and takes a factor apart where a new axis ends within it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

#: a size and a stride
Factor = tuple[int, int]
#: the outermost factor first; sizes of 1 are left out
Axis = tuple[Factor, ...]
Axes = tuple[Axis, ...]


def packed(shape: Sequence[int]) -> Axes:
    """A tensor in C order."""
    axes: list[Axis] = []
    stride = 1
    for size in reversed(shape):
        axes.append(((size, stride),) if size != 1 else ())
        stride *= size
    return tuple(reversed(axes))


def size_of(axis: Axis) -> int:
    """How many places an axis has."""
    return math.prod(size for size, _ in axis)


def transposed(axes: Axes, order: Sequence[int]) -> Axes:
    """Axes in another order, as `numpy.transpose` has it."""
    return tuple(axes[place] for place in order)


def untransposed(axes: Axes, order: Sequence[int]) -> Axes:
    """What becomes these axes by a transposition in that order."""
    found: list[Axis] = [()] * len(axes)
    for place, axis in zip(order, axes, strict=True):
        found[place] = axis
    return tuple(found)


def reshaped(axes: Axes, shape: Sequence[int]) -> Axes | None:
    """The same elements in another shape; None where an axis would end within a factor that it does not divide.

    Args:
        shape: of as many elements.
    """
    waiting = [factor for axis in axes for factor in axis]
    found: list[Axis] = []
    for wanted in reversed(shape):
        axis: list[Factor] = []
        needed = wanted
        while needed > 1:
            size, stride = waiting.pop()
            if needed % size == 0:
                axis.insert(0, (size, stride))
                needed //= size
            elif size % needed == 0:
                axis.insert(0, (needed, stride))
                waiting.append((size // needed, stride * needed))
                needed = 1
            else:
                return None
        found.append(tuple(axis))
    return tuple(reversed(found))


def common(axes: Sequence[Axis]) -> list[tuple[int, tuple[int, ...]]] | None:
    """Factors of one size for several axes that are gone through together: sizes, with the stride of each axis.

    Args:
        axes: of one size.

    Returns:
        the outermost first; None where sizes do not divide each other.
    """
    waiting = [list(axis) for axis in axes]
    found: list[tuple[int, tuple[int, ...]]] = []
    while any(waiting):
        step = min(axis[-1][0] for axis in waiting)
        strides: list[int] = []
        for axis in waiting:
            size, stride = axis.pop()
            if size % step:
                return None
            strides.append(stride)
            if size != step:
                axis.append((size // step, stride * step))
        found.append((step, tuple(strides)))
    return found[::-1]
