"""Gradients of neural network ops."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import control_dependencies
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.common import broadcast_mul, reduce_broadcast
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops

no_gradient(
    "InTopK", "InTopKV2", "LearnedUnigramCandidateSampler", "UniformCandidateSampler", "LogUniformCandidateSampler",
)  # fmt: skip


def _attrs(op: Operation, *names: str) -> dict[str, Any]:
    return {name: op.get_attr(name) for name in names}


_CONV = ("strides", "padding", "explicit_paddings", "use_cudnn_on_gpu", "data_format", "dilations")
_DEPTHWISE = ("strides", "padding", "explicit_paddings", "data_format", "dilations")
_CONV3D = ("strides", "padding", "data_format", "dilations")
_POOL = ("ksize", "strides", "padding", "data_format")


# -- convolution ------------------------------------------------------------------------------------------


@gradient("Conv2D")
def conv2d(op: Operation, grad: Tensor) -> list[Gradient]:
    x, filters = op.inputs
    attrs = _attrs(op, *_CONV)
    sizes = array_ops.shape_n([x, filters])
    return [
        ops.conv2d_backprop_input(sizes[0], filters, grad, **attrs),
        ops.conv2d_backprop_filter(x, sizes[1], grad, **attrs),
    ]


@gradient("Conv2DBackpropInput")
def conv2d_backprop_input(op: Operation, grad: Tensor) -> list[Gradient]:
    _, filters, out = op.inputs
    attrs = _attrs(op, *_CONV)
    return [
        None,
        ops.conv2d_backprop_filter(grad, array_ops.shape(filters), out, **attrs),
        ops.conv2d(grad, filters, **attrs),
    ]


@gradient("Conv2DBackpropFilter")
def conv2d_backprop_filter(op: Operation, grad: Tensor) -> list[Gradient]:
    x, _, out = op.inputs
    attrs = _attrs(op, *_CONV)
    return [
        ops.conv2d_backprop_input(array_ops.shape(x), grad, out, **attrs),
        None,
        ops.conv2d(x, grad, **attrs),
    ]


@gradient("DepthwiseConv2dNative")
def depthwise_conv2d(op: Operation, grad: Tensor) -> list[Gradient]:
    x, filters = op.inputs
    attrs = _attrs(op, *_DEPTHWISE)
    return [
        ops.depthwise_conv2d_native_backprop_input(array_ops.shape(x), filters, grad, **attrs),
        ops.depthwise_conv2d_native_backprop_filter(x, array_ops.shape(filters), grad, **attrs),
    ]


@gradient("DepthwiseConv2dNativeBackpropInput")
def depthwise_backprop_input(op: Operation, grad: Tensor) -> list[Gradient]:
    _, filters, out = op.inputs
    attrs = _attrs(op, *_DEPTHWISE)
    return [
        None,
        ops.depthwise_conv2d_native_backprop_filter(grad, array_ops.shape(filters), out, **attrs),
        ops.depthwise_conv2d_native(grad, filters, **attrs),
    ]


@gradient("DepthwiseConv2dNativeBackpropFilter")
def depthwise_backprop_filter(op: Operation, grad: Tensor) -> list[Gradient]:
    x, _, out = op.inputs
    attrs = _attrs(op, *_DEPTHWISE)
    return [
        ops.depthwise_conv2d_native_backprop_input(array_ops.shape(x), grad, out, **attrs),
        None,
        ops.depthwise_conv2d_native(x, grad, **attrs),
    ]


@gradient("Conv3D")
def conv3d(op: Operation, grad: Tensor) -> list[Gradient]:
    x, filters = op.inputs
    attrs = _attrs(op, *_CONV3D)
    sizes = array_ops.shape_n([x, filters])
    return [
        ops.conv3d_backprop_input_v2(sizes[0], filters, grad, **attrs),
        ops.conv3d_backprop_filter_v2(x, sizes[1], grad, **attrs),
    ]


# -- pooling ----------------------------------------------------------------------------------------------


@gradient("MaxPool")
def max_pool(op: Operation, grad: Tensor) -> Gradient:
    attrs = _attrs(op, *_POOL, "explicit_paddings")
    return ops.max_pool_grad(op.inputs[0], op.outputs[0], grad, **attrs)


@gradient("MaxPoolV2")
def max_pool_v2(op: Operation, grad: Tensor) -> list[Gradient]:
    x, ksize, strides = op.inputs
    attrs = _attrs(op, "padding", "data_format")
    return [ops.max_pool_grad_v2(x, op.outputs[0], grad, ksize, strides, **attrs), None, None]


@gradient("MaxPoolGrad")
def max_pool_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y, _ = op.inputs
    attrs = _attrs(op, *_POOL)
    return [array_ops.zeros_like(x), array_ops.zeros_like(y), ops.max_pool_grad_grad(x, y, grad, **attrs)]


@gradient("MaxPoolWithArgmax", accepts_none=True)
def max_pool_with_argmax(op: Operation, grad: Tensor | None, _: Gradient) -> Gradient:
    if grad is None:
        return None
    attrs = _attrs(op, "ksize", "strides", "padding", "include_batch_in_index")
    return ops.max_pool_grad_with_argmax(op.inputs[0], grad, op.outputs[1], **attrs)


@gradient("AvgPool")
def avg_pool(op: Operation, grad: Tensor) -> Gradient:
    return ops.avg_pool_grad(array_ops.shape(op.inputs[0]), grad, **_attrs(op, *_POOL))


@gradient("AvgPoolGrad")
def avg_pool_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    return [array_ops.stop_gradient(op.inputs[0]), ops.avg_pool(grad, **_attrs(op, *_POOL))]


@gradient("MaxPool3D")
def max_pool3d(op: Operation, grad: Tensor) -> Gradient:
    return ops.max_pool3d_grad(op.inputs[0], op.outputs[0], grad, **_attrs(op, *_POOL))


@gradient("AvgPool3D")
def avg_pool3d(op: Operation, grad: Tensor) -> Gradient:
    return ops.avg_pool3d_grad(array_ops.shape(op.inputs[0]), grad, **_attrs(op, *_POOL))


# -- bias and activations -----------------------------------------------------------------------------------


@gradient("BiasAdd")
def bias_add(op: Operation, grad: Tensor) -> list[Gradient]:
    return [grad, ops.bias_add_grad(grad, data_format=op.get_attr("data_format"))]


@gradient("BiasAddV1")
def bias_add_v1(op: Operation, grad: Tensor) -> list[Gradient]:
    axes = math_ops.range(array_ops.rank(grad) - 1)
    return [grad, math_ops.reduce_sum(grad, axes)]


@gradient("BiasAddGrad")
def bias_add_grad(op: Operation, grad: Tensor) -> Gradient:
    """Repeat the vector over everything but the channels."""
    sizes, channels = array_ops.shape(op.inputs[0]), array_ops.shape(grad)
    if op.get_attr("data_format") == b"NCHW":
        ones = [array_ops.ones_like(sizes[:1]), channels, array_ops.ones_like(sizes[2:])]
        shaped = array_ops.concat(ones, 0)
        times = array_ops.concat([sizes[:1], [1], sizes[2:]], 0)
    else:
        shaped = array_ops.concat([array_ops.ones_like(sizes[:-1]), channels], 0)
        times = array_ops.concat([sizes[:-1], [1]], 0)
    return array_ops.tile(array_ops.reshape(grad, shaped), times)


@gradient("Relu")
def relu(op: Operation, grad: Tensor) -> Gradient:
    return ops.relu_grad(grad, op.outputs[0])


@gradient("ReluGrad")
def relu_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    x = op.inputs[1]
    return [ops.relu_grad(grad, x), array_ops.zeros_like(x)]


@gradient("Relu6")
def relu6(op: Operation, grad: Tensor) -> Gradient:
    return ops.relu6_grad(grad, op.outputs[0])


@gradient("Relu6Grad")
def relu6_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    x = op.inputs[1]
    return [ops.relu6_grad(grad, x), array_ops.zeros_like(x)]


@gradient("LeakyRelu")
def leaky_relu(op: Operation, grad: Tensor) -> Gradient:
    return ops.leaky_relu_grad(grad, op.inputs[0], alpha=op.get_attr("alpha"))


@gradient("LeakyReluGrad")
def leaky_relu_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    x = op.inputs[1]
    return [ops.leaky_relu_grad(grad, x, alpha=op.get_attr("alpha")), array_ops.zeros_like(x)]


@gradient("Elu")
def elu(op: Operation, grad: Tensor) -> Gradient:
    return ops.elu_grad(grad, op.outputs[0])


@gradient("EluGrad", "SeluGrad")
def elu_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    dy, y = op.inputs
    by_gradient = ops.function(op.type)(grad, y)
    negative = y < 0
    scaled = grad * dy
    return [by_gradient, array_ops.where(negative, scaled, array_ops.zeros_like(y))]


@gradient("Selu")
def selu(op: Operation, grad: Tensor) -> Gradient:
    return ops.selu_grad(grad, op.outputs[0])


@gradient("Softplus")
def softplus(op: Operation, grad: Tensor) -> Gradient:
    return grad * ops.sigmoid(op.inputs[0])


@gradient("SoftplusGrad")
def softplus_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    dy, x = op.inputs
    with control_dependencies([grad]):
        by_gradient = ops.softplus_grad(grad, x)
        return [by_gradient, grad * dy / (ops.exp(-x) + 2.0 + ops.exp(x))]


@gradient("Softsign")
def softsign(op: Operation, grad: Tensor) -> Gradient:
    return ops.softsign_grad(grad, op.inputs[0])


# -- softmax and losses -------------------------------------------------------------------------------------


@gradient("Softmax")
def softmax(op: Operation, grad: Tensor) -> Gradient:
    """(grad - sum(grad * softmax)) * softmax, along the last axis."""
    y = op.outputs[0]
    total = math_ops.reduce_sum(grad * y, -1, keepdims=True)
    return (grad - total) * y


@gradient("LogSoftmax")
def log_softmax(op: Operation, grad: Tensor) -> Gradient:
    probabilities = ops.exp(op.outputs[0])
    return grad - math_ops.reduce_sum(grad, -1, keepdims=True) * probabilities


def _cross_entropy(op: Operation, loss: Tensor | None, backprop: Tensor | None) -> Tensor | None:
    """The gradient by the logits; `backprop` is that of the op's second output, which second derivatives use."""
    logits = op.inputs[0]
    total = None if loss is None else broadcast_mul(loss, op.outputs[1])
    if backprop is None:
        return total
    probabilities = nn_ops.softmax(logits)
    mixed = array_ops.squeeze(
        math_ops.matmul(array_ops.expand_dims(backprop, 1), array_ops.expand_dims(probabilities, 2)), 1
    )
    second = (backprop - mixed) * probabilities
    return second if total is None else total + second


