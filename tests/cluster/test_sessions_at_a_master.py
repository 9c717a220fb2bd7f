"""Our session at a TensorFlow server: what steps take and give, beside TensorFlow's client at the same master."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from schemas import config_pb2
from tests.cluster.clients import same, theirs, unique
from tests.cluster.tensorflow_servers import Cluster
from toolkit import tensorflow as gm
from toolkit.client import ops
from toolkit.errors import (
    FailedPreconditionError,
    GraphError,
    InvalidArgumentError,
    OutOfRangeError,
    UsageError,
)
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow

DTYPES = [
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool", "complex64", "complex128", "string", "qint8", "quint8", "qint32",
]  # fmt: skip


class Pair(NamedTuple):
    a: Any
    b: Any


@pytest.fixture
def graph() -> Iterator[Any]:
    made = gm.Graph()
    with made.as_default():
        yield made


def value_of(dtype: Any, shape: tuple[int, ...]) -> Any:
    count = int(np.prod(shape))
    if dtype.name == "string":
        return np.array([b"a\0\xff" * (n % 5) for n in range(count)] or [], object).reshape(shape)
    return (np.arange(count) % 2 if dtype.name == "bool" else np.arange(count) % 100).astype(dtype.numpy).reshape(shape)


@pytest.mark.parametrize("name", DTYPES)
def test_every_type_goes_there_and_back(tf: ModuleType, servers: Cluster, graph: Any, name: str) -> None:
    dtype = gm.as_dtype(name)
    shapes = [(), (0, 3), (2, 3), (40, 50)]  # the last is large enough to go without the protobuf library
    with gm.device("/job:ps/task:0"):
        fed = [gm.placeholder(dtype, shape, name=f"x{n}") for n, shape in enumerate(shapes)]
    with gm.device("/job:worker/task:1"):
        out = [gm.identity(each, name=f"y{n}") for n, each in enumerate(fed)]
    values = [value_of(dtype, shape) for shape in shapes]
    with gm.Session(servers.target()) as session:
        ours = session.run(out, dict(zip(fed, values, strict=True)))
    names = {each.name: value for each, value in zip(fed, values, strict=True)}
    if name.startswith("q"):  # TensorFlow's client has types of its own for these
        expected = values
    else:
        expected = theirs(tf, servers.target(), graph, [each.name for each in out], names)
    for found, wanted, value in zip(ours, expected, values, strict=True):
        same(found, wanted)
        same(found, value)
        assert not isinstance(found, np.ndarray) or found.flags.writeable


def test_arrays_of_any_layout(servers: Cluster, graph: Any) -> None:
    x = gm.placeholder(gm.float32, [None, None])
    y = x + 0.0
    value = np.arange(12000, dtype=np.float32).reshape(100, 120)
    with gm.Session(servers.target()) as session:
        for each in (value.T, value[::2, ::3], value[:, ::-1], np.asfortranarray(value)):
            same(session.run(y, {x: each}), each)


def test_structures(servers: Cluster, graph: Any) -> None:
    a, b = gm.constant(1), gm.constant([2.0, 3.0])
    sparse = gm.SparseTensor(gm.constant([[0, 1]], gm.int64), gm.constant([5]), gm.constant([2, 2], gm.int64))
    nothing = gm.no_op()
    x = gm.placeholder(gm.int32, [])
    with gm.Session(servers.target()) as session:
        found = session.run({"p": Pair(a, [b, nothing]), "s": sparse, "again": (a,)})
        assert isinstance(found["p"], Pair) and found["p"].a == 1 and found["p"].b[1] is None
        np.testing.assert_array_equal(found["p"].b[0], [2, 3])
        np.testing.assert_array_equal(found["s"].values, [5])
        assert found["again"] == (1,)
        assert session.run(nothing) is None
        assert session.run([x, a], {x: 7}) == [7, 1]  # fed and fetched
        assert session.run(a, {a: 9}) == 9
        assert session.run(a + 1, {a: 9}) == 10  # what is fed need not be a placeholder
        assert session.run([]) == []


def test_the_graph_grows(tf: ModuleType, servers: Cluster, graph: Any) -> None:
    with gm.Session(servers.target()) as session:
        a = gm.constant([1.0, 2.0], name="a")
        same(session.run(a), np.array([1, 2], np.float32))
        with gm.device("/job:ps/task:0"):
            b = gm.multiply(a, 3.0, name="b")
        same(session.run(b), np.array([3, 6], np.float32))
        c = gm.map_fn(lambda each: each + 1, b)  # a loop
        same(session.run(c), np.array([4, 7], np.float32))
        d = gm.while_loop(lambda n, _: n < 5, lambda n, each: (n + 1, each * 2), [gm.constant(0), c])[1]
        same(session.run(d), np.array([128, 224], np.float32))
        same(*[session.run(d), theirs(tf, servers.target(), graph, [d.name])[0]])


def test_functions_come_with_the_nodes_that_call_them(servers: Cluster, graph: Any) -> None:
    def counted(by: int) -> Any:
        return gm.while_loop(lambda n: n < 5, lambda n: n + by, [gm.constant(0)])

    gm.enable_control_flow_v2()
    try:
        with gm.Session(servers.target()) as session:
            assert session.run(counted(2)) == 6
            assert session.run(counted(4)) == 8
            assert len(graph.as_graph_def().library.function) == 4
    finally:
        gm.disable_control_flow_v2()


def test_nodes_may_not_go(servers: Cluster) -> None:
    with gm.Graph().as_default() as graph:
        gm.constant(1, name="one")
        gm.constant(2, name="two")
        with Session(graph, target=servers.target()) as session:
            assert session.run("one:0") == 1
            graph.core.remove([graph.core.node("two")])
            graph.core.add("NoOp", "three")
            with pytest.raises(GraphError, match="taken out of the graph"):
                session.run("one:0")


def test_options_and_metadata(servers: Cluster, graph: Any) -> None:
    with gm.device("/job:ps/task:0"):
        a = gm.random_uniform([3, 3], name="a")
    with gm.device("/job:worker/task:1"):
        b = gm.matmul(a, a, name="b")
    options = gm.RunOptions(trace_level=gm.RunOptions.FULL_TRACE, output_partition_graphs=True)
    metadata = gm.RunMetadata()
    with gm.Session(servers.target()) as session:
        session.run(b, options=options, run_metadata=metadata)
        devices = {each.device for each in metadata.step_stats.dev_stats}
        assert {"/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:1/device:CPU:0"} <= devices
        assert metadata.partition_graphs
        from toolkit.tensorflow.families.platform.timeline import Timeline

        assert "MatMul" in Timeline(metadata.step_stats).generate_chrome_trace_format()


def test_errors_name_their_node_and_leave_the_session(servers: Cluster, graph: Any) -> None:
    x = gm.placeholder(gm.float32, None, name="x")
    with gm.device("/job:ps/task:0"):
        product = gm.matmul(x, gm.ones([2, 2]), name="product")
        held = gm.get_variable(unique("never_set"), [], use_resource=False)
        queue = gm.FIFOQueue(3, [gm.int32], shared_name=unique("queue"))
        closed, taken = queue.close(), queue.dequeue(name="taken")
    with gm.Session(servers.target()) as session:
        with pytest.raises(InvalidArgumentError, match=r"Matrix size|mismatch") as raised:
            session.run(product, {x: np.ones((2, 3))})
        assert raised.value.node == "product"
        assert "[[" not in raised.value.message
        with pytest.raises(FailedPreconditionError) as raised_again:
            session.run(held)
        assert raised_again.value.node
        session.run(closed)
        with pytest.raises(OutOfRangeError) as ended:
            session.run(taken)
        assert ended.value.node == "taken"
        np.testing.assert_array_equal(session.run(product, {x: np.ones((1, 2))}), [[2, 2]])


def test_what_the_client_refuses_is_not_sent(servers: Cluster, graph: Any) -> None:
    x = gm.placeholder(gm.float32, [2])
    with gm.Session(servers.target()) as session:
        with pytest.raises(UsageError, match="cannot feed a value of shape"):
            session.run(x + 1, {x: [1, 2, 3]})
        with pytest.raises(GraphError, match="there is no node 'nowhere'"):
            session.run("nowhere:0")
        with pytest.raises(UsageError, match="compiled steps are the servers'"):
            session.explain(x, {x: [1, 2]})


def test_a_device_that_is_not_there(servers: Cluster, graph: Any) -> None:
    with gm.device("/job:worker/task:7"):
        lost = gm.constant(1, name="lost")
    with gm.Session(servers.target()) as session, pytest.raises(InvalidArgumentError) as raised:
        session.run(lost)
    assert "task:7" in str(raised.value)


def test_partial_runs(servers: Cluster, graph: Any) -> None:
    a, b, c = (gm.placeholder(gm.float32, [], name=each) for each in "abc")
    with gm.device("/job:ps/task:0"):
        first = a + b
    second = first * c
    with gm.Session(servers.target()) as session:
        handle = session.partial_run_setup([first, second], [a, b, c])
        assert session.partial_run(handle, first, {a: 1, b: 2}) == 3
        assert session.partial_run(handle, second, {c: 5}) == 15
        handle = session.partial_run_setup([first, second], [a, b, c])
        with pytest.raises(InvalidArgumentError):
            session.partial_run(handle, second, {a: 1, b: 2})  # c is missing
        assert session.run(second, {a: 1, b: 2, c: 3}) == 9


def test_callables(servers: Cluster, graph: Any) -> None:
    x = gm.placeholder(gm.float32, [None, 100])
    with gm.device("/job:ps/task:0"):
        y = gm.reduce_sum(x, 1)
    with gm.Session(servers.target()) as session:
        call = session.make_callable({"y": y, "x": x, "nothing": gm.no_op()}, [x])
        for rows in (1, 100):
            value = np.ones((rows, 100), np.float32)
            found = call(value)
            np.testing.assert_array_equal(found["y"], np.full(rows, 100, np.float32))
            same(found["x"], value)
            assert found["nothing"] is None
        with pytest.raises(UsageError, match="takes 1 value"):
            call()
        del call
        gc.collect()
        assert session.run(gm.constant(3)) == 3  # the master is told that nobody has it any more
        failing = session.make_callable(gm.matmul(x, x, name="square"), [x])
        with pytest.raises(InvalidArgumentError) as raised:
            failing(np.ones((3, 100)))
        assert raised.value.node == "square"


def test_tensorflows_servers_keep_no_tensors(tf: ModuleType, tensorflow_cluster: Cluster, graph: Any) -> None:
    """Session handles are for sessions of one process there, whoever asks."""
    made = gm.constant([1.0, 2.0], name="made")
    kept = gm.get_session_handle(made)
    with gm.Session(tensorflow_cluster.target()) as session, pytest.raises(FailedPreconditionError) as ours:
        session.run(kept)
    with pytest.raises(tf.errors.FailedPreconditionError) as expected:
        theirs(tf, tensorflow_cluster.target(), graph, [kept.name])
    assert ours.value.message.split("\n")[-1] in str(expected.value)


def test_tensors_stay_at_our_servers(graphmill_cluster: Cluster, graph: Any) -> None:
    with gm.device("/job:ps/task:0"):
        made = gm.constant([1.0, 2.0]) * 2
        kept = gm.get_session_handle(made)
    with gm.Session(graphmill_cluster.target()) as session:
        handle = session.run(kept)
        np.testing.assert_array_equal(handle.eval(), [2, 4])
        holder, tensor = gm.get_session_tensor(handle, gm.float32)
        np.testing.assert_array_equal(session.run(tensor + 1, {holder: handle}), [3, 5])
        handle.delete()
        with pytest.raises(TypeError, match="deleted"):
            handle.eval()


def test_resource_handles_can_be_fed(tensorflow_cluster: Cluster, graph: Any) -> None:
    """Ours do not let them leave their process."""
    variable = gm.get_variable(unique("by_handle"), initializer=[1.0, 2.0], use_resource=True)
    other = gm.placeholder(gm.resource, [])
    read = ops.read_variable_op(other, dtype=gm.float32)
    with gm.Session(tensorflow_cluster.target()) as session:
        session.run(variable.initializer)
        handle = session.run(variable.handle)
        np.testing.assert_array_equal(session.run(read, {other: handle}), [1, 2])


def test_settings_of_this_process_are_refused(servers: Cluster) -> None:
    graph = gm.Graph()
    for name, value in (("devices", {"CPU": 2}), ("threads", 2), ("precision", "bf16"), ("force_tokens", True)):
        given: dict[str, Any] = {name: value}
        with pytest.raises(UsageError, match=f"{name}= is a setting of sessions in this process"):
            Session(graph, target=servers.target(), **given)


def test_soft_placement_is_as_the_session_says(servers: Cluster, graph: Any) -> None:
    with gm.device("/device:GPU:0"):
        far = gm.constant(1) + 1
    with Session(graph, target=servers.target()) as session:  # on by default
        assert session.run(far) == 2
    strict = Session(graph, target=servers.target(), allow_soft_placement=False)
    with strict, pytest.raises(InvalidArgumentError):
        strict.run(far)
    with gm.Session(servers.target(), config=config_pb2.ConfigProto(allow_soft_placement=True)) as session:
        assert session.run(far) == 2
