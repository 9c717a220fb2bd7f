"""Gradients of TensorArray ops: each array has one of gradients beside it, whose writes add up.

The gradient of an op's output goes into (or comes from) that array at the same index; the flow orders them. Two calls
of `gradients` must not add to the same arrays, so each names its own by the scope of its nodes (the `source`).
"""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.gradients.common import gradient_source
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.client.operation import Operation
from toolkit.client.scopes import colocate_with
from toolkit.client.tensor import Tensor
from toolkit.errors import GraphError

_VERSIONS = ("", "V2", "V3")


def _all(name: str) -> list[str]:
    return [name + version for version in _VERSIONS]


for _name in ("TensorArray", "TensorArrayGrad", "TensorArraySize", "TensorArrayClose"):
    no_gradient(*_all(_name))
no_gradient("TensorArrayGradWithShape")


class _GradientArray:
    """The array of gradients of an op's TensorArray, in the op's own version of the ops."""

    def __init__(self, op: Operation, flow: Tensor):
        self.version = next((v for v in ("V3", "V2") if op.type.endswith(v)), "")
        if not self.version:
            raise GraphError("TensorArrays of version 1 have no gradient; their successor's have", node=op.name)
        with colocate_with(op.inputs[0].op):
            made = self.call("Grad", op.inputs[0], flow, source=gradient_source())
        self.handle, self.flow = made if self.version == "V3" else (made, flow)

    def call(self, name: str, *args: Any, **attrs: Any) -> Any:
        return ops.function(f"TensorArray{name}{self.version}")(*args, **attrs)


@gradient(*_all("TensorArrayRead"))
def read(op: Operation, grad: Tensor) -> list[Gradient]:
    _, index, flow = op.inputs
    array = _GradientArray(op, flow)
    return [None, None, array.call("Write", array.handle, index, grad, array.flow)]


@gradient(*_all("TensorArrayWrite"))
def write(op: Operation, flow: Tensor) -> list[Gradient]:
    _, index, value, _ = op.inputs
    array = _GradientArray(op, flow)
    return [None, None, array.call("Read", array.handle, index, array.flow, dtype=value.dtype.base), flow]


@gradient(*_all("TensorArrayGather"))
def gather(op: Operation, grad: Tensor) -> list[Gradient]:
    _, indices, flow = op.inputs
    array = _GradientArray(op, flow)
    return [None, None, array.call("Scatter", array.handle, indices, grad, array.flow)]


@gradient(*_all("TensorArrayScatter"))
def scatter(op: Operation, flow: Tensor) -> list[Gradient]:
    _, indices, value, _ = op.inputs
    array = _GradientArray(op, flow)
    return [None, None, array.call("Gather", array.handle, indices, array.flow, dtype=value.dtype.base), flow]


@gradient(*_all("TensorArrayConcat"))
def concat(op: Operation, grad: Tensor, _: Gradient) -> list[Gradient]:
    _handle, flow = op.inputs
    array = _GradientArray(op, flow)
    return [None, array.call("Split", array.handle, grad, op.outputs[1], array.flow)]


@gradient(*_all("TensorArraySplit"))
def split(op: Operation, flow: Tensor) -> list[Gradient]:
    value = op.inputs[1]
    array = _GradientArray(op, flow)
    found, _lengths = array.call("Concat", array.handle, array.flow, dtype=value.dtype.base)
    return [None, found, None, flow]
