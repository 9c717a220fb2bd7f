"""Convolutions, products and what is fused to them: compiled against node by node."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.compare import check, explained
from toolkit import client as gm
from toolkit.kernels.cpu.onednn.library import library

needs_onednn = pytest.mark.skipif(library() is None, reason="what is fused can be seen only where libdnnl is")


def weights(*shape: int) -> np.ndarray:
    """Numbers that depend on the shape alone."""
    random = np.random.default_rng(zlib.crc32(repr(shape).encode()))
    return (random.normal(size=shape) / np.sqrt(max(1, np.prod(shape[:-1])))).astype(np.float32)


def image(batch: int, size: int, channels: int) -> np.ndarray:
    return np.random.default_rng(size).normal(size=(batch, size, size, channels)).astype(np.float32)


def _swish_by_hand(y: Any) -> Any:
    return y * gm.sigmoid(y)


def _gelu(y: Any) -> Any:
    return 0.5 * y * (1.0 + gm.ops.erf(y * np.float32(np.sqrt(0.5))))


def _gelu_tanh(y: Any) -> Any:
    return 0.5 * y * (1.0 + gm.tanh(np.float32(np.sqrt(2 / np.pi)) * (y + np.float32(0.044715) * gm.pow(y, 3.0))))


ACTIVATIONS: dict[str, Any] = {
    "none": lambda y: y, "relu": gm.relu, "relu6": gm.relu6, "elu": gm.elu, "sigmoid": gm.sigmoid, "tanh": gm.tanh,
    "leaky": gm.leaky_relu, "swish": _swish_by_hand, "gelu": _gelu, "gelu_tanh": _gelu_tanh,
    "hard_swish": lambda y: y * gm.relu6(y + 3.0) * np.float32(1 / 6), "softplus": gm.softplus,
    "square": gm.square, "scale": lambda y: y * 0.25 - 1.0, "negative": lambda y: 2.0 - y,
}  # fmt: skip


def _norm(y: Any, channels: int) -> Any:
    return gm.fused_batch_norm(
        y, weights(channels) + 1, weights(channels), weights(channels), np.abs(weights(channels)) + 0.5,
        is_training=False,
    )[0]  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(
    activation=st.sampled_from(sorted(ACTIVATIONS)),
    kernel=st.sampled_from([1, 3, 5]),
    stride=st.sampled_from([1, 2]),
    padding=st.sampled_from(["SAME", "VALID"]),
    dilation=st.sampled_from([1, 2]),
    depthwise=st.booleans(),
    norm=st.booleans(),
    residual=st.booleans(),
    batch=st.sampled_from([1, 3]),
)
def test_convolutions(
    activation: str, kernel: int, stride: int, padding: str, dilation: int, depthwise: bool, norm: bool,
    residual: bool, batch: int,
) -> None:  # fmt: skip
    dilation = 1 if stride > 1 else dilation
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 24, 24, 16], name="x")
        if depthwise:
            y = gm.depthwise_conv2d(x, weights(kernel, kernel, 16, 2), stride, padding, dilations=dilation)
        else:
            y = gm.conv2d(x, weights(kernel, kernel, 16, 32), stride, padding, dilations=dilation)
        y = _norm(y, 32) if norm else gm.bias_add(y, weights(32))
        if residual:
            y = y + gm.conv2d(x, weights(kernel, kernel, 16, 33)[..., :32], stride, padding, dilations=dilation)
        gm.identity(ACTIVATIONS[activation](y), name="out")
    check(graph, ["out:0"], {"x:0": image(batch, 24, 16)})


@needs_onednn
@pytest.mark.parametrize("activation", ["relu", "relu6", "swish", "gelu", "hard_swish", "sigmoid"])
def test_a_block_is_one_primitive(activation: str) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [1, 24, 24, 16], name="x")
        y = _norm(gm.conv2d(gm.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), weights(3, 3, 16, 32), 1, "VALID"), 32)
        gm.identity(ACTIVATIONS[activation](y), name="out")
    feeds = {"x:0": image(1, 24, 16)}
    check(graph, ["out:0"], feeds)
    lines = [line for line in explained(graph, ["out:0"], feeds).splitlines() if " conv " in line]
    assert len(lines) == 1 and "Pad + Conv2D + FusedBatchNormV3" in lines[0], lines


def test_padding_goes_into_pools_only_after_what_is_not_negative() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [1, 24, 24, 16], name="x")
        for name, y in (("above", gm.relu(gm.conv2d(x, weights(1, 1, 16, 32)))), ("any", gm.tanh(x) - 2.0)):
            padded = gm.pad(y, [[0, 0], [1, 1], [1, 1], [0, 0]])
            gm.max_pool(padded, 3, 2, "VALID", name=name)
            gm.avg_pool(padded, 3, 2, "SAME", name=name + "_mean")
    check(graph, ["above:0", "any:0", "above_mean:0", "any_mean:0"], {"x:0": image(1, 24, 16)})


@needs_onednn
def test_strides_move_up_through_a_residual_block() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 28, 28, 16], name="x")
        first = gm.relu(gm.conv2d(x, weights(1, 1, 16, 32)))
        inner = gm.relu(gm.conv2d(first, weights(3, 3, 32, 32)))
        block = gm.relu(gm.conv2d(inner, weights(1, 1, 32, 32)) + first)
        left = gm.conv2d(block, weights(1, 1, 32, 48), 2)
        right = gm.conv2d(block, weights(1, 1, 32, 40), 2)
        gm.concat([left, right], 3, name="out")
    feeds = {"x:0": image(2, 28, 16)}
    check(graph, ["out:0"], feeds)
    assert "subsample" in explained(graph, ["out:0"], feeds)
    # a block that somebody else looks at keeps its size
    check(graph, ["out:0", block], feeds)
    assert "subsample" not in explained(graph, ["out:0", block], feeds)


@settings(max_examples=20, deadline=None)
@given(
    rows=st.integers(1, 70), inner=st.sampled_from([64, 96]), columns=st.sampled_from([1, 64, 100]),
    transpose=st.tuples(st.booleans(), st.booleans()), constant=st.booleans(), rank=st.sampled_from([2, 3, 4]),
    activation=st.sampled_from(sorted(ACTIVATIONS)),
)  # fmt: skip
def test_products(
    rows: int, inner: int, columns: int, transpose: tuple[bool, bool], constant: bool, rank: int, activation: str
) -> None:
    left, right = transpose
    batch = [2, 3][: rank - 2]
    a_shape = [*batch, *((inner, rows) if left else (rows, inner))]
    b_shape = [*batch, *((columns, inner) if right else (inner, columns))]
    with gm.Graph().as_default() as graph:
        a = gm.placeholder(gm.float32, a_shape, name="a")
        b = gm.constant(weights(*b_shape)) if constant else gm.placeholder(gm.float32, b_shape, name="b")
        if rank == 2:
            y = gm.ops.mat_mul(a, b, transpose_a=left, transpose_b=right)
        else:
            y = gm.ops.batch_mat_mul_v2(a, b, adj_x=left, adj_y=right)
        gm.identity(ACTIVATIONS[activation](y + weights(columns)), name="out")
    feeds = {"a:0": weights(*a_shape)} | ({} if constant else {"b:0": weights(*b_shape)})
    check(graph, ["out:0"], feeds)


def test_layer_norms_softmax_and_reductions() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 20, 64], name="x")
        mean, variance = gm.moments(x, [2], keepdims=True)
        y = gm.batch_normalization(x, mean, variance, weights(64), weights(64) + 1, 1e-5, name="norm")
        gm.softmax(gm.transpose(y, [1, 0, 2]), name="softmax")
        gm.log_softmax(y, name="log")
        gm.reduce_mean(y, [1], name="mean")
        gm.reduce_sum(y, [0, 2], keepdims=True, name="sum")
        gm.reduce_max(y, [1], name="max")
    feeds = {"x:0": np.random.default_rng(0).normal(size=(4, 20, 64)).astype(np.float32)}
    check(graph, ["softmax:0", "log:0", "mean:0", "sum:0", "max:0", "norm/add_1:0"], feeds)


def test_broadcasts_of_every_kind() -> None:
    shapes = [(6, 10, 10, 12), (12,), (1, 10, 12), (6, 1, 1, 12), (1, 1, 1, 1), (6, 10, 10, 1), ()]
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, shapes[0], name="x")
        names: list[str] = []
        for position, shape in enumerate(shapes):
            other = (
                gm.constant(weights(*shape)) if position % 2 else gm.tanh(gm.constant(weights(*shape)) + x[0, 0, 0, 0])
            )
            for op, function in (("add", gm.add), ("sub", gm.subtract), ("mul", gm.multiply), ("div", gm.divide)):
                names.append(f"{op}{position}")
                gm.relu(function(gm.tanh(x), other), name=names[-1])
                names.append(f"{op}{position}_turned")
                gm.relu(function(other, gm.tanh(x) + 2.0), name=names[-1])
    check(graph, [f"{name}:0" for name in names], {"x:0": weights(*shapes[0])})


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size,channels", [(56, 24), (28, 96), (45, 40), (24, 32), (7, 1152)])
def test_means_of_images(size: int, channels: int, threads: int, precision: str) -> None:
    """Of one image, strip by strip where there are threads for it."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [1, size, size, 8], name="x")
        y = gm.relu(gm.conv2d(x, weights(1, 1, 8, channels)))
        gm.reduce_mean(y, [1, 2], name="mean")
        gm.ops.mean(y, [1, 2], keep_dims=True, name="kept")
        gm.avg_pool(y, size, 1, "VALID", name="pool")
        gm.conv2d(gm.ops.mean(y, [1, 2], keep_dims=True), weights(1, 1, channels, 8), name="after")
    names = [f"{name}:0" for name in ("mean", "kept", "pool", "after")]
    feeds = {"x:0": image(1, size, 8)}
    check(graph, names, feeds, threads=threads, precision=precision)


