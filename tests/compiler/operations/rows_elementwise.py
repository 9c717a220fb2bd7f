"""Elementwise operations: functions, two operands in every broadcast, chains of them, batch norms, activations."""

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

#: small, empty, scalar, odd and large shapes of every rank
SHAPES: tuple[tuple[int, ...], ...] = (
    (), (1,), (0,), (7,), (4099,), (64, 65), (1, 4096), (4096, 1), (3, 0, 5), (5, 31, 37), (2, 1, 1, 4097),
    (2, 17, 19, 1), (2, 17, 19, 3), (3, 13, 1, 129), (2, 3, 5, 7, 23), (2, 3, 2, 5, 7, 11), (1, 1, 1, 1, 1, 4111),
)  # fmt: skip
UNARY: dict[str, Any] = {
    "relu": ops.relu, "relu6": ops.relu6, "elu": ops.elu, "sigmoid": ops.sigmoid, "tanh": ops.tanh,
    "softplus": ops.softplus, "square": ops.square, "abs": ops.abs, "neg": ops.neg, "exp": ops.exp,
    "leaky": lambda x: ops.leaky_relu(x, alpha=0.3), "leaky_negative": lambda x: ops.leaky_relu(x, alpha=-0.5),
    "leaky_above_one": lambda x: ops.leaky_relu(x, alpha=2.0),
    "erf": ops.erf, "erfc": ops.erfc,
    "sqrt": lambda x: ops.sqrt(ops.abs(x)), "rsqrt": lambda x: ops.rsqrt(ops.abs(x) + 0.5),
}  # fmt: skip
for _name, _function in UNARY.items():
    for _shape in SHAPES if _name in ("relu", "tanh") else ((), (64, 65), (2, 17, 19, 3), (31,)):
        ROWS.add(f"{_name} {list(_shape)}", [_shape], _function)
for _dtype in (np.float64, np.float16):
    for _name in ("relu", "tanh", "sigmoid", "square", "neg", "softplus", "elu"):
        ROWS.add(
            f"{_name} {np.dtype(_dtype).name}", [numbers(70, 71, dtype=_dtype)], UNARY[_name],
        )  # fmt: skip

BINARY: dict[str, Any] = {"add": ops.add_v2, "sub": ops.sub, "mul": ops.mul, "div": ops.real_div}
#: the first is the larger; both orders are tried
PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((64, 65), (64, 65)), ((64, 65), (65,)), ((64, 65), (64, 1)), ((64, 65), ()), ((64, 65), (1, 1)),
    ((64, 65), (1, 1, 1)), ((20, 30, 3, 3), (3, 1)), ((20, 30, 3, 3), (3,)), ((20, 3, 30, 3), (3, 1, 1)),
    ((2, 3, 30, 31), (3, 1, 1)), ((2, 30, 31, 3), (2, 1, 1, 3)), ((2, 30, 31, 3), (2, 30, 31, 1)),
    ((2, 30, 31, 3), (1, 30, 1, 3)), ((5, 30, 31), (30, 31)), ((5, 30, 31), (5, 1, 1)), ((5, 30, 31), (30, 1)),
    ((2, 3, 5, 7, 23), (7, 1)), ((2, 3, 2, 5, 7, 11), (11,)), ((2, 3, 2, 5, 7, 11), (5, 1, 1)), ((7,), ()),
    ((4, 0), (1, 1)), ((1, 1, 1, 5000), (1, 5000)), ((3, 3, 600), (3, 1)), ((40, 10, 3, 16), (3, 16)),
)  # fmt: skip
for _large, _small in PAIRS:
    _twice = [positive(*_large), positive(*_small, seed=1)]
    ROWS.add(
        f"four ways {list(_large)} {list(_small)}", _twice,
        lambda x, y: [f(*pair) for f in BINARY.values() for pair in ((x, y), (y, x))],
    )  # fmt: skip
    for _other in dict.fromkeys((_small, _large)):
        ROWS.add(
            f"four ways {list(_large)} constant {list(_other)} beside {list(_small)}", _twice[:1],
            lambda x, c=positive(*_other, seed=2): [f(*p) for f in BINARY.values() for p in ((x, c), (c, x))],
        )  # fmt: skip
    ROWS.add(
        f"chain {list(_large)} constant {list(_small)}", _twice[:1],
        lambda x, c=positive(*_small, seed=3): [
            ops.relu(ops.tanh(x) * c - 0.5), ops.sigmoid(c - ops.square(x)), ops.neg(ops.tanh(x) / c),
            ops.tanh((c * ops.relu(x) + c) * 0.25 + 3.0),
        ],
    )  # fmt: skip

