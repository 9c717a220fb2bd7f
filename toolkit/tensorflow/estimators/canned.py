# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Estimators whose models are made of feature columns: linear, deep, both, and the mean of the labels."""

from __future__ import annotations

import math
from typing import Any

from toolkit.client import layers as layer_classes
from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction import context
from toolkit.client.construction.grouping import group
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.feature_columns import layers as columns_layers
from toolkit.client.feature_columns.base import (
    CategoricalColumn,
    DenseColumn,
    FeatureCache,
    FeatureColumn,
    check_batch_sizes,
    normalized,
    number_of_elements,
)
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.summaries import summary
from toolkit.client.train.global_step import get_global_step
from toolkit.client.variables import initializers
from toolkit.client.variables.partition import min_max_variable_partitioner
from toolkit.client.variables.store import get_variable, get_variable_scope, variable_scope
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.estimators.estimator import Estimator
from toolkit.tensorflow.estimators.heads import Head, RegressionHead, head_of
from toolkit.tensorflow.estimators.run_config import ModeKeys
from toolkit.tensorflow.families.layers import functions as layers
from toolkit.tensorflow.families.train import optimizers

_SUM = "weighted_sum"
#: the largest rates at which the parts learn where none is given
_DEEP_RATE, _LINEAR_RATE, _DEEP_RATE_ALONE, _LINEAR_RATE_ALONE, _BASELINE_RATE = 0.001, 0.005, 0.05, 0.2, 0.3
_LARGE_SLICE = 64 << 20
_BATCH_NORM_MOMENTUM = 0.999


def optimizer_of(optimizer: Any, learning_rate: float) -> Any:
    """An optimizer, of its name, of a function that makes it, or itself.

    Raises:
        ValueError: it is none.
    """
    if callable(optimizer) and not isinstance(optimizer, str) and not hasattr(optimizer, "minimize"):
        optimizer = optimizer()
    if isinstance(optimizer, str):
        by_name = {
            "Adagrad": optimizers.AdagradOptimizer, "Adam": optimizers.AdamOptimizer,
            "Ftrl": optimizers.FtrlOptimizer, "RMSProp": optimizers.RMSPropOptimizer,
            "SGD": optimizers.GradientDescentOptimizer,
        }  # fmt: skip
        if optimizer not in by_name:
            raise ValueError(f"there is no optimizer '{optimizer}'; there are: {', '.join(by_name)}")
        return by_name[optimizer](learning_rate=learning_rate)
    if not hasattr(optimizer, "minimize"):
        raise ValueError(f"optimizer must be a tf.train.Optimizer, its name, or a function; got {optimizer!r}")
    return optimizer


class _LayerWeights:
    """Variables of columns below a layer's scope, made before the columns are computed."""

    def __init__(self) -> None:
        self._shared = columns_layers.VariablesOfScopes([GraphKeys.GLOBAL_VARIABLES], True)

    def variable(self, column: FeatureColumn, shape: tuple[int, ...], initializer: Any, trainable: bool) -> Any:
        with variable_scope(column.name, auxiliary_name_scope=False):
            return get_variable("embedding_weights", shape, dtypes.float32, initializer, trainable=trainable)

    def shared(self, name: str, shape: tuple[int, ...], initializer: Any, trainable: bool) -> Any:
        with variable_scope(name, auxiliary_name_scope=False):
            return self._shared.shared(name, shape, initializer, trainable)


def _check_features(features: Any) -> None:
    if not isinstance(features, dict):
        raise ValueError(f"features must be tensors by name; got {features!r}")


def dnn_logit_fn_builder(
    units: Any, hidden_units: Any, feature_columns: Any, activation_fn: Any, dropout: Any,
    input_layer_partitioner: Any, batch_norm: Any,
) -> Any:  # fmt: skip
    """A function of features and mode that gives the logits of a deep model, in the scope that is open.

    Raises:
        ValueError: the number of logits is no integer.
    """
    if not isinstance(units, int):
        raise ValueError(f"units must be an integer; got {units!r}")

    def dnn_logit_fn(features: Any, mode: Any) -> Tensor:
        is_training = mode == ModeKeys.TRAIN
        get_variable_scope().set_use_resource(True)
        with variable_scope("input_from_feature_columns", partitioner=input_layer_partitioner):
            net = _dense_features(features, feature_columns)
        for number, size in enumerate(hidden_units):
            name = f"hiddenlayer_{number}"
            with variable_scope(name) as scope:
                net = _dense(net, size, activation_fn, scope)
                if dropout is not None and is_training:
                    net = layers.dropout(net, rate=dropout, training=True)
                if batch_norm:
                    net = layers.batch_normalization(
                        net, momentum=_BATCH_NORM_MOMENTUM, training=is_training, name=f"batchnorm_{number}"
                    )
            _add_summaries(net, scope.name)
        with variable_scope("logits") as scope:
            logits = _dense(net, units, None, scope)
        _add_summaries(logits, scope.name)
        return logits

    return dnn_logit_fn


