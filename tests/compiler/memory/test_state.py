"""Compiled programs and what outlives a step: variables, queues, lists, threads, NaN."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import perturbation, tolerance
from tests.compiler.compare import assert_close, check, explained
from tests.compiler.elementwise.test_fusion import image, weights
from toolkit import client as gm
from toolkit.errors import FailedPreconditionError, InvalidArgumentError, UsageError
from toolkit.kernels.cpu.onednn.library import library, threads
from toolkit.runtime.session import Session


def test_variables_taken_as_constants_are_noticed_when_they_change() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 64], name="x")
        w = gm.get_variable("w", [64, 64], initializer=gm.initializers.Constant(weights(64, 64)), use_resource=True)
        gm.relu(gm.matmul(x, w), name="out")
        gm.ops.assign_add_variable_op(w.handle, gm.ones([64, 64]), name="grow")
    value = weights(70, 64)
    with Session(graph) as session:
        session.run(w.initializer)
        held = weights(64, 64)
        for _ in range(8):  # more often than plans are made anew before they stop taking variables as constants
            wanted = np.maximum(value.astype(np.float64) @ held, 0)
            tolerance.assert_within(session.run("out:0", {"x:0": value}), wanted, tolerance.of_product(value, held))
            session.run("grow")
            held = held + 1


def test_shapes_of_reference_variables_are_known() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [24], name="x")
        w = gm.get_variable("w", [4, 6], initializer=gm.initializers.Constant(weights(4, 6)), use_resource=False)
        size = gm.ops.identity(gm.ops.shape(w), name="size")
        gm.ops.identity(gm.ops.tanh(gm.ops.reshape(x, size)) + w, name="sum")
    feeds = {"x:0": weights(24)}
    with Session(graph) as session:
        with pytest.raises(FailedPreconditionError, match="uninitialized value w"):
            session.run("size:0")
        session.run(w.initializer)
        assert session.run("size:0").tolist() == [4, 6]
        assert session.run("sum:0", feeds).shape == (4, 6)
        lines = session.explain("sum:0", feeds)
        assert not any("not known before it runs" in line or "float32[?]" in line for line in lines), lines


@pytest.mark.parametrize("make", [
    lambda: gm.train.GradientDescent(0.1), lambda: gm.train.Momentum(0.1, 0.9), lambda: gm.train.Adam(0.01),
    lambda: gm.train.Adagrad(0.1), lambda: gm.train.RMSProp(0.01),
])  # fmt: skip
@pytest.mark.parametrize("resource", [True, False])
def test_training_steps(make: Any, resource: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def make_graph() -> tuple[Any, Callable[[Session], list[Any]]]:
        with gm.Graph().as_default() as graph:
            x = gm.placeholder(gm.float32, [8, 16, 16, 3], name="x")
            filters = gm.get_variable(
                "f", [3, 3, 3, 16], initializer=gm.initializers.Constant(weights(3, 3, 3, 16)), use_resource=resource
            )
            y = gm.max_pool(gm.relu(gm.conv2d(x, filters)), 2, 2)
            w = gm.get_variable(
                "w", [1024, 64], initializer=gm.initializers.Constant(weights(1024, 64)), use_resource=resource
            )
            loss = gm.reduce_mean(gm.square(gm.tanh(gm.matmul(gm.reshape(y, [8, 1024]), w)) - 0.5), name="loss")
            train = make().minimize(loss)
            variables = gm.global_variables()

        def losses(session: Session) -> list[Any]:
            session.run([v.initializer for v in variables])
            feeds = {"x:0": np.random.default_rng(1).normal(size=(8, 16, 16, 3)).astype(np.float32)}
            return [session.run([loss, train], feeds)[0] for _ in range(6)]

        return graph, losses

    graph, losses = make_graph()
    with Session(graph) as session:
        got = losses(session)
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "off")
    with Session(graph) as session:
        wanted = losses(session)
    assert wanted[-1] < wanted[0]
    perturbation.assert_agree([got, wanted], lambda: perturbation.of_work(graph, losses))


def test_nan_shows_in_programs_that_write_variables() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [64, 64], name="x")
        w = gm.get_variable("w", [64, 64], initializer=gm.initializers.Constant(weights(64, 64)))
        loss = gm.reduce_mean(gm.relu(gm.matmul(x, w)), name="loss")
        train = gm.train.GradientDescent(0.1).minimize(loss)
    with Session(graph) as session:
        session.run(w.initializer)
        assert np.isnan(session.run([loss, train], {"x:0": np.full((64, 64), np.nan, np.float32)})[0])


def test_what_is_kept_is_not_the_arena() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [64, 64], name="x")
        queue = gm.queues.FIFOQueue(10, [gm.float32], [[64, 64]])
        queue.enqueue([gm.relu(gm.matmul(x, x))], name="put")
        gm.identity(queue.dequeue(), name="take")

        def body(i: Any, xs: Any, total: Any) -> Any:
            y = gm.tanh(gm.matmul(total, x))
            return i + 1, gm.ops.tensor_list_push_back(xs, y), y

        empty = gm.ops.empty_tensor_list(gm.constant([64, 64]), gm.constant(-1), element_dtype=gm.float32)
        _, xs, _ = gm.while_loop(lambda i, xs, t: i < 4, body, [gm.constant(0), empty, x])
        gm.ops.tensor_list_stack(xs, gm.constant([64, 64]), element_dtype=gm.float32, name="stacked")
    values = [weights(64, 64), weights(65, 64)[1:], weights(66, 64)[2:]]
    with Session(graph) as session:
        for value in values:
            session.run("put", {"x:0": value})
        for value in values:
            wanted = np.maximum(value.astype(np.float64) @ value, 0)
            tolerance.assert_within(session.run("take:0"), wanted, tolerance.of_product(value, value))
    check(graph, ["stacked:0"], {"x:0": values[0]})


def test_threads_have_arenas_of_their_own() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 24, 24, 16], name="x")
        y = gm.relu(gm.conv2d(x, weights(3, 3, 16, 32)))
        gm.reduce_mean(gm.conv2d(y, weights(3, 3, 32, 16)) + x, [1, 2], name="out")
    inputs = [image(1 + i % 2, 24, 16) + i for i in range(6)]
    failures: list[Any] = []
    with Session(graph) as session:
        wanted = [session.run("out:0", {"x:0": value}) for value in inputs]

        def work(index: int) -> None:
            for _ in range(30):
                if not np.array_equal(session.run("out:0", {"x:0": inputs[index]}), wanted[index]):
                    failures.append(index)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


def test_new_shapes_get_plans_of_their_own() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, None], name="x")
        gm.softmax(gm.matmul(x, gm.transpose(x, [1, 0])), name="out")
    with Session(graph) as session:
        for rows in (64, 3, 100, 64, 1, 17, *range(20, 45), 64):
            value = weights(rows, 80)
            assert_close(graph, ["out:0"], {"x:0": value}, session.run(["out:0"], {"x:0": value}))


def test_errors_name_the_node_that_failed() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [64, 64], name="x")
        i = gm.placeholder(gm.int32, [], name="i")
        y = gm.relu(gm.matmul(x, x))

        def body(k: Any, t: Any) -> Any:
            return k + 1, gm.gather(t, gm.fill([64], i + k), name="pick")

        gm.while_loop(lambda k, t: k < 3, body, [gm.constant(0), y], name="loop")[1]
        picked = graph.core.get("loop/Exit_1")
        assert picked is not None
    with Session(graph) as session:
        session.run("loop/Exit_1:0", {"x:0": weights(64, 64), "i:0": 3})
        with pytest.raises(InvalidArgumentError, match="loop/pick"):
            session.run("loop/Exit_1:0", {"x:0": weights(64, 64), "i:0": 63})
        session.run("loop/Exit_1:0", {"x:0": weights(64, 64), "i:0": 3})


def test_settings_are_checked() -> None:
    with gm.Graph().as_default() as graph:
        gm.constant(1.0)
    with pytest.raises(
        UsageError,
        match=r"'f16' is not a precision; did you mean 'fp16' or 'bf16'\? Expected f32, tf32, bf16, fp16, fp8, exact",
    ):
        Session(graph, precision="f16")
    with pytest.raises(UsageError, match="0 threads"):
        Session(graph, threads=0)


def test_batch_norms_of_training_steps() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 12, 12, 16], name="x")
        gamma, beta = gm.constant(weights(16) + 1), gm.constant(weights(16))
        y, mean, variance = gm.fused_batch_norm(gm.tanh(x), gamma, beta, epsilon=1e-3)
        loss = gm.reduce_sum(gm.square(y) * weights(4, 12, 12, 16) + y)
        grads = gm.gradients.gradients(loss, [x, gamma, beta])
        fetches = [y, mean, variance, *grads]
    feeds = {x: image(4, 12, 16)}
    check(graph, fetches, feeds)

    if library() is not None:
        text = explained(graph, fetches, feeds)
        assert "batch_norm " in text and "batch_norm_gradient" in text


def test_threads_are_a_session_s_own() -> None:

    before = threads()
    with gm.Graph().as_default() as graph:
        gm.relu(gm.matmul(gm.placeholder(gm.float32, [64, 64], name="x"), weights(64, 64)), name="out")
    feeds = {"x:0": weights(64, 64)}
    with Session(graph, threads=3) as narrow, Session(graph) as plain:
        first = narrow.run("out:0", feeds)
        assert library() is None or threads() == 3
        each = tolerance.of_product(feeds["x:0"], weights(64, 64))  # from the exact product
        tolerance.assert_within(plain.run("out:0", feeds), first, 2 * each)
        assert threads() == before
