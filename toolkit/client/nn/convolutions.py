"""Convolutions of one to three dimensions, dilated, transposed, depthwise and separable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.nn import nn_ops
from toolkit.client.nn.space_to_batch import Paddings, with_space_to_batch
from toolkit.errors import GraphError, UsageError

Sizes = int | Sequence[int] | None
#: data formats with the channels first, by the number of spatial dimensions
_CHANNELS_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def convolution(
    input: TensorLike,
    filters: TensorLike,
    padding: Paddings,
    strides: Sizes = None,
    dilations: Sizes = None,
    name: str | None = None,
    data_format: str | None = None,
) -> Tensor:
    """A convolution of as many dimensions as `filters` [size..., in, out] has.

    Args:
        strides, dilations: one number, or one for each dimension of the space.
        data_format: channels last unless it begins with "NC".

    Raises:
        UsageError: the space has other than 1 to 3 dimensions; strides and dilations both above 1.
        GraphError: neither rank is known.
    """
    filters = convert_to_tensor(filters, name="filters")
    input = convert_to_tensor(input, name="input")
    count = _spatial_dimensions(input, filters)
    first = data_format is not None and data_format.startswith("NC")
    rate = _sizes(dilations, count, first, "dilations")
    steps = _sizes(strides, count, first, "strides")
    with name_scope(name, "convolution", [input, filters]) as scope:

        def convolved(x: TensorLike, _: int, kind: Paddings) -> Tensor:
            return plain(x, filters, steps, kind, data_format, scope, count)

        if all(r == 1 for r in rate):
            return convolved(input, count, padding)
        if any(step != 1 for step in steps):
            raise UsageError(f"strides {steps} and dilations {rate} cannot both be above 1")
        shape = filters.static_shape
        window = shape if shape.is_fully_defined else array_ops.shape(filters)
        result = with_space_to_batch(input, rate, padding, convolved, window, None, data_format)
        return result


def _spatial_dimensions(input: Tensor, filters: Tensor) -> int:
    rank = filters.static_shape.rank or input.static_shape.rank
    if rank is None:
        raise GraphError(f"neither '{input.name}' nor '{filters.name}' has a known rank; give one a shape")
    if not 1 <= rank - 2 <= 3:
        raise UsageError(f"filters: expected 3 to 5 dimensions, got shape {filters.static_shape}")
    return rank - 2


def _sizes(value: Sizes, count: int, channels_first: bool, what: str) -> list[int]:
    """One number for each dimension of the space."""
    if value is None:
        return [1] * count
    given = [value] if isinstance(value, int) else [int(v) for v in value]
    if len(given) == 1:
        return given * count
    if len(given) == count + 2:
        return given[2:] if channels_first else given[1:-1]
    if len(given) != count:
        raise UsageError(f"{what}: expected 1, {count} or {count + 2} numbers, got {given}")
    return given


def plain(
    x: TensorLike, filters: Tensor, strides: list[int], padding: Paddings, data_format: str | None, name: str,
    count: int,
) -> Tensor:  # fmt: skip
    """A convolution without dilation over `count` dimensions of space."""
    match count:
        case 1:
            return conv1d(x, filters, strides, padding, data_format, name)
        case 2:
            return nn_ops.conv2d(x, filters, strides, padding, data_format or "NHWC", name=name)
        case _:
            return conv3d(x, filters, strides, padding, data_format or "NDHWC", name=name)


def conv1d(
    x: TensorLike,
    filters: TensorLike,
    stride: Sizes,
    padding: Paddings,
    data_format: str | None = None,
    name: str | None = None,
    dilations: Sizes = None,
) -> Tensor:
    """A convolution over one dimension, as one over two of which the first has size 1.

    Raises:
        UsageError: a data format that is none.
    """
    with name_scope(name, "conv1d", [x, filters]) as scope:
        first, axis, plane = _flat_format(data_format, -2, -3)
        steps = [1, *_sizes(stride, 1, first, "stride")]
        rate = [1, *_sizes(dilations, 1, first, "dilations")]
        widened = ops.expand_dims(x, axis)
        filters = ops.expand_dims(filters, 0)
        kind: Paddings = padding if isinstance(padding, str) else _widened(padding, first)
        result = nn_ops.conv2d(widened, filters, steps, kind, plane, rate, name=scope)
        return ops.squeeze(result, squeeze_dims=[axis])


def _flat_format(data_format: str | None, first_axis: int, last_axis: int) -> tuple[bool, int, str]:
    """Whether channels come first, the axis to add, and the data format with it."""
    match data_format:
        case None | "NHWC" | "NWC":
            return False, last_axis, "NHWC"
        case "NCHW" | "NCW":
            return True, first_axis, "NCHW"
        case _:
            raise UsageError(f"data_format: expected 'NWC' or 'NCW', got {data_format!r}")


def _widened(padding: Sequence[Sequence[int]], first: bool) -> list[Sequence[int]]:
    at = 2 if first else 1
    return [*padding[:at], [0, 0], *padding[at:]]


def conv3d(
    x: TensorLike,
    filters: TensorLike,
    strides: Sizes,
    padding: Paddings,
    data_format: str = "NDHWC",
    dilations: Sizes = None,
    name: str | None = None,
) -> Tensor:
    """3-D convolution; `filters` is [depth, height, width, in, out]."""
    return ops.conv3d(
        x, filters, strides=nn_ops.window(1 if strides is None else strides, data_format, 3), padding=padding,
        data_format=data_format, dilations=nn_ops.window(1 if dilations is None else dilations, data_format, 3),
        name=name,
    )  # fmt: skip


def conv1d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: Sizes,
    padding: str = "SAME",
    data_format: str = "NWC",
    dilations: Sizes = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of conv1d by its input; `filters` is [width, out, in].

    Raises:
        UsageError: a data format that is none.
    """
    with name_scope(name, "conv1d_transpose", [input, filters, output_shape]) as scope:
        first, axis, plane = _flat_format(data_format, 2, 1)
        steps = [1, *_sizes(strides, 1, first, "strides")]
        rate = [1, *_sizes(dilations, 1, first, "dilations")]
        widened = ops.expand_dims(input, axis)
        filters = ops.expand_dims(filters, 0)
        whole = array_ops.concat([output_shape[:axis], [1], output_shape[axis:]], 0)
        result = ops.conv2d_backprop_input(
            whole, filters, widened, strides=nn_ops.window(steps, plane), padding=padding, data_format=plane,
            dilations=nn_ops.window(rate, plane), name=scope,
        )  # fmt: skip
        return ops.squeeze(result, squeeze_dims=[axis])


