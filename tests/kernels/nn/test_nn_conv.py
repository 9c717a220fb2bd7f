"""Convolutions against TensorFlow, in both layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import tolerance
from tests.kernels.op_suite import (
    FLOATS,
    SAME,
    Case,
    check,
    check_against,
    compare_outputs,
    run_ours,
    run_tensorflow,
    sample,
    suite,
)

pytestmark = pytest.mark.tensorflow

PADDINGS: list[dict[str, Any]] = [
    {"padding": "SAME"},
    {"padding": "VALID"},
    {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]},
]
# input, filter, strides, dilations
GEOMETRY = [
    ((2, 7, 6, 3), (3, 3, 3, 4), (1, 1), (1, 1)),
    ((1, 8, 9, 2), (3, 2, 2, 3), (2, 3), (1, 1)),
    ((2, 9, 8, 2), (3, 3, 2, 2), (1, 1), (2, 3)),
    ((2, 5, 5, 3), (1, 1, 3, 5), (1, 1), (1, 1)),
    ((2, 5, 6, 3), (1, 1, 3, 2), (2, 2), (1, 1)),
    ((1, 4, 4, 1), (5, 4, 1, 2), (1, 2), (1, 1)),
]


def out_shape(x: Any, w: Any, strides: Any, dilations: Any, padding: dict[str, Any]) -> tuple[int, ...]:
    pads = padding.get("explicit_paddings", [0] * 2 * len(x))
    sizes: list[int] = []
    for i, (n, k, s, d) in enumerate(zip(x[1:-1], w, strides, dilations, strict=False)):
        span = (k - 1) * d + 1
        total = n + pads[2 * i + 2] + pads[2 * i + 3]
        sizes.append(-(-n // s) if padding["padding"] == "SAME" else -(-(total - span + 1) // s))
    return (x[0], *sizes, w[-1])


def conv2d_cases() -> Iterator[Case]:
    for (x, w, s, d), padding in product(GEOMETRY, PADDINGS):
        attrs = {"strides": [1, *s, 1], "dilations": [1, *d, 1], **padding}
        y = out_shape(x, w, s, d, padding)
        if min(y) <= 0:
            continue
        for dtype in FLOATS:
            image, filters, dy = sample(dtype, x, -1, 1), sample(dtype, w, -1, 1), sample(dtype, y, -1, 1)
            yield Case("Conv2D", [image, filters], attrs)
            if dtype in ("float16", "bfloat16") and (x, w, s, d) != GEOMETRY[0]:
                continue
            if d != (1, 1) and (dtype == "float64" or padding["padding"] == "EXPLICIT"):
                continue  # TensorFlow's CPU has no such gradients; `test_gradients_are_adjoint` has
            yield Case("Conv2DBackpropInput", [np.int32(x), filters, dy], attrs)
            yield Case("Conv2DBackpropFilter", [image, np.int32(w), dy], attrs)


def depthwise_cases() -> Iterator[Case]:
    geometry = [
        ((2, 7, 6, 3), (3, 3, 3, 1), (1, 1), (1, 1)),
        ((2, 7, 7, 3), (3, 2, 3, 2), (2, 2), (1, 1)),
        ((1, 9, 9, 2), (3, 3, 2, 1), (1, 1), (2, 2)),
    ]
    for (x, w, s, d), padding in product(geometry, PADDINGS):
        attrs = {"strides": [1, *s, 1], "dilations": [1, *d, 1], **padding}
        y = out_shape(x, w, s, d, padding)
        y = (*y[:-1], w[2] * w[3])
        for dtype in FLOATS:
            image, filters, dy = sample(dtype, x, -1, 1), sample(dtype, w, -1, 1), sample(dtype, y, -1, 1)
            if d == (1, 1) or (padding["padding"] != "EXPLICIT" and dtype != "float64"):
                yield Case("DepthwiseConv2dNative", [image, filters], attrs)
            if d == (1, 1):
                yield Case("DepthwiseConv2dNativeBackpropInput", [np.int32(x), filters, dy], attrs)
                yield Case("DepthwiseConv2dNativeBackpropFilter", [image, np.int32(w), dy], attrs)


def conv3d_cases() -> Iterator[Case]:
    geometry = [
        ((2, 4, 5, 6, 2), (2, 3, 2, 2, 3), (1, 1, 1), (1, 1, 1)),
        ((1, 5, 5, 5, 2), (3, 2, 3, 2, 2), (2, 1, 2), (1, 1, 1)),
        ((1, 6, 6, 7, 1), (2, 2, 2, 1, 2), (1, 1, 1), (2, 1, 2)),
        ((1, 3, 3, 3, 4), (1, 1, 1, 4, 2), (1, 1, 1), (1, 1, 1)),
    ]
    for (x, w, s, d), padding in product(geometry, PADDINGS[:2]):
        attrs = {"strides": [1, *s, 1], "dilations": [1, *d, 1], **padding}
        y = out_shape(x, w, s, d, padding)
        for dtype in ("float32", "float64", "float16"):
            image, filters, dy = sample(dtype, x, -1, 1), sample(dtype, w, -1, 1), sample(dtype, y, -1, 1)
            if d == (1, 1, 1) or dtype == "float32":
                yield Case("Conv3D", [image, filters], attrs)
            if d == (1, 1, 1):  # TensorFlow's CPU has no dilated 3-D gradients
                yield Case("Conv3DBackpropInputV2", [np.int32(x), filters, dy], attrs)
                yield Case("Conv3DBackpropFilterV2", [image, np.int32(w), dy], attrs)


ONE = {"strides": [1, 1, 1, 1], "padding": "SAME"}


def F(*shape: int) -> Any:  # noqa: N802
    return sample("float32", shape, -1, 1)


def D(*shape: int) -> Any:  # noqa: N802
    """float64: TensorFlow's oneDNN kernels check less, and abort on some bad shapes."""
    return sample("float64", shape, -1, 1)