@gradient("SoftmaxCrossEntropyWithLogits", accepts_none=True)
def softmax_cross_entropy(op: Operation, loss: Tensor | None, backprop: Tensor | None) -> list[Gradient]:
    """Where one row stands for all, its gradients are added up, which TensorFlow's function leaves out and refuses."""
    by_logits = _cross_entropy(op, loss, backprop)
    by_labels = None if loss is None else broadcast_mul(loss, -nn_ops.log_softmax(op.inputs[0]))
    logits, labels = op.inputs
    shapes = logits.static_shape, labels.static_shape
    if all(shape.is_fully_defined for shape in shapes) and shapes[0].dims != shapes[1].dims:
        return [*reduce_broadcast(logits, labels, by_logits, by_labels)]
    return [by_logits, by_labels]


@gradient("SparseSoftmaxCrossEntropyWithLogits", accepts_none=True)
def sparse_softmax_cross_entropy(op: Operation, loss: Tensor | None, backprop: Tensor | None) -> list[Gradient]:
    return [_cross_entropy(op, loss, backprop), None]


# -- normalization ------------------------------------------------------------------------------------------


@gradient("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", accepts_none=True)
def fused_batch_norm(op: Operation, grad: Tensor | None, *_: Gradient) -> list[Gradient]:
    if grad is None:
        return [None] * 5
    x, scale = op.inputs[:2]
    attrs = _attrs(op, "epsilon", "data_format", "is_training")
    if attrs["is_training"]:
        statistics = list(op.outputs[3:5])
    else:
        statistics = [op.inputs[3], op.inputs[4]]
    reserved = [op.outputs[5]] if op.type == "FusedBatchNormV3" else []
    name = op.type.replace("BatchNorm", "BatchNormGrad")
    # In inference, the moving mean and variance have no gradient here: TensorFlow computes none either.
    dx, dscale, doffset, *_rest = ops.function(name)(grad, x, scale, *statistics, *reserved, **attrs)
    return [dx, dscale, doffset, None, None]


