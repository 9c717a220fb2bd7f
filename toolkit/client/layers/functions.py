"""Layers: functions that make their variables by `get_variable` and apply them.

Variables are called `name/kernel`, `name/bias`, `name/gamma`, ... and operations `name/Conv2D`, `name/BiasAdd`,
as TensorFlow 1's layers call them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import colocate_with, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow import control_flow
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.variables import initializers
from toolkit.client.variables.store import get_variable, variable_scope
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys

Activation = Callable[[Tensor], Tensor]
Regularizer = Callable[[Tensor], Tensor]


def l1_regularizer(scale: float) -> Regularizer:
    """scale * sum(|w|)."""
    return lambda w: math_ops.multiply(math_ops.reduce_sum(ops.abs(w)), scale, name="l1_regularizer")


def l2_regularizer(scale: float) -> Regularizer:
    """scale * sum(w ** 2) / 2."""
    return lambda w: math_ops.multiply(nn_ops.l2_loss(w), scale, name="l2_regularizer")


def l1_l2_regularizer(l1: float, l2: float) -> Regularizer:
    """Both; a scale of 0 leaves its term out."""
    if not l1:
        return l2_regularizer(l2)
    if not l2:
        return l1_regularizer(l1)
    return lambda w: math_ops.add(l1_regularizer(l1)(w), l2_regularizer(l2)(w), name="l1_l2_regularizer")


def _last_size(x: Tensor, what: str) -> int:
    size = x.static_shape[-1] if x.static_shape.rank else None
    if size is None:
        raise GraphError(f"{what} needs the size of the last dimension of '{x.name}', whose shape is {x.static_shape}")
    return size


def dense(
    x: TensorLike,
    units: int,
    activation: Activation | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Regularizer | None = None,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """activation(x @ kernel + bias) over the last dimension; `x` has two dimensions or more."""
    with variable_scope(name, "dense", [x], reuse=reuse):
        x = convert_to_tensor(x)
        kernel = get_variable(
            "kernel", [_last_size(x, "dense"), units], x.dtype.base, kernel_initializer, kernel_regularizer
        )
        if x.static_shape.rank is None or x.static_shape.rank <= 2:
            y = math_ops.matmul(x, kernel)
        else:
            flat = array_ops.reshape(x, [-1, _last_size(x, "dense")])
            sizes = array_ops.concat([array_ops.shape(x)[:-1], [units]], 0)
            y = array_ops.reshape(math_ops.matmul(flat, kernel), sizes)
            y.set_shape([*x.static_shape.slice(0, -1), units])
        return _finish(y, units, use_bias, bias_initializer, activation, "NHWC")


def _finish(
    y: Tensor, size: int, use_bias: bool, bias_initializer: Any, activation: Activation | None, data_format: str
) -> Tensor:
    if use_bias:
        bias = get_variable("bias", [size], y.dtype.base, bias_initializer or initializers.Zeros())
        y = nn_ops.bias_add(y, bias, data_format)
    return y if activation is None else activation(y)


def conv2d(
    x: TensorLike,
    filters: int,
    kernel_size: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    padding: nn_ops.Padding = "valid",
    data_format: str = "NHWC",
    dilation_rate: int | Sequence[int] = 1,
    activation: Activation | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Regularizer | None = None,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """activation(conv2d(x, kernel) + bias)."""
    with variable_scope(name, "conv2d", [x], reuse=reuse):
        x = convert_to_tensor(x)
        height, width = _pair(kernel_size)
        size = [height, width, nn_ops.channels(x, data_format), filters]
        kernel = get_variable("kernel", size, x.dtype.base, kernel_initializer, kernel_regularizer)
        y = nn_ops.conv2d(x, kernel, strides, padding, data_format, dilation_rate)
        return _finish(y, filters, use_bias, bias_initializer, activation, data_format)


def depthwise_conv2d(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    padding: nn_ops.Padding = "valid",
    depth_multiplier: int = 1,
    data_format: str = "NHWC",
    dilation_rate: int | Sequence[int] = 1,
    activation: Activation | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Regularizer | None = None,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """Each channel convolved with `depth_multiplier` kernels of its own."""
    with variable_scope(name, "depthwise_conv2d", [x], reuse=reuse):
        x = convert_to_tensor(x)
        height, width = _pair(kernel_size)
        channels = nn_ops.channels(x, data_format)
        size = [height, width, channels, depth_multiplier]
        kernel = get_variable("depthwise_kernel", size, x.dtype.base, kernel_initializer, kernel_regularizer)
        y = nn_ops.depthwise_conv2d(x, kernel, strides, padding, data_format, dilation_rate)
        return _finish(y, channels * depth_multiplier, use_bias, bias_initializer, activation, data_format)


def _pair(size: int | Sequence[int]) -> tuple[int, int]:
    if isinstance(size, int):
        return size, size
    height, width = size
    return height, width


def flatten(x: TensorLike, name: str | None = None) -> Tensor:
    """All dimensions but the first as one."""
    with name_scope(name, "flatten", [x]) as scope:
        x = convert_to_tensor(x)
        tail = x.static_shape.slice(1)
        if tail.is_fully_defined:
            return array_ops.reshape(x, [-1, math.prod(tail.as_list())], name=scope)
        batch = array_ops.shape(x)[0]
        return array_ops.reshape(x, array_ops.stack([batch, -1]), name=scope)


def batch_normalization(
    x: TensorLike,
    training: bool | Tensor = False,
    momentum: float = 0.99,
    epsilon: float = 0.001,
    center: bool = True,
    scale: bool = True,
    data_format: str = "NHWC",
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """Batch normalization over the channels (Ioffe and Szegedy, arXiv 1502.03167), by FusedBatchNormV3.

    In training the batch's statistics are used, and operations that move the kept ones towards them are added to
    UPDATE_OPS; let the training operation depend on these. `training` may be a boolean tensor.

    `x` has 2 or 4 dimensions.

    Raises:
        GraphError: another rank.
    """
    with variable_scope(name, "batch_normalization", [x], reuse=reuse):
        x = convert_to_tensor(x)
        if x.static_shape.rank not in (2, 4):
            raise GraphError(f"batch normalization takes 2 or 4 dimensions; '{x.name}' has shape {x.static_shape}")
        channels = nn_ops.channels(x, data_format if x.static_shape.rank == 4 else "NHWC")

        def variable(name: str, initializer: Any, trainable: bool, used: bool = True) -> Any:
            if not used:
                return initializer([channels], dtypes.float32)
            return get_variable(name, [channels], dtypes.float32, initializer, trainable=trainable)

        gamma = variable("gamma", initializers.Ones(), True, scale)
        beta = variable("beta", initializers.Zeros(), True, center)
        moving_mean = variable("moving_mean", initializers.Zeros(), False)
        moving_variance = variable("moving_variance", initializers.Ones(), False)
        wide = x if x.static_shape.rank == 4 else array_ops.reshape(x, [-1, 1, 1, channels])

        def train() -> list[Tensor]:
            return list(
                nn_ops.fused_batch_norm(wide, gamma, beta, epsilon=epsilon, data_format=data_format, is_training=True)
            )

        def infer() -> list[Tensor]:
            return list(
                nn_ops.fused_batch_norm(
                    wide, gamma, beta, moving_mean, moving_variance, epsilon, data_format, is_training=False
                )
            )

        if isinstance(training, bool):
            y, mean, variance = train() if training else infer()
        else:
            y, mean, variance = control_flow.cond(training, train, infer)
        if training is not False:
            rate: Any = 1.0 - momentum
            if isinstance(training, Tensor):
                rate = array_ops.where_v2(training, 1.0 - momentum, 0.0)
            for kept, value in ((moving_mean, mean), (moving_variance, variance)):
                with name_scope("AssignMovingAvg"), colocate_with(kept):
                    step = (kept.to_tensor() - value) * rate
                    update = kept.assign_sub(step)
                get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, getattr(update, "op", update))
        return y if x.static_shape.rank == 4 else array_ops.reshape(y, array_ops.shape(x))
