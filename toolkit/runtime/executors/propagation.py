"""Tokens on their way: outputs to consumers, frames, iterations, deadness (TensorFlow's PropagatorState)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from toolkit.compiler.steps import Role
from toolkit.kernels.context import DEAD
from toolkit.runtime.executors.dataflow import FrameInfo, FrameState, IterationState, NodeItem

# node, frame, iteration, is dead
Task = tuple[NodeItem, FrameState, IterationState, bool]


class Propagation:
    """What tokens do in one execution of a program; what nodes compute is its subclass's.

    Attributes:
        ready: what has all of its inputs and has not run.
        root: the outermost frame.
        frames: the instances of loop frames that are open, by parent, iteration of the parent, and name.
    """

    def __init__(self, layouts: dict[str, FrameInfo]):
        self.layouts = layouts
        self.ready: deque[Task] = deque()
        self.root = FrameState(layouts[""], None, None)
        self.frames: dict[tuple[int, int, str], FrameState] = {}

    def _propagate(self, task: Task, outputs: Sequence[Any], is_dead: bool) -> None:
        node, frame, iteration, _ = task
        match node.role:
            case Role.NEXT_ITERATION:
                if not is_dead:  # deadness stops here: the loop is over
                    if iteration.number < frame.last:
                        self._activate(node, outputs, False, frame, frame.iterations[iteration.number + 1])
                    elif frame.num_live >= frame.parallel:
                        frame.next_roots.append((node, outputs[0]))
                    else:
                        following = self._start_iteration(frame)
                        self._activate(node, outputs, False, frame, following)
            case Role.EXIT:
                if is_dead:
                    if iteration.number == frame.last:
                        frame.dead_exits.append(node)
                else:
                    assert frame.parent is not None and frame.parent_iteration is not None
                    self._activate(node, outputs, False, frame.parent, frame.parent_iteration)
            case Role.TRIGGER:  # deadness stops here, too: what follows waits for branches that may not be taken
                self._activate(node, outputs, False, frame, iteration)
            case Role.ENTER:
                child = self._child_frame(node, frame, iteration)
                if node.is_constant:
                    child.invariants.append((node, outputs[0]))
                    for each in list(child.iterations.values()):
                        self._activate(node, outputs, is_dead, child, each)
                else:
                    self._activate(node, outputs, is_dead, child, child.iterations[0])
                child.pending_enters -= 1
                self._clean_up(child, child.iterations.get(0))
            case _:
                self._activate(node, outputs, is_dead, frame, iteration)
        iteration.outstanding -= 1
        if iteration.outstanding == 0:
            self._clean_up(frame, iteration)

    def _activate(
        self, node: NodeItem, outputs: Sequence[Any], is_dead: bool, frame: FrameState, iteration: IterationState
    ) -> None:
        """Hand the outputs to the consumers and queue those that become ready."""
        pending, dead = iteration.pending, iteration.dead
        if node.data_edges:
            inputs = iteration.inputs
            for consumer, local, position, index in node.data_edges:
                value = outputs[index]
                if value is DEAD:
                    dead[local] += 1
                inputs[position] = value
                left = pending[local] = pending[local] - 1
                if not left:
                    iteration.outstanding += 1
                    self.ready.append((consumer, frame, iteration, dead[local] > 0))
        for consumer, local in node.control_edges:
            if is_dead:
                dead[local] += 1
            left = pending[local] = pending[local] - 1
            if not left:
                iteration.outstanding += 1
                self.ready.append((consumer, frame, iteration, dead[local] > 0))
        if node.merge_edges:
            self._activate_merges(node, outputs, frame, iteration)

    def _activate_merges(
        self, node: NodeItem, outputs: Sequence[Any], frame: FrameState, iteration: IterationState
    ) -> None:
        """A merge is ready at its first live input, or when all are dead; and when its control inputs are there."""
        pending, dead = iteration.pending, iteration.dead
        for consumer, local, position, index in node.merge_edges:
            all_dead = False
            if position < 0:
                pending[local] -= 2
                all_dead = dead[local] == consumer.num_inputs
                is_ready = pending[local] == 0 or (pending[local] == 1 and all_dead)
            elif outputs[index] is DEAD:
                dead[local] += 1
                # A dead Enter makes its Merge dead at once: no NextIteration will ever follow.
                all_dead = dead[local] == consumer.num_inputs or node.role is Role.ENTER
                is_ready = pending[local] == 1 and all_dead
            else:
                if not pending[local] & 1:  # another live input came first
                    continue
                iteration.inputs[position] = outputs[index]
                pending[local] -= 1
                is_ready = pending[local] == 0
            if is_ready:
                iteration.outstanding += 1
                self.ready.append((consumer, frame, iteration, all_dead and bool(pending[local] & 1)))

    # -- frames and iterations ---------------------------------------------------------------------------

    def _child_frame(self, enter: NodeItem, frame: FrameState, iteration: IterationState) -> FrameState:
        name = enter.frame_name
        key = (id(frame), iteration.number, name)
        child = self.frames.get(key)
        if child is None:
            child = self.frames[key] = FrameState(self.layouts[name], frame, iteration)
            iteration.outstanding_frames += 1
        return child

    def _start_iteration(self, frame: FrameState) -> IterationState:
        frame.last += 1
        frame.num_live += 1
        following = frame.iterations[frame.last] = IterationState(frame.last, frame.layout)
        frame.dead_exits.clear()  # only those of the last iteration count
        roots, frame.next_roots = frame.next_roots, []
        for node, value in roots:
            self._activate(node, (value,), False, frame, following)
        for node, value in frame.invariants:
            self._activate(node, (value,), value is DEAD, frame, following)
        return following

    def _clean_up(self, frame: FrameState, iteration: IterationState | None) -> None:
        """Drop iterations that are over, start deferred ones, and leave the frame when all are done."""
        if frame.parent is None or frame.parent_iteration is None:
            return
        while iteration is not None and self._is_done(frame, iteration):
            number = iteration.number
            del frame.iterations[number]
            frame.num_live -= 1
            if frame.next_roots:
                self._start_iteration(frame)
            iteration = frame.iterations.get(number + 1)
        if frame.num_live or frame.pending_enters:
            return
        parent, outer = frame.parent, frame.parent_iteration
        self.frames.pop((id(parent), outer.number, frame.layout.static.name), None)
        for node in frame.dead_exits:
            self._activate(node, [DEAD], True, parent, outer)
        frame.dead_exits = []
        outer.outstanding_frames -= 1
        self._clean_up(parent, outer)

    def _is_done(self, frame: FrameState, iteration: IterationState) -> bool:
        if iteration.outstanding or iteration.outstanding_frames:
            return False
        if iteration.number == 0:
            return frame.pending_enters == 0
        return iteration.number - 1 not in frame.iterations
