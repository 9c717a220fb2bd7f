"""Interned constants: plans for other shapes, and other sessions of the same model, pack the same weights.

A packed constant is only read. So where an equal one is in use already, that is taken and the new one goes: a network's
plans for batches of 1, 2, 4 and 8 examples then have most of their weights once. What is looked at first are a few
bytes, so that a first plan pays next to nothing; all bytes are compared only where these agree. And where a plan has
packed the same weights in the same way, the next does not do it again (`Packing`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import numpy as np

from toolkit.compiler.ir.lasting import is_lasting, owner_of
from toolkit.kernels.cpu.memory.addresses import offset_in

#: bytes from which on an array is interned: smaller ones are most of a plan's arrays and little of its memory
LEAST = 1 << 14
#: bytes that are looked at, evenly spread; trained weights differ in nearly all of theirs, so a few tell them apart
_SAMPLES = 64

_Key = tuple[int, bytes]
_ARRAYS: weakref.WeakValueDictionary[_Key, Any] = weakref.WeakValueDictionary()


def interned(array: Any) -> Any:
    """A dense array that nobody writes to, or an equal one of the same shape and type that is there already.

    Of arrays with the same length and samples that are not equal, the newest is known.
    """
    size = array.nbytes
    if size < LEAST:
        return array
    content = _bytes(array)
    key = (size, content[:: len(content) // _SAMPLES].tobytes())
    known = _ARRAYS.get(key)
    alike = known is not None and (known.shape, known.dtype) == (array.shape, array.dtype)
    if alike and np.array_equal(_bytes(known), content):  # as bytes: a NaN is equal to itself
        return known
    _ARRAYS[key] = array
    return array


def _bytes(array: Any) -> Any:
    """What an array holds, in the largest pieces."""
    return array.reshape(-1).view(np.uint8 if array.nbytes % 8 else np.uint64)


class PackedLayout(Protocol):
    """A layout of a library's own."""

    def same(self, other: Any) -> bool: ...


class Packing:
    """What became of a constant. Who uses the result keeps this as long: then the constant is not written to, for
    somebody else has it, and is what the result was made of.

    Attributes:
        result: interned.
        layouts: that it was made from and for.
    """

    __slots__ = ("__weakref__", "_source", "layouts", "result")

    def __init__(self, source: Any, result: Any, layouts: Sequence[PackedLayout]):
        self._source = source
        self.result = result
        self.layouts = layouts


_PACKINGS: weakref.WeakValueDictionary[Hashable, Packing] = weakref.WeakValueDictionary()


def packing(source: Any, how: Hashable, pack: Callable[[], Any], layouts: Sequence[PackedLayout] = ()) -> Packing:
    """A constant packed; what another plan made of it is there while that plan is.

    Args:
        how: all that the result follows from besides the constant and the layouts.
    """
    if not is_lasting(source):
        return Packing(None, interned(pack()), layouts)
    owner = owner_of(source)  # there as long as the source is; a view may go backwards through it
    key = (id(owner), offset_in(source, owner), source.shape, source.strides, source.dtype, how)
    known = _PACKINGS.get(key)
    if known is None or not all(a.same(b) for a, b in zip(known.layouts, layouts, strict=True)):
        known = _PACKINGS[key] = Packing(source, interned(pack()), layouts)
    return known
