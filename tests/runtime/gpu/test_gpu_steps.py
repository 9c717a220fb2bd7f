"""Steps over CPUs and GPUs, on the fake driver, beside the CPU alone: loops, branches, functions, training, queues."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import perturbation, tolerance
from toolkit import client as gm
from toolkit import tensorflow as tf
from toolkit.errors import GraphError, InvalidArgumentError
from toolkit.kernels import registry
from toolkit.kernels.cuda import settings
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.probes.base import Probes
from toolkit.runtime.probes.dump import DumpProbe
from toolkit.runtime.probes.numerics import NumericsProbe
from toolkit.runtime.probes.trace import TraceProbe
from toolkit.runtime.session import Session

ops = gm.ops
HERE, THERE, BESIDE = "/device:CPU:0", "/device:GPU:0", "/device:GPU:1"
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
#: makes a graph, given the device that some of its nodes are on, and another one
Build = Callable[[Any, str, str], Any]


@pytest.fixture(params=[0, 1], autouse=True)
def _gpus(request: pytest.FixtureRequest) -> Iterator[None]:
    """Two devices that do their work in one order or another."""
    with choose.using(FakeDriver(2, seed=request.param)):
        yield
    settings.forget()


def check(build: Build, work: Callable[[Session, Any], list[Any]], second: str = HERE, **options: Any) -> Session:
    """What is done with a graph over GPUs gives what it gives on the CPU alone; returns the session."""

    def made(first: str, other: str) -> tuple[Any, Any]:
        with gm.Graph().as_default() as graph:
            return graph, build(graph, first, other)

    graph, here = made(HERE, HERE)
    with Session(graph, precision="exact") as session:
        wanted = work(session, here)
    far = perturbation.of_work(graph, lambda session: work(session, here))
    there, parts = made(THERE, second)
    with Session(there, devices={"GPU": 2}, **options) as session:
        got = work(session, parts)
        for mine, other, allowed in zip(got, wanted, far, strict=True):
            if perturbation.is_rounded(other):
                tolerance.assert_within(mine, other, allowed)
            else:
                np.testing.assert_array_equal(mine, other)
        return session


def used(session: Session, number: int = 0) -> int:
    """How many arrays a GPU of a session has made."""
    return session.device_statistics()[f"/job:localhost/replica:0/task:0/device:GPU:{number}"].allocations


@pytest.mark.parametrize("second", [HERE, THERE, BESIDE])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_loop_over_two_devices(second: str, count: int) -> None:
    def build(graph: Any, first: str, other: str) -> Any:
        x, n = gm.placeholder(gm.float32, [2, 3]), gm.placeholder(gm.int32, [])

        def body(i: Any, y: Any) -> Any:
            with graph.device(first):
                z = ops.tanh(y) + x
            with graph.device(other):
                return [i + 1, z * 0.5]

        with graph.device(HERE):
            return x, n, gm.while_loop(lambda i, y: i < n, body, [gm.constant(0), x])[1]

    check(build, lambda session, parts: [session.run(parts[2], {parts[0]: X, parts[1]: np.int32(count)})], second)


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_on_the_device(taken: bool) -> None:
    def build(graph: Any, first: str, other: str) -> Any:
        x, p = gm.placeholder(gm.float32, [2, 3]), gm.placeholder(gm.bool_, [])
        with graph.device(first):
            return x, p, gm.cond(p, lambda: ops.tanh(x) * 2.0, lambda: x - 1.0)

    check(build, lambda session, parts: [session.run(parts[2], {parts[0]: X, parts[1]: taken})])


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("optimizer", [lambda: gm.train.Momentum(0.1, 0.9), lambda: gm.train.Adam(0.1)])
def test_training(resource: bool, optimizer: Callable[[], Any]) -> None:
    def build(graph: Any, first: str, other: str) -> Any:
        x = gm.placeholder(gm.float32, [None, 3])
        with graph.device(first):
            w = gm.Variable(np.full((3, 2), 0.5, np.float32), name="w", use_resource=resource)
            loss = ops.mean(ops.square(ops.tanh(ops.mat_mul(x, w.value())) - 0.25), [0, 1])
            step = optimizer().minimize(loss)
        return x, w.value(), loss, step, gm.global_variables_initializer()

    def work(session: Session, parts: Any) -> list[Any]:
        x, w, loss, step, start = parts
        session.run(start)
        losses = [session.run([loss, step], {x: X})[0] for _ in range(3)]
        assert losses[2] < losses[0]
        return [*losses, session.run(w)]

    check(build, work)


def test_two_gpus_copy_between_them() -> None:
    def build(graph: Any, first: str, other: str) -> Any:
        x = gm.placeholder(gm.float32, [2, 3])
        with graph.device(first):
            y = ops.transpose(x, [1, 0])
        with graph.device(other):
            return x, y, ops.reshape(ops.reverse_v2(y, [0]), [-1])

    session = check(build, lambda session, parts: session.run(list(parts[1:]), {parts[0]: X}), BESIDE)
    assert used(session, 1) > 0
    assert session.device_statistics()["/job:localhost/replica:0/task:0/device:GPU:1"].copies_across > 0


def test_functions_stay_on_the_device() -> None:
    def build(graph: Any, first: str, other: str) -> Any:
        @tf.function
        def twice(a: Any) -> Any:
            return ops.tanh(a) * 2.0

        x = gm.placeholder(gm.float32, [2, 3])
        with graph.device(first):
            return x, twice(twice(x))

    check(build, lambda session, parts: [session.run(parts[1], {parts[0]: X})])


def test_a_queue_between_a_gpu_and_another_device() -> None:
    def build(graph: Any, first: str, other: str) -> Any:
        x = gm.placeholder(gm.float32, [2, 3])
        with graph.device(HERE):
            queue = tf.FIFOQueue(3, [gm.float32], shapes=[[2, 3]])
        with graph.device(first):
            put = queue.enqueue([ops.exp(x)])
        with graph.device(other):
            return x, put, ops.neg(queue.dequeue())

    def work(session: Session, parts: Any) -> list[Any]:
        x, put, taken = parts
        for factor in (1, 2):
            session.run(put, {x: X * np.float32(factor)})
        return [session.run(taken), session.run(taken)]

    check(build, work, THERE)


@pytest.mark.parametrize("resource", [False, True])
def test_variables_are_saved_and_restored(resource: bool, tmp_path: Path) -> None:
    with gm.Graph().as_default() as graph, graph.device(THERE):
        w = gm.Variable(X, name="w", use_resource=resource)
        double = w.assign(w.value() * 2.0)
        start = gm.global_variables_initializer()
        saver = tf.train.Saver()
    with Session(graph, devices={"GPU": 1}) as session:
        session.run(start)
        session.run(double)
        prefix = saver.save(session, str(tmp_path / "model"))
        session.run(double)
        saver.restore(session, prefix)
        np.testing.assert_array_equal(session.run(w.value()), X * 2)
        session.run(double)
        np.testing.assert_array_equal(session.run(w.value()), X * 4)
    with Session(graph) as session:  # and on the CPU
        saver.restore(session, prefix)
        np.testing.assert_array_equal(session.run(w.value()), X * 2)


def test_nodes_that_ask_for_nothing_are_put_on_the_gpu() -> None:
    """As with TensorFlow: whatever has a kernel there."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 3])
        y = ops.transpose(x, [1, 0], name="y")
        text = ops.as_string(y, name="text")
    with Session(graph, devices={"GPU": 2}) as session:
        assert session.run(text, {x: X}).shape == (3, 2)
        placed = session.compiled(text, [x]).stages.placed
        assert placed.node("y").device.endswith("GPU:0") and placed.node("text").device.endswith("CPU:0")
        assert session.moved() == []  # it asked for nothing
        assert session.wanting() == []  # nor has TensorFlow a kernel for texts


