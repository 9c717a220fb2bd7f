"""Tensors as text, the way TensorFlow's Tensor::SummarizeValue writes them."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.kernels.types import Array


def element(value: Any, *, quoted: bool = True) -> str:
    """One element: shortest floats, quoted strings, 0 and 1 for bools as C++ prints them."""
    if isinstance(value, bytes):
        text = value.decode("utf-8", "surrogateescape")
        return f'"{text}"' if quoted else text
    if isinstance(value, bool | np.bool_):
        return "1" if value else "0"
    if isinstance(value, complex | np.complexfloating):
        return f"({element(value.real)},{element(value.imag)})"
    if isinstance(value, int | np.integer):
        return str(int(value))
    return _float(value)


def _float(value: Any) -> str:
    """Six significant digits, or as many more as make the number come back (FloatToBuffer)."""
    dtype = value.dtype if hasattr(value, "dtype") else np.dtype(np.float64)
    if np.isnan(value) or np.isinf(value):
        return "nan" if np.isnan(value) else "inf" if value > 0 else "-inf"
    few, many = (15, 17) if dtype == np.float64 else (6, 9)
    wide = float(value)
    text = f"{wide:.{few}g}"
    return text if dtype.type(float(text)) == value else f"{wide:.{many}g}"


def summarize(array: Array, limit: int, *, nested: bool) -> str:
    """The first elements of a tensor, or with `nested` the first and last ones of every axis.

    Args:
        limit: how many; -1 for all.
        nested: brackets and line breaks as numpy prints; otherwise one level of brackets for each last axis.
    """
    if not isinstance(array, np.ndarray | np.generic):
        return f"<{type(array).__name__}>"
    value: Any = np.asarray(array)
    if nested:
        return _nested(value, limit, value.ndim)
    if value.ndim == 0:
        return element(value[()], quoted=False)
    if limit < 0:
        limit = value.size
    out = _rows(value, [limit])
    return out + ("..." if limit < value.size else "")


def _rows(value: Array, left: list[int]) -> str:
    """Nested rows until the budget in `left` is used up."""
    if value.ndim == 1:
        shown = value[: left[0]]
        left[0] -= len(shown)
        return " ".join(element(v, quoted=False) for v in shown)
    parts: list[str] = []
    for row in value:
        if left[0] <= 0:
            break
        parts.append("[" + _rows(row, left) + "]")
    return "".join(parts)


def _nested(value: Array, limit: int, rank: int) -> str:
    if value.ndim == 0:
        return element(value[()])
    count = len(value)
    if limit < 0 or count <= 2 * limit:
        picked: list[Any] = [value[i] for i in range(count)]
        gap = None
    else:
        picked = [value[i] for i in range(limit)] + [value[i] for i in range(count - limit, count)]
        gap = limit
    depth = value.ndim
    between = " " if depth == 1 else "\n" * (depth - 1) + " " * (rank - depth + 1)
    texts = [_nested(np.asarray(v, value.dtype), limit, rank) for v in picked]
    if gap is not None:
        texts.insert(gap, "...")
    return "[" + between.join(texts) + "]"
