"""Columns around those of categories: one-hot, embedded in tables of their own or in a common one; crossed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.feature_columns.base import DenseColumn, FeatureCache, Weights
from toolkit.client.math import math_ops
from toolkit.client.scoped_columns.base import Features, InsertedFeatures, Lookup, ScopedColumn, inner_flatten
from toolkit.client.scoped_columns.crosses import crossed
from toolkit.client.scoped_columns.numeric import BucketColumn
from toolkit.client.scoped_columns.sparse import IdColumn, SparseColumn, WeightedSparseColumn
from toolkit.client.scoped_columns.tables import embedded
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.variables import initializers
from toolkit.graph.shape import Shape


@dataclass(frozen=True)
class OneHotColumn(ScopedColumn, DenseColumn):
    """How often each category is there, or how much it counts."""

    kind: ClassVar[str] = "_OneHotColumn"
    sparse_id_column: IdColumn

    @property
    def name(self) -> str:
        return f"{self.sparse_id_column.name}_one_hot"

    @property
    def length(self) -> int:
        return self.sparse_id_column.length

    @property
    def config(self) -> dict[str, Any]:
        return self.sparse_id_column.config

    @property
    def parents(self) -> tuple[ScopedColumn, ...]:
        return (self.sparse_id_column,)

    @property
    def variable_shape(self) -> Shape:
        return Shape([self.length])

    def insert_transformed_feature(self, columns_to_tensors: Features) -> None:
        columns_to_tensors[self] = InsertedFeatures(columns_to_tensors).get(self.sparse_id_column)

    def transform(self, features: FeatureCache) -> Tensor:
        return self.deep_input(features.get(self.sparse_id_column))

    def dense(self, features: FeatureCache, weights: Weights) -> Tensor:
        del weights
        return features.get(self)

    def deep_input(self, transformed: Any, output_rank: int = 2) -> Tensor:
        ids = inner_flatten(self.sparse_id_column.id_tensor(transformed), output_rank)
        weights = self.sparse_id_column.weight_tensor(transformed)
        if weights is None:
            dense = sparse_ops.to_dense(ids, default_value=-1)
            one_hot = array_ops.one_hot(dense, self.length, on_value=1.0, off_value=0.0)
            return math_ops.reduce_sum(one_hot, axis=[output_rank - 1])
        whole = sparse_ops.merge(ids, weights, self.length)
        whole = sparse_ops.slice(whole, array_ops.zeros_like(whole.dense_shape), whole.dense_shape)
        found = sparse_ops.to_dense(whole)
        outer = array_ops.shape(found)[:-1]
        return array_ops.reshape(found, array_ops.concat([outer, [self.length]], axis=0))


@dataclass(frozen=True)
class TableColumn(ScopedColumn, DenseColumn):
    """Rows of a table for the categories, combined; the table is the column's own, or one that several share."""

    kind: ClassVar[str] = "_EmbeddingColumn"
    unkeyed: ClassVar[tuple[str, ...]] = ("initializer",)
    is_text_key: ClassVar[bool] = False
    sparse_id_column: IdColumn
    dimension: int
    combiner: str
    initializer: Any
    ckpt_to_load_from: str | None = None
    tensor_name_in_ckpt: str | None = None
    shared_embedding_name: str | None = None
    shared_vocab_size: int | None = None
    max_norm: float | None = None
    trainable: bool = True

    @property
    def name(self) -> str:
        ending = "embedding" if self.shared_embedding_name is None else "shared_embedding"
        return f"{self.sparse_id_column.name}_{ending}"

    @property
    def length(self) -> int:
        return self.sparse_id_column.length if self.shared_vocab_size is None else self.shared_vocab_size

    @property
    def config(self) -> dict[str, Any]:
        return self.sparse_id_column.config

    @property
    def parents(self) -> tuple[ScopedColumn, ...]:
        return (self.sparse_id_column,)

    @property
    def variable_shape(self) -> Shape:
        return Shape([self.dimension])

    @property
    def checkpoint(self) -> tuple[str, str] | None:
        if self.ckpt_to_load_from is None:
            return None
        return self.ckpt_to_load_from, cast("str", self.tensor_name_in_ckpt)

    def transform(self, features: FeatureCache) -> Any:
        return features.get(self.sparse_id_column)

    def dense(self, features: FeatureCache, weights: Weights) -> Tensor:
        del weights
        return embedded(self, self.deep_lookup(features.get(self)), None, True)

    def deep_lookup(self, transformed: Any) -> Lookup:
        column = self.sparse_id_column
        return Lookup(
            column.id_tensor(transformed), column.weight_tensor(transformed), self.length, self.initializer,
            self.combiner, self.dimension, self.shared_embedding_name, self.max_norm, self.trainable,
        )  # fmt: skip

    def wide_lookup(self, transformed: Any) -> Lookup | None:
        raise ValueError(f"the column '{self.name}' is none of linear models; give '{self.sparse_id_column.name}'")


