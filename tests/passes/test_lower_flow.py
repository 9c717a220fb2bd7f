"""If, Case and While in place, before a graph runs on a device with a memory of its own."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit import Session
from toolkit import client as gm
from toolkit.client.flow import functional_flow
from toolkit.passes.partitioning.lower_flow import lower_flow

X = np.linspace(-1, 1, 6, dtype=np.float32)
FLOW = {"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"}


def branch(x: Any) -> Any:
    return functional_flow.cond(gm.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: x - 1.0)


def loop(x: Any) -> Any:
    return functional_flow.while_loop(lambda y: gm.reduce_sum(gm.square(y)) > 0.1, lambda y: [y * 0.5], [x])


def nested(x: Any) -> Any:
    return functional_flow.while_loop(lambda y: gm.reduce_max(y) > 0.1, lambda y: [branch(y) * 0.25], [x])


def case_of_two(x: Any) -> Any:
    return functional_flow.switch_case(gm.cast(x[0], gm.int32), [lambda: x * 2.0, lambda: x - 1.0])


def case_of_three(x: Any) -> Any:
    return functional_flow.switch_case(gm.cast(x[0], gm.int32), [lambda: x * 2.0, lambda: x - 1.0, lambda: x])


def case_of_five(x: Any) -> Any:
    """One within a loop, whose branches have two results of different kinds."""

    def branches(y: Any) -> list[Callable[[], Any]]:
        return [lambda k=k: [y * (0.5 + 0.05 * k), gm.constant(k)] for k in range(5)]

    def body(i: Any, y: Any, total: Any) -> Any:
        z, k = functional_flow.switch_case(gm.cast(gm.reduce_max(y), gm.int32), branches(y))
        return [i + 1, z, total + k]

    start = [gm.constant(0), x * 3.0 + 2.0, gm.constant(0)]
    _, y, total = functional_flow.while_loop(lambda i, y, total: gm.reduce_max(y) > 0.3, body, start)
    return y + gm.cast(total, gm.float32)


@pytest.mark.parametrize(
    "make", [branch, loop, nested, case_of_two, case_of_three, case_of_five], ids=lambda make: make.__name__
)
def test_it_is_the_same_in_place(make: Callable[[Any], Any]) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [6], name="x")
        y = gm.identity(make(x), name="y")
    made = lower_flow(graph.core, lambda node: True)
    ops = {node.op for node in made}
    assert ops & FLOW and not any("PartitionedCall" in op or "If" in op or "While" in op for op in ops)
    with Session(graph) as session, Session(made) as other:
        for given in (X, X + 1, X - 1, X + 2, X * 0.01):
            np.testing.assert_array_equal(other.run("y:0", {"x:0": given}), session.run(y, {x: given}))


def test_what_the_device_cannot_run_stays_functions() -> None:
    with gm.Graph().as_default() as graph:
        branch(gm.placeholder(gm.float32, [6]))
    assert lower_flow(graph.core, lambda node: node.op != "Mul") is graph.core


def test_a_graph_without_functions_is_as_it_was() -> None:
    with gm.Graph().as_default() as graph:
        gm.square(gm.placeholder(gm.float32, [6]))
    assert lower_flow(graph.core, lambda node: True) is graph.core
