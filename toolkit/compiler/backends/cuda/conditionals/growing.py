"""Lists that grow and shrink in loops that the device decides: rows for as many elements as they may have, and a count.

A list that says how many elements it may have gets memory for all of them, others for as many as runs of the host make
likely (`list_uses`): a replay that finds more is done again by the host, and the next recording has more. What pushes
writes the row that the count names, what pops reads it; the count is on the device, so that nobody on the host may ask
for the list's length.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from toolkit.compiler.backends.cuda.conditionals.bounded import BoundedArray
from toolkit.compiler.backends.cuda.conditionals.list_uses import Capacity
from toolkit.compiler.backends.cuda.conditionals.lists import launch_row
from toolkit.errors import UnimplementedError
from toolkit.kernels.cuda.checks import Checks
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import WARP, SimtKernel
from toolkit.kernels.gpu.lists import tensor_space
from toolkit.kernels.resources.tensor_list import UNBOUNDED, TensorList

EMPTY = "Trying to pop from an empty list."


class GrowingList(TensorList):
    """A list whose length the device knows.

    Attributes:
        count: int32 [], how many of the rows in `dense` are elements.
    """

    __slots__ = ("count",)

    def __init__(self, like: TensorList, dense: GpuArray, count: GpuArray):
        super().__init__(like.dtype, like.shape, [], like.max_items, dense, like.space)
        self.count = count

    @property
    def items(self) -> NoReturn:
        """No part of it is the host's."""
        raise UnimplementedError(
            "the elements of a list are asked for, of which the device alone knows how many it has"
        )

    @property
    def length(self) -> NoReturn:
        """No more than its elements."""
        raise UnimplementedError("the length of a list is asked for, which the device alone knows")

    @property
    def rows(self) -> NoReturn:
        """Those of `dense` that are elements."""
        raise UnimplementedError(
            "the elements of a list are asked for, of which the device alone knows how many it has"
        )


def grows(value: Any, capacity: Capacity | None = None) -> bool:
    """Whether it is a list that the device may push to.

    Args:
        capacity: how many elements it had so far, where it is one that the program pushes to.
    """
    return isinstance(value, GrowingList) or (
        isinstance(value, TensorList) and (value.max_items != UNBOUNDED or capacity is not None)
    )


def as_growing(device: CudaDevice, value: TensorList, capacity: Capacity | None = None) -> GrowingList:
    """A list with memory for all that it may have; itself where it is one.

    Args:
        capacity: how many elements it had so far.

    Raises:
        UnimplementedError: it is not known how many elements it may have or of what shape, or these are no numbers.
    """
    if isinstance(value, GrowingList):
        return _enlarged(device, value, capacity)
    declared = value.shape.as_list() if value.shape.is_fully_defined else None
    inner = declared if declared is not None or capacity is None else capacity.shape
    most = _rows(value.max_items, capacity)
    if most == UNBOUNDED or inner is None or value.dtype.kind in "srv":
        raise UnimplementedError(f"{device.node} takes {value}: memory that grows")
    most = max(most, value.length)
    shape = (most, *inner)
    dense = device.zeros(shape, value.dtype.numpy)  # those that were not set as zeros
    width = dense.nbytes // max(most, 1)
    for number, item in enumerate(value.items):
        if item is None and declared is not None:
            continue
        if not isinstance(item, GpuArray) or item.shape != shape[1:]:
            raise UnimplementedError(f"{device.node} takes a list with an element of another kind")
        if width:
            device.context.copy(dense.address + number * width, item.address, width, device.compute)
    made = GrowingList(value, dense, device.full((), np.dtype(np.int32), value.length))
    made.space = tensor_space.space(device.index)
    return made


def _rows(limit: int, capacity: Capacity | None) -> int:
    """Memory for so many elements; UNBOUNDED where nobody knows."""
    if capacity is None:
        return limit
    return capacity.rows if limit == UNBOUNDED else min(limit, capacity.rows)


def _enlarged(device: CudaDevice, held: GrowingList, capacity: Capacity | None) -> GrowingList:
    """The same list, with memory for as many elements as there may be where it is pushed to next."""
    there, wanted = held.dense.shape[0], _rows(held.max_items, capacity)
    if wanted <= there:
        return held
    dense = device.zeros((wanted, *held.dense.shape[1:]), held.dense.dtype)
    if held.dense.nbytes:
        device.context.copy(dense.address, held.dense.address, held.dense.nbytes, device.compute)
    return GrowingList(held, dense, held.count)


