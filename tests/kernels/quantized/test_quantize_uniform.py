"""Operations on uniformly quantized numbers against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.uniform_quant_ops_attr_pb2 import UniformQuantizedConvolutionDimensionNumbersAttr as Numbers
from tests.kernels.op_suite import Case, check, sample, suite

pytestmark = pytest.mark.tensorflow

F, I = np.float32, np.int32
BAD = "INVALID_ARGUMENT"
WHOLE = (-(2**31), 2**31 - 1)


def attributes(*sides: str, axes: tuple[int, ...] = (), ends: tuple[int, int] = WHOLE) -> dict[str, Any]:
    """Ranges, and axes where they are not -1."""
    out: dict[str, Any] = {}
    for side, axis in zip(sides, axes or (-1,) * len(sides), strict=True):
        low, high = ends if side == "output" else (-128, 127)
        out |= {f"{side}_quantization_axis": axis, f"{side}_quantization_min_val": low,
                f"{side}_quantization_max_val": high}  # fmt: skip
    return out


def int8(*shape: int, seed: int = 0) -> Any:
    return sample("int8", shape, -128, 127, seed)


def scales(count: int, seed: int = 0) -> Any:
    return sample("float32", (count,), 0.01, 2, seed)


def zeros(count: int, seed: int = 0) -> Any:
    return sample("int32", (count,), -20, 20, seed)


def requantize() -> Iterator[Case]:
    def case(x: Any, kind: str, axes: tuple[int, int], values: list[Any], **more: Any) -> Case:
        attrs = {"Tin": kind, "Tout": "qint8", **attributes("input", "output", axes=axes, ends=(-127, 127))}
        return Case("UniformRequantize", [x, *values], attrs, **more)

    one, per = [F(0.3), I(4)], [scales(3), zeros(3)]
    for kind, x in (("qint8", int8(4, 3)), ("qint32", sample("int32", (4, 3), -900, 900))):
        for ratio in (1e-9, 0.01, 0.5, 1.0, 7.0, 1e9):
            yield case(x, kind, (-1, -1), [F(0.3), I(4), F(0.3 / ratio), I(-3)], id=f"{kind}-{ratio}")
        yield case(x, kind, (1, -1), [*per, F(0.6), I(-3)], id=f"{kind}-in")
        yield case(x, kind, (-1, 1), [*one, scales(3, 1), zeros(3, 1)], id=f"{kind}-out")
        yield case(x, kind, (1, 1), [*per, scales(3, 1), zeros(3, 1)], id=f"{kind}-both")
        yield case(x[:0], kind, (-1, -1), [*one, *one], id=f"{kind}-none")
    x = int8(4, 3)
    yield case(x, "qint8", (1, 0), [*per, scales(4), zeros(4)], error=BAD)
    yield case(x, "qint8", (-2, -1), [*one, *one], error=BAD)
    yield case(x, "qint8", (-1, -2), [*one, *one], error=BAD)
    yield case(x, "qint8", (2, -1), [*per, *one], error=BAD)
    yield case(x, "qint8", (-1, -1), [*per, *one], error=BAD)
    yield case(x, "qint8", (1, -1), [scales(4), zeros(4), *one], error=BAD)
    yield case(x, "qint8", (-1, -1), [F(0.3), zeros(1), *one], error=BAD)
    yield case(x, "qint8", (-1, -1), [F(0), I(0), *one], error=BAD, id="zero")
    yield case(x, "qint8", (-1, -1), [*one, F(-1), I(0)], error=BAD, id="negative")


def add() -> Iterator[Case]:
    def case(x: Any, y: Any, axes: tuple[int, ...], values: list[Any], **more: Any) -> Case:
        attrs = attributes("lhs", "rhs", "output", axes=axes, ends=more.pop("ends", WHOLE))
        return Case("UniformQuantizedAdd", [x, y, *values], {"T": "qint32", **attrs}, **more)

    one = [F(0.3), I(4), F(0.5), I(-3), F(0.7), I(2)]
    x, every = sample("int32", (4, 3), -9999, 9999), (-1, -1, -1)
    for shape in ((4, 3), (3,), (1, 3), (4, 1), ()):
        y = sample("int32", shape, -9999, 9999, 1)
        yield case(x, y, every, one)
        yield case(y, x, every, one, id=f"turned-{shape}")
    yield case(x, x, every, one, ends=(-100, 90), id="clipped")
    per = [scales(3), zeros(3), scales(3, 1), zeros(3, 1), scales(3, 2), zeros(3, 2)]
    yield case(x, x[::-1].copy(), (1, 1, 1), per, id="axis")
    yield case(x, x[0], (1, 0, 1), per, id="axis-of-bias")
    yield case(x, x[:3], every, one, error=BAD, id="shapes")
    yield case(x, x[:, 0].copy(), every, one, error=BAD, id="bias-of-rows")
    yield case(x, x, (1, -1, 0), [*per[:2], *one[2:4], scales(4), zeros(4)], error=BAD, id="axes")
    yield case(x, x, (-2, -1, -1), one, error=BAD)
    yield case(x, x, (2, -1, -1), per[:2] + one[2:], error=BAD)
    yield case(x, x, every, [*one[:4], F(0), I(0)], error=BAD, id="scale")


def dot() -> Iterator[Case]:
    def case(x: Any, w: Any, axes: tuple[int, ...], values: list[Any], **more: Any) -> Case:
        attrs = attributes("lhs", "rhs", "output", axes=axes, ends=more.pop("ends", WHOLE))
        return Case("UniformQuantizedDot", [x, w, *values], {"Tin": "qint8", "Tout": "qint32", **attrs}, **more)

    x, w, every = int8(4, 5), int8(5, 3, seed=1), (-1, -1, -1)
    one = [F(0.3), I(4), F(0.5), I(-3), F(0.7), I(2)]
    per = [F(0.3), I(4), scales(3), zeros(3)]
    yield case(x, w, every, one)
    yield case(x, w, every, one, ends=(-500, 700), id="clipped")
    yield case(x, w, (-1, 1, -1), [*per, F(0.2), I(5)], id="per-channel")
    yield case(x, w, (-1, 1, 1), [*per, scales(3, 2), zeros(3, 2)], id="all-channels")
    yield case(x[:0], w, every, one, id="none")
    yield case(x[:, :0], w[:0], every, one, id="no-sum")
    for axes in ((0, -1, -1), (-1, 0, -1), (-1, -1, 0)):
        yield case(x, w, axes, one, error=BAD, id=str(axes))
    yield case(x[0], w, every, one, error=BAD)
    yield case(x, w[0], every, one, error=BAD)
    yield case(x, w[:4], every, one, error=BAD)
    yield case(x, w, every, [*one[:4], scales(3), zeros(3)], error=BAD, id="output-channels")
    yield case(x, w, every, [F(0), *one[1:]], error=BAD, id="scale")
    yield case(x, w, every, [scales(1), zeros(1), *one[2:]], error=BAD, id="vector")

    def hybrid(x: Any, w: Any, axis: int, *values: Any, **more: Any) -> Case:
        attrs = {"Tlhs": "float32", "Trhs": "qint8", "Tout": "float32", **attributes("rhs", axes=(axis,))}
        return Case("UniformQuantizedDotHybrid", [x, w, *values], attrs, **more)

    floats = np.concatenate([sample("float32", (6, 5)), np.zeros((1, 5), F), np.ones((1, 5), F), -np.ones((1, 5), F)])
    yield hybrid(floats, w, -1, F(0.5), I(3))
    yield hybrid(floats, w, 1, scales(3), zeros(3))
    yield hybrid(floats[:0], w, -1, F(0.5), I(3))
    yield hybrid(floats, w, 0, F(0.5), I(3), error=BAD)
    yield hybrid(floats, w[:3], -1, F(0.5), I(3), error=BAD)
    yield hybrid(floats, w, -1, F(-0.5), I(3), error=BAD, id="negative")


NHWC = Numbers(
    input_batch_dimension=0, input_feature_dimension=3, input_spatial_dimensions=[1, 2],
    kernel_input_feature_dimension=2, kernel_output_feature_dimension=3, kernel_spatial_dimensions=[0, 1],
    output_batch_dimension=0, output_feature_dimension=3, output_spatial_dimensions=[1, 2],
).SerializeToString()  # fmt: skip
WINDOWS: list[dict[str, Any]] = [
    {"padding": "VALID"}, {"padding": "SAME"}, {"padding": "SAME", "window_strides": [2, 3]},
    {"padding": "EXPLICIT", "explicit_padding": [0, 1, 2, 3]}, {"padding": "VALID", "lhs_dilation": [2, 1]},
    {"padding": "SAME", "rhs_dilation": [1, 2]},
    {"padding": "SAME", "window_strides": [2, 1], "lhs_dilation": [2, 3], "rhs_dilation": [2, 2]},
]  # fmt: skip


def convolve(x: Any, w: Any, attrs: dict[str, Any], values: list[Any], axes: tuple[int, ...] = (), **more: Any) -> Case:
    full = {"Tin": "qint8", "Tout": "qint32", **attributes("lhs", "rhs", "output", axes=axes), **attrs}
    return Case("UniformQuantizedConvolution", [x, w, *values], full, **more)


def hybrid(x: Any, w: Any, attrs: dict[str, Any], values: list[Any], axis: int = -1, **more: Any) -> Case:
    types = {"Tlhs": "float32", "Trhs": "qint8", "Tout": "float32", **attributes("rhs", axes=(axis,))}
    return Case("UniformQuantizedConvolutionHybrid", [x, w, *values], {**types, **attrs}, **more)


ONE = [F(0.3), I(4), F(0.5), I(-3), F(0.7), I(2)]


def convolutions() -> Iterator[Case]:
    x, w = int8(2, 4, 6, 7), int8(6, 4, 3, 2, seed=1)
    floats = sample("float32", (2, 4, 6, 7))
    per = [scales(6), zeros(6)]
    for number, window in enumerate(WINDOWS):
        yield convolve(x, w, window, ONE, id=f"window{number}")
        yield hybrid(floats, w, window, [F(0.5), I(3)], id=f"window{number}")
        last, filters = np.moveaxis(x, 1, 3).copy(), np.transpose(w, (2, 3, 1, 0)).copy()
        ordered = {**window, "dimension_numbers": NHWC}
        yield convolve(last, filters, ordered, ONE, id=f"nhwc{number}")
        yield hybrid(np.moveaxis(floats, 1, 3).copy(), filters, ordered, per, 3, id=f"nhwc{number}")
    yield convolve(x, w, WINDOWS[1], [F(0.3), I(4), *per, F(0.7), I(2)], (-1, 0, -1), id="channels")
    yield convolve(x, w, WINDOWS[1], [F(0.3), I(4), *per, scales(6, 2), zeros(6, 2)], (-1, 0, 1), id="all-channels")
    for features, batches in ((2, 1), (1, 2), (4, 1)):
        count = {"feature_group_count": features, "batch_group_count": batches, "padding": "SAME"}
        filters = int8(8, 4 // features, 3, 2, seed=2)
        yield convolve(x, filters, count, ONE, id=f"groups{features}{batches}")
        yield hybrid(floats, filters, count, [F(0.5), I(3)], id=f"groups{features}{batches}")
    for rank in (1, 3):
        line, filters = int8(2, 3, *(5,) * rank), int8(4, 3, *(2,) * rank, seed=1)
        # with strides, because TensorFlow's kernels keep the number of dimensions that they saw first
        yield convolve(line, filters, {"padding": "SAME", "window_strides": [1] * rank}, ONE)
    valid = {"padding": "VALID"}
    for what, attrs in (
        ("padding", {"padding": "FULL"}), ("explicit", {"padding": "SAME", "explicit_padding": [1, 1, 1, 1]}),
        ("few-pads", {"padding": "EXPLICIT", "explicit_padding": [1]}), ("strides", {**valid, "window_strides": [1]}),
        ("negative", {"padding": "EXPLICIT", "explicit_padding": [-1, 0, 0, 0]}),
        ("stride", {**valid, "window_strides": [0, 1]}), ("dilation", {**valid, "lhs_dilation": [1]}),
        ("groups", {**valid, "feature_group_count": 3}), ("no-groups", {**valid, "feature_group_count": 0}),
        ("batches", {**valid, "batch_group_count": 4}), ("no-batches", {**valid, "batch_group_count": 0}),
        ("numbers", {**valid, "dimension_numbers": b"\xff\xff"}), ("lhs-axis", {**valid, "lhs_quantization_axis": 0}),
        ("rhs-axis", {**valid, "rhs_quantization_axis": 1}), ("out-axis", {**valid, "output_quantization_axis": 0}),
    ):  # fmt: skip
        yield convolve(x, w, attrs, ONE, error=BAD, id=what)
    yield convolve(x, w[0], valid, ONE, error=BAD, id="ranks")
    yield convolve(int8(3, 4), int8(3, 4), valid, ONE, error=BAD, id="flat")
    yield convolve(x, w, valid, [F(0), *ONE[1:]], error=BAD, id="scale")
    yield convolve(x, w, valid, [scales(1), zeros(1), *ONE[2:]], error=BAD, id="vector")


CASES = [*requantize(), *add(), *dot(), *convolutions()]


@suite(CASES)
def test_uniform(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@settings(max_examples=25, deadline=None, print_blob=True)
@given(
    sizes=st.tuples(*[st.integers(1, 6)] * 2),
    filters=st.tuples(*[st.integers(1, 3)] * 2),
    strides=st.lists(st.integers(1, 3), min_size=2, max_size=2),
    dilation=st.lists(st.integers(1, 3), min_size=2, max_size=2),
    padding=st.sampled_from(["SAME", "EXPLICIT"]),
)
def test_any_convolution(sizes: Any, filters: Any, strides: Any, dilation: Any, padding: str) -> None:
    attrs = {"padding": padding, "window_strides": strides, "rhs_dilation": dilation, "lhs_dilation": dilation[::-1]}
    if padding == "EXPLICIT":
        attrs["explicit_padding"] = [6, 1, 2, 7]
    check(convolve(int8(2, 3, *sizes), int8(2, 3, *filters, seed=1), attrs, ONE))


@settings(max_examples=40, deadline=None, print_blob=True)
@given(
    values=st.lists(st.integers(-(2**24), 2**24), min_size=1, max_size=9), given=st.floats(2**-20, 2**20, width=32),
    wanted=st.floats(2**-20, 2**20, width=32),
)  # fmt: skip
def test_any_scale(values: list[int], given: float, wanted: float) -> None:
    attrs = {"Tin": "qint32", "Tout": "qint8", **attributes("input", "output", ends=(-128, 127))}
    check(Case("UniformRequantize", [I(values), F(given), I(3), F(wanted), I(-5)], attrs))