for _name, _dtype in (("float64", np.float64), ("float16", np.float16), ("int32", np.int32), ("int64", np.int64),
                      ("uint8", np.uint8), ("int8", np.int8)):  # fmt: skip
    _integral = np.dtype(_dtype).kind in "iu"
    ROWS.add(
        f"arithmetic {_name}", [np.abs(numbers(70, 71, dtype=_dtype)) + _dtype(1), numbers(71, seed=4, dtype=_dtype)],
        lambda x, y, integral=_integral: [ops.add_v2(x, y), ops.sub(x, y), ops.mul(x, y), ops.maximum(x, y),
                                          ops.minimum(x, y), *([] if integral else [ops.real_div(x, ops.exp(y))])],
    )  # fmt: skip
    if _dtype is not np.float16:
        ROWS.add(
            f"comparisons {_name}", [numbers(70, 71, dtype=_dtype), numbers(71, seed=5, dtype=_dtype)],
            lambda x, y: [
                ops.less(x, y), ops.less_equal(y, x), ops.logical_and(ops.greater(x, y), ops.greater_equal(y, x)),
                ops.logical_not(ops.logical_or(ops.less(x, y), ops.less(y, x))),
            ],
        )  # fmt: skip


def _chain(x: Any) -> list[Any]:
    found = [x]
    for function in (ops.tanh, ops.square, ops.neg, ops.sigmoid, ops.softplus):
        found.append(function(found[-1]))
    return found


ROWS.add(
    "the same twice", [(64, 65)],
    lambda x: [x * x, x + x, x - x, ops.real_div(x, x), ops.relu(ops.tanh(x) * ops.tanh(x)), ops.maximum(x, x)],
)  # fmt: skip
ROWS.add("square of what is computed", [(64, 65)], lambda x: [ops.mul(y, y) + y for y in [ops.tanh(x) - 0.25]])
ROWS.add("sum of many", [(64, 65)] * 5, lambda *xs: [ops.add_n(xs), ops.add_n(xs[:3]), ops.add_n([xs[0]] * 3)])
ROWS.add("sum of computed", [(64, 65)] * 3, lambda x, y, z: ops.add_n([ops.tanh(x), ops.tanh(x), ops.relu(y), z]))
ROWS.add("sum of small ones", [(3, 5)] * 3, lambda x, y, z: ops.add_n([ops.tanh(x), y, z]))
ROWS.add("one used by many", [(64, 65)], lambda x: [f(y) for y in [ops.tanh(x)] for f in UNARY.values()])
ROWS.add("long chain", [(64, 65)], lambda x: _repeat(x, 25))
ROWS.add("long chain of small ones", [(6, 5)], lambda x: _repeat(x, 25))
ROWS.add("chain with results inside", [(64, 65)], _chain)
ROWS.add(
    "gradients", [(64, 65), (64, 65)],
    lambda x, dy: [
        ops.relu_grad(dy, x), ops.relu_grad(x, x), ops.sigmoid_grad(ops.sigmoid(x), dy), ops.tanh_grad(x, x),
        ops.tanh_grad(ops.tanh(x), dy * 2.0), ops.sigmoid_grad(x, ops.sigmoid(dy)), ops.sigmoid_grad(x, x),
        ops.relu6_grad(dy, x), ops.elu_grad(dy, ops.elu(x)), ops.softplus_grad(dy, x),
    ],
)  # fmt: skip
ROWS.add("gradients of images", [(2, 17, 19, 7)] * 2, lambda x, dy: [ops.relu_grad(dy, x), ops.tanh_grad(x, dy)])
ROWS.add(
    "gradients broadcast", [(64, 65), ()],
    lambda x, dy: [ops.sigmoid_grad(ops.sigmoid(x), ops.fill([64, 65], dy)), ops.tanh_grad(ops.fill([64, 65], dy), x)],
)  # fmt: skip


