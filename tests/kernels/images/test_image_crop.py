"""CropAndResize and ScaleAndTranslate with their gradients, against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import ModuleType

import numpy as np
import pytest

from tests.kernels.op_suite import REALS, Case, check, sample, suite
from tests.kernels.op_types import taken

pytestmark = pytest.mark.tensorflow

SHAPE = (2, 6, 7, 3)
BOXES = np.float32([[0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], [0.9, 0.7, 0.2, 0.1], [-0.3, 0.4, 1.2, 1.5], [2, 2, 3, 3]])
INDEX = np.int32([0, 1, 1, 0, 1])
CROPS = [(3, 4), (1, 1), (9, 5), (1, 6)]


def crops() -> Iterator[Case]:
    image = sample("float32", SHAPE)
    for crop, method in product(CROPS, ("bilinear", "nearest")):
        attrs = {"method": method, "extrapolation_value": -2.5}
        yield Case("CropAndResize", [image, BOXES, INDEX, np.int32(crop)], attrs, id=f"{crop}-{method}")
        grads = sample("float32", (5, *crop, 3))
        for dtype in ("float16", "float32", "float64"):
            yield Case("CropAndResizeGradImage", [grads, BOXES, INDEX, np.int32(SHAPE)], {"method": method, "T": dtype},
                       id=f"{crop}-{method}-{dtype}")  # fmt: skip
        if method == "bilinear":
            yield Case("CropAndResizeGradBoxes", [grads, image, BOXES, INDEX], id=f"{crop}")
    for dtype in taken("CropAndResize", REALS):
        yield Case("CropAndResize", [sample(dtype, SHAPE), BOXES, INDEX, np.int32([3, 4])])
        grads = sample("float32", (5, 3, 4, 3))
        yield Case("CropAndResizeGradBoxes", [grads, sample(dtype, SHAPE), BOXES, INDEX])
    size = np.int32([3, 4])
    grads = sample("float32", (5, 3, 4, 3))
    none = (np.zeros((0, 4), np.float32), np.zeros(0, np.int32))
    yield Case("CropAndResize", [image, *none, size], id="no-boxes")
    yield Case("CropAndResizeGradImage", [grads[:0], *none, np.int32(SHAPE)], {"T": "float32"}, id="no-boxes")
    yield Case("CropAndResizeGradBoxes", [grads[:0], image, *none], id="no-boxes")
    bad = "INVALID_ARGUMENT"
    yield Case("CropAndResize", [image[0], BOXES, INDEX, size], error=bad)
    yield Case("CropAndResize", [image[:, :0], BOXES, INDEX, size], error=bad)
    yield Case("CropAndResize", [image, BOXES[:, :3], INDEX, size], error=bad)
    yield Case("CropAndResize", [image, BOXES[0], INDEX, size], error=bad)
    yield Case("CropAndResize", [image, BOXES, INDEX[:3], size], error=bad)
    yield Case("CropAndResize", [image, BOXES, INDEX, np.int32([3])], error=bad)
    yield Case("CropAndResize", [image, BOXES, INDEX, np.int32([3, 0])], error=bad)
    yield Case("CropAndResize", [image, BOXES, INDEX, size], {"method": "cubic"}, error=bad)
    yield Case("CropAndResize", [image, BOXES, INDEX + 1, size], error="OUT_OF_RANGE", id="box-index")
    typed = {"T": "float32"}
    yield Case("CropAndResizeGradImage", [grads[0], BOXES, INDEX, np.int32(SHAPE)], typed, error=bad)
    yield Case("CropAndResizeGradImage", [grads, BOXES, INDEX, np.int32(SHAPE[:3])], typed, error=bad)
    yield Case("CropAndResizeGradImage", [grads, BOXES, INDEX, np.int32([2, 6, 7, 2])], typed, error=bad, id="depth")
    yield Case("CropAndResizeGradImage", [grads, BOXES, INDEX, np.int32([2, 0, 7, 3])], typed, error=bad, id="size")
    yield Case("CropAndResizeGradImage", [grads[:4], BOXES, INDEX, np.int32(SHAPE)], typed, error=bad, id="boxes")
    yield Case("CropAndResizeGradBoxes", [grads[0], image, BOXES, INDEX], error=bad)
    yield Case("CropAndResizeGradBoxes", [grads, image[0], BOXES, INDEX], error=bad)
    yield Case("CropAndResizeGradBoxes", [grads, image[..., :2], BOXES, INDEX], error=bad, id="depth")
    yield Case("CropAndResizeGradBoxes", [grads[:4], image, BOXES, INDEX], error=bad, id="boxes")


KERNELS = ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"]
PLACES = [
    ((6, 7), (1, 1), (0, 0)),
    ((12, 10), (2, 1.5), (0, 0.5)),
    ((3, 4), (0.5, 0.5), (0.2, -0.3)),
    ((5, 9), (0.3, 2.2), (1.5, -4)),
    ((4, 4), (1, 1), (9, 0)),
]


def scaled() -> Iterator[Case]:
    image = sample("float32", SHAPE)
    for kind, antialias, (size, scale, move) in product(KERNELS, (True, False), PLACES):
        attrs = {"kernel_type": kind, "antialias": antialias}
        place = [np.float32(scale), np.float32(move)]
        label = f"{kind}-{antialias}-{size}"
        yield Case("ScaleAndTranslate", [image, np.int32(size), *place], attrs, id=label)
        yield Case("ScaleAndTranslateGrad", [sample("float32", (2, *size, 3)), image, *place], attrs, id=label)
    one, none, size = np.float32([1, 1]), np.float32([0, 0]), np.int32([4, 5])
    for dtype in taken("ScaleAndTranslate", REALS):
        yield Case("ScaleAndTranslate", [sample(dtype, SHAPE), size, one, none])
    bad = "INVALID_ARGUMENT"
    yield Case("ScaleAndTranslate", [image[0], size, one, none], error=bad)
    yield Case("ScaleAndTranslate", [image, size[:1], one, none], error=bad)
    yield Case("ScaleAndTranslate", [image, size * 0, one, none], error=bad, id="size")
    yield Case("ScaleAndTranslate", [image, size, one[:1], none], error=bad)
    yield Case("ScaleAndTranslate", [image, size, one, none[:1]], error=bad, id="translation")
    yield Case("ScaleAndTranslate", [image, size, none, none], error=bad, id="scale-zero")
    yield Case("ScaleAndTranslate", [image, size, one, none], {"kernel_type": "cubic"}, error=bad)
    yield Case("ScaleAndTranslate", [image[:, :0], size, one, none], error=bad, id="no-pixels")
    yield Case("ScaleAndTranslateGrad", [image[0], image, one, none], error=bad)
    yield Case("ScaleAndTranslateGrad", [image, image[0], one, none], error=bad, id="rank")
    yield Case("ScaleAndTranslateGrad", [image, image, one[:1], none], error=bad, id="scale")


CASES = [*crops(), *scaled()]


@suite(CASES)
def test_crop(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)
