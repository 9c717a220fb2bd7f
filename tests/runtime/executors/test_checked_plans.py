"""Checks of numbers in compiled steps: who is to blame is found node by node, and nothing happens twice."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.errors import InvalidArgumentError
from toolkit.runtime.probes.numerics import NumericsProbe
from toolkit.runtime.session import Session

X = np.array([1.0, 0.0, 3.0], np.float32)
FEEDS = {"x:0": X}


def failing(second: str = "") -> Any:
    """x float32[3] to y: the logarithm of 0, in the middle of what is fused; the end of it on another device."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(np.float32, [3], name="x")
        culprit = gm.log(gm.square(x, name="first"), name="culprit")
        with gm.device(second):
            gm.identity(gm.tanh(gm.multiply(culprit, 0.0, name="nothing"), name="late"), name="y")
    return graph


@pytest.mark.parametrize("devices", [1, 2])
def test_the_first_node_is_named(devices: int) -> None:
    graph = failing("/device:CPU:1" if devices == 2 else "")
    told: list[str] = []
    for per_node in (False, True):
        with Session(graph, devices={"CPU": devices}) as session:
            with pytest.raises(InvalidArgumentError, match="makes values that are not finite") as error:
                session.run("y:0", FEEDS, probe=NumericsProbe(per_node=per_node))
            assert error.value.node == "culprit"
            told.append(error.value.message)
            assert np.isfinite(session.run("y:0", {"x:0": X + 1.0}, probe=NumericsProbe(per_node=per_node))).all()
    assert told[0] == told[1]


def counted(masked: bool) -> Any:
    """x float32[3] to y, "step" that counts and learns; a mask of infinities, or the logarithm of a fed 0."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(np.float32, [3], name="x")
        weight = gm.Variable(np.ones(3, np.float32), name="weight", use_resource=True)
        count = gm.Variable(np.float32(0.0), name="count", use_resource=True)
        hidden = gm.constant(np.array([0.0, -np.inf, 0.0], np.float32)) if masked else gm.log(x, name="culprit")
        with gm.control_dependencies([count.assign_add(1.0)]):
            y = gm.identity(gm.ops.softmax(x * weight + hidden), name="y")
        gm.group([weight.assign_sub(y)], name="step")
        gm.group([weight.initializer, count.initializer], name="init")
        for variable in (weight, count):
            gm.identity(variable, name=f"{variable.op.name}_now")
    return graph


def test_infinities_that_are_wanted_do_not_stop_a_step_nor_repeat_it() -> None:
    found: list[Any] = []
    for probe in (None, NumericsProbe(), NumericsProbe(per_node=True)):
        with Session(counted(True), precision="exact") as session:
            session.run("init")
            steps = [session.run(["y:0", "step"], FEEDS, probe=probe)[0] for _ in range(3)]
            found.append([*steps, *session.run(["weight_now:0", "count_now:0"])])
    for each in found[1:]:
        for ours, wanted in zip(each, found[0], strict=True):
            np.testing.assert_array_equal(ours, wanted)


def test_infinities_that_are_wanted_cross_devices_once() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(np.float32, [3], name="x")
        mask = gm.placeholder(np.float32, [3], name="mask")
        with gm.device("/device:CPU:0"):
            masked = gm.tanh(x) + mask
        with gm.device("/device:CPU:1"):
            there = gm.ops.softmax(masked * 2.0)
        with gm.device("/device:CPU:0"):
            gm.identity(gm.sqrt(there) + gm.tanh(x), name="y")
    feeds = {"x:0": X, "mask:0": np.array([0.0, -np.inf, 0.0], np.float32)}
    with Session(graph, devices={"CPU": 2}) as session:
        wanted = session.run("y:0", feeds)
        for _ in range(3):
            np.testing.assert_array_equal(session.run("y:0", feeds, probe=NumericsProbe()), wanted)


def test_a_step_that_fails_leaves_what_its_nodes_leave() -> None:
    found: list[Any] = []
    for per_node in (False, True):
        with Session(counted(False)) as session:
            session.run("init")
            with pytest.raises(InvalidArgumentError) as error:
                session.run(["y:0", "step"], FEEDS, probe=NumericsProbe(per_node=per_node))
            assert error.value.node == "culprit"
            found.append(session.run("weight_now:0"))
    np.testing.assert_array_equal(found[0], np.ones(3, np.float32))
    np.testing.assert_array_equal(found[0], found[1])


def test_loops_are_checked_at_their_ends() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(np.float32, [3], name="x")
        y = gm.while_loop(lambda i, _: i < 4, lambda i, y: (i + 1, gm.exp(y, name="grows")), [0, x], name="loop")[1]
        gm.identity(y, name="y")
    with Session(graph) as session:
        with pytest.raises(InvalidArgumentError) as error:
            session.run("y:0", {"x:0": X}, probe=NumericsProbe())
        assert error.value.node == "loop/grows"
