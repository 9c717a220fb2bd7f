"""One crossing edge for the same data, and no fewer than there are data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.devices.serialising_worker import SerialisingWorker
from toolkit import tensorflow as v1
from toolkit.graph.device import DeviceSpec
from toolkit.graph.node import Node
from toolkit.graph.partitioned import MARK, RECV_OPS, SEND_OPS
from toolkit.passes.partitioning.same_data import merge_same_data
from toolkit.runtime.devices import Device, local_devices
from toolkit.runtime.session import Session
from toolkit.runtime.steps import compiler
from toolkit.runtime.workers.local import LocalWorker

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


def _devices(counts: dict[str, int] | None = None) -> list[Device]:
    return [device for task in (PS, WORKER) for device in local_devices(counts or {"CPU": 1}, DeviceSpec.parse(task))]


def _crossing(session: Session, fetch: Any) -> list[str]:
    """The float32 tensors that the parameter server sends to the worker in a step."""
    return [
        node.inputs[0].node.name
        for part in session.compiled(fetch, []).stages.partitions.values()
        for node in part
        if node.op in SEND_OPS and _is_on(PS, node, "send_device") and _is_on(WORKER, node, "recv_device")
        and node.inputs[0].node.attrs.get(MARK) != b"control"
    ]  # fmt: skip


def _is_on(task: str, node: Node, end: str) -> bool:
    return node.text(end).startswith(task)


def _variable(initial: Any = 1.0) -> Any:
    with v1.device(PS):
        return v1.get_variable("v", initializer=v1.constant(initial, v1.float32), use_resource=True)


def _read(variable: Any) -> Any:
    with v1.device(PS):
        return variable.read_value()


def _reads_of_one() -> tuple[Any, Any, int]:
    v = _variable()
    with v1.device(WORKER):
        return v.initializer, _read(v) + 10.0 * _read(v) + 100.0 * _read(v), 1


def _reads_that_wait_for_the_same() -> tuple[Any, Any, int]:
    v = _variable()
    with v1.device(PS), v1.control_dependencies([v.assign_add(1.0)]):
        first, second = v.read_value(), v.read_value()
    with v1.device(WORKER):
        return v.initializer, first + 10.0 * second, 1


def _reads_around_an_assignment() -> tuple[Any, Any, int]:
    v = _variable()
    before = _read(v)
    with v1.device(PS), v1.control_dependencies([before, v1.identity(before)]):
        changed = v.assign_add(1.0)
    with v1.device(PS), v1.control_dependencies([changed]):
        after = v.read_value()
    with v1.device(WORKER):
        return v.initializer, before + 10.0 * after, 2


def _identities() -> tuple[Any, Any, int]:
    v = _variable()
    with v1.device(PS):
        sum_ = v + 1.0
        same = [sum_, v1.identity(sum_), v1.stop_gradient(v1.identity(sum_))]
    with v1.device(WORKER):
        return v.initializer, same[0] + 10.0 * same[1] + 100.0 * same[2], 1


def _identities_that_wait() -> tuple[Any, Any, int]:
    """An Identity after an assignment comes later than what it hands on, so it crosses later."""
    v = _variable()
    with v1.device(PS):
        value = v + 0.0
        with v1.control_dependencies([v.assign_add(5.0)]):
            later = v1.identity(value)
    with v1.device(WORKER):
        return v.initializer, value * 0.0 + later * 0.0, 2


def _variables() -> tuple[Any, Any, int]:
    v = _variable()
    with v1.device(PS):
        w = v1.get_variable("w", initializer=v1.constant(2.0), use_resource=True)
    with v1.device(WORKER):
        return v1.group(v.initializer, w.initializer), _read(v) + 10.0 * _read(w), 2


def _branches() -> tuple[Any, Any, int]:
    """Dead tensors: in the branch that is not taken both names of the data are dead."""
    v = _variable()
    with v1.device(PS):
        is_large = v + 0.0 > 100.0
        taken, not_taken = [
            v1.cond(is_large, lambda: _branch(v, 100.0), lambda: _branch(v, 1.0)),
            v1.cond(is_large, lambda: _branch(v, 10.0), lambda: _branch(v, 0.0)),
        ]
    with v1.device(WORKER):
        return v.initializer, taken + not_taken, 0


def _branch(v: Any, factor: float) -> Any:
    first, second = _read(v), _read(v)
    with v1.device(WORKER):
        return first * factor + second * factor


def _loop() -> tuple[Any, Any, int]:
    """Read twice in each iteration, where it is also changed."""
    v = _variable()

    def body(i: Any, total: Any) -> Any:
        with v1.device(PS), v1.control_dependencies([total]):
            changed = v.assign_add(1.0)
        with v1.device(PS), v1.control_dependencies([changed]):
            first, second = v.read_value(), v.read_value()
        with v1.device(WORKER):
            return i + 1, total + first + 100.0 * second

    with v1.device(WORKER):
        return v.initializer, v1.while_loop(lambda i, _: i < 4, body, [0, 0.0], parallel_iterations=1)[1], 0


#: where each edge that crosses has data of its own
_AS_IT_IS = (_reads_around_an_assignment, _identities_that_wait, _variables)
CASES = [
    (_reads_of_one, 111.0), (_reads_that_wait_for_the_same, 22.0), (_reads_around_an_assignment, 21.0),
    (_identities, 222.0), (_identities_that_wait, 0.0), (_variables, 21.0), (_branches, 2.0), (_loop, 1414.0),
]  # fmt: skip


@pytest.mark.parametrize("worker", [LocalWorker, SerialisingWorker])
@pytest.mark.parametrize(("build", "value"), CASES, ids=[build.__name__ for build, _ in CASES])
def test_so_much_crosses(build: Any, value: float, worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with v1.Graph().as_default() as graph:
        begin, fetch, count = build()
    sent: dict[bool, list[str]] = {}
    for is_merged in (True, False):
        if not is_merged:
            monkeypatch.setattr(compiler, "merge_same_data", lambda graph, key: graph)
        with Session(graph.core, devices=_devices(), workers=worker) as session:
            session.run(begin.name)
            sent[is_merged] = _crossing(session, fetch.name)
            assert session.run(fetch.name) == value
    if count:
        assert len(sent[True]) == count, sent
    assert (len(sent[True]) < len(sent[False])) == (build not in _AS_IT_IS), sent


def test_a_graph_where_nothing_crosses_twice_is_itself() -> None:
    with v1.Graph().as_default() as graph:
        _variables()
    placed = graph.core
    assert merge_same_data(placed, lambda node: node.device.partition("/device")[0]) is placed


def test_host_and_device_memory_take_one_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device whose memory is its own a tensor crosses once, and goes from host memory to the device."""
    with v1.Graph().as_default() as graph:
        with v1.device(f"{PS}/device:CPU:0"):
            x = v1.placeholder("float32", [3], name="x") + 1.0
        with v1.device(f"{WORKER}/device:NULL:0"):
            there = v1.negative(x)
        with v1.device(f"{WORKER}/device:CPU:0"):
            y = v1.add(x, there * 3.0, name="y")
    received: dict[bool, int] = {}
    for is_merged in (True, False):
        if not is_merged:
            monkeypatch.setattr(compiler, "merge_same_data", lambda graph, key: graph)
        with Session(graph.core, devices=_devices({"CPU": 1, "NULL": 1}), workers=SerialisingWorker) as session:
            np.testing.assert_array_equal(session.run(y.name, {"x:0": np.float32([1, 2, 3])}), [-4, -6, -8])
            parts = session.compiled(y.name, ["x:0"]).stages.partitions
            received[is_merged] = sum(
                node.op in RECV_OPS and node.text("send_device").startswith(PS)
                for part in parts.values()
                for node in part
            )
    assert received == {True: 1, False: 2}
