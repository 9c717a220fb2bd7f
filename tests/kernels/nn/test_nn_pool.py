"""Pools against TensorFlow, with their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import FLOATS, INTS, Case, check, check_against, run_ours, run_tensorflow, sample, suite
from toolkit.errors import InvalidArgumentError

pytestmark = pytest.mark.tensorflow

# input, window, strides
GEOMETRY = [
    ((2, 7, 6, 3), (3, 2), (2, 2)),
    ((1, 5, 5, 2), (2, 2), (1, 1)),
    ((2, 4, 5, 1), (3, 3), (3, 2)),
]
GEOMETRY_3D = [
    ((2, 4, 5, 6, 2), (2, 3, 2), (2, 2, 2)),
    ((1, 3, 4, 3, 1), (2, 2, 2), (1, 1, 1)),
]


def out_shape(x: Any, k: Any, s: Any, padding: str) -> tuple[int, ...]:
    spatial = (
        -(-n // step) if padding == "SAME" else (n - size) // step + 1
        for n, size, step in zip(x[1:-1], k, s, strict=True)
    )
    return (x[0], *spatial, x[-1])


def cases() -> Iterator[Case]:
    for (x, k, s), padding in product(GEOMETRY, ("SAME", "VALID")):
        y = out_shape(x, k, s, padding)
        attrs = {"ksize": [1, *k, 1], "strides": [1, *s, 1], "padding": padding}
        vectors = [np.int32([1, *k, 1]), np.int32([1, *s, 1])]
        for dtype in FLOATS + INTS + ("uint8", "uint16"):
            image = sample(dtype, x)
            yield Case("MaxPool", [image], attrs)
            yield Case("MaxPoolV2", [image, *vectors], {"padding": padding})
        for dtype in FLOATS:
            image, dy = sample(dtype, x), sample(dtype, y)
            yield Case("AvgPool", [image], attrs)
            yield Case("AvgPoolGrad", [np.int32(x), dy], attrs)
        for dtype in ("float32", "float64", "float16", "bfloat16", "int32", "uint8"):
            image, dy, ddx = sample(dtype, x, 0, 3), sample(dtype, y), sample(dtype, x, seed=7)
            maxima = run_ours(Case("MaxPool", [image], attrs))[0]
            yield Case("MaxPoolGrad", [image, maxima, dy], attrs)
            yield Case("MaxPoolGradV2", [image, maxima, dy, *vectors], {"padding": padding})
            yield Case("MaxPoolGradGrad", [image, maxima, ddx], attrs)
            yield Case("MaxPoolGradGradV2", [image, maxima, ddx, *vectors], {"padding": padding})
            for index, with_batch in product(("int32", "int64"), (False, True)):
                more = {**attrs, "Targmax": index, "include_batch_in_index": with_batch}
                yield Case("MaxPoolWithArgmax", [image], more)
                if index == "int32":
                    continue  # TensorFlow's gradient takes int64 alone
                best = run_ours(Case("MaxPoolWithArgmax", [image], more))[1]
                del more["Targmax"]
                yield Case("MaxPoolGradWithArgmax", [image, dy, best], more)
    for (x, k, s), padding in product(GEOMETRY_3D, ("SAME", "VALID")):
        y = out_shape(x, k, s, padding)
        attrs = {"ksize": [1, *k, 1], "strides": [1, *s, 1], "padding": padding}
        for dtype in ("float32", "bfloat16"):  # TensorFlow registers float16 for GPUs alone
            image, dy, ddx = sample(dtype, x), sample(dtype, y), sample(dtype, x, seed=7)
            maxima = run_ours(Case("MaxPool3D", [image], attrs))[0]
            yield Case("MaxPool3D", [image], attrs)
            yield Case("MaxPool3DGrad", [image, maxima, dy], attrs)
            yield Case("AvgPool3D", [image], attrs)
            yield Case("AvgPool3DGrad", [np.int32(x), dy], attrs)
            yield Case("MaxPool3DGradGrad", [image, maxima, ddx], attrs)


F = sample("float32", (2, 5, 6, 4))
TWO = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
TIES = np.float32(np.tile([1, 2, 2, 0, 0, 2], 20)).reshape(1, 4, 5, 6, 1)
SPECIAL = np.float32([[0, 0, 1, -np.inf], [-np.inf, -np.inf, np.inf, 2], [-5, -5, -0.0, 0.0]]).reshape(1, 3, 4, 1)
OTHER = [
    Case("MaxPool", [F], {**TWO, "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 0, 1, 0, 0]}),
    # float64: TensorFlow's oneDNN has no depth windows
    Case("MaxPool", [sample("float64", (2, 5, 6, 4))], {**TWO, "ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2]}),
    Case("MaxPool", [SPECIAL.astype(np.float64)], {**TWO, "strides": [1, 1, 1, 1]}, id="special"),
    Case("AvgPool", [SPECIAL], {**TWO, "strides": [1, 1, 1, 1]}, id="special"),
    Case("MaxPool", [sample("float32", (0, 5, 6, 4))], TWO, id="empty"),
    Case("MaxPool", [sample("float64", (5, 6, 4))], TWO, error="INVALID_ARGUMENT"),
    Case("MaxPool", [sample("float64", (1, 1, 1, 1))], TWO, id="smaller-than-window"),
    Case("MaxPool3DGrad", [TIES, np.full((1, 2, 2, 3, 1), 2, np.float32), sample("float32", (1, 2, 2, 3, 1))],
         {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}, id="ties"),
    Case("MaxPool", [F.astype("float64")], {**TWO, "ksize": [2, 1, 1, 1]}, error="UNIMPLEMENTED"),
    Case("MaxPool", [F.astype("float64")], {**TWO, "ksize": [1, 2, 2, 2]}, error="UNIMPLEMENTED"),
    Case("MaxPool", [F.astype("float64")], {**TWO, "ksize": [1, 0, 2, 1]}, error="INVALID_ARGUMENT"),
    Case("MaxPool", [F.astype("float64")], {**TWO, "strides": [1, 0, 2, 1]}, error="INVALID_ARGUMENT"),
    Case("MaxPool", [F.astype("float64")], {**TWO, "ksize": [1, 2, 2]}, error="INVALID_ARGUMENT"),
    Case("AvgPool", [sample("float64", (5, 6, 4))], TWO, error="INVALID_ARGUMENT"),
    Case("AvgPoolGrad", [np.int32([2, 5, 6]), F.astype("float64")], TWO, error="INVALID_ARGUMENT"),
    Case("MaxPoolGrad", [F, F, F], TWO, error="INVALID_ARGUMENT"),
    Case("MaxPoolGradGrad", [F, F, F], TWO, error="INVALID_ARGUMENT"),
]  # fmt: skip


@suite([*cases(), *OTHER])
def test_pool(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@pytest.mark.parametrize("op", ["MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_channels_first(op: str, padding: str, tf: ModuleType) -> None:
    """TensorFlow's CPU pools channels-last, so its result is transposed."""
    spatial = 3 if op.endswith("3D") else 2
    x = sample("float32", (2, *(5, 6, 4)[:spatial], 3))
    k, s = (3, 2, 2)[:spatial], (2, 1, 2)[:spatial]
    last = {"ksize": [1, *k, 1], "strides": [1, *s, 1], "padding": padding}
    first = {
        "ksize": [1, 1, *k], "strides": [1, 1, *s], "padding": padding,
        "data_format": "NCDHW" if spatial == 3 else "NCHW",
    }  # fmt: skip

    def move(a: Any) -> Any:
        return np.ascontiguousarray(np.moveaxis(a, -1, 1))

    (y,) = run_tensorflow(Case(op, [x], last))
    check_against(Case(op, [move(x)], first), [move(y)])
    dy = sample("float32", y.shape)
    gradient = op.replace("3D", "3DGrad") if spatial == 3 else op + "Grad"
    if op.startswith("Avg"):
        (dx,) = run_tensorflow(Case(gradient, [np.int32(x.shape), dy], last))
        case = Case(gradient, [np.int32(move(x).shape), move(dy)], first)
    else:
        (dx,) = run_tensorflow(Case(gradient, [x, y, dy], last))
        case = Case(gradient, [move(x), move(y), move(dy)], first)
    check_against(case, [move(dx)])


