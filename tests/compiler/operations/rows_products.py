"""Matrix products, reductions, softmax, joins, and what moves elements or only renames them."""

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

# -- matrix products ------------------------------------------------------------------------------------------------

for _m, _k, _n in (
    (1, 64, 64),
    (64, 1, 64),
    (64, 64, 1),
    (17, 127, 31),
    (70, 65, 64),
    (3, 5, 7),
    (0, 64, 64),
    (64, 0, 64),
):
    for _turn_a in (False, True):
        for _turn_b in (False, True):
            _a, _b = (_k, _m) if _turn_a else (_m, _k), (_n, _k) if _turn_b else (_k, _n)
            ROWS.add(
                f"product {_m} {_k} {_n} {_turn_a} {_turn_b}", [_a, _b],
                lambda a, b, c=numbers(*_b), d=numbers(*_a), bias=numbers(_n), ta=_turn_a, tb=_turn_b: [
                    ops.mat_mul(a, b, transpose_a=ta, transpose_b=tb),
                    ops.relu(ops.mat_mul(a, c, transpose_a=ta, transpose_b=tb) * 0.5 + bias),
                    ops.tanh(ops.mat_mul(ops.tanh(a), b, transpose_a=ta, transpose_b=tb) + bias),
                    ops.mat_mul(d, b, transpose_a=ta, transpose_b=tb) - 1.0,
                ],
            )  # fmt: skip
for _name, _a, _b, _turn_a, _turn_b in (
    ("plain", (3, 17, 64), (3, 64, 33), False, False),
    ("turned", (3, 64, 17), (3, 33, 64), True, True),
    ("left turned", (3, 64, 17), (3, 64, 33), True, False),
    ("one on the left", (1, 17, 64), (3, 64, 33), False, False),
    ("one on the right", (3, 17, 64), (1, 64, 33), False, False),
    ("of different ranks", (17, 64), (3, 64, 33), False, False),
    ("right of rank 2", (3, 17, 64), (64, 33), False, False),
    ("right of rank 2 turned", (3, 64, 17), (33, 64), True, True),
    ("both broadcast", (3, 1, 17, 64), (1, 2, 64, 33), False, False),
    ("rank 4", (2, 3, 17, 64), (2, 3, 64, 33), False, False),
    ("rank 5", (2, 3, 2, 9, 32), (2, 1, 2, 32, 33), False, False),
    ("rank 6", (2, 1, 3, 2, 9, 32), (2, 3, 1, 2, 32, 33), False, False),
    ("rank 7", (2, 1, 1, 3, 2, 9, 32), (2, 1, 3, 1, 2, 32, 33), False, False),
    ("no batch", (0, 17, 64), (0, 64, 33), False, False),
    ("small", (2, 3, 4), (2, 4, 5), False, False),
):
    ROWS.add(
        f"batched {_name}", [_a, _b],
        lambda a, b, c=numbers(*_b), bias=numbers(33 if _name != "small" else 5), ta=_turn_a, tb=_turn_b: [
            ops.batch_mat_mul_v2(a, b, adj_x=ta, adj_y=tb),
            ops.relu(ops.batch_mat_mul_v2(a, b, adj_x=ta, adj_y=tb) * 0.125 + bias),
            ops.tanh(ops.batch_mat_mul_v2(a, c, adj_x=ta, adj_y=tb) * 0.125 + bias),
            ops.batch_mat_mul_v2(c, c, adj_y=True) * a[..., :1, :1],
        ],
    )  # fmt: skip

_W = numbers(64, 64)
_SQUARE = [(64, 64)]
_THREE = [(3, 20, 64)]


def _product(x: Any, w: Any, **attrs: Any) -> Any:
    return ops.batch_mat_mul_v2(x, w, **attrs)


ROWS.add("product with itself", _SQUARE, lambda x: [
    ops.mat_mul(x, x), ops.mat_mul(x, x, transpose_b=True) + x, ops.tanh(ops.mat_mul(x, x, transpose_a=True)) * x,
])  # fmt: skip
ROWS.add("product of what is computed", _SQUARE, lambda x: [ops.relu(ops.mat_mul(y, y) + y) for y in [ops.tanh(x)]])
ROWS.add("product added to its inputs", [(64, 64)] * 2, lambda a, b: [
    ops.mat_mul(c, d) + c + d for c, d in [(ops.tanh(a), ops.tanh(b))]])  # fmt: skip
