"""Pieces that compute: numbers of several types, shapes, texts, and control edges among what has no effects."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import numpy as np

from tests.passes.programs.builder import Builder, maker
from toolkit import client as gm
from toolkit.graph import dtypes

ops = gm.ops


@maker
def _unary(b: Builder, first: int, second: int, how: int) -> None:
    x = b.pick("float", first)
    b.put("float", (
        lambda: ops.neg(x), lambda: ops.neg(ops.neg(x)), lambda: ops.square(x), lambda: ops.sqrt(ops.abs(x)),
        lambda: ops.tanh(x), lambda: ops.relu(x), lambda: ops.exp(-ops.abs(x)), lambda: ops.reciprocal(x),
        lambda: ops.sign(x), lambda: ops.floor(x), lambda: ops.rsqrt(ops.abs(x) + 1.0), lambda: ops.sigmoid(x),
        lambda: ops.log(ops.abs(x) + 0.5), lambda: ops.relu6(x), lambda: gm.stop_gradient(x), lambda: ops.softplus(x),
        lambda: ops.zeros_like(x), lambda: ops.ones_like(x), lambda: gm.identity(x), lambda: ops.identity_n([x, x])[0],
        lambda: ops.cast(ops.cast(x, dtypes.float16), dtypes.float32), lambda: ops.round(x),
    )[how % 22]())  # fmt: skip


@maker
def _with_constant(b: Builder, first: int, second: int, how: int) -> None:
    x = b.pick("float", first)
    value = b.special(second)
    shape = ([], [3], [2, 3], [1, 3], [1], [2, 1])[(how >> 4) % 6]
    c = gm.constant(np.full(shape, value, np.float32))
    left, right = (x, c) if how & 1 else (c, x)
    op = ("AddV2", "Add", "Sub", "Mul", "RealDiv", "Div", "Maximum", "Minimum", "Pow", "DivNoNan", "MulNoNan",
          "FloorDiv", "SquaredDifference")[(how >> 8) % 13]  # fmt: skip
    if op in ("Pow",):
        left = ops.abs(left)
    b.put("float", ops.function(op)(left, right))


@maker
def _binary(b: Builder, first: int, second: int, how: int) -> None:
    x, y = b.pick("float", first), b.pick("float", second)
    b.put("float", (
        lambda: x + y, lambda: x - y, lambda: x * y, lambda: x / y, lambda: ops.add_n([x, y, x]), lambda: x - x,
        lambda: ops.maximum(x, y), lambda: ops.squared_difference(x, y), lambda: (x + y) + gm.constant(2.0),
        lambda: x * 2.0 * 4.0, lambda: (x + 1.0) + (y + 1.0), lambda: x * y + x * b.pick("float", how >> 5),
        lambda: ops.neg(x) + y, lambda: x - ops.neg(y), lambda: ops.add_n([x]), lambda: ops.add_n([x, x]),
    )[how % 16]())  # fmt: skip


@maker
def _moved(b: Builder, first: int, second: int, how: int) -> None:
    x = b.pick("float", first)
    b.put("float", (
        lambda: gm.reshape(gm.reshape(x, [3, 2]), [2, 3]), lambda: gm.transpose(gm.transpose(x, [1, 0]), [1, 0]),
        lambda: gm.squeeze(gm.expand_dims(x, 1), [1]), lambda: ops.cast(ops.cast(x, dtypes.float64), dtypes.float32),
        lambda: gm.concat([x[:, :1], x[:, 1:]], 1), lambda: ops.pad(x, [[0, 0], [0, 0]]), lambda: gm.tile(x, [1, 1]),
        lambda: gm.reverse(gm.reverse(x, [0]), [0]), lambda: gm.stack(gm.unstack(x, axis=0), axis=0),
        lambda: gm.split(gm.concat([x, x], 0), 2, 0)[how // 16 % 2], lambda: gm.reshape(x, gm.shape(x)),
        lambda: gm.gather(x, gm.constant([1, 0])), lambda: ops.top_kv2(x, 3)[0], lambda: gm.transpose(x, [0, 1]),
        lambda: gm.slice(x, [0, 0], [2, -1]), lambda: gm.broadcast_to(x[:1], [2, 3]),
    )[how % 16]())  # fmt: skip


@maker
def _product(b: Builder, first: int, second: int, how: int) -> None:
    x, y = b.pick("float", first), b.pick("float", second)
    w = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
    b.put("float", (
        lambda: ops.mat_mul(x, w), lambda: ops.mat_mul(gm.transpose(x, [1, 0]), w, transpose_a=True) + y[:, :],
        lambda: ops.mat_mul(ops.mat_mul(x, y, transpose_b=True), x), lambda: ops.bias_add(ops.mat_mul(x, w), w[0]),
        lambda: ops.relu(ops.bias_add(ops.mat_mul(x, w), w[1])),
        lambda: ops.mat_mul(ops.mat_mul(x, w), np.eye(3, dtype=np.float32)),
    )[how % 6]())  # fmt: skip


@maker
def _reduced(b: Builder, first: int, second: int, how: int) -> None:
    x, y = b.pick("float", first), b.pick("float", second)
    function = (ops.sum, ops.max, ops.mean, ops.min)[how % 4]
    axes = ([0], [1], [0, 1], [-1])[(how >> 2) % 4]
    b.put("float", y * 0.5 + function(x, gm.constant(axes), keep_dims=True))


@maker
def _chosen(b: Builder, first: int, second: int, how: int) -> None:
    x, y, flag = b.pick("float", first), b.pick("float", second), b.pick("bool", how)
    b.put("float", ops.select_v2(flag, x, y) if how % 2 else ops.select_v2(ops.less(x, y), x, y))


@maker
def _rows(b: Builder, first: int, second: int, how: int) -> None:
    u, x, i = b.pick("rows", first), b.pick("float", second), b.pick("int", how)
    sizes = gm.shape(u)
    match how % 9:
        case 0:
            b.put("rows", ops.tanh(u) + x[:1])
        case 1:
            b.put("rows", gm.concat([u, x], 0)[: 4 + how % 3])
        case 2:
            b.put("int", sizes[0] + sizes[1] * gm.size(x))
        case 3:
            b.put("rows", ops.fill(gm.stack([sizes[0], gm.constant(3)]), x[0, 0]))
        case 4:
            b.put("rows", gm.reshape(gm.reshape(u, [-1]), gm.stack([-1, sizes[1]])))
        case 5:
            b.put("float", x + gm.reduce_sum(u, axis=0, keepdims=True))
        case 6:
            b.put("int", gm.rank(u) * i + gm.size(x))
        case 7:
            b.put("rows", gm.gather(u, gm.range(sizes[0])))
        case _:
            b.put("rows", gm.zeros_like(u) + ops.cast(sizes[0], dtypes.float32))


@maker
def _integers(b: Builder, first: int, second: int, how: int) -> None:
    i, j = b.pick("int", first), b.pick("int", second)
    made = (
        lambda: i + j, lambda: i - j, lambda: i * 1, lambda: i + 0, lambda: i * j, lambda: ops.floor_div(i, 3),
        lambda: ops.floor_mod(i, 5), lambda: ops.bitwise_and(i, 6), lambda: ops.neg(i), lambda: i * 0,
        lambda: ops.left_shift(i, 1), lambda: ops.truncate_div(i, 2), lambda: ops.floor_div(i, 1), lambda: i - i,
        lambda: ops.cast(ops.cast(i, dtypes.int64), dtypes.int32), lambda: ops.bitwise_xor(i, i),
    )[how % 16]()  # fmt: skip
    b.put("int", ops.floor_mod(made, 97))


@maker
def _longs(b: Builder, first: int, second: int, how: int) -> None:
    k, m, i = b.pick("long", first), b.pick("long", second), b.pick("int", how)
    b.put("long", (
        lambda: k + m, lambda: ops.cumsum(k, 0), lambda: k * ops.cast(i, dtypes.int64), lambda: gm.reverse(k, [0]),
        lambda: ops.minimum(k, m) % 10, lambda: ops.arg_max(b.pick("float", how), 0, output_type=dtypes.int64),
        lambda: gm.gather(k, ops.floor_mod(m, 3)), lambda: ops.left_shift(k % 5, gm.constant(1, dtypes.int64)),
    )[how % 8]())  # fmt: skip


@maker
def _flags(b: Builder, first: int, second: int, how: int) -> None:
    p, q, i, j = b.pick("bool", first), b.pick("bool", second), b.pick("int", first), b.pick("int", second)
    x, y = b.pick("float", first), b.pick("float", second)
    b.put("bool", (
        lambda: ops.logical_and(p, q), lambda: ops.logical_or(p, ops.logical_not(q)), lambda: ops.less(i, j),
        lambda: ops.logical_not(ops.less(i, j)), lambda: ops.equal(i, i), lambda: ops.all(ops.is_finite(x), [0, 1]),
        lambda: ops.any(ops.greater(x, y), [0, 1]), lambda: ops.logical_not(ops.logical_not(p)),
        lambda: ops.logical_and(p, True), lambda: ops.logical_or(q, False), lambda: ops.not_equal(i, j),
        lambda: gm.constant(bool(how % 3)),
        lambda: ops.all(ops.equal(b.pick("text", first), b.pick("text", second)), [0]),
    )[how % 13]())  # fmt: skip


@maker
def _texts(b: Builder, first: int, second: int, how: int) -> None:
    s, t, i = b.pick("text", first), b.pick("text", second), b.pick("int", how)
    if how % 8 == 6:
        b.put("int", ops.sum(ops.string_length(s), [0]))
    elif how % 8 == 7:
        b.put("long", gm.concat([ops.string_to_hash_bucket_fast(s, 100), gm.constant([7], dtypes.int64)], 0))
    else:
        b.put("text", (
            lambda: ops.substr(ops.string_join([s, t], separator="-"), 0, 12), lambda: ops.string_upper(s),
            lambda: ops.substr(ops.string_join([s, gm.constant(["", "x"])]), 0, 9),
            lambda: ops.fill([2], ops.as_string(i)), lambda: ops.regex_replace(s, "a+", "b"),
            lambda: gm.stack([t[0], s[1]]),
        )[how % 8]())  # fmt: skip


@maker
def _doubles(b: Builder, first: int, second: int, how: int) -> None:
    d, e, x = b.pick("double", first), b.pick("double", second), b.pick("float", how)
    match how % 5:
        case 0:
            b.put("double", d + ops.cast(x, dtypes.float64))
        case 1:
            b.put("float", ops.cast(d, dtypes.float32))
        case 2:
            b.put("double", d * e - d)
        case 3:
            b.put("double", ops.cast(ops.cast(d, dtypes.float32), dtypes.float64))
        case _:
            b.put("double", ops.tanh(d) / 1.0)


@maker
def _constants(b: Builder, first: int, second: int, how: int) -> None:
    value = gm.constant(np.full([2, 3], b.special(first), np.float32))
    made = ops.tanh(value) + gm.constant(np.float32(second % 4))
    b.put("float", (made * made, gm.fill([2, 3], 0.5) + made, gm.reshape(gm.range(0.0, 6.0, 1.0), [2, 3]))[how % 3])


@maker
def _waiting(b: Builder, first: int, second: int, how: int) -> None:
    """Control edges among what has no effects."""
    x, y = b.pick("float", first), b.pick("float", second)
    with gm.control_dependencies([y.op, b.pick("text", how).op]):
        nothing = ops.no_op()
    with gm.control_dependencies([nothing, *([x.op] if how % 2 else [])]):
        b.put("float", ops.tanh(x) if how % 3 else gm.identity(x))


@maker
def _twice(b: Builder, first: int, second: int, how: int) -> None:
    """The same computed twice, in either order."""
    x, y = b.pick("float", first), b.pick("float", second)
    function = (ops.add_v2, ops.mul, ops.maximum)[how % 3]
    b.put("float", ops.sub(ops.tanh(function(x, y)), ops.tanh(function(y, x) if how % 2 else function(x, y))))