def _repeat(x: Any, times: int) -> Any:
    for turn in range(times):
        x = ops.tanh(x * 1.5 + 0.1) if turn % 3 else ops.relu(x - 0.2) + x
    return x


# -- activations that are spelled out, and what only looks like them ------------------------------------------------

_HALF = float(np.sqrt(0.5))
_ROOT = float(np.sqrt(2 / np.pi))
SPELLED: dict[str, Any] = {
    "swish": lambda x: x * ops.sigmoid(x),
    "swish turned": lambda x: ops.sigmoid(x) * x,
    "swish scaled": lambda x: x * ops.sigmoid(1.7 * x),
    "swish divided": lambda x: x * ops.sigmoid(x / 1.7),
    "half a swish": lambda x: 0.5 * x * ops.sigmoid(x),
    "not a swish": lambda x: x * ops.sigmoid(x + 1.0),
    "swish of another": lambda x: x * ops.sigmoid(ops.tanh(x)),
    "hard swish": lambda x: x * ops.relu6(x + 3.0) / 6.0,
    "hard swish by product": lambda x: x * (ops.relu6(3.0 + x) * (1.0 / 6.0)),
    "not a hard swish": lambda x: x * ops.relu6(x + 2.0) * (1.0 / 6.0),
    "gelu": lambda x: 0.5 * x * (1.0 + ops.erf(x * _HALF)),
    "gelu divided": lambda x: x * 0.5 * (ops.erf(x / (2.0**0.5)) + 1.0),
    "gelu by erfc": lambda x: 0.5 * x * ops.erfc(-x * _HALF),
    "gelu by erfc of a product": lambda x: x * ops.erfc(-(x * _HALF)) * 0.5,
    "not a gelu by erfc": lambda x: 0.5 * x * ops.erfc(x * _HALF),
    "not a gelu": lambda x: 0.5 * x * (1.0 + ops.erf(x)),
    "gelu tanh": lambda x: 0.5 * x * (1.0 + ops.tanh(_ROOT * (x + 0.044715 * ops.pow(x, 3.0)))),
    "gelu tanh by squares": lambda x: 0.5 * x * (1.0 + ops.tanh(_ROOT * (x + 0.044715 * (x * ops.square(x))))),
    "gelu tanh by products": lambda x: x * (0.5 * (1.0 + ops.tanh(_ROOT * (x + 0.044715 * x * x * x)))),
    "not a gelu tanh": lambda x: 0.5 * x * (1.0 + ops.tanh(_ROOT * (x + 0.044715 * ops.pow(x, 2.0)))),
    "gate that others see": lambda x: [g * x for g in [ops.sigmoid(x)]] + [ops.sigmoid(x) + 1.0],
}
for _name, _function in SPELLED.items():
    ROWS.add(f"{_name}", [(2, 17, 19, 7)], _function)
    ROWS.add(f"{_name} of a few", [(3, 5)], _function)
    ROWS.add(
        f"{_name} after a product", [(16, 64)], lambda x, f=_function, w=numbers(64, 64): f(ops.mat_mul(x, w) * 0.1)
    )