ROWS.add(
    "products of one", _SQUARE, lambda x: [ops.mat_mul(x, _W) * ops.sigmoid(ops.mat_mul(x, _W.T)), ops.mat_mul(x, _W)]
)
ROWS.add(
    "product times rows", _SQUARE, lambda x: [ops.mat_mul(x, _W) * numbers(64, 1), ops.mat_mul(x, _W) + numbers(64, 1)]
)
ROWS.add("product scaled by fed numbers", [(64, 64), (64,), ()], lambda x, v, s: [
    ops.relu(ops.mat_mul(x, _W) * v + s), s - ops.mat_mul(x, _W) * s, ops.mat_mul(x, _W) / (ops.square(v) + 1.0),
])  # fmt: skip
ROWS.add("product by nothing", _SQUARE, lambda x: [ops.mat_mul(x, _W) * 0.0 + 1.0, ops.mat_mul(x, _W) * 1.0 - 0.0])
ROWS.add("product into a wider sum", [(64, 64), (3, 64, 64)], lambda x, y: ops.mat_mul(x, _W) + y)
ROWS.add("batched and residual", [(3, 20, 64), (64,)], lambda x, v: [
    _product(x, _W) + x, _product(x, numbers(3, 64, 64)) * v + x, _product(x, numbers(3, 64, 64)) + x[:, :1],
    _product(x, numbers(3, 64, 64)) * x[:, :, :1] - x[:1],
    ops.relu(_product(x, x, adj_y=True) + x[:, :, :1]),
])  # fmt: skip
ROWS.add("batched scaled by constants of many shapes", _THREE, lambda x: [
    f(_product(x, numbers(3, 64, 64)), positive(*shape)) for f in (ops.mul, ops.add_v2, ops.real_div)
    for shape in ((64,), (20, 1), (20, 64), (3, 1, 1), (3, 20, 1), (1, 1, 64), ())])  # fmt: skip
ROWS.add("constant products of constants of many shapes", _THREE, lambda x: [
    f(_product(x, _W), positive(*shape)) for f in (ops.mul, ops.add_v2, ops.sub)
    for shape in ((64,), (20, 1), (20, 64), (3, 1, 1), (3, 20, 1), (1, 1, 64), ())])  # fmt: skip
ROWS.add("long product chain", _SQUARE, lambda x: _deep(x))
for _dtype in (np.float64, np.float16, np.int32):
    ROWS.add(
        f"product {np.dtype(_dtype).name}", [numbers(64, 65, dtype=_dtype), numbers(65, 66, dtype=_dtype)],
        ops.mat_mul,
    )  # fmt: skip
ROWS.add("attention", [(2, 12, 33, 16)] * 3, lambda q, k, v: _product(
    ops.softmax(_product(q * 0.25, k, adj_y=True) + numbers(1, 1, 33, 33)), v))  # fmt: skip
ROWS.add("attention with turns", [(2, 33, 4, 16)] * 3, lambda q, k, v: [
    ops.reshape(ops.transpose(_product(ops.softmax(_product(a, b, adj_y=True)), c), [0, 2, 1, 3]), [2, 33, 64])
    for a, b, c in [[ops.transpose(t, [0, 2, 1, 3]) for t in (q, k, v)]]])  # fmt: skip


def _deep(x: Any) -> Any:
    for turn in range(6):
        x = ops.tanh(ops.mat_mul(x, numbers(64, 64, seed=turn) * np.float32(0.1)) + numbers(64, seed=turn)) + x
    return x


# -- reductions -----------------------------------------------------------------------------------------------------

REDUCTIONS = (ops.mean, ops.sum, ops.max, ops.min)
for _shape, _choices in {
    (4099,): ([0], [-1], []),
    (64, 65): ([0], [1], [-1], [0, 1], [-1, 0], []),
    (5, 31, 37): ([0], [1], [2], [0, 2], [1, 2], [0, 1, 2]),
    (2, 17, 19, 7): ([1, 2], [0], [3], [0, 3], [0, 1, 2], [2, 1], [-2], [0, 1, 2, 3], [1]),
    (2, 17, 19, 1): ([1, 2], [3]),
    (2, 3, 5, 7, 23): ([1, 2, 3], [4], [0, 2], [1, 2]),
    (2, 3, 2, 5, 7, 11): ([1, 2], [5]),
    (3, 5): ([0], [1]),
    (0, 5): ([0], [1]),
}.items():
    ROWS.add(
        f"reductions {list(_shape)}", [_shape],
        lambda x, choices=_choices: [
            f(y, np.array(axes, np.int32), keep_dims=keep)
            for y in (x, ops.tanh(x)) for f in REDUCTIONS for axes in choices
            for keep in (False, True)
        ],
    )  # fmt: skip
