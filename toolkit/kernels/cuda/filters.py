"""Filters as libraries take them: turned over, folded with a batch norm, in another type; made once where they stay."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from toolkit.kernels.cuda.conversions import converted
from toolkit.kernels.cuda.nn.batch_norm import launch_affine
from toolkit.kernels.cuda.nn.channels import launch_epilogue
from toolkit.kernels.cuda.nn.transposes import transposed
from toolkit.kernels.cuda.prepared import Prepared

if TYPE_CHECKING:
    from toolkit.kernels.cuda.convolving import Layer


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
        types: that the filters and the bias are rounded to when they are made; by default they keep their own.

    Attributes:
        filters: turns over what was folded.
    """

    def __init__(self, epsilon: float, types: tuple[Any, Any] | None = None):
        self._epsilon = float(np.float32(epsilon))
        self._types = types
        self._prepared = Prepared(("folded", self._epsilon, types))
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
        if self._types is not None:
            (made,), (shift,) = (converted(device, [x], t) for x, t in zip((made, shift), self._types, strict=True))
        return made, shift


def _turned(device: Any, w: Any, layer: Layer) -> Any:
    channels, filters = layer.channels // layer.groups, layer.filters
    kernel = layer.windows.kernel
    made = transposed(device, w, 1, layer.window, filters, (filters, *kernel, channels))
    if layer.channels_first:
        made = transposed(device, made, filters, layer.taps, channels, (filters, channels, *kernel))
    return made


def turned_back(device: Any, w: Any, layer: Layer) -> Any:
    """A gradient as TensorFlow has filters."""
    channels, filters = layer.channels // layer.groups, layer.filters
    kernel = layer.windows.kernel
    if layer.channels_first:
        w = transposed(device, w, filters, channels, layer.taps, (filters, *kernel, channels))
    return transposed(device, w, 1, filters, layer.window, (*kernel, channels, filters))
