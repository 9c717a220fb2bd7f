"""Stacks in loops that the device decides: rows, and how many of them are elements.

Loops of TensorFlow 1 push what their gradients need, and the loops of these pop it. A stack is put on the device when
it is made; how many rows it has, runs of the host tell where it says no limit (`list_uses`). Whether it asks for host
memory when there is little on the device (swap_memory) is of no interest: the rows of a recording have to stay.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from toolkit.compiler.backends.cuda.conditionals.growing import move_end
from toolkit.compiler.backends.cuda.conditionals.list_uses import Capacity
from toolkit.compiler.backends.cuda.conditionals.nodes import as_number, kept
from toolkit.errors import UnimplementedError
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.lists.tensor_array import stack_of
from toolkit.kernels.resources.stack import Stack


class StackRows(NamedTuple):
    """What the device keeps of a stack.

    Attributes:
        rows: the elements, the first pushed first, and memory for more.
        length: int32 [], how many there are.
    """

    rows: GpuArray
    length: GpuArray


_kept: weakref.WeakKeyDictionary[Stack, StackRows] = weakref.WeakKeyDictionary()


def bring(device: CudaDevice, running: Any, handle: Any, capacity: Capacity | None) -> None:
    """Have the device keep a stack that was just made.

    Args:
        capacity: how many elements it had so far; None where nothing is pushed to it.

    Raises:
        UnimplementedError: nobody knows what its elements are.
    """
    stack = stack_of(running, handle)
    if capacity is None or capacity.shape is None or stack.dtype.kind in "srv":
        raise UnimplementedError(f"{device.node} makes a stack whose elements have no known shape")
    most = capacity.rows if stack.limit < 0 else min(stack.limit, capacity.rows)
    rows = device.empty((most, *capacity.shape), stack.dtype.numpy)
    _kept[stack] = StackRows(rows, device.zeros((), np.int32))


def push(device: CudaDevice, running: Any, handle: Any, item: Any) -> Any:
    """Put an element on a stack; gives the element."""
    stack, (rows, count) = _found(device, running, handle)
    there = as_number(device, item)
    if there.shape != rows.shape[1:] or there.dtype != rows.dtype:
        raise UnimplementedError(f"{device.node} pushes an element of another kind")
    full = f"Stack[{stack.name}] overflowed its max_size ({stack.limit})"
    move_end(device, count, rows, there, full, limit=stack.limit, after=count)
    return item


def pop(device: CudaDevice, running: Any, handle: Any, *, is_number: bool) -> GpuArray:
    """Take the last element.

    Args:
        is_number: it belongs into host memory.
    """
    stack, (rows, count) = _found(device, running, handle)
    item = device.empty(rows.shape[1:], rows.dtype)
    move_end(device, count, rows, item, f"Stack[{stack.name}] is empty when calling Pop().", after=count)
    return kept(item) if is_number else item


def _found(device: CudaDevice, running: Any, handle: Any) -> tuple[Stack, StackRows]:
    stack = stack_of(running, handle)
    rows = _kept.get(stack)
    if rows is None:
        raise UnimplementedError(f"{device.node} takes a stack of the host")
    return stack, rows
