"""Columns of sequences: what they are of, how long each is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.feature_columns.base import (
    CategoricalColumn,
    FeatureCache,
    IdWeightPair,
    SequenceDenseColumn,
    SequencePair,
    Weights,
    check_normalizer,
    check_number,
    sparse_shape,
)
from toolkit.client.feature_columns.numeric import checked_shape
from toolkit.client.inputs.parsing import VarLenFeature
from toolkit.client.math import math_ops
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape


@dataclass(frozen=True)
class SequenceCategoricalColumn(CategoricalColumn):
    """Categories of the steps of a sequence."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return self.categorical_column.name

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    def transform(self, features: FeatureCache) -> Any:
        return self.categorical_column.transform(features)

    def ids(self, features: FeatureCache) -> IdWeightPair:
        ids, weights = self.categorical_column.ids(features)
        sizes = sparse_shape(ids)
        target = [sizes[0], sizes[1], math_ops.reduce_prod(sizes[2:])]
        ids = sparse_ops.reshape(ids, target)
        return IdWeightPair(ids, None if weights is None else sparse_ops.reshape(weights, target))


@dataclass(frozen=True)
class SequenceNumericColumn(SequenceDenseColumn):
    """Numbers of the steps of a sequence."""

    key: str
    shape: tuple[int, ...]
    default_value: float
    dtype: DType
    normalizer_fn: Callable[[Any], Any] | None

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(self.dtype)}

    @property
    def variable_shape(self) -> Shape:
        return Shape(self.shape)

    def transform(self, features: FeatureCache) -> Any:
        tensor = features.get(self.key)
        return tensor if self.normalizer_fn is None else self.normalizer_fn(tensor)

    def sequence(self, features: FeatureCache, weights: Weights) -> SequencePair:
        sparse = features.get(self)
        dense = sparse_ops.to_dense(sparse, default_value=self.default_value)
        sizes = array_ops.concat([array_ops.shape(dense)[:1], [-1], list(self.shape)], axis=0)
        dense = array_ops.reshape(dense, sizes)
        count = 1
        for size in self.shape:
            count *= size
        return SequencePair(dense, sequence_length(sparse, count if sparse.static_shape.rank == 2 else 1))


def sequence_length(tensor: SparseTensor, elements_of_step: int = 1) -> Tensor:
    """How many steps each example has: [batch], int64."""
    with name_scope(None, "sequence_length") as scope:
        rows = tensor.indices[:, 0]
        columns = tensor.indices[:, 1]
        columns = columns + array_ops.ones_like(columns)
        longest = ops.segment_max(columns, rows)
        lengths = math_ops.cast(ops.ceil(longest / elements_of_step), dtypes.int64)
        lacking = sparse_shape(tensor)[:1] - array_ops.shape(lengths)[:1]
        padding = array_ops.zeros(lacking, lengths.dtype.base)
        return array_ops.concat([lengths, padding], axis=0, name=scope)


def sequence_numeric_column(
    key: str, shape: Any = (1,), default_value: float = 0.0, dtype: DType = dtypes.float32, normalizer_fn: Any = None
) -> SequenceNumericColumn:
    """Numbers of the steps of a sequence, from a sparse feature.

    Raises:
        ValueError: an unusable shape or type; TypeError: an unusable function.
    """
    sizes = checked_shape(shape, key)
    check_number(dtype, f"sequence_numeric_column '{key}'")
    check_normalizer(normalizer_fn, key)
    return SequenceNumericColumn(key, sizes, default_value, dtype, normalizer_fn)
