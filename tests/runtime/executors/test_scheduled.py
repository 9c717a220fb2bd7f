"""Steps over devices and tasks whose order is known: slots in place of a rendezvous, everything else as by tokens."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.executors.test_chain import there_and_back, waiting
from tests.runtime.executors.test_segments import FIRST, SECOND, TASKS, X, by_tokens, loop, tasks
from toolkit import client as gm
from toolkit.errors import CancelledError, FailedPreconditionError, InvalidArgumentError
from toolkit.graph.graph import Graph
from toolkit.kernels.resources.variables import RefVariable, Variable
from toolkit.runtime.executors import scheduled
from toolkit.runtime.probes.trace import TraceProbe
from toolkit.runtime.session import Session
from toolkit.runtime.sessions.graphs import core_graph
from toolkit.runtime.steps.rendezvous import LocalRendezvous

ops = gm.ops


def over(graph: Any, *, is_tasks: bool, **settings: Any) -> Session:
    """A session over two devices, or two tasks with one each."""
    return Session(graph, devices=tasks() if is_tasks else {"CPU": 2}, allow_soft_placement=True, **settings)


@pytest.fixture
def met(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys that were looked for at a rendezvous."""
    found: list[str] = []
    send, receive = LocalRendezvous.send, LocalRendezvous.recv_async

    def sent(self: LocalRendezvous, key: str, value: Any, is_dead: bool = False) -> None:
        found.append(key)
        send(self, key, value, is_dead)

    def received(self: LocalRendezvous, key: str, done: Any) -> None:
        found.append(key)
        receive(self, key, done)

    monkeypatch.setattr(LocalRendezvous, "send", sent)
    monkeypatch.setattr(LocalRendezvous, "recv_async", received)
    return found


def learning(first: str = FIRST, second: str = SECOND, *, reference: bool = False) -> Graph:
    """Variables on one device, everything else on another: x float32[3, 4], "train", "loss"; "init"."""
    with gm.Graph().as_default() as graph:
        x = y = ops.placeholder(np.float32, [3, 4], name="x")
        for scale in (1, 2):
            start = scale * np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
            weights = gm.Variable(start, name=f"w{scale}", use_resource=not reference)
            y = ops.tanh(ops.mat_mul(y, weights.value()))
        loss = ops.mean(ops.square(y) * ops.abs(x), [0, 1], name="loss")
        gm.train.Momentum(0.1, 0.9).minimize(loss, name="train")
        gm.variables_initializer(gm.global_variables(), name="init")
    made = core_graph(graph).copy()
    for node in made:
        node.device = first if node.op in ("VariableV2", "VarHandleOp") else second
    return made


def losses(session: Session) -> list[Any]:
    """What five steps of `learning` find."""
    return [session.run(["loss:0", "train"], {"x:0": X})[0] for _ in range(5)]


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("is_tasks", [False, True])
def test_a_step_that_learns_meets_nobody_and_has_the_bits_of_the_whole_graph(
    is_tasks: bool, reference: bool, met: list[str]
) -> None:
    places = TASKS if is_tasks else [FIRST, SECOND]
    with over(learning(*places, reference=reference), is_tasks=is_tasks) as session:
        session.run("init")
        met.clear()
        found = losses(session)
        lines = session.explain(["loss:0", "train"], {"x:0": X})
    assert not met and "in an order that is known before a step" in lines[0]
    whole = learning(reference=reference)
    for node in whole:
        node.device = ""
    with Session(whole) as session:
        session.run("init")
        np.testing.assert_array_equal(found, losses(session))
    assert found[-1] < found[0]


def test_variables_that_are_sent_are_updated_in_place() -> None:
    with Session(learning(), devices={"CPU": 2}, allow_soft_placement=True) as session:
        session.run("init")
        losses(session)
        before = {cell.name: id(cell.value) for cell in session.resources.all_of(Variable)}
        losses(session)
        assert before and before == {cell.name: id(cell.value) for cell in session.resources.all_of(Variable)}


@pytest.mark.parametrize("reference", [False, True])
def test_a_variable_without_a_value_is_not_sent(reference: bool) -> None:
    told: list[tuple[str | None, str]] = []
    for is_by_tokens in (False, True):
        graph = learning(reference=reference)
        with Session(graph, devices={"CPU": 2}, allow_soft_placement=True, force_tokens=is_by_tokens) as session:
            with pytest.raises(FailedPreconditionError) as caught:
                losses(session)
            session.run("init")
            losses(session)
        told.append((caught.value.node, caught.value.message))
    assert told[0][1] == told[1][1]
    assert all(node is not None for node, _ in told)


def test_what_waits_for_a_queue_or_goes_around_meets_others(met: list[str]) -> None:
    with Session(waiting(), devices={"CPU": 2}, precision="exact") as session:
        session.run("put")
        session.run("y:0")
        session.run("put")
        assert "one thread runs what is ready of all parts" in session.explain("y:0")
    assert met
    met.clear()
    with Session(loop(SECOND), devices={"CPU": 2}, precision="exact") as session:
        session.run("y:0", {"x:0": X, "n:0": np.int32(2)})
    assert met


