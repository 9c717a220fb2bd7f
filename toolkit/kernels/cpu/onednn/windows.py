"""Convolutions and pools as oneDNN sees them: TensorFlow's filters by strides, windows, the primitives over them.

All tensors lie channels last (N, spatial..., C); a filter is (kernel..., C / groups, F), of depthwise ones
(kernel..., C, multiplier).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.choices import preferred
from toolkit.kernels.cpu.onednn.memory import Desc, any_layout, dims, strided
from toolkit.kernels.cpu.onednn.primitive import (
    FORWARD_INFERENCE,
    FORWARD_TRAINING,
    PLAIN,
    Pooling,
    Post,
    Primitive,
    Quantization,
)
from toolkit.kernels.tensors import F32, row_major
from toolkit.target.thresholds import PrimitiveThresholds

Shape = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]
_DIRECT = 1  # dnnl_convolution_direct


@dataclass(frozen=True, slots=True)
class ConvolutionGeometry:
    """The geometry of a convolution.

    Attributes:
        x, w, y: the shapes of input, filter and output.
        strides, dilations, pads: for each spatial axis.
    """

    x: Shape
    w: Shape
    y: Shape
    strides: Shape
    dilations: Shape
    pads: Pads
    groups: int
    depthwise: bool

    @property
    def filter_shape(self) -> Shape:
        """The filter's shape as oneDNN has it: (groups,) output, input, spatial."""
        *spatial, inputs, outputs = self.w
        if self.depthwise:
            return (inputs, outputs, 1, *spatial)
        if self.groups > 1:
            return (self.groups, outputs // self.groups, inputs, *spatial)
        return (outputs, inputs, *spatial)

    def filter_desc(self, dtype: Any = F32) -> Desc:
        """TensorFlow's filter by strides, without moving anything."""
        *spatial, per_input, per_output = row_major(self.w)
        own = self.filter_shape
        if self.depthwise:
            return strided(own, dtype, (per_input, per_output, 1, *spatial))
        if self.groups > 1:
            return strided(own, dtype, (own[1] * per_output, per_output, per_input, *spatial))
        return strided(own, dtype, (per_output, per_input, *spatial))

    def _windows(self) -> tuple[Any, ...]:
        """oneDNN's dilations start at 0."""
        return dims(self.strides), dims([d - 1 for d in self.dilations]), *_pads(self.pads)

    def preferred(self, source: Any, target: Any, sizes: PrimitiveThresholds) -> str:
        """Which implementation is faster than oneDNN's choice between these types; "" where none is."""
        return preferred(self.x, sizes, depthwise=self.depthwise, single=source == F32 and target == F32)

    def forward(
        self, source: Any = F32, target: Any = F32, bias: Desc | None = None, posts: Sequence[Post] = (),
        kind: int = FORWARD_INFERENCE, weights: Any = None, quantization: Quantization = PLAIN, prefer: str = "",
    ) -> Primitive:  # fmt: skip
        """y from x and w, whose layout the primitive chooses; source, target and weights (as source) are types.

        Args:
            prefer: `preferred`.

        Raises:
            OneDnnError: oneDNN cannot do it.
        """
        return Primitive(
            "convolution_forward", kind, _DIRECT, memory.channels_last(self.x, source),
            any_layout(self.filter_shape, weights or source), bias, memory.channels_last(self.y, target),
            *self._windows(), posts=posts, quantization=quantization,
            prefer=prefer,
        )  # fmt: skip

    def backward_input(self, dtype: Any = F32, prefer: str = "") -> Primitive:
        """The gradient by x from that by y and w, whose layout the primitive chooses."""
        hint = self.forward(dtype, dtype, kind=FORWARD_TRAINING, prefer=prefer)
        return Primitive(
            "convolution_backward_data", _DIRECT, memory.channels_last(self.x, dtype),
            any_layout(self.filter_shape, dtype), memory.channels_last(self.y, dtype), *self._windows(),
            hint.descriptor,
        )  # fmt: skip

    def backward_filter(self, dtype: Any = F32, prefer: str = "") -> Primitive:
        """The gradient by w, in a layout that the primitive chooses, from x and the gradient by y."""
        hint = self.forward(dtype, dtype, kind=FORWARD_TRAINING, prefer=prefer)
        return Primitive(
            "convolution_backward_weights", _DIRECT, memory.channels_last(self.x, dtype),
            any_layout(self.filter_shape, dtype), None, memory.channels_last(self.y, dtype), *self._windows(),
            hint.descriptor,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PoolGeometry:
    """The geometry of a pool.

    Attributes:
        x, y: the shapes of input and output.
        kernel, strides, pads: for each spatial axis.
    """

    algorithm: Pooling
    x: Shape
    y: Shape
    kernel: Shape
    strides: Shape
    pads: Pads

    def _windows(self) -> tuple[Any, ...]:
        return dims(self.strides), dims(self.kernel), dims([0] * len(self.kernel)), *_pads(self.pads)

    def descs(self, source: Any = F32, target: Any = F32) -> tuple[Desc, Desc]:
        """The layouts of x and y."""
        return memory.channels_last(self.x, source), memory.channels_last(self.y, target)

    def forward(self, source: Any = F32, target: Any = F32, kind: int = FORWARD_INFERENCE) -> Primitive:
        """y from x; at training with a workspace, which says where the maxima are.

        Raises:
            OneDnnError: oneDNN cannot do it.
        """
        return Primitive("pooling_forward", kind, self.algorithm, *self.descs(source, target), *self._windows())

    def backward(self, forward: Primitive, dtype: Any = F32) -> Primitive:
        """The gradient by x from that by y, and the workspace of `forward` if it is of maxima."""
        return Primitive(
            "pooling_backward", self.algorithm, *self.descs(dtype, dtype), *self._windows(), forward.descriptor
        )


def strips_of(pool: PoolGeometry, count: int, least: int) -> tuple[PoolGeometry, PoolGeometry] | None:
    """A mean over one whole image as a pool over strips of rows and one over these; None for others.

    oneDNN gives threads channels, each of which lies in the caches of all threads; a thread's rows lie in its own, and
    what reads the image next finds them there.

    Args:
        count: of threads; each gets one strip, or some of one row where these cannot be even.
        least: elements of an image that this is worth it for.
    """
    plain = pool.algorithm is Pooling.AVG_EXCLUDE_PADDING and all(pair == (0, 0) for pair in pool.pads)
    if not plain or pool.x[0] != 1 or pool.kernel != pool.x[1:-1] or count == 1:
        return None
    if math.prod(pool.x) < least:
        return None
    rows, *rest = pool.kernel
    ones = (1,) * len(rest)
    strips = count if rows % count == 0 else rows
    between = (1, strips, *ones, pool.x[-1])
    strip, height = (rows // strips, *rest), (rows // strips, *ones)
    first = PoolGeometry(pool.algorithm, pool.x, between, strip, height, pool.pads)
    return first, PoolGeometry(pool.algorithm, between, pool.y, (strips, *ones), (1, *ones), pool.pads)


def _pads(pads: Pads) -> tuple[Any, Any]:
    return dims([before for before, _ in pads]), dims([after for _, after in pads])
