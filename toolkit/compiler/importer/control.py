"""Branches and loops in a dataflow graph, recognised: under which conditions a step runs, and what makes up a loop.

Switch sends its input to one of two sides, Merge takes whichever comes; frames of Enter, Merge, LoopCond, Switch,
NextIteration and Exit are loops (the white paper, section 4.4). Graphs that tf.cond and tf.while_loop made are made
of nested branches and loops; what is not raises `UnstructuredError` and runs in the dataflow executor.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from toolkit.compiler.ir.conditions import NONE, Conditions, Impossible, both
from toolkit.compiler.ir.value import Value
from toolkit.compiler.program import Program
from toolkit.compiler.steps import Role
from toolkit.graph.frames import StaticFrame


class UnstructuredError(Exception):
    """What only runs node by node: control flow not made of nested branches and loops, sizes that no tensor has."""


def branch_conditions(reached: Conditions, predicate: Value) -> tuple[Conditions, Conditions]:
    """The conditions of a Switch's outputs, the false side first."""
    if reached.impossible:
        return reached, reached
    sides: list[Conditions] = []
    for wanted in (False, True):
        if predicate.is_constant:
            sides.append(reached if bool(predicate.constant) is wanted else Conditions(impossible=True))
            continue
        try:
            sides.append(both(reached, Conditions(((predicate, wanted),))))
        except Impossible:
            sides.append(Conditions(impossible=True))
    return sides[0], sides[1]


Choice = tuple[int, Value, Conditions]


def merge_rule(choices: list[Choice]) -> tuple[Value, Choice, Choice, Conditions]:
    """Of a Merge's inputs: the predicate that decides, its true side, its false side, and what both need.

    Raises:
        UnstructuredError: they are not the two sides of one branch.
    """
    if len(choices) != 2:
        raise UnstructuredError("a Merge of more than two")
    first, second = choices
    one, two = dict(first[2].terms), dict(second[2].terms)
    deciding = [predicate for predicate, wanted in one.items() if predicate in two and two[predicate] is not wanted]
    if len(deciding) != 1:
        raise UnstructuredError("a Merge of what are not the sides of a branch")
    predicate = deciding[0]
    wanted = one.pop(predicate)
    two.pop(predicate)
    if one != two:
        raise UnstructuredError("a Merge of sides of different branches")
    taken, other = (first, second) if wanted else (second, first)
    return predicate, taken, other, Conditions(tuple(one.items())) if one else NONE


@dataclass(eq=False, slots=True)
class FrameLoop:
    """One loop frame; numbers are positions in the program.

    Attributes:
        enters: all Enter steps that lead into it.
        initial: for each state, the Enter that brings its first value.
        merges, nexts: for each state, its Merge and its NextIteration.
        condition: the LoopCond.
        switches: those that the LoopCond decides.
        exits: (Exit, state) pairs.
        order: the steps inside in an order that computes the condition first where it can, and loops inside.
    """

    enters: list[int]
    initial: list[int]
    merges: list[int]
    nexts: list[int]
    condition: int
    switches: set[int]
    exits: list[tuple[int, int]]
    order: list[int | FrameLoop]


Item = Any  # int | FrameLoop


class ItemOrder(list[Item]):
    """The steps outside all loops of a program, and the outermost loops, in an order in which they can run.

    Raises:
        UnstructuredError: a frame is not a loop as tf.while_loop makes it.
    """

    def __init__(self, program: Program):
        is_straight = len(program.all_frames) == 1
        super().__init__(
            range(len(program.steps)) if is_straight else _FrameSteps(program).order(program.all_frames[0])
        )

    @staticmethod
    def of(program: Program) -> ItemOrder:
        """That of a program, found once: it does not depend on what the arguments are."""
        found = program.learned.get(ItemOrder)
        if found is None:
            found = program.learned[ItemOrder] = ItemOrder(program)
        return found


class _FrameSteps:
    """Which steps of a program are in which frame, found by one walk for all of its loops."""

    def __init__(self, program: Program):
        self.program = program
        self.children: dict[int, list[StaticFrame]] = {}
        for frame in program.all_frames:
            self.children.setdefault(id(frame.parent), []).append(frame)
        self.inside: dict[int, list[int]] = {}
        self.enters: dict[tuple[int, str], list[int]] = {}
        for position, frame in enumerate(program.frames):
            self.inside.setdefault(id(frame), []).append(position)
            step = program.steps[position]
            if step.role is Role.ENTER:
                name = step.node.attr("frame_name").decode()
                self.enters.setdefault((id(frame), name), []).append(position)

    def order(self, frame: StaticFrame) -> list[Item]:
        """The steps of a frame and the loops directly inside it, in an order in which they can run."""
        loops: list[FrameLoop] = []
        owned: list[tuple[int, Any]] = [(position, position) for position in self.inside.get(id(frame), ())]
        for child in self.children.get(id(frame), ()):
            loop = _loop(self, child)
            loops.append(loop)
            below = [child]
            for each in below:
                owned += [(position, loop) for position in self.inside.get(id(each), ())]
                below += self.children.get(id(each), ())
        owned.sort(key=itemgetter(0))
        return _sorted(self.program, dict(owned), loops)


