"""Where the elements of lists, arrays and stacks lie, and what is done to them there.

Lists and arrays of tensors are objects of the host. Their elements lie in the memory of the device whose kernels make
and take them, which a `TensorSpace` stands for.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph.device import DeviceSpec
from toolkit.graph.dtypes import DType
from toolkit.kernels import device_types
from toolkit.kernels.device_memory import DeviceArray
from toolkit.kernels.registry import KernelNode
from toolkit.kernels.types import Array

TENSOR = np.ndarray | np.generic | DeviceArray


class TensorSpace(Protocol):
    """A memory with tensors in it; none is changed, results may share memory with what they are made of."""

    def zeros(self, dtype: DType, shape: Sequence[int]) -> Any:
        """A tensor of zeros, of empty strings for strings."""
        ...

    def stacked(self, dtype: DType, items: Sequence[Any]) -> Any:
        """Elements of one shape, at least one, as rows of one tensor."""
        ...

    def joined(self, parts: Sequence[Any]) -> Any:
        """Tensors, at least one, one behind the other along their first axis."""
        ...

    def parts(self, value: Any, lengths: Sequence[int]) -> list[Any]:
        """A tensor cut along its first axis, into parts of these lengths, which are all of it."""
        ...

    def rows(self, value: Any, count: int | None = None) -> list[Any]:
        """The rows of a tensor, or the first ones, each a tensor (or the variant that it holds)."""
        ...

    def computed(self, how: str, a: Any, b: Any) -> Any:
        """Two tensors of one shape put together, number by number: "Add", "Mul", "Maximum" or "Minimum"."""
        ...

    def divided(self, value: Any, by: int) -> Any:
        """A tensor divided by a number; integers towards zero."""
        ...

    def brought(self, value: Any) -> Any:
        """A tensor in this memory, from wherever it is."""
        ...


class _Host:
    """Host memory."""

    def zeros(self, dtype: DType, shape: Sequence[int]) -> Any:
        if dtype.kind == "s":
            return np.full(tuple(shape), b"", object)
        if dtype.kind == "v":
            raise InvalidArgumentError("an uninitialised variant has no value")
        return np.zeros(tuple(shape), dtype.numpy)

    def stacked(self, dtype: DType, items: Sequence[Any]) -> Array:
        if dtype.kind in "rv":
            out = np.empty(len(items), object)
            out[:] = items
            return out
        shape = shape_of(items[0])
        # joining needs no view of each element, as np.stack does
        return np.concatenate(items).reshape(len(items), *shape) if shape else np.stack(items)

    def joined(self, parts: Sequence[Any]) -> Any:
        return np.concatenate(parts)

    def parts(self, value: Any, lengths: Sequence[int]) -> list[Any]:
        return np.split(value, np.cumsum(lengths)[:-1]) if len(lengths) else []

    def rows(self, value: Any, count: int | None = None) -> list[Any]:
        if count is not None:
            return [value[index, ...] for index in range(count)]
        if value.dtype != object:
            return list(value) if value.ndim > 1 else [np.asarray(row) for row in value]
        if value.ndim == 1 and value.size and not isinstance(value[0], bytes):
            return list(value)
        return [_object_row(row) for row in value]

    def computed(self, how: str, a: Any, b: Any) -> Any:
        return _COMPUTED[how](a, b)

    def divided(self, value: Any, by: int) -> Any:
        if value.dtype.kind in "iu":
            return np.sign(value) * (np.abs(value) // value.dtype.type(by))
        return (value / value.dtype.type(by)).astype(value.dtype, copy=False)

    def brought(self, value: Any) -> Any:
        return value.memory.copy_out(value) if isinstance(value, DeviceArray) else value


_COMPUTED = {"Add": np.add, "Mul": np.multiply, "Maximum": np.maximum, "Minimum": np.minimum}


def _object_row(row: Any) -> Array:
    if isinstance(row, np.ndarray):
        return row
    out = np.empty((), object)
    out[()] = row
    return out


HOST: TensorSpace = _Host()


class Composite:
    """A variant: an object of the host with tensors in one memory.

    Attributes:
        space: where they lie.
    """

    __slots__ = ()
    space: TensorSpace

    def moved(self, move: Callable[[Any], Any], space: TensorSpace = HOST) -> Any:
        """The same with its tensors in another memory.

        Args:
            move: gives a tensor there.
        """
        raise NotImplementedError

    def on_host(self) -> Any:
        """The same with its tensors in host memory."""
        return self if self.space is HOST else self.moved(lambda tensor: tensor.memory.copy_out(tensor))


def space_of(op: KernelNode) -> TensorSpace:
    """Where a node has the elements of lists: in host memory, or in that of its device.

    A graph that runs on one CPU is placed nowhere: its nodes still ask for the devices that their author had.
    """
    if op.device_type and not device_types.has_memory(op.device_type):
        return HOST
    spec = DeviceSpec.parse(op.device)
    return space_at(spec.device_type or "CPU", spec.device_index or 0)


def space_at(device_type: str, index: int) -> TensorSpace:
    """Where the elements of lists lie that are on a device."""
    found: TensorSpace | None = device_types.lists(device_type, index)
    return HOST if found is None else found


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of an element; variants and resources that are no arrays are scalars."""
    return value.shape if isinstance(value, TENSOR) else ()
