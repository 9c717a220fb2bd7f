"""Columns that make dense tensors of categories: one-hot, embeddings, embeddings that several columns share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.feature_columns.base import (
    CategoricalColumn,
    DenseColumn,
    FeatureCache,
    SequenceDenseColumn,
    SequencePair,
    Weights,
)
from toolkit.client.feature_columns.categorical import WeightedCategoricalColumn
from toolkit.client.feature_columns.sequence import SequenceCategoricalColumn, sequence_length
from toolkit.client.math import math_ops
from toolkit.client.nn.embeddings import embedding_lookup_sparse, safe_embedding_lookup_sparse
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.variables import initializers
from toolkit.graph.shape import Shape


class _OfCategories(DenseColumn, SequenceDenseColumn):
    """What columns around a categorical one have in common."""

    categorical_column: CategoricalColumn

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    def _check(self, is_sequence: bool) -> None:
        if isinstance(self.categorical_column, SequenceCategoricalColumn) is not is_sequence:
            wanted, layer = ("a sequence", "sequence_input_layer") if is_sequence else ("no sequence", "input_layer")
            raise ValueError(
                f"the column '{self.name}' is of {type(self.categorical_column).__name__} "
                f"'{self.categorical_column.name}'; {layer} takes {wanted} column"
            )

    def _length(self, features: FeatureCache) -> Tensor:
        return sequence_length(self.categorical_column.ids(features).id_tensor)


@dataclass(frozen=True)
class IndicatorColumn(_OfCategories):
    """How often each category is there."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_indicator"

    @property
    def variable_shape(self) -> Shape:
        return Shape([1, self.categorical_column.num_buckets])

    def transform(self, features: FeatureCache) -> Tensor:
        ids, weights = self.categorical_column.ids(features)
        count = self.categorical_column.num_buckets
        if weights is not None:
            whole = sparse_ops.merge(ids, weights, count)
            whole = sparse_ops.slice(whole, [0, 0], whole.dense_shape)
            return ops.scatter_nd(whole.indices, whole.values, whole.dense_shape)
        dense = sparse_ops.to_dense(ids, default_value=-1)
        return math_ops.reduce_sum(array_ops.one_hot(dense, count, on_value=1.0, off_value=0.0), axis=[-2])

    def dense(self, features: FeatureCache, weights: Weights) -> Tensor:
        self._check(is_sequence=False)
        return features.get(self)

    def sequence(self, features: FeatureCache, weights: Weights) -> SequencePair:
        self._check(is_sequence=True)
        return SequencePair(features.get(self), self._length(features))


class _Embedding(_OfCategories):
    dimension: int

    @property
    def variable_shape(self) -> Shape:
        return Shape([self.dimension])

    def transform(self, features: FeatureCache) -> Any:
        return features.get(self.categorical_column)

    def dense(self, features: FeatureCache, weights: Weights) -> Tensor:
        self._check(is_sequence=False)
        return self._looked_up(features, weights)

    def sequence(self, features: FeatureCache, weights: Weights) -> SequencePair:
        self._check(is_sequence=True)
        return SequencePair(self._looked_up(features, weights), self._length(features))

    combiner: str
    max_norm: float | None
    use_safe_embedding_lookup: bool

    def _looked_up(self, features: FeatureCache, weights: Weights) -> Tensor:
        raise NotImplementedError

    def _combined(self, table: Any, ids: SparseTensor, counts: SparseTensor | None) -> Tensor:
        rank = ids.static_shape.rank
        is_plain = not self.use_safe_embedding_lookup and rank is not None and rank <= 2
        look_up = embedding_lookup_sparse if is_plain else safe_embedding_lookup_sparse
        return look_up(table, ids, counts, combiner=self.combiner, name=f"{self.name}_weights", max_norm=self.max_norm)

    @property
    def embedding_shape(self) -> tuple[int, int]:
        return self.categorical_column.num_buckets, self.dimension


@dataclass(frozen=True)
class EmbeddingColumn(_Embedding):
    """Rows of a table of its own for the categories, combined."""

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any = field(hash=False)
    ckpt_to_load_from: str | None
    tensor_name_in_ckpt: str | None
    max_norm: float | None
    trainable: bool
    use_safe_embedding_lookup: bool

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_embedding"

    def _looked_up(self, features: FeatureCache, weights: Weights) -> Tensor:
        ids, counts = self.categorical_column.ids(features)
        table = weights.variable(self, self.embedding_shape, self.initializer, self.trainable)
        _restore(table, self.ckpt_to_load_from, self.tensor_name_in_ckpt)
        return self._combined(table, ids, counts)


