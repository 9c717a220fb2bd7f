"""Gradients of TensorArray ops: each array has one of gradients beside it, whose writes add up.

The gradient of an op's output goes into (or comes from) that array at the same index; the flow orders them. Two calls
of `gradients` must not add to the same arrays, so each names its own by the scope of its nodes (the `source`).
"""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import colocate_with, control_dependencies
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.gradients.common import gradient_source
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.errors import GraphError

_VERSIONS = ("", "V2", "V3")


def _all(name: str) -> list[str]:
    return [name + version for version in _VERSIONS]


for _name in ("TensorArray", "TensorArrayGrad", "TensorArraySize", "TensorArrayClose"):
    no_gradient(*_all(_name))
no_gradient("TensorArrayGradWithShape")


def _is_third(op: Operation) -> bool:
    return op.type.endswith("V3")


def _gradients(op: Operation, flow: Tensor) -> TensorArray:
    """The array of gradients of an op's TensorArray (version 3)."""
    dtype = op.node.attr("dtype", None) or op.node.attr("T")
    array = TensorArray(dtype, handle=op.inputs[0], flow=flow, colocate_with_first_write_call=False)
    return array.grad(gradient_source(), flow)


def _barrier(op: Operation, flow: Tensor) -> Tensor:
    """The flow of gradients, once what the op wrote is there: a gradient has the shape of what was written."""
    written = array_ops.identity(op.outputs[0], name="flow_out")
    with control_dependencies([written]):
        return array_ops.identity(flow, name="write_barrier")


class _Second:
    """The array of gradients in version 2 of the ops, which hands no flow on."""

    def __init__(self, op: Operation, flow: Tensor):
        if not op.type.endswith("V2"):
            raise GraphError("TensorArrays of version 1 have no gradient; their successor's have", node=op.name)
        with colocate_with(op.inputs[0].op):
            self.handle = self.call("Grad", op.inputs[0], flow, source=gradient_source())
        self.flow = flow

    def call(self, name: str, *args: Any, **attrs: Any) -> Any:
        return ops.function(f"TensorArray{name}V2")(*args, **attrs)


@gradient(*_all("TensorArrayRead"))
def read(op: Operation, grad: Tensor) -> list[Gradient]:
    _, index, flow = op.inputs
    if _is_third(op):
        return [None, None, _gradients(op, flow).write(index, grad).flow]
    array = _Second(op, flow)
    return [None, None, array.call("Write", array.handle, index, grad, array.flow)]


@gradient(*_all("TensorArrayWrite"))
def write(op: Operation, flow: Tensor) -> list[Gradient]:
    _, index, value, _ = op.inputs
    if _is_third(op):
        flow = _barrier(op, flow)
        return [None, None, _gradients(op, flow).read(index), flow]
    array = _Second(op, flow)
    return [None, None, array.call("Read", array.handle, index, array.flow, dtype=value.dtype.base), flow]


@gradient(*_all("TensorArrayGather"))
def gather(op: Operation, grad: Tensor) -> list[Gradient]:
    _, indices, flow = op.inputs
    if _is_third(op):
        return [None, None, _gradients(op, flow).scatter(indices, grad).flow]
    array = _Second(op, flow)
    return [None, None, array.call("Scatter", array.handle, indices, grad, array.flow)]


@gradient(*_all("TensorArrayScatter"))
def scatter(op: Operation, flow: Tensor) -> list[Gradient]:
    _, indices, value, _ = op.inputs
    if _is_third(op):
        flow = _barrier(op, flow)
        return [None, None, _gradients(op, flow).gather(indices), flow]
    array = _Second(op, flow)
    return [None, None, array.call("Gather", array.handle, indices, array.flow, dtype=value.dtype.base), flow]


@gradient(*_all("TensorArrayConcat"))
def concat(op: Operation, grad: Tensor, _: Gradient) -> list[Gradient]:
    _handle, flow = op.inputs
    if _is_third(op):
        return [None, _gradients(op, flow).split(grad, op.outputs[1]).flow]
    array = _Second(op, flow)
    return [None, array.call("Split", array.handle, grad, op.outputs[1], array.flow)]


@gradient(*_all("TensorArraySplit"))
def split(op: Operation, flow: Tensor) -> list[Gradient]:
    value = op.inputs[1]
    if _is_third(op):
        flow = _barrier(op, flow)
        return [None, _gradients(op, flow).concat(), None, flow]
    array = _Second(op, flow)
    found, _lengths = array.call("Concat", array.handle, array.flow, dtype=value.dtype.base)
    return [None, found, None, flow]
