"""The program around segments: what receives, what waits, and a step for each segment."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from toolkit.compiler.program import Program
from toolkit.compiler.segments.parts import EMPTY, SegmentProgram, never
from toolkit.compiler.segments.receives import receiving
from toolkit.compiler.steps import Role, Step
from toolkit.graph.frames import StaticFrame
from toolkit.graph.graph import Graph
from toolkit.graph.partitioned import RECV_OPS
from toolkit.kernels.registry import Kind

if TYPE_CHECKING:
    from toolkit.compiler.segments.cut import Cut


@dataclass(slots=True)
class Segment:
    """Nodes that run as one program.

    Attributes:
        name: for reports.
        program: the nodes, with what they take from elsewhere as arguments.
        step: what stands for them in the program around; its `compute` is still to be given.
        receives: what is received, or comes from asynchronous kernels, that it takes.
    """

    name: str
    program: Program
    step: Step
    receives: int


class Around:
    """What holds the segments together.

    Attributes:
        received: the receives that a step of the program stands for, where these are several.
    """

    def __init__(self, cut: Cut, parts: list[SegmentProgram], order: list[tuple[int, int, int]]):
        self._cut = cut
        self._parts = parts
        self._steps: list[Step] = []
        self._frames: list[StaticFrame] = []
        self._names = Graph()
        self._places: dict[int, int] = {}
        self._groups: dict[int, int] = {}
        self._relays: dict[int, int] = {}
        # receives that are waited for together: their places among the outputs, and the first of each by their step
        self._numbers: dict[int, int] = {}
        self._firsts: dict[int, int] = {}
        self.received: dict[int, list[Step]] = {}
        self.segments: list[Segment] = []
        gathered = self._gathered()
        for _, number, is_group in order:
            if is_group:
                self._segment(number)
            elif number in gathered:
                self._gather(gathered[number], number)
            else:
                self._places[number] = self._add(replace(cut.steps[number], inputs=[], controls=[]), number)
        for position, place in list(self._places.items()):
            if position not in self._numbers:
                self._connect(position, self._steps[place])
        for place, first in self._firsts.items():
            self._connect(first, self._steps[place])
        for number, place in self._groups.items():
            self._feed(number, self._steps[place])
        frames = [frame for frame in cut.program.all_frames if frame.parent is None or id(frame) in cut.loops.crossing]
        self.program = cut.program.part(self._steps, self._frames, frames)

    def _gathered(self) -> dict[int, list[int]]:
        """Receives that one segment alone takes, and that begin together: each with all of them."""
        cut, found = self._cut, dict[tuple[int, tuple[int, ...]], list[int]]()
        for position, step in enumerate(cut.steps):
            takers = {cut.group_of.get(user) for user in cut.users[position]}
            if step.node.op not in RECV_OPS or len(takers) != 1 or (taker := takers.pop()) is None:
                continue
            part = self._parts[taker]
            if (position, -1) not in part.arguments and position not in part.after:
                found.setdefault((taker, tuple(sorted(step.controls))), []).append(position)
        return {position: group for group in found.values() if len(group) > 1 for position in group}

    def _gather(self, group: list[int], position: int) -> None:
        if position in self._places:
            return
        steps = [self._cut.steps[each] for each in group]
        node = self._names.add("_Recv", self._names.unique_name(f"{steps[0].node.name}/and_others"))
        place = self._add(Step(node, Role.KERNEL, Kind.ASYNC, receiving(steps), [], [], (), len(group)), position)
        self._firsts[place] = group[0]
        self.received[place] = steps
        for number, each in enumerate(group):
            self._places[each], self._numbers[each] = place, number

    def _add(self, step: Step, position: int) -> int:
        self._steps.append(step)
        self._frames.append(self._cut.loops.home[position])
        return len(self._steps) - 1

    def _segment(self, number: int) -> None:
        part = self._parts[number]
        node = self._names.add("NoOp", part.name)
        step = Step(node, Role.SEGMENT, Kind.STATEFUL, never, [], [], (), len(part.results))
        self._groups[number] = self._add(step, self._cut.groups[number][0])
        receives = sum(self._cut.steps[src].kind is Kind.ASYNC for src, _ in part.arguments)
        self.segments.append(Segment(part.name, part.program, step, receives))

    def _slot(self, src: int, index: int) -> tuple[int, int]:
        number = self._cut.group_of.get(src)
        if number is None:
            return self._places[src], self._numbers.get(src, index)
        return self._groups[number], self._parts[number].results[src, index]

    def _connect(self, position: int, made: Step) -> None:
        step = self._cut.steps[position]
        made.inputs += [self._slot(src, index) for src, index in step.inputs]
        for src in step.controls:
            number = self._cut.group_of.get(src)
            if number is None:
                made.controls.append(self._places[src])
            elif self._cut.carries_deadness(src):
                made.controls.append(self._relay(src, position, [self._slot(src, -1)], []))
            else:
                made.controls.append(self._groups[number])

    def _feed(self, group: int, made: Step) -> None:
        part, first = self._parts[group], self._cut.groups[group][0]
        for src, index in part.arguments:
            if index >= 0 or src in self._cut.group_of:
                made.inputs.append(self._slot(src, index))
            else:
                made.inputs.append((self._relay(src, first, [], [self._places[src]]), 0))
        for src in sorted(part.after):
            number = self._cut.group_of.get(src)
            made.controls.append(self._places[src] if number is None else self._groups[number])

    def _relay(self, src: int, user: int, inputs: list[tuple[int, int]], controls: list[int]) -> int:
        """A step that has run, or is dead, as another one is, in the frame of who waits for that."""
        known = self._relays.get(src)
        if known is None:
            node = self._names.add("NoOp", self._names.unique_name(f"{self._cut.steps[src].node.name}/after"))
            compute: Callable[..., Any] = (lambda _: EMPTY) if inputs else (lambda: EMPTY)
            step = Step(node, Role.KERNEL, Kind.PURE, compute, inputs, controls, (), 1)
            known = self._relays[src] = self._add(step, user)
        return known
