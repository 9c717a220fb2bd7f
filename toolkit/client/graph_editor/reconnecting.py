# The arguments of TensorFlow's functions may be nested in any way, so `elements` says what they are, not types.
# pyright: basic
"""Whole parts of a graph are given the ends of others, taken off, put behind each other and left out.

A part is a SubGraphView or what `sgv` makes one of; who keeps the view sees its new inputs and outputs.
"""

from __future__ import annotations

from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.graph_editor.elements import (
    ControlOutputs,
    check_one_graph,
    get_consuming_ops,
    make_placeholder_from_tensor,
    placeholder_name,
    takers,
)
from toolkit.client.graph_editor.rewiring import remove_control_inputs, reroute_ts, swap_ts
from toolkit.client.graph_editor.views import SubGraphView, sgv
from toolkit.client.graph_editor.walks import check_cios
from toolkit.errors import ArgumentTypeError


def _view(given: Any) -> SubGraphView:
    return given if isinstance(given, SubGraphView) else sgv(given)


def _views(first: Any, second: Any) -> tuple[SubGraphView, SubGraphView]:
    found = _view(first), _view(second)
    check_one_graph([each for view in found for each in (*view.ops, *view.inputs)])
    return found


def _inputs(first: Any, second: Any, *, swaps: bool) -> tuple[SubGraphView, SubGraphView]:
    one, other = _views(first, second)
    changing = [
        *one.ops, *other.ops, *get_consuming_ops(one.passthroughs), *get_consuming_ops(other.passthroughs),
    ]  # fmt: skip
    (swap_ts if swaps else reroute_ts)(one.inputs, other.inputs, can_modify=changing)
    _remap(one, other, swaps=swaps)
    return one, other


def _remap(one: SubGraphView, other: SubGraphView, *, swaps: bool) -> None:
    """The views' inputs follow; outputs that were inputs handed through become the other inputs."""
    before = one.copy(), other.copy()
    ends = [(before[0], other, before[1])] + ([(before[1], one, before[0])] if swaps else [])
    for source, target, old in ends:
        target._inputs, target._passthrough = list(source._inputs), list(source._passthrough)
        for index, tensor in enumerate(old._outputs):
            if tensor in old._passthrough:
                target._outputs[index] = source._inputs[old._inputs.index(tensor)]


def _outputs(first: Any, second: Any, *, swaps: bool) -> tuple[SubGraphView, SubGraphView]:
    one, other = _views(first, second)
    staying = [*one.ops, *other.ops]
    (swap_ts if swaps else reroute_ts)(one.outputs, other.outputs, cannot_modify=staying)
    return one, other


def reroute_inputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """The second part takes the inputs of the first.

    Raises:
        ArgumentValueError: they have not as many, or are of two graphs.
    """
    return _inputs(sgv0, sgv1, swaps=False)


def swap_inputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Each part takes the other's inputs; see `reroute_inputs`."""
    return _inputs(sgv0, sgv1, swaps=True)


def reroute_outputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """What takes outputs of the second part takes those of the first; see `reroute_inputs`."""
    return _outputs(sgv0, sgv1, swaps=False)


def swap_outputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """What takes outputs of one part takes those of the other; see `reroute_inputs`."""
    return _outputs(sgv0, sgv1, swaps=True)


def reroute_ios(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """The first part stands where the second did: `reroute_outputs`, and `reroute_inputs`."""
    one, other = _outputs(sgv0, sgv1, swaps=False)
    return _inputs(one, other, swaps=False)


def swap_ios(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Two parts change places."""
    one, other = _outputs(sgv0, sgv1, swaps=True)
    return _inputs(one, other, swaps=True)


def detach_control_inputs(sgv: Any) -> None:
    """A part waits no more for operations outside."""
    view = _view(sgv)
    inside = set(view.ops)
    for op in view.ops:
        remove_control_inputs(op, [each for each in op.control_inputs if each not in inside])


def detach_control_outputs(sgv: Any, control_outputs: Any) -> None:
    """Operations outside wait no more for a part.

    Args:
        control_outputs: a ControlOutputs of the graph; it is brought up to date.

    Raises:
        ArgumentTypeError: it is none.
    """
    if not isinstance(control_outputs, ControlOutputs):
        raise ArgumentTypeError(f"control_outputs: expected ControlOutputs, got {type(control_outputs).__name__}")
    control_outputs.update()
    view = _view(sgv)
    inside = set(view.ops)
    for op in view.ops:
        for waiting in control_outputs.get(op):
            if waiting not in inside:
                remove_control_inputs(waiting, op)


def detach_inputs(sgv: Any, control_inputs: Any = False) -> tuple[SubGraphView, list[Tensor]]:
    """A part takes placeholders in place of its inputs; returns it and them.

    Args:
        control_inputs: it waits no more for operations outside, either.
    """
    view = _view(sgv)
    with view.graph.as_default():
        fed = [array_ops.placeholder(each.dtype, name=placeholder_name(each)) for each in view.inputs]
    _inputs(view, SubGraphView(passthrough_ts=fed), swaps=True)
    if control_inputs:
        detach_control_inputs(view)
    return view, fed


def detach_outputs(sgv: Any, control_outputs: Any = None) -> tuple[SubGraphView, list[Tensor]]:
    """What takes a part's outputs takes placeholders; returns the part, with those outputs, and them."""
    view = _view(sgv)
    used = view.remap_outputs([index for index, each in enumerate(view.outputs) if takers(each)])
    behind = SubGraphView(used.consumers())
    behind = behind.remap_inputs([index for index, each in enumerate(behind.inputs) if each in used.outputs])
    with used.graph.as_default():
        fed = [make_placeholder_from_tensor(each) for each in behind.inputs]
    _outputs(used, SubGraphView(passthrough_ts=fed), swaps=True)
    if control_outputs is not None:
        detach_control_outputs(used, control_outputs)
    return used, fed


def detach(
    sgv: Any, control_inputs: Any = False, control_outputs: Any = None, control_ios: Any = None
) -> tuple[Any, list[Tensor], list[Tensor]]:
    """`detach_inputs` and `detach_outputs`; returns the part and the placeholders of both."""
    waits, waited = check_cios(control_inputs, control_outputs, control_ios)
    _, before = detach_inputs(sgv, waits)
    _, behind = detach_outputs(sgv, waited)
    return sgv, before, behind


def connect(sgv0: Any, sgv1: Any, disconnect_first: bool = False) -> tuple[SubGraphView, SubGraphView]:
    """The second part takes the outputs of the first.

    Args:
        disconnect_first: what took them takes placeholders.
    """
    one, other = _views(sgv0, sgv1)
    if disconnect_first:
        detach_outputs(one)
    _inputs(SubGraphView(passthrough_ts=one.outputs), other, swaps=False)
    return one, other


def bypass(sgv: Any) -> tuple[SubGraphView, list[Tensor]]:
    """What takes a part's outputs takes its inputs; the part takes placeholders, which come beside it."""
    view = _view(sgv)
    given = list(view.inputs)
    view, fed = detach_inputs(view)
    reroute_ts(given, view.outputs)
    return view, fed
