"""Steps over a device with a memory of its own: what a real accelerator would show shows here."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.errors import GraphError, InternalError, InvalidArgumentError, ResourceExhaustedError
from toolkit.kernels import registry
from toolkit.kernels.null.memory import memory_of
from toolkit.runtime.session import Session

ops = gm.ops
HERE, THERE = "/device:CPU:0", "/device:NULL:0"
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def _no_limit() -> Iterator[None]:
    yield
    memory_of(0).set_limit(None)


def _on(device: str, **more: Any) -> dict[str, Any]:
    """Sessions whose numbers are those of the definitions, on whichever device."""
    return {"devices": {"NULL": 2}, "precision": "exact", **more}


@pytest.mark.parametrize("device", [HERE, THERE])
def test_a_loop_over_two_devices(device: str) -> None:
    def run(inside: str, count: int) -> Any:
        with gm.Graph().as_default() as graph:
            x, n = gm.placeholder(gm.float32, [2, 3]), gm.placeholder(gm.int32, [])

            def body(i: Any, y: Any) -> Any:
                with graph.device(inside):
                    z = ops.tanh(y) + x
                with graph.device(device):
                    return [i + 1, z * 0.5]

            with graph.device(HERE):
                end = gm.while_loop(lambda i, y: i < n, body, [gm.constant(0), x])[1]
        with Session(graph, **_on(device)) as session:
            return session.run(end, {x: X, n: np.int32(count)})

    for count in (0, 1, 5):
        np.testing.assert_array_equal(run(THERE, count), run(HERE, count))


def test_a_branch_on_the_device() -> None:
    for wanted in (True, False):
        results: list[Any] = []
        for device in (HERE, THERE):
            with gm.Graph().as_default() as graph:
                x, p = gm.placeholder(gm.float32, [2, 3]), gm.placeholder(gm.bool, [])
                with graph.device(device):
                    y = gm.cond(p, lambda x=x: ops.tanh(x) * 2.0, lambda x=x: x - 1.0)
            with Session(graph, **_on(device)) as session:
                results.append(session.run(y, {x: X, p: wanted}))
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("resource", [False, True])
def test_training(resource: bool) -> None:
    def train(device: str) -> list[Any]:
        with gm.Graph().as_default() as graph:
            x = gm.placeholder(gm.float32, [None, 3])
            with graph.device(device):
                w = gm.Variable(np.full((3, 2), 0.5, np.float32), name="w", use_resource=resource)
                loss = ops.mean(ops.square(ops.tanh(ops.mat_mul(x, w.value())) - 0.25), [0, 1])
                step = gm.train.Momentum(0.1, 0.9).minimize(loss)
            start = gm.global_variables_initializer()
        with Session(graph, **_on(device)) as session:
            session.run(start)
            losses = [session.run([loss, step], {x: X})[0] for _ in range(5)]
            return [*losses, session.run(w.value())]

    here, there = train(HERE), train(THERE)
    for expected, got in zip(here, there, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert here[4] < here[0]


def test_two_devices_of_one_type_copy_between_them() -> None:
    def run(first: str, second: str) -> Any:
        with gm.Graph().as_default() as graph:
            x = gm.placeholder(gm.float32, [2, 3])
            with graph.device(first):
                y = ops.exp(x)
            with graph.device(second):
                z = ops.reshape(ops.cumsum(y, 1), [-1])
        with Session(graph, **_on(first)) as session:
            return session.run([y, z], {x: X})

    for expected, got in zip(run(HERE, HERE), run(THERE, "/device:NULL:1"), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert memory_of(1).statistics().copies_in > 0


def test_a_device_without_room_says_so() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 3])
        with graph.device(THERE):
            y = ops.tile(x, [1000, 1], name="large")
    with Session(graph, **_on(THERE)) as session:
        memory_of(0).set_limit(memory_of(0).statistics().in_use + 10_000)
        with pytest.raises(ResourceExhaustedError, match=r"node 'large'.*no room for 24000 bytes"):
            session.run(y, {x: X})
        memory_of(0).set_limit(None)
        assert session.run(y, {x: X}).shape == (2000, 3)


def test_errors_on_the_device_name_their_node() -> None:
    with gm.Graph().as_default() as graph:
        x, shape = gm.placeholder(gm.float32, [None, 3]), gm.placeholder(gm.int32, [None])
        with graph.device(THERE):
            y = ops.reshape(x, shape, name="turned")
    with Session(graph, **_on(THERE)) as session, pytest.raises(InvalidArgumentError, match="turned"):
        session.run(y, {x: X, shape: np.array([7], np.int32)})


def test_a_node_without_a_kernel_for_its_device_runs_on_the_cpu_or_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.load("NULL")
    monkeypatch.delitem(registry._kernels, ("Neg", "NULL"))
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 3])
        with graph.device(THERE):
            y = ops.neg(ops.neg(x, name="first"), name="second") + x
            other = ops.exp(x)
    with Session(graph, **_on(THERE)) as session:
        session.run(other, {x: X})
        assert session.moved() == []  # nothing of this step
        np.testing.assert_array_equal(session.run(y, {x: X}), X + X)
        (line,) = session.moved()
        assert line == (
            "Neg 'first' and 1 more asked for /device:NULL:0 and run on /job:localhost/replica:0/task:0/device:CPU:0: "
            "there is no NULL kernel for Neg (float32)"
        )
        assert session.explain(y, {x: X})[-1] == f"soft placement: {line}"
    with Session(graph, **_on(THERE, allow_soft_placement=False)) as session:
        with pytest.raises(GraphError) as refused:
            session.run(y, {x: X})
        assert refused.value.node == "first" and refused.value.message == (
            "Neg (float32) has no kernel for NULL, which it is bound to (/device:NULL:0); soft placement would take "
            "another device"
        )


def test_where_there_is_one_device_nodes_that_ask_for_another_are_told_or_refused() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 3])
        with graph.device("/device:GPU:1"):
            y = ops.neg(x, name="there")
        with graph.device(HERE):
            z = ops.neg(x)
    with Session(graph) as session:
        session.run(z, {x: X})
        assert session.moved() == []
        session.run(y, {x: X})
        assert session.moved() == [
            (
                "Neg 'there' asked for /device:GPU:1 and runs on /job:localhost/replica:0/task:0/device:CPU:0: "
                "there is no such device"
            )
        ]
    with (
        Session(graph, allow_soft_placement=False) as session,
        pytest.raises(GraphError, match=r"node 'there': no device fits /device:GPU:1; .*; soft placement would take"),
    ):
        session.run(z, {x: X})
    with gm.Graph().as_default() as graph, graph.device(HERE):
        z = gm.constant(X) + 1.0
    with Session(graph, allow_soft_placement=False) as session:
        np.testing.assert_array_equal(session.run(z), X + 1)


def test_what_is_fetched_is_a_host_array_of_ones_own() -> None:
    with gm.Graph().as_default() as graph, graph.device(THERE):
        y = gm.constant(X) + 1.0
    with Session(graph, **_on(THERE)) as session:
        first = session.run(y)
        first[:] = 0
        np.testing.assert_array_equal(session.run(y), X + 1)
    with pytest.raises(InternalError):
        np.asarray(memory_of(0).copy_in(X))
