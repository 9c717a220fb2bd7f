"""Sessions over actors: what crosses between them, what is refused, and what ends."""

from __future__ import annotations

import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("ray")

from schemas import config_pb2
from tests import patience
from tests.cluster.clients import unique
from tests.cluster.ray.conftest import RayCluster
from toolkit import errors
from toolkit import tensorflow as gm
from toolkit.cluster.ray import kind, placing
from toolkit.cluster.ray.actor import ActorSettings
from toolkit.cluster.ray.answers import Failure, begin, checked
from toolkit.formats.settings.cluster import Cluster, Task, parse_cluster
from toolkit.graph.device import DeviceSpec
from toolkit.policy.rules import Policy
from toolkit.runtime.probes.trace import TraceProbe

PS, FIRST, SECOND = "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"


@pytest.mark.parametrize(
    "value",
    [
        np.float32(2.5), np.arange(12, dtype=np.int64).reshape(3, 4), np.zeros((0, 3), np.float32),
        np.array([b"a", b"bc", b"\0d"], object), np.array([1, 2], ml_dtypes.bfloat16), np.array([True, False]),
        np.arange(1 << 18, dtype=np.float64), np.array([1 + 2j], np.complex64),
    ],
    ids=lambda value: f"{value.dtype}-{value.size}",
)  # fmt: skip
def test_tensors_cross(actors: RayCluster, value: Any) -> None:
    """Fed, sent from one task to another, and fetched: small ones inside of messages, large ones in shared memory."""
    with gm.Graph().as_default():
        fed = gm.placeholder(gm.as_dtype("string") if value.dtype == object else gm.as_dtype(value.dtype), value.shape)
        with gm.device(FIRST):
            there = gm.identity(fed)
        with gm.device(SECOND):
            again = gm.identity(there)
        with gm.Session("ray") as session:
            found = session.run(again, {fed: value})
    assert np.asarray(found).dtype == value.dtype or value.dtype == object
    np.testing.assert_array_equal(np.asarray(found, object), np.asarray(value, object))


def test_a_variable_outlives_its_session_and_is_emptied_by_reset(actors: RayCluster) -> None:
    name = unique("kept")
    with gm.Graph().as_default(), gm.device(PS):
        held = gm.get_variable(name, [2], initializer=gm.ones_initializer(), use_resource=False)
        more = held.assign_add([1.0, 2.0])
        with gm.Session("ray") as session:
            session.run(held.initializer)
            session.run(more)
        with gm.Session("ray") as session:
            np.testing.assert_array_equal(session.run(held), [2.0, 3.0])
        gm.Session.reset("ray")
        with gm.Session("ray") as session, pytest.raises(errors.FailedPreconditionError):
            session.run(held)


def test_loops_queues_and_branches_over_actors(actors: RayCluster) -> None:
    with gm.Graph().as_default():
        with gm.device(FIRST):
            queue = gm.FIFOQueue(10, gm.float32, shapes=[[]], shared_name=unique("queue"))
            put = queue.enqueue_many([[1.0, 2.0, 3.0]])

        def body(i: Any, total: Any) -> Any:
            with gm.device(SECOND):
                more = total * 2.0
            with gm.device(PS):
                return i + 1, more + 1.0

        _, looped = gm.while_loop(lambda i, _: gm.less(i, 5), body, [gm.constant(0), gm.constant(1.0)])
        taken = gm.placeholder(gm.bool, [])
        with gm.device(SECOND):
            branch = gm.cond(taken, lambda: looped * 1.0, lambda: looped * -1.0)
            got = queue.dequeue() + branch
        with gm.Session("ray") as session:
            session.run(put)
            assert [float(session.run(got, {taken: each})) for each in (True, False, True)] == [64.0, -61.0, 66.0]


def test_a_partial_run_and_a_callable(actors: RayCluster) -> None:
    with gm.Graph().as_default():
        a, b = gm.placeholder(gm.float32, []), gm.placeholder(gm.float32, [])
        with gm.device(FIRST):
            first = a + 1.0
        with gm.device(SECOND):
            second = first * b
        with gm.Session("ray") as session:
            handle = session.partial_run_setup([first, second], [a, b])
            assert session.partial_run(handle, first, {a: 2.0}) == 3.0
            assert session.partial_run(handle, second, {b: 4.0}) == 12.0
            call = session.make_callable(second, [a, b])
            assert [float(call(x, 2.0)) for x in (1.0, 2.0)] == [4.0, 6.0]
            assert {each.name for each in session.list_devices()} == {
                f"/job:{job}/replica:0/task:{task}/device:CPU:0"
                for job, tasks in actors.jobs.items()
                for task in range(len(tasks))
            }


