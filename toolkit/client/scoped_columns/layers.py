"""The inputs of deep models and the sums of linear ones, out of columns of tf.contrib.layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.scoped_columns.base import (
    Features,
    InsertedFeatures,
    Lookup,
    ScopedColumn,
    checked_columns,
    inner_flatten,
)
from toolkit.client.scoped_columns.embedding import CrossColumn, OneHotColumn, TableColumn
from toolkit.client.scoped_columns.numeric import BucketColumn, RealValuedColumn, VariableLengthColumn
from toolkit.client.scoped_columns.tables import embedded, parts_of, start_from_checkpoint
from toolkit.client.scoped_layers.embeddings import safe_embedding_lookup_sparse
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.variables import initializers
from toolkit.client.variables.model_variables import model_variable
from toolkit.client.variables.store import variable_scope
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys


def input_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any], feature_columns: Any, weight_collections: Any = None,
    trainable: bool = True, scope: Any = None, cols_to_outs: dict[Any, Any] | None = None,
) -> Tensor:  # fmt: skip
    """The numbers of all columns beside each other: [batch, all].

    Args:
        columns_to_tensors: features by name.
        weight_collections: that tables are added to, besides GLOBAL_VARIABLES.
        cols_to_outs: is filled with what each column has made.

    Raises:
        ValueError: a column is none of deep models, or two are the same.
    """
    return _inputs(
        columns_to_tensors, feature_columns, weight_collections, trainable, scope, 2, "input_from_feature_columns",
        cols_to_outs,
    )  # fmt: skip


def sequence_input_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any], feature_columns: Any, weight_collections: Any = None,
    trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """The numbers of all columns for each step: [batch, time, all].

    Raises:
        ValueError: a column, or one that it is made of, is none of sequences.
    """
    for column in feature_columns:
        if not isinstance(column, OneHotColumn | TableColumn | RealValuedColumn | VariableLengthColumn):
            raise ValueError(f"the column '{column.name}' is none of sequences")
        for each in _ancestors(column):
            if isinstance(each, BucketColumn | CrossColumn):
                raise ValueError(f"the column '{column.name}' is made of '{each.name}', which is none of sequences")
    default = "sequence_input_from_feature_columns"
    return _inputs(columns_to_tensors, feature_columns, weight_collections, trainable, scope, 3, default, None)


def _ancestors(column: ScopedColumn) -> list[ScopedColumn]:
    return [column, *(each for parent in column.parents for each in _ancestors(parent))]


def _inputs(
    given: Mapping[Any, Any], feature_columns: Any, collections: Any, trainable: bool, scope: Any, rank: int,
    default: str, outputs: dict[Any, Any] | None,
) -> Tensor:  # fmt: skip
    features: Features = dict(given)
    columns = checked_columns(feature_columns)
    values = list(given.values())
    with variable_scope(scope, default, values):
        found: list[Tensor] = []
        keys = _with_global(collections)
        for column in columns:
            with variable_scope(None, column.name, values):
                transformed = InsertedFeatures(features).get(column)
                if rank == 3:
                    several = isinstance(transformed, tuple)
                    each = [_with_rank(part, 3, column.name) for part in transformed] if several else []
                    transformed = tuple(each) if several else _with_rank(transformed, 3, column.name)
                lookup = column.deep_lookup(transformed)
                if lookup is None:
                    found.append(column.deep_input(transformed, rank))
                else:
                    found.append(embedded(column, lookup, keys, trainable, rank))
                if outputs is not None:
                    outputs[column] = found[-1]
        return array_ops.concat(found, rank - 1)


def _with_global(collections: Any) -> Any:
    return list({*collections, GraphKeys.GLOBAL_VARIABLES}) if collections else collections


def _with_rank(tensor: Any, rank: int, name: str) -> Any:
    """A tensor with a further dimension of size 1, or with its last ones as one, so that there are `rank`."""
    known = tensor.static_shape.rank
    if known is None and isinstance(tensor, SparseTensor) and tensor.dense_shape.static_shape.rank:
        known = tensor.dense_shape.static_shape[0]
    if known is None:
        raise ValueError(f"the feature of the column '{name}' has an unknown number of dimensions")
    if rank > known + 1:
        raise ValueError(f"the feature of the column '{name}' has {known} dimensions; {rank} are needed")
    if rank == known:
        return tensor
    if rank < known:
        return inner_flatten(tensor, rank)
    if isinstance(tensor, SparseTensor):
        return sparse_ops.reshape(tensor, array_ops.concat([tensor.dense_shape, [1]], 0))
    return array_ops.expand_dims(tensor, -1)


def weighted_sum_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any], feature_columns: Any, num_outputs: int, weight_collections: Any = None,
    trainable: bool = True, scope: Any = None,
) -> tuple[Tensor, dict[Any, Any], Any]:  # fmt: skip
    """A linear function of all columns [batch, num_outputs], the variables of each column, and the bias.

    Raises:
        ValueError: a column is none of linear models, or two are the same.
    """
    features: Features = dict(columns_to_tensors)
    columns = checked_columns(feature_columns)
    values = list(columns_to_tensors.values())
    with variable_scope(scope, "weighted_sum_from_feature_columns", values):
        sums: list[Tensor] = []
        variables: dict[Any, Any] = {}
        for column in columns:
            transformed = InsertedFeatures(features).get(column)
            lookup = column.wide_lookup(transformed)
            with variable_scope(None, column.name, values):
                if lookup is None:
                    dense = _with_rank(column.dense_tensor(transformed), 2, column.name)
                    weights = [_weights("weight", [dense.static_shape[1], num_outputs], trainable, weight_collections)]
                    found = math_ops.matmul(dense, weights[0], name="matmul")
                else:
                    shape = [lookup.size, num_outputs]
                    weights = parts_of(_weights("weights", shape, trainable, weight_collections))
                    found = safe_embedding_lookup_sparse(
                        weights, lookup.ids, lookup.weights, lookup.combiner, name=column.name + "_weights"
                    )
            sums.append(array_ops.reshape(found, (-1, num_outputs)))
            variables[column] = weights
            start_from_checkpoint(column.checkpoint, weights)
        total = math_ops.add_n(sums)
        bias = _weights("bias_weight", [num_outputs], trainable, _with_global(weight_collections))
        return ops.bias_add(total, bias), variables, bias


def _weights(name: str, shape: list[Any], trainable: bool, collections: Any) -> Any:
    return model_variable(
        name, shape, dtypes.float32, initializer=initializers.Zeros(), trainable=trainable, collections=collections
    )


def joint_weighted_sum_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any], feature_columns: Any, num_outputs: int, weight_collections: Any = None,
    trainable: bool = True, scope: Any = None,
) -> tuple[Tensor, Any, Any]:  # fmt: skip
    """`weighted_sum_from_feature_columns` of columns of categories whose weights are one variable.

    Raises:
        NotImplementedError: a column of numbers.
        ValueError: a column with weights, or whose ids are not summed.
    """
    features: Features = dict(columns_to_tensors)
    columns = checked_columns(feature_columns)
    values = list(columns_to_tensors.values())
    with variable_scope(scope, "joint_weighted_sum_from_feature_columns", values):
        lookups: list[Lookup] = []
        for column in columns:
            lookup = column.wide_lookup(InsertedFeatures(features).get(column))
            if lookup is None:
                raise NotImplementedError(f"the column '{column.name}' is of numbers; make a bucketized_column of it")
            if lookup.weights is not None or lookup.combiner != "sum":
                raise ValueError(f"the column '{column.name}' has weights or no sums; joint weights take neither")
            lookups.append(lookup)
        size, moved = 0, list[SparseTensor]()
        for lookup in lookups:
            ids = lookup.ids
            moved.append(SparseTensor(ids.indices, ids.values + size, ids.dense_shape))
            size += lookup.size
        whole = sparse_ops.concat(1, moved)
        with variable_scope(None, "linear_weights", values):
            weights = parts_of(_weights("weights", [size, num_outputs], trainable, weight_collections))
            total = safe_embedding_lookup_sparse(weights, whole, None, "sum", name="_weights")
        bias = _weights("bias_weight", [num_outputs], trainable, _with_global(weight_collections))
        return ops.bias_add(total, bias), weights, bias