def copied(device: CudaDevice, value: TensorList, capacity: Capacity | None = None) -> GrowingList:
    """The same elements in memory of its own."""
    held = as_growing(device, value, capacity)
    if held is not value:
        return held if not isinstance(value, GrowingList) else GrowingList(held, held.dense, device.copied(held.count))
    return GrowingList(held, device.copied(held.dense), device.copied(held.count))


def push(
    device: CudaDevice, compute: Callable[..., Any], value: Any, item: Any, capacity: Capacity | None, *, inside: bool,
    in_place: bool,
) -> TensorList:  # fmt: skip
    """The list with one element more.

    Args:
        compute: the host's kernel, for lists of the host.
        capacity: how many elements it had so far.
        inside: the device decides whether, and how often, this is done.
        in_place: nobody looks at the list as it was.
    """
    if not inside and not isinstance(value, GrowingList):
        return compute(value, item)
    held = as_growing(device, value, capacity)
    if not isinstance(item, GpuArray) or item.shape != held.dense.shape[1:] or item.dtype != held.dense.dtype:
        raise UnimplementedError(f"{device.node} pushes an element of another kind")
    dense = held.dense if in_place and held is value else device.copied(held.dense)
    full = f"Tried to push item into a full list. max_num_elements: {held.max_items}"
    return GrowingList(held, dense, move_end(device, held.count, dense, item, full, limit=held.max_items))


def pop(
    device: CudaDevice, compute: Callable[..., Any], value: Any, shape: Any, *, inside: bool
) -> tuple[TensorList, Any]:  # fmt: skip
    """The list without its last element, and that."""
    if not inside and not isinstance(value, GrowingList):
        return compute(value, shape)
    held = as_growing(device, value)
    item = device.empty(held.dense.shape[1:], held.dense.dtype)
    return GrowingList(held, held.dense, move_end(device, held.count, held.dense, item, EMPTY)), item


def get_item(device: CudaDevice, index: GpuArray, value: GrowingList) -> GpuArray:
    """The element at an index that the device knows."""
    item = device.empty(value.dense.shape[1:], value.dense.dtype)
    _move(device, value, value.dense, item, index, value.count, is_set=False)
    return item


def set_item(
    device: CudaDevice, index: GpuArray, value: GrowingList, item: Any, *, in_place: bool, enlarges: bool
) -> GrowingList:  # fmt: skip
    """The list with another element at an index that the device knows.

    Args:
        in_place: nobody looks at the list as it was.
        enlarges: it becomes longer for an index behind its end.
    """
    if not isinstance(item, GpuArray) or item.shape != value.dense.shape[1:] or item.dtype != value.dense.dtype:
        raise UnimplementedError(f"{device.node} sets an element of another kind")
    dense = value.dense if in_place else device.copied(value.dense)
    after = device.empty((), np.dtype(np.int32))
    _move(device, value, dense, item, index, after, is_set=True, enlarges=enlarges)
    return GrowingList(value, dense, after)


def _move(
    device: CudaDevice, value: GrowingList, dense: GpuArray, item: GpuArray, index: GpuArray, after: GpuArray, *,
    is_set: bool, enlarges: bool = False,
) -> None:  # fmt: skip
    checks = device.checks
    if checks is None:
        raise UnimplementedError(f"{device.node} takes an index of which nobody would hear that it is out of range")
    what = "modify" if is_set else "access"
    code = checks.add(device.node, f"Trying to {what} element out of range in a list.")
    room = checks.add_for_host(device.node) if enlarges else code
    place = device.empty((1,), np.dtype(np.int32))
    kernel = place_kernel(is_set=is_set, enlarges=enlarges)
    device.launch(kernel, 1, value.count, after, index, place, checks.word, dense.shape[0], code, room)
    launch_row(device, dense, item, place, checks, code, is_set=is_set)


def length(device: CudaDevice, value: TensorList) -> GpuArray:
    """How many elements a list has."""
    if isinstance(value, GrowingList):
        return device.copied(value.count)
    return device.full((), np.dtype(np.int32), value.length)