OTHER = [
    Case("Conv2D", [sample("int32", (1, 4, 5, 2)), sample("int32", (3, 3, 2, 3))], ONE),
    Case("Conv2DBackpropInput", [np.int32([1, 4, 5, 2]), sample("int32", (3, 3, 2, 3)),
         sample("int32", (1, 4, 5, 3))], ONE),
    Case("Conv2D", [F(2, 5, 5, 4), F(3, 3, 2, 6)], ONE, id="grouped"),
    Case("Conv2D", [F(2, 5, 5, 6), F(2, 3, 1, 12)], {**ONE, "padding": "VALID"}, id="grouped-per-channel"),
    # float64, because TensorFlow's oneDNN gives an empty batch the shape of the input
    Case("Conv2D", [sample("float64", (0, 5, 5, 4)), sample("float64", (3, 3, 4, 6))], ONE, id="empty-batch"),
    Case("Conv2D", [F(2, 5, 5, 4), F(3, 3, 4, 0)], ONE, error="INVALID_ARGUMENT", id="no-filters"),
    Case("Conv2DBackpropInput", [np.int32([0, 5, 5, 4]), F(3, 3, 4, 6), F(0, 5, 5, 6)], ONE, id="empty-batch"),
    Case("Conv2DBackpropFilter", [F(0, 5, 5, 4), np.int32([3, 3, 4, 6]), F(0, 5, 5, 6)], ONE, id="empty-batch"),
    Case("Conv2DBackpropInput", [np.int32([5, 5]), F(3, 3, 4, 6), F(2, 5, 5, 6)], ONE, id="spatial-sizes"),
    # bad input
    Case("Conv2D", [sample("float64", (5, 5, 4)), sample("float64", (3, 3, 4, 6))], ONE, error="INVALID_ARGUMENT"),
    Case("Conv2D", [F(1, 5, 5, 4), F(3, 3, 4)], ONE, error="INVALID_ARGUMENT"),
    Case("Conv2D", [F(1, 5, 5, 4), F(3, 3, 3, 6)], ONE, error="INVALID_ARGUMENT"),
    Case("Conv2D", [F(1, 3, 3, 4), F(5, 5, 4, 6)], {**ONE, "padding": "VALID"}, error="INVALID_ARGUMENT"),
    Case("Conv2D", [D(1, 3, 3, 4), D(3, 3, 4, 6)], {**ONE, "strides": [1, 1, 1]}, error="INVALID_ARGUMENT"),
    Case("Conv2D", [D(1, 3, 3, 4), D(3, 3, 4, 6)], {**ONE, "strides": [2, 1, 1, 1]}, error="UNIMPLEMENTED"),
    Case("Conv2D", [F(1, 3, 3, 4), F(3, 3, 4, 6)], {**ONE, "strides": [1, 0, 1, 1]}, error="INVALID_ARGUMENT"),
    Case("Conv2D", [F(1, 3, 3, 4), F(3, 3, 4, 6)], {**ONE, "dilations": [1, 0, 1, 1]}, error="INVALID_ARGUMENT"),
    Case("Conv2D", [D(1, 3, 3, 4), D(3, 3, 4, 6)], {**ONE, "padding": "EXPLICIT"}, error="INVALID_ARGUMENT"),
    Case("Conv2D", [D(1, 3, 3, 4), D(3, 3, 4, 6)], {**ONE, "explicit_paddings": [0] * 8}, error="INVALID_ARGUMENT"),
    Case("Conv2DBackpropInput", [np.int32([1, 5, 5, 4]), D(3, 3, 4, 6), D(1, 4, 5, 6)], ONE, error="INVALID_ARGUMENT"),
    Case("Conv2DBackpropFilter", [D(1, 5, 5, 4), np.int32([3, 3, 4, 6]), D(1, 5, 4, 6)], ONE, error="INVALID_ARGUMENT"),
    Case("DepthwiseConv2dNative", [F(1, 5, 5, 4), F(3, 3, 3, 1)], ONE, error="INVALID_ARGUMENT"),
    Case("Conv", [F(2, 7, 6, 3), F(3, 3, 3, 4)], {"strides": [1, 2, 1, 1], "padding": "SAME"}, error=SAME),
    Case("Conv", [F(2, 2, 7, 6, 3), F(3, 3, 3, 4)],
         {"strides": [1, 2, 1, 1], "padding": "SAME", "batch_dims": 2}, error=SAME),
    Case("Conv", [F(2, 4, 5, 6, 2), F(2, 3, 2, 2, 3)],
         {"strides": [1, 1, 1, 1, 1], "padding": "VALID"}, error=SAME),
]  # fmt: skip


