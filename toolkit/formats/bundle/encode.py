"""Arrays as the bytes that data files hold."""

from __future__ import annotations

import math
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph.dtypes import DType

Array = Any


def elements(name: str, array: Array, dtype: DType) -> list[bytes]:
    """The elements of an array of strings or variants, as bytes.

    Raises:
        InvalidArgumentError: some are no such thing.
    """
    if dtype.kind == "r":
        raise InvalidArgumentError(f"tensor '{name}' holds resources, which cannot be saved")
    found: list[bytes] = []
    for element in array.ravel().tolist():
        if isinstance(element, str) and dtype.kind == "s":
            element = element.encode()
        if not isinstance(element, bytes):
            raise InvalidArgumentError(f"tensor '{name}' holds a {type(element).__name__} where {dtype} needs bytes")
        found.append(element)
    return found


def flat_bytes(name: str, array: Array, dtype: DType) -> Array:
    """The little-endian bytes of an array as a flat uint8 array, without a copy where it can be."""
    import numpy as np

    wanted = dtype.numpy
    if array.dtype.name != wanted.name:
        raise InvalidArgumentError(f"tensor '{name}' holds {array.dtype}; {dtype} needs {wanted}")
    array = np.ascontiguousarray(array, wanted.newbyteorder("<") if wanted.isbuiltin == 1 else wanted)
    if array.nbytes != math.prod(array.shape) * wanted.itemsize:
        raise InvalidArgumentError(f"tensor '{name}' cannot be laid out in {wanted.itemsize} bytes per element")
    return array.reshape(-1).view(np.uint8)
