"""What the dataflow executor keeps: the nodes with their edges, and the state of frames and iterations.

`NodeItem` and `FrameInfo` are made once per program; `FrameState` and `IterationState` once per execution.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

from toolkit.compiler.program import Program
from toolkit.compiler.steps import Role, Step
from toolkit.graph.frames import StaticFrame
from toolkit.kernels.context import DEAD
from toolkit.kernels.registry import Kind


class Action(enum.IntEnum):
    """How the executor's loop treats a node; the frequent ones have a short way of their own."""

    PURE = 0
    SWITCH = 1
    MERGE = 2
    NEXT_ITERATION = 3
    FORWARD = 4  # Exit and LoopCond hand their input on
    CONSTANT = 5
    OTHER = 6


_ACTIONS = {
    Role.SWITCH: Action.SWITCH,
    Role.MERGE: Action.MERGE,
    Role.NEXT_ITERATION: Action.NEXT_ITERATION,
    Role.EXIT: Action.FORWARD,
    Role.LOOP_COND: Action.FORWARD,
    Role.CONSTANT: Action.CONSTANT,
}


class NodeItem:
    """What execution needs to know of a step, flattened for speed.

    Attributes:
        base, stop: its inputs among those of its frame.
        local: its number among the nodes of its frame.
        pending: how many inputs it waits for. A merge counts its control inputs twice over a low bit that says "no
            live input yet".
        data_edges: (consumer, its `local`, where its input is, which output) to consumers other than merges.
        control_edges: (consumer, its `local`).
        merge_edges: (consumer, its `local`, where its input is or -1 for a control edge, which output).
        blanks: what its inputs are replaced with when it takes them.
        fixed: the outputs of a constant; dead outputs of every other node.
        passes_deadness: a dead input makes it dead, without more ado.
        cost_ns: how long it took lately; measured only where there are threads to spread work over.
    """

    __slots__ = (
        "action", "base", "blanks", "compute", "control_edges", "cost_ns", "data_edges", "fixed", "frame_name",
        "is_constant", "is_merge", "local", "merge_edges", "num_inputs", "num_outputs", "passes_deadness", "pending",
        "role", "step", "stop",
    )  # fmt: skip

    def __init__(self, step: Step):
        self.step = step
        self.role = role = step.role
        self.compute = step.compute
        self.num_inputs = count = len(step.inputs)
        self.num_outputs = step.num_outputs
        self.is_merge = False
        self.pending = count + len(step.controls)
        self.passes_deadness = False
        # a list for those alone who have edges: large graphs have a great many nodes
        self.data_edges = self.merge_edges = _NO_EDGES
        self.control_edges = _NO_CONTROL
        self.local = self.base = self.stop = 0
        self.blanks = _blanks(count)
        self.cost_ns = 0
        self.frame_name = ""  # of an Enter: the loop it leads into
        self.is_constant = False  # of an Enter: the value is the same in all iterations
        self.fixed: Sequence[Any]
        if role is Role.CONSTANT:
            self.action = Action.OTHER if step.deref else Action.CONSTANT
            self.fixed = (step.constant,)
            return
        self.fixed = _dead(step.num_outputs)
        if role is Role.KERNEL:
            self.action = Action.PURE if step.kind is Kind.PURE and not step.deref else Action.OTHER
            self.passes_deadness = True
            return
        self.action = Action.OTHER if step.deref or _is_n_way(step) else _ACTIONS.get(role, Action.OTHER)
        if role is Role.MERGE:
            self.is_merge = True
            self.pending = len(step.controls) * 2 + 1
        elif role is Role.SWITCH:
            self.passes_deadness = True
        elif role is Role.ENTER:
            self.frame_name = step.node.attr("frame_name").decode()
            self.is_constant = step.node.attr("is_constant", False)


Edges: TypeAlias = list[tuple[NodeItem, int, int, int]]
ControlEdges: TypeAlias = list[tuple[NodeItem, int]]
#: of all who have none; never added to
_NO_EDGES: Edges = []
_NO_CONTROL: ControlEdges = []


@functools.cache  # there are as many as nodes have inputs
def _blanks(count: int) -> Sequence[None]:
    return (None,) * count


@functools.cache
def _dead(count: int) -> Sequence[Any]:
    return (DEAD,) * count


def _is_n_way(step: Step) -> bool:
    return step.node.op == "_SwitchN"


