"""Small TensorFlow 1 programs that run against TensorFlow and against our client, for node-by-node comparison.

A program takes a namespace with TensorFlow's names (`tf_namespace`, `our_namespace`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np


@contextmanager
def tf1_semantics(tf: Any) -> Iterator[None]:
    """Reference variables and control flow of TensorFlow 1, whatever was set before."""
    from tensorflow.python.ops import control_flow_util

    v1 = tf.compat.v1
    resource, flow = v1.resource_variables_enabled(), control_flow_util.ENABLE_CONTROL_FLOW_V2
    v1.disable_resource_variables()
    control_flow_util.ENABLE_CONTROL_FLOW_V2 = False
    try:
        yield
    finally:
        control_flow_util.ENABLE_CONTROL_FLOW_V2 = flow
        if resource:
            v1.enable_resource_variables()


def tf_namespace(tf: Any) -> Any:
    v1 = tf.compat.v1
    names = """
        placeholder constant get_variable Variable variable_scope name_scope device control_dependencies
        colocate_with matmul reduce_mean reduce_sum reduce_max square sqrt identity reshape concat stack unstack
        split transpose zeros ones zeros_like ones_like one_hot gather where expand_dims squeeze tile pad cast argmax
        random_normal random_uniform truncated_normal set_random_seed global_variables_initializer group
        gradients AUTO_REUSE shape size rank fill range add_n equal reduce_logsumexp trainable_variables
        global_variables get_default_graph placeholder_with_default boolean_mask assign clip_by_global_norm
    """.split()  # noqa: SIM905
    space = SimpleNamespace(**{name: getattr(v1, name) for name in names})
    space.nn = v1.nn
    space.train = v1.train
    space.float32, space.int32, space.int64 = tf.float32, tf.int32, tf.int64
    space.summary = v1.summary
    space.zeros_initializer = v1.zeros_initializer
    space.constant_initializer = v1.constant_initializer
    space.cond = v1.cond
    space.while_loop = v1.while_loop
    return space


def our_namespace() -> Any:
    from toolkit import client as gm
    from toolkit.client.variables import initializers

    return _Ours(
        gm,
        {
            "AdamOptimizer": gm.train.Adam,
            "GradientDescentOptimizer": gm.train.GradientDescent,
            "MomentumOptimizer": gm.train.Momentum,
            "RMSPropOptimizer": gm.train.RMSProp,
            "AdagradOptimizer": gm.train.Adagrad,
            "FtrlOptimizer": gm.train.Ftrl,
            "AdadeltaOptimizer": gm.train.Adadelta,
        },
        initializers,
    )


class _Ours:
    def __init__(self, gm: Any, optimizers: dict[str, Any], initializers: Any):
        self._gm = gm
        self.nn = gm
        self.train = _Over(gm.train, optimizers)
        self.gradients = gm.grad
        self.zeros_initializer = initializers.Zeros
        self.constant_initializer = initializers.Constant

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gm, name)

    def assign(self, variable: Any, value: Any, name: str | None = None) -> Any:
        return variable.assign(value, use_locking=True, name=name)


class _Over:
    def __init__(self, base: Any, names: dict[str, Any]):
        self._base = base
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)


# -- programs -----------------------------------------------------------------------------------------------------


def operators(t: Any) -> None:
    x = t.placeholder(t.float32, [None, 3], name="x")
    y = t.placeholder(t.float32, [None, 3], name="y")
    i = t.placeholder(t.int32, [4], name="i")
    _ = x + y, x + 1.0, 2 * x, x - y, 1 - x, x / y, x / 2, x // 2.0, x % y, x**2, -x, abs(x), i / 2, i // 2, i % 3
    _ = x < y, x > 0.0, x <= y, x >= 1, (x < y) & (x > 0.0), (x < y) | (x > y), ~(x < y), i & 1, i | 2, i ^ 3
    _ = x @ np.ones((3, 2), np.float32)


def indexing(t: Any) -> None:
    x = t.placeholder(t.float32, [4, 5, 6], name="x")
    k = t.placeholder(t.int32, [], name="k")
    _ = x[0], x[1:3], x[:, 2], x[..., 0], x[:, None, 1:], x[-1], x[::2], x[k], x[k : k + 2, 0], x[::-1]


def scopes(t: Any) -> None:
    with t.name_scope("outer") as outer:
        t.constant(1.0, name="a")
        t.constant(1.0, name="a")
        with t.name_scope("inner"):
            t.constant([1.0, 2.0])
            t.constant(1, name="A")
        with t.name_scope("inner"):
            t.constant(2)
        with t.name_scope(None):
            t.constant(3, name="root")
    with t.name_scope(outer):
        t.constant(1.0, name="again")
    with t.name_scope("outer"):
        t.constant(1.0, name="other")
    t.constant(1.0, name="outer")
    t.constant(1.0, name="outer/a")


def constants(t: Any) -> None:
    t.constant(1)
    t.constant(2.5)
    t.constant(True)
    t.constant("text")
    t.constant([1, 2, 3])
    t.constant([[1.0, 2.0], [3.0, 4.0]])
    t.constant(np.arange(6.0).reshape(2, 3))
    t.constant(7, t.float32)
    t.constant(0.0, shape=[2, 3])
    t.constant(2**40)
    t.constant([], t.float32)
    t.constant(["a", "bc"])
    t.constant(np.float64(3))
    t.constant([True, False])
    t.constant(1 + 2j)


def shapes(t: Any) -> None:
    x = t.placeholder(t.float32, [None, 3], name="x")
    s = t.placeholder(t.float32, [2, 3], name="s")
    u = t.placeholder(t.float32, None, name="u")
    for value in (x, s, u):
        t.shape(value)
        t.size(value)
        t.rank(value)
        t.zeros_like(value)
        t.ones_like(value)
        t.transpose(value)
        t.reduce_sum(value)
    t.zeros([2, 2])
    t.zeros([40, 50])
    t.ones([3], t.int32)
    t.fill([2], 3.0)
    t.reshape(x, [-1])
    t.reshape(x, t.stack([t.shape(x)[0], 1, 3]))


def arrays(t: Any) -> None:
    x = t.placeholder(t.float32, [4, 3], name="x")
    t.concat([x, x], 0)
    t.concat([x], 1)
    t.stack([x, x], 1)
    t.unstack(x)
    t.split(x, 2)
    t.split(x, [1, 2], 1)
    t.expand_dims(x, -1)
    t.squeeze(t.expand_dims(x, 0), [0])
    t.tile(x, [2, 1])
    t.pad(x, [[1, 1], [0, 2]])
    t.cast(x, t.int32)
    t.cast(x, t.float32)
    t.argmax(x, 1)
    t.one_hot([0, 2], 3)
    t.transpose(x, [1, 0])
    t.reduce_mean(x, 1)
    t.reduce_mean(x, [0, 1])
    t.reduce_max(x, -1)
    t.range(5)
    t.range(1, 10, 2)
    t.add_n([x, x, x])
    t.identity(x, name="same")
    t.placeholder_with_default([1.0, 2.0], [2])


def network(t: Any) -> None:
    x = t.placeholder(t.float32, [None, 8, 8, 1], name="x")
    w = t.placeholder(t.float32, [3, 3, 1, 4], name="w")
    b = t.placeholder(t.float32, [4], name="b")
    h = t.nn.relu(t.nn.bias_add(t.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME"), b))
    h = t.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    h = t.nn.avg_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    flat = t.reshape(h, [-1, 16])
    t.nn.softmax(flat)
    t.nn.log_softmax(flat)
    labels = t.placeholder(t.int64, [None], name="labels")
    t.reduce_mean(t.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=flat), name="loss")
    t.nn.dropout(flat, rate=0.25)
    t.nn.l2_loss(flat)
    t.nn.moments(flat, [0])
    t.nn.sigmoid_cross_entropy_with_logits(labels=flat, logits=flat)
    t.nn.relu6(t.nn.elu(t.nn.selu(t.nn.softplus(flat))))
    t.nn.leaky_relu(flat)


def ref_variables(t: Any) -> None:
    v = t.Variable(1.0, name="v")
    t.Variable([1, 2], trainable=False)
    u = t.get_variable("u", [3, 4])
    z = t.get_variable("z", [4], initializer=t.zeros_initializer())
    t.get_variable("c", [2], initializer=t.constant_initializer(3.0))
    t.get_variable("big", [50, 50], initializer=t.zeros_initializer())
    t.get_variable("n", [2], t.int32)
    _ = t.matmul(t.ones([2, 3]), u) + z
    _ = v * 2.0
    t.assign(v, 3.0)
    v.assign_add(1.0)
    t.global_variables_initializer()


def random_variables(t: Any) -> None:
    t.set_random_seed(5)
    t.Variable(t.random_normal([2, 3]))
    t.Variable(t.truncated_normal([2, 3], stddev=0.1, seed=3))
    t.Variable(t.random_uniform([3], -1.0, 1.0), name="r")
    t.get_variable("g", [2, 2])
    t.random_uniform([4])
    t.random_uniform([4], 0, 10, t.int32)


def variable_scopes(t: Any) -> None:
    with t.variable_scope("a"):
        t.get_variable("v", [1])
        with t.variable_scope("b") as b:
            t.get_variable("v", [1])
            t.constant(1.0)
    with t.variable_scope("a", reuse=True):
        t.get_variable("v", [1])
        t.constant(1.0)
    with t.variable_scope(b):
        t.get_variable("w", [1])
        t.constant(2.0)
    with t.variable_scope("a", reuse=t.AUTO_REUSE):
        t.get_variable("v", [1])
        t.get_variable("x", [1])
    for _ in range(2):
        with t.variable_scope(None, "layer"):
            t.get_variable("k", [1])
    with t.variable_scope("l2", initializer=t.constant_initializer(0.5)):
        t.get_variable("k", [2])


def devices(t: Any) -> None:
    with t.device("/job:worker/task:1"):
        t.constant(1, name="a")
        with t.device("/gpu:0"):
            c = t.constant(1, name="b")
        with t.device("/job:ps"):
            t.constant(1, name="c")
        with t.device(None):
            t.constant(1, name="d")
        with t.device(lambda op: "/device:CPU:3" if op.type == "Const" else ""):
            t.constant(1, name="e")
            t.placeholder(t.float32, name="p")
        with t.colocate_with(c):
            t.constant(1, name="f")
    with t.device("/device:CPU:0"):
        v = t.get_variable("v", [2])
    t.assign(v, [1.0, 2.0])


def control(t: Any) -> None:
    a = t.constant(1, name="a")
    b = t.constant(2, name="b")
    with t.control_dependencies([a]):
        c = t.identity(b, name="c")
        t.identity(c, name="d")
        with t.control_dependencies([b.op]):
            t.identity(a, name="e")
            t.constant(1, name="f")
        with t.control_dependencies(None):
            t.identity(b, name="g")
    t.group(a, b, name="both") if t.group.__module__.startswith("tensorflow") else t.group([a, b], name="both")


def sgd(t: Any) -> None:
    v = t.get_variable("v", [3])
    w = t.get_variable("w", [3])
    loss = t.reduce_sum(v * w)
    t.train.GradientDescentOptimizer(0.1).minimize(loss)


def adam(t: Any) -> None:
    v = t.get_variable("v", [3])
    with t.variable_scope("s"):
        w = t.get_variable("w", [3])
    loss = t.reduce_sum(v * w)
    step = t.train.get_or_create_global_step()
    t.train.AdamOptimizer(0.1).minimize(loss, step, name="train")


def momentum(t: Any) -> None:
    v = t.get_variable("v", [3])
    t.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True).minimize(t.reduce_sum(v * v))
    t.train.AdagradOptimizer(0.1).minimize(t.reduce_sum(v * v))
    t.train.RMSPropOptimizer(0.1).minimize(t.reduce_sum(v * v))
    t.train.AdadeltaOptimizer(0.1).minimize(t.reduce_sum(v * v))


def savers(t: Any) -> None:
    t.get_variable("v", [3])
    with t.device("/job:ps/task:0"):
        t.get_variable("w", [3])
    t.train.Saver()
    t.train.Saver(sharded=True)
    t.train.Saver({"other": t.global_variables()[0]}, name="mine")


def conditionals(t: Any) -> None:
    x = t.placeholder(t.float32, [], name="x")
    y = t.placeholder(t.float32, [], name="y")
    t.cond(x > y, lambda: x * 2.0, lambda: y)
    t.cond(x > y, lambda: [t.square(x), y], lambda: [x, y + t.constant(1.0)], name="second")
    t.cond(x > 0.0, lambda: t.cond(y > 0.0, lambda: x, lambda: y), lambda: t.constant(1.0))


def loops(t: Any) -> None:
    x = t.placeholder(t.float32, [], name="x")
    t.while_loop(lambda i: i < 10, lambda i: i + 1, [t.constant(0)])
    t.while_loop(lambda i, a: i < 10, lambda i, a: (i + 1, a * x), [t.constant(0), t.constant(1.0)])
    t.while_loop(
        lambda i, a: i < 3,
        lambda i, a: (i + 1, t.while_loop(lambda b: b < 100.0, lambda b: b * x + a, [a], name="inner")),
        [t.constant(0), x],
        parallel_iterations=4,
    )


def schedules(t: Any) -> None:
    step = t.train.get_or_create_global_step()
    t.train.exponential_decay(0.1, step, 100, 0.9)
    t.train.exponential_decay(0.1, step, 100, 0.9, staircase=True)


def summaries(t: Any) -> None:
    x = t.placeholder(t.float32, [3], name="x")
    with t.name_scope("s"):
        t.summary.scalar("loss", t.reduce_sum(x))
        t.summary.histogram("x values", x)
    t.summary.image("pictures", t.reshape(x, [1, 3, 1, 1]))
    t.summary.merge_all()


PROGRAMS = [
    operators, indexing, scopes, constants, shapes, arrays, network, ref_variables, random_variables, variable_scopes,
    devices, control, sgd, adam, momentum, savers, conditionals, loops, schedules, summaries,
]  # fmt: skip

#: programs whose nodes are the same but added in another order
OTHER_ORDER: set[str] = set()
