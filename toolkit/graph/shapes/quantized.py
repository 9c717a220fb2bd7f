"""Shapes of ops on quantized numbers: those of the plain ops, and scalars for the ranges."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from schemas.uniform_quant_ops_attr_pb2 import UniformQuantizedConvolutionDimensionNumbersAttr
from toolkit.errors import GraphmillError
from toolkit.graph.shape import SCALAR, UNKNOWN, Dim, Shape, broadcast
from toolkit.graph.shapes.array import concat_shape, resolve_reshape
from toolkit.graph.shapes.math import product_shape
from toolkit.graph.shapes.nn import bias_shape, conv_shape, optional_list, pool_shape, window_size
from toolkit.graph.shapes.registry import ShapeContext, shape_function


def _ranged(c: ShapeContext, shape: Shape, ends: Shape = SCALAR) -> list[Shape]:
    """With the two ends of the range, where the op gives them."""
    return [shape] if len(c.node.output_types) == 1 else [shape, ends, ends]


@shape_function("QuantizedConv2D")
def conv2d(c: ShapeContext) -> list[Shape]:
    return _ranged(c, conv_shape(c, 2))


FUSED_CONVOLUTIONS = (
    "QuantizedConv2DAndRelu", "QuantizedConv2DAndReluAndRequantize", "QuantizedConv2DAndRequantize",
    "QuantizedConv2DPerChannel", "QuantizedConv2DWithBias", "QuantizedConv2DWithBiasAndRelu",
    "QuantizedConv2DWithBiasAndReluAndRequantize", "QuantizedConv2DWithBiasAndRequantize",
    "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize", "QuantizedConv2DWithBiasSumAndRelu",
    "QuantizedConv2DWithBiasSumAndReluAndRequantize", "QuantizedDepthwiseConv2D", "QuantizedDepthwiseConv2DWithBias",
    "QuantizedDepthwiseConv2DWithBiasAndRelu", "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
)  # fmt: skip


@shape_function(*FUSED_CONVOLUTIONS)
def fused_conv2d(c: ShapeContext) -> list[Shape]:
    op = c.node.op
    shape = conv_shape(c, 2, depthwise="Depthwise" in op)
    if optional_list(c, "padding_list"):
        shape = _padded(c, shape)
    # the range of what is not requantized has a pair of ends for each filter that has one
    return _ranged(c, shape, SCALAR if "Requantize" in op else c.inputs[5 + ("WithBias" in op)])


def _padded(c: ShapeContext, shape: Shape) -> Shape:
    """With the padding of a list in place of the one that is named."""
    pads, strides, dilations = c.attr("padding_list"), c.attr("strides"), c.attr("dilations")
    if len(pads) != 8 or shape.dims is None:
        return UNKNOWN
    source, kernel = c.rank(0, 4), c.rank(1, 4)
    inner = [
        window_size(source[a], kernel[a - 1], strides[a], "EXPLICIT", dilations[a], pads[2 * a : 2 * a + 2])
        for a in (1, 2)
    ]
    return Shape([shape.dims[0], *inner, shape.dims[3]])


@shape_function(
    "QuantizedMatMul", "QuantizedMatMulWithBias", "QuantizedMatMulWithBiasAndDequantize",
    "QuantizedMatMulWithBiasAndRelu", "QuantizedMatMulWithBiasAndReluAndRequantize",
    "QuantizedMatMulWithBiasAndRequantize",
)  # fmt: skip
def matmul(c: ShapeContext) -> list[Shape]:
    return _ranged(c, product_shape(c.rank(0, 2), c.rank(1, 2), c.attr("transpose_a"), c.attr("transpose_b")))


@shape_function("QuantizedMaxPool", "QuantizedAvgPool")
def pool(c: ShapeContext) -> list[Shape]:
    return _ranged(c, pool_shape(c, 2, c.attr("ksize"), c.attr("strides")))


@shape_function("QuantizedAdd", "QuantizedMul")
def binary(c: ShapeContext) -> list[Shape]:
    return _ranged(c, broadcast(c.inputs[0], c.inputs[1]))


@shape_function("QuantizedBiasAdd")
def bias_add(c: ShapeContext) -> list[Shape]:
    return _ranged(c, bias_shape(c))


@shape_function("RequantizePerChannel", "QuantizedInstanceNorm")
def same(c: ShapeContext) -> list[Shape]:
    return _ranged(c, c.inputs[0])


@shape_function("QuantizedReshape")
def reshape(c: ShapeContext) -> list[Shape]:
    return _ranged(c, resolve_reshape(c.inputs[0], c.constant_shape(1)))


@shape_function("QuantizedConcat")
def concat(c: ShapeContext) -> list[Shape]:
    count = c.attr("N")
    return _ranged(c, concat_shape(c.inputs[1 : count + 1], c.integer(0)))


@shape_function("QuantizedConcatV2")
def concat_v2(c: ShapeContext) -> list[Shape]:
    count = c.attr("N")
    return _ranged(c, concat_shape(c.inputs[:count], c.integer(count)))


# -- uniform quantization ------------------------------------------------------------------------------------------


@shape_function("UniformQuantize", "UniformDequantize", "UniformRequantize", "UniformQuantizedClipByValue")
def uniform_same(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("UniformQuantizedAdd")
def uniform_add(c: ShapeContext) -> list[Shape]:
    return [broadcast(c.inputs[0], c.inputs[1])]


@shape_function("UniformQuantizedDot", "UniformQuantizedDotHybrid")
def uniform_dot(c: ShapeContext) -> list[Shape]:
    return [product_shape(c.rank(0, 2), c.rank(1, 2), False, False)]


@shape_function("UniformQuantizedConvolution", "UniformQuantizedConvolutionHybrid")
def uniform_convolution(c: ShapeContext) -> list[Shape]:
    """Dimensions are where the dimension numbers say."""
    x, w = c.inputs[:2]
    if x.dims is None or w.dims is None or len(x.dims) != len(w.dims) or len(x.dims) < 3:
        return [UNKNOWN]
    numbers = UniformQuantizedConvolutionDimensionNumbersAttr()
    try:
        numbers.ParseFromString(c.attr("dimension_numbers"))
    except DecodeError:
        raise GraphmillError("the dimension numbers cannot be read") from None
    rank = len(x.dims)
    of_x = of_w = of_y = tuple(range(rank))
    if numbers.input_spatial_dimensions:
        n = numbers
        of_x = (n.input_batch_dimension, n.input_feature_dimension, *n.input_spatial_dimensions)
        of_w = (n.kernel_output_feature_dimension, n.kernel_input_feature_dimension, *n.kernel_spatial_dimensions)
        of_y = (n.output_batch_dimension, n.output_feature_dimension, *n.output_spatial_dimensions)
    if any(sorted(order) != list(range(rank)) for order in (of_x, of_w, of_y)):
        return [UNKNOWN]
    batch = x.dims[of_x[0]]
    sizes: list[Dim] = [None] * rank
    sizes[of_y[0]] = None if batch is None else batch // max(1, c.attr("batch_group_count"))
    sizes[of_y[1]] = w.dims[of_w[0]]
    for axis in range(rank - 2):
        sizes[of_y[2 + axis]] = _window(c, axis, x.dims[of_x[2 + axis]], w.dims[of_w[2 + axis]])
    return [Shape(sizes)]


def _window(c: ShapeContext, axis: int, size: Dim, window: Dim) -> Dim:
    """The result's size along a spatial axis."""

    def of(name: str) -> int:
        given = c.attr(name)
        return given[axis] if axis < len(given) else 1

    gap = of("lhs_dilation")
    inner = size if not size else (size - 1) * gap + 1
    pads = list(c.attr("explicit_padding"))[2 * axis : 2 * axis + 2]
    return window_size(inner, window, of("window_strides"), c.text("padding"), of("rhs_dilation"), pads)