class FrameInfo:
    """Sizes and initial counts for the iterations of one static frame."""

    __slots__ = ("no_inputs", "none_dead", "num_inputs", "pending", "static")

    def __init__(self, static: StaticFrame):
        self.static = static
        self.pending: list[int] = []
        self.num_inputs = 0
        self.none_dead: list[int] = []
        self.no_inputs: list[Any] = []


def lay_out(program: Program) -> tuple[list[NodeItem], dict[str, FrameInfo]]:
    """The nodes of a program with their edges, and the layout of each frame by name."""
    nodes = [NodeItem(step) for step in program.steps]
    layouts = {frame.name: FrameInfo(frame) for frame in program.all_frames}
    before: StaticFrame | None = None
    layout, pending = FrameInfo(StaticFrame("", None)), list[int]()
    for node, frame in zip(nodes, program.frames, strict=True):
        if frame is not before:
            before, layout = frame, layouts[frame.name]
            pending = layout.pending
        node.local = len(pending)
        node.base = base = layout.num_inputs
        node.stop = layout.num_inputs = base + node.num_inputs
        pending.append(node.pending)
    for layout in layouts.values():
        layout.none_dead = [0] * len(layout.pending)
        layout.no_inputs = [None] * layout.num_inputs
    for node in nodes:
        step = node.step
        if node.is_merge:
            _lead_into_merge(nodes, node, step)
            continue
        local, position = node.local, node.base
        for src, index in step.inputs:
            source = nodes[src]
            edges = source.data_edges
            if edges:
                edges.append((node, local, position, index))
            else:
                source.data_edges = [(node, local, position, index)]
            position += 1
        for src in step.controls:
            source = nodes[src]
            if source.control_edges:
                source.control_edges.append((node, local))
            else:
                source.control_edges = [(node, local)]
    return nodes, layouts


def _lead_into_merge(nodes: list[NodeItem], node: NodeItem, step: Step) -> None:
    edges = [(src, (node, node.local, node.base + number, index)) for number, (src, index) in enumerate(step.inputs)]
    edges += [(src, (node, node.local, -1, 0)) for src in step.controls]
    for src, edge in edges:
        source = nodes[src]
        if source.merge_edges:
            source.merge_edges.append(edge)
        else:
            source.merge_edges = [edge]


class IterationState:
    """The state of one iteration of one frame instance."""

    __slots__ = ("dead", "inputs", "number", "outstanding", "outstanding_frames", "pending")

    def __init__(self, number: int, layout: FrameInfo):
        self.number = number
        self.pending = layout.pending.copy()
        self.dead = layout.none_dead.copy()
        self.inputs = layout.no_inputs.copy()
        self.outstanding = 0
        self.outstanding_frames = 0


class FrameState:
    """One instance of a loop frame (or the graph itself)."""

    __slots__ = (
        "dead_exits", "invariants", "iterations", "last", "layout", "next_roots", "num_live", "number",
        "parallel", "parent", "parent_iteration", "pending_enters",
    )  # fmt: skip

    def __init__(self, layout: FrameInfo, parent: FrameState | None, parent_iteration: IterationState | None):
        self.layout = layout
        self.parent = parent
        self.parent_iteration = parent_iteration
        self.number = -1  # worked out when somebody asks for `id`
        self.parallel = max(1, layout.static.parallel_iterations)
        self.pending_enters = layout.static.enters
        self.iterations: dict[int, IterationState] = {0: IterationState(0, layout)}
        self.last = 0  # the newest iteration
        self.num_live = 1
        self.next_roots: list[tuple[NodeItem, Any]] = []
        self.invariants: list[tuple[NodeItem, Any]] = []
        self.dead_exits: list[NodeItem] = []

    @property
    def id(self) -> int:
        """A number that every partition computes alike, TensorFlow's too: it is part of the rendezvous key."""
        if self.number < 0:
            if self.parent is None or self.parent_iteration is None:
                self.number = 0
            else:
                inside = _combined(self.parent_iteration.number, _hashed(self.layout.static.name))
                self.number = _combined(self.parent.id, inside)
        return self.number


_MASK = (1 << 64) - 1


def _combined(first: int, second: int) -> int:
    """One hash of two (TensorFlow's Hash64Combine)."""
    return first ^ (second + 0x9E3779B97F4A7800 + (first << 10) + (first >> 4) & _MASK)


@functools.cache
def _hashed(name: str) -> int:
    """TensorFlow's Hash64 of a frame's name."""
    from toolkit.kernels.encodings.hashing import hash64, hash_all

    return int(hash_all([name.encode()], hash64)[0])
