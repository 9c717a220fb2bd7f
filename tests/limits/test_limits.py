"""Limits: what is said, memory accounted before it is taken, deadlines; in every executor."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from schemas.graph_pb2 import GraphDef
from schemas.types_pb2 import DT_FLOAT
from toolkit import client as c
from toolkit.client import ops
from toolkit.client.construction.graph import Graph
from toolkit.compiler.program_kernels import step_of
from toolkit.compiler.steps import locate
from toolkit.errors import DeadlineExceededError, InvalidArgumentError, ResourceExhaustedError, UsageError
from toolkit.limits import account as accounting
from toolkit.limits.account import Account
from toolkit.limits.allowance import Allowance
from toolkit.limits.exhaustion import exhaustion
from toolkit.limits.limits import Limits, size_text
from toolkit.runtime.session import Session

MIB = 1 << 20
EXECUTORS = pytest.mark.parametrize("executor", ["compiled", "straight line", "dataflow", "without LLVM"])


def session(monkeypatch: pytest.MonkeyPatch, graph: Graph, executor: str, limits: Limits) -> Session:
    if executor == "straight line":
        monkeypatch.setenv("GRAPHMILL_SEGMENTS", "off")
    if executor == "without LLVM":
        monkeypatch.setenv("GRAPHMILL_NATIVE", "off")
    return Session(graph, force_tokens=executor == "dataflow", limits=limits)


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("memory=4G,time=60s,tensor=1G", Limits(4 << 30, 60, 1 << 30)),
        ("time=1.5min", Limits(time=90)),
        ("tensor=512MiB", Limits(tensor=512 * MIB)),
        ("tensor=512MB", Limits(tensor=512_000_000)),
        (" memory = 100 , time = 20ms", Limits(memory=100, time=0.02)),
        ("time=2h", Limits(time=7200)),
    ],
)
def test_parse(text: str, limits: Limits) -> None:
    assert Limits.parse(text) == limits


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no limit ''"),
        ("memory", "a number and a unit, as in memory=4G"),
        ("memroy=4G", "did you mean 'memory'"),
        ("memory=4G,memory=5G", "twice"),
        ("memory=-4G", "as in memory=4G"),
        ("memory=4X", "'X' is not a unit"),
        ("time=60", "there is no unit in 'time=60'"),
        ("time=60G", "'G' is not a unit in 'time=60G'"),
        ("memory=0", "more than nothing"),
        ("time=0.0s", "more than nothing"),
        ("memory=4G;time=6s", "as in memory=4G"),
        ("memory=" + "9" * 100, "as in memory=4G"),
    ],
)
def test_parse_refuses(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Limits.parse(text)


@pytest.mark.parametrize(
    ("size", "text"), [(8, "8 B"), (1 << 30, "1 GiB"), (1536, "1.5 KiB"), (1 << 60, "1048576 TiB")]
)
def test_sizes_for_reading(size: int, text: str) -> None:
    assert size_text(size) == text


def test_what_is_alive_is_counted_until_it_is_freed() -> None:
    account = Account(Limits(memory=10 * MIB))
    with account.charging():
        first = np.zeros(4 * MIB, np.uint8)
        second = first + np.uint8(1)
        assert 8 * MIB <= account.used < 9 * MIB
        with pytest.raises(MemoryError):
            np.multiply(first, np.uint8(2))
        del second
        third = first * np.uint8(2)
    free = np.zeros(40 * MIB, np.uint8)  # nobody's
    assert 8 * MIB <= account.used < 9 * MIB
    del first, third, free
    assert account.used == 0
    assert 8 * MIB <= account.peak <= 10 * MIB


def test_another_thread_is_charged_when_it_says_so() -> None:
    account = Account(Limits(memory=10 * MIB))
    found: list[Any] = []

    def work(charged: Account | None) -> None:
        with accounting.charging(charged):
            found.append(np.zeros(MIB, np.uint8))

    for charged in (account, None):
        thread = threading.Thread(target=work, args=(charged,))
        thread.start()
        thread.join()
    assert MIB <= account.used < 2 * MIB


def tiles() -> Graph:
    graph = Graph()
    with graph.as_default():
        x, times = c.placeholder("float32", [2], name="x"), c.placeholder("int32", [1], name="times")
        big = c.tile(x, times, name="big")
        c.add(c.add(big, big, name="sum"), big, name="more")
    return graph


@EXECUTORS
def test_a_tensor_that_is_too_large(executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = session(monkeypatch, tiles(), executor, Limits(tensor=MIB))
    with limited:
        with pytest.raises(
            ResourceExhaustedError, match=r"Tile wants float32\[.*2.*\], 4 MiB.* tensor is 1 MiB"
        ) as info:
            limited.run("more:0", {"x:0": [1, 2], "times:0": [MIB // 2]})
        assert info.value.node == "big"
        np.testing.assert_equal(limited.run("more:0", {"x:0": [1, 2], "times:0": [2]}), [3, 6, 3, 6])


@pytest.mark.parametrize("executor", ["compiled", "straight line", "dataflow"])
def test_memory_that_is_used_up(executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with session(monkeypatch, tiles(), executor, Limits(memory=10 * MIB)) as limited:
        with pytest.raises(ResourceExhaustedError, match=r"AddV2? wants float32.*limit of memory, 10 MiB") as info:
            limited.run("more:0", {"x:0": [1, 2], "times:0": [MIB // 2]})
        assert info.value.node == "more"
        assert "the largest tensors alive: " in info.value.message
        assert "float32[1048576] (4 MiB)" in info.value.message
        assert "'big'" in info.value.message
        np.testing.assert_equal(limited.run("more:0", {"x:0": [1, 2], "times:0": [2]}), [3, 6, 3, 6])


def test_memory_of_a_compiled_step_is_accounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An arena for which there is no room is not made; the node is told that wants too much by itself."""
    graph = Graph()
    with graph.as_default():
        x = c.placeholder("float32", [1024, 256], name="x")
        c.reduce_sum(c.tanh(c.matmul(x, x, transpose_b=True, name="product")), name="y")
    feeds = {"x:0": np.full((1024, 256), 0.5, np.float32)}
    with session(monkeypatch, graph, "compiled", Limits(memory=64 * MIB)) as limited:
        expected = limited.run("y:0", feeds)
        assert limited.allowance is not None and limited.allowance.account is not None
        assert limited.allowance.account.peak >= 4 * MIB
    for limits in (Limits(memory=2 * MIB), Limits(tensor=2 * MIB)):
        with session(monkeypatch, graph, "compiled", limits) as limited:
            with pytest.raises(ResourceExhaustedError) as info:
                limited.run("y:0", feeds)
            assert info.value.node == "product"
    with Session(graph) as free:
        # tanh of 64 is 1, and 2^20 ones are exact in any order
        assert free.run("y:0", feeds) == expected == 2**20


