"""Shapes of control flow: Switch, Merge, loops, constants of no computation."""

from __future__ import annotations

from toolkit.graph.shape import SCALAR, Shape
from toolkit.graph.shapes.registry import ShapeContext, shape_function


@shape_function("NoOp", "ControlTrigger", "Abort", "Assert")
def nothing(c: ShapeContext) -> list[Shape]:
    return []


@shape_function("Switch", "RefSwitch")
def switch(c: ShapeContext) -> list[Shape]:
    c.rank(1, 0)
    _pass_handle(c, 2)
    return [c.inputs[0], c.inputs[0]]


@shape_function("_SwitchN")
def switch_n(c: ShapeContext) -> list[Shape]:
    count = c.node.num_outputs
    _pass_handle(c, count)
    return [c.inputs[0]] * count


@shape_function("Merge", "RefMerge")
def merge(c: ShapeContext) -> list[Shape]:
    """What all inputs have in common. `infer` treats the Merge of a loop itself."""
    out = c.inputs[0]
    for shape in c.inputs[1:]:
        out = out.most_specific_common(shape)
    _pass_handle(c, 1)
    return [out, SCALAR]


@shape_function("Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration")
def through(c: ShapeContext) -> list[Shape]:
    _pass_handle(c, 1)
    return [c.inputs[0]]


@shape_function("LoopCond")
def loop_cond(c: ShapeContext) -> list[Shape]:
    return [c.rank(0, 0)]


@shape_function("RefSelect")
def ref_select(c: ShapeContext) -> list[Shape]:
    c.rank(0, 0)
    out = c.inputs[1]
    for shape in c.inputs[2:]:
        out = out.most_specific_common(shape)
    return [out]


def _pass_handle(c: ShapeContext, count: int) -> None:
    handle = c.handle(0)
    if handle is not None:
        c.output_handles.update(dict.fromkeys(range(count), handle))