@suite([*conv2d_cases(), *depthwise_cases(), *conv3d_cases(), *OTHER])
def test_conv(case: Case, device: str, tf: ModuleType) -> None:
    try:
        check(case, device)
    except AssertionError:
        # Which float16 and bfloat16 kernels TensorFlow has depends on the processor (AMX, AVX512_FP16): on some it
        # refuses dilations or gets explicit padding wrong. Its float32 kernels are the same everywhere.
        halves = [np.asarray(x).dtype.name in ("float16", "bfloat16") for x in case.inputs]
        if case.error is not None or not any(halves):
            raise
        widened = [np.asarray(x).astype(np.float32) if half else x for x, half in zip(case.inputs, halves, strict=True)]
        reference = run_tensorflow(replace(case, inputs=widened))
        mine = run_ours(case, device)
        compare_outputs(case, mine, [wanted.astype(each.dtype) for wanted, each in zip(reference, mine, strict=True)])


def first(x: Any) -> Any:
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


@pytest.mark.parametrize("op", ["Conv2D", "Conv3D", "DepthwiseConv2dNative"])
@pytest.mark.parametrize("padding", ["SAME", "VALID", "EXPLICIT"])
def test_channels_first(op: str, padding: str, tf: ModuleType) -> None:
    """TensorFlow's CPU is channels-last, so its result is transposed."""
    spatial = 3 if op == "Conv3D" else 2
    if padding == "EXPLICIT" and spatial == 3:
        return  # Conv3D has no explicit padding
    x = F(2, *(7, 6, 5)[:spatial], 3)
    w = F(*(3, 2, 2)[:spatial], 3, 2)
    strides = [2, 1, 1][:spatial]
    attrs: dict[str, Any] = {"padding": padding}
    firsts = dict(attrs)
    if spatial == 2 and op != "Conv2D":
        strides = [2, 2]
    if padding == "EXPLICIT":
        attrs["explicit_paddings"] = [0, 0, 1, 2, 2, 0, 0, 0]
        firsts["explicit_paddings"] = [0, 0, 0, 0, 1, 2, 2, 0]
    attrs["strides"], firsts["strides"] = [1, *strides, 1], [1, 1, *strides]
    firsts["data_format"] = "NCDHW" if spatial == 3 else "NCHW"
    (expected,) = run_tensorflow(Case(op, [x, w], attrs))
    check_against(Case(op, [first(x), w], firsts), [first(expected)])
    dy = sample("float32", expected.shape, -1, 1)
    suffix = "V2" if spatial == 3 else ""
    into, by = f"{op}BackpropInput{suffix}", f"{op}BackpropFilter{suffix}"
    (dx,) = run_tensorflow(Case(into, [np.int32(x.shape), w, dy], attrs))
    check_against(Case(into, [np.int32(first(x).shape), w, first(dy)], firsts), [first(dx)])
    (dw,) = run_tensorflow(Case(by, [x, np.int32(w.shape), dy], attrs))
    check_against(Case(by, [first(x), np.int32(w.shape), first(dy)], firsts), [dw])