def test_bfloat16_is_close_and_results_stay_float32() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 24, 24, 16], name="x")
        y = gm.relu(gm.bias_add(gm.conv2d(x, weights(3, 3, 16, 32)), weights(32)))
        y = gm.max_pool(gm.conv2d(y, weights(1, 1, 32, 64)) + gm.conv2d(y, weights(1, 1, 32, 65)[..., :64]), 2, 2)
        y = gm.reduce_mean(y, [1, 2])
        gm.matmul(y, weights(64, 128), name="out")
    check(graph, ["out:0"], {"x:0": image(2, 24, 16)}, precision="bf16")


@pytest.mark.parametrize("activation", ["none", "relu6", "swish"])
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_convolutions_in_bfloat16(activation: str, stride: int) -> None:
    """Their biases, which are large here, stay float32."""
    bias = 8 * weights(32)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 24, 24, 16], name="x")
        y = gm.conv2d(x, weights(1, 1, 16, 32))
        y = gm.depthwise_conv2d(y, weights(3, 3, 32, 1), stride)
        z = gm.conv2d(ACTIVATIONS[activation](gm.bias_add(y, bias)), weights(1, 1, 32, 16))
        gm.reduce_mean(z, [1, 2], name="out")
    check(graph, ["out:0"], {"x:0": image(2, 24, 16)}, precision="bf16")


def test_image_operations() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 14, 10, 24], name="x")
        gm.local_response_normalization(gm.tanh(x), 3, 1.5, 0.2, 0.6, name="lrn")
        for half in (True, False):
            size = gm.constant([29, 23])
            gm.ops.resize_bilinear(gm.tanh(x), size, half_pixel_centers=half, name=f"up{int(half)}")
            gm.ops.resize_bilinear(gm.tanh(x), gm.constant([6, 7]), half_pixel_centers=half, name=f"down{int(half)}")
    feeds = {"x:0": weights(2, 14, 10, 24)}
    check(graph, ["lrn:0", "up1:0", "up0:0", "down1:0", "down0:0"], feeds)
