"""`precision="exact"`: the kernels that define the ops and nothing else, whatever is fed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.compiler.modes import session
from tests.compiler.operations.rows import numbers
from toolkit import client as gm
from toolkit.errors import UsageError
from toolkit.kernels import registry
from toolkit.kernels.cpu.onednn.library import library
from toolkit.runtime.session import Session

ops = gm.ops
SPECIAL = {
    "ordinary": [1.0],
    "NaN": [np.nan],
    "infinities": [np.inf, -np.inf],
    "huge": [3e38, -3e38, 1e30],
    "denormals": [1e-40, -1e-42],
    "mixed": [np.nan, np.inf, -np.inf, 3e38, -1e30, 0.0, -0.0],
}


def network(rng: random.Random, special: list[float]) -> tuple[Any, Any, dict[str, Any]]:
    """A few layers with constant weights, some of them special, over an image, some of it special."""
    source = np.random.default_rng(rng.randrange(2**32))

    def weights(*shape: int) -> Any:
        made = source.standard_normal(shape).astype(np.float32)
        if rng.random() < 0.2:
            made.reshape(-1)[source.integers(made.size)] = rng.choice([0.0, np.inf, np.nan, 3e38])
        return gm.constant(made)

    channels = rng.choice([4, 16, 32])
    image = source.standard_normal((2, 10, 11, channels)).astype(np.float32)
    places = source.integers(image.size, size=rng.choice([1, 4, 40]))
    image.reshape(-1)[places] = np.resize(np.array(special, np.float32), places.size)
    layers = {
        "convolution": lambda x: ops.conv2d(x, weights(3, 3, channels, channels), strides=[1, 1, 1, 1], padding="SAME"),
        "pointwise": lambda x: ops.conv2d(x, weights(1, 1, channels, channels), strides=[1, 1, 1, 1], padding="SAME"),
        "depthwise": lambda x: ops.depthwise_conv2d_native(
            x, weights(3, 3, channels, 1), strides=[1, 1, 1, 1], padding="SAME"
        ),
        "norm": lambda x: ops.fused_batch_norm_v3(
            x, *(weights(channels) for _ in range(3)), gm.constant(np.ones(channels, np.float32)), is_training=False
        )[0],
        "scale": lambda x: x * weights(channels),
        "bias": lambda x: ops.bias_add(x, weights(channels)),
        "relu": ops.relu,
        "relu6": ops.relu6,
        "leaky": ops.leaky_relu,
        "swish": lambda x: x * ops.sigmoid(x),
        "softmax": ops.softmax,
        "pool": lambda x: ops.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME"),
        "mean": lambda x: x - ops.mean(x, [1, 2], keep_dims=True),
        "double": lambda x: x + x,
    }
    with gm.Graph().as_default() as graph:
        made = gm.placeholder(gm.float32, list(image.shape), name="x")
        for _ in range(rng.randint(1, 5)):
            made = layers[rng.choice(list(layers))](made)
    return graph, made, {"x:0": image}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", SPECIAL)
def test_all_is_the_definitions_bit_for_bit(kind: str, seed: int) -> None:
    graph, made, feeds = network(random.Random(f"{kind} {seed}"), SPECIAL[kind])
    with session(graph, "node by node") as running, np.errstate(all="ignore"):
        wanted = running.run(made, feeds)
    with Session(graph, precision="exact") as running, np.errstate(all="ignore"):
        got = running.run(made, feeds)
    np.testing.assert_array_equal(got, wanted)


def test_products_are_the_definitions() -> None:
    """Products, sums and convolutions, in functions too: no oneDNN, no Winograd, no folding."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 20, 20, 16], name="x")
        y = ops.conv2d(x, gm.constant(numbers(3, 3, 16, 16)), strides=[1, 1, 1, 1], padding="SAME")
        y = ops.relu(ops.bias_add(y, gm.constant(numbers(16))) * gm.constant(numbers(16)))
        y = ops.conv2d(y, gm.constant(numbers(1, 1, 16, 32)), strides=[1, 1, 1, 1], padding="SAME")
        y = ops.mean(y, [1, 2])
        y = ops.mat_mul(y, gm.constant(numbers(32, 8)))
    feeds = {"x:0": numbers(2, 20, 20, 16)}
    with session(graph, "node by node") as running:
        wanted = running.run(y, feeds)
    with Session(graph, precision="exact") as running:
        np.testing.assert_array_equal(running.run(y, feeds), wanted)
        assert "0 oneDNN primitives" in running.explain(y, feeds)[0]
    if library() is not None:  # without oneDNN nothing would be computed otherwise
        with Session(graph) as running:
            assert (running.run(y, feeds) != wanted).any()  # else the test would see nothing


def test_a_ramp_gives_zero() -> None:
    """A difference of second order over a ramp of large numbers, where Winograd's error is larger than what is left."""
    ramp = np.arange(64, dtype=np.float32)[None, :, None, None] * np.float32(2**40)
    image = np.broadcast_to(ramp, (1, 64, 64, 16)).copy()
    weights = np.zeros((3, 3, 16, 16), np.float32)
    weights[:, 1, range(16), range(16)] = np.array([[1], [-2], [1]])
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, list(image.shape), name="x")
        y = ops.conv2d(x, gm.constant(weights), strides=[1, 1, 1, 1], padding="VALID")
    with Session(graph, precision="exact") as running:
        assert not running.run(y, {"x:0": image}).any()


def test_only_defining_kernels_are_taken() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 4])
        node = graph.core.node(ops.mat_mul(x, x).op.name)
    has_library = any(kernel.label == "onednn" for kernel in registry.candidates("MatMul", "CPU"))
    assert (registry.get(node).label == "onednn") == has_library
    assert registry.get(node, defining=True).label == "numpy"


def test_an_unknown_precision() -> None:
    with pytest.raises(
        UsageError,
        match=r"'f16' is not a precision; did you mean 'fp16' or 'bf16'\? Expected f32, tf32, bf16, fp16, fp8, exact",
    ):
        Session(gm.Graph(), precision="f16")
