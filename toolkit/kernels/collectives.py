"""Where the devices of a group meet: each brings a tensor, and gets what all of them make of theirs.

A group meets for each instance, loop frame and iteration of a step, in this process, and once more when a device that
was there comes again. Members are in the order of their devices; what is wrong with one of them every one is told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.errors import CancelledError, GraphmillError, InternalError
from toolkit.graph.device import DeviceSpec
from toolkit.kernels.context import Done, StepContext
from toolkit.kernels.registry import KernelNode
from toolkit.kernels.resources.tensor_space import TensorSpace, space_of

#: gives each member, all of which are there, what it gets
Exchange = Callable[[Sequence["Member"]], Sequence[Any]]


@dataclass(eq=False, slots=True)
class Member:
    """One device of a group.

    Attributes:
        node: by whose name it is told apart.
        device: which it is: task, type and number, in whose order members are.
        value: what it brings; None: nothing.
        space: where its tensors lie.
        agreement: what all members must have in common.
        done: is given what it gets, or an error; once.
        token: of its cancellation.
    """

    node: str
    device: tuple[Any, ...]
    value: Any
    space: TensorSpace
    agreement: Hashable
    done: Done
    token: int = -1


@dataclass(eq=False, slots=True)
class _Meeting:
    """Attributes:
    size: how many members it waits for.
    members: those that wait.
    met: the devices of all, as soon as all were there; nothing else of them is kept.
    """

    size: int
    members: list[Member] = field(default_factory=list[Member])
    met: frozenset[tuple[Any, ...]] = frozenset()

    def met_now(self) -> list[Member]:
        """All members, in their order."""
        members = sorted(self.members, key=lambda each: (each.device, each.node))
        self.met = frozenset(each.device for each in members)
        self.members = []
        return members


class Meetings:
    """Those of one step."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Hashable, _Meeting] = {}

    def join(self, step: StepContext, key: Hashable, size: int, member: Member, exchange: Exchange) -> None:
        """Wait for the others; who comes last does the work of all.

        Args:
            key: of the group and the instance.
            size: of the group.
        """
        key = (key, step.frame_iter)
        complete: list[Member] | None = None
        problem: GraphmillError | None = None
        with self._lock:
            meeting = self._known.get(key)
            if meeting is None or member.device in meeting.met:
                meeting = self._known[key] = _Meeting(size)
            if meeting.size != size:
                problem = InternalError(
                    f"a group of {size} was asked for, and one of {meeting.size} before", node=member.node
                )
            elif meeting.met:
                problem = InternalError(f"more than the {size} members of the group came", node=member.node)
            else:
                member.token = step.cancellation.register(lambda: self._leave(meeting, member))
                if member.token < 0:
                    problem = _cancelled(member)
                else:
                    meeting.members.append(member)
                    if len(meeting.members) == size:
                        complete = meeting.met_now()
        if problem is not None:
            member.done(problem)
        elif complete is not None:
            _finish(step, complete, exchange)

    def _leave(self, meeting: _Meeting, member: Member) -> None:
        """The step is over before all were there."""
        with self._lock:
            if member not in meeting.members:
                return
            meeting.members.remove(member)
        member.done(_cancelled(member))


def _cancelled(member: Member) -> CancelledError:
    return CancelledError("a step was over before all devices of its group were there", node=member.node)


def _finish(step: StepContext, members: Sequence[Member], exchange: Exchange) -> None:
    for member in members:
        step.cancellation.deregister(member.token)
    try:
        first = members[0]
        for member in members[1:]:
            if member.agreement != first.agreement:
                raise InternalError(
                    f"{first.node} and {member.node} are of one group and do not agree: {first.agreement} against "
                    f"{member.agreement}"
                )
        results = exchange(members)
    except Exception as error:  # whose fault it is nobody can say: all are told
        results = [error] * len(members)
    for member, result in zip(members, results, strict=True):
        member.done(result)


def member_of(op: KernelNode, value: Any, agreement: Hashable, done: Done) -> Member:
    """What a node is among those of its group."""
    spec = DeviceSpec.parse(op.device)
    device = (spec.task_name or "", spec.device_type or "", spec.device_index or 0)
    return Member(op.name, device, value, space_of(op), agreement, done)


def meetings_of(step: StepContext) -> Meetings:
    """Those of a step, of all of its devices."""
    return step.step_resources.get_or_create("", "_collectives", Meetings, Meetings)
