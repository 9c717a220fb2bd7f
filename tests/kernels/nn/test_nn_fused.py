"""Fused convolutions, products and normalization against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import Case, check, check_against, run_ours, sample, suite

pytestmark = pytest.mark.tensorflow

BAD = "INVALID_ARGUMENT"
WINDOW = {"strides": [1, 1, 1, 1], "padding": "SAME"}
ACTIVATIONS = ("Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid", "GeluExact", "GeluApproximate", "_MklSwish",
               "_FusedHardSwish", "Mish")  # fmt: skip
#: what TensorFlow's kernels take after a bias
TAKEN = {
    "_FusedConv2D": ("Relu", "Relu6", "Elu", "LeakyRelu", "_MklSwish", "_FusedHardSwish", "Mish"),
    "_FusedMatMul": ("Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid", "GeluExact", "GeluApproximate"),
    "_FusedDepthwiseConv2dNative": ("Relu", "Relu6", "Elu", "_FusedHardSwish"),
}
DATA = {
    "_FusedConv2D": (sample("float32", (2, 5, 4, 3)), sample("float32", (2, 3, 3, 5), -1, 1)),
    "_FusedMatMul": (sample("float32", (7, 3)), sample("float32", (3, 5), -1, 1)),
    "_FusedDepthwiseConv2dNative": (sample("float32", (2, 5, 4, 5)), sample("float32", (2, 2, 5, 1), -1, 1)),
}


def case(op: str, fused: list[str], args: list[Any], dtype: str = "float32", **more: Any) -> Case:
    x, w = DATA[op]
    attrs: dict[str, Any] = {"fused_ops": [name.encode() for name in fused], **more.pop("attrs", {})}
    attrs |= {} if op == "_FusedMatMul" else WINDOW
    if op == "_FusedConv2D":
        attrs |= {"TArgs": [dtype] * len(args), "num_args": len(args), "T": dtype, "num_host_args": 0}
        args = [args, []]
    else:
        attrs |= {"num_args": len(args), "T": dtype}
        args = [args]
    values = [x.astype(sample(dtype).dtype), w.astype(sample(dtype).dtype), *args]
    label = "-".join([*fused, dtype, *map(str, more.pop("label", ()))])
    return Case(op, values, attrs, graph=True, id=label, **more)


def fused() -> Iterator[Case]:
    bias = sample("float32", (5,))
    for op, names in TAKEN.items():
        yield case(op, ["BiasAdd"], [bias])
        for name in names:
            yield case(op, ["BiasAdd", name], [bias])
    side, statistics = sample("float32", (2, 5, 4, 5)), [*sample("float32", (3, 5)), np.abs(bias) + np.float32(0.5)]
    for name in ((), ("Relu",)):
        yield case("_FusedConv2D", ["BiasAdd", "Add", *name], [bias, side])
        yield case("_FusedConv2D", ["FusedBatchNorm", *name], statistics)
    yield case("_FusedMatMul", ["BiasAdd", "Add"], [bias, side[0, 0, :1].repeat(7, 0)])


def padded() -> Iterator[Case]:
    """One image each: TensorFlow 2.21 gives the others of a batch wrong values, other than it gives them alone."""
    paddings = np.int32([[0, 0], [1, 2], [2, 1], [0, 0]])
    for dtype, mode, padding in product(("float32", "float64", "float16"), ("REFLECT", "SYMMETRIC"), ("SAME", "VALID")):
        x, w = sample(dtype, (1, 5, 4, 3), -1, 1), sample(dtype, (2, 3, 3, 5), -1, 1)
        attrs = {"mode": mode, "strides": [1, 1, 1, 1], "padding": padding}
        yield Case("FusedPadConv2D", [x, paddings, w], attrs)
        for corners in (True, False):
            full = {**attrs, "resize_align_corners": corners}
            yield Case("FusedResizeAndPadConv2D", [x, np.int32([7, 9]), paddings, w], full)
    x, w = sample("float32", (1, 5, 4, 3)), sample("float32", (2, 3, 3, 5))
    attrs = {"mode": "REFLECT", "strides": [1, 2, 2, 1], "padding": "VALID"}
    yield Case("FusedPadConv2D", [x, paddings, w], attrs, id="strides")
    yield Case("FusedPadConv2D", [x, paddings[:3], w], attrs, error=BAD)
    yield Case("FusedPadConv2D", [x, paddings * 5, w], attrs, error=BAD, id="far")
    yield Case("FusedPadConv2D", [x[..., :2], paddings, w], attrs, error=BAD, id="depth")
    for size in ([7], [0, 3]):
        yield Case("FusedResizeAndPadConv2D", [x, np.int32(size), paddings, w], attrs, error=BAD)


CASES = [*fused(), *padded()]


@suite(CASES)
def test_fused(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@pytest.mark.parametrize("op", ["FusedPadConv2D", "FusedResizeAndPadConv2D"])
def test_padded_batch(op: str) -> None:
    """Images do not depend on each other."""
    x, w = sample("float32", (3, 5, 4, 3)), sample("float32", (2, 3, 3, 5))
    size = [np.int32([7, 9])] if "Resize" in op else []
    attrs = {"mode": "REFLECT", "strides": [1, 1, 1, 1], "padding": "SAME"}

    def run(images: Any) -> Any:
        return run_ours(Case(op, [images, *size, np.int32([[0, 0], [1, 2], [2, 1], [0, 0]]), w], attrs))[0]

    alone = np.concatenate([run(x[i : i + 1]) for i in range(3)])
    case = Case(op, [x, *size, np.int32([[0, 0], [1, 2], [2, 1], [0, 0]]), w], attrs)
    check_against(case, [alone])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_those_of_the_product(name: str, tf: ModuleType) -> None:
    """Every activation after every op, also where TensorFlow has no kernel: the values of the op of that name."""
    bias = sample("float32", (5,))
    (plain,) = run_ours(case("_FusedConv2D", ["BiasAdd"], [bias]))
    nn = tf.nn
    known = {
        "LeakyRelu": lambda x: nn.leaky_relu(x, 0.2), "GeluExact": lambda x: nn.gelu(x, False),
        "GeluApproximate": lambda x: nn.gelu(x, True), "_MklSwish": nn.silu,
        "_FusedHardSwish": lambda x: x * nn.relu6(x + 3) / 6, "Mish": lambda x: x * tf.tanh(nn.softplus(x)),
    }  # fmt: skip
    expected = known.get(name) or getattr(nn, name.lower())
    check_against(case("_FusedConv2D", ["BiasAdd", name], [bias]), [expected(plain).numpy()])


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("activation", ["Identity", "Relu"])
def test_batch_norm_ex(activation: str, side: int, training: bool) -> None:
    """Against its parts: TensorFlow's CPU kernel runs only inside oneDNN's own passes."""
    x = sample("float32", (2, 4, 3, 5))
    statistics = [*sample("float32", (3, 5)), np.abs(sample("float32", (5,))) + np.float32(0.5)]
    attrs = {"T": "float32", "U": "float32", "is_training": training}
    (y, *rest) = run_ours(Case("FusedBatchNormV3", [x, *statistics], attrs))
    more = {**attrs, "activation_mode": activation, "num_side_inputs": side}
    (out, *other) = run_ours(Case("_FusedBatchNormEx", [x, *statistics, [x] * side], more))
    expected = y + x if side else y
    np.testing.assert_array_equal(out, np.maximum(expected, 0) if activation == "Relu" else expected)
    for a, b in zip(other[:4], rest[:4], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("names", "args"),
    [(["BiasAdd"], 0), (["BiasAdd", "Add"], 1), (["FusedBatchNorm"], 1), (["BiasAdd", "Cosine"], 1)],
)
def test_refused(names: list[str], args: int) -> None:
    from toolkit.errors import OpError

    bad = case("_FusedConv2D", names, [sample("float32", (5,))] * args or [])
    with pytest.raises(OpError):
        run_ours(bad)