@EXECUTORS
def test_sizes_beyond_all_addresses(executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph()
    with graph.as_default():
        c.fill(c.placeholder("int64", [None], name="shape"), 1.0, name="y")
    with session(monkeypatch, graph, executor, Limits(memory=MIB)) as limited:
        for shape in ([1 << 40, 1 << 40], [1 << 62, 3], [1 << 62]):
            with pytest.raises((ResourceExhaustedError, InvalidArgumentError)) as info:
                limited.run("y:0", {"shape:0": shape})
            assert info.value.node == "y"


@EXECUTORS
def test_numbers_that_no_tensor_can_have_as_its_size(executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What NumPy refuses with a ValueError is told with the shape, or with the number that asks for so much."""
    graph = Graph()
    with graph.as_default():
        sizes = c.placeholder("int64", [None], name="sizes")
        c.fill(sizes, 1.0, name="y")
        seed = c.constant(np.int64([1, 2, 3]))
        ops.random_index_shuffle(c.constant(np.int64(0)), seed, c.constant(np.int64(9)), rounds=1 << 60, name="z")
    with session(monkeypatch, graph, executor, Limits(memory=MIB)) as limited:
        with pytest.raises(InvalidArgumentError, match=r"shape \[4611686018427387904\]"):
            limited.run("y:0", {"sizes:0": [1 << 62]})
        with pytest.raises((ResourceExhaustedError, InvalidArgumentError), match=r"rounds|wants") as info:
            limited.run("z:0")
        assert info.value.node == "z"


@pytest.mark.parametrize(("size", "status"), [(2, "INTERNAL"), (1 << 62, "INVALID_ARGUMENT")])
def test_a_mistake_of_a_kernel_stays_one(size: int, status: str) -> None:
    """The words of an error tell nothing."""
    graph = Graph()
    with graph.as_default():
        y: Any = c.fill(c.placeholder("int64", [None]), 1.0)
    values = [np.int64([size]), np.float32(1)]
    told: Any = locate(ValueError("array is too big; or something else"), step_of(y.op.node), values=values)
    assert told.status == status


def endless(*, interpreted: bool) -> Graph:
    graph = Graph()
    with graph.as_default():
        x = c.placeholder("float32", [4], name="x")

        def iteration(i: Any, a: Any) -> Any:
            more = ops.string_length(ops.as_string(i)) if interpreted else i
            return i + 0 * more, a * 0.5 + x

        c.identity(c.while_loop(lambda i, a: i < 10, iteration, [c.constant(0), x])[1], name="y")
    return graph


@pytest.mark.parametrize("interpreted", [False, True])
@EXECUTORS
def test_a_loop_without_end(executor: str, interpreted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = endless(interpreted=interpreted)
    with session(monkeypatch, graph, executor, Limits(time=0.2)) as limited:
        for _ in range(2):  # the limit is of the whole run: there is nothing left for another step
            with pytest.raises(DeadlineExceededError, match="longer than the limit of time, 200 ms"):
                limited.run("y:0", {"x:0": [1, 2, 3, 4]})


def test_python_that_looks_out_for_nothing_is_interrupted() -> None:
    allowance = Allowance(Limits(time=0.1))
    with pytest.raises(DeadlineExceededError), allowance.running():
        while True:
            pass
    assert sum(range(1000)) == 499500  # nothing is raised any more


def test_sessions_may_share_what_is_left() -> None:
    allowance = Allowance(Limits(memory=10 * MIB))
    with Session(tiles(), limits=allowance) as first, Session(tiles(), limits=allowance) as second:
        feeds = {"x:0": [1, 2], "times:0": [MIB // 4]}
        kept = [first.run("big:0", feeds), second.run("big:0", feeds), first.run("big:0", feeds)]
        with pytest.raises(ResourceExhaustedError):
            kept += [second.run("big:0", feeds) for _ in range(3)]


def test_what_is_folded_has_the_limits_too() -> None:
    graph = Graph()
    with graph.as_default():
        c.add(c.reduce_sum(c.fill([MIB], 1.0)), c.placeholder("float32", [], name="x"), name="y")
    with (
        Session(graph, limits=Limits(tensor=MIB)) as limited,
        pytest.raises(ResourceExhaustedError, match="tensor is 1 MiB"),
    ):
        limited.run("y:0", {"x:0": 1})
    with Session(graph, limits=Limits(tensor=8 * MIB)) as limited:
        assert limited.run("y:0", {"x:0": 1}) == MIB + 1


@EXECUTORS
@pytest.mark.parametrize("count", [1 << 26, (1 << 31) - 1])
def test_places_in_lists_and_arrays_are_memory(executor: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph()
    with graph.as_default():
        size = c.placeholder("int32", [], name="size")
        handle = ops.tensor_list_reserve(c.constant([2]), size, element_dtype="float32")
        c.identity(ops.tensor_list_length(handle), name="list")
        _, flow = ops.tensor_array_v3(size, dtype="float32")
        c.identity(flow, name="array")
    with session(monkeypatch, graph, executor, Limits(memory=64 * MIB)) as limited:
        assert limited.run("list:0", {"size:0": 5}) == 5
        for name in ("list:0", "array:0"):
            with pytest.raises(ResourceExhaustedError, match="limit of memory, 64 MiB"):
                limited.run(name, {"size:0": count})


def test_a_step_that_is_fed_bit_by_bit() -> None:
    with Session(tiles(), limits=Limits(tensor=MIB)) as limited:
        handle = limited.partial_run_setup(["more:0"], ["x:0", "times:0"])
        with pytest.raises(ResourceExhaustedError, match="tensor is 1 MiB"):
            limited.partial_run(handle, "more:0", {"x:0": [1, 2], "times:0": [MIB]})


@EXECUTORS
def test_constants_that_repeat_a_value_take_no_more_than_it(executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = GraphDef()
    for number in range(20):
        node = graph.node.add(name=f"c{number}", op="Const")
        node.attr["dtype"].type = DT_FLOAT
        tensor = node.attr["value"].tensor
        tensor.dtype = DT_FLOAT
        tensor.tensor_shape.dim.add(size=MIB)
        tensor.float_val.append(number)
    total = graph.node.add(name="total", op="AddN", input=[node.name for node in graph.node])
    total.attr["T"].type = DT_FLOAT
    total.attr["N"].i = 20
    imported = Graph()
    with imported.as_default():
        c.import_graph_def(graph, name="")
    with session(monkeypatch, imported, executor, Limits(memory=40 * MIB)) as limited:
        np.testing.assert_equal(limited.run("total:0"), np.full(MIB, 190, np.float32))
    with session(monkeypatch, imported, executor, Limits(memory=MIB)) as limited:
        with pytest.raises(ResourceExhaustedError, match="of the limit of memory, 1 MiB") as info:
            limited.run("total:0")
        assert info.value.node == "total"


def test_sizes_that_read_the_same_are_told_to_the_byte() -> None:
    account = Account(Limits(memory=10 * MIB))
    with account.charging():
        held = np.ones(100, np.uint8)
        view = np.broadcast_to(np.ones(64, np.float32), (1 << 30, 64))
        error: Any = MemoryError()
        error.shape, error.dtype = (10 * MIB + 1,), np.dtype(np.uint8)
        told = str(exhaustion(error, "Fill", None, [("held", held), ("view", view)]))
        assert f"{account.left:,} bytes are left of the limit" in told
        assert "'view' float32[1073741824, 64] (256 B)" in told  # what it holds: 64 numbers
        error.shape = (100 * MIB,)
        assert " 100 MiB, and 10 MiB are left" in str(exhaustion(error, "Fill"))