def test_argmax_outside_the_input() -> None:
    """TensorFlow aborts the process here; ours says what is wrong."""
    case = Case("MaxPoolGradWithArgmax", [F, sample("float32", (2, 2, 3, 4)), np.full((2, 2, 3, 4), 240)], TWO)
    with pytest.raises(InvalidArgumentError, match=r"outside \[0, 240\)"):
        run_ours(case)


@pytest.mark.parametrize("with_batch", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_second_gradients_by_places(dtype: str, with_batch: bool) -> None:
    """They are those that look for the places themselves: TensorFlow has this kernel for GPUs only."""
    attrs = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    image, ddx = sample(dtype, (2, 5, 7, 3)), sample(dtype, (2, 5, 7, 3), seed=1)
    more = {**attrs, "include_batch_in_index": with_batch}
    maxima, places = run_ours(Case("MaxPoolWithArgmax", [image], {**more, "Targmax": "int64"}))
    wanted = run_ours(Case("MaxPoolGradGrad", [image, maxima, ddx], attrs))
    made = run_ours(Case("MaxPoolGradGradWithArgmax", [image, ddx, places], more))
    np.testing.assert_array_equal(made[0], wanted[0])
    with pytest.raises(InvalidArgumentError, match=r"outside \[0, 210\)"):
        run_ours(Case("MaxPoolGradGradWithArgmax", [image, ddx, places + 210], more))
    with pytest.raises(InvalidArgumentError, match="grad must have the shape of input"):
        run_ours(Case("MaxPoolGradGradWithArgmax", [image, ddx[:1], places], more))
