"""The primitive control-flow ops, in their reference form where the data is a reference."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor, TensorLike


def switch(data: TensorLike, pred: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """`data` as (output when pred is false, output when it is true); the other one is dead."""
    return ops.switch(data, pred, name=name)


def switch_value(data: Tensor, pred: Tensor, name: str = "Switch") -> tuple[Tensor, Tensor]:
    """`switch` placed with its data; a reference stays one."""
    with get_default_graph().colocate_with(data.op, ignore_existing=True):
        if data.dtype.is_ref:
            return ops.ref_switch(data, pred, name=name)
        return ops.switch(data, pred, name=name)


def merge(inputs: Sequence[Tensor], name: str | None = None) -> Tensor:
    """The input that is alive."""
    if all(tensor.dtype.is_ref for tensor in inputs):
        return ops.ref_merge(list(inputs), name=name)[0]
    return ops.merge(list(inputs), name=name)[0]


def merge_index(inputs: Sequence[Tensor], name: str | None = None) -> tuple[Tensor, Tensor]:
    """The input that is alive, and which it was."""
    return ops.merge(list(inputs), name=name)


def enter(data: Tensor, frame: str, is_constant: bool, parallel_iterations: int, name: str | None = None) -> Tensor:
    """`data` inside a loop's frame; a constant one in every iteration."""
    function = ops.ref_enter if data.dtype.is_ref else ops.enter
    return function(data, frame_name=frame, is_constant=is_constant, parallel_iterations=parallel_iterations, name=name)


def exit(data: Tensor, name: str | None = None) -> Tensor:
    """`data` back in the frame around the loop."""
    return (ops.ref_exit if data.dtype.is_ref else ops.exit)(data, name=name)


def next_iteration(data: Tensor, name: str | None = None) -> Tensor:
    return (ops.ref_next_iteration if data.dtype.is_ref else ops.next_iteration)(data, name=name)


def loop_cond(pred: Tensor, name: str | None = None) -> Tensor:
    return ops.loop_cond(pred, name=name)


def control_trigger(name: str | None = None) -> Operation:
    return ops.control_trigger(name=name)
