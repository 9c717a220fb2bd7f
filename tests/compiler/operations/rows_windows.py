"""Convolutions, pools, padding and their gradients: sizes, strides, dilations, paddings, layouts, types."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np

from tests.compiler.operations.rows import Table, numbers, positive
from toolkit import client as gm

ops = gm.ops
ROWS = Table()


def _strides(stride: Any) -> list[int]:
    pair = (stride, stride) if isinstance(stride, int) else stride
    return [1, *pair, 1]


def _conv(x: Any, w: Any, stride: Any = 1, padding: str = "SAME", dilation: Any = 1, **more: Any) -> Any:
    return ops.conv2d(x, w, strides=_strides(stride), padding=padding, dilations=_strides(dilation), **more)


def _depthwise(x: Any, w: Any, stride: Any = 1, padding: str = "SAME", dilation: Any = 1, **more: Any) -> Any:
    return ops.depthwise_conv2d_native(
        x, w, strides=_strides(stride), padding=padding, dilations=_strides(dilation), **more
    )


_EXPLICIT = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 3, 0, 0, 0]}
#: name -> image, filter, settings
CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "1x1": ((2, 17, 19, 3), (1, 1, 3, 16), {}),
    "3x3": ((2, 17, 19, 16), (3, 3, 16, 17), {}),
    "3x3 valid": ((1, 16, 16, 16), (3, 3, 16, 8), {"padding": "VALID"}),
    "even kernel": ((1, 17, 19, 5), (2, 4, 5, 7), {}),
    "stride 2": ((1, 17, 18, 16), (3, 3, 16, 16), {"stride": 2}),
    "strides beyond the kernel": ((1, 31, 33, 8), (2, 2, 8, 8), {"stride": 3}),
    "1x1 of stride 3": ((1, 31, 33, 8), (1, 1, 8, 8), {"stride": 3}),
    "strides that differ": ((1, 31, 33, 8), (3, 3, 8, 8), {"stride": (1, 2)}),
    "dilated": ((1, 31, 33, 8), (3, 3, 8, 8), {"dilation": 3}),
    "dilated one way": ((1, 31, 33, 8), (3, 3, 8, 8), {"dilation": (1, 4), "padding": "VALID"}),
    "dilated beyond the image": ((1, 5, 5, 8), (3, 3, 8, 8), {"dilation": 7}),
    "explicit": ((1, 13, 14, 8), (3, 3, 8, 8), _EXPLICIT),
    "explicit and stride": ((1, 13, 14, 8), (3, 3, 8, 8), {**_EXPLICIT, "stride": 2}),
    "one channel": ((1, 33, 31, 1), (5, 5, 1, 1), {}),
    "two channels": ((3, 33, 31, 2), (3, 3, 2, 2), {}),
    "three channels to many": ((1, 65, 63, 3), (7, 7, 3, 64), {"stride": 2}),
    "kernel over the image": ((2, 3, 4, 8), (5, 7, 8, 8), {}),
    "kernel of the image": ((2, 5, 7, 8), (5, 7, 8, 8), {"padding": "VALID"}),
    "one pixel": ((4, 1, 1, 64), (3, 3, 64, 64), {}),
    "one row": ((2, 1, 129, 8), (1, 5, 8, 8), {}),
    "no image": ((0, 9, 9, 4), (3, 3, 4, 4), {}),
    "groups": ((1, 13, 14, 16), (3, 3, 4, 8), {}),
    "groups of one": ((1, 13, 14, 16), (3, 3, 1, 32), {}),
}
for _name, (_image, _filter, _settings) in CONVOLUTIONS.items():
    ROWS.add(
        f"conv {_name}", [_image],
        lambda x, w=numbers(*_filter), c=numbers(_filter[-1]), s=_settings: [
            _conv(x, w, **s), ops.relu(ops.bias_add(_conv(ops.tanh(x), w, **s), c)),
            ops.tanh(c * _conv(x, w, **s) - 0.5) + _conv(x, w * 0.5, **s),
        ],
    )  # fmt: skip
    ROWS.add(
        f"conv {_name} of a fed filter", [_image, _filter],
        lambda x, w, s=_settings, c=numbers(_filter[-1]): [
            _conv(x, w, **s), ops.relu(_conv(x, ops.tanh(w), **s) * 2.0 + c),
        ],
    )  # fmt: skip
    if "groups" in _name:
        continue
    _size = (*_filter[:3], 2)
    ROWS.add(
        f"depthwise {_name}", [_image, _size],
        lambda x, w, k=numbers(*_size), c=positive(2 * _filter[2]), s=_settings: [
            ops.relu6(_depthwise(x, k, **s) * c - c), _depthwise(x, w, **s) if "dilation" not in s else x,
        ],
    )  # fmt: skip

_BIG = [(2, 13, 14, 8)]
_W, _W1 = numbers(3, 3, 8, 8), numbers(1, 1, 8, 8)
ROWS.add("conv channels first", [(2, 8, 13, 14)], lambda x: ops.relu(
    ops.bias_add(_conv(ops.tanh(x), _W, data_format="NCHW"), numbers(8), data_format="NCHW")))  # fmt: skip
ROWS.add("conv turned both ways", [(2, 8, 13, 14)], lambda x: ops.relu(
    ops.transpose(_conv(ops.transpose(x, [0, 2, 3, 1]), _W), [0, 3, 1, 2])))  # fmt: skip
ROWS.add("pools channels first", [(2, 8, 13, 14)], lambda x: [
    f(x, ksize=[1, 1, 2, 2], strides=[1, 1, 2, 2], padding="SAME", data_format="NCHW")
    for f in (ops.max_pool, ops.avg_pool)])  # fmt: skip
ROWS.add("conv float64", [numbers(2, 13, 14, 8, dtype=np.float64)], lambda x: _conv(x, _W.astype(np.float64)))
ROWS.add("conv float16", [numbers(2, 13, 14, 8, dtype=np.float16)], lambda x: _conv(x, _W.astype(np.float16)))
ROWS.add("two convs of one", _BIG, lambda x: [ops.relu(_conv(x, _W)) + _conv(x, _W1), _conv(x, _W1)])
ROWS.add("conv added to itself", _BIG, lambda x: [y + y for y in [_conv(x, _W)]] + [y * y for y in [_conv(x, _W)]])
ROWS.add("conv added to its input", _BIG, lambda x: ops.relu(x + _conv(x, _W)))
ROWS.add("conv times its input", _BIG, lambda x: [y * _conv(y, _W) for y in [ops.tanh(x)]])
ROWS.add("conv minus", _BIG, lambda x: [ops.tanh(x) - _conv(x, _W), _conv(x, _W) - ops.tanh(x)])
ROWS.add("conv into division", _BIG, lambda x: [_conv(x, _W) / positive(8), positive(8) / _conv(x, _W1)])
ROWS.add(
    "conv scaled by rows", [(2, 8, 14, 8)], lambda x: [_conv(x, _W) * numbers(14, 1), _conv(x, _W) + numbers(8, 1, 1)]
)
ROWS.add("conv scaled by one", _BIG, lambda x: ops.relu(_conv(x, _W) * numbers(1, 1, 1, 1) + numbers(1)))
ROWS.add("conv scaled after relu", _BIG, lambda x: ops.relu(_conv(x, _W)) * numbers(8) + 1.0)
ROWS.add("conv of a constant image", [()], lambda x: _conv(numbers(1, 13, 14, 8), _W) + x)
ROWS.add("conv reshaped before relu", _BIG, lambda x: ops.relu(ops.reshape(_conv(x, _W), [2, 13 * 14, 8])))
ROWS.add("conv squeezed", [(1, 1, 65, 8)], lambda x: ops.relu(ops.squeeze(_conv(x, _W), squeeze_dims=[1]) + numbers(8)))
ROWS.add("many things after a conv", _BIG, lambda x: _many(_conv(x, _W)))
ROWS.add(
    "a residual network's end", [(2, 28, 27, 8)],
    lambda x: [
        ops.concat_v2([_conv(y, _W1, 2), _conv(y, _W1 * 2.0, 2)], 3)
        for y in [ops.relu(_conv(ops.relu(_conv(x, _W)), _W1) + ops.tanh(x))]
    ],
)  # fmt: skip
ROWS.add("strides through a pad", [(2, 28, 27, 8)], lambda x: _conv(_conv(_padded(x, 1), _W, padding="VALID"), _W1, 2))
ROWS.add("strides of even kernels", [(2, 28, 27, 8)], lambda x: _conv(_conv(x, numbers(2, 2, 8, 8)), _W1, 2))
ROWS.add("strides after strides", [(2, 29, 27, 8)], lambda x: _conv(_conv(x, _W, 2), _W1, 2))
ROWS.add("strides and a fed bias", [(2, 28, 27, 8), (28, 27, 1)], lambda x, b: _conv(_conv(x, _W) + b, _W1, 2))
ROWS.add(
    "conv of three dimensions", [(1, 7, 9, 11, 5)],
    lambda x, w=numbers(3, 2, 3, 5, 6): [
        ops.relu(ops.conv3d(x, w, strides=[1, 1, 2, 1, 1], padding=p)) for p in ("SAME", "VALID")
    ],
)  # fmt: skip


def _many(y: Any) -> Any:
    for turn in range(12):
        y = ops.relu(y * positive(8, seed=turn) + numbers(8, seed=turn)) if turn % 3 else ops.tanh(y) - numbers(8)
    return y


# -- padding --------------------------------------------------------------------------------------------------------


def _padded(x: Any, amount: int, value: float | None = None) -> Any:
    pads = [[0, 0], [amount, amount], [amount, amount], [0, 0]]
    return ops.pad(x, pads) if value is None else ops.pad_v2(x, pads, np.float32(value))


ROWS.add("pad and conv", _BIG, lambda x: [_conv(_padded(ops.tanh(x), n), _W, padding="VALID") for n in (1, 2, 5)])
ROWS.add("pad and same", _BIG, lambda x: _conv(_padded(x, 1), _W, 2))
ROWS.add("pad with one and conv", _BIG, lambda x: _conv(_padded(x, 1, 1.0), _W, padding="VALID"))
ROWS.add("pad with zero and conv", _BIG, lambda x: _conv(_padded(x, 1, 0.0), _W, padding="VALID"))
ROWS.add("pad added to a conv", _BIG, lambda x: _conv(x, _W) + _padded(ops.tanh(x[:, 2:, 2:]), 1))
ROWS.add("pad added to its conv", _BIG, lambda x: [_conv(y, _W) + y for y in [_padded(x, 1)]])
ROWS.add("pad of a fed filter", [*_BIG, (3, 3, 8, 8)], lambda x, w: _conv(_padded(x, 1), w, padding="VALID"))
ROWS.add(
    "pad that others see", _BIG, lambda x: [f(y) for y in [_padded(x, 1)] for f in (lambda z: _conv(z, _W), ops.relu)]
)
ROWS.add("pad of channels", _BIG, lambda x: _conv(ops.pad(x, [[0, 0], [0, 0], [0, 0], [1, 2]]), numbers(3, 3, 11, 4)))
ROWS.add("pad of batches", _BIG, lambda x: _conv(ops.pad(x, [[1, 0], [0, 0], [0, 0], [0, 0]]), _W))
ROWS.add("pad of every rank", [(4096,), (50, 83), (5, 6, 200), (2, 3, 4, 5, 60)], lambda *xs: [
    f(x, [[1, 2]] * rank, *more)
    for rank, x in zip((1, 2, 3, 5), xs, strict=True) for f, more in ((ops.pad, ()), (ops.pad_v2, (np.float32(-2),)))
])  # fmt: skip
ROWS.add("pad by nothing", [(64, 65)], lambda x: ops.pad(x, [[0, 0], [0, 0]]))
ROWS.add("pad of nothing", [(0, 65)], lambda x: ops.pad(x, [[60, 9], [0, 0]]))
ROWS.add("pad by a fed amount", [(64, 65), np.array([[1, 2], [3, 4]], np.int32)], ops.pad)
ROWS.add("pad with a fed value", [(64, 65), ()], lambda x, v: ops.pad_v2(x, [[1, 1], [0, 0]], v))
for _name, _function in {
    "relu": ops.relu, "leaky": ops.leaky_relu, "relu6": ops.relu6, "tanh": ops.tanh, "square": ops.square,
    "relu and less": lambda y: ops.relu(y) - 1.0,
}.items():  # fmt: skip
    ROWS.add(
        f"{_name}, pad, pool", _BIG,
        lambda x, f=_function: [
            ops.max_pool(_padded(f(y), n, v), ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="VALID")
            for y in (_conv(x, _W) - 3.0, ops.tanh(x) - 1.5) for n in (1, 2, 3) for v in (None, -1.0)
        ],
    )  # fmt: skip


# -- pools ----------------------------------------------------------------------------------------------------------

_POOLS: dict[str, tuple[tuple[int, ...], list[int], list[int]]] = {
    "2x2": ((2, 16, 18, 8), [2, 2], [2, 2]),
    "3x3 of stride 2": ((2, 17, 18, 5), [3, 3], [2, 2]),
    "border dropped": ((1, 20, 23, 8), [4, 5], [4, 5]),
    "of stride 1": ((1, 20, 23, 3), [3, 2], [1, 1]),
    "strides beyond": ((1, 20, 23, 8), [2, 2], [5, 4]),
    "over the image": ((1, 4, 5, 300), [7, 9], [1, 1]),
    "of the image": ((3, 7, 5, 64), [7, 5], [1, 1]),
    "of one": ((1, 20, 23, 8), [1, 1], [2, 2]),
    "small": ((1, 3, 3, 1), [2, 2], [1, 1]),
    "none": ((0, 8, 8, 3), [2, 2], [2, 2]),
    "one row": ((1, 1, 500, 9), [1, 3], [1, 2]),
}
for _name, (_image, _ksize, _step) in _POOLS.items():
    for _padding in ("SAME", "VALID"):
        if _padding == "VALID" and _name == "over the image":
            continue
        _window = {"ksize": [1, *_ksize, 1], "strides": [1, *_step, 1], "padding": _padding}
        ROWS.add(
            f"pools {_name} {_padding}", [_image],
            lambda x, s=_window: [f(y, **s) for f in (ops.max_pool, ops.avg_pool) for y in (x, ops.relu(x), x - 9.0)],
        )  # fmt: skip
        if _name != "none":
            ROWS.add(
                f"pool gradients {_name} {_padding}", [_image],
                lambda x, s=_window: [
                    ops.max_pool_grad(x, y, ops.tanh(y + 0.1), **s) for y in [ops.max_pool(x, **s)]
                ],
            )  # fmt: skip
_WINDOW = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
ROWS.add(
    "pools float64",
    [numbers(2, 16, 18, 8, dtype=np.float64)],
    lambda x: [ops.max_pool(x, **_WINDOW), ops.avg_pool(x, **_WINDOW)],
)
ROWS.add("pools float16", [numbers(2, 16, 18, 8, dtype=np.float16)], lambda x: ops.max_pool(x, **_WINDOW))
ROWS.add(
    "pool over channels",
    [(2, 16, 18, 8)],
    lambda x: ops.max_pool(x, ksize=[1, 1, 1, 4], strides=[1, 1, 1, 4], padding="VALID"),
)
ROWS.add("pool explicit", [(2, 16, 18, 8)], lambda x: ops.max_pool(
    x - 9.0, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0],
))  # fmt: skip
ROWS.add("pools of three dimensions", [(1, 7, 9, 11, 6)], lambda x: [
    f(x, ksize=[1, 2, 3, 2, 1], strides=[1, 2, 2, 1, 1], padding=p) for f in (ops.max_pool3d, ops.avg_pool3d)
    for p in ("SAME", "VALID")
])  # fmt: skip
ROWS.add("equal numbers in a pool's gradient", [np.round(numbers(2, 16, 18, 8))], lambda x: [
    ops.max_pool_grad(x, ops.max_pool(x, **s), numbers(2, 8, 9, 8), **s)
    for s in (_WINDOW, {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"})
])  # fmt: skip
ROWS.add("zeros in a pool's gradient", [(2, 16, 18, 8)], lambda x: [
    ops.max_pool_grad(y, ops.max_pool(y, **_WINDOW), numbers(2, 8, 9, 8), **_WINDOW) for y in [ops.relu(x - 1.0)]
])  # fmt: skip


# -- gradients of convolutions ----------------------------------------------------------------------------------------

for _name, (_image, _filter, _settings) in CONVOLUTIONS.items():
    if _name in ("no image",):
        continue
    _padding = {"padding": "SAME"} | {k: v for k, v in _settings.items() if k in ("padding", "explicit_paddings")}
    _more = {
        "strides": _strides(_settings.get("stride", 1)), "dilations": _strides(_settings.get("dilation", 1)), **_padding
    }  # fmt: skip
    ROWS.add(
        f"conv gradients {_name}", [_image, _filter],
        lambda x, w, image=_image, filter=_filter, s=_more: [
            f
            for y in [ops.tanh(ops.conv2d(x, w, **s))]
            for f in (
                ops.conv2d_backprop_input(list(image), w, y, **s), ops.conv2d_backprop_filter(x, list(filter), y, **s)
            )
        ],
    )  # fmt: skip
    if "groups" in _name or "dilat" in _name:
        continue
    ROWS.add(
        f"depthwise gradients {_name}", [_image, (*_filter[:3], 2)],
        lambda x, w, image=_image, filter=_filter, s=_more: [
            f
            for y in [ops.tanh(ops.depthwise_conv2d_native(x, w, **s))]
            for f in (
                ops.depthwise_conv2d_native_backprop_input(list(image), w, y, **s),
                ops.depthwise_conv2d_native_backprop_filter(x, [*filter[:3], 2], y, **s),
            )
        ],
    )  # fmt: skip
