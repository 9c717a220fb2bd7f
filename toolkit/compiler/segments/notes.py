"""What a task cannot know of its part of a graph by itself, written on the part: what comes from other tasks when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.compiler.program import Program
from toolkit.compiler.segments.waits import NOTE, Analysis, CircularError
from toolkit.compiler.steps import Role, Step, role_of
from toolkit.graph.frames import assign_frames
from toolkit.graph.graph import Graph
from toolkit.graph.partitioned import RECV_OPS
from toolkit.kernels import registry
from toolkit.kernels.registry import Kind


def note_waits(parts: Sequence[Graph]) -> None:
    """Write on what comes from other tasks, and from loops spread over tasks, what it waits for: no task alone knows.

    Notes are an attribute of our own (`NOTE`); a receive without one waits for nobody knows what.
    """
    import hashlib

    outlines = [_outline(part) for part in parts]
    try:
        found = Analysis(outlines, tasks=True).run()
    except CircularError:
        return
    names = {(number, i): f"{number}:{s.node.name}" for number, o in enumerate(outlines) for i, s in enumerate(o.steps)}
    for number, outline in enumerate(outlines):
        waits_of = found[id(outline)]
        for position, step in enumerate(outline.steps):
            is_received = step.node.op in RECV_OPS and not step.node.attr("client_terminated", False)
            if is_received or (step.role is Role.EXIT and waits_of[position].alone):
                waits = waits_of[position]
                outside = sorted(names[each] for each in waits.outside if each in names)  # type: ignore[index]
                digest = hashlib.blake2b("\n".join(outside).encode(), digest_size=8).hexdigest() if outside else ""
                noted = (waits.level[0], digest, waits.may_be_dead, waits.is_sized)
                parts[number].node(step.node.name).attrs[NOTE] = [str(each).encode() for each in noted]


def _outline(graph: Graph) -> Program:
    """A graph as a program whose kernels are not built: for looking at alone."""
    ordered = graph.topological_order()
    position = {node: index for index, node in enumerate(ordered)}
    by_id, frames = assign_frames(graph, ordered)
    steps: list[Step] = []
    for node in ordered:
        kind = Kind.STATEFUL if node.op in graph.library else _kind_of(node.op)
        inputs = [(position[src], index) for src, index in node.inputs]
        controls = [position[src] for src in node.control_inputs]
        steps.append(Step(node, role_of(node.op), kind, _never, inputs, controls, (), node.num_outputs))
    made = Program.__new__(Program)
    made.steps, made.frames, made.all_frames = steps, [by_id[node.id] for node in ordered], frames
    return made


def _kind_of(op: str) -> Kind:
    entries = registry.candidates(op, "CPU")
    return entries[0].kind if entries else Kind.PURE


def _never(*_: Any) -> Any:
    raise AssertionError("an outline of a program does not run")
