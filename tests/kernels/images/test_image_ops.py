"""Colour, drawing, patches and projective transforms of images against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import ModuleType

import numpy as np
import pytest

from tests.kernels.op_suite import COMPLEX, FLOATS, REALS, Case, check, run_ours, sample, suite
from tests.kernels.op_types import taken
from toolkit.errors import InvalidArgumentError

pytestmark = pytest.mark.tensorflow

BAD = "INVALID_ARGUMENT"
F = np.float32


def colors() -> Iterator[Case]:
    edge = F([[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.5], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]])
    for op in ("RGBToHSV", "HSVToRGB"):
        for dtype, shape in product(FLOATS, ((3,), (4, 3), (2, 5, 6, 3), (0, 3))):
            yield Case(op, [sample(dtype, shape, 0, 1)])
        yield Case(op, [edge], id="edges")
        yield Case(op, [sample("float32", (40, 3), -2, 3)], id="out-of-range")
        yield Case(op, [F(1)], error=BAD)
        yield Case(op, [sample("float32", (3, 4))], error="FAILED_PRECONDITION")
    for op, amounts in (("AdjustHue", (0.0, 0.25, -0.7, 1.0, 3.3)), ("AdjustSaturation", (0.0, 0.5, 1.0, 2.5, -1.0))):
        for amount in amounts:
            yield Case(op, [sample("float32", (2, 5, 6, 3), 0, 1), F(amount)])
            yield Case(op, [edge[None], F(amount)], id=f"edges-{amount}")
        yield Case(op, [sample("float32", (0, 5, 6, 3)), F(0.5)], id="empty")
        yield Case(op, [sample("float32", (5, 3)), F(0.5)], error=BAD)
        yield Case(op, [sample("float32", (5, 5, 4)), F(0.5)], error=BAD)
        yield Case(op, [sample("float32", (5, 5, 3)), F([0.5])], error=BAD, id="vector")
    for factor, shape in product((0.0, 0.5, 1.0, 3.0), ((4, 5, 3), (2, 4, 5, 1), (2, 3, 4, 5, 2))):
        image = sample("float32", shape)
        yield Case("AdjustContrastv2", [image, F(factor)])
        for dtype in ("uint8", "int8", "int16", "int32", "float32", "float64"):
            # producer 1: deprecated in GraphDef version 2
            yield Case("AdjustContrast", [sample(dtype, shape), F(factor), F(-2), F(3)],
                       graph=True, producer=1)  # fmt: skip
    yield Case("AdjustContrastv2", [sample("float32", (0, 4, 5, 3)), F(2)], id="empty")
    yield Case("AdjustContrastv2", [sample("float32", (4, 5)), F(2)], error=BAD)
    yield Case("AdjustContrastv2", [sample("float32", (4, 5, 3)), F([2])], error=BAD)


BOXES = F(
    [
        [[0.1, 0.2, 0.7, 0.9], [-0.5, 0.1, 0.4, 1.5], [0, 0, 1, 1], [0.5, 0.5, 0.2, 0.8], [1.2, 0, 1.5, 1]],
        [[0.3, 0.3, 0.3, 0.3], [0.2, -0.4, 2, 0.6], [0.6, 0.1, 0.9, 0.3], [-1, -1, -0.5, -0.5], [0, 0.9, 0.2, 1]],
    ]
)


def drawings() -> Iterator[Case]:
    for dtype, depth in product(("float32", "float16"), (1, 3, 4)):
        image = sample(dtype, (2, 9, 11, depth))
        yield Case("DrawBoundingBoxes", [image, BOXES])
        yield Case("DrawBoundingBoxesV2", [image, BOXES, sample("float32", (2, 4))])
        yield Case("DrawBoundingBoxesV2", [image, BOXES, np.zeros((0, 4), F)])
    image = sample("float32", (2, 9, 11, 3))
    yield Case("DrawBoundingBoxes", [image, np.tile(BOXES, (1, 3, 1))], id="palette-again")
    yield Case("DrawBoundingBoxes", [image, BOXES[:, :0]], id="no-boxes")
    yield Case("DrawBoundingBoxes", [image[0], BOXES], error=BAD)
    yield Case("DrawBoundingBoxes", [image, BOXES[0]], error=BAD)
    yield Case("DrawBoundingBoxes", [image[..., :2], BOXES], error=BAD, id="depth")
    yield Case("DrawBoundingBoxes", [image, BOXES[:1]], error=BAD, id="batch")


def patches() -> Iterator[Case]:
    op = "ExtractImagePatches"
    for window, strides, rates, padding in product(
        ((3, 2), (1, 1)), ((1, 1), (2, 3)), ((1, 1), (2, 2)), ("SAME", "VALID")
    ):
        attrs = {"ksizes": [1, *window, 1], "strides": [1, *strides, 1], "rates": [1, *rates, 1], "padding": padding}
        yield Case(op, [sample("float32", (2, 7, 8, 3))], attrs, id=f"{window}-{strides}-{rates}-{padding}")
    attrs = {"ksizes": [1, 2, 2, 1], "strides": [1, 2, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"}
    for dtype in taken(op, (*REALS, *COMPLEX)):
        yield Case(op, [sample(dtype, (1, 4, 5, 2))], attrs)
    image = sample("float32", (1, 4, 5, 2))
    yield Case(op, [image[:0]], attrs, id="empty")
    yield Case(op, [image[0]], attrs, error=BAD)
    yield Case(op, [image], attrs | {"ksizes": [1, 2, 2]}, error=BAD)
    yield Case(op, [image], attrs | {"ksizes": [2, 2, 2, 1]}, error="UNIMPLEMENTED")
    yield Case(op, [image], attrs | {"strides": [1, 1, 1, 2]}, error="UNIMPLEMENTED")
    yield Case(op, [image], attrs | {"rates": [1, 0, 1, 1]}, error="OUT_OF_RANGE")
    yield Case(op, [image], attrs | {"ksizes": [1, 0, 1, 1]}, error="OUT_OF_RANGE")
    yield Case(op, [image], attrs | {"strides": [1, 0, 1, 1]}, error="OUT_OF_RANGE")
    op = "ExtractVolumePatches"
    for window, strides, padding in product(
        ((3, 2, 2), (1, 1, 1)), ((1, 1, 1), (2, 1, 3), (4, 4, 5)), ("SAME", "VALID")
    ):
        attrs = {"ksizes": [1, *window, 1], "strides": [1, *strides, 1], "padding": padding}
        yield Case(op, [sample("float32", (2, 5, 4, 6, 2))], attrs, id=f"{window}-{strides}-{padding}")
    attrs = {"ksizes": [1, 2, 2, 1, 1], "strides": [1, 2, 1, 2, 1], "padding": "SAME"}
    for dtype in taken(op, REALS):
        yield Case(op, [sample(dtype, (1, 3, 4, 3, 2))], attrs)
    yield Case(op, [sample("float32", (3, 4, 3, 2))], attrs, error=BAD)
    yield Case(op, [sample("float32", (1, 3, 4, 3, 2))], attrs | {"strides": [2, 1, 1, 1, 1]}, error="UNIMPLEMENTED")


TRANSFORMS = {
    "identity": [[1, 0, 0, 0, 1, 0, 0, 0]],
    "shift": [[1, 0, 2.5, 0, 1, -1.5, 0, 0]],
    "turn": [[0.8, -0.6, 3, 0.6, 0.8, -2, 0, 0]],
    "far": [[3, 0.5, -20, 0.3, 2.7, -9, 0, 0]],
    "project": [[1, 0.1, -1, 0.05, 1.2, 0.5, 0.03, -0.02]],
    "each": [[1, 0, 1, 0, 1, 0, 0, 0], [0.5, 0, 0, 0, 0.5, 0, 0.01, -0.25]],
}


def transforms() -> Iterator[Case]:
    image, size = sample("float32", (2, 6, 7, 2)), np.int32([5, 9])
    for (name, t), how, mode in product(
        TRANSFORMS.items(), ("NEAREST", "BILINEAR"), ("CONSTANT", "NEAREST", "REFLECT", "WRAP")
    ):
        attrs = {"interpolation": how, "fill_mode": mode}
        tag = f"{name}-{how}-{mode}"
        yield Case("ImageProjectiveTransformV2", [image, F(t), size], attrs, id=tag)
        yield Case("ImageProjectiveTransformV3", [image, F(t), size, F(1.5)], attrs, id=tag)
    for dtype, how in product(taken("ImageProjectiveTransformV3", REALS, "dtype"), ("NEAREST", "BILINEAR")):
        data = sample(dtype, (1, 6, 7, 2))
        t = F(TRANSFORMS["turn"])
        yield Case("ImageProjectiveTransformV3", [data, t, size, F(2)], {"interpolation": how})
    t, attrs = F(TRANSFORMS["turn"]), {"interpolation": "NEAREST"}
    op = "ImageProjectiveTransformV3"
    yield Case(op, [image[0], t, size, F(0)], attrs, error=BAD)
    yield Case(op, [image, t[:, :7], size, F(0)], attrs, error=BAD)
    yield Case(op, [image, np.tile(t, (3, 1)), size, F(0)], attrs, error=BAD)
    yield Case(op, [image, t, size[:1], F(0)], attrs, error=BAD)
    yield Case(op, [image, t, size * 0, F(0)], attrs, error=BAD, id="size")
    yield Case(op, [image, t, size, F([0])], attrs, error=BAD, id="fill")


CASES = [*colors(), *drawings(), *patches(), *transforms()]


@suite(CASES)
def test_image(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@pytest.mark.parametrize("attrs", [{"interpolation": "CUBIC"}, {"interpolation": "NEAREST", "fill_mode": "MIRROR"}])
def test_transform_of_unknown_kind(attrs: dict[str, str]) -> None:
    """TensorFlow goes on with an uninitialised setting here; ours says what is wrong."""
    image, size = sample("float32", (2, 6, 7, 2)), np.int32([5, 9])
    case = Case("ImageProjectiveTransformV3", [image, F(TRANSFORMS["turn"]), size, F(0)], attrs)
    with pytest.raises(InvalidArgumentError, match=r"CUBIC|MIRROR"):
        run_ours(case)
