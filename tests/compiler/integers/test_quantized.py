"""Products of quantized numbers by int8 primitives: the same whole numbers as the kernels' and as TensorFlow's."""

# the client's functions are made from op definitions: their tensors have no types here
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import quantized_networks
from tests.compiler.compare import explained
from tests.compiler.modes import check_modes
from tests.compiler.operations.rows_quantized import QINT8, QINT32, QUINT8, WHOLE, cast, plain, side
from tests.quantized_networks import NETWORKS, NHWC, Size, build
from toolkit import client as gm
from toolkit.graph import dtypes
from toolkit.kernels.cpu.onednn.library import Library, library

ops: Any = gm.ops
F, I = np.float32, np.int32
_EVERY = settings(max_examples=20, deadline=None, print_blob=True)
needs_int8 = pytest.mark.skipif(
    library() is None or not library().has_exact_int8,  # type: ignore[union-attr]
    reason="needs oneDNN on a processor with VNNI",
)


def _tensorflow(graph: Any, fetches: Sequence[Any], feeds: dict[str, Any]) -> list[Any]:
    """What TensorFlow's session gives."""
    import tensorflow as tf

    definition = tf.compat.v1.GraphDef.FromString(graph.as_graph_def().SerializeToString())
    with tf.Graph().as_default() as theirs:
        tf.import_graph_def(definition, name="")
        with tf.compat.v1.Session(graph=theirs) as session:
            return session.run([tensor if isinstance(tensor, str) else tensor.name for tensor in fetches], feeds)


def _fused_is_exact() -> bool:
    """Whether TensorFlow's fused kernels are: without VNNI oneDNN, which they call, saturates sums of pairs."""
    found = library()
    if found is not None:
        return found.has_exact_int8
    return "vnni" in Path("/proc/cpuinfo").read_text(encoding="utf8")


