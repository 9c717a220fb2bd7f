"""Rounded networks in 8 bits: every number is one that its definition allows, given what the layer before has made.

A layer is computed in float64 from the rounded numbers that it was given. Float32 adds an error to each sum of products
that is bounded (`tests.tolerance`); where no tie lies within that bound, there is one number that the layer may give,
elsewhere there are two. TensorFlow is held to the same: a mistake of a step would show in nearly all numbers.
"""

# the client's functions are made from op definitions: their tensors have no types here
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.compiler.compare import explained
from toolkit import client as gm
from toolkit.compiler.backends.cpu.integers.grids import whole_multiples
from toolkit.graph import dtypes
from toolkit.kernels.cpu.onednn.library import library
from toolkit.runtime.session import Session

ops: Any = gm.ops
F = np.float32
needs_int8 = pytest.mark.skipif(
    library() is None or not library().has_exact_int8,  # type: ignore[union-attr]
    reason="needs oneDNN on a processor with VNNI",
)
#: roundings of a number of the network beside those of its sum of products: scale, bias, offset, the rounded input and
#: weight, and steps to numbers and back
_FEW = 8
#: of a number of up to 256 steps, in steps: a tie nearer than that may go either way
_NEAR = tolerance.gamma(_FEW) * 256
#: how many numbers may lie near a tie at most, or the test would show little
_MOST_TIES = 0.05


@dataclass(frozen=True)
class _Range:
    """What FakeQuant rounds to: 2^bits numbers from `low` on, of which one is 0."""

    step: float
    zero: int
    bits: int = 8
    narrow: bool = False

    @property
    def ends(self) -> tuple[Any, Any]:
        first = int(self.narrow)
        return F((first - self.zero) * self.step), F(((1 << self.bits) - 1 - self.zero) * self.step)

    def node(self, x: Any) -> Any:
        low, high = self.ends
        return ops.fake_quant_with_min_max_vars(x, low, high, num_bits=self.bits, narrow_range=self.narrow)

    def whole(self, v: Any) -> Any:
        """The steps that stand for float64 numbers."""
        first, last = int(self.narrow) - self.zero, (1 << self.bits) - 1 - self.zero
        return np.clip(np.floor(v / self.step + 0.5), first, last)


