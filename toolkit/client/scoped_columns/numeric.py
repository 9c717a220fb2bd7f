"""Columns of numbers: as they are, of any count, and as the buckets that they fall into."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_dtype
from toolkit.client.construction.tensor import Tensor
from toolkit.client.feature_columns.base import CategoricalColumn, DenseColumn, FeatureCache, IdWeightPair, Weights
from toolkit.client.inputs.parsing import FixedLenFeature, FixedLenSequenceFeature, VarLenFeature
from toolkit.client.math import math_ops
from toolkit.client.scoped_columns.base import Lookup, ScopedColumn, with_rank
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.variables import initializers
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape


@dataclass(frozen=True)
class RealValuedColumn(ScopedColumn, DenseColumn):
    """As many numbers in each example."""

    kind: ClassVar[str] = "_RealValuedColumn"
    unkeyed: ClassVar[tuple[str, ...]] = ("normalizer",)
    is_text_key: ClassVar[bool] = False
    column_name: str
    dimension: int
    default_value: tuple[Any, ...] | None
    dtype: DType
    normalizer: Callable[[Tensor], Any] | None

    @property
    def name(self) -> str:
        return self.column_name

    @property
    def normalizer_fn(self) -> Callable[[Tensor], Any] | None:
        return self.normalizer

    @property
    def config(self) -> dict[str, Any]:
        default = None if self.default_value is None else list(self.default_value)
        return {self.column_name: FixedLenFeature([self.dimension], self.dtype, default)}

    @property
    def variable_shape(self) -> Shape:
        return Shape([self.dimension])

    def transform(self, features: FeatureCache) -> Tensor:
        given = features.get(self.column_name)
        if self.normalizer is not None:
            given = self.normalizer(given)
        return math_ops.cast(given, dtypes.float32)

    def dense(self, features: FeatureCache, weights: Weights) -> Tensor:
        del weights
        return features.get(self)

    def deep_input(self, transformed: Any, output_rank: int = 2) -> Tensor:
        return with_rank(math_ops.cast(transformed, dtypes.float32), output_rank, self.name)

    def dense_tensor(self, transformed: Any) -> Tensor:
        return transformed


@dataclass(frozen=True)
class VariableLengthColumn(ScopedColumn):
    """Any count of numbers in each example: padded, or sparse."""

    kind: ClassVar[str] = "_RealValuedVarLenColumn"
    unkeyed: ClassVar[tuple[str, ...]] = ("normalizer",)
    is_text_key: ClassVar[bool] = False
    column_name: str
    default_value: Any
    dtype: DType
    normalizer: Callable[[Tensor], Any] | None
    is_sparse: bool

    @property
    def name(self) -> str:
        return self.column_name

    @property
    def config(self) -> dict[str, Any]:
        if self.is_sparse:
            return {self.column_name: VarLenFeature(self.dtype)}
        padded = FixedLenSequenceFeature([], self.dtype, allow_missing=True, default_value=self.default_value)
        return {self.column_name: padded}

    def transform(self, features: FeatureCache) -> Any:
        given: Any = features.get(self.column_name)
        if self.normalizer is not None:
            if self.is_sparse:
                given = SparseTensor(given.indices, self.normalizer(given.values), given.dense_shape)
            else:
                given = self.normalizer(given)
        return math_ops.cast(given, dtypes.float32)

    def deep_input(self, transformed: Any, output_rank: int = 2) -> Tensor:
        return with_rank(self.dense_tensor(transformed), output_rank, self.name)

    def dense_tensor(self, transformed: Any) -> Tensor:
        if self.is_sparse:
            raise ValueError(f"the column '{self.name}' is sparse; a dense one has is_sparse=False")
        return transformed


@dataclass(frozen=True)
class BucketColumn(ScopedColumn, CategoricalColumn, DenseColumn):
    """The buckets that the numbers of a column fall into: ids, or one-hot."""

    kind: ClassVar[str] = "_BucketizedColumn"
    source_column: RealValuedColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def length(self) -> int:
        return len(self.boundaries) + 1

    @property
    def config(self) -> dict[str, Any]:
        return self.source_column.config

    @property
    def parents(self) -> tuple[ScopedColumn, ...]:
        return (self.source_column,)

    @property
    def num_buckets(self) -> int:
        return self.length * self.source_column.dimension

    @property
    def variable_shape(self) -> Shape:
        return Shape([self.num_buckets])

    def transform(self, features: FeatureCache) -> Tensor:
        return ops.bucketize(features.get(self.source_column), boundaries=list(self.boundaries), name="bucketize")

    def ids(self, features: FeatureCache) -> IdWeightPair:
        return IdWeightPair(self.sparse_ids(features.get(self)), None)

    def dense(self, features: FeatureCache, weights: Weights) -> Tensor:
        del weights
        return self.deep_input(features.get(self))

    def wide_lookup(self, transformed: Any) -> Lookup | None:
        return Lookup(self.sparse_ids(transformed), None, self.num_buckets, initializers.Zeros(), "sum")

    def deep_input(self, transformed: Any, output_rank: int = 2) -> Tensor:
        if output_rank != 2:
            raise ValueError(f"the column '{self.name}' is of buckets, which are no sequences")
        bucket = math_ops.cast(transformed, dtypes.int64)
        one_hot = array_ops.one_hot(bucket, self.length, 1.0, 0.0, name="one_hot")
        return array_ops.reshape(one_hot, [-1, self.num_buckets], name="reshape")

    def sparse_ids(self, buckets: Tensor) -> SparseTensor:
        """Ids [batch, dimension]: the buckets of each number follow those of the one before."""
        width = self.source_column.dimension
        batch = array_ops.shape(buckets, name="shape")[0]
        if width > 1:
            rows = array_ops.expand_dims(math_ops.range(0, batch), 1, name="expand_dims")
            rows = array_ops.reshape(array_ops.tile(rows, [1, width], name="tile"), [-1], name="reshape")
            columns = array_ops.tile(math_ops.range(0, width), [batch], name="tile")
            numbers = array_ops.reshape(buckets, [-1], name="reshape") + self.length * columns
        else:
            rows = math_ops.range(0, batch)
            columns = array_ops.zeros([batch], dtype=dtypes.int32, name="zeros")
            numbers = array_ops.reshape(buckets, [-1], name="reshape")
        places = math_ops.cast(array_ops.transpose(array_ops.stack((rows, columns))), dtypes.int64)
        sizes = math_ops.cast(array_ops.stack([batch, width]), dtypes.int64)
        return SparseTensor(places, numbers, sizes)


def real_valued_column(
    column_name: str, dimension: Any = 1, default_value: Any = None, dtype: Any = dtypes.float32, normalizer: Any = None
) -> RealValuedColumn:
    """A column of numbers.

    Args:
        dimension: how many there are in each example.
        default_value: for examples that lack them: a number, or a list of as many.
        normalizer: applied to the tensor.

    Raises:
        TypeError: a dimension that is no integer, or a default of another type.
        ValueError: a dimension below 1, a type that is none of numbers, or a list of another length.
    """
    if not isinstance(dimension, int):
        raise TypeError(f"dimension of '{column_name}' must be an integer; got {dimension!r}")
    if dimension < 1:
        raise ValueError(f"dimension of '{column_name}' must be at least 1; got {dimension}")
    kind = as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype of '{column_name}' must be one of numbers; got {kind}")
    default = None if default_value is None else _default(column_name, dimension, default_value, kind)
    return RealValuedColumn(column_name, dimension, default, kind, normalizer)


def _default(name: str, dimension: int, given: Any, dtype: DType) -> tuple[Any, ...]:
    values: list[Any] = cast("list[Any]", given) if isinstance(given, list) else [given] * dimension
    if len(values) != dimension:
        raise ValueError(f"default_value of '{name}' must have {dimension} numbers; got {len(values)}")
    for value in values:
        if not isinstance(value, int) and not (isinstance(value, float) and dtype.is_floating):
            raise TypeError(f"default_value of '{name}' must be of {dtype}; got {value!r}")
    return tuple(float(value) if dtype.is_floating else value for value in values)


def variable_length_column(
    column_name: str, default_value: Any = None, dtype: Any = dtypes.float32, normalizer: Any = None,
    is_sparse: bool = False,
) -> VariableLengthColumn:  # fmt: skip
    """Numbers of which each example has any count, padded with `default_value`.

    Raises:
        TypeError: a type that is none of numbers.
        ValueError: nothing to pad with, or a list.
    """
    kind = as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise TypeError(f"dtype of '{column_name}' must be one of numbers; got {kind}")
    if isinstance(default_value, list) or (default_value is None and not is_sparse):
        raise ValueError(f"default_value of '{column_name}' must be a number to pad with; got {default_value}")
    default = default_value
    if default is not None:
        default = int(default) if kind.is_integer else float(default)
    return VariableLengthColumn(column_name, default, kind, normalizer, is_sparse)


def bucketized_column(source_column: Any, boundaries: Any) -> BucketColumn:
    """The buckets of a column's numbers.

    Raises:
        TypeError: it is none of `real_valued_column`.
        ValueError: the boundaries do not rise, or there are none.
    """
    if not isinstance(source_column, RealValuedColumn):
        raise TypeError(f"source_column must be a real_valued_column; got {source_column!r}")
    values: list[Any] = list(cast("list[Any]", boundaries)) if isinstance(boundaries, list | tuple) else []
    if not values or any(one > other for one, other in itertools.pairwise(values)):
        raise ValueError(f"boundaries of '{source_column.name}' must be a list of numbers that rise; got {boundaries}")
    return BucketColumn(source_column, tuple(dict.fromkeys(values)))
