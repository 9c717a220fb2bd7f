"""Programs on a device that brings kernels and no code generator are compiled to calls of them."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.errors import InvalidArgumentError
from toolkit.runtime.session import Session

ops = gm.ops
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
Built = tuple[Any, dict[Any, Any]]  # what is fetched and fed


def _straight() -> Built:
    x = gm.placeholder(gm.float32, [None, 3])
    shape = ops.shape(x)
    return [ops.reshape(ops.tanh(x) * 2.0, [-1]), shape], {x: X}


def _constants() -> Built:
    y = ops.tanh(gm.constant(X)) + ops.zeros_like(gm.constant(X))  # folded on the device
    z = ops.fill([2, 2], 3.0)
    return [y, z], {}


def _branch() -> Built:
    x, p = gm.placeholder(gm.float32, [2, 3]), gm.placeholder(gm.bool, [])
    y = gm.cond(p, lambda: ops.tanh(x) * 2.0, lambda: x - 1.0)
    return [y], {x: X, p: True}


def _loops() -> Built:
    x, n = gm.placeholder(gm.float32, [2, 3]), gm.placeholder(gm.int32, [])

    def inner(y: Any) -> Any:
        return gm.while_loop(lambda j, z: j < 2, lambda j, z: [j + 1, ops.tanh(z) + x], [gm.constant(0), y])[1]

    i, y = gm.while_loop(lambda i, y: i < n, lambda i, y: [i + 1, inner(y) * 0.5], [gm.constant(0), x])
    return [i, y], {x: X, n: np.int32(4)}


def _decided_there() -> Built:
    """What decides is computed on the device, and copied out."""
    x = gm.placeholder(gm.float32, [2, 3])
    y = gm.while_loop(lambda y: ops.sum(y, [0, 1]) < 100.0, lambda y: ops.square(y) + 1.0, [x])
    return [y, gm.cond(ops.sum(x, [0, 1]) > 0.0, lambda: x, lambda: -x)], {x: X}


def _split() -> Built:
    x = gm.placeholder(gm.float32, [2, 3])
    a, b, c = ops.split(1, x, num_split=3)
    return [a, ops.concat_v2([c, b], 0)], {x: X}


PROGRAMS: list[Callable[[], Built]] = [_straight, _constants, _branch, _loops, _decided_there, _split]


def _run(build: Callable[[], Built], device: str) -> tuple[list[Any], list[str]]:
    with gm.Graph().as_default() as graph, graph.device(device):
        fetches, feeds = build()
    with Session(graph, devices={"NULL": 1}, precision="exact") as session:
        lines = session.explain(fetches, feeds)
        results = [session.run(fetches, feeds) for _ in range(2)]
        for first, again in zip(*results, strict=True):
            np.testing.assert_array_equal(first, again)
        assert session.notes() == []
    return results[0], lines


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__[1:])
def test_what_is_compiled_for_a_device_gives_the_hosts_numbers(
    build: Callable[[], Built],
) -> None:
    here, _ = _run(build, "/device:CPU:0")
    there, lines = _run(build, "/device:NULL:0")
    for expected, got in zip(here, there, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert any(line.startswith("plan for") for line in lines), lines
    assert not any("node by node" in line for line in lines)


def test_training_is_compiled_for_a_device() -> None:
    def train(device: str) -> list[Any]:
        with gm.Graph().as_default() as graph, graph.device(device):
            x = gm.placeholder(gm.float32, [None, 3])
            w = gm.Variable(np.full((3, 2), 0.5, np.float32), name="w")
            v = gm.Variable(np.full((2,), 0.5, np.float32), name="v", use_resource=True)
            loss = ops.mean(ops.square(ops.tanh(ops.mat_mul(x, w.value()) + v.value()) - 0.25), [0, 1])
            step = gm.train.Momentum(0.1, 0.9).minimize(loss)
            start = gm.global_variables_initializer()
        with Session(graph, devices={"NULL": 1}, precision="exact") as session:
            session.run(start)
            losses = [session.run([loss, step], {x: X})[0] for _ in range(5)]
            assert session.notes() == []
            return [*losses, *session.run([w.value(), v.value()])]

    here, there = train("/device:CPU:0"), train("/device:NULL:0")
    for expected, got in zip(here, there, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert here[4] < here[0]


def test_errors_in_a_loop_on_a_device_name_their_node() -> None:
    with gm.Graph().as_default() as graph, graph.device("/device:NULL:0"):
        x = gm.placeholder(gm.float32, [2, 3])
        sizes = gm.placeholder(gm.int32, [None])
        y = gm.while_loop(
            lambda i, y: i < 2,
            lambda i, y: [i + 1, ops.reshape(y, sizes, name="turned")],
            [gm.constant(0), x],
            shape_invariants=[[], None],
        )[1]
    with Session(graph, devices={"NULL": 1}) as session:
        with pytest.raises(InvalidArgumentError, match="turned"):
            session.run(y, {x: X, sizes: np.array([7], np.int32)})
        assert session.run(y, {x: X, sizes: np.array([6], np.int32)}).shape == (6,)
