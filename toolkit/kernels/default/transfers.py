"""`_Send` and `_Recv` of devices with a memory of their own.

What goes to host memory is copied while the device computes on, where its memory can do that: the sender does not wait,
a thread of the memory does, and hands the tensor over when it is there. Between devices of one type the tensor itself
is handed over, and the receiver copies it into its own memory.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from toolkit.errors import GraphmillError, InternalError
from toolkit.graph.device import DeviceSpec
from toolkit.kernels import device_types
from toolkit.kernels.arrivals import Wait, hand_over
from toolkit.kernels.boundary import Boundary
from toolkit.kernels.context import DEAD, Done, StepContext
from toolkit.kernels.cpu.flow.framework import transfer_keys
from toolkit.kernels.device_memory import CopiesAcross, CopiesLater, DeviceArray, DeviceMemory
from toolkit.kernels.registry import DEFAULT, Compute, KernelNode, Kind, kernel

TRANSFERS = ("_Send", "_Recv", "_HostRecv")


@kernel("_Send", kind=Kind.STATEFUL, device=DEFAULT)
def send(op: KernelNode) -> Compute:
    """Hand a tensor to where it is received, in host memory but for devices of the same type in this task."""
    key_of, boundary = transfer_keys(op), Boundary(op.node)
    memory, name = boundary.memory, op.name
    as_it_is = _partner(op, "recv_device") is not None
    later = memory if isinstance(memory, CopiesLater) and not op.attr("client_terminated", False) else None

    def compute(step: StepContext, value: Any, is_dead: bool = False) -> None:
        key = key_of(step.frame_iter)
        if is_dead or (as_it_is and memory.owns(value)):
            step.rendezvous.send(key, value, is_dead)
        elif later is None or not memory.owns(value):
            step.rendezvous.send(key, boundary.given([value])[0])
        else:
            hand_over(memory, later.begin_copy_out(value), _Sending(step, key, name))

    return compute


class _Sending:
    """Sends what arrives; its failure ends the step."""

    __slots__ = ("_key", "_node", "_step")

    def __init__(self, step: StepContext, key: str, node: str):
        self._step, self._key, self._node = step, key, node

    def __call__(self, value: Any) -> None:
        self._step.rendezvous.send(self._key, value)

    def failed(self, error: BaseException) -> None:
        """The copy, or what was to be copied, did not come about."""
        told = error if isinstance(error, GraphmillError) else InternalError(f"{type(error).__name__}: {error}")
        if isinstance(told, GraphmillError) and told.node is None:
            told.node = self._node
        self._step.rendezvous.abort(told)


@kernel("_Recv", kind=Kind.ASYNC, device=DEFAULT)
def recv(op: KernelNode) -> Compute:
    """`done` gets the value in the device's memory, an error, or DEAD when the sender was on a branch not taken."""
    key_of, boundary = transfer_keys(op), Boundary(op.node)
    memory, other = boundary.memory, _partner(op, "send_device")

    def compute(step: StepContext, done: Done) -> None:
        def arrived(value: Any, is_dead: bool, error: BaseException | None) -> None:
            if is_dead:
                done(DEAD)
            elif error is not None:
                done(error)
            else:
                try:
                    found = _across(memory, value, other) if isinstance(value, DeviceArray) else boundary.made(value)
                except Exception as failed:
                    found = failed
                done(found)

        step.rendezvous.recv_async(key_of(step.frame_iter), arrived)

    return compute


@kernel("_HostRecv", kind=Kind.ASYNC, device=DEFAULT)
def host_recv(op: KernelNode) -> Compute:
    """`done` gets the value in host memory: another device of the same type has handed over a tensor of its own."""
    key_of = transfer_keys(op)

    def compute(step: StepContext, done: Done) -> None:
        def arrived(value: Any, is_dead: bool, error: BaseException | None) -> None:
            if is_dead:
                done(DEAD)
            elif error is not None:
                done(error)
            elif not isinstance(value, DeviceArray):
                done(value)
            else:
                try:
                    wait = _begin_copy_out(value)
                except Exception as failed:
                    done(failed)
                else:
                    hand_over(value.memory, wait, _Arriving(done))

        step.rendezvous.recv_async(key_of(step.frame_iter), arrived)

    return compute


def _begin_copy_out(value: DeviceArray) -> Wait:
    memory = value.memory
    if isinstance(memory, CopiesLater):
        return memory.begin_copy_out(value)
    return partial(memory.copy_out, value)


class _Arriving:
    """Who waits for what arrives in host memory."""

    __slots__ = ("_done",)

    def __init__(self, done: Done):
        self._done = done

    def __call__(self, value: Any) -> None:
        self._done(value)

    def failed(self, error: BaseException) -> None:
        """The copy, or what was to be copied, did not come about."""
        self._done(error)


def _partner(op: KernelNode, end: str) -> DeviceMemory | None:
    """The memory at the other end of a transfer, where that is of the same type and in the same task."""
    name = op.text(end)
    if not name.startswith("/"):  # the client, in a step that is fed and fetched in parts
        return None
    here, there = DeviceSpec.parse(op.device), DeviceSpec.parse(name)
    kind = there.device_type
    if kind is None or kind != here.device_type or there.task_name != here.task_name:
        return None
    return device_types.memory(kind, there.device_index or 0)


def _across(memory: DeviceMemory, array: DeviceArray, other: DeviceMemory | None) -> Any:
    """A tensor of another device, in this memory."""
    if other is None or memory.owns(array):
        return array
    if isinstance(memory, CopiesAcross):
        return memory.copy_across(array, other)
    return memory.copy_in(other.copy_out(array))
