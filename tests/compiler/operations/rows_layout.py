"""Channels-first operations, alone and in islands of what follows them."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np

from tests.compiler.operations.rows import Table, numbers, positive
from tests.compiler.operations.rows_windows import CONVOLUTIONS
from toolkit import client as gm

ops = gm.ops
ROWS = Table()
FORMAT = {"data_format": "NCHW"}


def _first(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0], shape[-1], *shape[1:-1])


def _attrs(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a channels-last convolution, channels first."""

    def per_axis(value: Any) -> list[int]:
        return [1, 1, *((value, value) if isinstance(value, int) else value)]

    attrs: dict[str, Any] = {
        "strides": per_axis(settings.get("stride", 1)), "dilations": per_axis(settings.get("dilation", 1)),
        "padding": settings.get("padding", "SAME"), **FORMAT,
    }  # fmt: skip
    if "explicit_paddings" in settings:
        flat = settings["explicit_paddings"]
        attrs["explicit_paddings"] = [*flat[:2], *flat[-2:], *flat[2:-2]]
    return attrs


for _name, (_image, _filter, _settings) in CONVOLUTIONS.items():
    _more = _attrs(_settings)
    ROWS.add(
        f"channels first conv {_name}", [_first(_image), _filter],
        lambda x, w, k=numbers(*_filter), c=numbers(_filter[-1]), s=_more: [
            ops.conv2d(x, w, **s), ops.relu(ops.bias_add(ops.conv2d(ops.tanh(x), k, **s), c, **FORMAT)),
        ],
    )  # fmt: skip
    if "groups" in _name or _name == "no image":
        continue
    _size = (*_filter[:3], 2)
    ROWS.add(
        f"channels first gradients {_name}", [_first(_image), _filter],
        lambda x, w, image=_first(_image), filter=_filter, s=_more: [
            f
            for y in [ops.tanh(ops.conv2d(x, w, **s))]
            for f in (
                ops.conv2d_backprop_input(list(image), w, y, **s), ops.conv2d_backprop_filter(x, list(filter), y, **s),
                ops.bias_add_grad(y, **FORMAT),
            )
        ],
    )  # fmt: skip
    if "dilat" in _name:
        continue
    ROWS.add(
        f"channels first depthwise {_name}", [_first(_image), _size],
        lambda x, w, image=_first(_image), size=_size, s=_more: [
            f
            for y in [ops.relu6(ops.depthwise_conv2d_native(x, w, **s))]
            for f in (
                y, ops.depthwise_conv2d_native_backprop_input(list(image), w, y, **s),
                ops.depthwise_conv2d_native_backprop_filter(x, list(size), y, **s),
            )
        ],
    )  # fmt: skip

_BIG = [(2, 8, 13, 14)]
_W, _W1 = numbers(3, 3, 8, 8) * np.float32(0.3), numbers(1, 1, 8, 8)


def conv(x: Any, w: Any = _W, stride: int = 1, padding: str = "SAME") -> Any:
    """A channels-first convolution."""
    return ops.conv2d(x, w, strides=[1, 1, stride, stride], padding=padding, **FORMAT)


def pool(x: Any, function: Any = ops.max_pool, size: int = 3, padding: str = "SAME", **more: Any) -> Any:
    """A channels-first pool of stride 2."""
    return function(x, ksize=[1, 1, size, size], strides=[1, 1, 2, 2], padding=padding, **FORMAT, **more)


_POOLS = [(size, padding) for size in (2, 3) for padding in ("SAME", "VALID")]
ROWS.add("channels first pools", _BIG, lambda x: [
    pool(x, f, size, padding) for f in (ops.max_pool, ops.avg_pool) for size, padding in _POOLS])  # fmt: skip
ROWS.add("channels first pool with explicit padding", _BIG, lambda x: [
    pool(conv(x), explicit_paddings=[0, 0, 0, 0, 1, 0, 2, 1], padding="EXPLICIT")])  # fmt: skip
ROWS.add("channels first pool over channels", _BIG, lambda x: ops.max_pool(
    x, ksize=[1, 4, 1, 1], strides=[1, 4, 1, 1], padding="VALID", **FORMAT))  # fmt: skip
ROWS.add("gradients of channels first pools", _BIG, lambda x: [
    f
    for size, padding in _POOLS
    for y in [pool(x, size=size, padding=padding)]
    for f in (
        pool(x, lambda x, y=y, **s: ops.max_pool_grad(x, y, ops.tanh(y), **s), size, padding),
        pool(conv(y), lambda y, **s: ops.avg_pool_grad([2, 8, 13, 14], y, **s), size, padding),
    )
])  # fmt: skip
ROWS.add("channels first residual", _BIG, lambda x: [
    ops.relu(conv(y, _W1) + y) for y in [ops.relu(conv(x))]] + [ops.relu(conv(x) + x)])  # fmt: skip
ROWS.add("channels first into a flat product", _BIG, lambda x: ops.mat_mul(
    ops.reshape(ops.relu(conv(x)), [2, 8 * 13 * 14]), numbers(8 * 13 * 14, 5)))  # fmt: skip
