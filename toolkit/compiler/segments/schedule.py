"""What a step that one thread runs does, in order: segments, nodes between them, and transfers of all parts.

Where transfers put a step in order there is nothing to find out while it runs: which segment is next, who takes what,
and when nobody needs a value any more is the same in every step. All values have a slot, the same for who sends one
and who receives it, so most transfers are nothing to do. How it is found out is in `segments/scheduling`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.compiler.program import Program
from toolkit.compiler.segments.around import Segment
from toolkit.compiler.steps import Step


@dataclass(frozen=True, slots=True)
class ScheduledPart:
    """One of the programs that run in a step.

    Attributes:
        program: its segments, and what is between them.
        segments: they.
        received: the receives that a step of `program` stands for, where these are several.
    """

    program: Program
    segments: Sequence[Segment] = ()
    received: Mapping[int, Sequence[Step]] = field(default_factory=dict[int, Sequence[Step]])


@dataclass(frozen=True, slots=True)
class ScheduledStep:
    """A segment, a node or a transfer.

    Attributes:
        step: of the program around segments.
        part: the number of the program.
        is_receive: it hands on what was sent.
        is_nothing: it hands on what is there already, in the slot where it is.
        is_late: what is sent is a variable, whose value is read when it is received.
        checked: slots of which a dead value makes it dead.
        taken, given: slots of what it takes, and of what it makes.
        sent: slots of what is sent within a segment.
        dropped: slots that nobody needs any more.
    """

    step: Step
    part: int
    is_receive: bool = False
    is_nothing: bool = False
    is_late: bool = False
    checked: tuple[int, ...] = ()
    taken: tuple[int, ...] = ()
    given: tuple[int, ...] = ()
    sent: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ScheduledResult:
    """A result of a program: of a reference, the value at the end of the step.

    Attributes:
        step: the `_Retval`.
        part: the number of the program.
        checked: see `ScheduledStep`.
        slot: where it is.
    """

    step: Step
    part: int
    checked: tuple[int, ...]
    slot: int


@dataclass(frozen=True, slots=True)
class StepSchedule:
    """All that a step does, in order.

    Attributes:
        steps: all of it, for who is told of every transfer.
        working: those that do something.
        slots: what is in them when the step begins.
        names: the node that fills each slot.
        arguments: (slot, number of the program, which of its arguments).
        results: of all programs.
        counts: how many results each program has.
    """

    steps: Sequence[ScheduledStep]
    working: Sequence[ScheduledStep]
    slots: Sequence[Any]
    names: Sequence[str]
    arguments: Sequence[tuple[int, int, int]]
    results: Sequence[ScheduledResult]
    counts: Sequence[int]
