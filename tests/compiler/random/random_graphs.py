"""Random graphs, built from a list of small tuples of numbers so that hypothesis can shrink them."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.compiler.operations.rows import numbers, positive
from toolkit import client as gm

ops = gm.ops
#: what to do, with which tensors, how
Piece = tuple[int, int, int, int]
Maker = Callable[["Builder", Any, Any, int], Any]
_makers: list[Maker] = []
_INPUTS = {"image": (2, 12, 13, 16), "odd": (3, 11, 17, 9), "rows": (64, 65), "square": (64, 64), "small": (5, 7),
           "steps": (4, 20, 64), "number": ()}  # fmt: skip
_UNARY = (
    ops.relu, ops.relu6, ops.elu, ops.sigmoid, ops.tanh, ops.softplus, ops.neg, ops.abs, ops.leaky_relu,
    lambda x: ops.square(ops.tanh(x)), lambda x: ops.sqrt(ops.abs(x) + 0.1), lambda x: ops.rsqrt(ops.abs(x) + 0.5),
    lambda x: ops.exp(-ops.abs(x)), lambda x: x * ops.sigmoid(x), lambda x: x * ops.relu6(x + 3.0) * (1 / 6),
    lambda x: 0.5 * x * (1.0 + ops.erf(x * float(np.sqrt(0.5)))),
)  # fmt: skip


def maker(function: Maker) -> Maker:
    """Register what one kind of piece adds: (builder, first tensor, second tensor, how) -> tensor or None."""
    _makers.append(function)
    return function


@dataclass
class Builder:
    """A graph while it is built.

    Attributes:
        pool: the tensors that there are.
        effects: operations that change variables; the last one must have run before the next reads or writes.
    """

    resource: bool
    pool: list[Any] = field(default_factory=list[Any])
    feeds: dict[str, Any] = field(default_factory=dict[str, Any])
    variables: list[Any] = field(default_factory=list[Any])
    effects: list[Any] = field(default_factory=list[Any])
    scalars: list[Any] = field(default_factory=list[Any])
    depth: int = 0

    def feed(self, name: str) -> Any:
        """A placeholder by name."""
        return next(tensor for tensor in [*self.scalars, *self.pool] if tensor.op.name == name)

    def pick(self, number: int) -> Any:
        return self.pool[number % len(self.pool)]

    def like(self, tensor: Any, number: int) -> Any:
        """A tensor of the same shape, itself if there is none."""
        same = [other for other in self.pool if other.shape == tensor.shape]
        return same[number % len(same)] if same else tensor

    def add(self, piece: Piece) -> None:
        """Add what a piece says; a function of the first tensor where that cannot be."""
        kind, first, second, how = piece
        x, y = self.pick(first), self.pick(second)
        made = _makers[kind % len(_makers)](self, x, y, how)
        self.pool.append(ops.tanh(x) if made is None else made)


def dims(tensor: Any) -> tuple[int, ...]:
    """A tensor's static shape."""
    return tuple(tensor.shape.as_list())


@maker
def _function(builder: Builder, x: Any, y: Any, how: int) -> Any:
    return _UNARY[how % len(_UNARY)](x)


@maker
def _two(builder: Builder, x: Any, y: Any, how: int) -> Any:
    y = builder.like(x, how)
    return (
        lambda: x + y, lambda: x - y, lambda: x * ops.tanh(y), lambda: y / (ops.abs(x) + 0.5),
        lambda: ops.maximum(x, y),
        lambda: ops.add_n([x, y, ops.tanh(y)]) * 0.3, lambda: ops.relu_grad(x, y),
        lambda: ops.tanh_grad(ops.tanh(x), y),
        lambda: ops.sigmoid_grad(ops.sigmoid(y), x), lambda: ops.squared_difference(ops.tanh(x), ops.tanh(y)),
    )[how % 10]()  # fmt: skip