ROWS.add("reduction over one number", [(64, 65)], lambda x: [ops.mean(x, 1), ops.sum(ops.tanh(x), np.int64(-1))])
ROWS.add(
    "reduction over fed axes",
    [(64, 65), np.array([1], np.int32)],
    lambda x, axes: [ops.mean(x, axes), ops.sum(x, axes)],
)
ROWS.add("mean into relu", [(2, 17, 19, 7)], lambda x: [
    ops.relu(ops.mean(x, [1, 2]) - 0.01), ops.relu(ops.mean(x, [1, 2], keep_dims=True)) * x])  # fmt: skip
ROWS.add("reductions float64", [numbers(64, 65, dtype=np.float64)], lambda x: [ops.mean(x, [1]), ops.sum(x, [0])])
ROWS.add("reductions int32", [numbers(64, 65, dtype=np.int32)], lambda x: [ops.mean(x, [1]), ops.sum(x, [0])])
ROWS.add("moments by hand", [(4, 9, 10, 16)], lambda x: [
    ops.mean(ops.squared_difference(x, m), [0, 1, 2]) for m in [ops.mean(x, [0, 1, 2], keep_dims=True)]])  # fmt: skip

# -- softmax --------------------------------------------------------------------------------------------------------

for _shape in (
    (4099,),
    (64, 65),
    (1, 4096),
    (4096, 1),
    (1, 1000),
    (5, 13),
    (3, 7),
    (2, 3, 31, 37),
    (2, 3, 2, 5, 7, 11),
    (0, 9),
    (33, 1000),
):
    ROWS.add(f"softmax {list(_shape)}", [_shape], lambda x: [
        ops.softmax(x), ops.log_softmax(x), ops.softmax(ops.tanh(x) * 50.0), ops.log_softmax(x * 100.0)])  # fmt: skip
ROWS.add("softmax float64", [numbers(64, 65, dtype=np.float64)], lambda x: [ops.softmax(x), ops.log_softmax(x)])
ROWS.add("softmax float16", [numbers(64, 65, dtype=np.float16)], lambda x: [ops.softmax(x)])
ROWS.add("masked softmax", [(64, 65)], lambda x: [
    ops.softmax(x + np.where(numbers(64, 65) > 1, np.float32(-1e9), np.float32(0))),
    ops.softmax(x + np.where(np.arange(65) > 30, np.float32(-np.inf), np.float32(0)))])  # fmt: skip

# -- joins, transposes, other names ---------------------------------------------------------------------------------

ROWS.add("joins", [(8, 9, 70)] * 3, lambda *xs: [ops.concat_v2(xs, a) for a in (0, 1, 2, -1, -3)])
ROWS.add("joins of different sizes", [(8, 9, 1), (8, 9, 70), (8, 9, 3)], lambda *xs: ops.concat_v2(xs, 2))
ROWS.add("joins with nothing", [(8, 9, 0), (8, 9, 70)], lambda *xs: ops.concat_v2(xs, -1))
ROWS.add("joins of one twice", [(64, 65)], lambda x: [ops.concat_v2([x, x], 0), ops.concat_v2([ops.tanh(x), x], 1)])
ROWS.add("joins of computed and fed", [(64, 65)], lambda x: [ops.concat_v2([y, x, y], 0) for y in [ops.tanh(x)]])
ROWS.add(
    "joins with constants",
    [(64, 65)],
    lambda x: [ops.concat_v2([x, numbers(64, 3)], 1), ops.concat_v2([numbers(1, 65), x], 0)],
)
ROWS.add("joins along a fed axis", [(64, 65), np.int32(1)], lambda x, a: ops.concat_v2([x, ops.tanh(x)], a))
ROWS.add("joins of vectors", [(4099,), (1,)], lambda x, y: ops.concat_v2([x, y, x], 0))
ROWS.add("joins of many", [(2, 3, 5, 7, 23)], lambda x: [ops.concat_v2([ops.tanh(x)] * 9, a) for a in range(5)])
ROWS.add("joins of int32", [numbers(64, 65, dtype=np.int32)], lambda x: ops.concat_v2([x, x], 1))
ROWS.add("joins of parts", [(64, 66)], lambda x: [ops.concat_v2(list(reversed(ops.split(1, ops.tanh(x), 3))), 1)])
for _shape, _orders in {
    (64, 65): ([1, 0], [0, 1]),
    (5, 31, 37): ([2, 1, 0], [1, 0, 2], [0, 2, 1], [0, 1, 2]),
    (2, 17, 19, 7): ([0, 3, 1, 2], [3, 2, 1, 0], [1, 0, 2, 3]),
    (2, 3, 5, 7, 23): ([4, 3, 2, 1, 0], [0, 2, 1, 4, 3]),
    (2, 3, 2, 5, 7, 11): ([5, 0, 4, 1, 3, 2],),
    (2, 1, 3, 2, 5, 7, 11): ([6, 0, 5, 1, 4, 2, 3],),
    (4096, 1): ([1, 0],),
    (3, 5): ([1, 0],),
    (0, 5): ([1, 0],),
}.items():
    ROWS.add(
        f"transposes {list(_shape)}", [_shape],
        lambda x, orders=_orders: [
            f(ops.transpose(y, np.array(order, np.int32))) for y in (x, ops.tanh(x)) for order in orders
            for f in (ops.identity, ops.relu)
        ],
    )  # fmt: skip
