"""Matrices in compressed sparse rows, alone or in batches: the values behind CSRSparseMatrix variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.resources.tensor_space import HOST, Composite, TensorSpace

#: places are counted by 64 bits
_MOST_PLACES = (1 << 63) - 1


@dataclass(frozen=True, eq=False)
class CsrMatrix(Composite):
    """A batch of sparse matrices. Its tensors lie in the memory of the device whose kernels made it.

    Attributes:
        shape: [rows, columns] or [batch, rows, columns].
        places: int64 [n], row-major numbers in the shape that never fall; one that is there twice has two values.
        values: [n], what is stored.
        space: where both lie.
    """

    shape: tuple[int, ...]
    places: Any
    values: Any
    space: TensorSpace = HOST

    @property
    def batches(self) -> int:
        """How many matrices there are."""
        return self.shape[0] if len(self.shape) == 3 else 1

    @property
    def rows(self) -> int:
        """Of each matrix."""
        return self.shape[-2]

    @property
    def columns(self) -> int:
        """Of each matrix."""
        return self.shape[-1]

    @property
    def has_batch(self) -> bool:
        """Whether there is an axis of matrices."""
        return len(self.shape) == 3

    def moved(self, move: Callable[[Any], Any], space: TensorSpace = HOST) -> CsrMatrix:
        """The matrix with its tensors in another memory.

        Args:
            move: gives a tensor there.
        """
        return CsrMatrix(self.shape, move(self.places), move(self.values), space)

    def dense(self) -> Any:
        """All places of matrices in host memory; of several values for one the last stays."""
        out = np.zeros(self.shape, self.values.dtype)
        out.reshape(-1)[self.places] = self.values
        return out


def matrix_shape(dims: Sequence[int]) -> tuple[int, ...]:
    """The shape of a sparse matrix.

    Raises:
        InvalidArgumentError: of the wrong rank, or with more places than 64 bits count.
    """
    if len(dims) not in (2, 3):
        raise InvalidArgumentError(f"a sparse matrix has rank 2 or 3, got shape {list(dims)}")
    places = 1
    for size in dims:
        places *= size
    if min(dims) < 0 or places > _MOST_PLACES:
        raise InvalidArgumentError(f"a sparse matrix has 0 to 2^63-1 places, got shape {list(dims)}")
    return tuple(dims)


def matrix_of(value: Any, dtype: Any = None) -> CsrMatrix:
    """A variant that is a sparse matrix.

    Args:
        dtype: NumPy's, of its values; None: any.

    Raises:
        InvalidArgumentError: it is another, or of another type.
    """
    if isinstance(value, np.ndarray):  # a variant that was put into a tensor
        value = cast("Any", value)[()]
    if not isinstance(value, CsrMatrix):
        raise InvalidArgumentError(f"expected a CSRSparseMatrix variant, got a {type(value).__name__}")
    if dtype is not None and value.values.dtype != dtype:
        raise InvalidArgumentError(f"the matrix is of type {value.values.dtype}, 'type' says {np.dtype(dtype).name}")
    return value
