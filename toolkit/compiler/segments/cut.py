"""A program that waits, cut into segments: programs of their own that wait for nothing once they have begun.

What is left is a small program for the dataflow executor: receives, asynchronous kernels, the plumbing of loops that
are spread over devices, and a step for each segment, which takes what its nodes take from elsewhere and puts out what
others take of them. Values from branches that are not taken go in and out as such; where a control edge carries that
as well, a constant that may be dead takes its place.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from toolkit.compiler.importer.effects import HANDLES
from toolkit.compiler.importer.lift import IDENTITIES
from toolkit.compiler.program import Program
from toolkit.compiler.segments.around import Around, Segment
from toolkit.compiler.segments.loops import Loops, loops_of
from toolkit.compiler.segments.parts import SegmentProgram
from toolkit.compiler.segments.waits import CircularError, Together, Waits, is_free
from toolkit.compiler.steps import Role, Step
from toolkit.graph.node import Node
from toolkit.kernels.registry import Kind

#: ops that make what holds tensors of one step, and fill it
_LISTS = frozenset({"StackV2", "TensorArrayV3", "TensorArrayScatterV3", "TensorListFromTensor", "TensorListReserve",
                    "EmptyTensorList"})  # fmt: skip
_LEAST = 3  # nodes of a segment; fewer are called by the dataflow executor as soon as each can run

Key = tuple[int, tuple[int, int], frozenset[Hashable]]  # frame, level, what else it waits for


@dataclass(slots=True)
class Segmented:
    """A program in segments.

    Attributes:
        around: the program that holds them together.
        alone: how many nodes are called one by one in it, by the reason, with the first of them.
        group_of: the number of the segment of each step that is in one.
        free: whether each step follows from constants alone, and is in every segment that takes it.
        received: the receives that a step of `around` stands for, where these are several.
    """

    around: Program
    segments: list[Segment]
    alone: dict[str, tuple[int, Node]]
    group_of: dict[int, int]
    free: list[bool]
    received: dict[int, list[Step]]


def segmented(program: Program, together: Together) -> Segmented | None:
    """The segments of a program; None where no two nodes of it can run as one.

    Args:
        together: the program and those that run in the same step.
    """
    try:
        waits = together.of(program)
    except CircularError:
        return None
    made = Cut(program, waits, loops_of(program))
    return made.build() if made.groups else None


class Cut:
    def __init__(self, program: Program, waits: list[Waits], loops: Loops):
        self.program = program
        self.steps = program.steps
        self.waits = waits
        self.loops = loops
        self.users: list[list[int]] = [[] for _ in self.steps]
        for position, step in enumerate(self.steps):
            for src in (*(src for src, _ in step.inputs), *step.controls):
                self.users[src].append(position)
        self.free = self._free()
        self.keys: list[Key | None] = [self._key(position) for position in range(len(self.steps))]
        self._sink()
        self.groups = self._grouped()
        self.group_of: dict[int, int] = {
            position: number for number, group in enumerate(self.groups) for position in group
        }

    # -- which nodes are together ------------------------------------------------------------------------------

    def _free(self) -> list[bool]:
        """Which steps may be in any number of segments: constants, handles, and what follows from constants alone."""
        root, found = self.program.all_frames[0], list[bool]()
        for step, frame in zip(self.steps, self.program.frames, strict=True):
            follows = (
                step.role is Role.KERNEL and step.kind is Kind.PURE and bool(step.inputs) and not step.controls
                and frame is root and not step.deref and (step.node.op in IDENTITIES or not step.is_target)
                and all(found[src] and self.steps[src].node.op not in HANDLES for src, _ in step.inputs)
            )  # fmt: skip
            found.append(is_free(step) or follows)
        return found

    def _key(self, position: int) -> Key | None:
        waits = self.waits[position]
        if waits.alone or self.free[position]:
            return None
        return id(self.loops.home[position]), waits.level, waits.outside

    def _sink(self) -> None:
        """What only prepares what others take, as reads of weights do, moves to the first of those.

        So do stacks, arrays and lists, whatever is put into them: what they hold is known where they are made.
        """
        root = id(self.program.all_frames[0])
        movable = [False] * len(self.steps)
        for position, step in enumerate(self.steps):
            key = self.keys[position]
            is_list = step.node.op in _LISTS
            prepares = is_list or step.kind is Kind.PURE or step.node.op == "ReadVariableOp"
            movable[position] = (
                key is not None and key[0] == root and step.role is Role.KERNEL and prepares and not step.is_target
                and not step.controls and self.loops.whole[position] is None
                and (is_list or all(self.free[src] or movable[src] for src, _ in step.inputs))
            )  # fmt: skip
        for position in range(len(self.steps) - 1, -1, -1):
            if movable[position]:
                self.keys[position] = self._first_user(position)

    def _first_user(self, position: int) -> Key | None:
        own = self.keys[position]
        keys = [self.keys[user] for user in self.users[position]]
        wanted = [key for key in keys if key is not None]
        if not wanted or len(wanted) < len(keys):
            return own
        first = min(wanted, key=lambda key: (key[1], len(key[2])))
        fits = all(key[0] == first[0] and first[1] <= key[1] and first[2] <= key[2] for key in wanted)
        return first if fits and own is not None and first[0] == own[0] else own

    def _grouped(self) -> list[list[int]]:
        found: dict[Key, list[int]] = {}
        for position, key in enumerate(self.keys):
            if key is not None:
                found.setdefault(key, []).append(position)
        return [group for group in map(self._without_last_sends, found.values()) if len(group) >= _LEAST]

    def _without_last_sends(self, group: list[int]) -> list[int]:
        """A group that does nothing but compute what is sent at its end leaves the sending to others."""
        sends = [position for position in group if self.steps[position].role is Role.SEND]
        if not sends:
            return group
        inside = set(group)
        stack = list({self.steps[position].inputs[0][0] for position in sends})
        if len(stack) > 1:
            return group
        seen = set(stack)
        while stack:
            step = self.steps[stack.pop()]
            for src in (*(src for src, _ in step.inputs), *step.controls):
                if src in inside and src not in seen:
                    seen.add(src)
                    stack.append(src)
        return group if inside - seen - set(sends) else [each for each in group if each not in set(sends)]

    # -- the programs ------------------------------------------------------------------------------------------

    def build(self) -> Segmented:
        parts = [SegmentProgram(self, number, group) for number, group in enumerate(self.groups)]
        needed = self._needed_around()
        order: list[tuple[int, int, int]] = []  # rank, position or number of the group, whether it is a group
        for position, step in enumerate(self.steps):
            if position not in self.group_of and (not self.free[position] or needed[position]):
                first = step.kind is Kind.ASYNC and not step.inputs and not step.controls
                order.append((-1 if first else position, position, 0))
        order += [(group[-1], number, 1) for number, group in enumerate(self.groups)]
        order.sort()
        around = Around(self, parts, order)
        alone: dict[str, tuple[int, Node]] = {}
        for _, position, is_group in order:
            if not is_group and self.steps[position].role not in (Role.ARG, Role.RETVAL):
                why = self.waits[position].alone or "is all that waits for the same"
                count, first = alone.get(why, (0, self.steps[position].node))
                alone[why] = (count + 1, first)
        return Segmented(around.program, around.segments, alone, self.group_of, self.free, around.received)

    def _needed_around(self) -> list[bool]:
        """Whether each constant or handle is taken by a node that is in no segment, or is wanted for itself."""
        needed = [False] * len(self.steps)
        for position in range(len(self.steps) - 1, -1, -1):
            takers = (user for user in self.users[position] if user not in self.group_of)
            needed[position] = self.steps[position].is_target or any(
                needed[user] or not self.free[user] for user in takers
            )
        return needed

    def carries_deadness(self, position: int) -> bool:
        return self.waits[position].may_be_dead
