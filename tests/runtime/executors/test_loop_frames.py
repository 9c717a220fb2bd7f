"""Loops of Switch, Merge, Enter, Exit and NextIteration with something wrong: one clear error, or what is right."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from schemas import graph_pb2, node_def_pb2
from tests.fuzz import loop_frames
from tests.fuzz.single_ops import run
from toolkit.errors import CancelledError, DeadlineExceededError, GraphmillError
from toolkit.graph.graph import Graph
from toolkit.runtime.executors.stuck import why
from toolkit.runtime.session import Session


@pytest.fixture(autouse=True)
def node_by_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "off")


def test_changed_loops_end() -> None:
    for case in itertools.islice(loop_frames.cases(5), 150):
        status, detail = run(case)
        assert status in ("OK", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "UNIMPLEMENTED"), (case.name, detail)
        assert status != "OK" or "Error" not in detail


LOOP = """
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
node { name: "ten" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 10 } } } }
node { name: "enter" op: "Enter" input: "zero" attr { key: "T" value { type: DT_INT32 } }
  attr { key: "frame_name" value { s: "loop" } } }
node { name: "limit" op: "Enter" input: "ten" attr { key: "T" value { type: DT_INT32 } }
  attr { key: "frame_name" value { s: "loop" } } attr { key: "is_constant" value { b: true } } }
node { name: "merge" op: "Merge" input: "enter" input: "next" attr { key: "T" value { type: DT_INT32 } }
  attr { key: "N" value { i: 2 } } }
node { name: "less" op: "Less" input: "merge" input: "limit" attr { key: "T" value { type: DT_INT32 } } }
node { name: "cond" op: "LoopCond" input: "less" }
node { name: "switch" op: "Switch" input: "merge" input: "cond" attr { key: "T" value { type: DT_INT32 } } }
node { name: "one" op: "Const" input: "^switch" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 } } } }
node { name: "sum" op: "AddV2" input: "switch:1" input: "one" attr { key: "T" value { type: DT_INT32 } } }
node { name: "next" op: "NextIteration" input: "sum" attr { key: "T" value { type: DT_INT32 } } }
node { name: "exit" op: "Exit" input: "switch" attr { key: "T" value { type: DT_INT32 } } }
"""


Nodes = dict[str, node_def_pb2.NodeDef]
Change = Callable[[Nodes], None]


def _graph(change: Change) -> Graph:
    from google.protobuf import text_format

    message = text_format.Parse(LOOP, graph_pb2.GraphDef())
    change({node.name: node for node in message.node})
    return Graph.from_proto(message)


def _identity(name: str) -> Change:
    def change(nodes: Nodes) -> None:
        nodes[name].op = "Identity"

    return change


def _same(nodes: Nodes) -> None:
    """The loop as it is."""


def _another_frame(nodes: Nodes) -> None:
    nodes["limit"].attr["frame_name"].s = b"other"


@pytest.mark.parametrize("parallel", [0, -1, 1, 2**31 - 1, 2**62])
def test_any_number_of_parallel_iterations(parallel: int) -> None:
    def change(nodes: Nodes) -> None:
        nodes["enter"].attr["parallel_iterations"].i = parallel

    graph = _graph(change)
    with Session(graph) as session:
        np.testing.assert_array_equal(session.run("exit:0"), 10)


def _inputs(name: str, *inputs: str) -> Change:
    def change(nodes: Nodes) -> None:
        del nodes[name].input[:]
        nodes[name].input.extend(inputs)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_identity("next"), "cycle outside a loop"),
        (_identity("enter"), "different loop frames"),
        (_another_frame, "different loop frames"),
        (_inputs("merge", "enter", "enter"), "has no value"),
        (_inputs("sum", "switch:1", "next"), "cycle outside a loop"),
        (_inputs("sum", "switch:1", "enter"), "has no value"),
        (_inputs("next", "zero"), "loop frame"),
        (_inputs("exit", "zero"), "never entered"),
    ],
    ids=[
        "no NextIteration", "no Enter", "another frame", "a Merge without a back edge", "a back edge into a sum",
        "what comes once", "a back edge from outside", "an Exit outside",
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(change: Change, message: str) -> None:
    with pytest.raises(GraphmillError, match=message), Session(_graph(change)) as session:
        session.run("exit:0")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_inputs("merge", "next", "next"), "'merge' waits for a first iteration, but no Enter leads to it, only"),
        (_inputs("merge", "enter", "enter"), "'merge' has a value in the first iteration only, for no NextIteration"),
        (_inputs("next", "sum", "^enter"), "'next' waits in each iteration for 'enter'"),
        (_same, "none hands a value on"),
    ],
)  # fmt: skip
def test_why_nothing_came(change: Change, reason: str) -> None:
    assert reason in why(_graph(change).node("exit"))


def test_a_turn_that_never_ends() -> None:
    """The step after the first waits for an Enter that comes once, beside a loop that goes on."""
    case = next(itertools.islice(loop_frames.cases(1), 14, None))
    status, detail = run(case)
    assert status == "INVALID_ARGUMENT"
    assert "'n16' waits in each iteration for 'n5', an Enter whose value comes in the first iteration only" in detail


def test_values_of_turns_are_not_fetched() -> None:
    with pytest.raises(GraphmillError, match="'sum': it is inside the loop 'loop'"):
        Session(_graph(_same)).run("sum:0")


@pytest.mark.parametrize("segments", ["off", "on"])
def test_an_endless_loop_is_left(segments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", segments)
    endless = _graph(_inputs("sum", "switch:1", "switch:1"))  # zero and zero are zero
    with Session(endless) as session:
        with pytest.raises(DeadlineExceededError):
            session.run("exit:0", timeout_ms=100)
        failed: list[BaseException] = []

        def work() -> None:
            try:
                session.run("exit:0")
            except CancelledError as error:
                failed.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.05)
        session.close()
        thread.join(30)
        assert not thread.is_alive()
        assert len(failed) == 1