def branch(first: str = FIRST, second: str = SECOND) -> Any:
    """What is sent may be on a branch that is not taken: p bool[], x float32[3, 4] to y and z, of which one is there,
    and "both", which waits for one of these."""
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [3, 4], name="x")
        p = ops.placeholder(np.bool_, [], name="p")
        with gm.device(first):
            without, with_it = ops.switch(ops.tanh(x) * 2.0 + 1.0, p)
            here, there = ops.square(without) * 3.0 + 1.0, ops.exp(with_it) * 2.0 - 1.0
        with gm.device(second):
            y = ops.identity(ops.sqrt(ops.abs(here)) + 1.0, name="y")
            z = ops.identity(ops.sqrt(ops.abs(there)) - 1.0, name="z")
            ops.identity(ops.tanh(ops.merge([y, z])[0]) * 2.0 + 1.0, name="both")
    return graph


@pytest.mark.parametrize("is_tasks", [False, True])
def test_dead_values_are_handed_over(is_tasks: bool, met: list[str]) -> None:
    graph = branch(*TASKS) if is_tasks else branch()
    with over(graph, is_tasks=is_tasks, precision="exact") as session:
        for taken in (True, False, True):
            feeds = {"x:0": X, "p:0": np.bool_(taken)}
            there, gone = ("z:0", "y:0") if taken else ("y:0", "z:0")
            found = session.run(there, feeds), session.run("both:0", feeds)
            with pytest.raises(InvalidArgumentError, match="on a branch that was not taken"):
                session.run(gone, feeds)
            assert not met
            for name, value in zip((there, "both:0"), found, strict=True):
                np.testing.assert_array_equal(value, by_tokens(branch(), name, feeds))
            met.clear()


@pytest.mark.parametrize("is_tasks", [False, True])
def test_a_step_that_is_cancelled_ends_before_its_next_part(is_tasks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = there_and_back(*TASKS) if is_tasks else there_and_back()
    with over(graph, is_tasks=is_tasks, precision="exact") as session:
        wanted = session.run("y:0", {"x:0": np.abs(X)})
        done: list[str] = []
        advance = scheduled._advance  # pyright: ignore[reportPrivateUsage]

        def cancelling(schedule: Any, each: Any, values: Any, running: Any) -> Any:
            found = advance(schedule, each, values, running)
            done.append(each.step.node.name)
            running.cancellation.cancel()
            return found

        with monkeypatch.context() as patch:
            patch.setattr(scheduled, "_advance", cancelling)
            with pytest.raises(CancelledError, match="the step was cancelled"):
                session.run("y:0", {"x:0": np.abs(X)})
        assert 0 < len(done) < 3
        np.testing.assert_array_equal(session.run("y:0", {"x:0": np.abs(X)}), wanted)


@pytest.mark.parametrize("is_tasks", [False, True])
def test_every_transfer_is_told_to_a_probe(is_tasks: bool, met: list[str]) -> None:
    places = TASKS if is_tasks else [FIRST, SECOND]
    with over(learning(*places), is_tasks=is_tasks) as session:
        session.run("init")
        wanted = losses(session)
        session.run("init")
        met.clear()
        probe = TraceProbe()
        found = [session.run(["loss:0", "train"], {"x:0": X}, probe=probe)[0] for _ in range(5)]
        assert not met
        compiled = session.compiled(["loss:0", "train"], ["x:0"])
        parts = compiled.stages.partitions.values()
    sent = [node.name for part in parts for node in part if node.op in ("_Send", "_HostSend")]
    seen = [span.node for span in probe.spans if span.op in ("_Send", "_HostSend")]
    assert sorted(seen) == sorted(sent * 5)
    assert any(span.op == "_Recv" for span in probe.spans)
    assert len({span.device for span in probe.spans if "CPU" in span.device}) == 2
    np.testing.assert_array_equal(found, wanted)


def test_a_reference_is_sent_as_what_it_holds_when_it_is_received() -> None:
    with gm.Graph().as_default() as graph:
        with gm.device(FIRST):
            v = gm.Variable(np.full(4, 2, np.float32), name="v")
            changed = v.assign_add(np.ones(4, np.float32))
        with gm.device(SECOND), gm.control_dependencies([changed]):
            read = ops.identity(graph.as_graph_element("v:0"))
            ops.identity(ops.tanh(read) * 2.0 + ops.square(read), name="y")
        gm.variables_initializer([v], name="init")
    for is_by_tokens in (False, True):
        with Session(graph, devices={"CPU": 2}, force_tokens=is_by_tokens, precision="exact") as session:
            session.run("init")
            assert any(isinstance(cell, RefVariable) for cell in session.resources.all_of(RefVariable))
            found = session.run("y:0")
        held = np.full(4, 3, np.float32)
        np.testing.assert_array_equal(found, np.tanh(held) * np.float32(2) + held * held)
