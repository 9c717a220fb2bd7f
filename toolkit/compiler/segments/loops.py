"""Which steps cannot be part of a segment, and which loops can, as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolkit.compiler.program import Program
from toolkit.compiler.steps import Role, Step
from toolkit.graph.expansion import called
from toolkit.graph.frames import StaticFrame
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.partitioned import RECV_OPS
from toolkit.kernels import registry
from toolkit.kernels.registry import Kind

#: ops that tell how things stand somewhere where others are at work: a loop may wait for a change
_LOOKS = ("Queue", "Barrier", "Stage", "MapSize", "OrderedMapSize")


@dataclass(slots=True)
class Loops:
    """The loops of a program that can be compiled as a whole.

    Attributes:
        crossing: the frames in which something waits or is sent, and those around them, by id.
        whole: the loop that each step belongs to, by the outermost of its frames; None outside, and in frames that
            cross.
        home: the frame that each step is in, as far as frames cross.
    """

    crossing: set[int] = field(default_factory=set[int])
    whole: list[StaticFrame | None] = field(default_factory=list[StaticFrame | None])
    home: list[StaticFrame] = field(default_factory=list[StaticFrame])


def loops_of(program: Program) -> Loops:
    """Which loops lie within a program, and which reach out of it."""
    found = Loops()
    for step, frame in zip(program.steps, program.frames, strict=True):
        if frame.parent is not None and (step.role is Role.SEND or why_alone(step) or step.node.op.startswith(_LOOKS)):
            around = frame
            while around.parent is not None:
                found.crossing.add(id(around))
                around = around.parent
    by_name = {frame.name: frame for frame in program.all_frames}
    for step, frame in zip(program.steps, program.frames, strict=True):
        inside = frame
        if step.role is Role.ENTER:
            inside = by_name[step.node.text("frame_name")]
        whole: StaticFrame | None = None
        while inside.parent is not None and id(inside) not in found.crossing:
            whole, inside = inside, inside.parent
        found.whole.append(whole)
        found.home.append(inside if whole is not None else frame)
    return found


def why_alone(step: Step) -> str:
    """Why a step waits; "" where it does not."""
    if step.node.op in RECV_OPS:
        return "is received"
    if step.kind is Kind.ASYNC:
        return "waits for others"
    if step.kind is Kind.STATEFUL and _calls_what_waits(step):
        return "calls what waits for others"
    return ""


def _calls_what_waits(step: Step) -> bool:
    node = step.node
    library = node.graph.library
    if not len(library):
        return False
    names = called(node.op, (node.attrs.proto(name) for name in node.attrs), library)
    return any(_waits(library, name, set()) for name in names)


def _waits(library: FunctionLibrary, name: str, seen: set[str]) -> bool:
    """Whether a function has an asynchronous op, or calls one that has."""
    if name in seen:
        return False
    seen.add(name)
    for node in library.function(name).node_def:
        if any(entry.kind is Kind.ASYNC for entry in registry.candidates(node.op, "CPU")):
            return True
        if any(_waits(library, inner, seen) for inner in called(node.op, node.attr.values(), library)):
            return True
    return False


def goes_around(program: Program, step: Step) -> bool:
    """Whether a Merge or Switch passes on the state of a loop, or is decided by its condition."""
    steps = program.steps
    if step.role is Role.MERGE:
        return any(steps[src].role is Role.NEXT_ITERATION for src, _ in step.inputs)
    if step.role is Role.SWITCH:
        data, decides = steps[step.inputs[0][0]], steps[step.inputs[1][0]]
        return decides.role is Role.LOOP_COND or (data.role is Role.MERGE and goes_around(program, data))
    return False