@dataclass(frozen=True)
class CrossColumn(IdColumn):
    """Combinations of the categories of several columns, by a hash of them."""

    kind: ClassVar[str] = "_CrossedColumn"
    columns: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None
    combiner: str = "sum"
    ckpt_to_load_from: str | None = None
    tensor_name_in_ckpt: str | None = None

    @property
    def name(self) -> str:
        return "_X_".join(sorted(column.name for column in self.columns))

    @property
    def length(self) -> int:
        return self.hash_bucket_size

    @property
    def config(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for column in self.columns:
            found.update(column.config)
        return found

    @property
    def parents(self) -> tuple[ScopedColumn, ...]:
        return self.columns

    @property
    def checkpoint(self) -> tuple[str, str] | None:
        if self.ckpt_to_load_from is None:
            return None
        return self.ckpt_to_load_from, cast("str", self.tensor_name_in_ckpt)

    def transform(self, features: FeatureCache) -> SparseTensor:
        tensors: list[Any] = []
        for column in self._leaves():
            if isinstance(column, BucketColumn):
                tensors.append(column.sparse_ids(features.get(column)))
            else:
                tensors.append(features.get(column.name))
        return crossed(tensors, self.hash_bucket_size, self.hash_key)

    def _leaves(self) -> list[Any]:
        found: list[Any] = []
        for column in self.columns:
            found += column._leaves() if isinstance(column, CrossColumn) else [column]
        return found


def one_hot_column(sparse_id_column: Any) -> OneHotColumn:
    return OneHotColumn(sparse_id_column)


def embedding_column(
    sparse_id_column: Any, dimension: int, combiner: str = "mean", initializer: Any = None,
    ckpt_to_load_from: Any = None, tensor_name_in_ckpt: Any = None, max_norm: Any = None, trainable: bool = True,
) -> TableColumn:  # fmt: skip
    """The categories of a column as rows of a table.

    Raises:
        ValueError: an initializer that is no function; a checkpoint without the name of a tensor, or the reverse.
    """
    _check_table(sparse_id_column.name, initializer, ckpt_to_load_from, tensor_name_in_ckpt)
    return TableColumn(
        sparse_id_column, dimension, combiner, _initializer(initializer, sparse_id_column.length), ckpt_to_load_from,
        tensor_name_in_ckpt, max_norm=max_norm, trainable=trainable,
    )  # fmt: skip


def shared_embedding_columns(
    sparse_id_columns: Any, dimension: int, combiner: str = "mean", shared_embedding_name: Any = None,
    initializer: Any = None, ckpt_to_load_from: Any = None, tensor_name_in_ckpt: Any = None, max_norm: Any = None,
    trainable: bool = True,
) -> Any:  # fmt: skip
    """The categories of several columns as rows of one table.

    Raises:
        TypeError: no list of columns of categories.
        ValueError: there are none, or they have other categories.
    """
    if not isinstance(sparse_id_columns, Sequence) or isinstance(sparse_id_columns, str):
        raise TypeError(f"sparse_id_columns must be a list of columns; got {sparse_id_columns!r}")
    columns: list[Any] = list(cast("Sequence[Any]", sparse_id_columns))
    for column in columns:
        if not isinstance(column, SparseColumn | WeightedSparseColumn):
            raise TypeError(f"sparse_id_columns must be sparse columns, weighted or not; got {column!r}")
    if not columns:
        raise ValueError("sparse_id_columns is empty; expected at least one column")
    _check_table(columns[0].name, initializer, ckpt_to_load_from, tensor_name_in_ckpt)
    for column in columns[1:]:
        pair = (columns[0], column) if isinstance(columns[0], WeightedSparseColumn) else (column, columns[0])
        if not pair[0].is_compatible(pair[1]):
            raise ValueError(f"'{columns[0].name}' and '{column.name}' have other categories, so they share no table")
    shared, size = shared_embedding_name, columns[0].length
    if len(columns) > 1 and not shared:
        plain = sorted((each for each in columns if isinstance(each, SparseColumn)), key=lambda each: each.name)
        weighted = sorted((each for each in columns if each not in plain), key=lambda each: each.name)
        named = [each.name for each in (*plain, *weighted)]
        shared = "_".join(named[:3]) + (f"_plus_{len(named) - 3}_others" if len(named) > 3 else "")
        shared += "_shared_embedding"
    made = [
        TableColumn(
            column, dimension, combiner, _initializer(initializer, column.length), ckpt_to_load_from,
            tensor_name_in_ckpt, shared, size if len(columns) > 1 else None, max_norm, trainable,
        )
        for column in columns
    ]  # fmt: skip
    return made if len(columns) == 1 else tuple(made)


def _check_table(name: str, initializer: Any, checkpoint: Any, tensor: Any) -> None:
    if initializer is not None and not callable(initializer):
        raise ValueError(f"the initializer of the embedding of '{name}' must be a function; got {initializer!r}")
    if (checkpoint is None) != (tensor is None):
        raise ValueError(f"'{name}': give ckpt_to_load_from and tensor_name_in_ckpt, or neither")


def _initializer(given: Any, count: int) -> Any:
    return initializers.TruncatedNormal(0.0, 1 / math.sqrt(count)) if given is None else given


def crossed_column(
    columns: Any, hash_bucket_size: int, combiner: str = "sum", ckpt_to_load_from: Any = None,
    tensor_name_in_ckpt: Any = None, hash_key: int | None = None,
) -> CrossColumn:  # fmt: skip
    """Combinations of the categories of columns.

    Raises:
        TypeError: a column that has no categories of its own, or weights.
        ValueError: fewer than two columns or buckets; a checkpoint without a tensor.
    """
    found: list[Any] = list(columns)
    for column in found:
        if not isinstance(column, SparseColumn | CrossColumn | BucketColumn):
            raise TypeError(f"a crossed_column takes sparse, bucketized and crossed columns; got {column!r}")
    if len(found) < 2:
        raise ValueError(f"a crossed_column takes at least two columns; got {len(found)}")
    if hash_bucket_size < 2:
        raise ValueError(f"hash_bucket_size of a crossed_column must be at least 2; got {hash_bucket_size}")
    _check_table("a crossed_column", None, ckpt_to_load_from, tensor_name_in_ckpt)
    ordered = tuple(sorted(found, key=lambda column: column.name))
    return CrossColumn(ordered, hash_bucket_size, hash_key, combiner, ckpt_to_load_from, tensor_name_in_ckpt)
