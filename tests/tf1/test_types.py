"""Types have TensorFlow's members."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tf1 import node_oracle
from toolkit import tensorflow as tf

NAMES = [
    "float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool", "string", "complex64", "complex128", "qint8", "quint8", "qint32", "resource", "variant",
]  # fmt: skip
MEMBERS = [
    "as_datatype_enum", "base_dtype", "is_bool", "is_complex", "is_floating", "is_integer", "is_numpy_compatible",
    "is_quantized", "is_unsigned", "limits", "max", "min", "name", "real_dtype",
]  # fmt: skip


def shown(dtype: object, member: str) -> str:
    try:
        value = getattr(dtype, member)
    except TypeError:
        return "TypeError"
    except (ValueError, KeyError):  # TensorFlow has both
        return "ValueError"
    parts = value if isinstance(value, tuple) else (value,)
    return " ".join(str(getattr(part, "name", part)) for part in parts)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", NAMES)
def test_types_have_tensorflows_members(name: str) -> None:
    theirs = getattr(node_oracle.theirs(), name)
    ours = getattr(tf, name)
    differing = [member for member in MEMBERS if shown(ours, member) != shown(theirs, member)]
    assert not differing, [(member, shown(ours, member), shown(theirs, member)) for member in differing]
    assert tf.as_dtype(theirs.as_datatype_enum) is ours
    if name not in ("resource", "variant") and not theirs.is_quantized:
        assert ours.as_numpy_dtype is theirs.as_numpy_dtype


def test_values_that_name_types() -> None:
    assert [tf.as_dtype(v) for v in ("float", np.float32, np.dtype("int64"), bool, tf.int8, 3)] == [
        tf.float32, tf.float32, tf.int64, tf.bool, tf.int8, tf.int32,
    ]  # fmt: skip
    for wrong in ("floot", None, object(), 9999):
        with pytest.raises(TypeError, match="names no type"):
            tf.as_dtype(wrong)
