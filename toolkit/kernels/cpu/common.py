"""What many NumPy kernels share: argument checks, broadcasting errors, arithmetic in a wider type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels.types import Array

#: numpy without its annotations: kernels are generic over dtypes, which its overloads cannot follow, so the
#: checker is told nothing rather than something false
np: Any = numpy
#: like numpy.finfo, for the types of ml_dtypes too
finfo: Any = ml_dtypes.finfo

bfloat16 = dtypes.bfloat16.numpy
float16 = dtypes.float16.numpy
#: Types too narrow to compute in: Eigen and numpy both compute them in float32 and round the result.
NARROW_FLOATS = frozenset(t.numpy for t in dtypes.ALL if t.is_floating and t.size < 4)


def shape_text(value: Any) -> str:
    """[2,3], as TensorFlow's messages print shapes; of an array, or a shape as a tuple."""
    shape: tuple[Any, ...] = np.shape(value) if hasattr(value, "shape") else tuple(value)
    return "[" + ",".join(map(str, shape)) + "]"


def require(condition: Any, message: str) -> None:
    """Raise InvalidArgumentError unless the condition holds."""
    if not condition:
        raise InvalidArgumentError(message)


def require_scalar(value: Array, what: str) -> None:
    if np.ndim(value) != 0:
        raise InvalidArgumentError(f"{what} must be a scalar, got shape {shape_text(value)}")


def integer(value: Array, what: str) -> int:
    """The number in a scalar tensor.

    Raises:
        InvalidArgumentError: it is no scalar.
    """
    require_scalar(value, what)
    return int(value)


def flag(value: Array, what: str) -> bool:
    """The truth in a scalar tensor.

    Raises:
        InvalidArgumentError: it is no scalar.
    """
    require_scalar(value, what)
    return bool(value)


def text(value: Any, what: str) -> str:
    """The text in a scalar tensor of strings, or of one string.

    Raises:
        InvalidArgumentError: it is no scalar, or not in UTF-8.
    """
    if not isinstance(value, bytes):
        require_scalar(value, what)
        value = np.asarray(value).item()
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"{what} is not text in UTF-8: {value!r}") from None


def texts(values: Any, what: str) -> list[str]:
    """The texts in a tensor of strings of any shape, or in a list of them.

    Raises:
        InvalidArgumentError: one is not in UTF-8.
    """
    return [text(value, what) for value in np.ravel(values).tolist()]


def require_vector(value: Array, what: str) -> None:
    if np.ndim(value) != 1:
        raise InvalidArgumentError(f"{what} must be a vector, got shape {shape_text(value)}")


def require_room(shape: Sequence[int], dtype: Any) -> None:
    """Ask for the memory of a result, and do not touch it, before anything is worked out for a size out of an input.

    Raises:
        MemoryError, ValueError: there is no room, as NumPy says it; a step makes its own error of it.
    """
    np.empty(shape, dtype)


def require_rank(value: Array, rank: int, what: str) -> None:
    if np.ndim(value) != rank:
        raise InvalidArgumentError(f"{what} must have {rank} dimensions, got shape {shape_text(value)}")


def to_ints(value: Array) -> list[int]:
    """An integer tensor of any shape as a flat list."""
    return np.asarray(value).ravel().tolist()


def wrap_axis(axis: int, rank: int, what: str = "axis") -> int:
    """A possibly negative axis as 0 <= axis < rank.

    Raises:
        InvalidArgumentError: it is out of range.
    """
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"{what} must be in the range [{-rank}, {rank}), got {axis}")
    return axis + rank if axis < 0 else axis


def incompatible(x: Array, y: Array) -> InvalidArgumentError:
    return InvalidArgumentError(f"Incompatible shapes: {shape_text(x)} vs. {shape_text(y)}")


def check_broadcast(x: Array, y: Array) -> tuple[int, ...]:
    """The broadcast shape of two arrays.

    Raises:
        InvalidArgumentError: they do not broadcast.
    """
    try:
        return np.broadcast_shapes(np.shape(x), np.shape(y))
    except ValueError:
        raise incompatible(x, y) from None


def broadcasting(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """A two-argument function whose operands broadcast, with TensorFlow's error when they cannot."""

    def compute(x: Array, y: Array) -> Array:
        try:
            return np.asarray(function(x, y))
        except ValueError:
            check_broadcast(x, y)
            raise

    return compute


def widened(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of arrays of one type that is computed in float32 where the type is narrower."""

    def compute(*values: Array) -> Array:
        dtype = values[0].dtype
        if dtype in NARROW_FLOATS:
            return np.asarray(function(*(v.astype(np.float32) for v in values))).astype(dtype)
        return np.asarray(function(*values), dtype)

    return compute


def wide(x: Array) -> Array:
    """`x`, in float32 when its type is narrower than that."""
    return x.astype(np.float32) if x.dtype in NARROW_FLOATS else x


def product(values: Sequence[int]) -> int:
    out = 1
    for value in values:
        out *= int(value)
    return out


def contiguous_slices(rank: int, axis: int, chosen: slice | int) -> tuple[slice | int, ...]:
    """The index that applies `chosen` on one axis and takes the others whole."""
    return (slice(None),) * axis + (chosen,) + (slice(None),) * (rank - axis - 1)
