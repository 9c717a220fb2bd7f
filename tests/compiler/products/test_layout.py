"""Channels-first graphs run channels last: what is left of transposes, and TensorFlow's numbers."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import perturbation
from tests.compiler.compare import explained
from tests.compiler.modes import check_modes, session
from tests.compiler.operations.rows import Row, numbers, positive
from tests.compiler.operations.rows_layout import ROWS, conv, pool
from toolkit import client as gm
from toolkit.kernels.cpu.onednn.library import library
from toolkit.runtime.session import Session

ops = gm.ops
NCHW = {"data_format": "NCHW"}


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    row = ROWS[name]
    graph, fetches, feeds = row.build()
    check_modes(graph, fetches, feeds, exact=row.exact)


def _stem(x: Any) -> Any:
    scale = (positive(8), numbers(8), numbers(8, seed=1), positive(8, seed=1))
    y = ops.relu(ops.fused_batch_norm_v3(conv(x), *scale, is_training=False, **NCHW)[0])
    y = pool(ops.pad(y, [[0, 0], [0, 0], [1, 1], [1, 1]]), padding="VALID")
    return ops.relu(ops.bias_add(conv(y), numbers(8), **NCHW) + y)


def _turned(x: Any) -> Any:
    y = ops.conv2d(ops.transpose(x, [0, 2, 3, 1]), numbers(3, 3, 8, 8), strides=[1] * 4, padding="SAME")
    return ops.transpose(y, [0, 3, 1, 2])


#: name -> network, transposed copies that are left
ISLANDS: dict[str, tuple[Any, int]] = {
    "to a mean": (lambda x: ops.mean(_stem(x), [2, 3]), 1),
    "to a result": (_stem, 2),
    "padded": (lambda x: ops.mean(conv(ops.pad(x, [[0, 0], [0, 0], [1, 1], [2, 2]]), padding="VALID"), [2, 3]), 1),
    "to a mean that keeps its axes": (lambda x: ops.mean(_stem(x), [2, 3], keep_dims=True), 1),
    "joined": (lambda x: ops.mean(ops.concat_v2([_stem(x), pool(conv(x))], 1), [2, 3]), 1),
    "scaled by channels": (lambda x: ops.mean(_stem(x) * numbers(8, 1, 1), [2, 3]), 1),
    "gated": (lambda x: [
        ops.mean(y * ops.reshape(ops.sigmoid(ops.mean(y, [2, 3])), [2, 8, 1, 1]), [2, 3]) for y in [_stem(x)]], 1),
    "from channels last": (
        lambda x: ops.mean(conv(ops.transpose(ops.transpose(x, [0, 2, 3, 1]), [0, 3, 1, 2])), [2, 3]), 1),
    "to channels last": (lambda x: ops.transpose(_stem(x), [0, 2, 3, 1]), 1),
    "through a softmax": (lambda x: ops.mean(conv(
        ops.transpose(ops.softmax(ops.transpose(conv(x), [0, 2, 3, 1])), [0, 3, 1, 2])), [2, 3]), 1),
    "flat": (lambda x: ops.reshape(_stem(x), [2, -1]), 2),
    "transposes around each convolution": (
        lambda x: ops.mean(_turned(ops.relu(_turned(x) + x)) * numbers(8, 1, 1), [2, 3]), 1),
    "only elementwise": (lambda x: ops.relu(x + 1.0), 0),
}  # fmt: skip


@pytest.mark.skipif(library() is None, reason="there is no oneDNN here")
@pytest.mark.parametrize("name", ISLANDS)
def test_copies_are_left_at_the_edges(name: str) -> None:
    make, copies = ISLANDS[name]
    graph, fetches, feeds = Row(name, ((2, 8, 17, 19),), make).build()
    check_modes(graph, fetches, feeds)
    text = explained(graph, fetches, feeds)
    found = re.search(r"(\d+) channels-first operations run channels last, with (\d+) transposed", text)
    assert (int(found[2]) if found else 0) == copies, text
    assert len(re.findall(r"\d+ permute ", text)) == copies, text


def test_training_steps_agree_with_channels_last() -> None:
    """Three steps of gradient descent in both layouts, in every mode."""
    image, labels = numbers(4, 3, 16, 18), numbers(4, 5)

    def build(*, first: bool) -> Any:
        form = {"data_format": "NCHW" if first else "NHWC"}
        pair = (lambda n: [1, 1, n, n]) if first else (lambda n: [1, n, n, 1])
        with gm.Graph().as_default() as graph:
            x = gm.placeholder(gm.float32, list(image.shape), name="x")
            if not first:
                x = ops.transpose(x, [0, 2, 3, 1])
            w = [
                gm.get_variable(f"w{i}", shape, initializer=gm.initializers.Constant(0.0), use_resource=True)
                for i, shape in enumerate(([3, 3, 3, 8], [8], [3, 3, 8, 8], [8, 5]))
            ]
            fill = [v.assign(numbers(*s, seed=7) * np.float32(0.2)) for v, s in zip(w, _SHAPES, strict=True)]
            y = ops.bias_add(ops.conv2d(x, w[0], strides=pair(1), padding="SAME", **form), w[1], **form)
            y = ops.relu(ops.fused_batch_norm_v3(y, positive(8), numbers(8), _EMPTY, _EMPTY, **form)[0])
            y = ops.max_pool(y, ksize=pair(2), strides=pair(2), padding="VALID", **form)
            y = ops.conv2d(y, w[2], strides=pair(2), padding="SAME", **form)
            y = ops.avg_pool(y, ksize=pair(2), strides=pair(1), padding="SAME", **form)
            y = ops.mat_mul(ops.mean(y, [2, 3] if first else [1, 2]), w[3])
            loss = ops.mean(ops.square(y - labels), [0, 1])
            train = gm.train.GradientDescent(0.1).minimize(loss)
            read = [variable.read_value() for variable in w]
        return graph, fill, loss, train, read

    found: dict[tuple[bool, str], list[Any]] = {}
    for first in (True, False):
        graph, fill, loss, train, read = build(first=first)
        for mode in ("node by node", "compiled", "compiled without oneDNN"):
            with session(graph, mode) as running:
                running.run(fill)
                losses = [running.run([loss, train], {"x:0": image})[0] for _ in range(3)]
                found[first, mode] = [*losses, *running.run(read)]
    wanted = found.pop((False, "node by node"))
    assert wanted[0] != wanted[2]

    def work(running: Session) -> list[Any]:
        running.run(fill)
        return [*(running.run([loss, train], {"x:0": image})[0] for _ in range(3)), *running.run(read)]

    perturbation.assert_agree([*found.values(), wanted], lambda: perturbation.of_work(graph, work))


_EMPTY = np.zeros(0, np.float32)
_SHAPES = ((3, 3, 3, 8), (8,), (3, 3, 8, 8), (8, 5))


def test_a_branch_and_a_loop_have_edges_of_their_own() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 8, 9, 10], name="x")
        p = gm.placeholder(gm.bool_, [], name="p")
        y = ops.relu(conv(x))
        branch = gm.cond(p, lambda: conv(y) + y, lambda: ops.tanh(y))
        turns = gm.while_loop(lambda i, z: i < 3, lambda i, z: [i + 1, ops.tanh(conv(z) + y)], [gm.constant(0), x])
        result = ops.mean(branch, [2, 3])
    for side in (True, False):
        check_modes(graph, [branch, result, turns[1]], {"x:0": numbers(2, 8, 9, 10), "p:0": np.array(side)})


# -- TensorFlow, which runs the same network channels last ---------------------------------------------------------

_LAYERS = (
    "conv", "explicit", "dilated", "depthwise", "grouped", "max", "avg", "norm", "train norm", "residual", "join",
    "pad", "gate", "scale", "bias relu",
)  # fmt: skip


def _ours(layer: str, y: Any, w: dict[str, Any]) -> Any:
    match layer:
        case "conv":
            return conv(y, w["w"], 2)
        case "explicit":
            return ops.conv2d(
                y, w["w"], strides=[1] * 4, padding="EXPLICIT", explicit_paddings=[0] * 4 + [2, 1, 0, 3], **NCHW
            )
        case "dilated":
            return ops.conv2d(y, w["w"], strides=[1] * 4, padding="SAME", dilations=[1, 1, 2, 3], **NCHW)
        case "depthwise":
            return ops.depthwise_conv2d_native(y, w["d"], strides=[1, 1, 1, 1], padding="SAME", **NCHW)
        case "grouped":
            return conv(y, w["g"])
        case "max" | "avg":
            return pool(y, ops.max_pool if layer == "max" else ops.avg_pool)
        case "norm" | "train norm":
            scale = (w["s"], w["b"], w["b"], w["s"]) if layer == "norm" else (w["s"], w["b"], _EMPTY, _EMPTY)
            return ops.fused_batch_norm_v3(y, *scale, is_training=layer != "norm", **NCHW)[0]
        case "residual":
            return ops.relu(conv(y, w["w"]) + y)
        case "join":
            return ops.concat_v2([y, conv(y, w["w"])], 1)[:, 2:10]
        case "pad":
            return ops.pad(y, [[0, 0], [0, 0], [1, 2], [0, 1]])
        case "gate":
            return y * ops.sigmoid(conv(ops.mean(y, [2, 3], keep_dims=True), w["w"]))
        case "scale":
            return ops.tanh(y * w["s"].reshape(8, 1, 1))
        case _:
            return ops.relu(ops.bias_add(y, w["b"], **NCHW))


def _theirs(tf: Any, layer: str, y: Any, w: dict[str, Any]) -> Any:
    """The same channels last."""
    match layer:
        case "conv":
            return tf.nn.conv2d(y, w["w"], 2, "SAME")
        case "explicit":
            return tf.nn.conv2d(y, w["w"], 1, [[0, 0], [2, 1], [0, 3], [0, 0]])
        case "dilated":
            return tf.nn.conv2d(y, w["w"], 1, "SAME", dilations=[2, 3])
        case "depthwise":
            return tf.nn.depthwise_conv2d(y, w["d"], [1] * 4, "SAME")
        case "grouped":
            return tf.nn.conv2d(y, w["g"], 1, "SAME")
        case "max":
            return tf.nn.max_pool2d(y, 3, 2, "SAME")
        case "avg":
            return tf.nn.avg_pool2d(y, 3, 2, "SAME")
        case "norm" | "train norm":
            scale = (w["s"], w["b"], w["b"], w["s"]) if layer == "norm" else (w["s"], w["b"], _EMPTY, _EMPTY)
            return tf.raw_ops.FusedBatchNormV3(x=y, scale=scale[0], offset=scale[1], mean=scale[2], variance=scale[3],
                                               is_training=layer != "norm")[0]  # fmt: skip
        case "residual":
            return tf.nn.relu(tf.nn.conv2d(y, w["w"], 1, "SAME") + y)
        case "join":
            return tf.concat([y, tf.nn.conv2d(y, w["w"], 1, "SAME")], 3)[..., 2:10]
        case "pad":
            return tf.pad(y, [[0, 0], [1, 2], [0, 1], [0, 0]])
        case "gate":
            return y * tf.sigmoid(tf.nn.conv2d(tf.reduce_mean(y, [1, 2], keepdims=True), w["w"], 1, "SAME"))
        case "scale":
            return tf.tanh(y * w["s"])
        case _:
            return tf.nn.relu(tf.nn.bias_add(y, w["b"]))


@pytest.mark.tensorflow
@settings(max_examples=15, deadline=None)
@given(
    layers=st.lists(st.sampled_from(_LAYERS), min_size=2, max_size=7), height=st.integers(5, 20),
    width=st.integers(5, 20), batch=st.integers(1, 3), end=st.sampled_from(["mean", "flat", "all"]),
)  # fmt: skip
def test_random_networks_agree_with_tensorflow(
    layers: list[str], height: int, width: int, batch: int, end: str
) -> None:
    import tensorflow as tf

    image = numbers(batch, 8, height, width)
    w = {"w": numbers(3, 3, 8, 8) / 6, "d": numbers(3, 3, 8, 1) / 2, "g": numbers(3, 3, 2, 8) / 3, "s": positive(8),
         "b": numbers(8)}  # fmt: skip
    with gm.Graph().as_default() as graph:
        y = gm.placeholder(gm.float32, list(image.shape), name="x")
        for layer in layers:
            y = _ours(layer, y, w)
        if end != "all":
            y = ops.mean(y, [2, 3]) if end == "mean" else ops.reshape(y, [batch, -1])
    theirs: Any = tf.constant(image.transpose(0, 2, 3, 1))
    for layer in layers:
        theirs = _theirs(tf, layer, theirs, w)
    theirs = theirs.numpy()
    match end:
        case "mean":
            theirs = theirs.mean(axis=(1, 2))
        case "flat":
            theirs = theirs.transpose(0, 3, 1, 2).reshape(batch, -1)
        case _:
            theirs = theirs.transpose(0, 3, 1, 2)
    feeds = {"x:0": image}
    got = check_modes(graph, [y], feeds, modes=("compiled", "compiled without oneDNN"))
    perturbation.assert_close(graph, [y], feeds, [got, [theirs]])
