"""Fused quantized convolutions and matrix products, and what oneDNN's passes run besides, against TensorFlow.

TensorFlow runs these ops only in a graph whose filters are constants, which its oneDNN pass rewrites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import tolerance
from tests.kernels.graph_suite import check_graph, run_both
from tests.kernels.op_suite import Case, check, run_ours, sample, suite

pytestmark = pytest.mark.tensorflow

F = np.float32
PLAIN = {"quint8": "uint8", "qint8": "int8", "qint32": "int32", "float32": "float32"}
SYMMETRIC = (F(-1), F(1))
CHANNELS = (F([-1, -2, -3]), F([1, 2, 3]))


def numbers(kind: str, *shape: int, seed: int = 0) -> Any:
    low, high = {"quint8": (0, 255), "qint8": (-127, 127), "qint32": (-9999, 9999)}[kind]
    return sample(PLAIN[kind], shape, low, high, seed)


def weights(*shape: int, seed: int = 0) -> Any:
    """int8 numbers that TensorFlow multiplies exactly on every processor.

    Without VNNI its oneDNN adds two products in 16 bits, saturating: 2 * 255 * 63 fits, 2 * 255 * 127 does not. Where
    the input is signed, it halves the weights for the same reason, and rounds: even numbers stay what they are.
    """
    return sample("int8", shape, -31, 31, seed) * np.int8(2)


def constant(value: Any, kind: str) -> Any:
    """A Const of a quantized type, which tf.constant cannot make."""
    import tensorflow as tf
    from tensorflow.core.framework import attr_value_pb2, tensor_pb2

    enum = tf.as_dtype(kind).as_datatype_enum
    tensor = tensor_pb2.TensorProto(dtype=enum, tensor_content=np.ascontiguousarray(value).tobytes())
    tensor.tensor_shape.CopyFrom(tf.TensorShape(value.shape).as_proto())
    attrs = {"value": attr_value_pb2.AttrValue(tensor=tensor), "dtype": attr_value_pb2.AttrValue(type=enum)}
    return tf.compat.v1.get_default_graph().create_op("Const", [], [tf.as_dtype(kind)], attrs=attrs).outputs[0]


def given_value(value: Any, kind: str) -> Any:
    import tensorflow as tf

    return tf.bitcast(tf.compat.v1.placeholder_with_default(value, value.shape), kind)


def plain(tensors: Any) -> list[Any]:
    import tensorflow as tf

    flat = tensors if isinstance(tensors, list | tuple) else [tensors]
    return [tf.bitcast(t, PLAIN[t.dtype.name]) if t.dtype.is_quantized else t for t in flat]


@dataclass(frozen=True)
class Row:
    """A fused op: `ends` the range it requantizes to, `summand` its type and range."""

    op: str
    tin: str = "quint8"
    bias: str = ""
    span: tuple[Any, Any] = (F(0), F(6))
    filters: tuple[Any, Any] = SYMMETRIC
    ends: tuple[float, float] | None = None
    summand: tuple[str, tuple[float, float]] | None = None
    out: str = "qint32"
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        parts = (self.op, self.tin, self.bias, self.out, np.size(self.filters[0]), *map(str, self.more.items()))
        return "-".join(map(str, parts))


def bias_of(kind: str, count: int) -> Any:
    import tensorflow as tf

    values = [1.5, -2, 0.25, 30, -5, 0.5, 7, -1][:count]
    return tf.constant(F(values)) if kind == "float32" else constant(np.int32(values) * 1000, "qint32")


def convolution(row: Row, seed: int = 0) -> Callable[[], Any]:
    def build() -> Any:
        import tensorflow as tf

        depthwise = "Depthwise" in row.op
        x, w = numbers(row.tin, 2, 6, 5, 4, seed=seed), weights(3, 2, 4, 2 if depthwise else 3, seed=seed + 1)
        args = {"strides": [1, 1, 1, 1], "padding": "SAME", "out_type": row.out, **row.more}
        args |= {"input": given_value(x, row.tin), "filter": constant(w, "qint8"), "min_input": row.span[0],
                 "max_input": row.span[1], "min_filter": row.filters[0], "max_filter": row.filters[1]}  # fmt: skip
        if row.bias:
            args["bias"] = bias_of(row.bias, 8 if depthwise else 3)
        if row.ends:
            args["min_freezed_output"], args["max_freezed_output"] = map(F, row.ends)
        if row.summand:
            kind, span = row.summand
            shape = (2, 6, 5, 3)
            if kind == "float32":  # made by an op: TensorFlow writes over it
                args["summand"] = tf.compat.v1.placeholder_with_default(sample("float32", shape), shape) * 1.5
            else:
                low, high = (0.0, 255.0) if kind == "quint8" else (-128.0, 127.0)
                values = np.abs(numbers(kind, *shape, seed=seed + 2)).astype(F)
                made = tf.raw_ops.QuantizeV2(input=tf.compat.v1.placeholder_with_default(values, shape),
                                             min_range=low, max_range=high, T=kind, mode="SCALED").output  # fmt: skip
                args["summand"] = tf.reshape(made, shape)
                args["min_summand"], args["max_summand"] = map(F, span)
        return plain(getattr(tf.raw_ops, row.op)(**args))

    return build


def convolutions() -> Iterator[Row]:
    up, around = (0.0, 60.0), (-60.0, 50.0)
    yield Row("QuantizedConv2DAndRelu")
    yield Row("QuantizedConv2DAndReluAndRequantize", ends=up, out="quint8")
    yield Row("QuantizedConv2DAndRequantize", ends=around, out="qint8")
    for tin, span in (("quint8", (F(0), F(6))), ("qint8", (F(-3), F(6)))):
        yield Row("QuantizedConv2DWithBias", tin, "float32", span)
        yield Row("QuantizedConv2DWithBiasAndRelu", tin, "float32", span, (F(-1), F(0.5)))
        for bias, filters in (("float32", SYMMETRIC), ("qint32", SYMMETRIC), ("float32", CHANNELS)):
            yield Row("QuantizedConv2DWithBiasAndReluAndRequantize", tin, bias, span, filters, up, out="quint8")
            yield Row("QuantizedConv2DWithBiasAndRequantize", tin, bias, span, filters, around, out="qint8")
    yield Row("QuantizedConv2DWithBiasSumAndRelu", bias="float32", summand=("float32", (0, 0)))
    for bias in ("float32", "qint32"):
        sums = "QuantizedConv2DWithBiasSumAndReluAndRequantize"
        yield Row(sums, bias=bias, ends=up, summand=("quint8", (0, 9)), out="quint8")
        signed = "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize"
        yield Row(signed, bias=bias, ends=up, summand=("qint8", (-9, 9)), out="quint8")
        yield Row("QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize", bias=bias, ends=up, out="quint8")
    yield Row("QuantizedDepthwiseConv2D")
    yield Row("QuantizedDepthwiseConv2DWithBias", bias="float32")
    yield Row("QuantizedDepthwiseConv2DWithBiasAndRelu", bias="float32")
    for more in ({"padding": "VALID"}, {"strides": [1, 2, 2, 1]}, {"dilations": [1, 2, 2, 1]},
                 {"padding_list": [0, 0, 1, 2, 0, 1, 0, 0]}):  # fmt: skip
        yield Row("QuantizedConv2DWithBiasAndRelu", bias="float32", more=more)


@pytest.mark.parametrize("row", list(convolutions()), ids=lambda row: row.label)
def test_convolution(row: Row, tf: ModuleType) -> None:
    check_graph(convolution(row))


def test_convolution_per_channel(tf: ModuleType) -> None:
    """TensorFlow 2.21 gives its ranges channel by channel and its sums in steps of the widest channel: ours agree."""
    row = Row("QuantizedConv2DPerChannel", filters=CHANNELS)
    (mine,), (theirs,) = run_both(convolution(row))
    share = CHANNELS[1] / CHANNELS[1].max()
    assert np.abs(theirs[0] - np.rint(mine[0] * share)).max() <= 1  # theirs are rounded twice
    for ours, expected in zip(mine[1:], theirs[1:], strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_negative_summand() -> None:
    """TensorFlow 2.21 reads negative numbers of a signed summand as unsigned ones; here they are what they are."""
    x, w = np.zeros((1, 2, 2, 1), np.uint8), np.zeros((1, 1, 1, 1), np.int8)
    summand = np.int8([-127, -5, 0, 127]).reshape(1, 2, 2, 1)
    ranges = [F(0), F(1), F(-1), F(1), F(0), F(255), summand, F(-127), F(127)]
    op = "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize"
    attrs = {"Tinput": "quint8", "Tfilter": "qint8", "Tbias": "float32", "Tsummand": "qint8", "out_type": "quint8",
             "strides": [1, 1, 1, 1], "padding": "SAME"}  # fmt: skip
    (out, *_) = run_ours(Case(op, [x, w, F([10]), *ranges], attrs))
    assert out.ravel().tolist() == [0, 5, 10, 137]


def product(op: str, bias: str, ends: Any, out: str, mode: str = "SCALED", low: float = 0.0) -> Callable[[], Any]:
    def build() -> Any:
        import tensorflow as tf

        a, b = numbers("quint8", 4, 5), weights(5, 3, seed=1)
        args = {"a": given_value(a, "quint8"), "b": constant(b, "qint8"), "bias": bias_of(bias, 3), "min_a": F(low),
                "max_a": F(6), "min_b": F(-1), "max_b": F(0.7), "Toutput": out, "input_quant_mode": mode}  # fmt: skip
        if ends:
            args["min_freezed_output"], args["max_freezed_output"] = map(F, ends)
        return plain(getattr(tf.raw_ops, op)(**args))

    return build


PRODUCTS: list[tuple[str, str, Any, str]] = [
    ("QuantizedMatMulWithBias", "float32", None, "qint32"), ("QuantizedMatMulWithBias", "qint32", None, "qint32"),
    ("QuantizedMatMulWithBiasAndRelu", "float32", None, "qint32"),
    ("QuantizedMatMulWithBiasAndDequantize", "float32", (0, 1), "float32"),
    ("QuantizedMatMulWithBiasAndDequantize", "qint32", (0, 1), "float32"),
    ("QuantizedMatMulWithBiasAndRequantize", "float32", (0, 30), "quint8"),
    ("QuantizedMatMulWithBiasAndRequantize", "qint32", (0, 30), "quint8"),
    ("QuantizedMatMulWithBiasAndReluAndRequantize", "float32", (0, 30), "quint8"),
    ("QuantizedMatMulWithBiasAndReluAndRequantize", "qint32", (0, 30), "quint8"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "bias", "ends", "out"), PRODUCTS)
@pytest.mark.parametrize("mode", ["SCALED", "MIN_FIRST"])
def test_product(op: str, bias: str, ends: Any, out: str, mode: str, tf: ModuleType) -> None:
    check_graph(product(op, bias, ends, out, mode))


def test_product_with_offset(tf: ModuleType) -> None:
    """A bias of whole numbers holds the offset of MIN_FIRST already."""
    check_graph(product("QuantizedMatMulWithBias", "qint32", None, "qint32", "MIN_FIRST", -1.5))


def test_product_min_first() -> None:
    """With a float bias, against real numbers: TensorFlow 2.21 adds the offset in steps where values are meant."""
    a, b, bias = numbers("quint8", 4, 5), weights(5, 3, seed=1), F([1.5, -2, 0.25])
    ranges = [F(-1.5), F(6), F(-1), F(1), F(0), F(1)]
    attrs = {"T1": "quint8", "T2": "qint8", "Tbias": "float32", "Toutput": "float32", "input_quant_mode": "MIN_FIRST"}
    (out,) = run_ours(Case("QuantizedMatMulWithBiasAndDequantize", [a, b, bias, *ranges], attrs))
    left, right = a * (7.5 / 255) - 1.5, b / 127
    # of numbers with two roundings each, and the bias
    allowed = tolerance.gamma(2 + 2 + 5 + 1) * ((a * (7.5 / 255) + 1.5) @ np.abs(right) + np.abs(bias))
    tolerance.assert_within(out, left @ right + bias, allowed)


@pytest.mark.parametrize("wrong", ["rank", "depth", "filter-range", "input-range", "padding-list"])
def test_refused(wrong: str) -> None:
    from toolkit.errors import InvalidArgumentError

    x, w, ranges = np.zeros((1, 3, 3, 2), np.uint8), np.zeros((1, 1, 2, 1), np.int8), [F(0), F(1), F(-1), F(1)]
    attrs: dict[str, Any] = {"Tinput": "quint8", "Tfilter": "qint8", "out_type": "qint32", "strides": [1, 1, 1, 1],
                             "padding": "SAME"}  # fmt: skip
    if wrong == "rank":
        x = x[0]
    elif wrong == "depth":
        x = x[..., :1]
    elif wrong == "filter-range":
        ranges[2] = F([])
    elif wrong == "input-range":
        ranges[0] = F([0])
    else:
        attrs["padding_list"] = [1, 2]
    with pytest.raises(InvalidArgumentError):
        run_ours(Case("QuantizedConv2DAndRelu", [x, w, *ranges], attrs))


# -- concatenation and batch normalization ---------------------------------------------------------------


def joined(kind: str, ranges: Sequence[tuple[float, float]], axis: int, seed: int = 0) -> Callable[[], Any]:
    """QuantizedConcatV2, which TensorFlow's Python does not offer."""

    def build() -> Any:
        import tensorflow as tf

        graph = tf.compat.v1.get_default_graph()
        parts = [given_value(numbers(kind, 2, 3, seed=seed + i), kind) for i in range(len(ranges))]
        ends = [[tf.constant(F(pair[i])) for pair in ranges] for i in (0, 1)]
        node = graph.as_graph_def()
        made = node.node.add(name="joined", op="QuantizedConcatV2")
        inputs = [*parts, tf.constant(axis), *ends[0], *ends[1]]
        made.input.extend(f"x{i}" for i in range(len(inputs)))
        made.attr["N"].i, made.attr["T"].type = len(ranges), tf.as_dtype(kind).as_datatype_enum
        made.attr["Tidx"].type = tf.int32.as_datatype_enum
        only = tf.compat.v1.GraphDef(versions=node.versions)
        only.node.append(made)
        for i, tensor in enumerate(inputs):
            stand_in = only.node.add(name=f"x{i}", op="Placeholder")
            stand_in.attr["dtype"].type = tensor.dtype.as_datatype_enum
        names = [f"joined:{i}" for i in range(3)]
        given_inputs = {f"x{i}:0": tensor for i, tensor in enumerate(inputs)}
        return plain(tf.graph_util.import_graph_def(only, given_inputs, names, name=""))

    return build


