"""Layers of feature columns: their tensors beside each other, sequences of them, a linear model of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_equal
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.feature_columns.base import (
    CategoricalColumn,
    DenseColumn,
    FeatureCache,
    FeatureColumn,
    SequenceDenseColumn,
    check_batch_sizes,
    normalized,
    number_of_elements,
    sparse_shape,
)
from toolkit.client.math import math_ops
from toolkit.client.nn.embeddings import safe_embedding_lookup_sparse
from toolkit.client.sparse import sparse_ops
from toolkit.client.variables import initializers
from toolkit.client.variables.store import get_variable, get_variable_scope, variable_scope
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import Shape


class VariablesOfScopes:
    """Variables are made when a column asks, in the scope that is open.

    Args:
        collections: that they are added to.
        trainable: whether any of them is trained.
    """

    def __init__(self, collections: list[str], trainable: bool):
        self._collections = collections
        self._trainable = trainable

    def variable(self, column: FeatureColumn, shape: tuple[int, ...], initializer: Any, trainable: bool) -> Any:
        del column
        return get_variable(
            "embedding_weights", shape, dtypes.float32, initializer, trainable=trainable and self._trainable,
            collections=self._collections,
        )  # fmt: skip

    def shared(self, name: str, shape: tuple[int, ...], initializer: Any, trainable: bool) -> Any:
        graph = get_default_graph()
        there = graph.get_collection(name)
        if len(there) > 1:
            raise ValueError(f"the collection '{name}' holds {len(there)} variables; columns share one")
        if not there:
            made = get_variable(
                "embedding_weights", shape, dtypes.float32, initializer, trainable=trainable and self._trainable,
                collections=self._collections,
            )  # fmt: skip
            graph.add_to_collection(name, made)
            return made
        if there[0].static_shape != Shape(shape):
            raise ValueError(f"'{there[0].name}' in the collection '{name}' is of shape {there[0].static_shape}; "
                             f"{Shape(shape)} is needed; choose another name")  # fmt: skip
        return there[0]


def model_collections(given: Any) -> list[str]:
    """The collections of the weights of a model."""
    found = list(given or [])
    return found + [key for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES) if key not in found]


def input_layer(
    features: Mapping[str, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
    scope: Any = None,
) -> Tensor:
    """The tensors of dense columns beside each other, in the order of their names: [batch, all].

    Args:
        cols_to_vars, cols_to_output_tensors: are filled with what each column has made.

    Raises:
        ValueError: a column is not dense, or a feature is missing or unusable.
    """
    columns = normalized(feature_columns)
    _check_kind(columns, DenseColumn)
    weights = VariablesOfScopes(model_collections(weight_collections), trainable)
    with variable_scope(scope, "input_layer", list(features.values())):
        cache = FeatureCache(features)
        tensors: list[Tensor] = []
        for column in columns:
            assert isinstance(column, DenseColumn)
            with variable_scope(None, column.scope_name):
                tensor = _flat(column.dense(cache, weights), column)
                tensors.append(tensor)
                if cols_to_vars is not None:
                    cols_to_vars[column] = get_variable_scope().get_collection(GraphKeys.GLOBAL_VARIABLES)
                if cols_to_output_tensors is not None:
                    cols_to_output_tensors[column] = tensor
        check_batch_sizes(tensors, columns)
        return array_ops.concat(tensors, 1)


def sequence_input_layer(
    features: Mapping[str, Any], feature_columns: Any, weight_collections: Any = None, trainable: bool = True
) -> tuple[Tensor, Tensor]:
    """The tensors of sequence columns beside each other, [batch, time, all], and the lengths, [batch].

    Raises:
        ValueError: a column is not one of sequences.
    """
    columns = normalized(feature_columns)
    _check_kind(columns, SequenceDenseColumn)
    collections = None if weight_collections is None else [*weight_collections]
    weights = VariablesOfScopes(collections or [GraphKeys.GLOBAL_VARIABLES], trainable)
    with variable_scope(None, "sequence_input_layer", list(features.values())):
        cache = FeatureCache(features)
        tensors: list[Tensor] = []
        lengths: list[Tensor] = []
        for column in columns:
            assert isinstance(column, SequenceDenseColumn)
            with variable_scope(None, column.scope_name):
                tensor, length = column.sequence(cache, weights)
                sizes = array_ops.shape(tensor)
                tensors.append(array_ops.reshape(tensor, [sizes[0], sizes[1], number_of_elements(column)]))
                lengths.append(length)
        check_batch_sizes(tensors, columns)
        check_batch_sizes(lengths, columns)
        return array_ops.concat(tensors, -1), _one_length(lengths)


def _one_length(lengths: list[Tensor]) -> Tensor:
    with name_scope(None, "assert_all_equal", lengths):
        if len(lengths) == 1:
            return lengths[0]
        with control_dependencies([assert_equal(lengths[0], other) for other in lengths[1:]]):
            return array_ops.identity(lengths[0])


def linear_model(
    features: Mapping[str, Any],
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Tensor:
    """A linear function of all columns: [batch, units].

    Args:
        sparse_combiner: how several ids of one example count: "sum", "mean" or "sqrtn".
        cols_to_vars: is filled with the variables of each column, and of "bias".

    Raises:
        ValueError: a column is neither dense nor categorical.
    """
    columns = normalized(feature_columns)
    for column in columns:
        if not isinstance(column, DenseColumn | CategoricalColumn):
            raise ValueError(f"a linear_model takes dense and categorical columns; got {column}")
    collections = model_collections(weight_collections)
    with variable_scope(None, "linear_model") as opened:
        name = opened.name.rpartition("/")[2]
    scopes: list[str] = []
    for column in columns:
        with variable_scope(None, column.scope_name) as inner:
            scopes.append(inner.name.rpartition("/")[2])
    graph = get_default_graph()
    with name_scope(name), variable_scope(name):
        cache = FeatureCache(features)
        weights = VariablesOfScopes(collections, trainable)
        sums: list[Tensor] = []
        for column, scope in sorted(zip(columns, scopes, strict=True), key=lambda pair: pair[1]):
            with variable_scope(scope, auxiliary_name_scope=False) as inner:
                variable = _weight(column, units, trainable)
                _collect(variable, collections)
                with name_scope(scope):
                    sums.append(weighted_sum(column, cache, weights, variable, sparse_combiner))
                if cols_to_vars is not None:
                    cols_to_vars[column] = graph.get_collection(GraphKeys.GLOBAL_VARIABLES, inner.name + "/")
        check_batch_sizes(sums, columns)
        total = math_ops.add_n(sums, name="weighted_sum_no_bias")
        bias = get_variable("bias_weights", [units], dtypes.float32, initializers.Zeros(), trainable=trainable)
        _collect(bias, collections)
        if cols_to_vars is not None:
            cols_to_vars["bias"] = list(getattr(bias, "parts", [bias]))
        return ops.bias_add(total, bias, name="weighted_sum")


def _weight(column: FeatureColumn, units: int, trainable: bool) -> Any:
    rows = column.num_buckets if isinstance(column, CategoricalColumn) else number_of_elements(column)
    return get_variable("weights", [rows, units], dtypes.float32, initializers.Zeros(), trainable=trainable)


def weighted_sum(
    column: FeatureColumn, cache: FeatureCache, weights: Any, variable: Any, sparse_combiner: str
) -> Tensor:
    """What one column adds to a linear model: [batch, units].

    Args:
        weights: where a column's own variables come from.
        variable: [buckets or elements, units].
    """
    if isinstance(column, CategoricalColumn):
        ids, counts = column.ids(cache)
        ids = sparse_ops.reshape(ids, [sparse_shape(ids)[0], -1])
        if counts is not None:
            counts = sparse_ops.reshape(counts, [sparse_shape(counts)[0], -1])
        return safe_embedding_lookup_sparse(variable, ids, counts, combiner=sparse_combiner, name="weighted_sum")
    assert isinstance(column, DenseColumn)
    return math_ops.matmul(_flat(column.dense(cache, weights), column), variable, name="weighted_sum")


def _flat(tensor: Tensor, column: DenseColumn) -> Tensor:
    """[batch, elements]"""
    return array_ops.reshape(tensor, (array_ops.shape(tensor)[0], number_of_elements(column)))


def _collect(variable: Any, collections: list[str]) -> None:
    graph = get_default_graph()
    for key in collections:
        if key != GraphKeys.GLOBAL_VARIABLES:
            for part in getattr(variable, "parts", [variable]):
                graph.add_to_collection(key, part)


def _check_kind(columns: list[FeatureColumn], kind: type) -> None:
    for column in columns:
        if not isinstance(column, kind):
            raise ValueError(
                f"expected columns of {kind.__name__}; got {column}; an embedding_column or an indicator_column makes "
                "one of a categorical column"
            )