def _agree_everywhere(graph: Any, fetches: Sequence[Any], feeds: dict[str, Any], *, tensorflow: bool = True) -> None:
    ours = check_modes(graph, fetches, feeds, exact=True)
    if tensorflow:
        for mine, theirs in zip(ours, _tensorflow(graph, fetches, feeds), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("size", [Size(), Size(32, 3, 2)], ids=["small", "deep"])
def test_networks(name: str, size: Size) -> None:
    """Whole networks, from floats to floats, bit by bit."""
    shape = (2, 40, 40, 3)
    graph = build(NETWORKS[name], size, shape)
    image = np.random.default_rng(1).uniform(-1, 1, shape).astype(F)
    _agree_everywhere(graph, ["scores:0"], {"image:0": image}, tensorflow=name != "fused" or _fused_is_exact())


@needs_int8
@pytest.mark.parametrize("name", NETWORKS)
def test_explained(name: str) -> None:
    """The plan says what computes each product."""
    graph = build(NETWORKS[name], Size(), (1, 32, 32, 3))
    text = explained(graph, ["scores:0"], {"image:0": np.zeros((1, 32, 32, 3), F)})
    products = [line for line in text.splitlines() if " int8_" in line and " = " not in line]
    assert len(products) >= 6
    assert all("vnni" in line or "gemm" in line or "amx" in line for line in products)


def test_without_vnni(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pairs of products would saturate, the kernels add them."""
    monkeypatch.setattr(Library, "has_exact_int8", False)
    graph = build(quantized_networks.fused, Size(), (1, 32, 32, 3))
    feeds = {"image:0": np.zeros((1, 32, 32, 3), F)}
    assert " int8_" not in explained(graph, ["scores:0"], feeds)
    check_modes(graph, ["scores:0"], feeds, exact=True)


# -- any product --------------------------------------------------------------------------------------------------


class _Numbers:
    """Random numbers of a type, or ones near its ends, which make the largest sums."""

    def __init__(self, seed: int, extreme: bool):
        self._random = np.random.default_rng(seed)
        self._extreme = extreme

    def of(self, dtype: Any, *shape: int) -> Any:
        ends = np.iinfo(dtype)
        low = ends.max - 6 if self._extreme else ends.min
        return self._random.integers(low, ends.max + 1, shape).astype(dtype)

    def scales(self, *shape: int) -> Any:
        return self._random.uniform(0.001, 0.1, shape).astype(F)


_ENDS = st.tuples(st.floats(-3, 0.5, width=16), st.floats(0.75, 5, width=16))
_NUMBERS = st.builds(_Numbers, st.integers(0, 99), st.booleans())
_WINDOW = st.tuples(st.integers(1, 5), st.integers(1, 5), st.sampled_from(["SAME", "VALID"]), st.integers(1, 3))
_CHANNELS = st.sampled_from([(1, 1), (3, 16), (16, 5), (33, 17), (320, 24)])


@pytest.mark.tensorflow
@_EVERY
@given(numbers=_NUMBERS, window=_WINDOW, channels=_CHANNELS, of_x=_ENDS, of_w=_ENDS, known=st.booleans())
def test_any_ranged_convolution(
    numbers: _Numbers, window: Any, channels: Any, of_x: Any, of_w: Any, known: bool
) -> None:
    """Zero points inside the type and outside, known beforehand or not.

    Outside, TensorFlow pads with what is not 0, and not always with the same; and where strides skip rows, it may
    leave out the first ones.
    """
    height, width, padding, stride = window
    x = numbers.of(np.uint8, 2, 9, 7, channels[0])
    w = numbers.of(np.uint8, height, width, *channels)
    feeds: dict[str, Any] = {"x:0": x}
    with gm.Graph().as_default() as graph:
        tensor = cast(gm.placeholder(dtypes.uint8, list(x.shape), name="x"), QUINT8)
        ends = [F(end) for end in of_x]
        if not known:
            ends = [gm.placeholder(dtypes.float32, [], name=name) for name in ("low", "high")]
            feeds |= {"low:0": F(of_x[0]), "high:0": F(of_x[1])}
        made = ops.quantized_conv2d(
            tensor, gm.constant(w, dtype=QUINT8), *ends, *map(F, of_w), strides=[1, stride, stride, 1], padding=padding
        )
        fetches = plain(made)
    _agree_everywhere(graph, fetches, feeds, tensorflow=of_x[0] <= 0 and stride <= min(height, width))


@pytest.mark.tensorflow
@_EVERY
@given(
    numbers=_NUMBERS, sizes=st.sampled_from([(1, 1, 1), (7, 300, 33), (64, 64, 64), (3, 2000, 10)]), of_x=_ENDS,
    of_w=_ENDS, turned=st.tuples(st.booleans(), st.booleans()), known=st.booleans(),
)  # fmt: skip
def test_any_ranged_product(numbers: _Numbers, sizes: Any, of_x: Any, of_w: Any, turned: Any, known: bool) -> None:
    m, k, n = sizes
    x = numbers.of(np.uint8, *((k, m) if turned[0] else (m, k)))
    w = numbers.of(np.uint8, *((n, k) if turned[1] else (k, n)))
    feeds: dict[str, Any] = {"x:0": x}
    with gm.Graph().as_default() as graph:
        tensor = cast(gm.placeholder(dtypes.uint8, list(x.shape), name="x"), QUINT8)
        ends = [F(end) for end in of_x]
        if not known:
            ends = [gm.placeholder(dtypes.float32, [], name=name) for name in ("low", "high")]
            feeds |= {"low:0": F(of_x[0]), "high:0": F(of_x[1])}
        made = ops.quantized_mat_mul(
            tensor, gm.constant(w, dtype=QUINT8), *ends, *map(F, of_w), Toutput=QINT32, transpose_a=turned[0],
            transpose_b=turned[1],
        )  # fmt: skip
        fetches = plain(made)
    _agree_everywhere(graph, fetches, feeds)


@pytest.mark.tensorflow
@_EVERY
@given(
    numbers=_NUMBERS, window=_WINDOW, channels=_CHANNELS, signed=st.booleans(), whole=st.booleans(), relu=st.booleans(),
    summed=st.booleans(), depthwise=st.booleans(),
)  # fmt: skip
def test_any_fused_convolution(
    numbers: _Numbers, window: Any, channels: Any, signed: bool, whole: bool, relu: bool, summed: bool, depthwise: bool
) -> None:
    """Bias, sum, relu and requantization, filters with a scale for each channel."""
    height, width, padding, stride = window
    x = numbers.of(np.int8 if signed else np.uint8, 2, 9, 7, channels[0])
    w = numbers.of(np.int8, height, width, channels[0], 1 if depthwise else channels[1]).clip(-127)
    outputs = channels[0] if depthwise else channels[1]
    summed, signed = summed and not depthwise, signed and not depthwise
    relu = relu or summed or depthwise
    reach, top = numbers.scales(outputs), F(0.5 * channels[0] * height * width)
    bias = gm_bias = (np.arange(outputs) - outputs / 2).astype(F)
    out = QUINT8 if relu else QINT8
    shape = [2, *((-(-s // stride) if padding == "SAME" else (s - k) // stride + 1)
                  for s, k in ((9, height), (7, width))), outputs]  # fmt: skip
    if min(shape) < 1:
        return
    x = x if signed else x.view(np.uint8)
    feeds: dict[str, Any] = {"x:0": x, "s:0": numbers.of(np.uint8, *shape)}
    op = "quantized_depthwise_conv2d_with_bias" if depthwise else "quantized_conv2d_with_bias"
    op += ("_sum" if summed else "") + ("_and_relu" if relu else "") + "_and_requantize"
    with gm.Graph().as_default() as graph:
        tensor = gm.placeholder(dtypes.from_numpy(x.dtype), list(x.shape), name="x")
        summand = cast(gm.placeholder(dtypes.uint8, shape, name="s"), QUINT8)
        made_bias = gm.constant((bias * 999).astype(I), dtype=QINT32) if whole else gm.constant(gm_bias)
        args = [cast(tensor, QINT8 if signed else QUINT8), gm.constant(w, dtype=QINT8), made_bias, F(-1), F(1), -reach,
                reach, F(0) if relu else -top, top, *((summand, F(0), top) if summed else ())]  # fmt: skip
        made = getattr(ops, op)(*args, out_type=out, strides=[1, stride, stride, 1], padding=padding)
        fetches = plain(made)
    # its sums are in place of what is fed, and two of its kernels for signed numbers round in float32
    _agree_everywhere(graph, fetches, feeds, tensorflow=not summed and not signed and _fused_is_exact())


_ENDINGS = ("", "_and_dequantize", "_and_requantize", "_and_relu_and_requantize")


@pytest.mark.parametrize("mode", ["SCALED", "MIN_FIRST"])
@pytest.mark.parametrize(
    ("bias", "ending"),
    [("float32", "_and_relu"), *((bias, ending) for bias in ("float32", "qint32") for ending in _ENDINGS)],
)
def test_fused_product(mode: str, bias: str, ending: str) -> None:
    """All modes agree; `tests.kernels.quantized.test_quantized_fused` holds them against TensorFlow."""
    numbers = _Numbers(3, False)
    x, w = numbers.of(np.uint8, 9, 70), numbers.of(np.int8, 70, 20)
    with gm.Graph().as_default() as graph:
        tensor = cast(gm.placeholder(dtypes.uint8, [9, 70], name="x"), QUINT8)
        values = gm.constant(np.arange(20, dtype=I) * 99, dtype=QINT32) if bias == "qint32" else np.arange(20).astype(F)
        ends = (F(0), F(40)) if "quantize" in ending else ()
        if ending.endswith("requantize"):
            attrs = {"Toutput": QUINT8}
        else:
            attrs = {"Toutput": dtypes.float32} if ends else {}
        made = getattr(ops, f"quantized_mat_mul_with_bias{ending}")(
            tensor, gm.constant(w, dtype=QINT8), values, F(0), F(6), F(-1), F(1), *ends, input_quant_mode=mode, **attrs
        )
        fetches = plain(made)
    check_modes(graph, fetches, {"x:0": x})


_GROUPS = st.sampled_from([(4, 4, 1), (16, 24, 1), (12, 24, 3), (8, 8, 8), (8, 16, 8), (300, 10, 1)])


@pytest.mark.tensorflow
@_EVERY
@given(
    numbers=_NUMBERS, window=_WINDOW, channels=_GROUPS, dilation=st.integers(1, 2), zero=st.integers(-128, 127),
    shifted=st.booleans(), hybrid=st.booleans(),
)  # fmt: skip
def test_any_uniform_convolution(
    numbers: _Numbers, window: Any, channels: Any, dilation: int, zero: int, shifted: bool, hybrid: bool
) -> None:
    """Scales for each channel, zero points of both sides, groups, holes; images of floats too."""
    height, width, padding, stride = window
    inputs, outputs, groups = channels
    x = numbers.of(np.int8, 2, 11, 10, inputs)
    w = numbers.of(np.int8, height, width, inputs // groups, outputs)
    scales = numbers.scales(outputs)
    zeros = np.arange(outputs, dtype=I) - outputs // 2 if shifted else np.zeros(outputs, I)
    if padding == "VALID" and max(height, width) * dilation > 10:
        return
    attrs = {"padding": padding, "window_strides": [stride] * 2, "rhs_dilation": [dilation] * 2,
             "dimension_numbers": NHWC, "feature_group_count": groups, **side("rhs", 3)}  # fmt: skip
    with gm.Graph().as_default() as graph:
        filters = gm.constant(w, dtype=QINT8)
        if hybrid:
            x = x.astype(F) / F(37)
            tensor = gm.placeholder(dtypes.float32, list(x.shape), name="x")
            del attrs["rhs_quantization_axis"]
            made = ops.uniform_quantized_convolution_hybrid(
                tensor, filters, scales, zeros, Tout=dtypes.float32, rhs_quantization_axis=3, **attrs
            )
        else:
            tensor = cast(gm.placeholder(dtypes.int8, list(x.shape), name="x"), QINT8)
            made = ops.uniform_quantized_convolution(
                tensor, filters, F(0.3), I(zero), scales, zeros, scales * F(0.7), zeros, Tout=QINT32,
                **side("lhs"), **side("output", 3, *WHOLE), **attrs,
            )  # fmt: skip
        fetches = plain(made)
    _agree_everywhere(graph, fetches, {"x:0": x})


@pytest.mark.tensorflow
@_EVERY
@given(
    numbers=_NUMBERS, sizes=st.sampled_from([(1, 1, 1), (7, 300, 33), (64, 64, 64), (3, 2000, 10)]),
    zeros=st.tuples(st.integers(-128, 127), st.integers(-9, 9)), hybrid=st.booleans(),
)  # fmt: skip
def test_any_uniform_product(numbers: _Numbers, sizes: Any, zeros: Any, hybrid: bool) -> None:
    """TensorFlow adds the products in float32, which is exact up to 2^24: beyond, ours alone are right."""
    m, k, n = sizes
    x, w = numbers.of(np.int8, m, k), numbers.of(np.int8, k, n)
    centred = [np.abs(np.float64(each) - zero) for each, zero in zip((x, w), zeros, strict=True)]
    most = k * 255 * 137 if hybrid else float((centred[0] @ centred[1]).max())
    with gm.Graph().as_default() as graph:
        filters = gm.constant(w, dtype=QINT8)
        if hybrid:
            x = x.astype(F) / F(37)
            tensor = gm.placeholder(dtypes.float32, [m, k], name="x")
            made = ops.uniform_quantized_dot_hybrid(
                tensor, filters, F(0.02), I(zeros[1]), Tout=dtypes.float32, **side("rhs")
            )
        else:
            tensor = cast(gm.placeholder(dtypes.int8, [m, k], name="x"), QINT8)
            made = ops.uniform_quantized_dot(
                tensor, filters, F(0.3), I(zeros[0]), F(0.02), I(zeros[1]), F(0.1), I(5), Tout=QINT32,
                **side("lhs"), **side("rhs"), **side("output", -1, *WHOLE),
            )  # fmt: skip
        fetches = plain(made)
    _agree_everywhere(graph, fetches, {"x:0": x}, tensorflow=most < 1 << 24)
