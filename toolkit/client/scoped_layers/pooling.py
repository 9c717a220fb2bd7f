"""Pools: the largest value, or the mean, of each window."""

from __future__ import annotations

from typing import Any

from toolkit.client.argument_scopes import add_arg_scope
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.layers import pooling
from toolkit.client.nn import pooling as ops_of_pools
from toolkit.client.scoped_layers import common

_FLAT = ("NCHW", "NHWC")
_DEEP = ("NCDHW", "NDHWC")


def _pooled(
    kind: Any,
    default: str,
    inputs: Any,
    window: Any,
    stride: Any,
    padding: str,
    layout: str,
    collections: Any,
    scope: Any,
) -> Tensor:
    with name_scope(scope, default, [inputs]) as opened:
        layer = kind(window, stride, padding, layout, _scope=opened)
        return common.collected(collections, opened, layer.apply(convert_to_tensor(inputs)))


@add_arg_scope
def avg_pool2d(
    inputs: Any, kernel_size: Any, stride: Any = 2, padding: str = "VALID", data_format: Any = "NHWC",
    outputs_collections: Any = None, scope: Any = None,
) -> Tensor:  # fmt: skip
    """The mean of each window over [batch, height, width, channels].

    Raises:
        ValueError: the layout is none.
    """
    layout = common.keras_layout(data_format, _FLAT)
    kind = pooling.AveragePooling2D
    return _pooled(kind, "AvgPool2D", inputs, kernel_size, stride, padding, layout, outputs_collections, scope)


@add_arg_scope
def avg_pool3d(
    inputs: Any, kernel_size: Any, stride: Any = 2, padding: str = "VALID", data_format: Any = "NDHWC",
    outputs_collections: Any = None, scope: Any = None,
) -> Tensor:  # fmt: skip
    """The mean of each window over [batch, depth, height, width, channels].

    Raises:
        ValueError: the layout is none.
    """
    layout = common.keras_layout(data_format, _DEEP)
    kind = pooling.AveragePooling3D
    return _pooled(kind, "AvgPool3D", inputs, kernel_size, stride, padding, layout, outputs_collections, scope)


@add_arg_scope
def max_pool2d(
    inputs: Any, kernel_size: Any, stride: Any = 2, padding: str = "VALID", data_format: Any = "NHWC",
    outputs_collections: Any = None, scope: Any = None,
) -> Tensor:  # fmt: skip
    """The largest of each window over [batch, height, width, channels].

    Raises:
        ValueError: the layout is none.
    """
    layout = common.keras_layout(data_format, _FLAT)
    kind = pooling.MaxPooling2D
    return _pooled(kind, "MaxPool2D", inputs, kernel_size, stride, padding, layout, outputs_collections, scope)


@add_arg_scope
def max_pool3d(
    inputs: Any, kernel_size: Any, stride: Any = 2, padding: str = "VALID", data_format: Any = "NDHWC",
    outputs_collections: Any = None, scope: Any = None,
) -> Tensor:  # fmt: skip
    """The largest of each window over [batch, depth, height, width, channels].

    Raises:
        ValueError: the layout is none.
    """
    layout = common.keras_layout(data_format, _DEEP)
    kind = pooling.MaxPooling3D
    return _pooled(kind, "MaxPool3D", inputs, kernel_size, stride, padding, layout, outputs_collections, scope)


@add_arg_scope
def pool(
    inputs: Any, kernel_size: Any, pooling_type: str, padding: str = "VALID", data_format: Any = None,
    dilation_rate: Any = 1, stride: Any = 1, outputs_collections: Any = None, scope: Any = None,
) -> Tensor:  # fmt: skip
    """A pool over any number of dimensions.

    Args:
        pooling_type: "MAX" or "AVG".

    Raises:
        ValueError: the inputs have fewer than three dimensions, or nobody knows how many.
    """
    with name_scope(scope, f"{pooling_type.lower()}_pool", [inputs]) as opened:
        inputs = convert_to_tensor(inputs)
        rank = inputs.static_shape.rank
        if rank is None or rank < 3:
            raise ValueError(f"pools take inputs of 3 dimensions or more, not of {rank}")
        window, rates, steps = (common.n_positive_integers(rank - 2, v) for v in (kernel_size, dilation_rate, stride))
        outputs = ops_of_pools.pool(inputs, window, pooling_type, padding, rates, steps, opened, data_format)
        return common.collected(outputs_collections, opened, outputs)
