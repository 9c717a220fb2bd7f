"""What segments of programs that run in one step could do at the same time.

A transfer orders what is before it and what is behind it. Where that orders all of the work, as in a chain of stages,
or where one device has the variables and another one computes, devices have nothing to do at the same time, and threads
of theirs would do no more than hand on to each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolkit.compiler.program import Program
from toolkit.compiler.segments.loops import loops_of, why_alone
from toolkit.compiler.segments.waits import computes, transfer_of
from toolkit.compiler.steps import Role, Step
from toolkit.graph.expansion import called
from toolkit.graph.partitioned import RECV_OPS
from toolkit.kernels.registry import Kind

#: segments, and nodes that compute outside of them; above, they would be compared with each other for long
_MOST = 256
#: the part of the nodes that compute which may run beside others with nothing lost worth having: a loss or an accuracy
#: behind the last product, and updates of a few variables. It saves at most this part of the step, while a thread more
#: costs a hundred microseconds for each time that it is waited for
_LITTLE = 0.1
#: parts of the names of ops whose work is more than an element's turn
_PRODUCTS = ("MatMul", "Conv", "Einsum", "LSTM", "GRU", "RNN", "Iterator")
#: a part of the names of ops that call functions of the user's, which may wait for each other
_ANYTHING = "PyFunc"

#: the number of a program, and a step of it
Place = tuple[int, int]
#: the number of a program, and a step of it or the name of a loop
Vertex = tuple[int, int | str]


@dataclass(frozen=True, slots=True)
class SegmentsOf:
    """A program in segments.

    Attributes:
        segments: the number of the segment of each step that is in one.
        free: whether each step follows from constants alone, and is computed once, when a segment is compiled; empty
            where there are no segments.
    """

    program: Program
    segments: Mapping[int, int] = field(default_factory=dict[int, int])
    free: Sequence[bool] = ()

    def works(self, position: int) -> bool:
        """Whether a step takes time in every run."""
        return computes(self.program.steps[position]) and not (self.free and self.free[position])


def runs_in_order(groups: Sequence[SegmentsOf]) -> bool:
    """Whether programs have next to nothing to do at the same time, and none waits with a thread of its own.

    Args:
        groups: those that run in one step and send each other tensors.
    """
    if any(not _is_plain(each.program) for each in groups):
        return False
    found = _Ordered(groups)
    return found.count <= _MOST and found.is_ordered()


def _is_plain(program: Program) -> bool:
    """Whether nothing in it waits where its thread can do nothing else, and no loop is spread over programs."""
    if program.memory is not None or loops_of(program).crossing:
        return False
    return not any(
        _ANYTHING in step.node.op or (step.kind is not Kind.ASYNC and why_alone(step)) for step in program.steps
    )


def _is_product(program: Program, position: int) -> bool:
    """Whether a step's work is more than an element's turn: a product, a loop, a function."""
    node = program.steps[position].node
    if program.frames[position].parent is not None or any(part in node.op for part in _PRODUCTS):
        return True
    library = node.graph.library
    return bool(len(library)) and any(True for _ in called(node.op, map(node.attrs.proto, node.attrs), library))


class _Ordered:
    """Segments as bits of a number; a node that computes in none is one of its own.

    Attributes:
        count: how many there are.
    """

    def __init__(self, groups: Sequence[SegmentsOf]):
        self._programs = [each.program for each in groups]
        self._segment: dict[Place, int] = {}  # of each step that is in one
        self._loops = [loops_of(program).whole for program in self._programs]
        self._owner: list[int] = []  # the program of each segment
        self._work: list[Place] = []  # steps that compute
        numbers: dict[Place, int] = {}
        for number, each in enumerate(groups):
            for position in range(len(each.program.steps)):
                works = each.works(position)
                if works:
                    self._work.append((number, position))
                if position in each.segments or works:
                    key = (number, each.segments.get(position, -1 - position))
                    bit = numbers.setdefault(key, len(numbers))
                    self._segment[number, position] = bit
                    if bit == len(self._owner):
                        self._owner.append(number)
        self.count = len(numbers)

    def is_ordered(self) -> bool:
        """Whether what computes on one device is before or behind all that computes on others, but for a little."""
        reaches = self._reaches()
        working = [0] * len(self._programs)  # segments that compute, by program
        for place in self._work:
            working[place[0]] |= 1 << self._segment[place]
        leads = [0] * self.count  # segments that something of this one is before
        for place, bit in self._segment.items():
            leads[bit] |= reaches[self._vertex(*place)]
        before = [0] * self.count
        for bit, reached in enumerate(leads):
            for other in range(self.count):
                if reached >> other & 1:
                    before[other] |= 1 << bit
        everyone, beside = sum(working), 0
        for place in self._work:
            number, bit = place[0], self._segment[place]
            if everyone & ~working[number] & ~reaches[self._vertex(number, place[1])] & ~before[bit]:
                if _is_product(self._programs[number], place[1]):
                    return False
                beside += 1
        return beside <= _LITTLE * len(self._work)

    def _vertex(self, number: int, position: int) -> Vertex:
        """What a step is looked at as: the loop that it is in, for what leaves a loop is behind all steps of it."""
        loop = self._loops[number][position]
        return (number, position) if loop is None else (number, loop.name)

    def _reaches(self) -> dict[Vertex, int]:
        """The segments that each step, or loop, is before, or in."""
        followers, missing = self._edges()
        ready = deque(vertex for vertex, count in missing.items() if not count)
        order: list[Vertex] = []
        while ready:
            vertex = ready.popleft()
            order.append(vertex)
            for follower in followers.get(vertex, ()):
                missing[follower] -= 1
                if not missing[follower]:
                    ready.append(follower)
        found: dict[Vertex, int] = dict.fromkeys(missing, 0)
        for place, bit in self._segment.items():
            found[self._vertex(*place)] |= 1 << bit
        for vertex in reversed(order):
            for follower in followers.get(vertex, ()):
                found[vertex] |= found[follower]
        return found

    def _edges(self) -> tuple[dict[Vertex, list[Vertex]], dict[Vertex, int]]:
        """What follows each step or loop, transfers included, and how many things each follows."""
        sends = {
            transfer_of(step): self._vertex(number, position)
            for number, program in enumerate(self._programs)
            for position, step in enumerate(program.steps)
            if step.role is Role.SEND
        }
        followers: dict[Vertex, list[Vertex]] = {}
        missing: dict[Vertex, int] = {}
        for number, program in enumerate(self._programs):
            for position, step in enumerate(program.steps):
                vertex = self._vertex(number, position)
                sources = [self._vertex(number, src) for src in _sources(program, step)]
                if step.node.op in RECV_OPS and (sender := sends.get(transfer_of(step))) is not None:
                    sources.append(sender)
                sources = [source for source in sources if source != vertex]
                missing[vertex] = missing.get(vertex, 0) + len(sources)
                for source in sources:
                    followers.setdefault(source, []).append(vertex)
        return followers, missing


def _sources(program: Program, step: Step) -> list[int]:
    """What a step follows, without the ways back in loops."""
    return [
        src
        for src in (*(src for src, _ in step.inputs), *step.controls)
        if step.role is not Role.MERGE or program.steps[src].role is not Role.NEXT_ITERATION
    ]
