"""Layers that look at windows of images: convolutions and pools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client import layers
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.spec.layers.table import LayerCall, layer
from toolkit.client.spec.layers.with_variables import WEIGHTS, weights
from toolkit.client.spec.values import SIZE_PAIR
from toolkit.formats.schema.choices import OneOf
from toolkit.formats.schema.containers import Key, ListOf
from toolkit.formats.schema.scalars import Integer, Number, Text
from toolkit.formats.settings.tree import Section

_DATA_FORMAT = Key(Text(("NHWC", "NCHW")), "where the channels are", default="NHWC")
_PADDING = Key(
    OneOf(Text(("same", "valid", "SAME", "VALID")), ListOf(ListOf(Integer(0), (2,)))),
    "same, valid, or [[before, after], ...] for each dimension",
)
_CONV: dict[str, Key] = {
    "kernel": Key(SIZE_PAIR, "height and width of the window", required=True),
    "strides": Key(SIZE_PAIR, "of the window", default=1),
    "padding": _PADDING,
    "dilation": Key(SIZE_PAIR, "distance of what the window takes", default=1),
    "data_format": _DATA_FORMAT,
}
_POOL: dict[str, Key] = {
    "size": Key(SIZE_PAIR, "height and width of the window", default=2),
    "strides": Key(SIZE_PAIR, "of the window; by default its size"),
    "padding": _PADDING,
    "data_format": _DATA_FORMAT,
}


def _padding(section: Section, default: str) -> Any:
    found = section.get("padding")
    if found is None:
        return default
    return found.value.upper() if isinstance(found.value, str) else found.plain()


def _sizes(section: Section, key: str, default: Any) -> Any:
    found = section.get(key)
    return default if found is None else found.plain()


def _conv(section: Section) -> dict[str, Any]:
    return {
        "kernel_size": section["kernel"].plain(),
        "strides": _sizes(section, "strides", 1),
        "padding": _padding(section, "SAME"),
        "dilation_rate": _sizes(section, "dilation", 1),
        "data_format": section.text("data_format", "NHWC"),
    }


@layer("conv2d", filters=Key(Integer(1), "number of outputs", required=True), **_CONV, **WEIGHTS)
def conv2d(call: LayerCall) -> Tensor:
    filters = call.section.integer("filters")
    return layers.conv2d(call.x, filters, name=call.name, **_conv(call.section), **weights(call.section))


@layer("depthwise_conv2d", multiplier=Key(Integer(1), "outputs of each channel", default=1), **_CONV, **WEIGHTS)
def depthwise_conv2d(call: LayerCall) -> Tensor:
    multiplier = call.section.integer("multiplier", 1)
    return layers.depthwise_conv2d(
        call.x, depth_multiplier=multiplier, name=call.name, **_conv(call.section), **weights(call.section)
    )


@layer("max_pool", **_POOL)
def max_pool(call: LayerCall) -> Tensor:
    return _pool(nn_ops.max_pool, call)


@layer("avg_pool", **_POOL)
def avg_pool(call: LayerCall) -> Tensor:
    return _pool(nn_ops.avg_pool, call)


def _pool(pool: Callable[..., Tensor], call: LayerCall) -> Tensor:
    section = call.section
    size = _sizes(section, "size", 2)
    strides = _sizes(section, "strides", size)
    data_format = section.text("data_format", "NHWC")
    return pool(call.x, size, strides, _padding(section, "VALID"), data_format, name=call.name)


@layer("global_avg_pool", data_format=_DATA_FORMAT)
def global_avg_pool(call: LayerCall) -> Tensor:
    axes = [1, 2] if call.section.text("data_format", "NHWC") == "NHWC" else [2, 3]
    return math_ops.reduce_mean(call.x, axes, name=call.name)


@layer(
    "lrn",
    depth_radius=Key(Integer(0), "channels on each side", default=5),
    bias=Key(Number(), "added to the sum of squares", default=1.0),
    alpha=Key(Number(), "times the sum of squares", default=1.0),
    beta=Key(Number(), "the power", default=0.5),
)
def lrn(call: LayerCall) -> Tensor:
    section = call.section
    return nn_ops.local_response_normalization(
        call.x, section.integer("depth_radius", 5), section.number("bias", 1.0), section.number("alpha", 1.0),
        section.number("beta", 0.5), name=call.name,
    )  # fmt: skip
