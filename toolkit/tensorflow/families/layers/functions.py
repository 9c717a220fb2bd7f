# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.layers: functions that make a layer and apply it at once."""

from __future__ import annotations

from typing import Any

from toolkit.client import layers
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.variables import initializers

_ZEROS = initializers.Zeros()
_ONES = initializers.Ones()


def _applied(made: Any, inputs: Any, **arguments: Any) -> Tensor:
    return made(convert_to_tensor(inputs), **arguments)


def average_pooling1d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: Any = "valid",
    data_format: Any = "channels_last",
    name: Any = None,
) -> Tensor:
    made = layers.AveragePooling1D(
        pool_size=pool_size, strides=strides, padding=padding, data_format=data_format, name=name
    )
    return _applied(made, inputs)


def average_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: Any = "valid",
    data_format: Any = "channels_last",
    name: Any = None,
) -> Tensor:
    made = layers.AveragePooling2D(
        pool_size=pool_size, strides=strides, padding=padding, data_format=data_format, name=name
    )
    return _applied(made, inputs)


def average_pooling3d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: Any = "valid",
    data_format: Any = "channels_last",
    name: Any = None,
) -> Tensor:
    made = layers.AveragePooling3D(
        pool_size=pool_size, strides=strides, padding=padding, data_format=data_format, name=name
    )
    return _applied(made, inputs)


def batch_normalization(
    inputs: Any,
    axis: Any = -1,
    momentum: Any = 0.99,
    epsilon: Any = 0.001,
    center: Any = True,
    scale: Any = True,
    beta_initializer: Any = _ZEROS,
    gamma_initializer: Any = _ONES,
    moving_mean_initializer: Any = _ZEROS,
    moving_variance_initializer: Any = _ONES,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: Any = True,
    name: Any = None,
    reuse: Any = None,
    renorm: Any = False,
    renorm_clipping: Any = None,
    renorm_momentum: Any = 0.99,
    fused: Any = None,
    virtual_batch_size: Any = None,
    adjustment: Any = None,
) -> Tensor:
    made = layers.BatchNormalization(
        axis=axis,
        momentum=momentum,
        epsilon=epsilon,
        center=center,
        scale=scale,
        beta_initializer=beta_initializer,
        gamma_initializer=gamma_initializer,
        moving_mean_initializer=moving_mean_initializer,
        moving_variance_initializer=moving_variance_initializer,
        beta_regularizer=beta_regularizer,
        gamma_regularizer=gamma_regularizer,
        beta_constraint=beta_constraint,
        gamma_constraint=gamma_constraint,
        trainable=trainable,
        name=name,
        renorm=renorm,
        renorm_clipping=renorm_clipping,
        renorm_momentum=renorm_momentum,
        fused=fused,
        virtual_batch_size=virtual_batch_size,
        adjustment=adjustment,
        _reuse=reuse,
        _scope=name,
    )
    return _applied(made, inputs, training=training)


def conv1d(
    inputs: Any,
    filters: Any,
    kernel_size: Any,
    strides: Any = 1,
    padding: Any = "valid",
    data_format: Any = "channels_last",
    dilation_rate: Any = 1,
    activation: Any = None,
    use_bias: Any = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: Any = True,
    name: Any = None,
    reuse: Any = None,
) -> Tensor:
    made = layers.Conv1D(
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilation_rate=dilation_rate,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=kernel_initializer,
        bias_initializer=bias_initializer,
        kernel_regularizer=kernel_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        kernel_constraint=kernel_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _reuse=reuse,
        _scope=name,
    )
    return _applied(made, inputs)


def conv2d(
    inputs: Any,
    filters: Any,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: Any = "valid",
    data_format: Any = "channels_last",
    dilation_rate: Any = (1, 1),
    activation: Any = None,
    use_bias: Any = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: Any = True,
    name: Any = None,
    reuse: Any = None,
) -> Tensor:
    made = layers.Conv2D(
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilation_rate=dilation_rate,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=kernel_initializer,
        bias_initializer=bias_initializer,
        kernel_regularizer=kernel_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        kernel_constraint=kernel_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _reuse=reuse,
        _scope=name,
    )
    return _applied(made, inputs)


def conv2d_transpose(
    inputs: Any,
    filters: Any,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: Any = "valid",
    data_format: Any = "channels_last",
    activation: Any = None,
    use_bias: Any = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: Any = True,
    name: Any = None,
    reuse: Any = None,
) -> Tensor:
    made = layers.Conv2DTranspose(
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_format=data_format,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=kernel_initializer,
        bias_initializer=bias_initializer,
        kernel_regularizer=kernel_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        kernel_constraint=kernel_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _reuse=reuse,
        _scope=name,
    )
    return _applied(made, inputs)


def conv3d(
    inputs: Any,
    filters: Any,
    kernel_size: Any,
    strides: Any = (1, 1, 1),
    padding: Any = "valid",
    data_format: Any = "channels_last",
    dilation_rate: Any = (1, 1, 1),
    activation: Any = None,
    use_bias: Any = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: Any = True,
    name: Any = None,
    reuse: Any = None,
) -> Tensor:
    made = layers.Conv3D(
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilation_rate=dilation_rate,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=kernel_initializer,
        bias_initializer=bias_initializer,
        kernel_regularizer=kernel_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        kernel_constraint=kernel_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _reuse=reuse,
        _scope=name,
    )
    return _applied(made, inputs)