@maker
def _broadcast(builder: Builder, x: Any, y: Any, how: int) -> Any:
    shape = dims(x)
    if not shape:
        return x * 0.5 + 0.25
    kept = [size if (how >> axis) & 1 else 1 for axis, size in enumerate(shape)]
    kept = kept[(how >> 8) % len(shape) :]
    c = positive(*kept, seed=how % 5)
    return (lambda: x * c, lambda: x + c, lambda: c - x, lambda: x / c, lambda: x - c, lambda: ops.tanh(x) * c + c)[
        how % 6
    ]()


@maker
def _broadcast_computed(builder: Builder, x: Any, y: Any, how: int) -> Any:
    if len(dims(x)) < 2:
        return None
    mean = ops.mean(x, [how % len(dims(x))], keep_dims=True)
    return (lambda: x - mean, lambda: mean * ops.tanh(x), lambda: mean - x, lambda: x / (ops.abs(mean) + 1.0))[
        how % 4
    ]()


@maker
def _convolution(builder: Builder, x: Any, y: Any, how: int) -> Any:
    shape = dims(x)
    if len(shape) != 4 or min(shape[1:3]) < 3:
        return None
    size, stride = (1, 1, 3, 2)[how % 4], (1, 1, 1, 2)[(how >> 2) % 4]
    padding, channels = ("SAME", "VALID")[(how >> 4) % 2], (shape[-1], 16)[(how >> 5) % 2]
    w = numbers(size, size, shape[-1], channels, seed=how % 3) / np.float32(size * np.sqrt(shape[-1]))
    if how % 11 == 0:
        w = gm.constant(w) + 0.0 * builder.feed("number")
    y = ops.conv2d(x, w, strides=[1, stride, stride, 1], padding=padding)
    return (
        lambda: y, lambda: ops.bias_add(y, numbers(channels)), lambda: ops.relu(y * positive(channels) + 0.1),
        lambda: ops.relu(y + builder.like(y, how >> 3)), lambda: y + ops.tanh(y) * 0.5,
    )[(how >> 6) % 5]()  # fmt: skip


@maker
def _depthwise(builder: Builder, x: Any, y: Any, how: int) -> Any:
    shape = dims(x)
    if len(shape) != 4 or min(shape[1:3]) < 3:
        return None
    stride = 1 + how % 2
    w = numbers(3, 3, shape[-1], 1, seed=how % 3) / np.float32(3)
    if how % 3 == 0:
        x = ops.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
    y = ops.depthwise_conv2d_native(x, w, strides=[1, stride, stride, 1], padding="VALID" if how % 3 == 0 else "SAME")
    return ops.relu6(y + 0.5) if how % 5 else y


@maker
def _pool(builder: Builder, x: Any, y: Any, how: int) -> Any:
    shape = dims(x)
    if len(shape) != 4 or min(shape[1:3]) < 3:
        return None
    window = {
        "ksize": [1, 3, 2, 1],
        "strides": [1, 1 + how % 2, 1 + (how >> 1) % 2, 1],
        "padding": ("SAME", "VALID")[how % 2],
    }
    if how % 7 == 0:
        x = ops.pad(ops.relu(x), [[0, 0], [1, 1], [1, 0], [0, 0]])
    return (ops.max_pool, ops.avg_pool)[(how >> 3) % 2](x, **window)


@maker
def _product(builder: Builder, x: Any, y: Any, how: int) -> Any:
    shape = dims(x)
    if len(shape) not in (2, 3):
        return None
    inner = shape[-1]
    if how % 3 == 0 and len(shape) == 2:
        return ops.mat_mul(x, ops.tanh(builder.like(x, how >> 2)), transpose_b=True) * float(1 / np.sqrt(inner))
    if how % 3 == 1 and len(shape) == 3:
        z = builder.like(x, how >> 2)
        return ops.batch_mat_mul_v2(x, z, adj_y=True) * float(1 / inner) + (0.5 if how % 2 else numbers(shape[1]))
    columns = (inner, 64, 65)[(how >> 3) % 3]
    w = numbers(inner, columns, seed=how % 3) / np.float32(np.sqrt(inner))
    y = ops.mat_mul(x, w) if len(shape) == 2 else ops.batch_mat_mul_v2(x, w)
    return (lambda: y, lambda: ops.relu(y + numbers(columns)), lambda: ops.tanh(y) + builder.like(y, how))[
        (how >> 5) % 3
    ]()