ROWS.add("transpose along a fed order", [(64, 65), np.array([1, 0], np.int32)], ops.transpose)
ROWS.add("transpose back", [(64, 65)], lambda x: ops.transpose(ops.transpose(x, [1, 0]), [1, 0]) + x)
ROWS.add("transpose float64", [numbers(64, 65, dtype=np.float64)], lambda x: ops.transpose(x, [1, 0]))
ROWS.add("reshapes", [(64, 65)], lambda x: [
    ops.reshape(x, [-1]), ops.reshape(ops.tanh(x), [65, 64]), ops.relu(ops.reshape(ops.tanh(x), [13, 5, 64])),
    ops.expand_dims(ops.tanh(x), -1), ops.expand_dims(ops.expand_dims(x, 0), 0), ops.reshape(x, [64, 5, 13]) + 1.0,
])  # fmt: skip
ROWS.add(
    "reshape to a fed shape",
    [(64, 65), np.array([65, -1], np.int32)],
    lambda x, s: [ops.reshape(x, s), ops.tanh(ops.reshape(x, s))],
)
ROWS.add("squeezes", [(1, 64, 1, 65)], lambda x: [
    ops.squeeze(x), ops.squeeze(ops.tanh(x), squeeze_dims=[0]), ops.relu(ops.squeeze(ops.tanh(x), squeeze_dims=[-2])),
])  # fmt: skip
ROWS.add(
    "reshape of one number", [(1, 1)], lambda x: [ops.reshape(x, []), ops.tanh(ops.reshape(ops.tanh(x), [1, 1, 1]))]
)
ROWS.add("reshape of nothing", [(0, 5)], lambda x: [ops.reshape(x, [5, 0]), ops.tanh(ops.reshape(x, [0]))])
ROWS.add("another name and the first one", [(64, 65)], lambda x: [
    f for y in [ops.tanh(x)] for z in [ops.reshape(y, [-1])]
    for f in (y + 1.0, z * 2.0, ops.reshape(z, [65, 64]) - 1.0, y, z)
])  # fmt: skip
ROWS.add("views of what goes on", [(64, 65)], lambda x: [
    f for y in [ops.tanh(x)] for f in (y[3:40, 5:], ops.relu(y), ops.relu(y[::2, ::3]) + y[:32, :22], y[0], y * y[1])
])  # fmt: skip
ROWS.add("parts of what goes on", [(66, 64)], lambda x: [
    ops.relu(a) * b + ops.sigmoid(c) for y in [ops.tanh(ops.mat_mul(x, _W))]
    for a, b, c in [ops.split(0, y, 3)]
])  # fmt: skip
ROWS.add("gates of a cell", [(32, 64), (32, 64)], lambda x, c: [
    ops.sigmoid(o) * ops.tanh(n) for i, j, f, o in [ops.split(1, ops.mat_mul(x, numbers(64, 256)) * 0.1, 4)]
    for n in [ops.sigmoid(f + 1.0) * c + ops.sigmoid(i) * ops.tanh(j)]])  # fmt: skip
ROWS.add(
    "shapes",
    [(64, 65)],
    lambda x: [ops.shape(ops.tanh(x)), ops.size(x), ops.rank(x), ops.reshape(x, ops.shape(x)[::-1])],
)
ROWS.add("fills", [(64, 65), ()], lambda x, v: [ops.fill([64, 65], v) * x, ops.tanh(ops.fill(ops.shape(x), v) + 1.0)])
ROWS.add("broadcast before use", [(65,)], lambda x: [ops.tanh(ops.broadcast_to(ops.tanh(x), [64, 65])) + x])
ROWS.add(
    "gather of computed",
    [(64, 65), np.array([3, 3, 63], np.int32)],
    lambda x, i: [ops.relu(ops.gather_v2(ops.tanh(x), i, 0)), ops.tanh(x)],
)
ROWS.add(
    "casts between", [(64, 65)], lambda x: ops.tanh(ops.cast(ops.cast(x * 3.0, DstT=gm.int32), DstT=gm.float32) * 0.1)
)
ROWS.add("selects", [(64, 65)], lambda x: [ops.select_v2(ops.greater(x, 0.0), ops.tanh(x), ops.square(x)) * 2.0])