def stacked(device: CudaDevice, value: TensorList, capacity: Capacity | None = None) -> BoundedArray:
    """All elements as one tensor.

    Args:
        capacity: how many there were so far.
    """
    held = as_growing(device, value, capacity)
    return BoundedArray.of(device.copied(held.dense), held.count, 0)


def move_end(
    device: CudaDevice, count: GpuArray, dense: GpuArray, item: GpuArray, told: str, *, limit: int | None = None,
    after: GpuArray | None = None,
) -> GpuArray:  # fmt: skip
    """Move an element to the end of rows, or from there; how many there are then.

    Args:
        told: what is wrong where that cannot be.
        limit: how many there may be; the element is put there. None: it is taken away.
        after: where the number is put; new memory by default.
    """
    if after is None:
        after = device.empty((), np.dtype(np.int32))
    place, checks, code = end_of(device, count, dense.shape[0], told, limit=limit, after=after)
    launch_row(device, dense, item, place, checks, code, is_set=limit is not None)
    return after


def end_of(
    device: CudaDevice, count: GpuArray, most: int, told: str, *, limit: int | None, after: GpuArray
) -> tuple[GpuArray, Checks, int]:  # fmt: skip
    """The place behind the last element of rows, or that of the last one; what is noted where there is none.

    Args:
        most: how many there is memory for.
        told, limit, after: as `move_end` has them.
    """
    checks = device.checks
    if checks is None:
        raise UnimplementedError(f"{device.node} takes a list of which nobody would hear that it is full, or empty")
    is_pushed = limit is not None
    is_room = is_pushed and limit != most
    code = checks.add_for_host(device.node) if is_room else checks.add(device.node, told)
    place = device.empty((1,), np.dtype(np.int32))
    device.launch(count_kernel(is_pushed=is_pushed), 1, count, after, place, checks.word, most, code)
    return place, checks, code


@functools.cache
def count_kernel(*, is_pushed: bool) -> SimtKernel:
    """Takes count, after (the same memory perhaps), place and word, [1] each, the most elements, and what is noted if
    there is no such place."""
    k = KernelBuilder("list_pushed" if is_pushed else "list_popped", WARP)
    count, after, place, word = (k.buffer(name, "i32", written=True) for name in ("count", "after", "place", "word"))
    most, code = k.scalar("most", "i32"), k.scalar("code", "i32")
    zero, one = k.number(0, "i32"), k.number(1, "i32")
    with k.when(k.compare("eq", k.thread, zero)):
        held = k.load(count, zero)
        at = held if is_pushed else k.sub(held, one)
        may = k.both(k.compare("sge", at, zero), k.compare("slt", at, most))
        moved = k.add(held, one) if is_pushed else at
        k.store(place, zero, k.select(may, at, k.number(-1, "i32")))
        k.store(after, zero, k.select(may, moved, held))
        with k.when(k.inverse(may)):
            k.compare_exchange(word, zero, zero, code)
    return k.finish()


@functools.cache
def place_kernel(*, is_set: bool, enlarges: bool) -> SimtKernel:
    """Takes count, after (the same memory perhaps), index, place and word, [1] each, how many elements there is memory
    for, and what is noted of an index out of range, and of one that there is no memory for."""
    k = KernelBuilder(f"list_place_{'set' if is_set else 'taken'}{'_enlarging' * enlarges}", WARP)
    count, after = k.buffer("count", "i32"), k.buffer("after", "i32", written=is_set)
    index, place = k.buffer("index", "i32"), k.buffer("place", "i32", written=True)
    word = k.buffer("word", "i32", written=True)
    most, code, room = (k.scalar(name, "i32") for name in ("most", "code", "room"))
    zero = k.number(0, "i32")
    with k.when(k.compare("eq", k.thread, zero)):
        at, held = k.load(index, zero), k.load(count, zero)
        is_there = k.compare("sge", at, zero)
        may = k.both(is_there, k.compare("slt", at, most if enlarges else held))
        k.store(place, zero, k.select(may, at, k.number(-1, "i32")))
        if is_set:
            longer = k.both(may, k.compare("sge", at, held))
            k.store(after, zero, k.select(longer, k.add(at, k.number(1, "i32")), held))
        with k.when(k.inverse(may)):
            k.compare_exchange(word, zero, zero, k.select(is_there, room, code))
    return k.finish()