@maker
def _reduce(builder: Builder, x: Any, y: Any, how: int) -> Any:
    rank = len(dims(x))
    if not rank:
        return None
    axes = sorted({how % rank, (how >> 2) % rank})
    function = (ops.mean, ops.sum, ops.max)[(how >> 4) % 3]
    made = function(x, axes, keep_dims=bool((how >> 6) % 2))
    return ops.tanh(made * 0.1) if function is ops.sum else made


@maker
def _move(builder: Builder, x: Any, y: Any, how: int) -> Any:
    rank = len(dims(x))
    if rank < 2:
        return ops.reshape(x, [-1])
    order = list(np.random.default_rng(how).permutation(rank))
    return ops.transpose(x, np.array(order, np.int32))


@maker
def _rename(builder: Builder, x: Any, y: Any, how: int) -> Any:
    shape = dims(x)
    match how % 4:
        case 0:
            return ops.expand_dims(x, how % (len(shape) + 1)) if len(shape) < 5 else ops.reshape(x, [-1])
        case 1 if 1 in shape:
            return ops.squeeze(x, squeeze_dims=[shape.index(1)])
        case 2 if len(shape) > 2:
            return ops.reshape(x, [shape[0], -1])
        case _:
            same = [other for other in builder.pool if np.prod(dims(other)) == np.prod(shape)]
            return ops.reshape(x, list(dims(same[how % len(same)])) or np.zeros(0, np.int32))


@maker
def _join(builder: Builder, x: Any, y: Any, how: int) -> Any:
    shape = dims(x)
    if not shape or np.prod(shape) > 20_000:
        return None
    parts = [x, builder.like(x, how), x][: 2 + how % 2]
    return ops.concat_v2(parts, how % len(shape) - (len(shape) if how % 2 else 0))


@maker
def _parts(builder: Builder, x: Any, y: Any, how: int) -> Any:
    shape = dims(x)
    axis = how % len(shape) if shape else 0
    if not shape or shape[axis] < 4:
        return None
    if how % 3 and shape[axis] % 2 == 0:
        first, second = ops.split(axis, x, 2)
        builder.pool.append(second)
        return ops.relu(first) if how % 5 else first
    start = how % 3
    return x[(*(slice(None),) * axis, slice(start, shape[axis] - 1))]


@maker
def _softmax(builder: Builder, x: Any, y: Any, how: int) -> Any:
    if not dims(x):
        return None
    return ops.softmax(x) if how % 2 else ops.log_softmax(x) * 0.2


@maker
def _layer_norm(builder: Builder, x: Any, y: Any, how: int) -> Any:
    shape = dims(x)
    if len(shape) < 2 or shape[-1] < 4:
        return None
    mean = ops.mean(x, [-1], keep_dims=True)
    variance = ops.mean(ops.squared_difference(x, mean), [-1], keep_dims=True)
    scale = ops.rsqrt(variance + 0.1) * positive(shape[-1])
    return x * scale + (numbers(shape[-1]) - mean * scale)


@maker
def _batch_norm(builder: Builder, x: Any, y: Any, how: int) -> Any:
    shape = dims(x)
    if len(shape) != 4:
        return None
    c = shape[-1]
    return ops.fused_batch_norm_v3(x, positive(c), numbers(c), numbers(c), positive(c), is_training=False)[0]


@maker
def _branch(builder: Builder, x: Any, y: Any, how: int) -> Any:
    if builder.depth > 1:
        return None
    predicate = builder.feed("flag") if how % 2 else ops.less(builder.feed("count"), how % 4)
    if how % 5 == 0:
        predicate = ops.logical_not(predicate)

    def side(turns: int) -> Any:
        made = x
        builder.depth += 1
        mark = len(builder.pool)
        for turn in range(turns):
            made = _same_shape(builder, made, how + 7 * turn)
        del builder.pool[mark:]
        builder.depth -= 1
        return made

    return gm.cond(predicate, lambda: side(1 + how % 3), lambda: side((how >> 2) % 3))


