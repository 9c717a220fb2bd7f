"""Columns of numbers: as they are, or as the buckets that they fall into."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.feature_columns.base import (
    CategoricalColumn,
    DenseColumn,
    FeatureCache,
    IdWeightPair,
    Weights,
    check_key,
    check_normalizer,
    check_number,
)
from toolkit.client.inputs.parsing import FixedLenFeature
from toolkit.client.math import math_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape


@dataclass(frozen=True)
class NumericColumn(DenseColumn):
    """A feature of numbers of one shape."""

    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: DType
    normalizer_fn: Callable[[Tensor], Any] | None

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)}

    @property
    def variable_shape(self) -> Shape:
        return Shape(self.shape)

    def transform(self, features: FeatureCache) -> Tensor:
        tensor = features.get(self.key)
        if isinstance(tensor, SparseTensor):
            raise ValueError(f"the feature '{self.key}' is sparse; a numeric column takes a dense tensor")
        if self.normalizer_fn is not None:
            tensor = self.normalizer_fn(tensor)
        return math_ops.cast(tensor, dtypes.float32)

    def dense(self, features: FeatureCache, weights: Weights) -> Tensor:
        return features.get(self)


@dataclass(frozen=True)
class BucketizedColumn(DenseColumn, CategoricalColumn):
    """The buckets that the numbers of a column fall into: one-hot, or ids."""

    source_column: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.source_column.parse_example_spec

    @property
    def variable_shape(self) -> Shape:
        return Shape((*self.source_column.shape, len(self.boundaries) + 1))

    @property
    def num_buckets(self) -> int:
        return (len(self.boundaries) + 1) * self.source_column.shape[0]

    def transform(self, features: FeatureCache) -> Tensor:
        return ops.bucketize(features.get(self.source_column), boundaries=list(self.boundaries))

    def dense(self, features: FeatureCache, weights: Weights) -> Tensor:
        bucket = math_ops.cast(features.get(self), dtypes.int64)
        return array_ops.one_hot(bucket, len(self.boundaries) + 1, on_value=1.0, off_value=0.0)

    def ids(self, features: FeatureCache) -> IdWeightPair:
        buckets = features.get(self)
        batch = array_ops.shape(buckets)[0]
        width = self.source_column.shape[0]
        rows = array_ops.tile(array_ops.expand_dims(math_ops.range(0, batch), 1), [1, width])
        rows = array_ops.reshape(rows, (-1,))
        columns = array_ops.tile(math_ops.range(0, width), [batch])
        numbers = array_ops.reshape(buckets, (-1,)) + (len(self.boundaries) + 1) * columns
        places = math_ops.cast(array_ops.transpose(array_ops.stack((rows, columns))), dtypes.int64)
        sizes = math_ops.cast(array_ops.stack([batch, width]), dtypes.int64)
        return IdWeightPair(SparseTensor(places, numbers, sizes), None)


def numeric_column(
    key: str, shape: Any = (1,), default_value: Any = None, dtype: DType = dtypes.float32, normalizer_fn: Any = None
) -> NumericColumn:
    """A column of numbers.

    Args:
        shape: of one example.
        default_value: for examples that lack the feature: a number, or numbers of that shape.
        normalizer_fn: applied to the tensor.

    Raises:
        ValueError: an unusable shape, type or key; TypeError: an unusable default or function.
    """
    sizes = checked_shape(shape, key)
    check_number(dtype, f"numeric_column '{key}'")
    default = checked_default(sizes, default_value, dtype, key)
    check_normalizer(normalizer_fn, key)
    check_key(key)
    return NumericColumn(key, sizes, default, dtype, normalizer_fn)


def bucketized_column(source_column: Any, boundaries: Any) -> BucketizedColumn:
    """The buckets of a numeric column's numbers.

    Raises:
        ValueError: it is another column or of more axes than one; the boundaries do not rise.
    """
    if not isinstance(source_column, NumericColumn):
        raise ValueError(f"source_column must be a numeric_column; got {source_column}")
    if len(source_column.shape) > 1:
        raise ValueError(f"'{source_column.key}' is of shape {source_column.shape}; buckets are of vectors")
    values: list[Any] = list(cast("list[Any]", boundaries)) if isinstance(boundaries, list | tuple) else []
    if not values or any(one >= other for one, other in itertools.pairwise(values)):
        raise ValueError(f"boundaries must be a list of numbers that rise; got {boundaries}")
    return BucketizedColumn(source_column, tuple(values))


def checked_shape(shape: Any, key: str) -> tuple[int, ...]:
    """A shape as sizes, of which each is at least 1."""
    sizes: tuple[Any, ...] = tuple(cast("Any", shape)) if isinstance(shape, list | tuple | Shape) else (shape,)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"the shape of '{key}' must be integers; got {shape}")
        if size < 1:
            raise ValueError(f"the sizes of the shape of '{key}' must be at least 1; got {shape}")
    return sizes


def checked_default(shape: tuple[int, ...], value: Any, dtype: DType, key: str) -> Any:
    """The default of a feature in its shape, as tuples."""
    if value is None:
        return None
    if isinstance(value, int) or (isinstance(value, float) and dtype.is_floating):
        return _filled(shape, cast("Any", value))
    if callable(getattr(value, "tolist", None)):
        value = cast("Any", value).tolist()
    if isinstance(value, list | tuple):
        plain = _tuples(value)
        if _shape_of(plain) != shape:
            raise ValueError(f"the default_value of '{key}' must be of shape {shape}; got {value}")
        leaves = list(_leaves(plain))
        if all(isinstance(leaf, int) for leaf in leaves) or dtype.is_floating:
            return plain
    raise TypeError(f"the default_value of '{key}' must be of {dtype}; got {value!r}")


def _filled(shape: tuple[int, ...], value: Any) -> Any:
    return tuple(_filled(shape[1:], value) for _ in range(shape[0])) if shape else value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in cast("list[Any]", value)) if isinstance(value, list | tuple) else value


def _shape_of(value: Any) -> tuple[int, ...]:
    if not isinstance(value, tuple):
        return ()
    items = cast("tuple[Any, ...]", value)
    shapes = {_shape_of(item) for item in items}
    return (len(items), *shapes.pop()) if len(shapes) == 1 else (-1,)


def _leaves(value: Any) -> Any:
    if isinstance(value, tuple):
        for item in cast("tuple[Any, ...]", value):
            yield from _leaves(item)
    else:
        yield value
