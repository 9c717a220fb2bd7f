"""The value of a ragged tensor, as sessions give it and take it."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.errors import UsageError


class RaggedTensorValue:
    """Rows of different lengths: row i is `values[row_splits[i]:row_splits[i + 1]]`.

    Args:
        values: an array, or the value of a ragged tensor.
        row_splits: int32 or int64 [rows + 1].

    Raises:
        UsageError: the splits are no vector of such integers, or the values of another class.
    """

    def __init__(self, values: Any, row_splits: Any):
        splits: Any = np.asarray(row_splits)
        if splits.dtype not in (np.int32, np.int64) or splits.ndim != 1:
            raise UsageError(f"row_splits: expected a vector of int32 or int64, got {splits.dtype}{list(splits.shape)}")
        if not isinstance(values, np.ndarray | np.generic | RaggedTensorValue):
            raise UsageError(f"values: expected an array or a RaggedTensorValue, got {type(values).__name__}")
        self._values: Any = values
        self._row_splits: Any = splits

    @property
    def values(self) -> Any:
        return self._values

    @property
    def row_splits(self) -> Any:
        return self._row_splits

    @property
    def dtype(self) -> Any:
        """NumPy's type of the values."""
        return self._values.dtype

    @property
    def flat_values(self) -> Any:
        """The innermost values."""
        return self._values.flat_values if isinstance(self._values, RaggedTensorValue) else self._values

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The splits of every ragged axis, the outermost first."""
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedTensorValue) else ()
        return (self._row_splits, *inner)

    @property
    def ragged_rank(self) -> int:
        return len(self.nested_row_splits)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The sizes; None along ragged axes."""
        return (len(self._row_splits) - 1, None, *self._values.shape[1:])

    def to_list(self) -> list[Any]:
        """Nested lists."""
        inner = self._values.to_list() if isinstance(self._values, RaggedTensorValue) else self._values.tolist()
        return [inner[a:b] for a, b in zip(self._row_splits[:-1], self._row_splits[1:], strict=True)]

    def __repr__(self) -> str:
        return f"tf.RaggedTensorValue(values={self._values!r}, row_splits={self._row_splits!r})"


def nested_value(flat_values: Any, nested_row_splits: list[Any]) -> RaggedTensorValue:
    """The value of innermost values and the splits around them."""
    made: Any = flat_values
    for splits in reversed(nested_row_splits):
        made = RaggedTensorValue(made, splits)
    return made
