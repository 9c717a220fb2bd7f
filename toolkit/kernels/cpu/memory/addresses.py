"""Addresses of arrays: the one place where they are made, and never for more bytes than an array has.

oneDNN (`onednn.memory`) and compiled code (`native`) are told where a tensor is by what is here. Who asks says which
bytes will be touched; an array that does not have them, or that has gaps, is refused before anything can touch it.
Where something is prepared once that is a comparison of two integers, where an array comes in every step as well.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.errors import InternalError
from toolkit.kernels.cpu.memory import guard
from toolkit.kernels.types import Array

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
_Byte = ctypes.c_char  # the buffer protocol answers in a quarter of the time


def address(array: Array, stop: int, start: int = 0) -> int:
    """Where the first element of a dense array is, for who touches its bytes from `start` up to `stop`.

    Raises:
        InternalError: it does not have them, or is not dense.
    """
    if stop > array.nbytes or start < 0:
        raise _outside(array.nbytes, start, stop)
    try:
        return ctypes.addressof(_Byte.from_buffer(array))  # refuses what is not dense
    except (TypeError, ValueError):  # of a type of its own, read-only, empty, or with gaps
        if not array.flags.c_contiguous:
            raise InternalError("an array with gaps was to be given to compiled code") from None
        return array.__array_interface__["data"][0]


def address_of_view(array: Array, stop: int) -> int:
    """Where the first element of an array is that may be a transposed view, for who touches so many bytes from there.

    Raises:
        InternalError: it does not have them.
    """
    if array.flags.c_contiguous:
        return address(array, stop)
    steps = list(zip(array.strides, array.shape, strict=True))
    reach = sum((size - 1) * step for step, size in steps) + array.itemsize if array.size else 0
    if stop > reach or any(step < 0 for step, _ in steps):
        raise _outside(reach, 0, stop)
    return array.__array_interface__["data"][0]


def offset_in(part: Array, whole: Array) -> int:
    """How many bytes behind the first element of an array that of a view of it is."""
    return part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]


def same_place(first: Array, second: Array) -> bool:
    """Whether two arrays begin at one place."""
    return offset_in(first, second) == 0


def begins_at_multiple(array: Array, alignment: int) -> bool:
    """Whether an array's address is a multiple of so many bytes."""
    return array.__array_interface__["data"][0] % alignment == 0


def aligned(size: int, name: str = "a buffer") -> Array:
    """A fresh buffer of bytes that starts at a multiple of `ALIGNMENT`.

    Args:
        name: what reports call it (`guard`).
    """
    if guard.is_on():
        return guard.zoned(size, name)
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.__array_interface__["data"][0] % ALIGNMENT
    return raw[start : start + size]


def fresh(shape: Sequence[int], dtype: Any, name: str = "a tensor of its own") -> Array:
    """A new array for compiled code to fill."""
    return guard.empty(shape, np.dtype(dtype), name) if guard.is_on() else np.empty(shape, dtype)


def held(array: Array, name: str = "a tensor from outside") -> Array:
    """An array as compiled code is given it: dense; with zones around a copy of it where they are wanted."""
    if not guard.is_on():
        return np.ascontiguousarray(array)
    copy = guard.empty(array.shape, array.dtype, name)
    np.copyto(copy, array)
    return copy


def _outside(nbytes: int, start: int, stop: int) -> InternalError:
    return InternalError(f"bytes {start} to {stop} of an array of {nbytes} bytes were to be given to compiled code")


class Table:
    """What a compiled function takes: addresses, and numbers in the places of addresses. It keeps the arrays.

    Attributes:
        cells: its int64s; what runs many times reads and writes numbers here.
        pointer: its own address, as the argument of a function.
        address: the same as a number.
    """

    __slots__ = ("_keep", "address", "cells", "pointer")

    def __init__(self, length: int):
        self.cells: Any = (ctypes.c_int64 * length)()
        self.address: int = ctypes.addressof(self.cells)
        self.pointer = ctypes.c_void_p(self.address)
        self._keep: list[Any] = []

    def number(self, index: int, number: int) -> None:
        self.cells[index] = number

    def keep(self, thing: Any) -> None:
        """Let something live as long as the table, whose numbers stand for it."""
        self._keep.append(thing)

    def table(self, index: int, table: Table) -> None:
        """The address of another table."""
        self.cells[index] = table.address
        self._keep.append(table)

    def point(self, index: int, array: Array, stop: int, start: int = 0, offset: int = 0) -> None:
        """The address of an array, or of what lies `offset` bytes behind its first element.

        Args:
            stop, start: the bytes that are touched, from that address on.
        """
        self.cells[index] = address(array, offset + stop, offset + start) + offset
        self._keep.append(array)

    def place(self, index: int, array: Array, stop: int) -> None:
        """The address of an array that the caller keeps for as long as it is there."""
        self.cells[index] = address(array, stop)

    def slot(self, index: int, offset: int = 0) -> Slot:
        """An address that is filled in later."""
        return Slot(self, index, offset)


class Slot:
    """A place in a table for the address of an array that is known later, or of what is `offset` bytes further on."""

    __slots__ = ("_keep", "cell", "offset")

    def __init__(self, table: Table, index: int, offset: int):
        self._keep = table
        self.cell: Any = ctypes.c_int64.from_buffer(table.cells, index * ctypes.sizeof(ctypes.c_int64))
        self.offset = offset

    @property
    def address(self) -> int:
        """Of the slot itself: compiled code fills it in where a tensor moves from iteration to iteration."""
        return ctypes.addressof(self.cell)


class Pinned:
    """Who must be told where a tensor is that lies outside an arena: slots of tables, and memories of oneDNN.

    Args:
        nbytes: of the tensor; nobody who is told touches more.
        memories: pairs of a function and the handle that it takes with the address.
    """

    __slots__ = ("memories", "nbytes", "slots")

    def __init__(self, nbytes: int, slots: list[Slot], memories: list[tuple[Callable[[Any, Any], Any], Any]]):
        self.nbytes = nbytes
        self.slots = slots
        self.memories = memories

    def point(self, array: Array) -> None:
        """
        Raises:
            InternalError: the array is of another size, or not dense.
        """
        nbytes = self.nbytes
        if array.nbytes != nbytes:
            raise _outside(array.nbytes, 0, nbytes)
        place = address(array, nbytes)
        for slot in self.slots:
            slot.cell.value = place + slot.offset
        if self.memories:
            pointer = ctypes.c_void_p(place)
            for set_handle, memory in self.memories:
                set_handle(memory, pointer)


def elements(array: Array) -> range:
    """The addresses of all elements of a dense array, for who touches one element at each."""
    first = address(array, array.nbytes)
    return range(first, first + array.nbytes, array.itemsize)


def record(*numbers: int) -> Any:
    """The argument of a compiled function that is called at once: numbers, and what `address` said of arrays that the
    caller has until it returns."""
    return (ctypes.c_int64 * len(numbers))(*numbers)
