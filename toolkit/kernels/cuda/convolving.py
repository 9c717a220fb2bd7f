"""Convolutions and their gradients on a GPU: by a matrix product, by cuDNN, or by kernels of our own.

A window of one element makes a convolution a product of matrices as they lie in memory. For all others cuDNN wants
filters with the filter's number first; those of a model that does not change are turned over once.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toolkit.kernels.cpu.nn_window import Windows
from toolkit.kernels.cuda.libraries.base import Convolution
from toolkit.kernels.cuda.libraries.precision import is_tf32_allowed
from toolkit.kernels.cuda.nn.batch_norm import launch_affine
from toolkit.kernels.cuda.nn.channels import launch_epilogue
from toolkit.kernels.cuda.nn.common import dense, geometry
from toolkit.kernels.cuda.nn.convolutions import launch_convolution
from toolkit.kernels.cuda.nn.transposes import transposed
from toolkit.kernels.cuda.prepared import Prepared
from toolkit.kernels.cuda.products import Batch, multiply

#: TensorFlow's names of activations and cuDNN's
_ACTIVATIONS = {
    "Relu": "relu", "Relu6": "relu6", "Elu": "elu", "Sigmoid": "sigmoid", "_MklSwish": "swish",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution's shapes.

    Attributes:
        windows: along the spatial axes.
        batch, channels, filters, groups: of all.
        channels_first: how x and y lie in memory.
    """

    windows: Windows
    batch: int
    channels: int
    filters: int
    groups: int
    channels_first: bool
    _plans: dict[tuple[Any, ...], Convolution | None] = field(
        default_factory=dict[tuple[Any, ...], Convolution | None], compare=False, repr=False
    )

    @property
    def is_product(self) -> bool:
        """Whether it is a product of matrices as they lie in memory."""
        return self.windows.is_pointwise and self.groups == 1

    @property
    def positions(self) -> int:
        """Of an output of one example."""
        return math.prod(self.windows.out)

    @property
    def taps(self) -> int:
        return math.prod(self.windows.kernel)

    @property
    def window(self) -> int:
        """Elements of a window."""
        return self.taps * self.channels // self.groups

    @property
    def y_shape(self) -> tuple[int, ...]:
        spatial = self.windows.out
        return (self.batch, self.filters, *spatial) if self.channels_first else (self.batch, *spatial, self.filters)

    def planned(self, kind: str, dtype: Any, *, deterministic: bool, epilogue: tuple[str, ...] = ()) -> Convolution:
        """As the library is asked for it; a single axis gets a second one of one element."""
        w = self.windows
        more = max(0, 2 - len(w.sizes))
        ones, none = (1,) * more, ((0, 0),) * more
        return Convolution(
            kind, dtype.name, self.batch, self.channels, self.filters, self.groups, (*ones, *w.sizes),
            (*ones, *w.kernel), (*ones, *w.out), (*ones, *w.strides), (*ones, *w.dilations), (*none, *w.pads),
            self.channels_first, epilogue, is_tf32_allowed(), deterministic,
        )  # fmt: skip

    def supported(
        self, dnn: Any, kind: str, dtype: Any, *, deterministic: bool, epilogue: tuple[str, ...] = ()
    ) -> Convolution | None:
        """As the library is asked for it, None where there is none or it has no plan; found once."""
        if dnn is None:
            return None
        key = dnn, kind, dtype, deterministic, epilogue, is_tf32_allowed()
        try:
            return self._plans[key]
        except KeyError:
            of = self.planned(kind, dtype, deterministic=deterministic, epilogue=epilogue)
            found = self._plans[key] = of if dnn.supports(of) else None
            return found

    def geometry(self) -> Any:
        """As our kernels take it, with the channels of a group."""
        g = geometry(
            self.windows, self.batch, self.channels // self.groups, self.filters, channels_first=self.channels_first
        )
        return g._replace(x=dense(g.sizes, self.channels, self.channels_first))


@dataclass(frozen=True, slots=True)
class Fused:
    """What follows a convolution: activation(y + bias + added), or y * factor + shift in place of the bias.

    Attributes:
        vectors: none, the bias, or factors and shifts.
        added: of y's shape.
        name, slope: of the activation, as `fused_ops` has it.
    """

    vectors: Sequence[Any] = ()
    added: Any = None
    name: str = "Identity"
    slope: float = 0.0

    @property
    def is_nothing(self) -> bool:
        return not self.vectors and self.added is None and self.name == "Identity"


