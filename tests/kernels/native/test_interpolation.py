"""The small matrices of Winograd's algorithm, in exact numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests import tolerance
from toolkit.kernels.cpu.native.interpolation import Axes, Axis, algorithms, supports, transform_filter
from toolkit.kernels.cpu.onednn.library import library


@pytest.mark.parametrize(
    "axis",
    [each for n in (1, 3, 5, 7) for axis in Axis.choices(n) for each in (axis, axis.of_filter)],
)
def test_a_tile_is_the_definition(axis: Axis) -> None:
    window = axis.window
    random = np.random.default_rng(window)
    given = [Fraction(int(n), 7) for n in random.integers(-50, 50, axis.size)]
    filter = [Fraction(int(n), 3) for n in random.integers(-50, 50, window)]

    def apply(rows: object, values: list[Fraction]) -> list[Fraction]:
        return [sum((a * b for a, b in zip(row, values, strict=True)), Fraction(0)) for row in rows]  # type: ignore[attr-defined]

    at_points = zip(apply(axis.input_rows(), given), apply(axis.filter_rows(), filter), strict=True)
    made = apply(axis.output_rows(), [a * b for a, b in at_points])
    assert made == [sum(given[i + k] * filter[k] for k in range(window)) for i in range(axis.tile)]


@pytest.mark.skipif(library() is None, reason="a product of oneDNN's")
@pytest.mark.parametrize("axes", [a for window in ((3, 3), (5, 5), (1, 7), (3, 1)) for a in algorithms(window)])
def test_filters_are_transformed_along_both_axes(axes: Axes) -> None:
    window = [axis.window for axis in axes]
    assert supports(window)
    filter = np.random.default_rng(0).normal(size=(*window, 3, 5)).astype(np.float32)
    down, across = (np.array(axis.filter_rows(), np.float64) for axis in axes)
    wanted = np.einsum("ia,jb,abck->ijck", down, across, filter).reshape(-1, 3, 5)
    sizes = np.einsum("ia,jb,abck->ijck", np.abs(down), np.abs(across), np.abs(filter)).reshape(-1, 3, 5)
    # products of rounded factors, added along one axis and then along the other
    tolerance.assert_within(transform_filter(filter, axes), wanted, tolerance.likely(2 + sum(window)) * sizes)


@pytest.mark.parametrize("window", [(1, 1), (2, 2), (7, 7), (3, 7), (4, 4), (3, 3, 3), (3,)])
def test_other_windows(window: tuple[int, ...]) -> None:
    assert not supports(window)
