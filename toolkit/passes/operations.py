"""How many floating-point operations a node takes, from static shapes.

The usual conventions: a multiplication and an addition count as two, so a convolution or matrix product takes twice
its multiply-accumulates; an element-wise op takes one per element of its result, a reduction one per element of its
input; moving, reshaping, comparing indices and control flow take none. Transcendental functions count one too.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from toolkit.errors import GraphmillError
from toolkit.graph.infer import ShapeMap
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape

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


def size(shape: Shape, batch: int) -> int:
    """The elements of a shape: an unknown first size counts as `batch`, any other as one, an unknown rank as none."""
    if shape.dims is None:
        return 0
    return math.prod((batch if i == 0 else 1) if d is None else d for i, d in enumerate(shape.dims))


def operations(node: Node, shapes: ShapeMap, batch: int = 1) -> int:
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


def _last(shape: Shape) -> int:
    """The size of the last dimension, 1 when it is not known."""
    return shape.dims[-1] or 1 if shape.dims else 1


def _conv(node: Node, shapes: ShapeMap, batch: int) -> int:
    """Twice outputs times filter elements per output channel; the filter is [spatial..., in / groups, out]."""
    kernel = shapes[node.inputs[1]]
    return 2 * size(shapes[node.output()], batch) * size(kernel, 1) // max(_last(kernel), 1)


def _depthwise(node: Node, shapes: ShapeMap, batch: int) -> int:
    dims = shapes[node.inputs[1]].dims
    spatial = math.prod(d or 1 for d in dims[:2]) if dims else 0
    return 2 * size(shapes[node.output()], batch) * spatial


def _conv_backprop(node: Node, shapes: ShapeMap, batch: int) -> int:
    """As many as the convolution: gradient elements times filter elements per output channel, twice."""
    kernel = shapes[node.output()] if "Filter" in node.op else shapes[node.inputs[1]]
    gradient = size(shapes[node.inputs[2]], batch)
    if node.op.startswith("Depthwise"):
        return 2 * gradient * math.prod(d or 1 for d in (kernel.dims or ())[:2])
    return 2 * gradient * size(kernel, 1) // max(_last(kernel), 1)


def _matmul(node: Node, shapes: ShapeMap, batch: int) -> int:
    dims = shapes[node.inputs[0]].dims
    if not dims:
        return 0
    transposed = node.attr_or("transpose_a", None) or node.attr_or("adj_x", None)
    position = len(dims) - 2 if transposed else len(dims) - 1
    inner = dims[position]
    if inner is None:
        inner = batch if position == 0 else 1
    return 2 * size(shapes[node.output()], batch) * inner


def _einsum(node: Node, shapes: ShapeMap, batch: int) -> int:
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


def _pool(node: Node, shapes: ShapeMap, batch: int) -> int:
    window = math.prod(node.attr("ksize"))
    return size(shapes[node.output()], batch) * window


_SPECIAL: dict[str, Callable[[Node, ShapeMap, int], int]] = {
    "Conv2D": _conv, "Conv3D": _conv, "Conv": _conv, "_FusedConv2D": _conv,
    "DepthwiseConv2dNative": _depthwise,
    "Conv2DBackpropInput": _conv_backprop, "Conv2DBackpropFilter": _conv_backprop,
    "Conv3DBackpropInputV2": _conv_backprop, "Conv3DBackpropFilterV2": _conv_backprop,
    "DepthwiseConv2dNativeBackpropInput": _conv_backprop, "DepthwiseConv2dNativeBackpropFilter": _conv_backprop,
    "MatMul": _matmul, "_FusedMatMul": _matmul, "BatchMatMul": _matmul, "BatchMatMulV2": _matmul,
    "BatchMatMulV3": _matmul, "Einsum": _einsum,
    "MaxPool": _pool, "AvgPool": _pool, "MaxPool3D": _pool, "AvgPool3D": _pool,
}  # fmt: skip
