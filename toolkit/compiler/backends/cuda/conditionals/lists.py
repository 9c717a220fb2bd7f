"""Lists of tensors in loops that the device decides: one tensor whose rows are the elements.

The host does not know which element an iteration takes or sets, so a kernel reads the index on the device. An index
that is out of range is noted there (`kernels.cuda.checks`), and whoever replays raises what the list would have. A list
is a value: what sets an element makes another one, in the same memory where nobody looks at the list any more.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from toolkit.errors import UnimplementedError
from toolkit.kernels.cuda.checks import Checks
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.lists import tensor_space
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for
from toolkit.kernels.resources.tensor_list import TensorList

#: the integers that elements are copied as, by their bytes
_WORDS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
_WIDEST = 8


class LoopList(TensorList):
    """A list in memory of its own: `dense` has all elements, those that were not set as zeros."""

    __slots__ = ()

    @staticmethod
    def of(like: TensorList, rows: GpuArray) -> LoopList:
        """Rows as a list of the type of another one."""
        made = LoopList(like.dtype, like.shape, [], like.max_items, rows, like.space)
        made._items, made._length = None, rows.shape[0]
        return made


def as_rows(device: CudaDevice, value: TensorList) -> TensorList:
    """A list whose `dense` has its elements, on the device; itself where it is that.

    Raises:
        UnimplementedError: it does not say what shape elements have, so that nobody knows what those are that are not
            set; or they are no numbers.
    """
    if isinstance(value, LoopList):
        return value
    if not value.shape.is_fully_defined or value.dtype.kind in "srv":
        raise UnimplementedError(f"{device.node} takes a list of {value.dtype} of shape {value.shape}")
    shape = (value.length, *value.shape.as_list())
    if isinstance(rows := value.rows, GpuArray) and rows.shape == shape:
        return LoopList.of(value, rows)
    made = device.zeros(shape, value.dtype.numpy)
    width = made.nbytes // max(value.length, 1)
    for number, item in enumerate(value.items):
        if item is None or not width:
            continue
        if not isinstance(item, GpuArray) or item.shape != shape[1:]:
            raise UnimplementedError(f"{device.node} takes a list with an element of another kind")
        device.context.copy(made.address + number * width, item.address, width, device.compute)
    found = LoopList.of(value, made)
    found.space = tensor_space.space(device.index)
    return found


def get_item(device: CudaDevice, index: GpuArray, value: TensorList) -> GpuArray:
    """The element of a list at an index that the device knows."""
    rows = as_rows(device, value).dense
    made = device.empty(rows.shape[1:], rows.dtype)
    _move(device, rows, made, index, "access", is_set=False)
    return made


def set_item(device: CudaDevice, index: GpuArray, value: TensorList, item: Any, *, in_place: bool) -> LoopList:
    """The list with another element at an index that the device knows.

    Args:
        in_place: nobody looks at the list as it was.
    """
    held = as_rows(device, value)
    shape = held.dense.shape[1:]
    if not isinstance(item, GpuArray) or item.shape != shape or item.dtype != held.dense.dtype:
        raise UnimplementedError(f"{device.node} sets an element of another kind")
    is_own = in_place and isinstance(value, LoopList)
    made = held if is_own else LoopList.of(held, device.copied(held.dense))
    _move(device, made.dense, item, index, "set", is_set=True)
    assert isinstance(made, LoopList)
    return made


def _move(device: CudaDevice, rows: GpuArray, item: GpuArray, index: GpuArray, what: str, *, is_set: bool) -> None:
    checks = device.checks
    if checks is None:
        raise UnimplementedError(f"{device.node} takes an index of which nobody would hear that it is out of range")
    count = rows.shape[0]
    # which index it is, only the device knows
    code = checks.add(device.node, f"Trying to {what} an element out of range in a list with {count} elements.")
    launch_row(device, rows, item, index, checks, code, is_set=is_set)


def launch_row(
    device: CudaDevice, rows: GpuArray, item: GpuArray, index: GpuArray, checks: Checks, code: int, *, is_set: bool
) -> None:
    """Copy a row out of a tensor, or into it, at an index that the device knows.

    Args:
        code: what is noted of one that is out of range.
    """
    width = min(rows.dtype.itemsize, _WIDEST)
    length = math.prod(rows.shape[1:]) * (rows.dtype.itemsize // width)
    kernel = row_kernel(_WORDS[width], is_set=is_set)
    device.launch(kernel, max(blocks_for(length), 1), rows, item, index, checks.word, rows.shape[0], length, code)


@functools.cache
def row_kernel(type: str, *, is_set: bool) -> SimtKernel:
    """Copies a row out of a tensor, or into it.

    Takes rows [count, length], item [length], index [1], word [1], count, length, code. Of an index that is out of
    range `code` is put into the word, if that is 0; the row taken is then zeros.
    """
    k = KernelBuilder(f"row_{'set' if is_set else 'taken'}_{type}", BLOCK)
    rows, item = k.buffer("rows", type, written=is_set), k.buffer("item", type, written=not is_set)
    index, word = k.buffer("index", "i32"), k.buffer("word", "i32", written=True)
    count, length, code = k.scalar("count", "i32"), k.scalar("length", "i64"), k.scalar("code", "i32")
    zero = k.number(0, "i32")
    i, row = k.global_thread("i64"), k.load(index, zero)
    is_there = k.both(k.compare("sge", row, zero), k.compare("slt", row, count))
    with k.when(k.both(k.inverse(is_there), k.compare("eq", i, k.number(0, "i64")))):
        k.compare_exchange(word, zero, zero, code)
    with k.when(k.compare("slt", i, length)):
        place = k.add(k.mul(k.convert(row, "i64"), length), i)
        if is_set:
            with k.when(is_there):
                k.store(rows, place, k.load(item, i))
        else:
            found = k.variable(k.number(0, type))
            with k.when(is_there):
                found.set(k.load(rows, place))
            k.store(item, i, found.get())
    return k.finish()
