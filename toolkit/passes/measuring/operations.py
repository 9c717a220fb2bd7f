"""What a node costs, from static shapes: the one table, which reports, placement and the compiler ask.

The usual conventions: a multiplication and an addition count as two, so a convolution or matrix product takes twice
its multiply-accumulates; an element-wise op takes one per element of its result, a reduction one per element of its
input; moving, reshaping, comparing indices and control flow take none. Transcendental functions count one too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from toolkit.errors import GraphmillError
from toolkit.graph.dtypes import resource, variant
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape

#: results of these lie where their input lies
VIEWS = frozenset({
    "Identity", "IdentityN", "Reshape", "ExpandDims", "Squeeze", "StopGradient", "ReadVariableOp", "_Arg", "_Retval",
    "Enter", "Exit", "NextIteration", "Switch", "Merge", "Const", "Variable", "VariableV2", "VarHandleOp", "RefSwitch",
})  # fmt: skip
#: ops that neither compute nor move anything but their call
FREE = VIEWS | {
    "Placeholder", "PlaceholderWithDefault", "NoOp", "Shape", "Size", "Rank", "LoopCond", "ControlTrigger",
}  # fmt: skip
_ELEMENTWISE = frozenset({
    "Abs", "Acos", "Acosh", "Add", "AddV2", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "BiasAdd", "BiasAddV1", "Ceil",
    "ClipByValue", "Cos", "Cosh", "Digamma", "Div", "DivNoNan", "Elu", "EluGrad", "Erf", "Erfc", "Exp", "Expm1",
    "Floor", "FloorDiv", "FloorMod", "GreaterEqual", "Inv", "LeakyRelu", "LeakyReluGrad", "Lgamma", "Log", "Log1p",
    "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "Neg", "Pow", "RealDiv", "Reciprocal", "Relu", "Relu6", "Relu6Grad",
    "ReluGrad", "Rint", "Round", "Rsqrt", "RsqrtGrad", "Selu", "SeluGrad", "Sigmoid", "SigmoidGrad", "Sign", "Sin",
    "Sinh", "Softplus", "SoftplusGrad", "Softsign", "SoftsignGrad", "Sqrt", "SqrtGrad", "Square", "SquaredDifference",
    "Sub", "Tan", "Tanh", "TanhGrad", "TruncateDiv", "Xdivy", "Xlogy", "Xlog1py", "Dropout", "NextAfter", "Betainc",
})  # fmt: skip
_REDUCTIONS = frozenset({
    "Sum", "Mean", "Max", "Min", "Prod", "BiasAddGrad", "L2Loss", "Cumsum", "Cumprod", "EuclideanNorm", "SegmentSum",
    "UnsortedSegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd",
})  # fmt: skip
#: operations for each element of the first input
_PER_INPUT = {
    "Softmax": 5, "LogSoftmax": 5, "SoftmaxCrossEntropyWithLogits": 6, "SparseSoftmaxCrossEntropyWithLogits": 6,
    "FusedBatchNorm": 8, "FusedBatchNormV2": 8, "FusedBatchNormV3": 8, "FusedBatchNormGrad": 12,
    "FusedBatchNormGradV2": 12, "FusedBatchNormGradV3": 12, "LRN": 6, "LRNGrad": 12,
    "ApplyGradientDescent": 2, "ResourceApplyGradientDescent": 2, "ApplyMomentum": 4, "ResourceApplyMomentum": 4,
    "ApplyAdam": 12, "ResourceApplyAdam": 12,
}  # fmt: skip


def size(shape: Shape, batch: int, unknown: int = 0) -> int:
    """The elements of a shape: an unknown first size counts as `batch`, any other as one.

    Args:
        unknown: what a shape of unknown rank counts as.
    """
    if shape.dims is None:
        return unknown
    return math.prod((batch if i == 0 else 1) if d is None else d for i, d in enumerate(shape.dims))


def multiplications(outputs: int, filter_shape: Sequence[int], *, depthwise: bool = False) -> int:
    """The multiply-accumulates of a convolution, or of one of its gradients.

    Args:
        outputs: numbers of its output.
        filter_shape: [spatial..., inputs / groups, outputs], of depthwise ones [spatial..., inputs, multiplier].
    """
    return outputs * math.prod(filter_shape[: -2 if depthwise else -1])


class Shapes(Protocol):
    """The shapes of tensors: a `ShapeMap`, or what else knows those of a node."""

    def __getitem__(self, output: Output, /) -> Shape: ...


def operations(node: Node, shapes: Shapes, batch: int = 1) -> int:
    """The floating-point operations of one execution of a node; 0 where shapes are not known.

    Calls of functions count 0: their bodies are counted where they are.
    """
    op = node.op
    try:
        special = _SPECIAL.get(op)
        if special is not None:
            return special(node, shapes, batch)
        if op in _ELEMENTWISE:
            return size(shapes[node.output()], batch)
        if op in _REDUCTIONS:
            return size(shapes[node.inputs[0]], batch)
        if op == "AddN":
            return size(shapes[node.output()], batch) * (len(node.inputs) - 1)
        factor = _PER_INPUT.get(op)
        if factor is not None:
            # optimizers' first input is a handle; the gradient has the variable's shape
            source = node.inputs[-1 if "Apply" in op else 0]
            found = size(shapes[source], batch)
            if op.startswith("FusedBatchNorm") and not node.attr_or("is_training", True):
                factor = 2
            return found * factor
    except (GraphmillError, IndexError):
        return 0
    return 0


def is_countable(node: Node, shapes: Shapes) -> bool:
    """Whether `operations` can tell what a node takes: it takes none, or the shapes that say how many are known."""
    op = node.op
    if (
        op not in _SPECIAL
        and op not in _ELEMENTWISE
        and op not in _REDUCTIONS
        and op not in _PER_INPUT
        and op != "AddN"
    ):
        return True
    try:
        read = [node.output()] if op in _ELEMENTWISE or op == "AddN" else [*node.inputs, node.output()]
        return all(shapes[each].dims is not None for each in read if each.dtype not in (resource, variant))
    except (GraphmillError, IndexError):
        return False


def _conv(node: Node, shapes: Shapes, batch: int) -> int:
    return _convolution(node, shapes[node.inputs[1]], size(shapes[node.output()], batch))


def _conv_backprop(node: Node, shapes: Shapes, batch: int) -> int:
    """As many as the convolution, whose outputs are as many as their gradients."""
    kernel = shapes[node.output()] if "Filter" in node.op else shapes[node.inputs[1]]
    return _convolution(node, kernel, size(shapes[node.inputs[2]], batch))


def _convolution(node: Node, kernel: Shape, outputs: int) -> int:
    if kernel.dims is None:
        return 0
    known = [1 if d is None else d for d in kernel.dims]
    return 2 * multiplications(outputs, known, depthwise=node.op.startswith("Depthwise"))


def _matmul(node: Node, shapes: Shapes, batch: int) -> int:
    dims = shapes[node.inputs[0]].dims
    if not dims:
        return 0
    transposed = node.attr_or("transpose_a", None) or node.attr_or("adj_x", None)
    position = len(dims) - 2 if transposed else len(dims) - 1
    inner = dims[position]
    if inner is None:
        inner = batch if position == 0 else 1
    return 2 * size(shapes[node.output()], batch) * inner


def _einsum(node: Node, shapes: Shapes, batch: int) -> int:
    """Twice the product of all distinct indices' sizes for two operands; one per element for one."""
    equation = node.text("equation")
    sides = equation.split("->")[0].split(",")
    sizes: dict[str, int] = {}
    for text, source in zip(sides, node.inputs, strict=False):
        dims = shapes[source].dims
        if dims is None or "..." in text or len(dims) != len(text.strip()):
            return 2 * size(shapes[node.output()], batch) if "..." in text else 0
        for i, (label, d) in enumerate(zip(text.strip(), dims, strict=True)):
            sizes[label] = max(sizes.get(label, 1), (batch if i == 0 else 1) if d is None else d)
    return (2 if len(sides) > 1 else 1) * math.prod(sizes.values())


def _pool(node: Node, shapes: Shapes, batch: int) -> int:
    window = math.prod(node.attr("ksize"))
    return size(shapes[node.output()], batch) * window


_SPECIAL: dict[str, Callable[[Node, Shapes, int], int]] = {
    "Conv2D": _conv, "Conv3D": _conv, "Conv": _conv, "_FusedConv2D": _conv,
    "DepthwiseConv2dNative": _conv,
    "Conv2DBackpropInput": _conv_backprop, "Conv2DBackpropFilter": _conv_backprop,
    "Conv3DBackpropInputV2": _conv_backprop, "Conv3DBackpropFilterV2": _conv_backprop,
    "DepthwiseConv2dNativeBackpropInput": _conv_backprop, "DepthwiseConv2dNativeBackpropFilter": _conv_backprop,
    "MatMul": _matmul, "_FusedMatMul": _matmul, "BatchMatMul": _matmul, "BatchMatMulV2": _matmul,
    "BatchMatMulV3": _matmul, "Einsum": _einsum,
    "MaxPool": _pool, "AvgPool": _pool, "MaxPool3D": _pool, "AvgPool3D": _pool,
}  # fmt: skip
