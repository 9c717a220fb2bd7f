"""What the steps of programs that run together wait for: transfers between them, and what may come late or never.

Programs of one step send each other tensors. A step is as many transfers away from the beginning as the longest way to
it has: its level, those between tasks first. Two steps of one program that are of one level, and that wait for the same
things from outside (a queue, the client, another task), can run as one: whatever they receive was sent by steps of
lower levels, so nobody waits in a circle, and neither waits for anything from outside that it did not wait for before.
What leaves a loop that is spread over programs is behind all that is in the loop, for any of that may run before it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from toolkit.compiler.importer.effects import HANDLES
from toolkit.compiler.importer.lift import IDENTITIES
from toolkit.compiler.program import Program
from toolkit.compiler.segments.loops import Loops, goes_around, loops_of, why_alone
from toolkit.compiler.steps import Role, Step
from toolkit.forks import free_in_children
from toolkit.graph.frames import StaticFrame
from toolkit.graph.partitioned import RECV_OPS
from toolkit.kernels.registry import Kind

_SPREAD = "which waits for others or is spread over devices"
_PLUMBING = (Role.SEND, Role.LOOP_COND, Role.NEXT_ITERATION, Role.EXIT)
_SHAPES = frozenset({"Shape", "ShapeN", "Size", "Rank"})
_READS = frozenset({"ReadVariableOp", "Reshape", "ExpandDims", "Squeeze"})
#: attribute of a receive: level, what it waits for, whether it may be dead, whether it follows from shapes
NOTE = "_waits"
_NOTHING: frozenset[Hashable] = frozenset()


@dataclass(slots=True)
class Waits:
    """What one step waits for.

    Attributes:
        level: how many transfers between tasks there are at most on the ways to it; and, behind the last of these, how
            many between devices, and other steps that wait. A transfer of what was computed counts twice, so that what
            waits for it does not hold up what waits for arguments and variables alone.
        outside: what else it waits for that comes from outside of the programs, sooner or later.
        may_be_dead: it may be on a branch that is not taken.
        is_sized: what it puts out follows from shapes alone.
        is_computed: something before it, or it, takes time: more than reading variables and passing on.
        alone: why it is a node of the dataflow executor, said of it; "" where it can be compiled.
    """

    level: tuple[int, int] = (0, 0)
    outside: frozenset[Hashable] = _NOTHING
    may_be_dead: bool = False
    is_sized: bool = False
    is_computed: bool = False
    alone: str = ""


class CircularError(Exception):
    """Steps of the programs wait for each other in a circle."""


class Together:
    """Programs that run in one step and send each other tensors."""

    def __init__(self, programs: Sequence[Program]):
        self.programs = list(programs)
        self._found: dict[int, list[Waits]] | None = None
        self._lock = threading.Lock()
        free_in_children(self, "_lock")

    def of(self, program: Program) -> list[Waits]:
        """What each step of one of the programs waits for.

        Raises:
            CircularError: they wait for each other in a circle.
        """
        with self._lock:
            if self._found is None:
                self._found = Analysis(self.programs).run()
        return self._found[id(program)]


#: the number of a program, and the first of the steps that are looked at as one; for a loop's end -1 and its number
Vertex = tuple[int, int]


class Analysis:
    """One walk over the steps of all programs, those that send before those that receive.

    Args:
        tasks: each program is what a task runs; else all of them are a task's, on different devices.
    """

    def __init__(self, programs: Sequence[Program], *, tasks: bool = False):
        self._programs = programs
        self._tasks = tasks
        self._loops = [loops_of(program) for program in programs]
        self._members: dict[Vertex, list[int]] = {}
        self._vertex: list[list[Vertex]] = []
        self._sends: dict[tuple[str, ...], Vertex] = {}
        self._found: dict[int, list[Waits]] = {}
        # loops that are spread, by name: what is in them, wherever it is, and what is known of their ends
        self._inside: dict[str, set[Vertex]] = {}
        self._ends: dict[str, Vertex] = {}
        self._at_ends: dict[Vertex, Waits] = {}
        self._carried: dict[Vertex, frozenset[Hashable]] = {}  # what a Merge waits for in later iterations
        self._sources: set[Vertex] = set()  # steps that wait for something from outside

    def run(self) -> dict[int, list[Waits]]:
        """What each step waits for, by the program's id.

        Raises:
            CircularError: steps wait for each other in a circle.
        """
        for number, program in enumerate(self._programs):
            self._gather(number, program)
        while True:  # each round finds more that goes around, of a bounded number of things
            self._walk()
            if not self._carry():
                break
        self._leave_out()
        return self._found

    def _walk(self) -> None:
        for program in self._programs:
            self._found[id(program)] = [Waits() for _ in program.steps]
        needs = {vertex: self._needs(vertex) for vertex in self._members}
        needs.update((end, self._inside[name]) for name, end in self._ends.items())
        followers: dict[Vertex, list[Vertex]] = {}
        missing = {vertex: len(each) for vertex, each in needs.items()}
        for vertex, each in needs.items():
            for source in each:
                followers.setdefault(source, []).append(vertex)
        ready = deque(vertex for vertex, count in missing.items() if not count)
        done = 0
        while ready:
            vertex = ready.popleft()
            done += 1
            self._look(vertex, needs[vertex])
            for follower in followers.get(vertex, ()):
                missing[follower] -= 1
                if not missing[follower]:
                    ready.append(follower)
        if done != len(missing):
            raise CircularError

    def _carry(self) -> bool:
        """Find what states of loops that are spread wait for in later iterations; whether that is more than before."""
        is_more = False
        for number, program in enumerate(self._programs):
            waits = self._found[id(program)]
            for position, step in enumerate(program.steps):
                if step.role is Role.MERGE and self._loops[number].whole[position] is None:
                    ends = [src for src, _ in step.inputs if program.steps[src].role is Role.NEXT_ITERATION]
                    carried = _NOTHING.union(*(waits[src].outside for src in ends))
                    is_more = is_more or not carried <= waits[position].outside
                    self._carried[number, position] = carried
        return is_more

    def _leave_out(self) -> None:
        """In a loop in which something waits for others, iterations may overtake each other: nothing runs together."""
        left_out = {name for name, inside in self._inside.items() if not inside.isdisjoint(self._sources)}
        for number, program in enumerate(self._programs) if left_out else ():
            for position, step in enumerate(program.steps):
                frame: StaticFrame | None = self._loops[number].home[position]
                while frame is not None and frame.name not in left_out:
                    frame = frame.parent
                waits = self._found[id(program)][position]
                if frame is None or waits.alone or step.role is Role.EXIT:
                    continue
                if self._loops[number].whole[position] is None:
                    waits.alone = f"goes around in the loop '{frame.name}', in which something waits for others"
                else:
                    waits.outside |= {self._vertex[number][position]}

    def _gather(self, number: int, program: Program) -> None:
        """The vertices of a program: a loop that is compiled as a whole is one."""
        whole: dict[int, Vertex] = {}
        vertices: list[Vertex] = []
        for position, step in enumerate(program.steps):
            loop = self._loops[number].whole[position]
            vertex = (number, position) if loop is None else whole.setdefault(id(loop), (number, position))
            vertices.append(vertex)
            self._members.setdefault(vertex, []).append(position)
            self._is_inside(number, position, vertex)
            if step.role is Role.SEND:
                self._sends[transfer_of(step)] = vertex
        self._vertex.append(vertices)

    def _is_inside(self, number: int, position: int, vertex: Vertex) -> None:
        """A step in a loop that is spread: what leaves the loop waits for all of these, in all iterations."""
        frame, step = self._loops[number].home[position], self._programs[number].steps[position]
        inside = (
            frame if step.role is not Role.EXIT or self._loops[number].whole[position] is not None else frame.parent
        )
        while inside is not None and inside.parent is not None:
            self._inside.setdefault(inside.name, set()).add(vertex)
            self._ends.setdefault(inside.name, (-1, len(self._ends)))
            inside = inside.parent

    def _needs(self, vertex: Vertex) -> set[Vertex]:
        number, _ = vertex
        steps, vertices = self._programs[number].steps, self._vertex[number]
        found: set[Vertex] = set()
        for position in self._members[vertex]:
            step = steps[position]
            for src in (*(src for src, _ in step.inputs), *step.controls):
                is_back_edge = step.role is Role.MERGE and steps[src].role is Role.NEXT_ITERATION
                if vertices[src] != vertex and not is_back_edge:
                    found.add(vertices[src])
            if step.role is Role.EXIT and self._loops[number].whole[position] is None:
                found.add(self._ends[self._programs[number].frames[position].name])
            if step.node.op in RECV_OPS and (sender := self._sends.get(transfer_of(step))) is not None:
                found.add(sender)
        return found

    def _known(self, vertex: Vertex) -> Waits:
        number, first = vertex
        return self._at_ends[vertex] if number < 0 else self._found[id(self._programs[number])][first]

    def _look(self, vertex: Vertex, needs: set[Vertex]) -> None:
        number, first = vertex
        if number < 0:
            before = [self._known(source) for source in needs]
            level, outside = max(each.level for each in before), _NOTHING.union(*(each.outside for each in before))
            is_dead, is_computed = (
                any(getattr(each, name) for each in before) for name in ("may_be_dead", "is_computed")
            )
            self._at_ends[vertex] = Waits(level, outside, may_be_dead=is_dead, is_computed=is_computed)
            return
        program, loops = self._programs[number], self._loops[number]
        step = program.steps[first]
        is_loop = loops.whole[first] is not None
        before = [self._known(source) for source in needs]
        waits = Waits(
            level=max((each.level for each in before), default=(0, 0)),
            outside=_NOTHING.union(*(each.outside for each in before)),
            may_be_dead=any(each.may_be_dead for each in before),
            is_computed=is_loop or computes(step) or any(each.is_computed for each in before),
        )
        if not is_loop:
            waits.alone = self._why_alone(program, loops, first)
            if step.node.op in RECV_OPS:
                sender = self._sends.get(transfer_of(step))
                if sender is None:
                    before_it = waits.outside
                    self._arrives(waits, step, vertex)
                    if waits.outside != before_it:
                        self._sources.add(vertex)
                else:
                    source = self._programs[sender[0]].steps[sender[1]].inputs[0][0]
                    waits.is_sized = self._found[id(self._programs[sender[0]])][source].is_sized
                by = 2 if waits.is_computed else 1
                waits.level = self._later(waits.level, by, is_transfer=True) if needs else waits.level
            elif waits.alone:
                if step.kind is not Kind.PURE and step.role is Role.KERNEL:
                    self._sources.add(vertex)
                    waits.outside |= {vertex}
                waits.level = self._later(waits.level) if needs else waits.level
            if step.role is Role.EXIT and NOTE in step.node.attrs:
                self._noted(waits, step)
            if step.role is Role.EXIT and waits.outside:
                waits.outside |= {vertex}  # it may come before others that wait for the same
            waits.outside |= self._carried.get(vertex, _NOTHING)
            if step.role in (Role.SWITCH, Role.EXIT):
                waits.may_be_dead = True
            elif step.role is Role.TRIGGER:
                waits.may_be_dead = False
            waits.is_sized = waits.is_sized or self._is_sized(program, step)
        for position in self._members[vertex]:
            self._found[id(program)][position] = waits

    def _later(self, level: tuple[int, int], by: int = 1, *, is_transfer: bool = False) -> tuple[int, int]:
        """The level behind a step that waits."""
        return (level[0] + by, 0) if is_transfer and self._tasks else (level[0], level[1] + by)

    @staticmethod
    def _arrives(waits: Waits, step: Step, vertex: Vertex) -> None:
        """What a receive waits for whose send is elsewhere: whoever split the graph may have said it."""
        if NOTE in step.node.attrs:
            Analysis._noted(waits, step)
        else:
            waits.outside |= {vertex}
            waits.may_be_dead = not step.node.attr("client_terminated", False)

    @staticmethod
    def _noted(waits: Waits, step: Step) -> None:
        """What whoever split the graph has said of a step."""
        noted: list[bytes] = step.node.attr(NOTE)
        level, outside, may_be_dead, is_sized = (text.decode() for text in noted)
        waits.level = max(waits.level, (int(level), 0))
        waits.outside |= {outside} if outside else _NOTHING
        waits.may_be_dead, waits.is_sized = may_be_dead == "True", is_sized == "True"

    def _why_alone(self, program: Program, loops: Loops, position: int) -> str:
        step = program.steps[position]
        if step.role in (Role.ARG, Role.RETVAL):
            return "is what the program is given or gives"
        if id(program.frames[position]) in loops.crossing and (step.role in _PLUMBING or goes_around(program, step)):
            return f"goes around in the loop '{program.frames[position].name}', {_SPREAD}"
        if step.role is Role.ENTER:  # of a loop that crosses; others are looked at as a whole
            return f"goes around in the loop '{step.node.text('frame_name')}', {_SPREAD}"
        return why_alone(step)

    def _is_sized(self, program: Program, step: Step) -> bool:
        if step.role is Role.CONSTANT:
            return True
        if step.role is not Role.KERNEL or step.kind is not Kind.PURE or not step.num_outputs:
            return False
        if step.node.op in _SHAPES:
            return True
        known = self._found[id(program)]
        return bool(step.inputs) and all(known[src].is_sized for src, _ in step.inputs)


def transfer_of(step: Step) -> tuple[str, ...]:
    """What a send and its receive have in common."""
    node = step.node
    number = str(node.attr("send_device_incarnation") & (2**64 - 1))
    return node.text("send_device"), number, node.text("recv_device"), node.text("tensor_name")


def computes(step: Step) -> bool:
    """Whether a step takes time: it does more than read a variable, or pass on what is there."""
    return (
        step.role is Role.KERNEL and bool(step.inputs) and step.node.op not in IDENTITIES | _SHAPES | _READS
        and step.node.op not in RECV_OPS
    )  # fmt: skip


def is_free(step: Step) -> bool:
    """Whether a step may be there any number of times: it waits for nothing, and gives always the same."""
    if step.inputs or step.controls:
        return False
    return step.role is Role.CONSTANT or (step.role is Role.KERNEL and step.node.op in HANDLES)
