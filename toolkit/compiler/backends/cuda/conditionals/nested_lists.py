"""Lists of lists in loops that the device decides: the rows of all lists one behind the other, and how many each has.

The gradient of a While in a While keeps for each iteration of the outer one what the iterations of the inner one kept.
Such a list lies in memory for as many lists of as many elements as runs of the host make likely (`list_uses`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.compiler.backends.cuda.conditionals.growing import GrowingList, end_of
from toolkit.compiler.backends.cuda.conditionals.list_uses import Capacity
from toolkit.compiler.backends.cuda.conditionals.lists import launch_row
from toolkit.errors import UnimplementedError
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.resources.tensor_list import TensorList

_INT32 = np.dtype(np.int32)


class NestedList(GrowingList):
    """A list of lists of the device.

    Attributes:
        dense: [lists, elements, ...], what is in them.
        counts: int32 [lists], how many elements each has.
        like: a list of the kind of its elements; None as long as nothing was pushed.
    """

    __slots__ = ("counts", "like")

    def __init__(self, of: TensorList, dense: GpuArray, count: GpuArray, counts: GpuArray, like: TensorList | None):
        super().__init__(of, dense, count)
        self.counts, self.like = counts, like


def nests(value: TensorList, capacity: Capacity | None) -> bool:
    """Whether a list is one of lists that the device keeps, or may become one."""
    return isinstance(value, NestedList) or (capacity is not None and capacity.inner is not None)


def as_nested(device: CudaDevice, value: TensorList, capacity: Capacity | None) -> NestedList:
    """A list with memory for all lists that it may have; itself where it is one.

    Raises:
        UnimplementedError: it has elements of the host, or nobody knows what theirs are.
    """
    if isinstance(value, NestedList):
        return value
    inner = None if capacity is None else capacity.inner
    if capacity is None or inner is None or inner.shape is None or inner.dtype is None or value.length:
        raise UnimplementedError(f"{device.node} takes {value}: a list of lists")
    lists = capacity.rows
    dense = device.empty((lists, inner.rows, *inner.shape), inner.dtype)
    count, counts = device.zeros((), _INT32), device.zeros((lists,), _INT32)
    return NestedList(value, dense, count, counts, None)


def copied(device: CudaDevice, value: TensorList, capacity: Capacity | None) -> NestedList:
    """The same lists in memory of its own."""
    held = as_nested(device, value, capacity)
    if held is not value:
        return held
    dense, count, counts = (device.copied(part) for part in (held.dense, held.count, held.counts))
    return NestedList(held, dense, count, counts, held.like)


def push(
    device: CudaDevice, value: TensorList, item: Any, capacity: Capacity | None, *, in_place: bool
) -> NestedList:  # fmt: skip
    """The list with one list more.

    Args:
        capacity: how many lists it had so far.
        in_place: nobody looks at it as it was.
    """
    held = as_nested(device, value, capacity)
    is_fit = isinstance(item, GrowingList) and not isinstance(item, NestedList)
    if not is_fit or item.dense.shape != held.dense.shape[1:] or item.dense.dtype != held.dense.dtype:
        raise UnimplementedError(f"{device.node} pushes a list of another kind")
    dense, counts = held.dense, held.counts
    if not in_place or held is not value:
        dense, counts = device.copied(dense), device.copied(counts)
    after = device.empty((), _INT32)
    place, checks, code = end_of(device, held.count, dense.shape[0], "", limit=held.max_items, after=after)
    launch_row(device, dense, item.dense, place, checks, code, is_set=True)
    launch_row(device, counts, item.count, place, checks, code, is_set=True)
    return NestedList(held, dense, after, counts, item)


def pop(device: CudaDevice, held: NestedList, told: str) -> tuple[NestedList, GrowingList]:
    """The list without its last list, and that.

    Args:
        told: what is wrong where there is none.
    """
    if held.like is None:
        raise UnimplementedError(f"{device.node} takes a list out of a list to which none was pushed")
    rows, count = device.empty(held.dense.shape[1:], held.dense.dtype), device.empty((), _INT32)
    after = device.empty((), _INT32)
    place, checks, code = end_of(device, held.count, held.dense.shape[0], told, limit=None, after=after)
    launch_row(device, held.dense, rows, place, checks, code, is_set=False)
    launch_row(device, held.counts, count, place, checks, code, is_set=False)
    return NestedList(held, held.dense, after, held.counts, held.like), GrowingList(held.like, rows, count)