def test_a_node_without_a_kernel_is_told_or_refused() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 3])
        with graph.device(THERE):
            y = ops.as_string(ops.transpose(x, [1, 0]), name="text")
    with Session(graph, devices={"GPU": 1}) as session:
        session.run(y, {x: X})
        assert session.moved() == [
            (
                "AsString 'text' asked for /device:GPU:0 and runs on /job:localhost/replica:0/task:0/device:CPU:0: "
                "there is no GPU kernel for AsString (string)"
            )
        ]
    with (
        Session(graph, devices={"GPU": 1}, allow_soft_placement=False) as session,
        pytest.raises(
            GraphError, match=r"node 'text': AsString \(string\) has no kernel for GPU, which it is bound to"
        ),
    ):
        session.run(y, {x: X})


def test_what_runs_on_the_cpu_for_want_of_a_kernel_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.load("GPU")
    monkeypatch.delitem(registry._kernels, ("Transpose", "GPU"))  # pyright: ignore[reportPrivateUsage]
    with gm.Graph().as_default() as graph:

        @tf.function
        def turned(a: Any) -> Any:
            return ops.transpose(a, [1, 0])

        x = gm.placeholder(gm.float32, [2, 3])
        y = ops.transpose(ops.transpose(x, [1, 0], name="first"), [1, 0], name="second")
        with graph.device(THERE):
            z = turned(y)
    with Session(graph, devices={"GPU": 1}) as session:
        np.testing.assert_array_equal(session.run(z, {x: X}), X.T)
        assert session.wanting() == [
            "Transpose 'first' and 1 more run on the CPU: there is no GPU kernel for Transpose (float32)"
        ]
        (line,) = session.moved()  # nothing of the function can be there
        assert "there is no GPU kernel for Transpose (float32) in function" in line