@pytest.mark.parametrize("kind", ["quint8", "qint8"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    "ranges",
    [[(0, 1), (0, 1)], [(0, 1), (0, 2)], [(-1, 1), (0, 2)], [(-3, 1), (-0.5, 2), (0.7, 2)], [(-2, 2), (-1, 1)]],
)
def test_concat(kind: str, axis: int, ranges: Any, tf: ModuleType) -> None:
    check_graph(joined(kind, ranges, axis))


@settings(max_examples=15, deadline=None, print_blob=True)
@given(
    kind=st.sampled_from(["quint8", "qint8"]),
    ranges=st.lists(st.tuples(st.floats(-9, -0.125, width=16), st.floats(0.125, 9, width=16)), min_size=2, max_size=3),
    seed=st.integers(0, 99),
)
def test_any_concat(kind: str, ranges: Any, seed: int) -> None:
    check_graph(joined(kind, ranges, 1, seed))


def normalized() -> Iterator[Case]:
    spans = [(-6, 6), (-1, 1), (0, 3), (-2, 1), (0.1, 2)]
    for shape, scaled in (((2, 3, 4, 5), True), ((1, 1, 1, 5), False), ((2, 2, 1, 5), True)):
        parts: list[Any] = []
        for i, (low, high) in enumerate(spans):
            parts += [numbers("quint8", *(shape if i == 0 else (5,)), seed=i), F(low), F(high)]
        attrs = {
            "Tinput": "quint8",
            "out_type": "qint32",
            "variance_epsilon": 0.01,
            "scale_after_normalization": scaled,
        }
        op = "QuantizedBatchNormWithGlobalNormalization"
        yield Case(op, parts, attrs)
        for place in (0, 3, 6, 9, 12):
            wrong = [v[None] if i == place else v for i, v in enumerate(parts)]
            yield Case(op, wrong, attrs, error="INVALID_ARGUMENT", id=f"{shape}-{place}")


@suite(list(normalized()))
def test_batch_norm(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)