def _dense(net: Tensor, units: int, activation: Any, scope: Any) -> Tensor:
    """A layer whose variables are in a scope that is open."""
    made = layer_classes.Dense(units, activation, name=scope.name, _scope=scope)
    return made.apply(net)


def _dense_features(features: Any, feature_columns: Any) -> Tensor:
    """The tensors of dense columns beside each other."""
    columns = normalized(feature_columns)
    cache, weights = FeatureCache(features), _LayerWeights()
    tensors: list[Tensor] = []
    with variable_scope("input_layer"):
        for column in columns:
            if not isinstance(column, DenseColumn):
                raise ValueError(
                    f"a deep model takes dense columns; got {column}; an embedding_column or an indicator_column makes "
                    "one of a categorical column"
                )
            with name_scope(column.name):
                tensor = column.dense(cache, weights)
                sizes = (array_ops.shape(tensor)[0], number_of_elements(column))
                tensors.append(array_ops.reshape(tensor, sizes))
        check_batch_sizes(tensors, columns)
        return array_ops.concat(tensors, -1)


def _add_summaries(value: Tensor, tag: str) -> None:
    summary.scalar(f"{tag}/fraction_of_zero_values", nn_ops.zero_fraction(value))
    summary.histogram(f"{tag}/activation", value)


def linear_logit_fn_builder(units: Any, feature_columns: Any, sparse_combiner: str = "sum") -> Any:
    """A function of features that gives the logits of a linear model, in the scope that is open."""

    def linear_logit_fn(features: Any) -> Tensor:
        columns = normalized(feature_columns)
        get_variable_scope().set_use_resource(True)
        made: dict[FeatureColumn, Any] = {}
        cache, weights = FeatureCache(features), _LayerWeights()
        with variable_scope("linear_model"):
            for column in columns:
                if not isinstance(column, DenseColumn | CategoricalColumn):
                    raise ValueError(f"a linear model takes dense and categorical columns; got {column}")
                rows = column.num_buckets if isinstance(column, CategoricalColumn) else number_of_elements(column)
                with variable_scope(column.name, auxiliary_name_scope=False):
                    made[column] = get_variable("weights", [rows, units], dtypes.float32, initializers.Zeros())
            bias = get_variable("bias_weights", [units], dtypes.float32, initializers.Zeros())
            sums: list[Tensor] = []
            for column in columns:
                with name_scope(column.name):
                    sums.append(columns_layers.weighted_sum(column, cache, weights, made[column], sparse_combiner))
            check_batch_sizes(sums, columns)
            total = math_ops.add_n(sums, name="weighted_sum_no_bias")
            logits = ops.bias_add(total, bias, name="weighted_sum")
        if units > 1:
            summary.histogram("bias", bias)
        else:
            summary.scalar("bias", array_ops.reshape(bias, []))
        summary.scalar("fraction_of_zero_weights", _share_of_zeros(made.values()))
        return logits

    return linear_logit_fn


def _share_of_zeros(variables: Any) -> Tensor:
    with name_scope("zero_fraction"):
        flat = [array_ops.reshape(variable, [-1]) for variable in variables]
        return nn_ops.zero_fraction(flat[0] if len(flat) == 1 else array_ops.concat(flat, 0))


def _values(features: Any) -> list[Any]:
    return [each for each in features.values() if isinstance(each, Tensor)]


def _partitioner(config: Any, **settings: Any) -> Any:
    return min_max_variable_partitioner(max_partitions=max(1, config.num_ps_replicas), **settings)


def _deep_logits(features: Any, mode: Any, head: Head, config: Any, settings: dict[str, Any]) -> tuple[Any, str]:
    """The logits of the deep part and the scope of its variables."""
    with variable_scope("dnn", values=_values(features), partitioner=_partitioner(config)) as scope:
        partitioner = settings["input_layer_partitioner"] or _partitioner(config, min_slice_size=_LARGE_SLICE)
        build = dnn_logit_fn_builder(
            head.logits_dimension, settings["hidden_units"], settings["feature_columns"], settings["activation_fn"],
            settings["dropout"], partitioner, settings["batch_norm"],
        )  # fmt: skip
        return build(features=features, mode=mode), scope.name