def conv3d_transpose(
    inputs: Any,
    filters: Any,
    kernel_size: Any,
    strides: Any = (1, 1, 1),
    padding: Any = "valid",
    data_format: Any = "channels_last",
    activation: Any = None,
    use_bias: Any = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: Any = True,
    name: Any = None,
    reuse: Any = None,
) -> Tensor:
    made = layers.Conv3DTranspose(
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_format=data_format,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=kernel_initializer,
        bias_initializer=bias_initializer,
        kernel_regularizer=kernel_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        kernel_constraint=kernel_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _reuse=reuse,
        _scope=name,
    )
    return _applied(made, inputs)


def dense(
    inputs: Any,
    units: Any,
    activation: Any = None,
    use_bias: Any = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: Any = True,
    name: Any = None,
    reuse: Any = None,
) -> Tensor:
    made = layers.Dense(
        units=units,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=kernel_initializer,
        bias_initializer=bias_initializer,
        kernel_regularizer=kernel_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        kernel_constraint=kernel_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _reuse=reuse,
        _scope=name,
    )
    return _applied(made, inputs)


def dropout(
    inputs: Any, rate: Any = 0.5, noise_shape: Any = None, seed: Any = None, training: Any = False, name: Any = None
) -> Tensor:
    made = layers.Dropout(rate=rate, noise_shape=noise_shape, seed=seed, name=name)
    return _applied(made, inputs, training=training)


def flatten(inputs: Any, name: Any = None, data_format: Any = "channels_last") -> Tensor:
    made = layers.Flatten(name=name, data_format=data_format)
    return _applied(made, inputs)


def max_pooling1d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: Any = "valid",
    data_format: Any = "channels_last",
    name: Any = None,
) -> Tensor:
    made = layers.MaxPooling1D(
        pool_size=pool_size, strides=strides, padding=padding, data_format=data_format, name=name
    )
    return _applied(made, inputs)


def max_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: Any = "valid",
    data_format: Any = "channels_last",
    name: Any = None,
) -> Tensor:
    made = layers.MaxPooling2D(
        pool_size=pool_size, strides=strides, padding=padding, data_format=data_format, name=name
    )
    return _applied(made, inputs)


def max_pooling3d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: Any = "valid",
    data_format: Any = "channels_last",
    name: Any = None,
) -> Tensor:
    made = layers.MaxPooling3D(
        pool_size=pool_size, strides=strides, padding=padding, data_format=data_format, name=name
    )
    return _applied(made, inputs)


def separable_conv1d(
    inputs: Any,
    filters: Any,
    kernel_size: Any,
    strides: Any = 1,
    padding: Any = "valid",
    data_format: Any = "channels_last",
    dilation_rate: Any = 1,
    depth_multiplier: Any = 1,
    activation: Any = None,
    use_bias: Any = True,
    depthwise_initializer: Any = None,
    pointwise_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    depthwise_regularizer: Any = None,
    pointwise_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    depthwise_constraint: Any = None,
    pointwise_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: Any = True,
    name: Any = None,
    reuse: Any = None,
) -> Tensor:
    made = layers.SeparableConv1D(
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilation_rate=dilation_rate,
        depth_multiplier=depth_multiplier,
        activation=activation,
        use_bias=use_bias,
        depthwise_initializer=depthwise_initializer,
        pointwise_initializer=pointwise_initializer,
        bias_initializer=bias_initializer,
        depthwise_regularizer=depthwise_regularizer,
        pointwise_regularizer=pointwise_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        depthwise_constraint=depthwise_constraint,
        pointwise_constraint=pointwise_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _reuse=reuse,
        _scope=name,
    )
    return _applied(made, inputs)


def separable_conv2d(
    inputs: Any,
    filters: Any,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: Any = "valid",
    data_format: Any = "channels_last",
    dilation_rate: Any = (1, 1),
    depth_multiplier: Any = 1,
    activation: Any = None,
    use_bias: Any = True,
    depthwise_initializer: Any = None,
    pointwise_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    depthwise_regularizer: Any = None,
    pointwise_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    depthwise_constraint: Any = None,
    pointwise_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: Any = True,
    name: Any = None,
    reuse: Any = None,
) -> Tensor:
    made = layers.SeparableConv2D(
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilation_rate=dilation_rate,
        depth_multiplier=depth_multiplier,
        activation=activation,
        use_bias=use_bias,
        depthwise_initializer=depthwise_initializer,
        pointwise_initializer=pointwise_initializer,
        bias_initializer=bias_initializer,
        depthwise_regularizer=depthwise_regularizer,
        pointwise_regularizer=pointwise_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        depthwise_constraint=depthwise_constraint,
        pointwise_constraint=pointwise_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _reuse=reuse,
        _scope=name,
    )
    return _applied(made, inputs)