@gradient("LRN")
def lrn(op: Operation, grad: Tensor) -> Gradient:
    attrs = _attrs(op, "depth_radius", "bias", "alpha", "beta")
    return ops.lrn_grad(grad, op.inputs[0], op.outputs[0], **attrs)


# -- images -------------------------------------------------------------------------------------------------


@gradient("ResizeBilinear")
def resize_bilinear(op: Operation, grad: Tensor) -> list[Gradient]:
    attrs = _attrs(op, "align_corners", "half_pixel_centers")
    return [ops.resize_bilinear_grad(grad, op.inputs[0], **attrs), None]


@gradient("ResizeBicubic")
def resize_bicubic(op: Operation, grad: Tensor) -> list[Gradient]:
    attrs = _attrs(op, "align_corners", "half_pixel_centers")
    return [ops.resize_bicubic_grad(grad, op.inputs[0], **attrs), None]


@gradient("ResizeNearestNeighbor")
def resize_nearest(op: Operation, grad: Tensor) -> list[Gradient]:
    attrs = _attrs(op, "align_corners", "half_pixel_centers")
    image = op.inputs[0]
    height_width = image.static_shape.slice(1, 3)
    sizes = height_width.as_list() if height_width.is_fully_defined else array_ops.shape(image)[1:3]
    return [ops.resize_nearest_neighbor_grad(grad, sizes, **attrs), None]