def test_what_fails_is_named_and_the_session_goes_on(actors: RayCluster) -> None:
    with gm.Graph().as_default():
        at = gm.placeholder(gm.int32, [])
        with gm.device(FIRST):
            picked = gm.gather([1.0, 2.0], at, name="pick")
        with gm.device(SECOND):
            doubled = picked * 2.0
        with gm.Session("ray") as session:
            with pytest.raises(errors.InvalidArgumentError) as caught:
                session.run(doubled, {at: 7})
            assert caught.value.node == "pick"
            assert session.run(doubled, {at: 1}) == 4.0


def test_a_step_that_waits_is_ended_by_its_deadline_and_by_the_sessions_end(actors: RayCluster) -> None:
    with gm.Graph().as_default():
        with gm.device(FIRST):
            queue = gm.FIFOQueue(1, gm.float32, shapes=[[]], shared_name=unique("empty"))
            taken = queue.dequeue()
        with gm.device(SECOND):
            result = taken * 2.0
        session = gm.Session("ray")
        with pytest.raises(errors.DeadlineExceededError):
            session.run(result, options=gm.RunOptions(timeout_in_ms=300))
        raised: list[BaseException] = []
        running = threading.Event()

        def wait() -> None:
            running.set()
            try:
                session.run(result)
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        running.wait(patience.HUNG)
        session.close()
        thread.join(patience.HUNG)
        assert isinstance(raised[0], errors.CancelledError | errors.ClosedError), raised


def test_a_trace_has_the_nodes_of_all_tasks(actors: RayCluster) -> None:
    with gm.Graph().as_default():
        with gm.device(FIRST):
            first = gm.random_uniform([64, 64], seed=1)
        with gm.device(SECOND):
            second = gm.matmul(first, first, name="product")
        with gm.Session("ray") as session:
            metadata = gm.RunMetadata()
            session.run(second, options=gm.RunOptions(trace_level=gm.RunOptions.FULL_TRACE), run_metadata=metadata)
            devices = {each.device: {n.node_name for n in each.node_stats} for each in metadata.step_stats.dev_stats}
            assert "product" in devices["/job:worker/replica:0/task:1/device:CPU:0"]
            probe = TraceProbe()
            gm.Session.__mro__[2].run(session, second, probe=probe)  # our own run, which takes probes
            assert any(span.node == "product" for span in probe.timeline())


def test_device_filters_and_isolated_state(actors: RayCluster) -> None:
    name = unique("own")
    with gm.Graph().as_default():
        with gm.device(FIRST):
            held = gm.get_variable(name, [], initializer=gm.ones_initializer(), use_resource=False)
        filters = gm.ConfigProto(device_filters=["/job:worker"], isolate_session_state=True)
        with gm.Session("ray", config=filters) as session:
            session.run(held.initializer)
            assert session.run(held) == 1.0
            assert not any("ps" in each.name for each in session.list_devices())
        with gm.Session("ray") as session, pytest.raises(errors.FailedPreconditionError):
            session.run(held)
        nothing = gm.ConfigProto(device_filters=["/job:nobody"])
        with (
            gm.Session("ray", config=nothing) as session,
            pytest.raises(errors.InvalidArgumentError, match="leave no task"),
        ):
            session.run(held)


def test_a_step_with_a_task_that_ends_fails_once_and_names_it(actors: RayCluster) -> None:
    """And a tensor of the process before is refused."""
    with gm.Graph().as_default():
        with gm.device(FIRST):
            queue = gm.FIFOQueue(1, gm.float32, shapes=[[]], shared_name=unique("never"))
            waiting = queue.dequeue()
        with gm.device(SECOND):
            result = waiting * 2.0
        with gm.device(PS):
            alone = gm.constant(1.0) + 1.0
        with gm.Session("ray") as session:
            assert session.run(alone) == 2.0
            old = next(each.incarnation for each in session.list_devices() if "worker" in each.name)
            raised: list[BaseException] = []

            def wait() -> None:
                try:
                    session.run(result)
                except BaseException as error:
                    raised.append(error)

            thread = threading.Thread(target=wait, daemon=True)
            thread.start()
            actors.restart("worker", 0)
            thread.join(patience.HUNG)
            assert isinstance(raised[0], errors.UnavailableError | errors.AbortedError), raised
            assert "/job:worker/replica:0/task:0" in str(raised[0])
        sender = actors.engine.tasks["/job:worker/replica:0/task:0"].actor
        key = f"/job:worker/replica:0/task:0/device:CPU:0;{old:016x};{SECOND};x;0:0"
        with pytest.raises(errors.AbortedError, match="started anew"):
            checked(begin(sender, "receive", 1, key), "it", patience.HUNG)
        with gm.Session("ray") as session:
            assert session.run(alone) == 2.0


