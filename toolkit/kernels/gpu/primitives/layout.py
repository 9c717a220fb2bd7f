"""Where the elements of a part of a tensor lie: shape, strides and first element, and the fewest dimensions for them.

Which part a slice, a transpose or a split takes is what NumPy makes of it: the kernels of the CPU that only look at
other places are given an array without memory behind it, and the view that they return says where they looked. So
shapes, defaults and errors are those of the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from toolkit.errors import InternalError
from toolkit.kernels.tensors import row_major
from toolkit.kernels.types import Array

_Numbers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ElementLayout:
    """Which elements of a tensor.

    Attributes:
        shape: of the part.
        strides: elements from one to the next, along each dimension; 0 repeats, negative goes backward.
        first: the position of the first element.
    """

    shape: _Numbers
    strides: _Numbers
    first: int = 0

    @staticmethod
    def dense(shape: Sequence[int]) -> ElementLayout:
        """All of a tensor."""
        return ElementLayout(tuple(shape), row_major(shape))

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_dense(self) -> bool:
        """Whether its elements lie one behind the other, from the first one on."""
        wanted = row_major(self.shape)
        return all(size == 1 or a == b for size, a, b in zip(self.shape, self.strides, wanted, strict=True))


def stand_in(shape: Sequence[int], dtype: Any) -> Array:
    """An array of a shape and type that has no memory: only views of it may be made.

    Not even their elements may be looked at.
    """
    dtype = np.dtype(dtype)
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = tuple(step * dtype.itemsize for step in row_major(shape))
    return as_strided(np.zeros(1, dtype), tuple(shape), strides, writeable=False)


def layout_of(view: Array, base: Array) -> ElementLayout:
    """Which elements of `base`, a `stand_in`, a view has.

    Raises:
        InternalError: it is no view.
    """
    width = base.dtype.itemsize
    if not view.size or base.size == view.size == 1:  # an index of a scalar gives a number, not a view
        return ElementLayout(view.shape, row_major(view.shape))
    if not np.may_share_memory(view, base):
        raise InternalError("what should be another view of a tensor was copied on the host")
    start: int = view.__array_interface__["data"][0]
    origin: int = base.__array_interface__["data"][0]
    return ElementLayout(view.shape, tuple(step // width for step in view.strides), (start - origin) // width)


@dataclass(frozen=True, slots=True)
class Pair:
    """A copy: for each dimension its size and the steps in both tensors, and where it begins in each."""

    sizes: _Numbers
    source: _Numbers
    target: _Numbers
    source_first: int
    target_first: int

    @staticmethod
    def of(source: ElementLayout, target: ElementLayout) -> Pair:
        """The fewest dimensions that say where every element goes; the last one is the innermost of the target."""
        sizes: list[int] = []
        steps: list[tuple[int, int]] = []
        for size, a, b in zip(source.shape, source.strides, target.strides, strict=True):
            if size == 1:
                continue
            if sizes and steps[-1] == (a * size, b * size):
                sizes[-1] *= size
                steps[-1] = (a, b)
            else:
                sizes.append(size)
                steps.append((a, b))
        if not sizes:
            sizes, steps = [1], [(1, 1)]
        return Pair(tuple(sizes), tuple(a for a, _ in steps), tuple(b for _, b in steps), source.first, target.first)

    def scaled(self, width: int, aligned: int) -> tuple[Pair, int]:
        """The same copy in elements of 1, 2, 4 or 8 bytes, as wide as goes.

        Args:
            width: bytes of an element.
            aligned: what divides the addresses of both tensors.

        Returns:
            The copy and the width.
        """
        if width > 8:
            return self._split(width // 8), 8
        if self.source[-1] != 1 or self.target[-1] != 1:
            return self, width
        others = (*self.source[:-1], *self.target[:-1], self.source_first, self.target_first, self.sizes[-1])
        times = math.gcd(*others, 8 // width, max(aligned // width, 1))
        if times == 1:
            return self, width
        sizes = (*self.sizes[:-1], self.sizes[-1] // times)
        source = (*(step // times for step in self.source[:-1]), 1)
        target = (*(step // times for step in self.target[:-1]), 1)
        return Pair(sizes, source, target, self.source_first // times, self.target_first // times), width * times

    def _split(self, parts: int) -> Pair:
        source = ElementLayout(
            (*self.sizes, parts), (*(parts * step for step in self.source), 1), self.source_first * parts
        )
        target = ElementLayout(
            (*self.sizes, parts), (*(parts * step for step in self.target), 1), self.target_first * parts
        )
        return Pair.of(source, target)