def _dnn_model(head: Head, optimizer: Any, settings: dict[str, Any]) -> Any:
    def model_fn(features: Any, labels: Any, mode: Any, config: Any) -> Any:
        _check_features(features)
        chosen = optimizer_of(optimizer, _DEEP_RATE_ALONE)
        logits, name = _deep_logits(features, mode, head, config, settings)
        with variable_scope(name, auxiliary_name_scope=False):
            return head.create_estimator_spec(features, mode, logits, labels, chosen)

    return model_fn


def _linear_rate(columns: Any, most: float) -> float:
    return min(most, 1.0 / math.sqrt(len(columns)))


def _linear_model(head: Head, columns: Any, optimizer: Any, partitioner: Any, sparse_combiner: str) -> Any:
    columns = _listed(columns)

    def model_fn(features: Any, labels: Any, mode: Any, config: Any) -> Any:
        _check_features(features)
        split = partitioner or _partitioner(config, min_slice_size=_LARGE_SLICE)
        with variable_scope("linear", values=_values(features), partitioner=split):
            logits = linear_logit_fn_builder(head.logits_dimension, columns, sparse_combiner)(features)
            # the name alone learns as fast as if nothing were named
            rate = _linear_rate(columns, _LINEAR_RATE_ALONE) if optimizer is None else _LINEAR_RATE_ALONE
            chosen = optimizer_of(optimizer or "Ftrl", rate)
            return head.create_estimator_spec(features, mode, logits, labels, chosen)

    return model_fn


def _listed(columns: Any) -> list[Any]:
    return [columns] if isinstance(columns, FeatureColumn) else list(columns or ())


def _combined_model(head: Head, linear: dict[str, Any], deep_optimizer: Any, deep: dict[str, Any]) -> Any:
    linear_columns, deep_columns = _listed(linear["feature_columns"]), _listed(deep["feature_columns"])
    if not linear_columns and not deep_columns:
        raise ValueError("give linear_feature_columns, dnn_feature_columns, or both")
    if deep_columns and not deep["hidden_units"]:
        raise ValueError("dnn_feature_columns are given, and no dnn_hidden_units")

    def model_fn(features: Any, labels: Any, mode: Any, config: Any) -> Any:
        _check_features(features)
        parts: list[tuple[Any, Any, str]] = []
        if deep_columns:
            chosen = optimizer_of(deep_optimizer, _DEEP_RATE)
            logits, name = _deep_logits(features, mode, head, config, {**deep, "feature_columns": deep_columns})
            parts.append((logits, chosen, name))
        if linear_columns:
            chosen = optimizer_of(linear["optimizer"], _linear_rate(linear_columns, _LINEAR_RATE))
            split = deep["input_layer_partitioner"] or _partitioner(config, min_slice_size=_LARGE_SLICE)
            with variable_scope("linear", values=_values(features), partitioner=split) as scope:
                build = linear_logit_fn_builder(head.logits_dimension, linear_columns, linear["sparse_combiner"])
                logits = build(features)
                _add_summaries(logits, scope.name)
            parts.append((logits, chosen, scope.name))
        total = parts[0][0] if len(parts) == 1 else parts[0][0] + parts[1][0]

        def train_op_fn(loss: Any) -> Any:
            graph = context.get_default_graph()
            trained = [
                chosen.minimize(loss, var_list=graph.get_collection(GraphKeys.TRAINABLE_VARIABLES, name + "/"))
                for _, chosen, name in parts
            ]
            with control_dependencies([group(trained)]):
                return get_global_step().assign_add(1).op

        return head.create_estimator_spec(features, mode, total, labels, train_op_fn=train_op_fn)

    return model_fn


def _baseline_model(head: Head, optimizer: Any, weight_column: Any) -> Any:
    weight_key = getattr(weight_column, "key", weight_column)

    def model_fn(features: Any, labels: Any, mode: Any) -> Any:
        sizes = [array_ops.shape(each)[0] for key, each in features.items() if key != weight_key]
        with variable_scope("baseline"):
            bias = get_variable("bias", [head.logits_dimension], initializer=initializers.Zeros())
            logits = math_ops.multiply(bias, array_ops.ones([sizes[0], head.logits_dimension]))

        def train_op_fn(loss: Any) -> Any:
            return optimizer_of(optimizer, _BASELINE_RATE).minimize(loss, global_step=get_global_step())

        return head.create_estimator_spec(features, mode, logits, labels, train_op_fn=train_op_fn)

    return model_fn


