"""Images on a GPU: gradients over many outputs, sums that repeat, and numbers of images that there are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import Case, run_ours
from toolkit.kernels.cuda.device import CudaDevice, device

_RNG = np.random.default_rng(11)


@pytest.fixture
def deterministic(driver: None) -> Iterator[CudaDevice]:
    gpu = device(0)
    before, gpu.deterministic = gpu.deterministic, True
    yield gpu
    gpu.deterministic = before


def _both(case: Case) -> tuple[Any, Any]:
    (got,), (wanted,) = run_ours(case, "GPU"), run_ours(case)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    return got, wanted


@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeNearestNeighbor"])
@pytest.mark.parametrize("attributes", [{}, {"align_corners": True}, {"half_pixel_centers": True}], ids=str)
@pytest.mark.parametrize("size", [(1, 1), (7, 29), (40, 3)])
def test_resized_images_and_their_gradients(op: str, attributes: dict[str, bool], size: tuple[int, int]) -> None:
    images = _RNG.normal(size=(2, 13, 11, 3)).astype(np.float32)
    got, wanted = _both(Case(op, [images, np.array(size, np.int32)], attributes))
    np.testing.assert_array_equal(got, wanted)
    grads = _RNG.normal(size=(2, *size, 3)).astype(np.float32)
    given = np.array([13, 11], np.int32) if op == "ResizeNearestNeighbor" else images
    got, wanted = _both(Case(f"{op}Grad", [grads, given], attributes))
    # up to 40 x 29 numbers of about 1 go into one, each rounded twice
    np.testing.assert_allclose(got, wanted, atol=40 * 29 * 2 * 2**-24)


def _crops(boxes: int, images: int) -> tuple[Any, Any, Any]:
    grads = _RNG.normal(size=(boxes, 5, 4, 3)).astype(np.float32)
    corners = _RNG.uniform(-0.2, 1.2, (boxes, 4)).astype(np.float32)
    return grads, corners, _RNG.integers(0, images, boxes).astype(np.int32)


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_gradients_of_crops_in_order(deterministic: CudaDevice, method: str) -> None:
    grads, boxes, index = _crops(20, 3)
    inputs = [grads, boxes, index, np.array([3, 9, 8, 3], np.int32)]
    case = Case("CropAndResizeGradImage", inputs, {"T": "float32", "method": method})
    got, wanted = _both(case)
    # 20 crops of 20 numbers of about 1 at most go into one, each rounded twice
    np.testing.assert_allclose(got, wanted, atol=400 * 2 * 2**-24)
    np.testing.assert_array_equal(run_ours(case, "GPU")[0], got)


def test_boxes_of_no_image_have_the_value_outside() -> None:
    _, boxes, index = _crops(4, 2)
    index[:] = [0, 2, -1, 1]
    boxes[:] = [0, 0, 1, 1]
    images = np.ones((2, 6, 6, 1), np.float32)
    attributes = {"extrapolation_value": 7.0}
    (y,) = run_ours(Case("CropAndResize", [images, boxes, index, np.array([2, 2], np.int32)], attributes), "GPU")
    np.testing.assert_array_equal(y[:, 0, 0, 0], [1, 7, 7, 1])


@pytest.mark.parametrize("shape", [(1000,), (4, 512), (3, 256, 5)])
def test_gradients_of_ranges(shape: tuple[int, ...]) -> None:
    """Sums of many numbers, in one stage and in two."""
    dy, x = (_RNG.normal(size=shape).astype(np.float32) for _ in range(2))
    inputs = [dy, x, np.float32(-0.4), np.float32(0.9)]
    case = Case("FakeQuantWithMinMaxVarsGradient", inputs)
    for got, wanted in zip(run_ours(case, "GPU"), run_ours(case), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=4000 * 2**-24)  # 4,000 roundings of sums of about 1


def test_contrast_of_large_images() -> None:
    images = _RNG.uniform(size=(2, 40, 50, 3)).astype(np.float32)
    got, wanted = _both(Case("AdjustContrastv2", [images, np.float32(1.7)]))
    np.testing.assert_allclose(got, wanted, atol=4 * 2**-24)  # a mean that is rounded the other way