ROWS.add("swish of one seen too", [(64, 65)], lambda x: [y * s for y in [ops.tanh(x)] for s in [ops.sigmoid(y)]] + [x])
ROWS.add("swish broadcast", [(65, 64), (64,)], lambda x, y: [x * ops.sigmoid(y), y * ops.sigmoid(x)])


def _layer_norm(x: Any, gamma: Any, beta: Any, axis: int = -1, epsilon: float = 1e-3) -> Any:
    mean = ops.mean(x, [axis], keep_dims=True)
    variance = ops.mean(ops.squared_difference(x, mean), [axis], keep_dims=True)
    scale = ops.rsqrt(variance + epsilon)
    scale = scale if gamma is None else scale * gamma
    return x * scale + (beta - mean * scale)


for _name, _shape, _gamma, _beta, _axis in (
    ("layer norm", (4, 20, 64), (64,), (64,), -1),
    ("layer norm of rank 2", (80, 64), (64,), (64,), 1),
    ("layer norm of rank 4", (4, 5, 6, 64), (64,), (64,), 3),
    ("layer norm without gamma", (4, 20, 64), None, (64,), -1),
    ("layer norm of numbers", (4, 20, 64), (), (1,), -1),
    ("not a layer norm: gamma by rows", (4, 64, 64), (64, 1), (64,), -1),
    ("not a layer norm: beta by rows", (4, 64, 64), (64,), (64, 1), -1),
    ("not a layer norm: another axis", (4, 64, 64), (64,), (64,), 1),
    ("not a layer norm: full gamma", (80, 64), (80, 64), (64,), -1),
):
    ROWS.add(
        _name, [_shape],
        lambda x, g=None if _gamma is None else positive(*_gamma), b=numbers(*_beta), axis=_axis: _layer_norm(
            x, g, b, axis
        ),
    )  # fmt: skip


def _batch_norm(x: Any, training: bool = False, layout: str = "NHWC", **given: Any) -> Any:
    channels = 6
    mean, variance = (given.get("mean", numbers(channels, seed=6)), positive(channels, seed=7))
    if training:
        mean = variance = np.zeros(0, np.float32)
    return ops.fused_batch_norm_v3(
        x, positive(channels, seed=8), numbers(channels, seed=9), mean, variance, epsilon=1e-2, is_training=training,
        data_format=layout,
    )  # fmt: skip


_IMAGE = (2, 17, 23, 6)
ROWS.add("batch norm", [_IMAGE], lambda x: _batch_norm(x)[0])
ROWS.add("batch norm and relu", [_IMAGE], lambda x: ops.relu(_batch_norm(ops.tanh(x))[0]))
ROWS.add("batch norm whose mean is wanted", [_IMAGE], lambda x: [_batch_norm(x)[0], _batch_norm(x)[1]])
ROWS.add(
    "batch norm of one, both wanted",
    [_IMAGE],
    lambda x: [ops.relu(y[0]) + ops.sum(y[1], [0]) for y in [_batch_norm(x)]],
)
ROWS.add("batch norm in training", [_IMAGE], lambda x: list(_batch_norm(x, True)[:3]))
ROWS.add("batch norm channels first", [(2, 6, 17, 23)], lambda x: _batch_norm(x, layout="NCHW")[0])
ROWS.add("batch norm of a fed mean", [_IMAGE, (6,)], lambda x, m: _batch_norm(x, mean=m)[0])
ROWS.add("bias", [_IMAGE, (6,)], lambda x, b: [ops.bias_add(x, b), ops.relu(ops.bias_add(ops.tanh(x), b))])
ROWS.add("bias channels first", [(2, 6, 17, 23), (6,)], lambda x, b: ops.relu(ops.bias_add(x, b, data_format="NCHW")))
ROWS.add("bias channels first, as many columns", [(40, 6, 10, 6), (6,)],
         lambda x, b: ops.relu(ops.bias_add(ops.tanh(x), b, data_format="NCHW")))  # fmt: skip
