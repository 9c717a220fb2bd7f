"""Loops, branches, queues, variables and running out of memory on a GPU beside the CPU; results that repeat."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import perturbation
from tests.gpu.driver import WHERE, on
from toolkit import Session
from toolkit import client as gm
from toolkit.client.gradients import gradients
from toolkit.errors import OpError, ResourceExhaustedError
from toolkit.kernels.cuda.device import device

CPU, GPU = "/device:CPU:0", "/device:GPU:0"
DEVICES = {"CPU": 1, "GPU": 1}
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def loop(there: str) -> tuple[Any, Any, list[str]]:
    """A body that is half there and half on the CPU, seven times."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 3])

        def body(i: Any, y: Any) -> Any:
            with graph.device(there):
                z = gm.tanh(y) + x
            with graph.device(CPU):
                z = z * 0.5
            return [i + 1, z]

        end = gm.while_loop(lambda i, y: i < 7, body, [gm.constant(0), x])[1]
    return end, x, []


def loop_there(there: str) -> tuple[Any, Any, list[str]]:
    """A loop all there, whose end the numbers decide."""
    with gm.Graph().as_default() as graph, graph.device(there):
        x = gm.placeholder(gm.float32, [4, 3])
        end = gm.while_loop(lambda y: gm.reduce_sum(gm.square(y)) > 0.5, lambda y: [y * 0.75], [x])
    return (end[0] if isinstance(end, list | tuple) else end), x, []


def branches(there: str) -> tuple[Any, Any, list[str]]:
    """Both branches are there; the predicate comes from numbers there."""
    with gm.Graph().as_default() as graph, graph.device(there):
        x = gm.placeholder(gm.float32, [4, 3])
        y = gm.cond(gm.reduce_sum(x) > 1.0, lambda: gm.exp(x), lambda: x - 1.0)
    return y, x, []


def gradient_of_a_loop(there: str) -> tuple[Any, Any, list[str]]:
    """What a loop of products keeps for its gradient stays there."""
    with gm.Graph().as_default() as graph, graph.device(there):
        x = gm.placeholder(gm.float32, [4, 3])
        w = gm.constant(np.linspace(-0.5, 0.5, 9, dtype=np.float32).reshape(3, 3))
        y = gm.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, gm.tanh(gm.matmul(y, w))], [gm.constant(0), x])[1]
        (dx,) = gradients([gm.reduce_sum(gm.square(y))], [x])
    return dx, x, []


def training(there: str) -> tuple[Any, Any, list[str]]:
    """Weights behind five steps of Adam, from one op to the next."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 3])
        with graph.device(there):
            w = gm.Variable(np.full((3, 2), 0.5, np.float32), use_resource=True, name="w")
            loss = gm.reduce_mean(gm.square(gm.tanh(gm.matmul(x, w.value())) - 0.25))
            gm.train.Adam(0.1).minimize(loss, name="train")
            read = gm.identity(w.value(), name="read")
        gm.global_variables_initializer()
    return read, x, ["init", "train", "train", "train", "train", "train"]


CASES: dict[str, Callable[[str], tuple[Any, Any, list[str]]]] = {
    made.__name__: made for made in (loop, loop_there, branches, gradient_of_a_loop, training)
}


def _value(name: str, there: str) -> Any:
    fetch, x, before = CASES[name](there)
    with Session(fetch.graph, devices=DEVICES if there == GPU else {"CPU": 1}) as session:
        for operation in before:
            session.run(operation, {x: X})
        return session.run(fetch, {x: X})


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", CASES)
def test_steps(name: str, where: str) -> None:
    on(where)
    fetch, x, before = CASES[name](CPU)

    def work(session: Session) -> list[Any]:
        for operation in before:
            session.run(operation, {x: X})
        return [session.run(fetch, {x: X})]

    def far() -> list[Any]:
        return perturbation.of_work(fetch.graph, work)

    perturbation.assert_agree([[_value(name, GPU)], [_value(name, CPU)]], far)


@pytest.mark.parametrize("where", WHERE)
def test_a_queue_feeds_the_gpu(where: str) -> None:
    on(where)
    with gm.Graph().as_default() as graph:
        with graph.device(CPU):
            queue = gm.queues.FIFOQueue(8, [gm.float32], shapes=[[4, 3]])
            x = gm.placeholder(gm.float32, [4, 3])
            put = queue.enqueue([x])
            taken = queue.dequeue()
        with graph.device(GPU):
            y = taken + taken
    with Session(graph, devices=DEVICES) as session:
        for factor in (1, 2, 3):
            session.run(put, {x: X * np.float32(factor)})
        for factor in (1, 2, 3):
            np.testing.assert_array_equal(session.run(y), 2 * factor * X)


@pytest.mark.parametrize("where", WHERE)
def test_out_of_memory_is_told_and_the_session_goes_on(where: str) -> None:
    on(where)
    times = 2 * device(0).properties.memory // X.nbytes
    with gm.Graph().as_default() as graph, graph.device(GPU):
        x, n = gm.placeholder(gm.float32, [4, 3]), gm.placeholder(gm.int32, [2])
        large = gm.ops.tile(x, n, name="large")
        small = gm.ops.tile(x, [2, 1])
    with Session(graph, devices=DEVICES) as session:
        with pytest.raises(ResourceExhaustedError, match="large"):
            session.run(large.op, {x: X, n: np.array([times // 4, 4], np.int32)})
        np.testing.assert_array_equal(session.run(small, {x: X}), np.tile(X, (2, 1)))


@pytest.mark.parametrize("where", WHERE)
def test_results_repeat(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that threads add up in any order are the same bits each time where that was asked for."""
    on(where)
    there, random = device(0), np.random.default_rng(3)
    monkeypatch.setattr(there, "deterministic", True)
    values = random.standard_normal((4096, 3), np.float32)
    segments = random.integers(0, 5, 4096)
    with gm.Graph().as_default() as graph, graph.device(GPU):
        x, ids = gm.placeholder(gm.float32, [4096, 3]), gm.placeholder(gm.int64, [4096])
        fetches = [gm.unsorted_segment_sum(x, ids, 5), gm.reduce_sum(x), gm.reduce_mean(x, [0])]
    with Session(graph, devices=DEVICES) as session:
        first = session.run(fetches, {x: values, ids: segments})
        for _ in range(3):
            for one, other in zip(session.run(fetches, {x: values, ids: segments}), first, strict=True):
                assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("where", WHERE)
def test_an_error_names_its_node_and_the_session_goes_on(where: str) -> None:
    on(where)
    with gm.Graph().as_default() as graph, graph.device(GPU):
        x, shape = gm.placeholder(gm.float32, [4, 3]), gm.placeholder(gm.int32, [1])
        y = gm.ops.reshape(x, shape, name="turned")
    with Session(graph, devices=DEVICES) as session:
        with pytest.raises(OpError, match="turned"):
            session.run(y, {x: X, shape: np.array([7], np.int32)})
        np.testing.assert_array_equal(session.run(y, {x: X, shape: np.array([12], np.int32)}), X.ravel())
