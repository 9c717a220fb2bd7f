"""How the order of a step that one thread runs is found out, before it runs; see `segments/schedule`.

Who waits for a queue, the client or another process, and what goes around in a loop over several programs, is left to
the dataflow executor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from toolkit.compiler.context import RunningStep
from toolkit.compiler.segments.schedule import ScheduledPart, ScheduledResult, ScheduledStep, StepSchedule
from toolkit.compiler.segments.waits import transfer_of
from toolkit.compiler.steps import Role, Step
from toolkit.graph.partitioned import RECV_OPS
from toolkit.kernels.context import DEAD, RefVariable
from toolkit.kernels.registry import Kind
from toolkit.kernels.resources.variables import read

_ROLES = frozenset(
    {Role.ARG, Role.CONSTANT, Role.KERNEL, Role.MERGE, Role.RETVAL, Role.SEGMENT, Role.SEND, Role.SWITCH, Role.TRIGGER}
)
_PLAIN = {Role.MERGE: "Merge", Role.SWITCH: "Switch"}  # those of references, and of many ways, are left out

#: the number of a program, and a step of it
Vertex = tuple[int, int]
#: what a send and its receive have in common
Transfer = tuple[str, ...]


def schedule_of(parts: Sequence[ScheduledPart]) -> StepSchedule | None:
    """The schedule of a step, whose segments hand what they send to slots from now on where the step has these.

    Returns:
        None where it is not known before a step what follows what.
    """
    made = _Making(parts)
    if not made.is_known():
        return None
    order = made.order()
    return None if order is None else made.build(order)


class _Making:
    def __init__(self, parts: Sequence[ScheduledPart]):
        self._parts = parts
        self._segments = {id(segment.step): segment for part in parts for segment in part.segments}
        self._senders: dict[Transfer, Vertex] = {}
        self._receivers: dict[Transfer, Vertex] = {}
        self._slots: list[Any] = []
        self._names: list[str] = []
        self._slot_of: dict[tuple[int, int, int], int] = {}  # of each output of a vertex
        self._flag_of: dict[Vertex, int] = {}  # a slot that is dead if the step is
        self._may_be_dead: set[int] = set()
        self._sent: dict[Transfer, int] = {}
        self._inside: list[tuple[Step, int]] = []  # sends within segments, and the slot that they fill
        self._steps: list[ScheduledStep] = []
        self._arguments: list[tuple[int, int, int]] = []
        self._results: list[ScheduledResult] = []

    def _step(self, vertex: Vertex) -> Step:
        return self._parts[vertex[0]].program.steps[vertex[1]]

    # -- what is known before a step ---------------------------------------------------------------------------

    def is_known(self) -> bool:
        """Whether all that is received is sent within the step, and nothing else comes from outside or goes around."""
        is_twice = False
        for number, part in enumerate(self._parts):
            program = part.program
            if program.memory is not None or any(frame.parent is not None for frame in program.frames):
                return False
            for position, step in enumerate(program.steps):
                if step.role not in _ROLES or _PLAIN.get(step.role, step.node.op) != step.node.op:
                    return False
                vertex = (number, position)
                for transfer in self._sends(step):
                    is_twice = is_twice or transfer in self._senders
                    self._senders[transfer] = vertex
                if step.role is not Role.KERNEL or step.kind is not Kind.ASYNC:
                    continue
                if step.node.op not in RECV_OPS:
                    return False
                for received in self._received(vertex):
                    if received.node.attr("client_terminated", False):
                        return False
                    transfer = transfer_of(received)
                    is_twice = is_twice or transfer in self._receivers
                    self._receivers[transfer] = vertex
        return not is_twice and self._senders.keys() == self._receivers.keys()

    def _sends(self, step: Step) -> list[Transfer]:
        if step.role is Role.SEND:
            return [transfer_of(step)]
        return [transfer_of(each) for each in self._sent_within(step)]

    def _sent_within(self, step: Step) -> list[Step]:
        segment = self._segments.get(id(step))
        return [] if segment is None else [each for each in segment.program.steps if each.role is Role.SEND]

    def _received(self, vertex: Vertex) -> Sequence[Step]:
        return self._parts[vertex[0]].received.get(vertex[1]) or [self._step(vertex)]

    def order(self) -> list[Vertex] | None:
        """All steps, each behind what it needs: as one thread comes to them that goes on with one program while it
        can; None where they wait for each other in a circle."""
        followers: dict[Vertex, list[Vertex]] = {}
        missing: dict[Vertex, int] = {}
        ready: list[deque[Vertex]] = []
        for number, part in enumerate(self._parts):
            for position, step in enumerate(part.program.steps):
                vertex = (number, position)
                sources = [(number, src) for src in (*(src for src, _ in step.inputs), *step.controls)]
                if step.node.op in RECV_OPS:
                    sources += [self._senders[transfer_of(each)] for each in self._received(vertex)]
                missing[vertex] = len(sources)
                for source in sources:
                    followers.setdefault(source, []).append(vertex)
            ready.append(deque((number, p) for p in range(len(part.program.steps)) if not missing[number, p]))
        order: list[Vertex] = []
        while any(ready):
            for queue in ready:
                while queue:
                    vertex = queue.popleft()
                    order.append(vertex)
                    for follower in followers.get(vertex, ()):
                        missing[follower] -= 1
                        if not missing[follower]:
                            ready[follower[0]].append(follower)
        return order if len(order) == len(missing) else None

    # -- slots -------------------------------------------------------------------------------------------------

    def build(self, order: Sequence[Vertex]) -> StepSchedule | None:
        """The schedule; None where a step waits for a transfer or result of its own program."""
        for vertex in order:
            step = self._step(vertex)
            if any(self._step((vertex[0], src)).role in (Role.SEND, Role.RETVAL) for src in step.controls):
                return None
        for vertex in order:
            self._place(vertex, self._step(vertex))
        for step, slot in self._inside:
            step.compute = _handing(step.compute, slot, is_late=self._is_late(self._receivers[transfer_of(step)]))
        kept = {result.slot for result in self._results} | {slot for each in self._results for slot in each.checked}
        working = [each for each in self._steps if not each.is_nothing]
        return StepSchedule(
            _dropping(self._steps, kept), _dropping(working, kept), self._slots, self._names, self._arguments,
            self._results, [part.program.num_results for part in self._parts],
        )  # fmt: skip

    def _new(self, step: Step, value: Any = None) -> int:
        self._slots.append(value)
        self._names.append(step.node.name)
        return len(self._slots) - 1

    def _place(self, vertex: Vertex, step: Step) -> None:
        number, position = vertex
        taken = tuple(self._slot_of[number, src, index] for src, index in step.inputs)
        flags = [self._flag_of.get((number, src)) for src in step.controls]
        checked = tuple(dict.fromkeys(flag for flag in flags if flag is not None))
        match step.role:
            case Role.ARG:
                slot = self._slot_of[number, position, 0] = self._new(step)
                self._arguments.append((slot, number, step.index))
            case Role.CONSTANT:
                slot = self._new(step, step.constant)
                self._constant(vertex, step, slot, checked)
            case Role.RETVAL:
                dead = tuple(slot for slot in taken if slot in self._may_be_dead)
                self._results.append(ScheduledResult(step, number, (*checked, *dead), taken[0]))
            case Role.SEND:
                self._send(vertex, step, taken[0], checked)
            case Role.SEGMENT:
                self._segment(vertex, step, taken)
            case Role.TRIGGER:  # it triggers whether or not what it waits for is reached
                pass
            case Role.MERGE:
                given = self._outputs(vertex, step, taken)
                self._steps.append(ScheduledStep(step, number, taken=taken, given=given))
            case _ if step.kind is Kind.ASYNC:
                self._receive(vertex, step, checked)
            case _:
                dead = tuple(slot for slot in taken if slot in self._may_be_dead)
                checked = tuple(dict.fromkeys((*checked, *dead)))
                given = self._outputs(vertex, step, checked)
                if step.role is Role.SWITCH:
                    self._may_be_dead.update(given)
                    if checked:  # one side is dead in any case
                        flag = self._flag_of[vertex] = self._new(step)
                        given = (*given, flag)
                self._steps.append(ScheduledStep(step, number, checked=checked, taken=taken, given=given))

    def _outputs(self, vertex: Vertex, step: Step, checked: Sequence[int]) -> tuple[int, ...]:
        """New slots for what a step makes, one at least where it may be dead."""
        given = [self._new(step) for _ in range(max(step.num_outputs, 1 if checked else 0))]
        for index, slot in enumerate(given):
            self._slot_of[*vertex, index] = slot
        if checked:
            self._may_be_dead.update(given)
            self._flag_of[vertex] = given[0]
        return tuple(given)

    def _constant(self, vertex: Vertex, step: Step, slot: int, checked: tuple[int, ...]) -> None:
        self._slot_of[*vertex, 0] = slot
        if checked:
            given = self._outputs(vertex, step, checked)
            self._steps.append(ScheduledStep(step, vertex[0], checked=checked, taken=(slot,), given=given))

    def _segment(self, vertex: Vertex, step: Step, taken: tuple[int, ...]) -> None:
        given = self._outputs(vertex, step, ())
        self._may_be_dead.update(given)
        sent: list[int] = []
        for each in self._sent_within(step):
            slot = self._sent[transfer_of(each)] = self._new(each)
            self._may_be_dead.add(slot)
            self._inside.append((each, slot))
            sent.append(slot)
        self._steps.append(ScheduledStep(step, vertex[0], taken=taken, given=given, sent=tuple(sent)))

    def _send(self, vertex: Vertex, step: Step, slot: int, checked: tuple[int, ...]) -> None:
        transfer = transfer_of(step)
        if not checked and not _sends_variable(step):
            self._sent[transfer] = slot
            self._steps.append(ScheduledStep(step, vertex[0], is_nothing=True, taken=(slot,)))
            return
        given = self._sent[transfer] = self._new(step)
        dead = (slot,) if slot in self._may_be_dead else ()
        if checked or dead:
            self._may_be_dead.add(given)
        is_late = self._is_late(self._receivers[transfer])
        self._steps.append(
            ScheduledStep(
                step, vertex[0], is_late=is_late, checked=(*checked, *dead), taken=(slot,), given=(given,)
            )
        )  # fmt: skip

    def _receive(self, vertex: Vertex, step: Step, checked: tuple[int, ...]) -> None:
        received = [transfer_of(each) for each in self._received(vertex)]
        slots = tuple(self._sent[transfer] for transfer in received)
        is_late = self._is_late(vertex)
        if not checked and not is_late:
            for index, slot in enumerate(slots):
                self._slot_of[*vertex, index] = slot
            if len(slots) == 1 and slots[0] in self._may_be_dead:
                self._flag_of[vertex] = slots[0]
            self._steps.append(ScheduledStep(step, vertex[0], is_receive=True, is_nothing=True, taken=slots))
            return
        given = [self._new(step) for _ in slots]
        for index, (slot, source) in enumerate(zip(given, slots, strict=True)):
            self._slot_of[*vertex, index] = slot
            if checked or source in self._may_be_dead:
                self._may_be_dead.add(slot)
        if len(slots) > 1 and checked:
            given.append(self._new(step))  # one of several that is dead says nothing of the others
        if checked or (len(slots) == 1 and given[0] in self._may_be_dead):
            self._flag_of[vertex] = given[-1]
        self._steps.append(
            ScheduledStep(
                step, vertex[0], is_receive=True, is_late=is_late, checked=checked, taken=slots, given=tuple(given)
            )
        )  # fmt: skip

    def _is_late(self, receiver: Vertex) -> bool:
        """Whether variables are sent to a receive that waits for something else: it gets what they hold then."""
        return bool(self._step(receiver).controls) and any(
            _sends_variable(each) for transfer in map(transfer_of, self._received(receiver))
            for each in self._sending(transfer)
        )  # fmt: skip

    def _sending(self, transfer: Transfer) -> list[Step]:
        step = self._step(self._senders[transfer])
        if step.role is Role.SEND:
            return [step]
        return [each for each in self._sent_within(step) if transfer_of(each) == transfer]


def _sends_variable(step: Step) -> bool:
    """Whether a send is given a variable, not its value."""
    source, index = step.node.inputs[0]
    return source.output_types[index].is_ref


def _handing(compute: Callable[..., Any], slot: int, *, is_late: bool) -> Callable[..., Any]:
    """The kernel of a send within a segment."""

    def hand(running: RunningStep, value: Any, is_dead: bool = False) -> None:
        slots = running.slots
        if slots is None:
            compute(running, value, is_dead)
        elif is_dead:
            slots[slot] = DEAD
        else:
            slots[slot] = read(value) if isinstance(value, RefVariable) and not is_late else value

    return hand


def _dropping(steps: Sequence[ScheduledStep], kept: set[int]) -> list[ScheduledStep]:
    """The steps, each with the slots that it is the last to need."""
    last: dict[int, int] = {}
    for number, each in enumerate(steps):
        for slot in (*each.given, *each.sent, *each.taken, *each.checked):
            last[slot] = number
    dropped: dict[int, list[int]] = {}
    for slot, number in last.items():
        if slot not in kept:
            dropped.setdefault(number, []).append(slot)
    return [replace(each, dropped=tuple(dropped.get(number, ()))) for number, each in enumerate(steps)]
