"""Loops and branches of Enter, Switch, Merge, NextIteration and Exit."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.errors import GraphmillError
from toolkit.graph.frames import assign_frames
from toolkit.graph.node import ENTER_OPS, EXIT_OPS, MERGE_OPS, NEXT_ITERATION_OPS
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Body, Subject


@family(
    "control_flow",
    Rule("frame", Severity.ERROR, "values of different loops meet, or a loop is left that was not entered",
         "lead values in through Enter and out through Exit"),
    Rule("back-edge", Severity.ERROR, "NextIteration leads elsewhere than into a Merge", "lead it into a Merge"),
    Rule("merge-entry", Severity.ERROR, "a loop's Merge that nothing enters", "lead an Enter into the Merge"),
    Rule("no-condition", Severity.ERROR, "a loop without LoopCond", "lead the condition through LoopCond"),
)  # fmt: skip
def control_flow(subject: Subject) -> Iterator[Problem]:
    for body in subject.bodies:
        if _fits_in_columns(body):
            continue
        if any(node.is_control_flow for node in body.graph.nodes):
            yield from _edges(body)
            yield from _frames(body)


def _fits_in_columns(body: Body) -> bool:
    """Whether nodes of which none has been made are as they should be."""
    table = body.table
    if table is None:
        return False
    from toolkit.formats.node_tables.frames import loops_fit  # NumPy is imported for large graphs alone

    return loops_fit(table)


def _edges(body: Body) -> Iterator[Problem]:
    for node in body.graph.nodes:
        for src, _ in node.inputs:
            if src.op in NEXT_ITERATION_OPS:
                break
        else:
            if not node.control_inputs:
                continue
        back = [src for src, _ in node.inputs if src.op in NEXT_ITERATION_OPS]
        back += [src for src in node.control_inputs if src.op in NEXT_ITERATION_OPS]
        if not back:
            continue
        if node.op not in MERGE_OPS:
            # TensorFlow's constant folding hangs control edges on NextIteration; they carry no value
            if any(src.op in NEXT_ITERATION_OPS for src, _ in node.inputs):
                message = f"the back edge of a loop leads from it into {node.op} '{node.name}', not into a Merge"
                yield Problem("control_flow/back-edge", message, back[0].name, body.function)
        elif all(src.op in NEXT_ITERATION_OPS for src, _ in node.inputs):
            message = "all its inputs are back edges: nothing enters the loop here"
            yield Problem("control_flow/merge-entry", message, node.name, body.function)


def _frames(body: Body) -> Iterator[Problem]:
    graph = body.sound
    try:
        frames, everything = assign_frames(graph, body.order)
    except GraphmillError as error:
        yield Problem("control_flow/frame", error.message, error.node, body.function)
        return
    for node in graph.nodes:
        if frames[node.id].parent is None and (node.op in EXIT_OPS or node.op in NEXT_ITERATION_OPS):
            yield Problem("control_flow/frame", f"this {node.op} is in no loop", node.name, body.function)
    looping = {frames[node.id].name for node in graph.nodes if node.op in NEXT_ITERATION_OPS}
    tested = {frames[node.id].name for node in graph.nodes if node.op == "LoopCond"}
    for frame in everything:
        if frame.name in looping and frame.name not in tested and len(graph) == len(body.graph):
            enter = next(
                (n for n in graph.nodes if n.op in ENTER_OPS and n.attr_or("frame_name", b"") == frame.name.encode()),
                None,
            )
            message = f"the loop '{frame.name}' goes round, but has no LoopCond: it cannot end"
            yield Problem("control_flow/no-condition", message, enter.name if enter else None, body.function)
