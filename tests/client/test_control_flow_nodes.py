"""TensorArrays, loops over rows, loops, conditionals and their gradients: the nodes that TensorFlow makes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.client.client_programs import our_namespace, tf1_semantics, tf_namespace
from tests.client.node_descriptions import described
from toolkit import Session
from toolkit import client as gm
from toolkit.errors import GraphError, UsageError

_NAMES = ("map_fn", "scan", "foldl", "foldr", "while_loop", "cond", "case", "hessians", "custom_gradient", "Assert")


def _theirs(tf: ModuleType) -> Any:
    names = tf_namespace(tf)
    for name in _NAMES:
        setattr(names, name, getattr(tf.compat.v1, name))
    names.TensorArray = tf.TensorArray
    return names


def _ours() -> Any:
    base = our_namespace()
    return SimpleNamespace(
        **{name: getattr(gm, name) for name in (*_NAMES, "TensorArray")},
        **{
            name: getattr(base, name)
            for name in (
                "placeholder", "float32", "int32", "constant", "cast", "concat", "gradients", "ones", "reduce_sum",
                "sqrt", "square", "zeros", "get_variable", "matmul",
            )
        },
    )  # fmt: skip


def arrays(t: Any) -> None:
    a = t.TensorArray(t.float32, size=3, name="mine").write(0, [1.0, 2.0])
    a = a.write(1, t.constant([3.0, 4.0]))
    a.read(0)
    a = a.unstack(t.placeholder(t.float32, [3, 2], name="x"))
    c, d = a.stack(), a.gather([0, 1])
    a.size()
    a.concat()
    e = t.TensorArray(t.float32, size=0, dynamic_size=True, infer_shape=False, clear_after_read=False).write(0, 1.0)
    e.size()
    e.stack()
    e.identity()
    t.TensorArray(t.float32, 2, tensor_array_name="n", element_shape=[4]).unstack(t.zeros([2, 4])).close()
    t.gradients(c, [a.flow])
    s = t.TensorArray(t.float32, size=2).split(t.placeholder(t.float32, [4, 2], name="y"), [2, 2])
    t.gradients([s.concat()], [s.flow])
    s.grad("here").stack()
    del d


def maps(t: Any) -> None:
    x, y = t.placeholder(t.float32, [None, 3], name="x"), t.placeholder(t.float32, [4, 3], name="y")
    t.map_fn(lambda r: r * 2.0, x)
    t.map_fn(lambda r: r * 2.0 + 1.0, y)
    z = t.map_fn(
        lambda r: (r[0] + r[1], t.cast(t.reduce_sum(r[1]), t.int32)), (y, y), dtype=(t.float32, t.int32),
        parallel_iterations=4, name="two",
    )  # fmt: skip
    t.map_fn(lambda r: {"a": r["a"], "b": r["b"] * 2.0}, {"b": y, "a": y})
    t.gradients(z[0], [y])


def scans(t: Any) -> None:
    x, y = t.placeholder(t.float32, [None, 3], name="x"), t.placeholder(t.float32, [4, 3], name="y")
    t.scan(lambda a, r: a + r, x)
    z = t.scan(lambda a, r: a * r, y, initializer=t.zeros([3]))
    t.scan(lambda a, r: a * r, y, reverse=True)
    t.scan(lambda a, r: (a[0] + r, a[1] * 2), y, initializer=(t.zeros([3]), t.constant(1)))
    t.gradients(z, [y])


def folds(t: Any) -> None:
    x, y = t.placeholder(t.float32, [None, 3], name="x"), t.placeholder(t.float32, [4, 3], name="y")
    t.foldl(lambda a, r: a + r, x)
    t.foldl(lambda a, r: a + r, y, initializer=t.ones([3]))
    t.foldr(lambda a, r: a - r, y)
    t.foldr(lambda a, r: a - r, x, initializer=t.zeros([3]))


def loops(t: Any) -> None:
    x = t.placeholder(t.float32, [None, 2], name="x")
    t.while_loop(lambda v: t.reduce_sum(v) < 3, lambda v: v + 1.0, [x], maximum_iterations=5)
    t.while_loop(
        lambda v: t.reduce_sum(v) < 3, lambda v: [v + 1.0], [x], maximum_iterations=t.constant(7),
        return_same_structure=True,
    )  # fmt: skip
    t.while_loop(lambda v: t.reduce_sum(v) < 3, lambda v: [v + 1.0], [x], swap_memory=True, back_prop=False)
    t.while_loop(
        lambda v, d: t.reduce_sum(v) < 3, lambda v, d: (v + 1.0, {"a": d["b"], "b": d["a"]}), (x, {"a": x, "b": x})
    )
    _, a = t.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, t.cast(i, t.float32))), (0, t.TensorArray(t.float32, 3))
    )
    a.stack()


def conditionals(t: Any) -> None:
    x = t.placeholder(t.float32, [], name="x")
    t.cond(x > 0, lambda: {"p": x}, lambda: {"p": x * 2.0}, name="mappings")
    t.cond(x > 0, lambda: [x], lambda: [x * 2.0], strict=True)
    t.case([(x > 1.0, lambda: x), (x > 2.0, lambda: x * 2.0)], default=lambda: x * 3.0)
    t.case([(x > 1.0, lambda: x), (x > 2.0, lambda: x * 2.0)])
    t.case(OrderedDict([(x > 1.0, lambda: x), (x > 2.0, lambda: x * 2.0)]))
    t.case([(x > 1.0, lambda: x), (x > 2.0, lambda: x * 2.0)], default=lambda: x * 3.0, exclusive=True)
    t.Assert(x > 0, [x], summarize=2)
    t.Assert(x > 0, ["text", t.constant(3)], name="named")


def second_derivatives(t: Any) -> None:
    x = t.placeholder(t.float32, [3], name="x")
    t.hessians(t.reduce_sum(x * x * x), x)


def gradient_options(t: Any) -> None:
    x = t.placeholder(t.float32, [3], name="x")
    w = t.get_variable("w", [3])
    y = x * x + t.square(x) + t.sqrt(x) * w
    for method in (0, 1, 2):
        t.gradients(y, [x, w], aggregation_method=method)
    t.gradients(y, [x], colocate_gradients_with_ops=True, gate_gradients=True)
    t.gradients([y, x], [x], grad_ys=[t.ones([3]), None], stop_gradients=[w], name="mine")
    t.gradients(x, [w], unconnected_gradients="zero")


def loops_without_gradients(t: Any) -> None:
    """Loops that say so beside and within others that have one: V-trace and its kin are such."""
    x, k = t.constant([1.0, 2.0]), t.constant(0.5)

    def loop(start: Any, **options: Any) -> Any:
        return t.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * k), [0, start], **options)[1]

    silent = loop(x, back_prop=False)
    t.gradients(silent, [k, x])
    t.gradients(silent * x, [k, x])
    for inner in (False, True):
        _, r = t.while_loop(
            lambda i, _: i < 2,
            lambda i, v, inner=inner: (i + 1, loop(v, back_prop=not inner) + v),
            [0, x],
            back_prop=inner,
        )
        t.gradients(r + x, [k, x])
    t.gradients(t.scan(lambda a, e: a * k + e, t.zeros([3, 2]), initializer=x, back_prop=False) * x, [k, x])


def loop_gradients(t: Any) -> None:
    x = t.placeholder(t.float32, [], name="x")
    y = t.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x + t.sqrt(a)), [t.constant(0), x])[1]
    t.gradients(y, [x])
    z = t.cond(x > 0.0, lambda: t.square(x), lambda: x * 2.0)
    t.gradients(z, [x])
    inner = t.while_loop(
        lambda i, a: i < 3,
        lambda i, a: (i + 1, t.while_loop(lambda b: b < 100.0, lambda b: b * x + a, [a])),
        [t.constant(0), x],
    )
    t.gradients(inner[1], [x])
    within = t.while_loop(
        lambda i, a: i < 3,
        lambda i, a: (i + 1, t.cond(a > 1.0, lambda: t.sqrt(a), lambda: a * x)),
        [t.constant(0), x],
    )
    t.gradients(within[1], [x])


PROGRAMS = [
    arrays, maps, scans, folds, loops, conditionals, second_derivatives, gradient_options, loop_gradients,
    loops_without_gradients,
]  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_same_nodes_as_tensorflow(tf: ModuleType, program: Callable[[Any], None]) -> None:
    theirs, ours = tf.Graph(), gm.Graph()
    with theirs.as_default(), tf1_semantics(tf):
        program(_theirs(tf))
    with ours.as_default():
        program(_ours())
    expected, found = described(theirs.as_graph_def().node), described(ours.as_graph_def().node)
    assert [n[:2] for n in found] == [n[:2] for n in expected]
    for mine, wanted in zip(found, expected, strict=True):
        assert mine == wanted


# -- what they compute ---------------------------------------------------------------------------------------------


def test_loops_over_rows_compute() -> None:
    rows = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 3], name="x")
        made = [
            gm.map_fn(lambda r: r * 2.0, x),
            gm.scan(lambda a, r: a + r, x),
            gm.scan(lambda a, r: a + r, x, reverse=True),
            gm.foldl(lambda a, r: a - r, x),
            gm.foldr(lambda a, r: a - r, x),
        ]
        grad = gm.grad(gm.scan(lambda a, r: a * r, x), [x])[0]
    found = Session(graph).run(made, {"x:0": rows})
    wanted = [
        rows * 2, np.cumsum(rows, 0), np.cumsum(rows[::-1], 0)[::-1], rows[0] - rows[1:].sum(0),
        rows[3] - rows[:3].sum(0),
    ]  # fmt: skip
    for mine, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(mine, expected)
    values = rows + 1
    steps = Session(graph).run(grad, {"x:0": values}).astype(np.float64)
    products = np.cumprod(values.astype(np.float64), 0)
    expected = np.stack([sum(products[j] / values[i] for j in range(i, 4)) for i in range(4)])
    np.testing.assert_allclose(steps, expected, rtol=20 * np.finfo(np.float32).eps)  # a dozen roundings each


def test_loops_without_gradients_compute() -> None:
    """d(x + v)/dx where v comes of a loop that says that it has none; in the outer loop each iteration adds itself."""
    with gm.Graph().as_default() as graph:
        x = gm.constant([1.0, 2.0])
        silent = gm.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * x), [0, x], back_prop=False)[1]

        def body(i: Any, v: Any) -> Any:
            inner = gm.while_loop(lambda j, _: j < 3, lambda j, w: (j + 1, w * x), [0, v], back_prop=False)[1]
            return i + 1, v + v + inner

        outer = gm.while_loop(lambda i, _: i < 2, body, [0, x])[1]
        slopes = [_ours().gradients(y, [x])[0] for y in (silent * x, outer)]
    with Session(graph) as session:
        value, (found, through) = session.run([silent, slopes])
    np.testing.assert_array_equal(value, [1.0, 16.0])
    np.testing.assert_array_equal(found, value)
    np.testing.assert_array_equal(through, [4.0, 4.0])


def test_second_derivatives_compute() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 2], name="x")
        found = gm.hessians(gm.reduce_sum(x * x * x), x)[0]
    value = np.float32([[1, 2], [3, 4]])
    expected = np.diag(6 * value.ravel()).reshape(2, 2, 2, 2)
    np.testing.assert_array_equal(Session(graph).run(found, {"x:0": value}), expected)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: gm.TensorArray(gm.float32), UsageError, "needs a size"),
        (lambda x: gm.TensorArray(gm.float32, size=1, handle=x, flow=x), UsageError, "takes no size"),
        (lambda x: gm.TensorArray(gm.float32, handle=x), UsageError, "needs its flow"),
        (
            lambda x: gm.TensorArray(gm.float32, 2).write(0, [1.0]).write(1, gm.constant([1])),
            GraphError,
            "holds float32",
        ),
        (lambda x: gm.TensorArray(gm.int32, 2).write(0, [1, 2]).write(1, 1), GraphError, r"of shape \[2\], not \[\]"),
        (lambda x: gm.map_fn(3, x), UsageError, "is no function of rows"),
        (lambda x: gm.map_fn(lambda r: r, gm.constant(1.0)), GraphError, "is a scalar"),
        (lambda x: gm.map_fn(lambda r: r, (x, gm.zeros([5, 1]))), GraphError, r"\[4, 5\] rows"),
        (lambda x: gm.map_fn(lambda r: (r, r), x), UsageError, "not alike"),
        (lambda x: gm.while_loop(lambda: True, lambda: (), []), GraphError, "at least one loop variable"),
        (lambda x: gm.while_loop(3, lambda a: a, [x]), UsageError, "cond of a loop must be a function"),
        (lambda x: gm.while_loop(lambda a: True, lambda a: a, [x], maximum_iterations=[1]), GraphError, "a scalar"),
        (lambda x: gm.cond(True, lambda: x), UsageError, "false_fn of a conditional must be a function"),
        (lambda x: gm.cond(True, lambda: x, lambda: x, fn1=lambda: x), UsageError, "not both"),
        (lambda x: gm.case([(True, 3)]), UsageError, "takes pairs"),
        (lambda x: gm.case([]), GraphError, "at least one pair"),
        (lambda x: gm.grad(x, [x], aggregation_method=7), UsageError, "is no aggregation method"),
    ],
)
def test_mistakes(call: Any, error: type[Exception], message: str) -> None:
    with gm.Graph().as_default(), pytest.raises(error, match=message):
        call(gm.placeholder(gm.float32, [4, 3]))