ROWS.add("channels first operands", _BIG, lambda x: [
    f(y, c) for y in [conv(x)] for f in (ops.mul, ops.sub, lambda a, b: b - a, ops.maximum)
    for c in (numbers(8, 1, 1), numbers(1, 8, 1, 1), numbers(13, 1), numbers(14), numbers(*_BIG[0]), numbers(1), 2.0)
])  # fmt: skip
ROWS.add("channels first operands that are fed", [*_BIG, (8, 1, 1), (13, 14), (2, 1, 13, 14), (2, 8, 1, 1)],
    lambda x, *others: [ops.relu(conv(x) * other + 1.0) for other in others])  # fmt: skip
ROWS.add("channels first joined", _BIG, lambda x: [
    ops.concat_v2([conv(x), ops.tanh(y), x], axis) for y in [conv(x, _W1)] for axis in (0, 1, -1, 2)])  # fmt: skip
ROWS.add("channels first split", _BIG, lambda x: [
    *(conv(part, numbers(3, 3, 4, 4)) for part in ops.split(1, conv(x), num_split=2)),
    *ops.split_v(conv(x), [3, 10], 2, num_split=2)])  # fmt: skip
ROWS.add("channels first padded", _BIG, lambda x: [
    conv(ops.pad(x, [[0, 0], [0, 0], [1, 2], [3, 0]]), padding="VALID"),
    ops.pad_v2(conv(x), [[1, 0], [0, 2], [1, 2], [3, 0]], np.float32(-1.5)),
    ops.mirror_pad(conv(x), [[0, 0], [1, 2], [3, 4], [0, 1]], mode="REFLECT"),
    ops.slice(conv(x), [0, 1, 2, 3], [2, 3, -1, 5]), ops.tile(conv(x), [1, 2, 1, 3])])  # fmt: skip
ROWS.add("channels first reduced", _BIG, lambda x: [
    f(conv(x), axes, keep_dims=keep) for f in (ops.mean, ops.sum, ops.max)
    for axes in ([2, 3], [-1, -2], [1], [0, 2, 3], [2], [1, 2, 3], 1) for keep in (False, True)])  # fmt: skip
ROWS.add("channels first squeeze and excite", _BIG, lambda x: [
    y * ops.sigmoid(conv(ops.relu(conv(ops.mean(y, [2, 3], keep_dims=True), numbers(1, 1, 8, 2))), numbers(1, 1, 2, 8)))
    for y in [conv(x)]])  # fmt: skip
ROWS.add("channels first gates of products", _BIG, lambda x: [
    y * ops.reshape(ops.sigmoid(ops.mat_mul(ops.mean(y, [2, 3]), numbers(8, 8))), [2, 8, 1, 1])
    for y in [conv(x)]])  # fmt: skip
ROWS.add("channels first depth and space", _BIG, lambda x: [
    conv(ops.depth_to_space(conv(x), block_size=2, **FORMAT), numbers(3, 3, 2, 3)),
    ops.space_to_depth(conv(ops.pad(x, [[0, 0], [0, 0], [0, 1], [0, 0]])), block_size=2, **FORMAT)])  # fmt: skip
ROWS.add("transposes around channels last", [(2, 13, 14, 8)], lambda x: [
    ops.transpose(ops.relu(conv(ops.transpose(x, [0, 3, 1, 2]))), [0, 2, 3, 1]),
    ops.transpose(conv(ops.transpose(x, [0, 3, 2, 1])), [0, 3, 2, 1]),
    conv(ops.transpose(ops.softmax(ops.transpose(conv(ops.transpose(x, [0, 3, 1, 2])), [0, 2, 3, 1])), [0, 3, 1, 2])),
])  # fmt: skip
ROWS.add("channels first of types", [numbers(2, 8, 13, 14, dtype=np.float64), numbers(2, 8, 13, 14, dtype=np.float16)],
    lambda x, y: [ops.relu(conv(x, _W.astype(np.float64))), conv(y, _W.astype(np.float16))])  # fmt: skip
ROWS.add("channels first and comparisons", _BIG, lambda x: [
    ops.select_v2(ops.greater(y, 0.5), y, ops.neg(y)) for y in [conv(x)]])  # fmt: skip
ROWS.add("channels first batch norms", _BIG, lambda x: [
    ops.relu(ops.fused_batch_norm_v3(
        y, positive(8), numbers(8), numbers(8, seed=1), positive(8, seed=1), is_training=training, **FORMAT)[0] + x)
    for y in [conv(x)] for training in (False, True)])  # fmt: skip
ROWS.add("channels first local response norm", _BIG, lambda x: ops.transpose(
    ops.lrn(ops.transpose(ops.relu(conv(x)), [0, 2, 3, 1])), [0, 3, 1, 2]))  # fmt: skip

_CUBE = {"strides": [1, 1, 1, 2, 1], "padding": "SAME", "data_format": "NCDHW"}
ROWS.add("channels first in three dimensions", [(1, 5, 7, 9, 11), (3, 2, 3, 5, 6)], lambda x, w: [
    f
    for y in [ops.relu(ops.conv3d(x, w, **_CUBE))]
    for f in (
        y, ops.conv3d_backprop_input_v2([1, 5, 7, 9, 11], w, y, **_CUBE),
        ops.conv3d_backprop_filter_v2(x, [3, 2, 3, 5, 6], y, **_CUBE),
        *(p(y, ksize=[1, 1, 2, 3, 2], **_CUBE) for p in (ops.max_pool3d, ops.avg_pool3d)),
    )
])  # fmt: skip
