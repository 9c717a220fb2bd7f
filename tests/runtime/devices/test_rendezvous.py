"""Where sends and receives of a step meet: withdrawals, other workers' tensors, numbers of frames in keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.compiler.program import Program
from toolkit.errors import AbortedError, InvalidArgumentError, NotFoundError
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.kernels.encodings.hashing import hash64, hash_all
from toolkit.runtime.executors.dataflow import FrameState, IterationState, lay_out
from toolkit.runtime.steps.rendezvous import LocalRendezvous, Receiver
from toolkit.runtime.workers.peers import PeerRendezvous

HERE, THERE = "/job:a/replica:0/task:0", "/job:b/replica:0/task:0"
Told = list[tuple[Any, bool, BaseException | None]]


def receiver() -> tuple[Told, Receiver]:
    told: Told = []
    return told, lambda value, is_dead, error: told.append((value, is_dead, error))


def test_who_has_withdrawn_is_passed_over() -> None:
    rendezvous = LocalRendezvous()
    (first, one), (second, other) = receiver(), receiver()
    rendezvous.recv_async("k", one)
    rendezvous.recv_async("k", other)
    rendezvous.withdraw("k", one)
    rendezvous.withdraw("k", one)
    rendezvous.withdraw("unknown", one)
    rendezvous.send("k", 7)
    assert not first and second == [(7, False, None)] and rendezvous.is_empty
    rendezvous.send("k", 8)
    assert not rendezvous.is_empty


class Peer:
    """A worker that never answers by itself."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Receiver]] = []
        self.ended = 0

    def receive(self, step_id: int, key: str, done: Receiver) -> Callable[[], object] | None:
        self.asked.append((key, done))
        return self._end

    def _end(self) -> None:
        self.ended += 1


def test_what_is_asked_elsewhere_ends_with_the_step() -> None:
    peer = Peer()
    rendezvous = PeerRendezvous(1, HERE, lambda task: peer)
    keys = [f"{THERE}/device:CPU:0;0;{HERE}/device:CPU:0;{name};0:0" for name in "ab"]
    (first, one), (second, other) = receiver(), receiver()
    rendezvous.recv_async(keys[0], one)
    rendezvous.recv_async(keys[1], other)
    peer.asked[0][1]("x", False, None)
    cause = InvalidArgumentError("the cause")
    rendezvous.abort(cause)
    peer.asked[1][1]("late", False, None)
    assert first == [("x", False, None)] and second == [(None, False, cause)] and peer.ended == 1
    third, late = receiver()
    rendezvous.recv_async(keys[0], late)
    assert third == [(None, False, cause)] and len(peer.asked) == 2


def test_a_task_that_is_unknown_is_the_receivers_error() -> None:
    def unknown(task: str) -> Peer:
        raise NotFoundError(task)

    rendezvous = PeerRendezvous(1, HERE, unknown)
    told, done = receiver()
    rendezvous.recv_async(f"{THERE}/device:CPU:0;0;x;t;0:0", done)
    assert isinstance(told[0][2], NotFoundError)
    local, here = receiver()
    rendezvous.recv_local(f"{THERE}/device:CPU:0;0;x;t;0:0", here)
    rendezvous.send(f"{THERE}/device:CPU:0;0;x;t;0:0", 1)
    assert local == [(1, False, None)]
    rendezvous.abort(AbortedError("over"))


def test_frames_have_tensorflows_numbers() -> None:
    """What a server of TensorFlow 2.21 has in its keys: Hash64Combine of parent, iteration and name."""
    graph = Graph()
    const = graph.add("Const", "c", attrs={"dtype": dtypes.float32, "value": _scalar()})
    attrs = {"T": dtypes.float32, "frame_name": "while/while_context", "parallel_iterations": 10, "is_constant": True}
    graph.add("Enter", "e", [const.output()], attrs=attrs)
    _, layouts = lay_out(Program(graph))
    root = FrameState(layouts[""], None, None)
    outer = FrameState(layouts["while/while_context"], root, root.iterations[0])
    inner = FrameState(layouts["while/while_context"], outer, IterationState(3, layouts["while/while_context"]))
    name = int(hash_all([b"while/while_context"], hash64)[0])
    mask, golden = (1 << 64) - 1, 0x9E3779B97F4A7800

    def combined(first: int, second: int) -> int:
        return first ^ ((second + golden + (first << 10) + (first >> 4)) & mask)

    assert root.id == 0
    assert outer.id == combined(0, combined(0, name))
    assert inner.id == combined(outer.id, combined(3, name))
    assert 0 <= inner.id <= mask


def _scalar() -> Any:
    from toolkit.formats.arrays.tensor import from_array

    return from_array(1.0)