def _convolve(x: Any, w: Any, stride: int, depthwise: bool) -> Any:
    """float64[1, ...] with padding SAME."""
    size = w.shape[0]
    out = [-(-side // stride) for side in x.shape[1:3]]
    pads = [max((o - 1) * stride + size - side, 0) for o, side in zip(out, x.shape[1:3], strict=True)]
    wide = np.pad(x, ((0, 0), *((p // 2, p - p // 2) for p in pads), (0, 0)))
    total: Any = 0.0
    for i in range(size):
        for j in range(size):
            part = wide[:, i : i + (out[0] - 1) * stride + 1 : stride, j : j + (out[1] - 1) * stride + 1 : stride]
            total = total + (part * w[i, j, :, 0] if depthwise else part @ w[i, j])
    return total


@dataclass(frozen=True)
class _Layer:
    """A convolution between rounded tensors, and what is done to its sums.

    Attributes:
        added: the rounded input is added: to the sums, or ("rounded") to what these are rounded to.
    """

    given: _Range
    made: _Range
    size: int = 1
    stride: int = 1
    depthwise: bool = False
    activation: str = ""
    added: str = ""
    pooled: bool = False
    between: _Range = _Range(0.0713, 128)
    signed: bool = False


_IN, _RELU, _SIGNED = _Range(0.03, 100), _Range(0.05, 0), _Range(0.06, 128)
LAYERS = {
    "pointwise": _Layer(_IN, _SIGNED),
    "padded": _Layer(_IN, _SIGNED, 3),
    "relu": _Layer(_RELU, _RELU, 3, activation="relu"),
    "relu6": _Layer(_IN, _Range(6 / 255, 0), 3, 2, activation="relu6"),
    "relu of a wider range": _Layer(_IN, _SIGNED, activation="relu"),
    "large window": _Layer(_IN, _RELU, 7, 2, activation="relu"),
    "depthwise": _Layer(_RELU, _RELU, 3, depthwise=True, activation="relu6"),
    "depthwise with a zero point": _Layer(_IN, _SIGNED, 3, 2, depthwise=True),
    "few bits": _Layer(_Range(0.4, 3, 4), _Range(0.5, 9, 5, narrow=True), 3),
    "sum": _Layer(_IN, _SIGNED, 3, added="plain"),
    "sum of rounded ones": _Layer(_IN, _RELU, added="rounded", activation="relu"),
    "sum of rounded ones, signed": _Layer(_IN, _SIGNED, 3, added="rounded"),
    "pool": _Layer(_IN, _SIGNED, 3, pooled=True),
    "another function": _Layer(_IN, _Range(0.02, 60), 3, activation="elu"),
    "another function, depthwise": _Layer(_IN, _Range(0.01, 128), 3, 2, depthwise=True, activation="tanh"),
    "symmetric": _Layer(_Range(0.04, 128, narrow=True), _SIGNED, 3, signed=True),
}
_CHANNELS = 32
_ACTIVATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "": (lambda x: x, lambda x: x),
    "relu": (lambda x: ops.relu(x), lambda x: np.maximum(x, 0)),
    "relu6": (lambda x: ops.relu6(x), lambda x: np.clip(x, 0, 6)),
    "elu": (lambda x: ops.elu(x), lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "tanh": (lambda x: ops.tanh(x), np.tanh),
}


def _weights(layer: _Layer, random: Any) -> tuple[Any, Any]:
    """(filter, bias): the filter in 255 steps of a size of its own for each output."""
    shape = (layer.size, layer.size, _CHANNELS, 1 if layer.depthwise else _CHANNELS)
    numbers = random.integers(-127, 128, shape)
    outputs = shape[2:3] if layer.depthwise else shape[3:]
    steps = (random.uniform(0.5, 2, outputs) / 127 / np.sqrt(numbers[..., 0].size)).astype(F)
    numbers[0, 0] = 127
    filters = (numbers * (steps[:, None] if layer.depthwise else steps)).astype(F)
    return filters, random.uniform(-1, 1, outputs).astype(F)


def _graph(layer: _Layer, filters: Any, bias: Any, shape: Sequence[int]) -> Any:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(dtypes.float32, list(shape), name="x")
        if layer.signed:
            low, high = layer.given.ends
            x = ops.quantize_and_dequantize_v2(x, low, high, range_given=True, narrow_range=True)
        else:
            x = layer.given.node(x)
        x = ops.identity(x, name="given")
        taken = ops.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME") if layer.pooled else x
        apply = ops.depthwise_conv2d_native if layer.depthwise else ops.conv2d
        y = ops.bias_add(apply(taken, filters, [1, layer.stride, layer.stride, 1], "SAME"), bias)
        if layer.added:
            y = ops.add_v2(layer.between.node(y) if layer.added == "rounded" else y, taken)
        ops.identity(layer.made.node(_ACTIVATIONS[layer.activation][0](y)), name="made")
    return graph


def _allowed(layer: _Layer, filters: Any, bias: Any, given: Any) -> tuple[Any, Any]:
    """The least and the largest number of steps that may be made of what was given."""
    w, x = filters.astype(np.float64), given.astype(np.float64)
    if layer.pooled:
        wide = np.pad(x, ((0, 0), (0, 1), (0, 1), (0, 0)), constant_values=-np.inf)
        side = x.shape[1] // 2
        x = np.max([wide[:, i : i + 2 * side : 2, j : j + 2 * side : 2] for i in range(3) for j in range(3)], axis=0)
    sums = _convolve(x, w, layer.stride, layer.depthwise) + bias
    # with a zero point whole numbers are added that stand for more than x
    sizes = _convolve(np.abs(x) + layer.given.zero * layer.given.step, np.abs(w), layer.stride, layer.depthwise)
    error = tolerance.likely(w[..., 0].size + _FEW) * (sizes + np.abs(bias))
    found: list[Any] = []
    for sign in (-1, 1):
        v = sums + sign * error
        if layer.added == "rounded":
            v = layer.between.whole(v + sign * _NEAR * layer.between.step) * layer.between.step
        if layer.added:
            v = v + x
        v = _ACTIVATIONS[layer.activation][1](v)
        found.append(layer.made.whole(v + sign * _NEAR * layer.made.step))
    return found[0], found[1]


def _tensorflow(graph: Any, fetches: Sequence[str], feeds: dict[str, Any]) -> list[Any]:
    import tensorflow as tf

    definition = tf.compat.v1.GraphDef.FromString(graph.as_graph_def().SerializeToString())
    with tf.Graph().as_default() as theirs:
        tf.import_graph_def(definition, name="")
        with tf.compat.v1.Session(graph=theirs) as session:
            return session.run(fetches, feeds)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    layer, random = LAYERS[name], np.random.default_rng(len(name))
    filters, bias = _weights(layer, random)
    shape = (1, 14, 14, _CHANNELS)
    x = random.uniform(*(1.1 * end for end in layer.given.ends), shape).astype(F)
    graph = _graph(layer, filters, bias, shape)
    fetches, feeds = ["given:0", "made:0"], {"x:0": x}
    with Session(graph) as session:
        ours = session.run(fetches, feeds)
    with Session(graph, precision="exact") as session:
        exact = session.run(fetches, feeds)
    for given, made in (ours, exact, _tensorflow(graph, fetches, feeds)):
        np.testing.assert_allclose(given, layer.given.whole(given) * layer.given.step, atol=_NEAR * layer.given.step)
        low, high = _allowed(layer, filters, bias, given)
        steps = np.rint(made / layer.made.step)
        assert (np.abs(made / layer.made.step - steps) < _NEAR).all()
        assert ((low <= steps) & (steps <= high)).all()
        assert (low < high).mean() < _MOST_TIES
        assert len(np.unique(steps)) > 8  # the ranges were not chosen so that there is nothing to be seen


@needs_int8
@pytest.mark.parametrize("name", LAYERS)
def test_computed_in_8_bits(name: str) -> None:
    """From the rounded input to the rounded output there is one primitive, beside pools."""
    layer = LAYERS[name]
    shape = (1, 14, 14, _CHANNELS)
    graph = _graph(layer, *_weights(layer, np.random.default_rng(1)), shape)
    text = explained(graph, ["made:0"], {"x:0": np.zeros(shape, F)})
    words = [line.split()[1] for line in text.partition("\n\n")[0].splitlines()[2:]]
    pools = ["pool"] if layer.pooled else []
    assert [word for word in words if word != "pin"] == ["quantize", *pools, "int8_conv", "dequantize"]


@needs_int8
@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("activation", _ACTIVATIONS)
def test_sums_with_floats(rounded: bool, activation: str) -> None:
    """A product in 8 bits adds what was never rounded, and gives floats; those may be rounded in turn."""
    layer = _Layer(_IN, _SIGNED, 3, activation=activation)
    random = np.random.default_rng(8)
    filters, bias = _weights(layer, random)
    shape = (1, 14, 14, _CHANNELS)
    graph_function, function = _ACTIVATIONS[activation]
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(dtypes.float32, list(shape), name="x")
        other = gm.placeholder(dtypes.float32, list(shape), name="other")
        given = ops.identity(layer.given.node(x), name="given")
        y = graph_function(ops.add_v2(ops.bias_add(ops.conv2d(given, filters, [1] * 4, "SAME"), bias), other))
        ops.identity(layer.made.node(y) if rounded else y, name="made")
    low, high = layer.given.ends
    feeds = {"x:0": random.uniform(low, high, shape).astype(F), "other:0": random.normal(size=shape).astype(F)}
    assert " int8_conv " in explained(graph, ["made:0"], feeds)
    with Session(graph) as session:
        known, made = session.run(["given:0", "made:0"], feeds)
        np.testing.assert_array_equal(session.run("made:0", feeds), made)
    wide, x64 = filters.astype(np.float64), known.astype(np.float64)
    error = tolerance.likely(filters[..., 0].size + _FEW) * (
        _convolve(np.abs(x64) + _IN.zero * _IN.step, np.abs(wide), 1, False) + np.abs(bias) + np.abs(feeds["other:0"])
    )
    sums = _convolve(x64, wide, 1, False) + bias + feeds["other:0"]
    least, most = (function(sums + sign * error) for sign in (-1, 1))
    if rounded:
        least, most = (layer.made.whole(v + s * _NEAR * layer.made.step) for s, v in ((-1, least), (1, most)))
        made = np.rint(made / layer.made.step)
        assert (least < most).mean() < _MOST_TIES
    near = tolerance.gamma(_FEW) * (1 + np.abs(made))  # of the function's own value
    assert ((least - near <= made) & (made <= most + near)).all()
    assert len(np.unique(made)) > 8


@needs_int8
@pytest.mark.parametrize("turned", [False, True])
def test_matrix_products(turned: bool) -> None:
    """Of a rounded matrix, as it is or transposed, with constant weights."""
    random = np.random.default_rng(4)
    numbers = random.integers(-127, 128, (300, 40))
    numbers[0] = 127
    weights = (numbers * random.uniform(1e-4, 3e-4, 40)).astype(F)
    bias = random.uniform(-1, 1, 40).astype(F)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(dtypes.float32, [300, 17] if turned else [17, 300], name="x")
        given = ops.identity(_IN.node(x), name="given")
        product = ops.bias_add(ops.mat_mul(given, weights, transpose_a=turned), bias)
        ops.identity(_SIGNED.node(product), name="made")
    low, high = _IN.ends
    feeds = {"x:0": random.uniform(low, high, (300, 17) if turned else (17, 300)).astype(F)}
    assert " int8_matmul " in explained(graph, ["made:0"], feeds)
    with Session(graph) as session:
        given, made = session.run(["given:0", "made:0"], feeds)
    exact, wide = (given.T if turned else given).astype(np.float64), weights.astype(np.float64)
    error = tolerance.likely(300 + _FEW) * ((np.abs(exact) + _IN.zero * _IN.step) @ np.abs(wide) + np.abs(bias))
    least, most = (_SIGNED.whole(exact @ wide + bias + sign * (error + _NEAR * _SIGNED.step)) for sign in (-1, 1))
    steps = np.rint(made / _SIGNED.step)
    assert ((least <= steps) & (steps <= most)).all()
    assert (least < most).mean() < _MOST_TIES
    assert len(np.unique(steps)) > 8


def test_whole_multiples() -> None:
    random = np.random.default_rng(2)
    numbers = random.integers(-127, 128, (200, 30))
    numbers[0], numbers[:, 3], numbers[:, 4] = 127, 0, -128
    steps = random.uniform(1e-6, 1e3, 30).astype(F)
    found = whole_multiples((numbers * steps).astype(F) * F(1.7))
    assert found is not None
    np.testing.assert_allclose(found[0] * found[1], numbers * steps.astype(np.float64) * 1.7, rtol=tolerance.gamma(6))


def test_whole_multiples_among_zeros() -> None:
    """Of weights most of which were set to 0, those that are looked at first may be all 0."""
    weights = np.zeros((1000, 2), F)
    weights[[1, 5, 7], 0] = 60, 31, -1
    weights[3, 1] = 2
    found = whole_multiples(weights)
    assert found is not None
    np.testing.assert_array_equal(found[0] * found[1], weights)
    assert whole_multiples(weights * F(1e-40)) is None  # no step is left of them


@pytest.mark.parametrize("spoiled", [0.01, np.inf, np.nan])
def test_weights_that_are_no_multiples(spoiled: float) -> None:
    """One weight that is off by a hundredth of a step is enough."""
    weights = np.random.default_rng(3).integers(-127, 128, (100, 5)).astype(F)
    weights[0] = 127
    assert whole_multiples(weights) is not None
    weights[70, 2] += F(spoiled)
    assert whole_multiples(weights) is None
