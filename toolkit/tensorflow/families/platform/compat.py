# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.compat: texts and bytes, numbers of Python and NumPy, sizes that may be Dimensions."""

from __future__ import annotations

import numbers
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from toolkit.client.construction.tensor_shape import Dimension

integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)
bytes_or_text_types = (bytes, str)

#: up to which day ops of later releases may be in a graph: that of TensorFlow 2.21
_horizon = [(2026, 1, 16)]


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """
    Raises:
        TypeError: it is neither bytes nor a text.
    """
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    raise TypeError(f"expected bytes or a text, got {bytes_or_text!r}")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """
    Raises:
        TypeError: it is neither bytes nor a text.
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"expected bytes or a text, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Of bytes their text, of everything else what `str` makes of it."""
    return as_str(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """Of a path object its text; everything else as it is."""
    return as_str_any(path.__fspath__()) if hasattr(path, "__fspath__") else path


def dimension_value(dimension: Any) -> Any:
    """The number, or None, of a Dimension; a number as it is."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape: Any, index: int) -> Any:
    """A size of a shape as a Dimension; of an unknown shape an unknown one."""
    return Dimension(None) if shape.rank is None else shape.dims[index]


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Whether graphs may have what came before a day."""
    return _horizon[-1] > (year, month, day)


@contextmanager
def forward_compatibility_horizon(year: int, month: int, day: int) -> Generator[None]:
    """Within this, graphs may have what came before another day."""
    _horizon.append((year, month, day))
    try:
        yield
    finally:
        _horizon.pop()
