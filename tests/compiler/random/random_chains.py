"""Random graphs of elementwise operations, parts, sums, branches and loops, made by TensorFlow from small numbers."""

# functions over tensors, which have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation
from tests.runtime.oracle import our_graph
from toolkit.runtime.session import Session

Piece = tuple[int, int, int, int]
_SHAPES = [(4, 6), (6,), (4, 1), (), (1, 6), (3, 4, 6), (24,), (1, 1), (4, 6, 1)]
_TYPES = ["float32", "float32", "float64", "int32", "int64", "bool"]


def array(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(shape) < 0.5
    values = random.normal(0, 2, shape)
    return (values * 5).astype(dtype) if dtype.startswith("int") else values.astype(dtype)


class Chains:
    """A graph made of pieces: a kind, two tensors of the pool, and how."""

    def __init__(self, tf: ModuleType, pieces: list[Piece]):
        self.v1 = v1 = tf.compat.v1
        self.pool: list[Any] = []
        self.feeds: dict[str, Any] = {}
        self.variables: list[Any] = []
        self.effects: list[Any] = []
        self.tf_graph = tf.Graph()
        with self.tf_graph.as_default():
            for index, shape in enumerate(_SHAPES):
                dtype = _TYPES[index % len(_TYPES)]
                self.pool.append(v1.placeholder(dtype, list(shape), name=f"x{index}"))
                self.feeds[f"x{index}:0"] = array(shape, dtype, index)
            self.pool.append(v1.placeholder("float32", [4, 6], name="flat"))
            self.feeds["flat:0"] = array((4, 6), "float32", 77)
            self.variable = v1.get_variable("v", [4, 6], initializer=v1.ones_initializer(), use_resource=True)
            for piece in pieces:
                self.add(*piece)
            own = self.pool[len(_SHAPES) + 1 :]
            wanted = [*own[-4:], *own[:: max(1, len(own) // 4)]]
            with v1.control_dependencies(self.effects):
                self.fetches = [v1.identity(tensor, name=f"out{i}").name for i, tensor in enumerate(wanted)]
                self.fetches.append(v1.identity(self.variable.read_value(), name="last").name)
            self.init = self.variable.initializer.name

    def add(self, kind: int, first: int, second: int, how: int) -> None:
        """Add what a piece says."""
        made = self._piece(kind, first, second, how)
        self.pool += made if isinstance(made, list) else [made]

    def _piece(self, kind: int, first: int, second: int, how: int) -> Any:
        x = self.pool[first % len(self.pool)]
        makers = (self._function, self._two, self._two, self._compare, self._choose, self._cast, self._part,
                  self._constant, self._rename, self._branch, self._variable, self._sum, self._loop)  # fmt: skip
        return makers[kind % len(makers)](x, self.pool[second % len(self.pool)], how)

    def _like(self, x: Any, how: int) -> Any:
        """A tensor of the same type that broadcasts with x."""
        fitting = [y for y in self.pool if y.dtype == x.dtype and _fits(x.shape.as_list(), y.shape.as_list())]
        return fitting[how % len(fitting)]

    def _function(self, x: Any, y: Any, how: int) -> Any:
        v1 = self.v1
        if x.dtype == v1.bool:
            return v1.logical_not(x)
        if not x.dtype.is_floating:
            return (v1.negative, v1.abs, v1.square)[how % 3](v1.clip_by_value(x, -900, 900))
        made = (
            v1.tanh, v1.sigmoid, v1.exp, v1.nn.relu, v1.nn.elu, v1.nn.softplus, v1.abs, v1.negative, v1.floor, v1.sign,
            v1.nn.relu6, v1.nn.leaky_relu, v1.nn.selu, lambda t: v1.sqrt(v1.abs(t)), lambda t: v1.log1p(v1.abs(t)),
            lambda t: v1.expm1(v1.tanh(t)), v1.rint, lambda t: v1.math.rsqrt(v1.square(t) + 0.5), v1.ceil,
            lambda t: v1.log(v1.square(t) + 0.1),
        )[how % 20](v1.clip_by_value(x, -9.0, 9.0))  # fmt: skip
        # few digits: what is rounded, compared and chosen later must not hang on the last ones
        return v1.rint(made * 64.0) * (1 / 64)

    def _two(self, x: Any, y: Any, how: int) -> Any:
        v1, y = self.v1, self._like(x, how >> 3)
        if x.dtype == v1.bool:
            return (v1.logical_and, v1.logical_or)[how % 2](x, y)
        found = (v1.add, v1.subtract, v1.multiply, v1.maximum, v1.minimum, v1.squared_difference)[how % 6]
        if x.dtype.is_floating and how % 7 == 0:
            return v1.div_no_nan(x, v1.floor(y))
        return found(v1.clip_by_value(x, -90, 90), v1.clip_by_value(y, -90, 90))

    def _compare(self, x: Any, y: Any, how: int) -> Any:
        v1, y = self.v1, self._like(x, how >> 3)
        if x.dtype == v1.bool:
            return v1.logical_or(x, y)
        return (v1.less, v1.less_equal, v1.greater, v1.greater_equal, v1.equal, v1.not_equal)[how % 6](x, y)

    def _choose(self, x: Any, y: Any, how: int) -> Any:
        v1 = self.v1
        flags = [t for t in self.pool if t.dtype == v1.bool and _fits(x.shape.as_list(), t.shape.as_list())]
        if not flags or x.dtype == v1.bool:
            return self._function(x, y, how)
        flag, other = flags[how % len(flags)], self._like(x, how >> 4)
        fits = _fits(x.shape.as_list(), other.shape.as_list(), flag.shape.as_list())
        return v1.where_v2(flag, x, other if fits else x * x if x.dtype.is_floating else -x)

    def _cast(self, x: Any, y: Any, how: int) -> Any:
        v1, target = self.v1, ("float32", "float64", "int32", "int64")[how % 4]
        if x.dtype.is_floating and target.startswith("int"):
            x = v1.clip_by_value(x, -1000, 1000)
        return v1.cast(x, target)

    def _part(self, x: Any, y: Any, how: int) -> Any:
        v1, shape = self.v1, x.shape.as_list()
        if not shape or min(shape) == 0:
            return self._function(x, y, how)
        axis, size = how % len(shape), shape[how % len(shape)]
        before = (slice(None),) * axis
        choice = (how >> 2) % 8
        if choice == 0 and size % 2 == 0:
            return v1.split(x, 2, axis=axis)
        if choice == 1 and size > 1:
            return v1.split(x, [1, size - 1], axis=axis)
        if choice == 2 and size <= 6:
            return v1.unstack(x, axis=axis)
        if choice == 3:
            return x[(*before, slice(None, None, -1))]
        if choice == 4:
            return x[(*before, how % size)]
        if choice == 5 and len(shape) < 4:
            return x[(..., v1.newaxis, slice(0, max(1, shape[-1] - 1)))]
        if choice == 6:
            return x[(*before, slice(how % size, None, 2))]
        return v1.slice(x, [0] * len(shape), [max(1, each - (how & 1)) for each in shape])

    def _constant(self, x: Any, y: Any, how: int) -> Any:
        shape = x.shape.as_list()
        kept = [size if (how >> axis) & 1 else 1 for axis, size in enumerate(shape)][how % (len(shape) + 1) :]
        return self._two_of(x, self.v1.constant(array(tuple(kept), x.dtype.name, how)), how >> 4)

    def _two_of(self, x: Any, y: Any, how: int) -> Any:
        v1 = self.v1
        if x.dtype == v1.bool:
            return (v1.logical_and, v1.logical_or)[how % 2](y, x)
        return (v1.add, v1.subtract, v1.multiply, v1.maximum)[how % 4](y, v1.clip_by_value(x, -900, 900))

    def _rename(self, x: Any, y: Any, how: int) -> Any:
        v1, shape = self.v1, x.shape.as_list()
        if len(shape) > 2:
            return v1.reshape(x, [-1])
        return (lambda: v1.expand_dims(x, how % (len(shape) + 1)), lambda: v1.reshape(x, [-1]))[how % 2]()

    def _branch(self, x: Any, y: Any, how: int) -> Any:
        v1 = self.v1
        flag = v1.reduce_any([v1.reduce_sum(v1.cast(self.pool[how % len(_SHAPES)], "float64")) > 0.0])
        mark = len(self.pool)
        made = v1.cond(flag, lambda: self.same(x, how >> 2), lambda: self.same(self.same(x, how >> 5), how >> 3))
        del self.pool[mark:]
        return made

    def _loop(self, x: Any, y: Any, how: int) -> Any:
        v1 = self.v1
        mark = len(self.pool)
        made = v1.while_loop(
            lambda i, _: i < how % 4, lambda i, a: (i + 1, self.same(self.same(a, how >> 2), how)), [v1.constant(0), x]
        )[1]
        del self.pool[mark:]
        return made

    def same(self, x: Any, how: int) -> Any:
        """Something of x's shape and type."""
        made = (self._function, self._two, self._constant)[how % 3](x, x, how >> 2)
        return made if made.shape == x.shape and made.dtype == x.dtype else self._function(x, x, how)

    def _variable(self, x: Any, y: Any, how: int) -> Any:
        """Read, change, read: each waits for the last."""
        v1 = self.v1
        with v1.control_dependencies(self.effects[-1:]):
            before = v1.rint(v1.tanh(self.variable.read_value()) * 64.0) * (1 / 64)
        fitting = [t for t in self.pool if t.dtype == v1.float32 and t.shape == before.shape]
        with v1.control_dependencies([before]):
            change = v1.clip_by_value(fitting[how % len(fitting)], -3.0, 3.0)
            update = (self.variable.assign, self.variable.assign_add, self.variable.assign_sub)[how % 3](change)
        self.effects.append(update.op)
        with v1.control_dependencies([update]):
            after = self.variable.read_value() * 0.5
        self.effects.append(after.op)
        return [before, after]

    def _sum(self, x: Any, y: Any, how: int) -> Any:
        v1, shape = self.v1, x.shape.as_list()
        if not x.dtype.is_floating or not shape:
            return self._function(x, y, how)
        axes = sorted({how % len(shape), (how >> 3) % len(shape)})
        made = (v1.reduce_sum, v1.reduce_mean)[how % 2](v1.clip_by_value(x, -9.0, 9.0), axes, keepdims=how % 5 < 3)
        return v1.rint(made * 64.0) * (1 / 64)

    def check(self, **session: Any) -> None:
        """All agree."""
        check_native(self.tf_graph, self.fetches, [self.feeds] * 2, [self.init], **session)


def check_native(tf_graph: Any, fetches: list[str], steps: list[dict[str, Any]], before: list[str],
                 **session: Any) -> None:  # fmt: skip
    """TensorFlow, us as machine code, us without: some steps each of one session."""
    import tensorflow

    v1 = tensorflow.compat.v1
    graph = our_graph(tf_graph)
    config = v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with v1.Session(graph=tf_graph, config=config) as theirs:
        for name in before:
            theirs.run(name)
        wanted = [value for feeds in steps for value in theirs.run(fetches, feeds)]

    def work(running: Session) -> list[Any]:
        for name in before:
            running.run(name)
        return [value for feeds in steps for value in running.run(fetches, feeds)]

    ours: list[list[Any]] = []
    for native in ("on", "off"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GRAPHMILL_NATIVE", native)
            with Session(graph, **session) as running:
                ours.append(work(running))
    names = [f"{name} of step {step}" for step in range(len(steps)) for name in fetches]
    perturbation.assert_agree([*ours, wanted], lambda: perturbation.of_work(graph, work), names)


def _fits(*shapes: list[int]) -> bool:
    try:
        return len(np.broadcast_shapes(*map(tuple, shapes))) <= 4
    except ValueError:
        return False
