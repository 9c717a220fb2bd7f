# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""How many floating point operations TensorFlow 1.15 counts for a node; it counts some ops only."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from toolkit.graph.shape import Shape

#: ops whose every element of input (or output) costs so many
_OF_INPUT = {"Reciprocal": 1, "Square": 1, "Rsqrt": 2, "Log": 1, "Neg": 1, "AssignSub": 1, "AssignAdd": 1, "Softmax": 5,
             "BiasAdd": 1}  # fmt: skip
_OF_OUTPUT = {
    **dict.fromkeys(("Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "Pow", "GreaterEqual", "Greater",
                     "LessEqual", "Less", "Equal", "NotEqual"), 1),
    "RsqrtGrad": 4, "SquaredDifference": 2,
}  # fmt: skip
#: reductions, with what one element of the output costs at the end
_REDUCTIONS = {"Mean": 1, "Sum": 0, "ArgMax": 0, "ArgMin": 0, "BiasAddGrad": 0}
#: convolutions with how many axes of the filter each element of the output is summed over
_CONVOLUTIONS = {"Conv2D": 3, "Conv3D": 4, "DepthwiseConv2dNative": 2, "Dilation2D": 2}


class UnknownSizeError(Exception):
    """A shape is not known, so nothing can be counted."""


class _Node:
    """One operation with the sizes of what it takes and gives."""

    def __init__(self, op: Any, shape_of: Callable[[Any], Shape]):
        self.op, self._shape_of = op, shape_of

    def shape(self, tensor: Any) -> list[int]:
        shape = self._shape_of(tensor)
        if not shape.is_fully_defined:
            raise UnknownSizeError(tensor.name)
        return shape.as_list()

    def taken(self, index: int) -> list[int]:
        return self.shape(self.op.inputs[index])

    @property
    def given(self) -> list[int]:
        return self.shape(self.op.outputs[0])

    def window(self) -> int:
        self.need_channels_last()
        return math.prod(self.op.get_attr("ksize"))

    def need_channels_last(self) -> None:
        if self.op.get_attr("data_format") not in ("NHWC", b"NHWC"):
            raise UnknownSizeError(f"{self.op.name}: counted where channels come last only")


def counted(op: Any, shape_of: Callable[[Any], Shape]) -> int:
    """Its floating point operations in one step; 0 where TensorFlow counts none.

    Args:
        shape_of: the shape of a tensor, as far as it is known.

    Raises:
        UnknownSizeError: it depends on a shape that is not known.
    """
    node, kind = _Node(op, shape_of), op.type
    if kind in _OF_INPUT:
        return math.prod(node.taken(0)) * _OF_INPUT[kind]
    if kind in _OF_OUTPUT:
        return math.prod(node.given) * _OF_OUTPUT[kind]
    if kind in _REDUCTIONS:
        return math.prod(node.taken(0)) + math.prod(node.given) * (_REDUCTIONS[kind] - 1)
    if kind in _CONVOLUTIONS:
        node.taken(0)
        return math.prod(node.given) * math.prod(node.taken(1)[: _CONVOLUTIONS[kind]]) * 2
    rule = _RULES.get(kind)
    return rule(node) if rule is not None else 0


def _product(node: _Node) -> int:
    """A product of matrices."""
    transposed = node.op.get_attr("transpose_a")
    return node.taken(0)[-2 if transposed else -1] * math.prod(node.given) * 2


def _batched_product(node: _Node) -> int:
    # TensorFlow asks for an attribute that the op does not have, so that it never sees the first one as transposed.
    return node.taken(0)[-1] * math.prod(node.given) * 2


def _convolution_gradient(node: _Node, image: list[int], kernel: list[int]) -> int:
    node.need_channels_last()
    strides = node.op.get_attr("strides")
    return int(2 * math.prod(image) * math.prod(kernel) / (image[-1] * strides[1] * strides[2]))


_RULES: dict[str, Callable[[_Node], int]] = {
    "L2Loss": lambda node: math.prod(node.taken(0)) * 3 - 1,
    "AddN": lambda node: math.prod(node.taken(0)) * (len(node.op.inputs) - 1),
    "MatMul": _product, "BatchMatMul": _batched_product, "BatchMatMulV2": _batched_product,
    "AvgPool": lambda node: node.window() * math.prod(node.given),
    "MaxPool": lambda node: node.window() * math.prod(node.given),
    "AvgPoolGrad": lambda node: node.window() * math.prod(node.taken(1)) * 2,
    "MaxPoolGrad": lambda node: (node.window() + 1) * math.prod(node.taken(1)),
    "Conv2DBackpropInput": lambda node: _convolution_gradient(node, node.given, node.taken(1)),
    "Conv2DBackpropFilter": lambda node: _convolution_gradient(node, node.taken(0), node.given),
}  # fmt: skip