# -- the estimators -------------------------------------------------------------------------------------------------


class LinearEstimator(Estimator):
    """A linear model with any head."""

    def __init__(
        self, head: Any, feature_columns: Any, model_dir: Any = None, optimizer: Any = "Ftrl", config: Any = None,
        partitioner: Any = None, sparse_combiner: Any = "sum",
    ):  # fmt: skip
        model_fn = _linear_model(head, feature_columns, optimizer, partitioner, sparse_combiner)
        super().__init__(model_fn, model_dir, config)


class LinearClassifier(Estimator):
    """A linear model of classes."""

    def __init__(
        self, feature_columns: Any, model_dir: Any = None, n_classes: Any = 2, weight_column: Any = None,
        label_vocabulary: Any = None, optimizer: Any = "Ftrl", config: Any = None, partitioner: Any = None,
        warm_start_from: Any = None, loss_reduction: Any = _SUM, sparse_combiner: Any = "sum",
    ):  # fmt: skip
        head = head_of(n_classes, weight_column, label_vocabulary, loss_reduction)
        model_fn = _linear_model(head, feature_columns, optimizer, partitioner, sparse_combiner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class LinearRegressor(Estimator):
    """A linear model of numbers."""

    def __init__(
        self, feature_columns: Any, model_dir: Any = None, label_dimension: Any = 1, weight_column: Any = None,
        optimizer: Any = "Ftrl", config: Any = None, partitioner: Any = None, warm_start_from: Any = None,
        loss_reduction: Any = _SUM, sparse_combiner: Any = "sum",
    ):  # fmt: skip
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        model_fn = _linear_model(head, feature_columns, optimizer, partitioner, sparse_combiner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


def _deep_settings(
    hidden_units: Any, feature_columns: Any, activation_fn: Any, dropout: Any, partitioner: Any, batch_norm: Any
) -> dict[str, Any]:
    return {
        "hidden_units": hidden_units, "feature_columns": feature_columns, "activation_fn": activation_fn,
        "dropout": dropout, "input_layer_partitioner": partitioner, "batch_norm": batch_norm,
    }  # fmt: skip


class DNNEstimator(Estimator):
    """A deep model with any head."""

    def __init__(
        self, head: Any, hidden_units: Any, feature_columns: Any, model_dir: Any = None, optimizer: Any = "Adagrad",
        activation_fn: Any = nn_ops.relu, dropout: Any = None, input_layer_partitioner: Any = None,
        config: Any = None, warm_start_from: Any = None, batch_norm: Any = False,
    ):  # fmt: skip
        settings = _deep_settings(
            hidden_units, feature_columns, activation_fn, dropout, input_layer_partitioner, batch_norm
        )
        super().__init__(_dnn_model(head, optimizer, settings), model_dir, config, warm_start_from=warm_start_from)


class DNNClassifier(Estimator):
    """A deep model of classes."""

    def __init__(
        self, hidden_units: Any, feature_columns: Any, model_dir: Any = None, n_classes: Any = 2,
        weight_column: Any = None, label_vocabulary: Any = None, optimizer: Any = "Adagrad",
        activation_fn: Any = nn_ops.relu, dropout: Any = None, input_layer_partitioner: Any = None,
        config: Any = None, warm_start_from: Any = None, loss_reduction: Any = _SUM, batch_norm: Any = False,
    ):  # fmt: skip
        head = head_of(n_classes, weight_column, label_vocabulary, loss_reduction)
        settings = _deep_settings(
            hidden_units, feature_columns, activation_fn, dropout, input_layer_partitioner, batch_norm
        )
        super().__init__(_dnn_model(head, optimizer, settings), model_dir, config, warm_start_from=warm_start_from)


class DNNRegressor(Estimator):
    """A deep model of numbers."""

    def __init__(
        self, hidden_units: Any, feature_columns: Any, model_dir: Any = None, label_dimension: Any = 1,
        weight_column: Any = None, optimizer: Any = "Adagrad", activation_fn: Any = nn_ops.relu,
        dropout: Any = None, input_layer_partitioner: Any = None, config: Any = None, warm_start_from: Any = None,
        loss_reduction: Any = _SUM, batch_norm: Any = False,
    ):  # fmt: skip
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        settings = _deep_settings(
            hidden_units, feature_columns, activation_fn, dropout, input_layer_partitioner, batch_norm
        )
        super().__init__(_dnn_model(head, optimizer, settings), model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedEstimator(Estimator):
    """A deep and a linear model whose logits are added, with any head."""

    def __init__(
        self, head: Any, model_dir: Any = None, linear_feature_columns: Any = None, linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None, dnn_optimizer: Any = "Adagrad", dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = nn_ops.relu, dnn_dropout: Any = None, input_layer_partitioner: Any = None,
        config: Any = None, linear_sparse_combiner: Any = "sum",
    ):  # fmt: skip
        linear = {
            "feature_columns": linear_feature_columns, "optimizer": linear_optimizer,
            "sparse_combiner": linear_sparse_combiner,
        }  # fmt: skip
        deep = _deep_settings(
            dnn_hidden_units, dnn_feature_columns, dnn_activation_fn, dnn_dropout, input_layer_partitioner, False
        )
        super().__init__(_combined_model(head, linear, dnn_optimizer, deep), model_dir, config)


class DNNLinearCombinedClassifier(Estimator):
    """A deep and a linear model of classes whose logits are added."""

    def __init__(
        self, model_dir: Any = None, linear_feature_columns: Any = None, linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None, dnn_optimizer: Any = "Adagrad", dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = nn_ops.relu, dnn_dropout: Any = None, n_classes: Any = 2,
        weight_column: Any = None, label_vocabulary: Any = None, input_layer_partitioner: Any = None,
        config: Any = None, warm_start_from: Any = None, loss_reduction: Any = _SUM, batch_norm: Any = False,
        linear_sparse_combiner: Any = "sum",
    ):  # fmt: skip
        head = head_of(n_classes, weight_column, label_vocabulary, loss_reduction)
        linear = {
            "feature_columns": linear_feature_columns, "optimizer": linear_optimizer,
            "sparse_combiner": linear_sparse_combiner,
        }  # fmt: skip
        deep = _deep_settings(
            dnn_hidden_units, dnn_feature_columns, dnn_activation_fn, dnn_dropout, input_layer_partitioner, batch_norm
        )
        model_fn = _combined_model(head, linear, dnn_optimizer, deep)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedRegressor(Estimator):
    """A deep and a linear model of numbers that are added."""

    def __init__(
        self, model_dir: Any = None, linear_feature_columns: Any = None, linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None, dnn_optimizer: Any = "Adagrad", dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = nn_ops.relu, dnn_dropout: Any = None, label_dimension: Any = 1,
        weight_column: Any = None, input_layer_partitioner: Any = None, config: Any = None,
        warm_start_from: Any = None, loss_reduction: Any = _SUM, batch_norm: Any = False,
        linear_sparse_combiner: Any = "sum",
    ):  # fmt: skip
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        linear = {
            "feature_columns": linear_feature_columns, "optimizer": linear_optimizer,
            "sparse_combiner": linear_sparse_combiner,
        }  # fmt: skip
        deep = _deep_settings(
            dnn_hidden_units, dnn_feature_columns, dnn_activation_fn, dnn_dropout, input_layer_partitioner, batch_norm
        )
        model_fn = _combined_model(head, linear, dnn_optimizer, deep)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class BaselineEstimator(Estimator):
    """Learns what labels are on average, with any head."""

    def __init__(self, head: Any, model_dir: Any = None, optimizer: Any = "Ftrl", config: Any = None):
        super().__init__(_baseline_model(head, optimizer, None), model_dir, config)


class BaselineClassifier(Estimator):
    """Learns how frequent the classes are."""

    def __init__(
        self, model_dir: Any = None, n_classes: Any = 2, weight_column: Any = None, label_vocabulary: Any = None,
        optimizer: Any = "Ftrl", config: Any = None, loss_reduction: Any = _SUM,
    ):  # fmt: skip
        head = head_of(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(_baseline_model(head, optimizer, weight_column), model_dir, config)


class BaselineRegressor(Estimator):
    """Learns the mean of the labels."""

    def __init__(
        self, model_dir: Any = None, label_dimension: Any = 1, weight_column: Any = None, optimizer: Any = "Ftrl",
        config: Any = None, loss_reduction: Any = _SUM,
    ):  # fmt: skip
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        super().__init__(_baseline_model(head, optimizer, weight_column), model_dir, config)