class Filters:
    """The filters of a node, turned over for the library.

    Args:
        is_constant: they never change, so that they are turned over once.
    """

    def __init__(self, *, is_constant: bool):
        self._is_constant = is_constant
        self._known: tuple[weakref.ref[Any], bool, Any] | None = None

    def turned(self, device: Any, w: Any, layer: Layer) -> Any:
        """(kernel..., C, F) as (F, kernel..., C), or as (F, C, kernel...) where channels are first."""
        known = self._known
        if known is not None and known[0]() is w and known[1] == layer.channels_first:
            return known[2]
        made = _turned(device, w, layer)
        if self._is_constant and not device.is_recording:  # what is recorded has memory of its own, not ours to keep
            self._known = weakref.ref(w), layer.channels_first, made
        return made


class StayingFilters(Filters):
    """Filters that are constants or variables: turned over again when they were changed."""

    def __init__(self) -> None:
        super().__init__(is_constant=False)
        self._prepared = {first: Prepared(("turned", first)) for first in (False, True)}

    def turned(self, device: Any, w: Any, layer: Layer) -> Any:
        prepared = self._prepared[layer.channels_first]
        return prepared.of(device, [w], lambda: _turned(device, w, layer))


class Folding:
    """A batch norm at inference put into the filters before it and into a bias.

    Args:
        epsilon: of the batch norm.

    Attributes:
        filters: turns over what was folded.
    """

    def __init__(self, epsilon: float):
        self._epsilon = float(np.float32(epsilon))
        self._prepared = Prepared(("folded", self._epsilon))
        self.filters = StayingFilters()

    def folded(self, device: Any, w: Any, norm: Sequence[Any]) -> tuple[Any, Any]:
        """The filters (kernel..., channels, filters) times the norm's factors, and its shift.

        Args:
            norm: scale, offset, mean and variance.
        """
        return self._prepared.of(device, [w, *norm], lambda: self._made(device, w, norm))

    def _made(self, device: Any, w: Any, norm: Sequence[Any]) -> tuple[Any, Any]:
        scale, offset, mean, variance = norm
        factor, shift = launch_affine(device, scale, offset, mean, variance, self._epsilon)
        made, nothing = device.empty(w.shape, w.dtype), device.zeros(factor.shape, factor.dtype)
        launch_epilogue(device, w, made, w.shape[-1], 1, vectors=(factor, nothing))
        return made, shift


def _turned(device: Any, w: Any, layer: Layer) -> Any:
    channels, filters = layer.channels // layer.groups, layer.filters
    kernel = layer.windows.kernel
    made = transposed(device, w, 1, layer.window, filters, (filters, *kernel, channels))
    if layer.channels_first:
        made = transposed(device, made, filters, layer.taps, channels, (filters, channels, *kernel))
    return made


def _turned_back(device: Any, w: Any, layer: Layer) -> Any:
    """A gradient as TensorFlow has filters."""
    channels, filters = layer.channels // layer.groups, layer.filters
    kernel = layer.windows.kernel
    if layer.channels_first:
        w = transposed(device, w, filters, channels, layer.taps, (filters, *kernel, channels))
    return transposed(device, w, 1, filters, layer.window, (*kernel, channels, filters))


