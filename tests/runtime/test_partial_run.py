"""partial_run and run options, beside TensorFlow's."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any

import pytest

from schemas import config_pb2
from tests.patience import HUNG
from tests.runtime.oracle import Both
from toolkit.errors import DeadlineExceededError, GraphmillError, InvalidArgumentError, UsageError
from toolkit.runtime.session import Session

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("each_worker")]


@pytest.fixture(scope="module")
def both(tf: ModuleType) -> Both:
    def build(v1: Any) -> None:
        a = v1.placeholder("float32", [], name="a")
        b = v1.placeholder("float32", [], name="b")
        c = v1.placeholder("float32", [], name="c")
        r1 = v1.add(a, b, name="r1")
        v1.multiply(r1, c, name="r2")
        v1.multiply(a, a, name="r3")

    return Both(tf, build)


@pytest.mark.parametrize("devices", [1, 2])
def test_feed_and_fetch_bit_by_bit(both: Both, devices: int) -> None:
    names = ["r1:0", "r2:0"]
    with both.v1.Session(graph=both.tf_graph) as theirs:
        handle = theirs.partial_run_setup(names, ["a:0", "b:0", "c:0"])
        first = theirs.partial_run(handle, "r1:0", {"a:0": 1, "b:0": 2})
        wanted = [first, theirs.partial_run(handle, "r2:0", {"c:0": first * 17})]
    session = Session(both.graph, devices={"CPU": devices})
    handle = session.partial_run_setup(names, ["a", "b", "c"])
    first = session.partial_run(handle, "r1:0", {"a": 1, "b": 2})
    assert [first, session.partial_run(handle, "r2:0", {"c": first * 17})] == wanted == [3, 153]


def test_operations_can_be_fetched(both: Both) -> None:
    session = Session(both.graph)
    handle = session.partial_run_setup(["r3", "r3:0"], ["a"])
    assert session.partial_run(handle, "r3", {"a": 3}) is None
    assert session.partial_run(handle, "r3:0") == 9


def test_mistakes(both: Both) -> None:
    session = Session(both.graph)
    handle = session.partial_run_setup(["r1:0", "r2:0"], ["a", "b", "c"])
    with pytest.raises(InvalidArgumentError, match=r"'r1:0' cannot be computed .* 'b:0' is missing"):
        session.partial_run(handle, "r1:0", {"a": 1})
    assert session.partial_run(handle, "r1:0", {"a": 1, "b": 1}) == 2
    with pytest.raises(InvalidArgumentError, match="already been fed"):
        session.partial_run(handle, "r2:0", {"a": 1, "c": 1})
    with pytest.raises(InvalidArgumentError, match="already been fetched"):
        session.partial_run(handle, "r1:0")
    with pytest.raises(UsageError, match="not among the fetches"):
        session.partial_run(handle, "r3:0")
    with pytest.raises(UsageError, match="no partial run"):
        session.partial_run("wrong", "r1:0")
    session.close()
    assert not [t for t in threading.enumerate() if t.name == "graphmill partial run" and not _ends(t)]


def _ends(thread: threading.Thread) -> bool:
    thread.join(HUNG)
    return not thread.is_alive()


def test_trace_and_partition_graphs(both: Both) -> None:
    session = Session(both.graph, devices={"CPU": 2})
    options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE, output_partition_graphs=True)
    metadata = config_pb2.RunMetadata()
    assert session.run("r1:0", {"a": 1, "b": 2}, options, metadata) == 3
    names = {stats.node_name for device in metadata.step_stats.dev_stats for stats in device.node_stats}
    assert "r1" in names
    assert any(node.name == "r1" for graph in metadata.partition_graphs for node in graph.node)


def test_timeout_of_run_options(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        v1.identity(v1.while_loop(lambda i: i >= 0, lambda i: i * 1, [v1.constant(0)]), name="out")

    session = Session(Both(tf, build).graph)
    with pytest.raises(GraphmillError) as caught:
        session.run("out:0", options=config_pb2.RunOptions(timeout_in_ms=100))
    assert isinstance(caught.value, DeadlineExceededError)
