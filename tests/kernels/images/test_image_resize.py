"""Resizing of images and its gradients against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import ModuleType

import numpy as np
import pytest

from tests.kernels.op_suite import FLOATS, REALS, Case, check, sample, suite
from tests.kernels.op_types import taken

pytestmark = pytest.mark.tensorflow

SHAPE = (2, 5, 7, 3)
SIZES = [(5, 7), (10, 14), (3, 4), (1, 1), (13, 2), (7, 5)]
GRIDS = [
    {},
    {"align_corners": True},
    {"half_pixel_centers": True},
]


def cases() -> Iterator[Case]:
    for op in ("ResizeNearestNeighbor", "ResizeBilinear", "ResizeBicubic", "ResizeArea"):
        grids = [g for g in GRIDS if op != "ResizeArea" or "half_pixel_centers" not in g]
        for size, grid in product(SIZES, grids):
            yield Case(op, [sample("float32", SHAPE), np.int32(size)], grid, id=f"{size}-{grid}")
        for dtype, grid in product(taken(op, REALS), grids[:2]):
            yield Case(op, [sample(dtype, SHAPE), np.int32([4, 9])], grid)
        image = sample("float32", (1, 4, 4, 1))
        image[0, 1, 2, 0], image[0, 3, 0, 0] = np.inf, np.nan
        yield Case(op, [image, np.int32([6, 3])], id="special")
        yield Case(op, [sample("float32", (0, 4, 4, 1)), np.int32([6, 3])], id="empty-batch")
        yield Case(op, [sample("uint8", (1, 1, 1, 2), 0, 255), np.int32([3, 2])], id="one-pixel")
        yield Case(op, [image[0], np.int32([6, 3])], error="INVALID_ARGUMENT", id="rank")
        yield Case(op, [image, np.int32([6])], error="INVALID_ARGUMENT", id="size-of-one")
        yield Case(op, [image, np.int32([[6, 3]])], error="INVALID_ARGUMENT", id="size-matrix")
        yield Case(op, [image, np.int32([0, 3])], error="INVALID_ARGUMENT", id="size-zero")
        yield Case(op, [image, np.int32([3, -1])], error="INVALID_ARGUMENT", id="size-negative")
        yield Case(op, [image[:, :0], np.int32([6, 3])], error="INVALID_ARGUMENT", id="no-pixels")
        if op != "ResizeArea":
            both = {"align_corners": True, "half_pixel_centers": True}
            yield Case(op, [image, np.int32([6, 3])], both, error="INVALID_ARGUMENT", id="both-grids")
    for size, grid in product(SIZES, GRIDS):
        grads = sample("float32", (2, *size, 3))
        label = f"{size}-{grid}"
        yield Case("ResizeNearestNeighborGrad", [grads, np.int32(SHAPE[1:3])], grid, id=label)
        yield Case("ResizeBilinearGrad", [grads, sample("float32", SHAPE)], grid, id=label)
        yield Case("ResizeBicubicGrad", [grads, sample("float32", SHAPE)], grid, id=label)
    grads = sample("float32", (2, 9, 4, 3))
    for dtype in taken("ResizeNearestNeighborGrad", REALS):
        yield Case("ResizeNearestNeighborGrad", [sample(dtype, (2, 9, 4, 3)), np.int32([4, 3])])
    for dtype in FLOATS:
        yield Case("ResizeBilinearGrad", [grads, sample(dtype, SHAPE)])
    yield Case("ResizeBicubicGrad", [grads, sample("float64", SHAPE)])
    for op in ("ResizeBilinearGrad", "ResizeBicubicGrad"):
        image = sample("float32", SHAPE)
        yield Case(op, [grads[0], image], error="INVALID_ARGUMENT", id="rank")
        yield Case(op, [grads, image[0]], error="INVALID_ARGUMENT", id="rank-image")
        yield Case(op, [grads, image], GRIDS[1] | GRIDS[2], error="INVALID_ARGUMENT", id="both-grids")
    yield Case("ResizeNearestNeighborGrad", [grads[0], np.int32([4, 3])], error="INVALID_ARGUMENT", id="rank")
    yield Case("ResizeNearestNeighborGrad", [grads, np.int32([4])], error="INVALID_ARGUMENT", id="size-of-one")
    yield Case("ResizeNearestNeighborGrad", [grads, np.int32([0, 4])], error="INVALID_ARGUMENT", id="size-zero")


CASES = list(cases())


@suite(CASES)
def test_resize(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)