def conv3d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: Sizes,
    padding: str = "SAME",
    data_format: str = "NDHWC",
    dilations: Sizes = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of conv3d by its input; `filters` is [depth, height, width, out, in]."""
    with name_scope(name, "conv3d_transpose", [input, filters, output_shape]) as scope:
        return ops.conv3d_backprop_input_v2(
            output_shape, filters, input, strides=nn_ops.window(1 if strides is None else strides, data_format, 3),
            padding=padding, data_format=data_format,
            dilations=nn_ops.window(1 if dilations is None else dilations, data_format, 3), name=scope,
        )  # fmt: skip


def conv_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: Sizes,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: Sizes = None,
    name: str | None = None,
) -> Tensor:
    """A transposed convolution of as many dimensions as `output_shape` says.

    Raises:
        UsageError: it says other than 1 to 3, or nothing.
    """
    with name_scope(name, "conv_transpose", [input, filters, output_shape]) as scope:
        if isinstance(output_shape, Tensor):
            length = output_shape.static_shape[0] if output_shape.static_shape.rank == 1 else None
        else:
            length = len(output_shape)
        if length is None or not 1 <= length - 2 <= 3:
            raise UsageError(f"output_shape: expected 3 to 5 sizes, got {output_shape}")
        match length - 2:
            case 1:
                return conv1d_transpose(
                    input, filters, output_shape, strides, padding, data_format or "NWC", dilations, scope
                )
            case 2:
                return nn_ops.conv2d_transpose(
                    input, filters, output_shape, 1 if strides is None else strides, padding, data_format or "NHWC",
                    1 if dilations is None else dilations, scope,
                )  # fmt: skip
            case _:
                return conv3d_transpose(
                    input, filters, output_shape, strides, padding, data_format or "NDHWC", dilations, scope
                )


def atrous_conv2d(value: TensorLike, filters: TensorLike, rate: int, padding: str, name: str | None = None) -> Tensor:
    """A convolution whose window meets every `rate`-th element."""
    return convolution(value, filters, padding, dilations=[rate, rate], name=name)


def atrous_conv2d_transpose(
    value: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    rate: int,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """The gradient of `atrous_conv2d` by its input; `filters` is [height, width, out, in].

    Raises:
        UsageError: a rate below 1, channels that do not fit, a padding other than "SAME" and "VALID".
        GraphError: the window's size is not known.
    """
    with name_scope(name, "atrous_conv2d_transpose", [value, filters, output_shape]):
        value = convert_to_tensor(value, name="value")
        filters = convert_to_tensor(filters, name="filters")
        if rate < 1:
            raise UsageError(f"rate: expected a number from 1 on, got {rate}")
        if rate == 1:
            return nn_ops.conv2d_transpose(value, filters, output_shape, 1, padding)
        sizes = convert_to_tensor(output_shape, name="output_shape")
        known = static_value(sizes)
        out: Any = sizes if known is None else known.tolist()
        window = filters.static_shape
        if window.rank != 4 or window[0] is None or window[1] is None:
            raise GraphError(f"'{filters.name}' of shape {window} has a window of unknown size")
        before, after = zip(*(_around(int(size), rate, padding) for size in (window[0], window[1])), strict=True)
        height = out[1] + before[0] + after[0]
        width = out[2] + before[1] + after[1]
        more_rows = (rate - height % rate) % rate
        more_columns = (rate - width % rate) % rate
        in_batch = _blocks(ops.space_to_batch_nd, value, [[0, more_rows], [0, more_columns]], rate)
        inner = [rate * rate * out[0], (height + more_rows) // rate, (width + more_columns) // rate, out[3]]
        result = ops.conv2d_backprop_input(inner, filters, in_batch, strides=[1, 1, 1, 1], padding="VALID")
        crops = [[before[0], after[0] + more_rows], [before[1], after[1] + more_columns]]
        return _blocks(ops.batch_to_space_nd, result, crops, rate)


def _around(size: int, rate: int, padding: str) -> tuple[int, int]:
    """What is added before and after a dimension for a dilated window of `size`."""
    match padding:
        case "SAME":
            extra = (size - 1) * (rate - 1) + size - 1
            return extra // 2, extra - extra // 2
        case "VALID":
            return 0, 0
        case _:
            raise UsageError(f"padding: expected 'SAME' or 'VALID', got {padding!r}")


def _blocks(op: Any, x: Tensor, pairs: TensorLike, rate: int, name: str | None = None) -> Tensor:
    """Between space and batch with square blocks; TensorFlow counts these in int64."""
    import numpy as np

    return op(x, np.array([rate, rate], np.int64), pairs, name=name)


def space_to_batch(x: TensorLike, paddings: TensorLike, block_size: int, name: str | None = None) -> Tensor:
    """Square blocks of a picture into the batch."""
    return _blocks(ops.space_to_batch_nd, x, paddings, block_size, name)


def batch_to_space(x: TensorLike, crops: TensorLike, block_size: int, name: str | None = None) -> Tensor:
    """`space_to_batch` undone."""
    return _blocks(ops.batch_to_space_nd, x, crops, block_size, name)


def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: Sequence[int],
    padding: Paddings,
    rate: Sizes = None,
    name: str | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Each channel convolved on its own, by windows [height, width, in, multiplier], dilated by `rate`."""
    with name_scope(name, "depthwise", [input, filter]) as scope:
        input = convert_to_tensor(input, name="tensor_in")
        filter = convert_to_tensor(filter, name="filter_in")
        return _dilated_depthwise(input, filter, strides, padding, rate, scope, data_format)