def test_a_function_of_which_a_part_has_no_kernel() -> None:
    """It runs where it is called, and copies; where nothing may be moved, it is refused."""
    with gm.Graph().as_default() as graph:

        @tf.function
        def turned(a: Any) -> Any:
            return tf.matrix_determinant(tf.transpose(a)), tf.as_string(tf.transpose(a))

        x = gm.placeholder(gm.float32, [2, 2])
        with graph.device(THERE):
            y = turned(x)
    square = X[:, :2]
    with Session(graph) as session:
        wanted = session.run(y, {x: square})
    with Session(graph, devices={"GPU": 1}) as session:
        got = session.run(y, {x: square})
        np.testing.assert_array_equal(got[1], wanted[1])
        assert session.moved() == []
        (line,) = session.wanting()
        assert "in part on the CPU: there is no GPU kernel for " in line
    with (
        Session(graph, devices={"GPU": 1}, allow_soft_placement=False) as session,
        pytest.raises(GraphError, match="has no kernel for GPU, which it is bound to"),
    ):
        session.run(y, {x: square})


def test_errors_on_the_device_name_their_node() -> None:
    with gm.Graph().as_default() as graph:
        x, shape = gm.placeholder(gm.float32, [None, 3]), gm.placeholder(gm.int32, [None])
        with graph.device(THERE):
            y = ops.reshape(x, shape, name="turned")
    with Session(graph, devices={"GPU": 1}) as session, pytest.raises(InvalidArgumentError, match="turned"):
        session.run(y, {x: X, shape: np.array([7], np.int32)})


