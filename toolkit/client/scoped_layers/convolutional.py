"""Convolutions, transposed and separable ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client.argument_scopes import add_arg_scope
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.layers import convolutional
from toolkit.client.nn import convolutions, nn_ops
from toolkit.client.scoped_layers import common
from toolkit.client.scoped_layers.common import WEIGHT_NAMES, XAVIER, ZEROS
from toolkit.client.variables.model_variables import model_variable
from toolkit.client.variables.store import variable_scope

_LAYOUTS = (None, "NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW")
_FLAT = ("NCHW", "NHWC")
_DEEP = ("NCDHW", "NDHWC")
_CLASSES = {3: convolutional.Conv1D, 4: convolutional.Conv2D, 5: convolutional.Conv3D}
_SEPARABLE_NAMES = {
    "bias": "biases", "depthwise_kernel": "depthwise_weights", "pointwise_kernel": "pointwise_weights"
}  # fmt: skip


def _finished(
    outputs: Tensor,
    normalizer_fn: Any,
    normalizer_params: Any,
    activation_fn: Any,
    outputs_collections: Any,
    alias: str,
) -> Tensor:
    """Normalized, activated, collected."""
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    return _activated(outputs, activation_fn, outputs_collections, alias)


def _activated(outputs: Tensor, activation_fn: Any, outputs_collections: Any, alias: str) -> Tensor:
    if activation_fn is not None:
        outputs = activation_fn(outputs)
    return common.collected(outputs_collections, alias, outputs)


@add_arg_scope
def convolution(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME", data_format: Any = None,
    rate: Any = 1, activation_fn: Any = nn_ops.relu, normalizer_fn: Any = None, normalizer_params: Any = None,
    weights_initializer: Any = XAVIER, weights_regularizer: Any = None, biases_initializer: Any = ZEROS,
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None, conv_dims: int | None = None,
) -> Tensor:  # fmt: skip
    """A convolution over one to three dimensions, with a bias or a normalizer, and an activation.

    Args:
        inputs: [batch, width, channels], [batch, height, width, channels], [batch, depth, height, width, channels],
            or channels second, as `data_format` says.
        rate: above 1, windows have holes.
        normalizer_fn: in place of the bias: a function of the outputs and of `normalizer_params`.
        conv_dims: how many dimensions there are to be.

    Raises:
        ValueError: the inputs have another rank, or the layout is none.
    """
    layout = common.keras_layout(data_format, _LAYOUTS)
    with variable_scope(
        scope, "Conv", [inputs], reuse=reuse, custom_getter=common.variable_getter(WEIGHT_NAMES)
    ) as opened:
        inputs = convert_to_tensor(inputs)
        rank = inputs.static_shape.rank
        if conv_dims is not None and rank != conv_dims + 2:
            raise ValueError(
                f"a convolution over {conv_dims} dimensions takes {conv_dims + 2}, but the inputs have {rank}"
            )
        if rank not in _CLASSES:
            raise ValueError(f"convolutions take inputs of 3 to 5 dimensions, not of {rank}")
        layer = _CLASSES[rank](
            num_outputs, kernel_size, stride, padding, layout, rate, None,
            bool(not normalizer_fn and biases_initializer), weights_initializer, biases_initializer,
            weights_regularizer, biases_regularizer, trainable=trainable, name=opened.name, dtype=inputs.dtype.base,
            _scope=opened, _reuse=reuse,
        )  # fmt: skip
        outputs = layer.apply(inputs)
        common.add_to_collections(layer.kernel, variables_collections, "weights")
        if layer.use_bias:
            common.add_to_collections(layer.bias, variables_collections, "biases")
        return _finished(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections, opened.name)


def _rank(inputs: Any) -> int | None:
    shape = inputs.static_shape if isinstance(inputs, Tensor) else None
    return None if shape is None else shape.rank


@add_arg_scope
def convolution1d(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME", data_format: Any = None,
    rate: Any = 1, activation_fn: Any = nn_ops.relu, normalizer_fn: Any = None, normalizer_params: Any = None,
    weights_initializer: Any = XAVIER, weights_regularizer: Any = None, biases_initializer: Any = ZEROS,
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """A `convolution` over one dimension."""
    return convolution(
        inputs, num_outputs, kernel_size, stride, padding, data_format, rate, activation_fn, normalizer_fn,
        normalizer_params, weights_initializer, weights_regularizer, biases_initializer, biases_regularizer, reuse,
        variables_collections, outputs_collections, trainable, scope, conv_dims=1,
    )  # fmt: skip


@add_arg_scope
def convolution2d(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME", data_format: Any = None,
    rate: Any = 1, activation_fn: Any = nn_ops.relu, normalizer_fn: Any = None, normalizer_params: Any = None,
    weights_initializer: Any = XAVIER, weights_regularizer: Any = None, biases_initializer: Any = ZEROS,
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """A `convolution` over two dimensions; over one where inputs have three, as releases before 1.10 did it."""
    return convolution(
        inputs, num_outputs, kernel_size, stride, padding, data_format, rate, activation_fn, normalizer_fn,
        normalizer_params, weights_initializer, weights_regularizer, biases_initializer, biases_regularizer, reuse,
        variables_collections, outputs_collections, trainable, scope, conv_dims=1 if _rank(inputs) == 3 else 2,
    )  # fmt: skip


@add_arg_scope
def convolution3d(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME", data_format: Any = None,
    rate: Any = 1, activation_fn: Any = nn_ops.relu, normalizer_fn: Any = None, normalizer_params: Any = None,
    weights_initializer: Any = XAVIER, weights_regularizer: Any = None, biases_initializer: Any = ZEROS,
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """A `convolution` over three dimensions."""
    return convolution(
        inputs, num_outputs, kernel_size, stride, padding, data_format, rate, activation_fn, normalizer_fn,
        normalizer_params, weights_initializer, weights_regularizer, biases_initializer, biases_regularizer, reuse,
        variables_collections, outputs_collections, trainable, scope, conv_dims=3,
    )  # fmt: skip


def _transposed(
    kind: Callable[..., Any], default: str, inputs: Any, layout: str, sizes: tuple[Any, ...], activation_fn: Any,
    normalizer: tuple[Any, Any], initializers: tuple[Any, Any], regularizers: tuple[Any, Any], reuse: Any,
    collections: tuple[Any, Any], trainable: bool, scope: Any,
) -> Tensor:  # fmt: skip
    """A layer that grows.

    Args:
        sizes: filters, kernel_size, stride, padding.
        normalizer: the function and its arguments.
        initializers, regularizers: of weights and biases.
        collections: of variables and of outputs.
    """
    with variable_scope(
        scope, default, [inputs], reuse=reuse, custom_getter=common.variable_getter(WEIGHT_NAMES)
    ) as opened:
        inputs = convert_to_tensor(inputs)
        layer = kind(
            *sizes, layout, None, bool(not normalizer[0] and initializers[1]), *initializers, *regularizers,
            trainable=trainable, name=opened.name, dtype=inputs.dtype.base, _scope=opened, _reuse=reuse,
        )  # fmt: skip
        outputs: Tensor = layer.apply(inputs)
        common.add_to_collections(layer.kernel, collections[0], "weights")
        if layer.bias is not None:
            common.add_to_collections(layer.bias, collections[0], "biases")
        return _finished(outputs, normalizer[0], normalizer[1], activation_fn, collections[1], opened.name)


@add_arg_scope
def convolution2d_transpose(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME", data_format: Any = "NHWC",
    activation_fn: Any = nn_ops.relu, normalizer_fn: Any = None, normalizer_params: Any = None,
    weights_initializer: Any = XAVIER, weights_regularizer: Any = None, biases_initializer: Any = ZEROS,
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """A transposed convolution over [batch, height, width, channels]; other arguments as `convolution`.

    Raises:
        ValueError: the layout is none.
    """
    return _transposed(
        convolutional.Conv2DTranspose, "Conv2d_transpose", inputs, common.keras_layout(data_format, _FLAT),
        (num_outputs, kernel_size, stride, padding), activation_fn, (normalizer_fn, normalizer_params),
        (weights_initializer, biases_initializer), (weights_regularizer, biases_regularizer), reuse,
        (variables_collections, outputs_collections), trainable, scope,
    )  # fmt: skip


@add_arg_scope
def convolution3d_transpose(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME",
    data_format: Any = "NDHWC", activation_fn: Any = nn_ops.relu, normalizer_fn: Any = None,
    normalizer_params: Any = None, weights_initializer: Any = XAVIER, weights_regularizer: Any = None,
    biases_initializer: Any = ZEROS, biases_regularizer: Any = None, reuse: Any = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """A transposed convolution over [batch, depth, height, width, channels]; other arguments as `convolution`.

    Raises:
        ValueError: the layout is none.
    """
    return _transposed(
        convolutional.Conv3DTranspose, "Conv3d_transpose", inputs, common.keras_layout(data_format, _DEEP),
        (num_outputs, kernel_size, stride, padding), activation_fn, (normalizer_fn, normalizer_params),
        (weights_initializer, biases_initializer), (weights_regularizer, biases_regularizer), reuse,
        (variables_collections, outputs_collections), trainable, scope,
    )  # fmt: skip


@add_arg_scope
def convolution2d_in_plane(
    inputs: Any, kernel_size: Any, stride: Any = 1, padding: str = "SAME", activation_fn: Any = nn_ops.relu,
    normalizer_fn: Any = None, normalizer_params: Any = None, weights_initializer: Any = XAVIER,
    weights_regularizer: Any = None, biases_initializer: Any = ZEROS, biases_regularizer: Any = None,
    reuse: Any = None, variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True,
    scope: Any = None,
) -> Tensor:  # fmt: skip
    """The same convolution of each channel on its own, over [batch, height, width, channels]."""
    with variable_scope(scope, "ConvInPlane", [inputs], reuse=reuse) as opened:
        inputs = convert_to_tensor(inputs)
        channels = common.known_size(inputs, -1, min_rank=4)
        weights = model_variable(
            "weights", [*common.two_element_tuple(kernel_size), 1, 1], inputs.dtype.base, weights_initializer,
            weights_regularizer, trainable, common.collections_of(variables_collections, "weights"),
        )  # fmt: skip
        filters = array_ops.tile(weights, [1, 1, channels, 1])
        outputs = convolutions.depthwise_conv2d(inputs, filters, [1, *common.two_element_tuple(stride), 1], padding)
        if normalizer_fn is None and biases_initializer is not None:
            biases = model_variable(
                "biases", [channels], inputs.dtype.base, biases_initializer, biases_regularizer, trainable,
                common.collections_of(variables_collections, "biases"),
            )  # fmt: skip
            outputs = nn_ops.bias_add(outputs, biases)
        return _finished(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections, opened.name)


@add_arg_scope
def separable_convolution2d(
    inputs: Any, num_outputs: int | None, kernel_size: Any, depth_multiplier: int = 1, stride: Any = 1,
    padding: str = "SAME", data_format: Any = "NHWC", rate: Any = 1, activation_fn: Any = nn_ops.relu,
    normalizer_fn: Any = None, normalizer_params: Any = None, weights_initializer: Any = XAVIER,
    pointwise_initializer: Any = None, weights_regularizer: Any = None, biases_initializer: Any = ZEROS,
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """A convolution of each channel on its own, then one of 1 over the channels.

    Args:
        num_outputs: None leaves out the second.

    Raises:
        ValueError: the layout is none.
    """
    layout = common.keras_layout(data_format, _FLAT)
    with variable_scope(
        scope, "SeparableConv2d", [inputs], reuse=reuse, custom_getter=common.variable_getter(_SEPARABLE_NAMES)
    ) as opened:
        inputs = convert_to_tensor(inputs)
        if num_outputs is None:
            outputs = _depthwise(
                inputs, kernel_size, depth_multiplier, stride, padding, data_format, rate,
                (weights_initializer, weights_regularizer), trainable, variables_collections,
            )  # fmt: skip
            if normalizer_fn is None and biases_initializer is not None:
                biases = model_variable(
                    "biases", [common.known_size(outputs, 1 if layout == "channels_first" else -1)],
                    inputs.dtype.base, biases_initializer, biases_regularizer, trainable,
                    common.collections_of(variables_collections, "biases"),
                )  # fmt: skip
                outputs = nn_ops.bias_add(outputs, biases, data_format)
        else:
            layer = convolutional.SeparableConv2D(
                num_outputs, kernel_size, stride, padding, layout, common.two_element_tuple(rate), depth_multiplier,
                None, bool(not normalizer_fn and biases_initializer), weights_initializer,
                weights_initializer if pointwise_initializer is None else pointwise_initializer, biases_initializer,
                weights_regularizer, weights_regularizer, biases_regularizer, trainable=trainable, name=opened.name,
                dtype=inputs.dtype.base, _scope=opened, _reuse=reuse,
            )  # fmt: skip
            outputs = layer.apply(inputs)
            for kernel in (layer.depthwise_kernel, layer.pointwise_kernel):
                common.add_to_collections(kernel, variables_collections, "weights")
            if layer.bias is not None:
                common.add_to_collections(layer.bias, variables_collections, "biases")
        return _finished(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections, opened.name)


def _depthwise(
    inputs: Tensor, kernel_size: Any, multiplier: int, stride: Any, padding: Any, data_format: str, rate: Any,
    weights: tuple[Any, Any], trainable: bool, collections: Any,
) -> Tensor:  # fmt: skip
    first = data_format.startswith("NC")
    channels = common.known_size(inputs, 1 if first else -1, min_rank=4)
    filters = model_variable(
        "depthwise_weights", [*common.two_element_tuple(kernel_size), channels, multiplier], inputs.dtype.base,
        *weights, trainable, common.collections_of(collections, "weights"),
    )  # fmt: skip
    steps = common.two_element_tuple(stride)
    return convolutions.depthwise_conv2d(
        inputs, filters, [1, 1, *steps] if first else [1, *steps, 1], padding, common.two_element_tuple(rate),
        data_format=data_format,
    )  # fmt: skip
