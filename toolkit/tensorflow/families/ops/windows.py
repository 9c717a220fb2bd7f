# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.nn: convolutions and pools with TensorFlow 1's arguments."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.construction.convert import as_dtype
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.nn import convolutions, pooling
from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.tensorflow.families.arguments import needed, renamed

_ONES = [1, 1, 1, 1]


def conv1d(
    value: Any = None, filters: Any = None, stride: Any = None, padding: Any = None, use_cudnn_on_gpu: Any = None,
    data_format: Any = None, name: Any = None, input: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    value = needed("input", renamed("input", input, "value", value))
    return convolutions.conv1d(value, filters, stride, needed("padding", padding), data_format, name, dilations)


def conv3d(
    input: Any, filter: Any = None, strides: Any = None, padding: Any = None, data_format: str = "NDHWC",
    dilations: Any = [1, 1, 1, 1, 1], name: Any = None, filters: Any = None,  # noqa: B006 (TensorFlow's default)
) -> Tensor:  # fmt: skip
    filter = needed("filters", renamed("filters", filters, "filter", filter))
    return convolutions.conv3d(input, filter, strides, needed("padding", padding), data_format, dilations, name)


def conv3d_transpose(
    value: Any, filter: Any = None, output_shape: Any = None, strides: Any = None, padding: str = "SAME",
    data_format: str = "NDHWC", name: Any = None, input: Any = None, filters: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    value = renamed("input", input, "value", value)
    filter = needed("filters", renamed("filters", filters, "filter", filter))
    return convolutions.conv3d_transpose(value, filter, output_shape, strides, padding, data_format, dilations, name)


def convolution(
    input: Any, filter: Any, padding: Any, strides: Any = None, dilation_rate: Any = None, name: Any = None,
    data_format: Any = None, filters: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    filter = renamed("filters", filters, "filter", filter)
    rate = renamed("dilations", dilations, "dilation_rate", dilation_rate)
    return convolutions.convolution(input, filter, padding, strides, rate, name, data_format)


def depthwise_conv2d(
    input: Any, filter: Any, strides: Any, padding: Any, rate: Any = None, name: Any = None, data_format: Any = None,
    dilations: Any = None,
) -> Tensor:  # fmt: skip
    rate = renamed("dilations", dilations, "rate", rate)
    return convolutions.depthwise_conv2d(input, filter, strides, padding, rate, name, data_format)


def separable_conv2d(
    input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any, padding: Any, rate: Any = None,
    name: Any = None, data_format: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    rate = renamed("dilations", dilations, "rate", rate)
    return convolutions.separable_conv2d(
        input, depthwise_filter, pointwise_filter, strides, padding, rate, name, data_format
    )


def _padded(padding: Any) -> dict[str, Any]:
    if padding is None or isinstance(padding, str):
        return {"padding": needed("padding", padding), "explicit_paddings": []}
    return {"padding": "EXPLICIT", "explicit_paddings": [int(size) for pair in padding for size in pair]}


def depthwise_conv2d_native(
    input: Any, filter: Any, strides: Any, padding: Any, data_format: str = "NHWC", dilations: Any = _ONES,
    name: Any = None,
) -> Tensor:  # fmt: skip
    return ops.depthwise_conv2d_native(
        input, filter, strides=strides, data_format=data_format, dilations=dilations, name=name, **_padded(padding)
    )


def depthwise_conv2d_backprop_filter(
    input: Any, filter_sizes: Any, out_backprop: Any, strides: Any, padding: Any, data_format: str = "NHWC",
    dilations: Any = _ONES, name: Any = None,
) -> Tensor:  # fmt: skip
    return ops.depthwise_conv2d_native_backprop_filter(
        input, filter_sizes, out_backprop, strides=strides, data_format=data_format, dilations=dilations, name=name,
        **_padded(padding),
    )  # fmt: skip


def depthwise_conv2d_backprop_input(
    input_sizes: Any, filter: Any, out_backprop: Any, strides: Any, padding: Any, data_format: str = "NHWC",
    dilations: Any = _ONES, name: Any = None,
) -> Tensor:  # fmt: skip
    return ops.depthwise_conv2d_native_backprop_input(
        input_sizes, filter, out_backprop, strides=strides, data_format=data_format, dilations=dilations, name=name,
        **_padded(padding),
    )  # fmt: skip


def conv2d_backprop_filter(
    input: Any, filter_sizes: Any, out_backprop: Any, strides: Any, padding: Any, use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC", dilations: Any = _ONES, name: Any = None,
) -> Tensor:  # fmt: skip
    return ops.conv2d_backprop_filter(
        input, filter_sizes, out_backprop, strides=strides, use_cudnn_on_gpu=use_cudnn_on_gpu, data_format=data_format,
        dilations=dilations, name=name, **_padded(padding),
    )  # fmt: skip


def conv2d_backprop_input(
    input_sizes: Any, filter: Any = None, out_backprop: Any = None, strides: Any = None, padding: Any = None,
    use_cudnn_on_gpu: bool = True, data_format: str = "NHWC", dilations: Any = _ONES, name: Any = None,
    filters: Any = None,
) -> Tensor:  # fmt: skip
    filter = needed("filters", renamed("filters", filters, "filter", filter))
    return ops.conv2d_backprop_input(
        input_sizes, filter, out_backprop, strides=strides, use_cudnn_on_gpu=use_cudnn_on_gpu, data_format=data_format,
        dilations=dilations, name=name, **_padded(padding),
    )  # fmt: skip


def dilation2d(
    input: Any, filter: Any = None, strides: Any = None, rates: Any = None, padding: Any = None, name: Any = None,
    filters: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    filter = needed("filters", renamed("filters", filters, "filter", filter))
    rates = needed("dilations", renamed("dilations", dilations, "rates", rates))
    return ops.dilation2d(input, filter, strides=strides, rates=rates, padding=padding, name=name)


def erosion2d(value: Any, kernel: Any, strides: Any, rates: Any, padding: Any, name: Any = None) -> Tensor:
    """The smallest difference to a window: dilation of the negative by the reversed window, negated."""
    with name_scope(name, "erosion2d", [value, kernel]) as scope:
        falling = ops.neg(value)
        turned = ops.reverse_v2(kernel, [0, 1])
        return ops.neg(ops.dilation2d(falling, turned, strides=strides, rates=rates, padding=padding, name=scope))


def max_pool_with_argmax(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", Targmax: Any = None,
    name: Any = None, output_dtype: Any = None, include_batch_in_index: bool = False,
) -> Any:  # fmt: skip
    import collections

    if data_format != "NHWC":
        raise UsageError(f"data_format: max_pool_with_argmax takes 'NHWC' only, not {data_format!r}")
    kind = renamed("output_dtype", output_dtype, "Targmax", Targmax)
    values = ops.max_pool_with_argmax(
        input, ksize=ksize, strides=strides, padding=padding, include_batch_in_index=include_batch_in_index,
        Targmax=dtypes.int64 if kind is None else as_dtype(kind), name=name,
    )  # fmt: skip
    return collections.namedtuple("MaxPoolWithArgmax", ["output", "argmax"])(*values)


def fractional_max_pool(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False, deterministic: bool = False,
    seed: int = 0, seed2: int = 0, name: Any = None,
) -> Any:  # fmt: skip
    import collections

    values = ops.fractional_max_pool(
        value, pooling_ratio=pooling_ratio, pseudo_random=pseudo_random, overlapping=overlapping,
        deterministic=deterministic, seed=seed, seed2=seed2, name=name,
    )  # fmt: skip
    fields = ["output", "row_pooling_sequence", "col_pooling_sequence"]
    return collections.namedtuple("FractionalMaxPool", fields)(*values)


def pool(
    input: Any, window_shape: Any, pooling_type: Any, padding: Any, dilation_rate: Any = None, strides: Any = None,
    name: Any = None, data_format: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    rate = renamed("dilations", dilations, "dilation_rate", dilation_rate)
    return pooling.pool(input, window_shape, pooling_type, padding, rate, strides, name, data_format)


def space_to_batch(
    input: Any, paddings: Any, block_size: Any = None, name: Any = None, block_shape: Any = None
) -> Tensor:
    size = needed("block_shape", renamed("block_shape", block_shape, "block_size", block_size))
    return convolutions.space_to_batch(input, paddings, size, name)


def batch_to_space(input: Any, crops: Any, block_size: Any, name: Any = None, block_shape: Any = None) -> Tensor:
    size = needed("block_shape", renamed("block_shape", block_shape, "block_size", block_size))
    return convolutions.batch_to_space(input, crops, size, name)
