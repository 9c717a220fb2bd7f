"""Pools of one to three dimensions, and pools with holes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.nn import nn_ops
from toolkit.client.nn.space_to_batch import Paddings, with_space_to_batch
from toolkit.errors import UsageError

Sizes = int | Sequence[int]


def _pool1d(
    scope_name: str, op: str, x: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str, name: Any
):
    """A pool over one dimension, as one over two of which the first has size 1."""
    with name_scope(name, scope_name, [x]) as scope:
        x = convert_to_tensor(x, name="input")
        first = data_format.startswith("NC")
        axis = 2 if first else 1
        plane = "NCHW" if first else "NHWC"
        widened = ops.expand_dims(x, axis)
        window, steps = (_widened(nn_ops.window(sizes, data_format, 1), axis) for sizes in (ksize, strides))
        result = ops.function(op)(
            widened, ksize=window, strides=steps, padding=padding, data_format=plane, name=scope
        )  # fmt: skip
        return ops.squeeze(result, squeeze_dims=[axis])


def _widened(sizes: list[int], axis: int) -> list[int]:
    return [*sizes[:axis], 1, *sizes[axis:]]


def max_pool1d(
    input: TensorLike, ksize: Sizes, strides: Sizes, padding: str, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """The largest value of each window over [batch, width, channels]."""
    return _pool1d("MaxPool1d", "MaxPool", input, ksize, strides, padding, data_format, name)


def avg_pool1d(
    input: TensorLike, ksize: Sizes, strides: Sizes, padding: str, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """The mean of each window over [batch, width, channels]."""
    return _pool1d("AvgPool1D", "AvgPool", input, ksize, strides, padding, data_format, name)


def max_pool2d(
    input: TensorLike, ksize: Sizes, strides: Sizes, padding: Paddings, data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The largest value of each window over [batch, height, width, channels]."""
    with name_scope(name, "MaxPool2d", [input]) as scope:
        return nn_ops.max_pool(input, ksize, strides, padding, data_format or "NHWC", scope)


def _pool3d(op: str, x: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str, name: Any) -> Tensor:
    with name_scope(name, op, [x]) as scope:
        return ops.function(op)(
            x, ksize=nn_ops.window(ksize, data_format, 3), strides=nn_ops.window(strides, data_format, 3),
            padding=padding, data_format=data_format, name=scope,
        )  # fmt: skip


def max_pool3d(
    input: TensorLike, ksize: Sizes, strides: Sizes, padding: str, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """The largest value of each window over [batch, depth, height, width, channels]."""
    return _pool3d("MaxPool3D", input, ksize, strides, padding, data_format or "NDHWC", name)


def avg_pool3d(
    input: TensorLike, ksize: Sizes, strides: Sizes, padding: str, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """The mean of each window over [batch, depth, height, width, channels]."""
    return _pool3d("AvgPool3D", input, ksize, strides, padding, data_format or "NDHWC", name)


_MAX: dict[int, Callable[..., Tensor]] = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}
_AVG: dict[int, Callable[..., Tensor]] = {1: avg_pool1d, 2: nn_ops.avg_pool, 3: avg_pool3d}
#: data formats with the channels last, by the number of spatial dimensions
CHANNELS_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


def _by_rank(table: dict[int, Callable[..., Tensor]], x: TensorLike, ksize: Any, data_format: str | None) -> Any:
    """The pool for as many dimensions as the input, the data format or the window have."""
    rank = convert_to_tensor(x).static_shape.rank
    if data_format is not None:
        count = len(data_format) - 2
    elif rank is not None:
        count = rank - 2
    else:
        count = 0 if isinstance(ksize, int) else len(ksize) - 2
    if count not in table:
        raise UsageError(f"input: expected 3 to 5 dimensions, got {'an unknown number' if rank is None else rank}")
    return table[count], data_format or CHANNELS_LAST[count]


def max_pool_v2(
    input: TensorLike, ksize: Sizes, strides: Sizes, padding: Paddings, data_format: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The largest value of each window, over as many dimensions as the input has.

    Raises:
        UsageError: these are not 1 to 3.
    """
    function, layout = _by_rank(_MAX, input, ksize, data_format)
    return function(input, ksize, strides, padding, layout, name)


def avg_pool_v2(
    input: TensorLike, ksize: Sizes, strides: Sizes, padding: Paddings, data_format: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window, over as many dimensions as the input has.

    Raises:
        UsageError: these are not 1 to 3.
    """
    function, layout = _by_rank(_AVG, input, ksize, data_format)
    return function(input, ksize, strides, padding, layout, name)


def pool(
    input: TensorLike,
    window_shape: Sequence[int],
    pooling_type: str,
    padding: str,
    dilation_rate: Sizes | None = None,
    strides: Sizes | None = None,
    name: str | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Windows of one to three dimensions, with steps or with holes.

    Args:
        pooling_type: "MAX" or "AVG".

    Raises:
        UsageError: a type that is none; holes together with steps, or with the padding "SAME".
    """
    kinds = {"MAX": _MAX, "AVG": _AVG}
    if pooling_type not in kinds:
        raise UsageError(f"pooling_type: expected 'MAX' or 'AVG', got {pooling_type!r}")
    count = len(window_shape)
    if count not in _MAX:
        raise UsageError(f"window_shape: expected 1 to 3 sizes, got {count}")
    with name_scope(name, f"{pooling_type.lower()}_pool", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        steps = _each(strides, count, "strides")
        rates = _each(dilation_rate, count, "dilation_rate")
        if any(rate > 1 for rate in rates) and any(step > 1 for step in steps):
            raise UsageError(f"strides {steps} and dilation_rate {rates} cannot both be above 1")
        if padding == "SAME" and any(rate > 1 for rate in rates):
            raise UsageError(f"padding: 'SAME' is for a dilation_rate of 1, not {rates}")
        layout = data_format or CHANNELS_LAST[count]
        first = layout.startswith("NC")

        def op(x: Tensor, _: int, kind: Paddings) -> Tensor:
            window, stride = ([1, 1, *s] if first else [1, *s, 1] for s in (list(window_shape), steps))
            return kinds[pooling_type][count](x, window, stride, kind, layout, scope)

        return with_space_to_batch(input, rates, padding, op, list(window_shape), None, layout)


def _each(value: Sizes | None, count: int, what: str) -> list[int]:
    sizes = [1] * count if value is None else [value] * count if isinstance(value, int) else [int(v) for v in value]
    if len(sizes) != count or any(size < 1 for size in sizes):
        raise UsageError(f"{what}: expected {count} positive numbers, got {sizes}")
    return sizes
