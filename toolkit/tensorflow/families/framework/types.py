# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.as_dtype: what values name a type."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction import convert
from toolkit.errors import GraphmillError
from toolkit.graph import dtypes


def as_dtype(type_value: Any) -> dtypes.DType:
    """The type that a type, a name, a number of the DataType enum, or a type of Python or NumPy stands for.

    Raises:
        TypeError: it stands for none.
    """
    try:
        if isinstance(type_value, int) and not isinstance(type_value, bool):
            return dtypes.from_enum(type_value)
        return convert.as_dtype(type_value)
    except (GraphmillError, TypeError, KeyError):
        raise TypeError(f"{type_value!r} names no type; give one such as tf.float32 or 'float32'") from None
