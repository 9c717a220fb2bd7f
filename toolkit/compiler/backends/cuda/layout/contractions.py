"""Matrix products whose operands lie anyhow, as one call of a library: rows, columns and a batch, each with a stride.

A product goes through loops of four kinds: over its batch, its rows, its columns and the depth of its sums. Each has a
stride in either factor, in the result and in the bias; 0 where it does not move. Loops whose strides follow from each
other are one. A library takes one loop of each kind but the batch's, and one for the batch; loops over rows or columns
may be its batch too, so the heads of attention are: columns of the weights, a batch of matrices in the result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from toolkit.compiler.backends.cuda.layout.stored_axes import Axes, Axis, common, packed, size_of


class StridedLoop(NamedTuple):
    """Attributes:
    size: how often it is gone through.
    a, b, out, bias: elements from one place to the next, 0 for the same one.
    """

    size: int
    a: int = 0
    b: int = 0
    out: int = 0
    bias: int = 0

    def is_around(self, other: StridedLoop) -> bool:
        """Whether both are one loop, this one the outer part of it."""
        return all(mine == other.size * its for mine, its in zip(self[1:], other[1:], strict=True))


class Stored(NamedTuple):
    """A matrix in memory.

    Attributes:
        turned: it is stored transposed.
        lead: elements from one stored row to the next.
    """

    turned: bool
    lead: int


@dataclass(frozen=True)
class Layout:
    """One call of a library for all products of a contraction.

    Attributes:
        sizes: m, n, k of each.
        count: how many.
        a, b, out: the matrices; the result is not turned.
        steps: elements from one matrix to the next, of a, b, the result and the bias.
        exchanged: a is the second factor and b the first, both transposed: the result is stored transposed.
    """

    sizes: tuple[int, int, int]
    count: int
    a: Stored
    b: Stored
    out: Stored
    steps: tuple[int, int, int, int]
    exchanged: bool = False


@dataclass(frozen=True)
class Contraction:
    """out[batch..., m, n] = a[batch..., m, k] @ b[batch..., k, n], with the axes of each as they lie in memory.

    Attributes:
        bias: whether a vector of n numbers is added, which lies by itself.
    """

    a: Axes
    b: Axes
    out: Axes
    bias: bool = False

    def layout(self) -> Layout | None:
        """The one call that computes it; None where it takes more, or matrices that no library takes."""
        found = _layout(self)
        if found is None and not self.bias:
            turned = _layout(Contraction(_turned(self.b), _turned(self.a), _turned(self.out)))
            found = None if turned is None else replace(turned, exchanged=True)
        return found


def batch_axes(axes: Axes, lead: Sequence[int]) -> Axes:
    """An operand with the leading axes of its product's result, along which it may be broadcast."""
    missing: list[Axis] = [()] * (len(lead) + 2 - len(axes))
    given = (*missing, *axes[:-2])
    spread = [axis if size_of(axis) == size else ((size, 0),) for axis, size in zip(given, lead, strict=True)]
    return (*spread, *axes[-2:])


def _turned(axes: Axes) -> Axes:
    return (*axes[:-2], axes[-1], axes[-2])


def _layout(of: Contraction) -> Layout | None:
    kinds = _loops(of)
    if kinds is None:
        return None
    batch, rows, columns, depths = kinds
    if len(depths) > 1:
        return None
    depth = depths[0] if depths else StridedLoop(1)
    best: Layout | None = None
    for row, column in itertools.product(rows or [StridedLoop(1)], columns or [StridedLoop(1)]):
        others = [loop for loop in (*rows, *columns) if loop is not row and loop is not column]
        around = _joined([*batch, *others])
        if len(around) > 1:
            continue
        step = around[0] if around else StridedLoop(1)
        a = _stored(row.size, depth.size, row.a, depth.a)
        b = _stored(depth.size, column.size, depth.b, column.b)
        out = _stored(row.size, column.size, row.out, column.out)
        if a is None or b is None or out is None or out.turned or (of.bias and column.size > 1 and column.bias != 1):
            continue
        sizes = (row.size, column.size, depth.size)
        if best is None or math.prod(sizes) > math.prod(best.sizes):
            best = Layout(sizes, step.size, a, b, out, (step.a, step.b, step.out, step.bias))
    return best


def _loops(of: Contraction) -> list[list[StridedLoop]] | None:
    """The loops over the batch, rows, columns and depth, each kind joined; None where axes do not divide each other."""
    vector = packed([size_of(of.out[-1])])[0]
    batch: list[StridedLoop] = []
    for axes in zip(of.a[:-2], of.b[:-2], of.out[:-2], strict=True):
        found = common(axes)
        if found is None:
            return None
        batch += [StridedLoop(size, *strides) for size, strides in found]
    still = [loop for loop in batch if loop.b == 0]  # one second factor for all: these are rows of one matrix
    rows = common([of.a[-2], of.out[-2]])
    columns = common([of.b[-1], of.out[-1], *([vector] if of.bias else [])])
    depth = common([of.a[-1], of.b[-2]])
    if rows is None or columns is None or depth is None:
        return None
    kinds = [
        [loop for loop in batch if loop.b],
        [*still, *(StridedLoop(size, a=strides[0], out=strides[1]) for size, strides in rows)],
        [StridedLoop(size, b=strides[0], out=strides[1], bias=sum(strides[2:])) for size, strides in columns],
        [StridedLoop(size, a=strides[0], b=strides[1]) for size, strides in depth],
    ]
    return [_joined(loops) for loops in kinds]


def _joined(loops: Sequence[StridedLoop]) -> list[StridedLoop]:
    """As few loops as go through the same places, in whatever order."""
    found = [loop for loop in loops if loop.size > 1]
    while True:
        pair = next((pair for pair in itertools.permutations(found, 2) if pair[0].is_around(pair[1])), None)
        if pair is None:
            return found
        outer, inner = pair
        found = [inner._replace(size=outer.size * inner.size), *(each for each in found if each not in pair)]


def _stored(rows: int, columns: int, row: int, column: int) -> Stored | None:
    """A matrix by the strides of its rows and columns; None where no library takes it: no side lies together."""
    if column == 1 or columns == 1:
        lead = row if rows > 1 else columns
        if lead >= columns:
            return Stored(False, lead)
    if row == 1 or rows == 1:
        lead = column if columns > 1 else rows
        if lead >= rows:
            return Stored(True, lead)
    return None
