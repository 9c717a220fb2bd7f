"""Gradients of gradients of neural network ops, and of the rarer ones: dilation, fractional pools, CTC, LSTM blocks."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.common import broadcast_mul
from toolkit.client.gradients.registry import Gradient, gradient
from toolkit.client.math import math_ops
from toolkit.graph import dtypes


def _attrs(op: Operation, *names: str) -> dict[str, Any]:
    return {name: op.get_attr(name) for name in names}


_CONV3D = ("strides", "padding", "data_format", "dilations")
_POOL = ("ksize", "strides", "padding", "data_format")
_DILATION = ("strides", "rates", "padding")


# -- pools and convolutions, once more --------------------------------------------------------------------


@gradient("Conv3DBackpropInputV2")
def conv3d_backprop_input(op: Operation, grad: Tensor) -> list[Gradient]:
    _, filters, out = op.inputs
    attrs = _attrs(op, *_CONV3D)
    by_filter = ops.conv3d_backprop_filter_v2(grad, array_ops.shape(filters), out, **attrs)
    return [None, by_filter, ops.conv3d(grad, filters, **attrs)]


@gradient("Conv3DBackpropFilterV2")
def conv3d_backprop_filter(op: Operation, grad: Tensor) -> list[Gradient]:
    x, _, out = op.inputs
    attrs = _attrs(op, *_CONV3D)
    by_x = ops.conv3d_backprop_input_v2(array_ops.shape(x), grad, out, **attrs)
    return [by_x, None, ops.conv3d(x, grad, **attrs)]


@gradient("AvgPool3DGrad")
def avg_pool3d_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    return [None, ops.avg_pool3d(grad, **_attrs(op, *_POOL))]


#: the gradient of a max pool's gradient by what came back, which only picks elements, is the other of the two
_PICKERS = {
    "MaxPool3DGrad": "MaxPool3DGradGrad", "MaxPool3DGradGrad": "MaxPool3DGrad", "MaxPoolGradGrad": "MaxPoolGrad",
}  # fmt: skip


@gradient(*_PICKERS)
def max_pool_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y, _ = op.inputs
    picked = ops.function(_PICKERS[op.type])(x, y, grad, **_attrs(op, *_POOL))
    return [array_ops.zeros_like(x), array_ops.zeros_like(y), picked]


@gradient("MaxPoolGradV2")
def max_pool_grad_v2(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y, _, ksize, strides = op.inputs
    picked = ops.max_pool_grad_grad_v2(x, y, grad, ksize, strides, **_attrs(op, "padding", "data_format"))
    return [array_ops.zeros_like(x), array_ops.zeros_like(y), picked, None, None]


@gradient("FractionalAvgPool")
def fractional_avg_pool(op: Operation, grad: Tensor, *_: Gradient) -> Gradient:
    sizes = array_ops.shape(op.inputs[0], out_type=dtypes.int64)
    return ops.fractional_avg_pool_grad(sizes, grad, op.outputs[1], op.outputs[2], **_attrs(op, "overlapping"))


@gradient("FractionalMaxPool")
def fractional_max_pool(op: Operation, grad: Tensor, *_: Gradient) -> Gradient:
    y, rows, columns = op.outputs
    return ops.fractional_max_pool_grad(op.inputs[0], y, grad, rows, columns, **_attrs(op, "overlapping"))


@gradient("Dilation2D")
def dilation2d(op: Operation, grad: Tensor) -> list[Gradient]:
    x, filters = op.inputs
    attrs = _attrs(op, *_DILATION)
    return [
        ops.dilation2d_backprop_input(x, filters, grad, **attrs),
        ops.dilation2d_backprop_filter(x, filters, grad, **attrs),
    ]


# -- normalization ----------------------------------------------------------------------------------------


@gradient("BatchNormWithGlobalNormalization")
def global_batch_norm(op: Operation, grad: Tensor) -> list[Gradient]:
    x, mean, variance, _, gamma = op.inputs
    attrs = _attrs(op, "variance_epsilon", "scale_after_normalization")
    return list(ops.batch_norm_with_global_normalization_grad(x, mean, variance, gamma, grad, **attrs))


@gradient("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_grad(op: Operation, by_dx: Tensor, by_dscale: Tensor, by_doffset: Tensor, *_: Gradient):
    """The first gradient written out in plain ops, and its gradient taken."""
    from toolkit.client.gradients.backprop import gradients

    dy, x, scale, mean, variance = op.inputs[:5]
    results = _batch_norm_grad(op, dy, x, scale, mean, variance)
    # what they depend on among themselves is not this op's business
    inputs = [dy, x, scale]
    found = gradients(results, inputs, [by_dx, by_dscale, by_doffset], stop_gradients=inputs)
    return [*found, *[None] * (len(op.inputs) - 3)]


def _batch_norm_grad(
    op: Operation, dy: Tensor, x: Tensor, scale: Tensor, mean: Tensor, variance: Tensor
) -> list[Tensor]:
    """What FusedBatchNormGrad computes: the gradients of x, scale and offset."""
    channels_first = op.get_attr("data_format").startswith(b"NC")
    rank = x.static_shape.rank or 4
    axes = [0, *range(2, rank)] if channels_first else list(range(rank - 1))
    wide = [1, -1] + [1] * (rank - 2) if channels_first else [1] * (rank - 1) + [-1]
    exact = scale.dtype.base
    y32, x32 = math_ops.cast(dy, exact), math_ops.cast(x, exact)
    epsilon = constant(op.get_attr("epsilon"), exact)
    doffset = math_ops.reduce_sum(y32, axes)
    if op.get_attr("is_training"):
        mean = math_ops.reduce_mean(x32, axes, keepdims=True)
        variance = math_ops.reduce_mean(ops.squared_difference(x32, array_ops.stop_gradient(mean)), axes, keepdims=True)
        inverse = ops.rsqrt(variance + epsilon)
        normal = (x32 - mean) * inverse
        dscale = math_ops.reduce_sum(y32 * normal, axes)
        inner = y32 - math_ops.reduce_mean(y32, axes, keepdims=True)
        inner = inner - normal * math_ops.reduce_mean(y32 * normal, axes, keepdims=True)
    else:
        inverse = ops.rsqrt(array_ops.reshape(variance, wide) + epsilon)
        dscale = math_ops.reduce_sum(y32 * (x32 - array_ops.reshape(mean, wide)) * inverse, axes)
        inner = y32
    dx = array_ops.reshape(scale, wide) * inverse * inner
    return [math_ops.cast(dx, x.dtype.base), dscale, doffset]


# -- sequences --------------------------------------------------------------------------------------------


@gradient("CTCLoss", "CTCLossV2")
def ctc_loss(op: Operation, grad: Tensor, _: Gradient) -> list[Gradient]:
    """The op computes the gradient with the loss."""
    message = "CTCLoss has no second derivative"
    known = ops.prevent_gradient(op.outputs[1], message=message)
    return [broadcast_mul(grad, known), None, None, None]


@gradient("BlockLSTM", "BlockLSTMV2")
def block_lstm(op: Operation, *grads: Tensor) -> list[Gradient]:
    """Only the cell states and the outputs have gradients; the gates are there for this."""
    name = "BlockLSTMGrad" + op.type.removeprefix("BlockLSTM")
    found = ops.function(name)(*op.inputs, *op.outputs, grads[1], grads[6], use_peephole=op.get_attr("use_peephole"))
    return [None, *found]


@gradient("LSTMBlockCell")
def lstm_block_cell(op: Operation, *grads: Tensor) -> list[Gradient]:
    """As BlockLSTM's, for one step; the op's own gradient is that of the gates."""
    x, c, h, kernel = op.inputs[:4]
    width = array_ops.shape(x)[1]
    found = ops.lstm_block_cell_grad(
        *op.inputs, *op.outputs[:6], grads[1], grads[6], use_peephole=op.get_attr("use_peephole")
    )
    c_grad, gates, wci, wcf, wco = found
    joined = math_ops.matmul(gates, kernel, transpose_b=True)
    kernel_grad = math_ops.matmul(array_ops.concat([x, h], 1), gates, transpose_a=True)
    x_grad, h_grad = joined[:, :width], joined[:, width:]
    for one, other in ((x_grad, x), (h_grad, h), (c_grad, c), (kernel_grad, kernel)):
        one.set_shape(other.static_shape)
    return [x_grad, c_grad, h_grad, kernel_grad, wci, wcf, wco, ops.bias_add_grad(gates)]


@gradient("GRUBlockCell")
def gru_block_cell(op: Operation, *grads: Tensor) -> list[Gradient]:
    """The op's own gradient is that of inputs, state and gates."""
    x, h = op.inputs[:2]
    reset, update, candidate = op.outputs[:3]
    x_grad, h_grad, candidate_grad, gates = ops.gru_block_cell_grad(*op.inputs, reset, update, candidate, grads[3])
    seen = array_ops.concat([x, h], 1)
    kept = array_ops.concat([x, h * reset], 1)
    return [
        x_grad, h_grad, math_ops.matmul(seen, gates, transpose_a=True),
        math_ops.matmul(kept, candidate_grad, transpose_a=True), ops.bias_add_grad(gates),
        ops.bias_add_grad(candidate_grad),
    ]  # fmt: skip
