"""Functions that a device calls run on it: their tensors stay in its memory, but for those that decide."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.runtime.oracle import Both
from toolkit.graph.graph import Graph
from toolkit.kernels.null.memory import memory_of
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow
THERE = "/device:NULL:0"
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
FEEDS = {"x:0": X, "n:0": np.int32(3)}
FETCHES = ["plain", "nested", "branch", "chosen", "loop", "count", "inner", "variable", "gradient", "lengths"]


def _build(tf: ModuleType) -> Any:
    @tf.function
    def f(x: Any) -> Any:
        return tf.tanh(x) * 2.0

    @tf.function
    def g(x: Any, n: Any) -> Any:
        return f(x) + f(x - 1.0) * tf.cast(n, tf.float32), n + tf.shape(x)[0]

    def build(v1: Any) -> None:
        x, n = v1.placeholder("float32", [2, 3], name="x"), v1.placeholder("int32", [], name="n")
        v = v1.get_variable("v", initializer=tf.constant(0.5), use_resource=True)
        v1.identity(f(x), name="plain")
        nested, lengths = g(x, n)
        v1.identity(nested, name="nested")
        v1.identity(lengths, name="lengths")
        v1.identity(v1.cond(n > 2, lambda: f(x), lambda: x - 1.0), name="branch")
        v1.identity(tf.switch_case(n - 2, [lambda: f(x), lambda: x * x, lambda: x]), name="chosen")
        count, loop = v1.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, f(y) + x), [v1.constant(0), x])
        v1.identity(loop, name="loop")
        v1.identity(count, name="count")
        both = v1.while_loop(
            lambda i, y: tf.logical_and(i < 5, tf.reduce_sum(y) < 100.0),
            lambda i, y: (i + 1, v1.cond(tf.reduce_sum(y) > 0, lambda: y * 2.0, lambda: y + 1.0)),
            [v1.constant(0), x],
        )
        v1.identity(both[1], name="inner")
        v1.identity(v1.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + v), [0, x])[1], name="variable")
        v1.identity(v1.gradients(nested, x)[0], name="gradient")
        v1.global_variables_initializer()

    return build


@pytest.mark.parametrize("tokens", [False, True])
def test_functions_run_where_they_are_called(tf: ModuleType, tokens: bool) -> None:
    both = Both(tf, _build(tf), control_flow_v2=True)
    results: list[list[Any]] = []
    for device in ("", THERE):
        graph: Graph = both.graph.copy()
        for node in graph:
            node.device = device
        with Session(graph, devices={"NULL": 1}, precision="exact", force_tokens=tokens) as session:
            session.run("init")
            results.append(session.run([f"{name}:0" for name in FETCHES], FEEDS))
    for name, here, there in zip(FETCHES, *results, strict=True):
        np.testing.assert_array_equal(there, here, err_msg=name)
        assert here.dtype == there.dtype


def test_nothing_is_copied_out_between_a_function_and_its_caller(tf: ModuleType) -> None:
    both = Both(tf, _build(tf), control_flow_v2=True)
    graph = both.graph.copy()
    for node in graph:
        node.device = THERE

    def kernels_allocate(fetch: str) -> tuple[int, int]:
        with Session(graph, devices={"NULL": 1}, precision="exact") as session:
            session.run(fetch, FEEDS)  # what is constant is copied in
            before = memory_of(0).statistics()
            copied, made = before.copies_out, before.allocations
            session.run(fetch, FEEDS)
            after = memory_of(0).statistics()
            return after.copies_out - copied, after.allocations - made

    copied, made = kernels_allocate("plain:0")
    assert made >= 3  # x, tanh and the product: the body's kernels run there, not in one kernel on the host
    # what kernels are given, for those of the NULL device compute through copies: one tensor of tanh, two of the
    # product; and what is fetched
    assert copied == 4