def _sorted(program: Program, owner: dict[int, Item], loops: list[FrameLoop]) -> list[Item]:
    steps = program.steps
    waiting: dict[Item, set[Any]] = {}
    followers: dict[Item, list[Item]] = {}
    rank: dict[Item, int] = {}
    for position, item in owner.items():
        needs = waiting.get(item)
        if needs is None:
            needs = waiting[item] = set()
            rank[item] = position
        step = steps[position]
        for src in [*[src for src, _ in step.inputs], *step.controls]:
            source = owner.get(src)
            if source is None or source is item or source in needs:
                continue
            if step.role is Role.MERGE and steps[src].role is Role.NEXT_ITERATION:  # a back edge
                continue
            needs.add(source)
            followers.setdefault(source, []).append(item)
    for loop in loops:
        needs = waiting.setdefault(loop, set())
        rank.setdefault(loop, loop.enters[0])
        for enter in loop.enters:
            if enter not in needs and owner.get(enter) is not loop:
                needs.add(enter)
                followers.setdefault(enter, []).append(loop)
    ready = [(rank[item], index, item) for index, item in enumerate(waiting) if not waiting[item]]
    heapq.heapify(ready)
    order: list[Item] = []
    counter = len(waiting)
    while ready:
        item = heapq.heappop(ready)[2]
        order.append(item)
        for follower in followers.get(item, ()):
            waiting[follower].discard(item)
            if not waiting[follower]:
                counter += 1
                heapq.heappush(ready, (rank[follower], counter, follower))
    if len(order) != len(waiting):
        raise UnstructuredError("steps that wait for each other")
    return order


def _loop(frames: _FrameSteps, frame: StaticFrame) -> FrameLoop:
    steps = frames.program.steps
    inside = frames.inside.get(id(frame), [])
    enters = frames.enters.get((id(frame.parent), frame.name), [])
    conditions = [position for position in inside if steps[position].role is Role.LOOP_COND]
    if len(conditions) != 1 or not enters:
        raise UnstructuredError("a loop without a condition")
    merges: list[int] = []
    initial: list[int] = []
    nexts: list[int] = []
    for position in inside:
        step = steps[position]
        if step.role is not Role.MERGE:
            continue
        after = [src for src, _ in step.inputs if steps[src].role is Role.NEXT_ITERATION]
        if not after:
            continue
        first = [src for src, _ in step.inputs if steps[src].role is Role.ENTER]
        if len(after) != 1 or len(first) != 1 or step.node.op != "Merge":
            raise UnstructuredError("a loop with more than one way around")
        merges.append(position)
        initial.append(first[0])
        nexts.append(after[0])
    switches = {
        position
        for position in inside
        if steps[position].role is Role.SWITCH and steps[position].inputs[1][0] == conditions[0]
    }
    state_of = {merge: index for index, merge in enumerate(merges)}
    exits: list[tuple[int, int]] = []
    leaving: set[int] = set()  # what hands a state on to its Exit, as gates of gradients do
    for position in inside:
        if steps[position].role is Role.EXIT:
            switch, side = steps[position].inputs[0]
            while steps[switch].role is Role.KERNEL and steps[switch].node.op == "Identity":
                leaving.add(switch)
                switch, side = steps[switch].inputs[0]
            merge = steps[switch].inputs[0][0] if switch in switches else -1
            if side != 0 or merge not in state_of:
                raise UnstructuredError("a loop that is left with something else than its state")
            exits.append((position, state_of[merge]))
    in_first_only = {enter for enter in enters if not steps[enter].node.attr("is_constant", False)}
    for position in inside:
        needed = {*(src for src, _ in steps[position].inputs), *steps[position].controls}
        if position not in state_of and not needed.isdisjoint(in_first_only):
            raise UnstructuredError("a step that can only run in the first iteration of a loop")
        leaves = position in leaving or steps[position].role is Role.EXIT
        if not leaves and not needed.isdisjoint(leaving):
            raise UnstructuredError("a step that runs only after the last iteration of a loop")
        for src, index in steps[position].inputs:
            if src in switches and index == 0 and not leaves:
                raise UnstructuredError("a step that runs only after the last iteration of a loop")
            if src in state_of and index == 1:
                raise UnstructuredError("a loop that asks how its state came")
    order = frames.order(frame)
    return FrameLoop(enters, initial, merges, nexts, conditions[0], switches, exits, order)
