"""Convolutions and pools of one and three dimensions, transposed and separable ones: the layers of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client import layers
from toolkit.client.construction.tensor import Tensor
from toolkit.client.spec.layers.table import LayerCall, layer
from toolkit.client.spec.layers.with_variables import WEIGHTS, weights
from toolkit.client.spec.values import INITIALIZER, REGULARIZER, SIZES, initializer, regularizer
from toolkit.formats.schema.containers import Key
from toolkit.formats.schema.scalars import Integer, Text

_FILTERS = Key(Integer(1), "number of outputs", required=True)
_LAST, _FIRST = "channels_last", "channels_first"
_COMMON: dict[str, Key] = {
    "filters": _FILTERS,
    "kernel": Key(SIZES, "size of the window", required=True),
    "strides": Key(SIZES, "of the window", default=1),
    "data_format": Key(Text((_LAST, _FIRST)), "where the channels are", default=_LAST),
    **WEIGHTS,
}
_PADDING = Key(Text(("same", "valid")), "whether the window may stand over the edge", default="same")
_DILATION = Key(SIZES, "distance of what the window takes", default=1)
_SEPARABLE: dict[str, Key] = {
    **{key: kind for key, kind in _COMMON.items() if key not in ("kernel_initializer", "regularizer")},
    "padding": _PADDING,
    "dilation": _DILATION,
    "multiplier": Key(Integer(1), "outputs of each channel before they are mixed", default=1),
    "depthwise_initializer": Key(INITIALIZER, "first value of the kernel of each channel"),
    "pointwise_initializer": Key(INITIALIZER, "first value of the kernel that mixes channels"),
    "depthwise_regularizer": Key(REGULARIZER, "of the kernel of each channel, added to the loss"),
    "pointwise_regularizer": Key(REGULARIZER, "of the kernel that mixes channels, added to the loss"),
}


def _sizes(call: LayerCall, key: str) -> Any:
    found = call.section.get(key)
    return 1 if found is None else found.plain()


def _common(call: LayerCall) -> dict[str, Any]:
    return {
        "filters": call.section.integer("filters"),
        "kernel_size": _sizes(call, "kernel"),
        "strides": _sizes(call, "strides"),
        "padding": call.section.text("padding", "same"),
        "data_format": call.section.text("data_format", _LAST),
        "name": call.name,
    }


def _applied(call: LayerCall, make: Callable[..., layers.Layer], **arguments: Any) -> Tensor:
    """The layer over its input; what it refuses is a mistake of the entry."""
    try:
        return make(**_with_zeros(arguments))(call.x)
    except ValueError as error:
        raise call.section.item.error(str(error)) from None


def _plain(call: LayerCall, make: Callable[..., layers.Layer]) -> Tensor:
    return _applied(call, make, dilation_rate=_sizes(call, "dilation"), **_common(call), **weights(call.section))


def _with_zeros(arguments: dict[str, Any]) -> dict[str, Any]:
    """The layers' own default of biases, where the spec says none."""
    return {key: value for key, value in arguments.items() if key != "bias_initializer" or value is not None}


@layer(
    "conv1d",
    **_COMMON,
    padding=Key(Text(("same", "valid", "causal")), "causal: the window sees nothing that comes later", default="same"),
    dilation=_DILATION,
)
def conv1d(call: LayerCall) -> Tensor:
    return _plain(call, layers.Conv1D)


@layer("conv3d", **_COMMON, padding=_PADDING, dilation=_DILATION)
def conv3d(call: LayerCall) -> Tensor:
    return _plain(call, layers.Conv3D)


@layer("conv2d_transpose", **_COMMON, padding=_PADDING)
def conv2d_transpose(call: LayerCall) -> Tensor:
    return _applied(call, layers.Conv2DTranspose, **_common(call), **weights(call.section))


@layer("conv3d_transpose", **_COMMON, padding=_PADDING)
def conv3d_transpose(call: LayerCall) -> Tensor:
    return _applied(call, layers.Conv3DTranspose, **_common(call), **weights(call.section))


def _separable(call: LayerCall, make: Callable[..., layers.Layer]) -> Tensor:
    section = call.section
    kept = ("use_bias", "bias_initializer", "activation")
    return _applied(
        call,
        make,
        dilation_rate=_sizes(call, "dilation"),
        depth_multiplier=section.integer("multiplier", 1),
        depthwise_initializer=initializer(section.get("depthwise_initializer")),
        pointwise_initializer=initializer(section.get("pointwise_initializer")),
        depthwise_regularizer=regularizer(section.get("depthwise_regularizer")),
        pointwise_regularizer=regularizer(section.get("pointwise_regularizer")),
        **_common(call),
        **{key: value for key, value in weights(section).items() if key in kept},
    )


@layer("separable_conv1d", **_SEPARABLE)
def separable_conv1d(call: LayerCall) -> Tensor:
    return _separable(call, layers.SeparableConv1D)


@layer("separable_conv2d", **_SEPARABLE)
def separable_conv2d(call: LayerCall) -> Tensor:
    return _separable(call, layers.SeparableConv2D)


_POOL: dict[str, Key] = {
    "size": Key(SIZES, "of the window", default=2),
    "strides": Key(SIZES, "of the window; by default its size"),
    "padding": Key(Text(("same", "valid")), "whether the window may stand over the edge", default="valid"),
    "data_format": _COMMON["data_format"],
}
_POOLS = {
    "max_pool1d": layers.MaxPooling1D,
    "avg_pool1d": layers.AveragePooling1D,
    "max_pool3d": layers.MaxPooling3D,
    "avg_pool3d": layers.AveragePooling3D,
}


def _pool(call: LayerCall) -> Tensor:
    section = call.section
    size = section.get("size")
    strides = section.get("strides") or size
    return _applied(
        call,
        _POOLS[section["layer"].text()],
        pool_size=2 if size is None else size.plain(),
        strides=2 if strides is None else strides.plain(),
        padding=section.text("padding", "valid"),
        data_format=section.text("data_format", _LAST),
        name=call.name,
    )


for _kind in _POOLS:
    layer(_kind, **_POOL)(_pool)
