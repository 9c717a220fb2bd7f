"""The programs that a program is cut into, one for each segment."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from toolkit.compiler.steps import Role, Step
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.frames import StaticFrame
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.kernels.registry import Kind

if TYPE_CHECKING:
    from toolkit.compiler.segments.cut import Cut

EMPTY = np.empty(0, np.float32)


Slot = tuple[int, int]  # a step and one of its outputs; -1 for what a control edge carries


class SegmentProgram:
    """The program of one segment.

    Attributes:
        arguments: what it takes from elsewhere.
        after: the steps elsewhere that it waits for otherwise.
        results: what others take of it.
    """

    def __init__(self, cut: Cut, number: int, group: list[int]):
        self.name = f"segment {number + 1} of {len(cut.groups)}"
        self.arguments: list[Slot] = []
        self.after: set[int] = set()
        self.results: dict[Slot, int] = {}
        self._cut = cut
        self._inside = set(group)
        self._ends = Graph()
        self._local: dict[Slot, tuple[int, int]] = {}
        self._steps: list[Step] = []
        self._frames: list[StaticFrame] = []
        self._root = StaticFrame("", None)
        self._mapped = {id(cut.loops.home[group[0]]): self._root}
        self._places: dict[int, int] = {}
        self._by_value: set[int] = set()
        self._constants: dict[int, int] = {}
        ordered = self._ordered(group)
        for position in ordered:
            self._take(position)
        for position in ordered:
            self._places[position] = len(self._steps)
            self._add(cut.steps[position], self._frame(position))
        for position in ordered:
            self._connect(position)
        self._give(ordered)
        whole = cut.program
        self.program = whole.part(self._steps, self._frames, [self._root, *self._inner_frames()])
        self.program.by_value = frozenset(self._by_value)

    def _ordered(self, group: list[int]) -> list[int]:
        """What is sent, and what that needs, comes first; else everything stays in its order."""
        steps = self._cut.steps
        sends = [position for position in group if steps[position].role is Role.SEND]
        if not sends or any(self._cut.loops.whole[position] is not None for position in group):
            return group
        placed: dict[int, None] = {}
        for send in sends:
            stack = [send]
            while stack:
                position = stack[-1]
                step = steps[position]
                sources = (*(src for src, _ in step.inputs), *step.controls)
                missing = [src for src in sources if src in self._inside and src not in placed]
                if missing and position not in placed:
                    stack.extend(sorted(missing, reverse=True))
                    continue
                placed.setdefault(stack.pop())
        return [*placed, *(position for position in group if position not in placed)]

    def _frame(self, position: int) -> StaticFrame:
        frame = self._cut.program.frames[position]
        found = self._mapped.get(id(frame))
        if found is None:
            assert frame.parent is not None
            parent = self._mapped.get(id(frame.parent)) or self._copy(frame.parent)
            found = self._mapped[id(frame)] = replace(frame, parent=parent, nodes=[])
        return found

    def _copy(self, frame: StaticFrame) -> StaticFrame:
        found = self._mapped.get(id(frame))
        if found is None:
            assert frame.parent is not None
            found = self._mapped[id(frame)] = replace(frame, parent=self._copy(frame.parent), nodes=[])
        return found

    def _inner_frames(self) -> list[StaticFrame]:
        """The frames inside, those around others first."""
        frames = [frame for frame in self._cut.program.all_frames if id(frame) in self._mapped]
        return [self._mapped[id(frame)] for frame in frames if self._mapped[id(frame)] is not self._root]

    def _add(self, step: Step, frame: StaticFrame) -> int:
        self._steps.append(replace(step, inputs=[], controls=[]))
        self._frames.append(frame)
        return len(self._steps) - 1

    def _take(self, position: int) -> None:
        """Arguments for what a step takes from elsewhere, and constants in its reach."""
        cut, step = self._cut, self._cut.steps[position]
        for src, index in step.inputs:
            if src in self._inside or (src, index) in self._local:
                continue
            if cut.free[src]:
                self._local[src, index] = (self._free(src), index)
                continue
            source = cut.steps[src].node
            self._argument((src, index), source.output_types[index], source.name)
            if cut.waits[src].is_sized:
                self._by_value.add(len(self.arguments) - 1)
        for src in step.controls:
            if src in self._inside or cut.free[src] or (src, -1) in self._local:
                continue
            if cut.carries_deadness(src):
                self._argument((src, -1), dtypes.float32, f"{cut.steps[src].node.name}/after")
            else:
                self.after.add(src)

    def _free(self, position: int) -> int:
        """A constant, or what follows from constants, in this program too."""
        known = self._constants.get(position)
        if known is None:
            step = self._cut.steps[position]
            inputs = [(self._free(src), index) for src, index in step.inputs]
            known = self._constants[position] = self._add(step, self._root)
            self._steps[known].inputs += inputs
        return known

    def _argument(self, slot: Slot, dtype: DType, name: str) -> None:
        index = len(self.arguments)
        self.arguments.append(slot)
        attrs = {"T": dtype, "index": index}
        node = self._ends.add("_Arg", self._ends.unique_name(f"{name}/in"), attrs=attrs)
        self._local[slot] = (self._add(_end(node, Role.ARG, index), self._root), 0)

    def _connect(self, position: int) -> None:
        cut, step = self._cut, self._cut.steps[position]
        made = self._steps[self._places[position]]
        for src, index in step.inputs:
            made.inputs.append((self._places[src], index) if src in self._inside else self._local[src, index])
        for src in step.controls:
            if src in self._inside:
                made.controls.append(self._places[src])
            elif (src, -1) in self._local:
                made.controls.append(self._local[src, -1][0])
        assert len(made.inputs) == len(step.inputs) and cut is self._cut

    def _give(self, ordered: Sequence[int]) -> None:
        """Results for what others take."""
        cut = self._cut
        for position in ordered:
            for user in cut.users[position]:
                if user in self._inside:
                    continue
                taker = cut.steps[user]
                for src, index in taker.inputs:
                    if src == position:
                        self._result((position, index), (self._places[position], index))
                if position in taker.controls and cut.carries_deadness(position):
                    self._result((position, -1), None)

    def _result(self, slot: Slot, source: tuple[int, int] | None) -> None:
        if slot in self.results:
            return
        position, index = slot
        node = self._cut.steps[position].node
        if source is None:  # it has run, or it is dead
            const = replace(_end(node, Role.CONSTANT, 0), constant=EMPTY, num_outputs=1)
            const.controls = [self._places[position]]
            self._steps.append(const)
            self._frames.append(self._root)
            source, dtype = (len(self._steps) - 1, 0), dtypes.float32
        else:
            dtype = node.output_types[index]
        number = self.results[slot] = len(self.results)
        end = self._ends.add(
            "_Retval", self._ends.unique_name(f"{node.name}/out"), [Output(node, max(index, 0))],
            attrs={"T": dtype, "index": number},
        )  # fmt: skip
        step = _end(end, Role.RETVAL, number)
        step.inputs = [source]
        self._steps.append(step)
        self._frames.append(self._root)


def _end(node: Node, role: Role, index: int) -> Step:
    return Step(node, role, Kind.PURE, never, [], [], (), 1 if role is Role.ARG else 0, index=index)


def never(*_: Any) -> Any:
    raise AssertionError("the executor handles this role itself")
