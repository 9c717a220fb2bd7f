"""Names that NumPy had when TensorFlow 1's programs were written, for while such a program runs."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

#: names that were other names for Python's types until NumPy 1.20, to the type
_TYPES: dict[str, type] = {
    "bool": bool, "int": int, "float": float, "complex": complex, "object": object, "str": str, "long": int,
    "unicode": str,
}  # fmt: skip
#: names that NumPy 2.0 has no more, to those that stand for the same
_RENAMED = {
    "float_": "float64", "complex_": "complex128", "string_": "bytes_", "unicode_": "str_", "Inf": "inf",
    "Infinity": "inf", "infty": "inf", "PINF": "inf", "NaN": "nan", "product": "prod", "cumproduct": "cumprod",
    "alltrue": "all", "sometrue": "any", "round_": "round", "row_stack": "vstack", "in1d": "isin",
    "cfloat": "complex128", "longfloat": "longdouble", "singlecomplex": "complex64", "trapz": "trapezoid",
}  # fmt: skip


def _kinds_of_scalars(np: Any) -> dict[str, list[type]]:
    """Scalar types by their kind."""
    return {
        "int": [np.int8, np.int16, np.int32, np.int64],
        "uint": [np.uint8, np.uint16, np.uint32, np.uint64],
        "float": [np.float16, np.float32, np.float64, np.longdouble],
        "complex": [np.complex64, np.complex128, np.clongdouble],
        "others": [bool, object, bytes, str, np.void],
    }


def _as_floats(np: Any) -> Callable[..., Any]:
    def asfarray(a: Any, dtype: Any = np.float64) -> Any:
        """An array of a, of floats: integers become float64."""
        return np.asarray(a, dtype if np.issubdtype(dtype, np.inexact) else np.float64)

    return asfarray


_MADE: dict[str, Callable[[Any], Any]] = {
    "NINF": lambda np: -np.inf,
    "PZERO": lambda np: 0.0,
    "NZERO": lambda np: -0.0,
    "asscalar": lambda np: np.ndarray.item,
    "rank": lambda np: np.ndim,
    "sctypes": _kinds_of_scalars,
    "asfarray": _as_floats,
}


@contextmanager
def restored() -> Generator[None]:
    """Within this NumPy has the names that it lacks; those that it has, under whatever meaning, stay as they are."""
    import numpy as np

    wanted: dict[str, Any] = {
        **_TYPES,
        **{name: getattr(np, new) for name, new in _RENAMED.items() if hasattr(np, new)},
        **{name: make(np) for name, make in _MADE.items()},
    }
    added = [name for name in wanted if name not in vars(np)]
    for name in added:
        setattr(np, name, wanted[name])
    try:
        yield
    finally:
        for name in added:
            delattr(np, name)
