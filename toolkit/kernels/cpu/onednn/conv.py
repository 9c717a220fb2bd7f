"""Convolutions and their gradients, node by node."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toolkit.kernels.cpu.memory.addresses import aligned
from toolkit.kernels.cpu.nn import conv as nn_conv
from toolkit.kernels.cpu.nn.window import Layout, window_spec
from toolkit.kernels.cpu.onednn import cached, memory
from toolkit.kernels.cpu.onednn.cached import KEPT, PACKED, Kept, is_worth, last, onednn, restored
from toolkit.kernels.cpu.onednn.primitive import Arg, DescriptorQuery
from toolkit.kernels.cpu.onednn.windows import ConvolutionGeometry, Shape
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array
from toolkit.target.target import Target


class _Geometry:
    """What a node's attributes say, to be laid over shapes."""

    def __init__(self, op: KernelNode):
        self.target = op.target
        self.rank = 5 if "3D" in op.op else 4
        self.layout = Layout.of(op, "NDHWC" if self.rank == 5 else "NHWC")
        self.depthwise = op.op.startswith("Depthwise")
        self.spec = window_spec(op, self.layout, rank=self.rank)

    def over(self, x: Shape, w: Shape) -> ConvolutionGeometry | None:
        """The convolution of an input in the node's layout; None for what is wrong or empty."""
        if len(x) != self.rank or len(w) != self.rank:
            return None
        x = self.layout.shape_last(x)
        if 0 in x or 0 in w or x[-1] % w[-2]:
            return None
        groups = w[-2] if self.depthwise else x[-1] // w[-2]
        filters = w[-2] * w[-1] if self.depthwise else w[-1]
        if filters % groups or (self.depthwise and x[-1] != w[-2]):
            return None
        windows = self.spec.over(x[1:-1], w[:-2])
        if 0 in windows.out:
            return None
        y = (x[0], *windows.out, filters)
        return ConvolutionGeometry(x, w, y, windows.strides, windows.dilations, windows.pads, groups, self.depthwise)

    def is_worth(self, image: Array, size: int) -> bool:
        """Whether there is enough to multiply, with an input (or an output's gradient) and the size of a filter."""
        if image.ndim != self.rank:
            return False
        channels = image.shape[1 if self.layout.channels_first else -1]
        return is_worth(image.size * size // max(channels, 1), self.target.kernels.convolution)

    def key(self, *more: Any) -> tuple[Any, ...]:
        return (self.rank, self.layout, self.depthwise, self.spec.strides, self.spec.dilations, self.spec.padding,
                self.spec.explicit, *more)  # fmt: skip


class _Forward:
    """y = x * w, and with `_BackwardInput` what turns a filter into the layout that the primitive wants."""

    def __init__(self, geometry: ConvolutionGeometry, dtype: Any, processor: Target):
        self.kept, self.target = self._make(geometry, dtype, processor)
        plain, wanted = geometry.filter_desc(dtype), self.kept.primitive.desc(DescriptorQuery.WEIGHTS)
        self.conversion = None if plain.same(wanted) else cached.conversion(plain, wanted, processor)
        self.size = wanted.size

    def _make(self, geometry: ConvolutionGeometry, dtype: Any, processor: Target) -> tuple[Kept, Shape]:
        primitive = geometry.forward(dtype, dtype, prefer=geometry.preferred(dtype, dtype, processor.primitives))
        x, y = memory.channels_last(geometry.x, dtype), memory.channels_last(geometry.y, dtype)
        arguments = [(Arg.SRC, x), (Arg.WEIGHTS, primitive.desc(DescriptorQuery.WEIGHTS)), (Arg.DST, y)]
        return Kept(primitive, arguments, processor), geometry.y

    def run(self, given: Array, w: Array) -> Array:
        """From a dense channels-last tensor and TensorFlow's filter."""
        weights = np.ascontiguousarray(w) if self.conversion is None else PACKED.get(w, self.conversion, self.size)
        made = np.empty(self.target, given.dtype)
        self.kept.run(given, weights, made)
        return made


class _BackwardInput(_Forward):
    """The gradient by x."""

    def _make(self, geometry: ConvolutionGeometry, dtype: Any, processor: Target) -> tuple[Kept, Shape]:
        primitive = geometry.backward_input(dtype, geometry.preferred(dtype, dtype, processor.primitives))
        x, y = memory.channels_last(geometry.x, dtype), memory.channels_last(geometry.y, dtype)
        arguments = [(Arg.DIFF_DST, y), (Arg.WEIGHTS, primitive.desc(DescriptorQuery.WEIGHTS)), (Arg.DIFF_SRC, x)]
        return Kept(primitive, arguments, processor), geometry.x


class _BackwardFilter:
    """The gradient by w."""

    def __init__(self, geometry: ConvolutionGeometry, dtype: Any, processor: Target):
        self.target = geometry.w
        primitive = geometry.backward_filter(dtype, geometry.preferred(dtype, dtype, processor.primitives))
        made = primitive.desc(DescriptorQuery.DIFF_WEIGHTS)
        x, y = memory.channels_last(geometry.x, dtype), memory.channels_last(geometry.y, dtype)
        self.kept = Kept(primitive, [(Arg.SRC, x), (Arg.DIFF_DST, y), (Arg.DIFF_WEIGHTS, made)], processor)
        plain = geometry.filter_desc(dtype)
        self.conversion = None if plain.same(made) else cached.conversion(made, plain, processor)
        self.size = made.size

    def run(self, x: Array, dy: Array) -> Array:
        """From dense channels-last tensors to TensorFlow's filter."""
        dw = np.empty(self.target, x.dtype)
        if self.conversion is None:
            self.kept.run(x, dy, dw)
            return dw
        made = aligned(self.size)
        self.kept.run(x, dy, made)
        self.conversion.run(made, dw)
        return dw


@onednn("Conv2D", "Conv3D", numpy=nn_conv.conv, narrow=True)
@onednn("DepthwiseConv2dNative", numpy=nn_conv.depthwise, narrow=True)
def conv(op: KernelNode, numpy: Compute) -> Compute:
    geometry = _Geometry(op)
    first = geometry.layout.channels_first

    def make(x: Shape, w: Shape, dtype: Any) -> _Forward | None:
        found = geometry.over(x, w)
        return None if found is None else _Forward(found, dtype, op.target)

    def compute(x: Array, w: Array) -> Array:
        if not geometry.is_worth(x, w.size):
            return numpy(x, w)
        kept = KEPT.get(geometry.key("forward", x.shape, w.shape, x.dtype), lambda: make(x.shape, w.shape, x.dtype))
        if kept is None:
            return numpy(x, w)
        return restored(
            kept.run(last(x, geometry.target, channels_first=first), w), geometry.target, channels_first=first
        )

    return compute


def _sizes(sizes: Array, geometry: _Geometry) -> Shape | None:
    """A shape that is given as a tensor, if it is whole."""
    return tuple(sizes.tolist()) if sizes.shape == (geometry.rank,) else None


@onednn("Conv2DBackpropInput", "Conv3DBackpropInputV2", numpy=nn_conv.conv_backprop_input, narrow=True)
@onednn("DepthwiseConv2dNativeBackpropInput", numpy=nn_conv.depthwise_backprop_input, narrow=True)
def conv_backprop_input(op: KernelNode, numpy: Compute) -> Compute:
    geometry = _Geometry(op)
    first = geometry.layout.channels_first

    def make(x: Shape | None, w: Shape, dy: Array) -> _BackwardInput | None:
        found = geometry.over(x, w) if x is not None and min(x) > 0 else None
        if found is None or not _fits(found, geometry, dy):
            return None
        return _BackwardInput(found, dy.dtype, op.target)

    def compute(sizes: Array, w: Array, dy: Array) -> Array:
        if not geometry.is_worth(dy, w.size):
            return numpy(sizes, w, dy)
        x = _sizes(sizes, geometry)
        kept = KEPT.get(geometry.key("by input", x, w.shape, dy.shape, dy.dtype), lambda: make(x, w.shape, dy))
        if kept is None:
            return numpy(sizes, w, dy)
        return restored(
            kept.run(last(dy, geometry.target, channels_first=first), w), geometry.target, channels_first=first
        )

    return compute


@onednn("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", numpy=nn_conv.conv_backprop_filter, narrow=True)
@onednn("DepthwiseConv2dNativeBackpropFilter", numpy=nn_conv.depthwise_backprop_filter, narrow=True)
def conv_backprop_filter(op: KernelNode, numpy: Compute) -> Compute:
    geometry = _Geometry(op)
    first = geometry.layout.channels_first

    def make(x: Shape, w: Shape, dy: Array) -> _BackwardFilter | None:
        found = geometry.over(x, w) if min(w) > 0 else None
        if found is None or not _fits(found, geometry, dy):
            return None
        return _BackwardFilter(found, dy.dtype, op.target)

    def compute(x: Array, sizes: Array, dy: Array) -> Array:
        w = _sizes(sizes, geometry)
        if w is None or not geometry.is_worth(x, math.prod(w)):
            return numpy(x, sizes, dy)
        kept = KEPT.get(geometry.key("by filter", x.shape, w, dy.shape, dy.dtype), lambda: make(x.shape, w, dy))
        if kept is None:
            return numpy(x, sizes, dy)
        return kept.run(last(x, geometry.target, channels_first=first), last(dy, geometry.target, channels_first=first))

    return compute


def _fits(found: ConvolutionGeometry, geometry: _Geometry, dy: Array) -> bool:
    return dy.ndim == geometry.rank and geometry.layout.shape_last(dy.shape) == found.y