@settings(max_examples=40, deadline=None, print_blob=True)
@given(data=st.data())
def test_gradients_are_adjoint(data: st.DataObject) -> None:
    """<dy, conv(x, w)> = <dx, x> = <dw, w>, for geometries TensorFlow's CPU has no gradients for as well."""
    size = st.integers(1, 7)
    groups, per_group = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    filters = groups * data.draw(st.integers(1, 2))
    kernel = [data.draw(st.integers(1, 3)) for _ in range(2)]
    x_shape = [data.draw(st.integers(1, 2)), data.draw(size), data.draw(size), groups * per_group]
    attrs: dict[str, Any] = {
        "strides": [1, data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3)), 1],
        "dilations": [1, data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3)), 1],
        "padding": data.draw(st.sampled_from(["SAME", "EXPLICIT"])),
    }
    if attrs["padding"] == "EXPLICIT":
        attrs["explicit_paddings"] = [0, 0, *(data.draw(st.integers(4, 6)) for _ in range(4)), 0, 0]
    x, w = sample("float64", x_shape), sample("float64", (*kernel, per_group, filters))
    (y,) = run_ours(Case("Conv2D", [x, w], attrs))
    dy = sample("float64", y.shape, seed=3)
    (dx,) = run_ours(Case("Conv2DBackpropInput", [np.int32(x.shape), w, dy], attrs))
    (dw,) = run_ours(Case("Conv2DBackpropFilter", [x, np.int32(w.shape), dy], attrs))
    # each is a sum of the same products dy x w, one after the other along two ways
    (sizes,) = run_ours(Case("Conv2D", [np.abs(x), np.abs(w)], attrs))
    products = np.prod(kernel) * per_group + dy.size + max(x.size, w.size)
    allowed = 2 * tolerance.likely(float(products), np.float64) * np.vdot(np.abs(dy), sizes)
    tolerance.assert_within(np.vdot(dx, x), np.vdot(dy, y), allowed)
    tolerance.assert_within(np.vdot(dw, w), np.vdot(dy, y), allowed)


def test_large_inputs_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The patch matrix is made in pieces when it would be large; the result does not depend on it."""
    from toolkit.kernels.cpu.nn import conv_math as nn_conv_math

    cases = [
        Case("Conv2D", [F(2, 9, 8, 4), F(3, 3, 2, 6)], ONE),
        Case("Conv2D", [F(2, 9, 8, 4), F(3, 3, 4, 6)], ONE),
        Case("Conv2DBackpropFilter", [F(2, 9, 8, 4), np.int32([3, 3, 4, 6]), F(2, 9, 8, 6)], ONE),
        Case("Conv2DBackpropFilter", [F(2, 9, 8, 4), np.int32([3, 3, 2, 6]), F(2, 9, 8, 6)], ONE),
    ]
    whole = [run_ours(case)[0] for case in cases]
    monkeypatch.setattr(nn_conv_math, "_PATCH_BYTES", 4000)
    for case, expected in zip(cases, whole, strict=True):
        check_against(case, [expected])