@dataclass(frozen=True)
class SharedEmbeddingColumn(_Embedding):
    """Rows of a table that several columns share."""

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any = field(hash=False)
    shared_embedding_collection_name: str
    ckpt_to_load_from: str | None
    tensor_name_in_ckpt: str | None
    max_norm: float | None
    trainable: bool
    use_safe_embedding_lookup: bool

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_shared_embedding"

    @property
    def scope_name(self) -> str:
        return self.shared_embedding_collection_name

    def _looked_up(self, features: FeatureCache, weights: Weights) -> Tensor:
        with name_scope(None, self.name):
            ids, counts = self.categorical_column.ids(features)
            key = self.shared_embedding_collection_name
            table = weights.shared(key, self.embedding_shape, self.initializer, self.trainable)
            _restore(table, self.ckpt_to_load_from, self.tensor_name_in_ckpt)
            return self._combined(table, ids, counts)


def _restore(table: Any, checkpoint: str | None, name: str | None) -> None:
    if checkpoint is not None and name is not None:
        from toolkit.client.train.warm_start import initialize_from_checkpoint

        initialize_from_checkpoint(checkpoint, {name: table})


def indicator_column(categorical_column: Any) -> IndicatorColumn:
    """Raises ValueError: the column is not categorical."""
    if not isinstance(categorical_column, CategoricalColumn):
        raise ValueError(f"an indicator_column is of a categorical column; got {categorical_column}")
    return IndicatorColumn(categorical_column)


def embedding_column(
    categorical_column: Any, dimension: int, combiner: str = "mean", initializer: Any = None,
    ckpt_to_load_from: str | None = None, tensor_name_in_ckpt: str | None = None, max_norm: float | None = None,
    trainable: bool = True, use_safe_embedding_lookup: bool = True,
) -> EmbeddingColumn:  # fmt: skip
    """An embedding of a categorical column.

    Args:
        initializer: default: a truncated normal distribution of the deviation 1 / sqrt(dimension).

    Raises:
        ValueError: the dimension is below 1, only one of the checkpoint's arguments, no initializer.
    """
    chosen = _checked(dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt)
    return EmbeddingColumn(
        categorical_column, dimension, combiner, chosen, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable,
        use_safe_embedding_lookup,
    )  # fmt: skip


def shared_embedding_columns(
    categorical_columns: Sequence[Any], dimension: int, combiner: str = "mean", initializer: Any = None,
    shared_embedding_collection_name: str | None = None, ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None, max_norm: float | None = None, trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
) -> list[SharedEmbeddingColumn]:  # fmt: skip
    """Embeddings of several columns of one kind, from one table.

    Raises:
        ValueError: as for `embedding_column`; the columns are of different kinds or numbers of buckets.
    """
    chosen = _checked(dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt)
    ordered = sorted(categorical_columns, key=lambda column: column.name)
    first = ordered[0]
    for column in ordered:
        if not isinstance(column, CategoricalColumn):
            raise ValueError(f"shared_embedding_columns are of categorical columns; got {column}")
        if type(_plain(column)) is not type(_plain(first)):
            raise ValueError(f"columns that share an embedding must be of one kind; got {first} and {column}")
        if column.num_buckets != first.num_buckets:
            raise ValueError(
                f"columns that share an embedding must have as many buckets; '{first.name}' has {first.num_buckets}, "
                f"'{column.name}' {column.num_buckets}"
            )
    key = shared_embedding_collection_name or "_".join(column.name for column in ordered) + "_shared_embedding"
    return [
        SharedEmbeddingColumn(
            column,
            dimension,
            combiner,
            chosen,
            key,
            ckpt_to_load_from,
            tensor_name_in_ckpt,
            max_norm,
            trainable,
            use_safe_embedding_lookup,
        )
        for column in categorical_columns
    ]


def _plain(column: Any) -> Any:
    return column.categorical_column if isinstance(column, WeightedCategoricalColumn) else column


def _checked(dimension: Any, initializer: Any, checkpoint: Any, name: Any) -> Any:
    if dimension is None or dimension < 1:
        raise ValueError(f"the dimension of an embedding must be at least 1; got {dimension}")
    if (checkpoint is None) != (name is None):
        raise ValueError("give both ckpt_to_load_from and tensor_name_in_ckpt, or none of them")
    if initializer is not None and not callable(initializer):
        raise ValueError(f"the initializer of an embedding must be a function; got {initializer!r}")
    return initializer or initializers.TruncatedNormal(0.0, 1 / math.sqrt(dimension))
