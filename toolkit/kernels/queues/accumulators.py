"""Conditional accumulators: gradients of many workers gathered until there are enough (synchronous training).

A gradient carries the step it was computed at; those older than the accumulator's own step are dropped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape
from toolkit.kernels.context import Cancellation, Done
from toolkit.kernels.queues.waiting import NOT_YET, Waiting
from toolkit.kernels.types import Array


class Accumulator(Waiting):
    """What dense and sparse accumulators share.

    Args:
        name: for messages.
        dtype, shape: of the gradients; the shape may be partly known.
        mean: divide by the number of gradients at the end.
    """

    kind = "conditional accumulator"

    def __init__(self, name: str, dtype: DType, shape: Shape, mean: bool):
        super().__init__(in_order=True)
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.mean = mean
        self.count: int = 0
        self._step = 0

    def num_accumulated(self) -> int:
        with self.lock:
            return self.count

    def set_global_step(self, step: int) -> None:
        with self.lock:
            self._step = step

    def take(self, required: int, cancellation: Cancellation, done: Done) -> None:
        """The mean (or sum) of what was gathered, once there are `required` gradients; starts anew."""
        if required <= 0:
            raise InvalidArgumentError(f"Argument num_required must be positive, but was {required}")

        def trial() -> Any:
            if self.count < required:
                return NOT_YET
            result = self._result()
            self._step += 1
            self.count = 0
            self._forget()
            return result

        self.attempt(trial, cancellation, done, "TakeGrad")

    def _result(self) -> Any:
        raise NotImplementedError

    def _forget(self) -> None:
        raise NotImplementedError


class DenseAccumulator(Accumulator):
    """Gradients as dense tensors."""

    def __init__(self, name: str, dtype: DType, shape: Shape, mean: bool):
        super().__init__(name, dtype, shape, mean)
        self._sum: Array = None

    def apply(self, local_step: int, gradient: Array) -> None:
        """Add a gradient, unless it is stale.

        Raises:
            InvalidArgumentError: its shape does not fit.
        """
        shape = Shape(np.shape(gradient))
        if not self.shape.is_compatible_with(shape):
            raise InvalidArgumentError(f"Shape mismatch: expected {self.shape}, got {shape}")
        with self.lock:
            if local_step < self._step:
                return
            if not self.count:
                self._sum = np.array(gradient)
            elif self._sum.shape != np.shape(gradient):
                raise InvalidArgumentError(f"Shape mismatch: expected {Shape(self._sum.shape)}, got {shape}")
            else:
                self._sum = self._sum + gradient
            self.count += 1
        self.changed()

    def _result(self) -> Any:
        return [self._sum / self.dtype.numpy.type(self.count) if self.mean else self._sum]

    def _forget(self) -> None:
        self._sum = None


class SparseAccumulator(Accumulator):
    """Gradients as slices: the mean of a slice is over the gradients that had it."""

    kind = "sparse conditional accumulator"

    def __init__(self, name: str, dtype: DType, shape: Shape, mean: bool):
        super().__init__(name, dtype, shape, mean)
        self._rows: dict[int, tuple[Array, int]] = {}  # index: sum, number of gradients
        self._inner: tuple[int, ...] = ()

    def apply(self, local_step: int, indices: Array, values: Array, shape: Array, has_known_shape: bool) -> None:
        """Add the slices `values` at `indices`, unless they are stale.

        Raises:
            InvalidArgumentError: shapes that do not fit together or to the accumulator.
        """
        self._check(indices, values, shape, has_known_shape)
        with self.lock:
            if local_step < self._step:
                return
            if self.count and values.shape[1:] != self._inner:
                raise InvalidArgumentError(
                    f"Shape mismatch: expected values of shape {Shape(self._inner)} per slice, "
                    f"got {Shape(values.shape[1:])}"
                )
            self._inner = values.shape[1:]
            for index, row in zip(indices.tolist(), values, strict=True):
                total, count = self._rows.get(index, (None, 0))
                self._rows[index] = (np.array(row) if total is None else total + row, count + 1)
            self.count += 1
        self.changed()

    def _check(self, indices: Array, values: Array, shape: Array, has_known_shape: bool) -> None:
        if indices.ndim != 1:
            raise InvalidArgumentError(f"Input indices should be vector but received shape: {list(indices.shape)}")
        if values.ndim < 1:
            raise InvalidArgumentError("Values cannot be 0-dimensional.")
        if values.shape[0] != len(indices):
            raise InvalidArgumentError(
                f"Number of values must match number of indices: {values.shape[0]} values, {len(indices)} indices"
            )
        if not has_known_shape:
            return
        dims: list[int] = shape.tolist()
        if len(dims) != values.ndim or any(d not in (-1, s) for d, s in zip(dims[1:], values.shape[1:], strict=True)):
            raise InvalidArgumentError(f"Shape mismatch: values have shape {list(values.shape)}, gradient_shape {dims}")
        wanted = self.shape.dims
        if wanted is not None:
            if len(wanted) > len(dims):
                raise InvalidArgumentError(
                    f"Shape mismatch: expected shape rank at least {len(wanted)}, got {len(dims)}"
                )
            for axis, (want, got) in enumerate(zip(wanted, dims, strict=False)):
                if want is not None and got not in (-1, want):
                    raise InvalidArgumentError(f"Shape mismatch: expected shape[{axis}] {want}, got {got}")
        if dims and dims[0] >= 0 and len(indices) and not 0 <= indices.min() <= indices.max() < dims[0]:
            raise InvalidArgumentError(f"an index of the gradient is outside its first dimension {dims[0]}")

    def _result(self) -> Any:
        order = sorted(self._rows)
        rows = [
            self._rows[i][0] / self.dtype.numpy.type(self._rows[i][1]) if self.mean else self._rows[i][0] for i in order
        ]
        values = np.array(rows, self.dtype.numpy).reshape(len(rows), *self._inner)
        first = self.shape.dims[0] if self.shape.dims else None
        shape = np.array([-1 if first is None else first, *self._inner], np.int64)
        return [np.array(order, np.int64), values, shape]

    def _forget(self) -> None:
        self._rows.clear()