def convolve(device: Any, layer: Layer, x: Any, w: Any, filters: Filters, fused: Fused | None = None) -> Any:
    """y of x and w (kernel..., channels / groups, filters), put into the device's compute stream."""
    fused = fused or Fused()
    y = device.empty(layer.y_shape, x.dtype)
    if not y.nbytes:
        return y
    inner = layer.positions if layer.channels_first else 1
    if not w.nbytes or not x.nbytes:
        y = device.zeros(layer.y_shape, x.dtype)
    elif layer.is_product and not layer.channels_first and x.dtype.kind != "i":
        sizes = (layer.batch * layer.positions, layer.filters, layer.channels)
        if len(fused.vectors) > 1 or fused.slope:
            multiply(device, x, w, y, sizes)
        else:
            bias = fused.vectors[0] if fused.vectors else None
            multiply(device, x, w, y, sizes, bias=bias, added=fused.added, name=fused.name)
            fused = Fused()
    elif layer.is_product and x.dtype.kind != "i":
        batch = Batch((0, 0, 0), layer.batch, (0, 1, 1))
        multiply(device, w, x, y, (layer.filters, layer.positions, layer.channels), ("T", "N"), batch=batch)
    elif not (of := _library(device, layer, x, w, y, filters, fused)):
        launch_convolution(device, "forward", layer.geometry(), layer.groups, layer.filters, (x, w, y))
    elif of.epilogue or fused.is_nothing:
        return y
    if not fused.is_nothing:
        launch_epilogue(
            device, y, y, layer.filters, inner, vectors=fused.vectors, added=fused.added, name=fused.name,
            slope=fused.slope,
        )  # fmt: skip
    return y


def _library(device: Any, layer: Layer, x: Any, w: Any, y: Any, filters: Filters, fused: Fused) -> Convolution | None:
    """Have the library do it, if it can; what it did."""
    dnn = device.context.dnn
    for names in (_names(fused), ()):
        if names is None:
            continue
        of = layer.supported(dnn, "forward", x.dtype, deterministic=device.deterministic, epilogue=names)
        if of is not None:
            bias = fused.vectors[0] if "bias" in names else None
            added = fused.added if "add" in names else None
            dnn.convolve(of, x, filters.turned(device, w, layer), y, device.compute, bias=bias, added=added)
            return of
    return None


def _names(fused: Fused) -> tuple[str, ...] | None:
    """The library's names of what follows; None where it has not all of it, or nothing follows."""
    if fused.is_nothing or len(fused.vectors) > 1 or fused.slope:
        return None
    if fused.name != "Identity" and fused.name not in _ACTIVATIONS:
        return None
    last = [] if fused.name == "Identity" else [_ACTIVATIONS[fused.name]]
    return (*(["bias"] if fused.vectors else []), *(["add"] if fused.added is not None else []), *last)


def input_gradient(device: Any, layer: Layer, w: Any, dy: Any, shape: tuple[int, ...], filters: Filters) -> Any:
    """dx, of a shape, of w and dy."""
    if not dy.nbytes or not w.nbytes:
        return device.zeros(shape, dy.dtype)
    dx = device.empty(shape, dy.dtype)
    if not dx.nbytes:
        return dx
    if layer.is_product and dy.dtype.kind != "i":
        if not layer.channels_first:
            sizes = (layer.batch * layer.positions, layer.channels, layer.filters)
            multiply(device, dy, w, dx, sizes, ("N", "T"))
        else:
            batch = Batch((0, 0, 0), layer.batch, (0, 1, 1))
            multiply(device, w, dy, dx, (layer.channels, layer.positions, layer.filters), batch=batch)
        return dx
    dnn = device.context.dnn
    of = layer.supported(dnn, "input", dy.dtype, deterministic=device.deterministic)
    if of is not None:
        dnn.convolve(of, filters.turned(device, w, layer), dy, dx, device.compute)
    else:
        launch_convolution(device, "input", layer.geometry(), layer.groups, layer.filters, (w, dy, dx))
    return dx


def filter_gradient(device: Any, layer: Layer, x: Any, dy: Any, shape: tuple[int, ...]) -> Any:
    """dw, of a shape (kernel..., channels / groups, filters), of x and dy."""
    if not dy.nbytes or not x.nbytes:
        return device.zeros(shape, x.dtype)
    if layer.is_product and not layer.channels_first:
        dw = device.empty(shape, x.dtype)
        sizes = (layer.channels, layer.filters, layer.batch * layer.positions)
        multiply(device, x, dy, dw, sizes, ("T", "N"))
        return dw
    dnn = device.context.dnn
    of = layer.supported(dnn, "filter", x.dtype, deterministic=device.deterministic)
    if of is not None:
        turned = device.empty(of.w_shape, x.dtype)
        dnn.convolve(of, x, dy, turned, device.compute)
        return _turned_back(device, turned, layer)
    dw = device.empty(shape, x.dtype)
    launch_convolution(device, "filter", layer.geometry(), layer.groups, layer.filters, (x, dy, dw))
    return dw