@maker
def _loop(builder: Builder, x: Any, y: Any, how: int) -> Any:
    if builder.depth > 1:
        return None

    def body(i: Any, state: Any) -> Any:
        builder.depth += 1
        mark = len(builder.pool)
        made = _same_shape(builder, state, how)
        made = ops.tanh(_same_shape(builder, made, how >> 3) + 0.1 * x)
        if how % 6 == 0:
            inner = _branch(builder, made, y, how >> 2)
            made = made if inner is None else inner
        del builder.pool[mark:]
        builder.depth -= 1
        return i + 1, made

    limit = builder.feed("count") if how % 3 else gm.constant(2)
    return gm.while_loop(lambda i, state: ops.less(i, limit), body, [gm.constant(0), x])[1]


def _same_shape(builder: Builder, x: Any, how: int) -> Any:
    """Something of the shape of x, made from it."""
    made = _makers[how % len(_makers)](builder, x, x, how)
    if made is None or made.shape != x.shape:
        made = _UNARY[how % len(_UNARY)](x)
    return made


@maker
def _read(builder: Builder, x: Any, y: Any, how: int) -> Any:
    if builder.depth:
        return None
    with gm.control_dependencies(builder.effects[-1:]):
        value = builder.variables[how % len(builder.variables)].read_value()
        # the memory of a reference may change: it is used before the next write, which waits for this
        return ops.tanh(value) if how % 2 else ops.mat_mul(value, numbers(64, 64) / np.float32(8))


@maker
def _write(builder: Builder, x: Any, y: Any, how: int) -> Any:
    if builder.depth:
        return None
    variable = builder.variables[how % len(builder.variables)]
    square = [tensor for tensor in builder.pool if dims(tensor) == (64, 64)]
    delta = ops.tanh(square[(how >> 2) % len(square)]) * 0.1
    with gm.control_dependencies([tensor.op for tensor in builder.pool if tensor.op.type != "Placeholder"]):
        made = (variable.assign, variable.assign_add, variable.assign_sub)[(how >> 1) % 3](delta)
        builder.effects.append(made.op if hasattr(made, "op") else made)
    return _read(builder, x, y, how + 1)


class Graph:
    """A random graph.

    Attributes:
        graph: it.
        fetches: tensors, some of them in the middle, and the variables at the end.
        feeds: of the placeholders, and of one tensor in the middle.
        initializers: to be run first.
    """

    def __init__(self, pieces: list[Piece], *, resource: bool, fed: int | None, count: int, flag: bool):
        builder = Builder(resource)
        with gm.Graph().as_default() as self.graph:
            for name, shape in _INPUTS.items():
                builder.pool.append(gm.placeholder(gm.float32, list(shape), name=name))
                builder.feeds[f"{name}:0"] = numbers(*shape)
            builder.scalars = [gm.placeholder(gm.int32, [], name="count"), gm.placeholder(gm.bool, [], name="flag")]
            builder.feeds |= {"count:0": np.int32(count), "flag:0": np.bool_(flag)}
            for name in ("v", "w"):
                builder.variables.append(gm.get_variable(
                    name, [64, 64], initializer=gm.initializers.Constant(numbers(64, 64, seed=3)), use_resource=resource
                ))  # fmt: skip
            for piece in pieces:
                builder.add(piece)
            made = builder.pool[len(_INPUTS) :]
            with gm.control_dependencies(builder.effects):
                last = [variable.read_value() for variable in builder.variables]
            self.fetches = [*made[-3:], *made[:: max(1, len(made) // 5)], *last]
            self.initializers = [variable.initializer for variable in builder.variables]
        self.feeds = builder.feeds
        if fed is not None:
            tensor = made[fed % len(made)]
            self.feeds[tensor.name] = numbers(*dims(tensor), seed=9)
