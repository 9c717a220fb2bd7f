"""Convolutions and their gradients on a GPU: by a matrix product, by cuDNN, or by kernels of our own.

A window of one element makes a convolution a product of matrices as they lie in memory. For all others cuDNN wants
filters with the filter's number first; those of a model that does not change are turned over once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.kernels.cpu.nn.window import Windows
from toolkit.kernels.cuda.conversions import convert_into, converted
from toolkit.kernels.cuda.filters import Filters, turned_back
from toolkit.kernels.cuda.libraries.base import Convolution
from toolkit.kernels.cuda.libraries.precision import is_tf32_allowed
from toolkit.kernels.cuda.nn.channels import launch_epilogue
from toolkit.kernels.cuda.nn.common import dense, geometry
from toolkit.kernels.cuda.nn.convolutions import launch_convolution
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

    def planned(
        self, kind: str, dtype: Any, *, deterministic: bool, epilogue: tuple[str, ...] = (), made: Any = None
    ) -> Convolution:
        """As the library is asked for it; a single axis gets a second one of one element."""
        w = self.windows
        more = max(0, 2 - len(w.sizes))
        ones, none = (1,) * more, ((0, 0),) * more
        return Convolution(
            kind, dtype.name, self.batch, self.channels, self.filters, self.groups, (*ones, *w.sizes),
            (*ones, *w.kernel), (*ones, *w.out), (*ones, *w.strides), (*ones, *w.dilations), (*none, *w.pads),
            self.channels_first, epilogue, is_tf32_allowed(), deterministic,
            "" if made is None or made == dtype else made.name,
        )  # fmt: skip

    def supported(
        self, dnn: Any, kind: str, dtype: Any, *, deterministic: bool, epilogue: tuple[str, ...] = (), made: Any = None
    ) -> Convolution | None:
        """As the library is asked for it, None where there is none or it has no plan; found once.

        Args:
            made: the result's type, where it is not the operands'.
        """
        if dnn is None:
            return None
        key = dnn, kind, dtype, deterministic, epilogue, is_tf32_allowed(), made
        try:
            return self._plans[key]
        except KeyError:
            of = self.planned(kind, dtype, deterministic=deterministic, epilogue=epilogue, made=made)
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


def convolve(
    device: Any, layer: Layer, x: Any, w: Any, filters: Filters, fused: Fused | None = None, dtype: Any = None
) -> Any:
    """y of x and w (kernel..., channels / groups, filters), put into the device's compute stream.

    Args:
        fused: what follows, in the type of the result.
        dtype: of the result: by default x's; or float32, which products of 16-bit floats are added in.
    """
    fused = fused or Fused()
    y = device.empty(layer.y_shape, dtype or x.dtype)
    if not y.nbytes:
        return y
    inner = layer.positions if layer.channels_first else 1
    if not w.nbytes or not x.nbytes:
        y = device.zeros(layer.y_shape, y.dtype)
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
        of = layer.supported(
            dnn, "forward", x.dtype, deterministic=device.deterministic, epilogue=names, made=_other(y, x)
        )
        if of is not None:
            bias = fused.vectors[0] if "bias" in names else None
            added = fused.added if "add" in names else None
            dnn.convolve(of, x, filters.turned(device, w, layer), y, device.compute, bias=bias, added=added)
            return of
    return _rounded(device, layer, "forward", lambda: (x, filters.turned(device, w, layer)), x.dtype, y)


def _other(made: Any, given: Any) -> Any:
    """The type of what is made, where it is another one than that of what is given."""
    return None if made.dtype == given.dtype else made.dtype


def _rounded(
    device: Any, layer: Layer, kind: str, operands: Callable[[], tuple[Any, Any]], dtype: Any, out: Any
) -> Convolution | None:
    """Have a library that gives 16-bit floats as such alone do it, and widen that; what it did, None if it cannot.

    Args:
        operands: makes them.
        dtype: of the operands.
    """
    dnn = device.context.dnn
    if out.dtype == dtype:
        return None
    of = layer.supported(dnn, kind, dtype, deterministic=device.deterministic)
    if of is not None:
        made = device.empty(out.shape, dtype)
        dnn.convolve(of, *operands(), made, device.compute)
        convert_into(device, [(made, out)])
    return of


def _names(fused: Fused) -> tuple[str, ...] | None:
    """The library's names of what follows; None where it has not all of it, or nothing follows."""
    if fused.is_nothing or len(fused.vectors) > 1 or fused.slope:
        return None
    if fused.name != "Identity" and fused.name not in _ACTIVATIONS:
        return None
    last = [] if fused.name == "Identity" else [_ACTIVATIONS[fused.name]]
    return (*(["bias"] if fused.vectors else []), *(["add"] if fused.added is not None else []), *last)


def input_gradient(
    device: Any, layer: Layer, w: Any, dy: Any, shape: tuple[int, ...], filters: Filters, dtype: Any = None
) -> Any:
    """dx, of a shape, of w and dy; its type is dy's, or float32 of 16-bit floats."""
    dtype = dtype or dy.dtype
    if not dy.nbytes or not w.nbytes:
        return device.zeros(shape, dtype)
    dx = device.empty(shape, dtype)
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
    of = layer.supported(dnn, "input", dy.dtype, deterministic=device.deterministic, made=_other(dx, dy))
    if of is not None:
        dnn.convolve(of, filters.turned(device, w, layer), dy, dx, device.compute)
    elif not _rounded(device, layer, "input", lambda: (filters.turned(device, w, layer), dy), dy.dtype, dx):
        launch_convolution(device, "input", layer.geometry(), layer.groups, layer.filters, (w, dy, dx))
    return dx


def filter_gradient(device: Any, layer: Layer, x: Any, dy: Any, shape: tuple[int, ...], dtype: Any = None) -> Any:
    """dw, of a shape (kernel..., channels / groups, filters), of x and dy; its type is x's, or float32 of 16-bit
    floats.
    """
    dtype = dtype or x.dtype
    if not dy.nbytes or not x.nbytes:
        return device.zeros(shape, dtype)
    if layer.is_product and not layer.channels_first:
        dw = device.empty(shape, dtype)
        sizes = (layer.channels, layer.filters, layer.batch * layer.positions)
        multiply(device, x, dy, dw, sizes, ("T", "N"))
        return dw
    dnn = device.context.dnn
    for made in dict.fromkeys((dtype, x.dtype)):
        of = layer.supported(
            dnn, "filter", x.dtype, deterministic=device.deterministic, made=None if made == x.dtype else made
        )
        if of is not None:
            turned = device.empty(of.w_shape, made)
            dnn.convolve(of, x, dy, turned, device.compute)
            return converted(device, [turned_back(device, turned, layer)], dtype)[0]
    dw = device.empty(shape, dtype)
    launch_convolution(device, "filter", layer.geometry(), layer.groups, layer.filters, (x, dy, dw))
    return dw