def test_what_ray_has_no_room_for(ray_here: Any) -> None:
    def opened(**resources: float) -> None:
        cluster = Cluster((Task("worker", 0, "", {"CPU": 1}, resources),), DeviceSpec("worker", 0, 0), "c.yaml")
        with kind.running("ray", cluster, ActorSettings(Policy.everything())):
            pass

    with pytest.raises(errors.UsageError, match=r"task:0 needs 1 CPU, 2 GPU, and no host .* has that; there is 8 CPU"):
        opened(gpus=2)
    with pytest.raises(errors.UsageError, match="1 fast_disk"):
        opened(fast_disk=1)
    opened(cpus=2)


def test_rooms_for_several_tasks() -> None:
    hosts = [{"CPU": 2.0, "memory": 2.0**30}, {"CPU": 1.0, "GPU": 1.0, "memory": 2.0**30}]
    one = {"CPU": 1.0}
    assert placing.lacking({"a": one, "b": {"CPU": 1.0, "GPU": 1.0}, "c": one}, hosts) == ""
    told = placing.lacking(dict.fromkeys("abcd", one), hosts)
    assert told.startswith("the 4 tasks need 4 CPU together, and there is no room left for d")
    assert "needs 3 CPU" in placing.lacking({"a": {"CPU": 3.0}}, hosts)
    assert placing.lacking({"a": {"memory": 2.0**31}}, hosts).startswith("a needs 2.0 GiB memory, and no host")


def test_resources_of_a_cluster_file() -> None:
    text = "jobs: {worker: [{resources: {cpus: 2, gpus: 0.5, memory: 2G, disk: 1}}, {devices: {GPU: 1}}]}"
    first, second = parse_cluster(text).tasks
    assert placing.request_of(first) == {"CPU": 2.0, "GPU": 0.5, "memory": 2.0 * 2**30, "disk": 1.0}
    assert placing.request_of(second) == {"CPU": 1.0, "GPU": 1.0}
    assert placing.options_of(placing.request_of(first)) == {
        "num_cpus": 2.0, "num_gpus": 0.5, "resources": {"disk": 1.0}, "memory": 2**31,
    }  # fmt: skip
    with pytest.raises(errors.FormatError, match=r":1: memory: 'much' is not a number with a unit"):
        parse_cluster("jobs: {worker: [{resources: {memory: much}}]}", "c.yaml")


@pytest.mark.parametrize("target", ["ray://", "ray://host", "ray://host:0", "ray:host:99999", "ray:///x:1"])
def test_targets_that_are_none(target: str) -> None:
    if target == "ray://":
        assert kind.address_of(target) == kind.address_of("ray") == ""
        assert kind.address_of("ray:head:6379") == kind.address_of("ray://head:6379") == "head:6379"
        return
    with pytest.raises(errors.UsageError, match="is no Ray cluster; expected ray, or ray://HOST:PORT"):
        kind.address_of(target)


def test_errors_cross_as_what_they_are() -> None:
    for error in (errors.OutOfRangeError("end", node="n"), errors.GraphError("bad"), errors.FormatError("x", file="f")):
        told = Failure.of(error).error
        assert (type(told), str(told)) == (type(error), str(error))
    assert isinstance(Failure.of(errors.BugError("here", ValueError("x"))).error, errors.InternalError)
    assert isinstance(Failure.of(ValueError("x")).error, errors.InternalError)


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    from toolkit.cluster.ray import library

    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(errors.UsageError, match=r"pip install 'graphmill\[ray\]'"):
        library.ray()


def test_a_cluster_of_the_configuration(ray_here: Any) -> None:
    """`ConfigProto.cluster_def` is another cluster, with actors of its own."""
    config = config_pb2.ConfigProto(allow_soft_placement=True)
    config.cluster_def.job.add(name="solo").tasks[0] = "anywhere:1"
    with gm.Graph().as_default():
        with gm.device("/job:solo/task:0"):
            two = gm.constant(1.0) + 1.0
        with gm.Session("ray", config=config) as session:
            assert session.run(two) == 2.0
            assert [each.name for each in session.list_devices()] == ["/job:solo/replica:0/task:0/device:CPU:0"]
