"""Fractional pools and random crops against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import ModuleType

import numpy as np
import pytest

from tests.kernels.op_suite import Case, check, run_ours, sample, suite
from tests.kernels.step import FakeStep

pytestmark = pytest.mark.tensorflow

SEEDS = {"seed": 4, "seed2": 7}
FIXED = {"deterministic": True, **SEEDS}  # TensorFlow takes seeds only so
F = np.float32
BAD = {"error": "INVALID_ARGUMENT"}


def pools() -> Iterator[Case]:
    for dtype, pseudo, overlapping, shape in product(
        ("float32", "float64", "int32", "int64"), (False, True), (False, True), ((2, 9, 7, 3), (1, 6, 6, 1))
    ):
        attrs = {"pooling_ratio": [1.0, 1.44, 1.73, 1.0], "pseudo_random": pseudo, "overlapping": overlapping, **FIXED}
        x = sample(dtype, shape, -50, 50)
        for op in ("FractionalMaxPool", "FractionalAvgPool"):
            yield Case(op, [x], attrs, graph=True)
        y, rows, columns = run_ours(Case("FractionalMaxPool", [x], attrs))
        dy = sample(dtype, y.shape, -9, 9)
        more = {"overlapping": overlapping}
        yield Case("FractionalMaxPoolGrad", [x, y, dy, rows, columns], more)
        yield Case("FractionalMaxPoolGrad", [x, y + y.dtype.type(1), dy, rows, columns], more, **BAD)
        yield Case("FractionalAvgPoolGrad", [np.int64(shape), dy, rows, columns], more)
    x = sample("float32", (1, 6, 6, 1))
    yield Case("FractionalMaxPool", [x], {"pooling_ratio": [1.0, 2.0, 3.0, 1.0], **FIXED}, graph=True)
    for op in ("FractionalMaxPool", "FractionalAvgPool"):
        yield Case(op, [x], {"pooling_ratio": [1.0, 0.5, 1.0, 1.0]}, graph=True, **BAD)
        yield Case(op, [x], {"pooling_ratio": [1.0, 1.5, 1.0]}, graph=True, **BAD)
        yield Case(op, [x], {"pooling_ratio": [1.0, 1.5, 1.0, 1.0], **SEEDS}, graph=True, **BAD)
        yield Case(op, [x[0]], {"pooling_ratio": [1.0, 1.5, 1.0, 1.0]}, graph=True, **BAD)


def crops() -> Iterator[Case]:
    boxes = F([[[0.1, 0.2, 0.8, 0.9], [0, 0, 0.3, 0.4]]])
    nothing = np.zeros((1, 0, 4), F)
    for dtype, seed in product(("int32", "uint8", "int64"), range(1, 6)):
        size = np.array([100, 120, 3], dtype)
        attrs = {"seed": seed, "seed2": 5, "area_range": [0.05, 1.0], "aspect_ratio_range": [0.5, 2.0]}
        yield Case("SampleDistortedBoundingBoxV2", [size, boxes, F(0.3)], attrs, graph=True)
        whole = {**attrs, "use_image_if_no_bounding_boxes": True}
        yield Case("SampleDistortedBoundingBoxV2", [size, nothing, F(0.1)], whole, graph=True)
        yield Case("SampleDistortedBoundingBox", [size, boxes], {**attrs, "min_object_covered": 0.5}, graph=True)
        yield Case(
            "StatelessSampleDistortedBoundingBox", [size, boxes, F(0.2), np.int64([seed, 3])],
            {"area_range": [0.2, 0.9]},
        )  # fmt: skip
    size = np.int32([10, 7, 1])
    yield Case("SampleDistortedBoundingBoxV2", [size, boxes, F(0.9)], {**SEEDS, "max_attempts": 2}, graph=True)
    for inputs, attrs in (
        ([size, nothing, F(0.1)], {}), ([size, boxes * 2, F(0.1)], {}), ([size, boxes[0], F(0.1)], {}),
        ([size[:2], boxes, F(0.1)], {}), ([size, boxes, F(0.1)], {"area_range": [0.5, 1.5]}),
        ([size, boxes, F(0.1)], {"aspect_ratio_range": [-1.0, 1.0]}), ([size, boxes, F(0.1)], {"max_attempts": 0}),
    ):  # fmt: skip
        yield Case("SampleDistortedBoundingBoxV2", inputs, attrs, graph=True, **BAD)


CASES = [*pools(), *crops()]


@suite(CASES)
def test_fractional(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


def test_regions_stay_or_are_drawn_anew(tf: ModuleType) -> None:
    """A deterministic op keeps its regions for the session; another draws new ones each time."""
    x = sample("float32", (1, 40, 40, 1))
    ratio = {"pooling_ratio": [1.0, 1.7, 1.3, 1.0]}
    fixed, free = Case("FractionalMaxPool", [x], {**ratio, **FIXED}), Case("FractionalMaxPool", [x], ratio)
    step = FakeStep()
    first, second = run_ours(fixed, step=step), run_ours(fixed, step=step)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    step = FakeStep()
    rows = [run_ours(free, step=step)[1].tolist() for _ in range(4)]
    assert any(row != rows[0] for row in rows)
