# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""What the assertions of tf.test compare: values of tensors, elementwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def evaluated(value: Any) -> Any:
    """Values in the place of tensors and variables, in structures too."""
    if hasattr(value, "graph") and hasattr(value, "eval"):
        return value.eval()
    if isinstance(value, Mapping):
        return {key: evaluated(each) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(evaluated(each) for each in value))
    if isinstance(value, list | tuple):
        return type(value)(evaluated(each) for each in value)
    return value


def is_numeric(a: Any, b: Any) -> bool:
    """Whether lists are arrays of numbers."""
    import numpy as np

    try:
        return np.asarray(a).dtype.kind in "biufc" and np.asarray(b).dtype.kind in "biufc"
    except ValueError:
        return False


def more(msg: Any) -> str:
    return f": {msg}" if msg else ""


def array_of(value: Any) -> Any:
    import numpy as np

    array = np.asarray(value)
    return (
        np.array([each.encode() if isinstance(each, str) else each for each in array.ravel().tolist()], object).reshape(
            array.shape
        )
        if array.dtype.kind in "USO"
        else array
    )


def compare(test: Any, a: Any, b: Any, msg: Any, what: str, holds: Callable[[Any, Any, Any], Any]) -> None:
    import numpy as np

    a, b = array_of(a), array_of(b)
    test.assertEqual(a.shape, b.shape, f"the shapes {a.shape} and {b.shape} differ{more(msg)}")
    right = np.asarray(holds(np, a, b), bool)
    if right.all():
        return
    wrong = np.argwhere(~right)
    shown = ", ".join(f"{a[tuple(at)]} and {b[tuple(at)]} at {at.tolist()}" for at in wrong[:3])
    raise test.failureException(f"{len(wrong)} of {a.size} elements are not {what}: {shown}{more(msg)}")


def shape_of(value: Any) -> list[Any]:
    shape = value.static_shape if hasattr(value, "static_shape") else value.shape
    return list(shape.as_list()) if hasattr(shape, "as_list") else list(shape)
