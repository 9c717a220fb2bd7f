"""The elements of lists and arrays in the memory of a GPU; texts, handles and lists within lists are the host's."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from toolkit.graph.dtypes import DType
from toolkit.kernels.cuda.device import CudaDevice, device
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.arrays.join import joined
from toolkit.kernels.gpu.elementwise.nests import NestStep
from toolkit.kernels.gpu.elementwise.node import ElementwiseLaunches
from toolkit.kernels.gpu.primitives.copying import part
from toolkit.kernels.gpu.primitives.layout import ElementLayout
from toolkit.kernels.gpu.state import cells
from toolkit.kernels.resources.tensor_space import HOST, TensorSpace
from toolkit.kernels.tensors import row_major

_ON_HOST = "srv"  # kinds of types: strings, resources, variants


class _GpuSpace:
    """Tensors of one GPU. Parts share the memory of the whole where they begin at an address that kernels can take."""

    def __init__(self, index: int):
        self._index = index

    @property
    def _device(self) -> CudaDevice:
        return device(self._index)

    def zeros(self, dtype: DType, shape: Sequence[int]) -> Any:
        return HOST.zeros(dtype, shape) if dtype.kind in _ON_HOST else self._device.zeros(tuple(shape), dtype.numpy)

    def stacked(self, dtype: DType, items: Sequence[Any]) -> Any:
        if dtype.kind in _ON_HOST:
            return HOST.stacked(dtype, items)
        return self.joined([item.reshaped((1, *item.shape)) for item in map(self._here, items)])

    def joined(self, parts: Sequence[Any]) -> Any:
        return (
            joined(self._device, list(map(self._here, parts)), 0)
            if isinstance(parts[0], GpuArray)
            else HOST.joined(parts)
        )

    def parts(self, value: Any, lengths: Sequence[int]) -> list[Any]:
        if not isinstance(value, GpuArray):
            return HOST.parts(value, lengths)
        inner, found, first = value.shape[1:], list[Any](), 0
        strides = row_major(value.shape)
        for length in lengths:
            layout = ElementLayout((length, *inner), strides, first * strides[0])
            found.append(part(self._device, value, layout))
            first += length
        return found

    def rows(self, value: Any, count: int | None = None) -> list[Any]:
        if not isinstance(value, GpuArray):
            return HOST.rows(value, count)
        inner, wanted = value.shape[1:], value.shape[0] if count is None else count
        strides = row_major(value.shape)
        return [
            part(self._device, value, ElementLayout(inner, strides[1:], index * strides[0])) for index in range(wanted)
        ]

    def computed(self, how: str, a: Any, b: Any) -> Any:
        made = NestStep(how, (0, 1), a.dtype.name)
        return ElementwiseLaunches(self._device, [made], a.dtype).run(a.shape, self._here(a), self._here(b))

    def divided(self, value: Any, by: int) -> Any:
        divisor = self._device.full((), value.dtype, by)
        made = NestStep("TruncateDiv" if value.dtype.kind in "iu" else "RealDiv", (0, 1), value.dtype.name)
        return ElementwiseLaunches(self._device, [made], value.dtype).run(value.shape, value, divisor)

    def brought(self, value: Any) -> Any:
        return self._here(value)

    def _here(self, item: Any) -> GpuArray:
        return cells.brought(self._device, item)


@functools.cache
def space(index: int) -> TensorSpace:
    """That of the GPU with a number, the same each time."""
    return _GpuSpace(index)