def test_probes_look_at_tensors_of_the_device(tmp_path: Path) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 3])
        with graph.device(THERE):
            y = ops.reshape(ops.transpose(x, [1, 0], name="turned"), [-1], name="flat")
    dump, trace = DumpProbe(["turned"], str(tmp_path)), TraceProbe(per_node=True)
    with Session(graph, devices={"GPU": 1}) as session:
        session.run(y, {x: X}, probe=Probes([dump, trace]))
        np.testing.assert_array_equal(np.load(tmp_path / "turned_0_0.npy"), X.T)
        spans = {span.node: span for span in trace.spans}
        assert spans["turned"].device.endswith("GPU:0") and spans["turned"].made_bytes == X.nbytes
        assert spans["flat"].made_bytes == 0  # another shape of the same memory
        device = next(name for name in trace.memory.by_device if name.endswith("GPU:0"))
        assert trace.memory.by_device[device].peak >= X.nbytes
        bad = np.full([2, 3], np.inf, np.float32)
        with pytest.raises(InvalidArgumentError, match="turned"):
            session.run(y, {x: bad}, probe=_Infinite(per_node=True))


class _Infinite(NumericsProbe):
    """Takes every input for finite, so that the first output that is not is told."""

    def ran(self, node: Any, device: str, start_ns: int, end_ns: int, inputs: Any, outputs: Any) -> None:
        if not node.op.startswith("_"):
            super().ran(node, device, start_ns, end_ns, (), outputs)


def test_small_integers_stay_in_host_memory_and_on_the_device() -> None:
    """A node of int32 has TensorFlow's kernel for GPUs, which looks at host memory alone: nothing crosses for it."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 3])
        rows = ops.shape(x, name="shape")[0]
        count = ops.maximum(ops.mul(rows, 2, name="twice"), 3, name="count")
        y = ops.reshape(ops.tile(x, ops.pack([count, 1], name="both")), [-1])
    with Session(graph, devices={"GPU": 1}) as session:
        np.testing.assert_array_equal(session.run(y, {x: X}), np.tile(X, (4, 1)).reshape(-1))
        stages = session.compiled(y, [x]).stages
        assert {node.device[-5:] for node in stages.placed} == {"GPU:0"}
        (only,) = stages.partitions.values()
        assert not any(node.op in ("_Send", "_Recv", "_HostSend", "_HostRecv") for node in only)
        assert session.wanting() == session.moved() == []


def test_a_step_that_is_fed_and_fetched_in_parts() -> None:
    with gm.Graph().as_default() as graph:
        x, w = gm.placeholder(gm.float32, [2, 3]), gm.placeholder(gm.float32, [3, 2])
        with graph.device(THERE):
            y = ops.transpose(x, [1, 0])
            z = ops.reshape(ops.concat_v2([y, w], 0), [-1])
    with Session(graph, devices={"GPU": 1}) as session:
        handle = session.partial_run_setup([y, z], [x, w])
        np.testing.assert_array_equal(session.partial_run(handle, y, {x: X}), X.T)
        np.testing.assert_array_equal(session.partial_run(handle, z, {w: X.T}), np.concatenate([X.T, X.T]).reshape(-1))


def test_many_threads_run_steps_on_one_gpu() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 3])
        y = ops.reshape(ops.transpose(x, [1, 0]), [-1])
    with Session(graph, devices={"GPU": 1}) as session, ThreadPoolExecutor(4) as threads:
        call = session.make_callable(y, [x])
        results = list(threads.map(lambda n: call(X * np.float32(n)), range(12)))
    for n, got in enumerate(results):
        np.testing.assert_array_equal(got, (X * np.float32(n)).T.reshape(-1))


def test_gradients_of_a_loop_over_two_devices() -> None:
    """What the loop pushes on stacks its gradient's loop takes, each on the device where it is."""

    def build(graph: Any, first: str, other: str) -> Any:
        x = gm.placeholder(gm.float32, [2, 3])

        def body(i: Any, y: Any) -> Any:
            with graph.device(first):
                z = ops.transpose(ops.transpose(y * x, [1, 0]), [1, 0])
            with graph.device(other):
                return [i + 1, tf.where(z > 0, tf.sinh(z), z * 0.5)]

        with graph.device(HERE):
            end = gm.while_loop(lambda i, y: i < 3, body, [gm.constant(0), x])[1]
            return x, end, tf.gradients(end, [x])[0]

    check(build, lambda session, parts: session.run(list(parts[1:]), {parts[0]: X}))
