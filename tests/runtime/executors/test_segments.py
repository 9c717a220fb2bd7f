"""Steps that wait: what is compiled between transfers, what is not and why, and that nobody waits in a circle."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.devices.serialising_worker import SerialisingWorker
from toolkit import client as gm
from toolkit.errors import DeadlineExceededError, InvalidArgumentError
from toolkit.graph.device import DeviceSpec
from toolkit.runtime.devices import Device, local_devices
from toolkit.runtime.session import Session
from toolkit.runtime.workers.local import LocalWorker

ops = gm.ops
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
FIRST, SECOND = "/device:CPU:0", "/device:CPU:1"
TASKS = [f"/job:worker/replica:0/task:{task}" for task in (0, 1)]


def tasks() -> list[Device]:
    """Two tasks with a processor each."""
    return [device for task in TASKS for device in local_devices({"CPU": 1}, DeviceSpec.parse(task))]


def told(session: Session, fetches: Any, feeds: Any = None) -> str:
    """How a step is run."""
    return "\n".join([*session.explain(fetches, feeds), *session.notes()])


def there_and_back(first: str = FIRST, second: str = SECOND) -> Any:
    """A graph that goes to another device and comes back: x float32[3, 4] to y and z float32[3, 4]."""
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [3, 4], name="x")
        with gm.device(first):
            a = ops.tanh(x) * 2.0 + 1.0
        with gm.device(second):
            b = ops.sqrt(ops.abs(a * 3.0 - 0.5))
            ops.identity(ops.exp(-b), name="z")
        with gm.device(first):
            ops.identity(ops.square(b) - ops.tanh(a) * a, name="y")
    return graph


def by_tokens(graph: Any, fetches: Any, feeds: Any = None, **settings: Any) -> Any:
    with Session(graph, devices={"CPU": 2}, precision="exact", force_tokens=True, **settings) as session:
        return session.run(fetches, feeds)


def test_what_waits_for_the_same_is_one_program() -> None:
    graph = there_and_back()
    with Session(graph, devices={"CPU": 2}, precision="exact") as session:
        session.run(["y:0", "z:0"], {"x:0": X})
        found = session.run(["y:0", "z:0"], {"x:0": X})
        lines = told(session, ["y:0", "z:0"], {"x:0": X})
    for ours, wanted in zip(found, by_tokens(graph, ["y:0", "z:0"], {"x:0": X}), strict=True):
        np.testing.assert_array_equal(ours, wanted)
    assert lines.count("plan for (float32[3,4]") == 3, lines
    assert "segment 1 of 2" in lines and "segment 1 of 1" in lines and "is received" in lines


@pytest.mark.parametrize("worker", [LocalWorker, SerialisingWorker])
def test_tasks_are_told_what_their_receives_wait_for(worker: Any) -> None:
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [3, 4], name="x")
        y = x
        with gm.device(TASKS[0]):
            weights = [ops.tanh(x * float(index)) for index in range(4)]
        with gm.device(TASKS[1]):
            for weight in weights:
                y = ops.sigmoid(y * weight) + 1.0
            ops.identity(y, name="y")
    with Session(graph, devices=tasks(), precision="exact", workers=worker) as session:
        found = session.run("y:0", {"x:0": X})
        lines = told(session, "y:0", {"x:0": X})
    with Session(graph, precision="exact", allow_soft_placement=True) as session:
        np.testing.assert_array_equal(found, session.run("y:0", {"x:0": X}))
    # four receives, one program: all four were sent before anything came back
    assert "takes 5 values, 5 of them received" in lines, lines


def branches() -> Any:
    """A branch of which each side is on a device of its own: p bool[], x float32[3, 4] to y; "off" is on one side."""
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [3, 4], name="x")
        p = ops.placeholder(np.bool_, [], name="p")
        with gm.device(FIRST):
            without, with_it = ops.switch(ops.tanh(x) * 2.0, p)
        with gm.device(SECOND):
            there = ops.sqrt(ops.abs(ops.exp(with_it) * 3.0 - 1.0))
            ops.identity(ops.tanh(there), name="off")
        with gm.device(FIRST):
            here = ops.neg(without) * 3.0 - 1.0
            merged = ops.merge([here, there])[0]
            with gm.control_dependencies([here]):
                ops.identity(x * 2.0, name="after")
            ops.identity(ops.tanh(merged) + ops.square(merged), name="y")
    return graph


@pytest.mark.parametrize("taken", [True, False])
def test_dead_tensors_cross_devices(taken: bool) -> None:
    graph, feeds = branches(), {"x:0": X, "p:0": np.bool_(taken)}
    with Session(graph, devices={"CPU": 2}, precision="exact") as session:
        for _ in range(2):
            np.testing.assert_array_equal(session.run("y:0", feeds), by_tokens(graph, "y:0", feeds))
        lines = told(session, "y:0", feeds)
        assert "plan for (float32[3,4]" in lines and "run by tokens" not in lines
        for name, is_there in (("off:0", taken), ("after:0", not taken)):
            if is_there:
                np.testing.assert_array_equal(session.run(name, feeds), by_tokens(graph, name, feeds))
            else:
                with pytest.raises(InvalidArgumentError, match="on a branch that was not taken"):
                    session.run(name, feeds)


def test_ways_through_branches_are_planned_while_they_are_few() -> None:
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [3, 4], name="x")
        y = x
        for index in range(5):
            p = ops.placeholder(np.bool_, [], name=f"p{index}")
            with gm.device(FIRST):
                without, with_it = ops.switch(x, p)
            with gm.device(SECOND):
                there = ops.tanh(with_it) * float(index + 2)
            with gm.device(FIRST):
                y = y + ops.merge([without, there])[0]
        ops.identity(y, name="y")
    with Session(graph, devices={"CPU": 2}, precision="exact") as session:
        feeds: dict[str, Any] = {}
        for number in range(32):
            feeds = {f"p{index}:0": np.bool_(number >> index & 1) for index in range(5)} | {"x:0": X}
            np.testing.assert_array_equal(session.run("y:0", feeds), by_tokens(graph, "y:0", feeds))
        assert "branches are taken in more than 8 ways" in told(session, "y:0", feeds)


def loop(inner: str) -> Any:
    """A loop of n iterations, the end of whose body is on the device `inner`: n int32[], x to y float32[3, 4]."""
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [3, 4], name="x")
        n = ops.placeholder(np.int32, [], name="n")
        with gm.device(SECOND):
            w = ops.tanh(x) * 0.5 + 0.25

        def body(i: Any, a: Any, b: Any) -> Any:
            with gm.device(FIRST):
                c = ops.sigmoid(ops.tanh(a * w) * 2.0 + 1.0)
            with gm.device(inner):
                d = ops.sqrt(ops.abs(ops.tanh(c + b * w) - 0.25) + 0.5)
            return i + 1, c, d

        with gm.device(FIRST):
            _, a, b = gm.while_loop(lambda i, a, b: i < n, body, [gm.constant(np.int32(0)), x, x])
            ops.identity(ops.tanh(a + b) * b, name="y")
    return graph


@pytest.mark.parametrize("inner", [FIRST, SECOND])
def test_only_loops_that_are_spread_go_around_by_tokens(inner: str) -> None:
    graph = loop(inner)
    with Session(graph, devices={"CPU": 2}, precision="exact") as session:
        feeds: dict[str, Any] = {}
        for n in (0, 1, 7):
            feeds = {"x:0": X, "n:0": np.int32(n)}
            np.testing.assert_array_equal(session.run("y:0", feeds), by_tokens(graph, "y:0", feeds))
        lines = told(session, "y:0", feeds)
    if inner == FIRST:
        assert "goes around" not in lines and "one iteration" in lines
    else:
        assert "which waits for others or is spread over devices" in lines
        assert lines.count("segment 1 of 2") == 2  # what is computed in an iteration is compiled all the same


def test_what_leaves_a_loop_is_behind_all_of_it() -> None:
    # the exit of the counter looks as if it came early; what waits for it must not run with what the loop waits for
    graph = loop(SECOND)
    with graph.as_default():
        x = graph.as_graph_element("x:0")
        exit_of_counter = next(op for op in graph.get_operations() if op.type == "Exit").outputs[0]
        with gm.device(FIRST):
            ops.identity(ops.cast(exit_of_counter, np.float32) * ops.tanh(x) + 1.0, name="late")
    feeds = {"x:0": X, "n:0": np.int32(4)}
    with Session(graph, devices={"CPU": 2}, precision="exact") as session:
        found = session.run(["late:0", "y:0"], feeds, timeout_ms=120_000)
    for ours, wanted in zip(found, by_tokens(graph, ["late:0", "y:0"], feeds), strict=True):
        np.testing.assert_array_equal(ours, wanted)


def queue() -> Any:
    """A step that takes from a queue what it puts there itself, when it has been to another device and back."""
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [3, 4], name="x")
        with gm.device(FIRST):
            handle = ops.fifo_queue_v2(component_types=[np.float32], shapes=[[3, 4]], capacity=1)
            a = ops.tanh(x) * 2.0 + 1.0
        with gm.device(SECOND):
            b = ops.sqrt(ops.abs(a * 3.0 - 0.5))
        with gm.device(FIRST):
            c = ops.exp(-b) * b + 1.0
            put = ops.queue_enqueue_v2(handle, [c])
            taken = ops.queue_dequeue_v2(handle, component_types=[np.float32])
            ops.identity(ops.tanh(taken[0]) * 2.0 + ops.square(taken[0]) + a, name="y")
        with gm.control_dependencies([put]):
            ops.no_op(name="put")
    return graph


def test_nobody_waits_for_a_queue_who_did_not_before() -> None:
    graph, feeds = queue(), {"x:0": X}
    with Session(graph, devices={"CPU": 2}, precision="exact") as session:
        session.run(["y:0", "put"], feeds, timeout_ms=120_000)
        found, _ = session.run(["y:0", "put"], feeds, timeout_ms=120_000)
        np.testing.assert_array_equal(found, by_tokens(graph, ["y:0", "put"], feeds)[0])
        lines = told(session, ["y:0", "put"], feeds)
        assert "waits for others" in lines
        with pytest.raises(DeadlineExceededError):
            session.run("y:0", feeds, timeout_ms=50)  # nobody puts anything there
        np.testing.assert_array_equal(session.run(["y:0", "put"], feeds)[0], found)


def test_one_device_compiles_around_its_queue() -> None:
    graph, feeds = queue(), {"x:0": X}
    with Session(graph, precision="exact") as session:
        found, _ = session.run(["y:0", "put"], feeds, timeout_ms=120_000)
        assert "segment 1 of" in told(session, ["y:0", "put"], feeds)
    np.testing.assert_array_equal(found, by_tokens(graph, ["y:0", "put"], feeds)[0])


def test_weights_are_constants_where_they_are_used() -> None:
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [3, 4], name="x")
        with gm.device(FIRST):
            a = ops.tanh(x) * 2.0 + 1.0
        with gm.device(SECOND):
            weights = gm.Variable(np.eye(4, dtype=np.float32), use_resource=True, name="w")
            ops.identity(ops.mat_mul(ops.sigmoid(a) - 0.5, weights * 2.0), name="y")
        init = gm.global_variables_initializer()
        change = weights.assign(np.ones((4, 4), np.float32))
    with Session(graph, devices={"CPU": 2}, precision="f32") as session:
        session.run(init)
        before = session.run("y:0", {"x:0": X})
        assert "1 variable(s) taken as constants" in told(session, "y:0", {"x:0": X})
        session.run(change.op if hasattr(change, "op") else change)
        after = session.run("y:0", {"x:0": X})
    assert not np.array_equal(before, after)
    np.testing.assert_allclose(after, np.repeat(after[:, :1], 4, axis=1), rtol=1e-6)  # all columns of w are the same


def test_shapes_that_others_have_worked_out_are_known() -> None:
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [None, 4], name="x")
        with gm.device(FIRST):
            size = ops.shape(x)
            a = ops.reshape(ops.tanh(x) * 2.0, [-1])
        with gm.device(SECOND):
            ops.identity(ops.tanh(ops.reshape(a + 1.0, size)) * 3.0, name="y")
    with Session(graph, devices={"CPU": 2}) as session:
        for rows in (3, 5, 3):
            value = np.resize(X, (rows, 4))
            assert session.run("y:0", {"x:0": value}).shape == (rows, 4)
        lines = told(session, "y:0", {"x:0": X})
    assert "float32[?]" not in lines and "not known before" not in lines, lines


def test_partial_runs_get_what_can_be_computed() -> None:
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [3, 4], name="x")
        z = ops.placeholder(np.float32, [3, 4], name="z")
        with gm.device(FIRST):
            ops.identity(ops.tanh(x) * 2.0 + 1.0, name="first")
        with gm.device(SECOND):
            ops.identity(ops.exp(z) * graph.as_graph_element("first:0") + 1.0, name="second")
    for devices in ({"CPU": 1}, {"CPU": 2}):
        with Session(graph, devices=devices, precision="exact") as session:
            handle = session.partial_run_setup(["first:0", "second:0"], ["x:0", "z:0"])
            first = session.partial_run(handle, "first:0", {"x:0": X})
            second = session.partial_run(handle, "second:0", {"z:0": first})
        np.testing.assert_array_equal(first, np.tanh(X) * np.float32(2) + np.float32(1))
        np.testing.assert_array_equal(second, by_tokens(graph, "second:0", {"x:0": X, "z:0": first}))


def test_variables_by_reference_that_computed_numbers_change_go_to_another_device() -> None:
    """What goes there is the variable's value, not the variable; what is added lies in the arena."""
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [3, 4], name="x")
        with gm.device(FIRST):
            variable = gm.get_variable("v", initializer=gm.constant(np.ones((3, 4), np.float32)), use_resource=False)
            changed = variable.assign_add(ops.tanh(x) * 2.0 + ops.square(x))
        with gm.device(SECOND):
            ops.identity(ops.exp(-changed), name="y")
    results: list[Any] = []
    for tokens in (False, True):
        with Session(graph, devices={"CPU": 2}, precision="exact", force_tokens=tokens) as session:
            session.run(variable.initializer)
            results.append([session.run("y:0", {"x:0": X}) for _ in range(3)])
    np.testing.assert_array_equal(*results)