def _dilated_depthwise(
    input: Tensor, filter: Tensor, strides: Sequence[int], padding: Paddings, rate: Sizes, name: str,
    data_format: str | None,
) -> Tensor:  # fmt: skip
    rates = [1, 1] if rate is None else rate

    def op(x: TensorLike, _: int, kind: Paddings) -> Tensor:
        pairs = [] if isinstance(kind, str) else [int(size) for pair in kind for size in pair]
        return ops.depthwise_conv2d_native(
            x, filter, strides=list(strides), padding=kind if isinstance(kind, str) else "EXPLICIT",
            explicit_paddings=pairs, data_format=data_format or "NHWC", name=name,
        )  # fmt: skip

    return with_space_to_batch(input, rates, padding, op, array_ops.shape(filter), None, data_format)


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: Sequence[int],
    padding: Paddings,
    rate: Sizes = None,
    name: str | None = None,
    data_format: str | None = None,
) -> Tensor:
    """A depthwise convolution, then one of 1x1 over its channels.

    Raises:
        UsageError: the second window is not 1x1.
    """
    with name_scope(name, "separable_conv2d", [input, depthwise_filter, pointwise_filter]) as scope:
        input = convert_to_tensor(input, name="tensor_in")
        depthwise_filter = convert_to_tensor(depthwise_filter, name="depthwise_filter")
        pointwise_filter = convert_to_tensor(pointwise_filter, name="pointwise_filter")
        shape = pointwise_filter.static_shape
        if shape.rank not in (None, 4) or (shape.rank == 4 and any(shape[d] not in (None, 1) for d in (0, 1))):
            raise UsageError(f"pointwise_filter: expected shape [1, 1, in, out], got {shape}")
        inner = _dilated_depthwise(input, depthwise_filter, strides, padding, rate, "depthwise", data_format)
        return nn_ops.conv2d(inner, pointwise_filter, 1, "VALID", data_format or "NHWC", name=scope)
