"""Convolutions through values of polynomials: the small matrices of Winograd's algorithm, and transformed filters.

Outputs of a tile are coefficients of a product of polynomials, found from its values at as many points as the tile has
inputs (Toom and Cook; Winograd 1980; Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015).
F(4x4, 3x3) takes 36 multiplications where the definition has 144. F(2x2, 3x3) takes 64 for as many outputs, but its
filters have 16 numbers instead of 36: it is for small images, where reading them is most of the work. The points decide
about rounding: with those here errors are 1e-6 to 5e-6 of the largest output, a sixth of those with 0, 1, -1, 2, -2,
where the definition has 4e-7.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from toolkit.kernels.cpu.onednn.memory import over
from toolkit.kernels.cpu.onednn.primitive import Arg, Primitive, execute
from toolkit.kernels.types import Array

Rows = Sequence[Sequence[Fraction]]
#: inputs of a tile to the points besides 0 and infinity, each of which comes with its negative; chosen by trial
_POINTS = {
    1: (),
    4: (Fraction(1),),
    6: (Fraction(5, 8), Fraction(3, 2)),
    8: (Fraction(5, 8), Fraction(1), Fraction(7, 4)),
    10: (Fraction(3, 8), Fraction(7, 8), Fraction(5, 4), Fraction(2)),
}
#: size of the window to those of a tile of outputs, the largest first
TILES = {1: (1,), 3: (4, 2), 5: (4, 2), 7: (4, 2)}


@dataclass(frozen=True, slots=True)
class Axis:
    """The algorithm along one axis.

    Attributes:
        window: size of the filter.
        tile: how many outputs are made at a time.
    """

    window: int
    tile: int

    @staticmethod
    def choices(window: int) -> tuple[Axis, ...]:
        """Those for a convolution, the one with the largest tiles first."""
        return tuple(Axis(window, tile) for tile in TILES[window])

    @property
    def of_filter(self) -> Axis:
        """The one for the gradient by the filter: a tile of the outputs' gradients goes over the same inputs."""
        return Axis(self.tile, self.window)

    @property
    def size(self) -> int:
        """How many inputs, and points."""
        return self.tile + self.window - 1

    @property
    def points(self) -> list[Fraction]:
        """All but infinity."""
        if self.size == 1:
            return []
        return [Fraction(0), *(p for point in _POINTS[self.size] for p in (point, -point))]

    def input_rows(self) -> Rows:
        """B^T, [size, size]: from inputs the values that belong to the points."""
        rows = [[*_polynomial([q for q in self.points if q != p]), Fraction(0)] for p in self.points]
        return [*rows, _polynomial(self.points)]

    def filter_rows(self) -> Rows:
        """G, [size, window]: a filter's values at the points, divided by what Lagrange's interpolation divides by."""
        rows: list[list[Fraction]] = []
        for p in self.points:
            divisor = Fraction(1)
            for q in self.points:
                divisor *= p - q if q != p else 1
            rows.append([p**k / divisor for k in range(self.window)])
        return [*rows, [Fraction(int(k == self.window - 1)) for k in range(self.window)]]

    def output_rows(self) -> Rows:
        """A^T, [tile, size]: outputs from the products at the points."""
        return [[*(p**i for p in self.points), Fraction(int(i == self.tile - 1))] for i in range(self.tile)]


#: the algorithm along height and width
Axes = tuple[Axis, Axis]


def algorithms(window: tuple[int, int]) -> Iterator[Axes]:
    """All there are for a window of this height and width, the one with the largest tiles first."""
    height, width = window
    return itertools.product(Axis.choices(height), Axis.choices(width))


def supports(window: Sequence[int]) -> bool:
    """Whether there is an algorithm for windows of this height and width."""
    return tuple(window) in _WINDOWS


_WINDOWS = frozenset({(3, 3), (5, 5), (3, 5), (5, 3), (1, 3), (3, 1), (1, 5), (5, 1), (1, 7), (7, 1)})


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of the product of (x - root), lowest power first."""
    made = [Fraction(1)]
    for root in roots:
        made = [low - root * high for low, high in zip([Fraction(0), *made], [*made, Fraction(0)], strict=True)]
    return made


@functools.cache  # most networks have windows of one size
def filter_matrix(axes: Axes) -> Array:
    """[points, height * width], float32, read-only: what a filter is multiplied with."""
    down, across = (np.array(axis.filter_rows(), np.float64) for axis in axes)
    both: Any = np.einsum("ia,jb->ijab", down, across)
    made = both.astype(np.float32).reshape(len(down) * len(across), -1)
    made.flags.writeable = False
    return made


def gradient_matrix(axes: Axes) -> Array:
    """[height * width, points], float32: what makes the gradient by a filter of sums of products at the points."""
    down, across = (np.array(axis.of_filter.output_rows(), np.float64) for axis in axes)
    both: Any = np.einsum("ai,bj->abij", down, across)
    return both.astype(np.float32).reshape(len(down) * len(across), -1)


def transform_filter(filter: Array, axes: Axes) -> Array:
    """[points, C, K] from TensorFlow's [height, width, C, K], float32. The product is oneDNN's, as all others are.

    NumPy's threads would go on turning beside OpenMP's.
    """
    inputs, outputs = filter.shape[2:]
    matrix = filter_matrix(axes)
    flat = np.ascontiguousarray(filter).reshape(-1, inputs * outputs)
    made = np.empty((len(matrix), inputs * outputs), np.float32)
    a, b, c = map(over, (matrix, flat, made))
    execute(Primitive("matmul", a.desc, b.desc, None, c.desc), [(Arg.SRC, a), (Arg.WEIGHTS, b), (Arg.DST, c)])
    return made.reshape(len(matrix), inputs, outputs)
