# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""The models of tf.contrib.learn's canned estimators: deep, linear, both."""

from __future__ import annotations

import math
from typing import Any

from toolkit.client import ops
from toolkit.client.construction import context
from toolkit.client.construction.grouping import group
from toolkit.client.construction.scopes import colocate_with, control_dependencies
from toolkit.client.construction.tensor import Tensor
from toolkit.client.feature_columns import layers as core_layers
from toolkit.client.gradients import gradients
from toolkit.client.math.clip_ops import clip_by_global_norm
from toolkit.client.nn import nn_ops
from toolkit.client.scoped_columns import layers as scoped_layers
from toolkit.client.scoped_columns.base import ScopedColumn
from toolkit.client.scoped_columns.embedding import TableColumn
from toolkit.client.scoped_layers.dense import dropout, fully_connected
from toolkit.client.summaries import summary
from toolkit.client.train.global_step import get_global_step
from toolkit.client.variables.partition import min_max_variable_partitioner
from toolkit.client.variables.store import variable_scope
from toolkit.tensorflow.families.contrib.layers import OPTIMIZER_CLS_NAMES, optimize_loss
from toolkit.tensorflow.families.train.optimizers import FtrlOptimizer
from toolkit.tensorflow.families.train.sync_replicas import SyncReplicasOptimizer
from toolkit.tensorflow.learn.model_fn_ops import ModelFnOps

#: how fast the parts learn where nobody says
_DEEP_RATE, _LINEAR_RATE = 0.05, 0.2
#: a table is split over parameter servers into parts of at least so many bytes
_LARGE_SLICE = 64 << 20
#: the scopes of the parts, and the collections of their variables
_DEEP, _LINEAR = "dnn", "linear"
_ACTIVATIONS = {"relu": nn_ops.relu, "tanh": ops.tanh, "sigmoid": ops.sigmoid}


def partitioner_of(config: Any, **settings: Any) -> Any:
    """What splits variables over the parameter servers of a run."""
    return min_max_variable_partitioner(max_partitions=max(1, config.num_ps_replicas if config else 0), **settings)


def _by_name(features: Any) -> dict[Any, Any]:
    return features if isinstance(features, dict) else {"": features}


def _values(features: dict[Any, Any]) -> list[Any]:
    return [each for each in features.values() if isinstance(each, Tensor)]


def _made(optimizer: Any) -> Any:
    return optimizer() if callable(optimizer) else optimizer


def _activation(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    if given not in _ACTIVATIONS:
        raise ValueError(f"there is no activation '{given}'; there are: {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[given]


def _are_scoped(columns: Any) -> bool:
    """Whether all columns are of tf.contrib.layers; else tf.feature_column's functions take them."""
    return all(isinstance(column, ScopedColumn) for column in columns)


def _summarize(value: Any, tag: str, mark: str) -> None:
    summary.scalar(f"{tag}{mark}fraction_of_zero_values", nn_ops.zero_fraction(value))
    summary.histogram(f"{tag}{mark}activation", value)


def _deep_logits(
    features: dict[Any, Any], columns: Any, hidden_units: Any, activation_fn: Any, rate: Any, is_training: bool,
    dimension: int, partitioner: Any, mark: str,
) -> tuple[Any, str]:  # fmt: skip
    """The logits of the deep part, in its scope, and the scope of its inputs."""
    with variable_scope("input_from_feature_columns", values=_values(features), partitioner=partitioner) as scope:
        inputs = scope.name
        if _are_scoped(columns):
            net = scoped_layers.input_from_feature_columns(features, columns, [_DEEP], scope=scope)
        else:
            net = core_layers.input_layer(features, columns, [_DEEP])
    for number, size in enumerate(hidden_units):
        with variable_scope(f"hiddenlayer_{number}", values=(net,)) as scope:
            net = fully_connected(
                net, size, activation_fn=activation_fn, variables_collections=[_DEEP], scope=scope
            )  # fmt: skip
            if rate is not None and is_training:
                net = dropout(net, keep_prob=1.0 - rate)
        _summarize(net, scope.name, mark)
    with variable_scope("logits", values=(net,)) as scope:
        logits = fully_connected(net, dimension, activation_fn=None, variables_collections=[_DEEP], scope=scope)
    _summarize(logits, scope.name, mark)
    return logits, inputs


def _linear_logits(features: dict[Any, Any], columns: Any, is_joint: Any, dimension: int, scope: Any) -> Any:
    if not _are_scoped(columns):
        return core_layers.linear_model(features, columns, dimension, weight_collections=[_LINEAR])
    make = (
        scoped_layers.joint_weighted_sum_from_feature_columns if is_joint
        else scoped_layers.weighted_sum_from_feature_columns
    )  # fmt: skip
    return make(features, columns, dimension, [_LINEAR], scope=scope)[0]


def _multipliers(rates: Any, scope: str) -> Any:
    """Variables of embeddings to how much faster they learn.

    Raises:
        ValueError: a column is no embedding of tf.contrib.layers, or has no variable.
    """
    found: dict[Any, Any] = {}
    for column, rate in (rates or {}).items():
        if not isinstance(column, TableColumn):
            raise ValueError(f"embedding_lr_multipliers are for embedding columns; got {column}")
        variables = context.get_default_graph().get_collection(_DEEP, f"{scope}/{column.name}")
        if not variables:
            raise ValueError(f"embedding_lr_multipliers: the model has no variable of the column '{column.name}'")
        found |= dict.fromkeys(variables, rate)
    return found or None


def dnn_model_fn(features: Any, labels: Any, mode: Any, params: Any, config: Any = None) -> ModelFnOps:
    """A deep model."""
    head, optimizer = params["head"], params.get("optimizer") or "Adagrad"
    columns, features = params["feature_columns"], _by_name(features)
    slices = params.get("input_layer_min_slice_size") or _LARGE_SLICE
    activation_fn = _activation(params.get("activation_fn"))
    with variable_scope(_DEEP, values=_values(features), partitioner=partitioner_of(config)):
        logits, scope = _deep_logits(
            features, columns, params["hidden_units"], activation_fn, params.get("dropout"), mode == "train",
            head.logits_dimension, partitioner_of(config, min_slice_size=slices), "_",
        )  # fmt: skip

        def train_op_fn(loss: Any) -> Any:
            return optimize_loss(
                loss, get_global_step(), _DEEP_RATE, _made(optimizer),
                gradient_multipliers=_multipliers(params.get("embedding_lr_multipliers"), scope),
                clip_gradients=params.get("gradient_clip_norm"), name=_DEEP, summaries=[],
            )  # fmt: skip

        return head.create_model_fn_ops(features, mode, labels, train_op_fn, logits)


def linear_model_fn(features: Any, labels: Any, mode: Any, params: Any, config: Any = None) -> ModelFnOps:
    """A linear model."""
    head, columns, features = params["head"], params["feature_columns"], _by_name(features)
    partitioner = partitioner_of(config, min_slice_size=_LARGE_SLICE)
    with variable_scope(_LINEAR, values=_values(features), partitioner=partitioner) as scope:
        logits = _linear_logits(features, columns, params.get("joint_weights"), head.logits_dimension, scope)

        def train_op_fn(loss: Any) -> Any:
            variables = context.get_default_graph().get_collection(_LINEAR)
            found: Any = gradients(loss, variables)
            if params.get("gradient_clip_norm"):
                found, _ = clip_by_global_norm(found, params["gradient_clip_norm"])
            optimizer = _linear_optimizer(params.get("optimizer"), columns)
            return optimizer.apply_gradients(zip(found, variables, strict=True), global_step=get_global_step())

        return head.create_model_fn_ops(features, mode, labels, train_op_fn, logits)


def _linear_rate(columns: Any) -> float:
    return min(_LINEAR_RATE, 1.0 / math.sqrt(len(columns)))


def _linear_optimizer(given: Any, columns: Any) -> Any:
    """Raises ValueError: there is no optimizer of this name."""
    if not given:
        return FtrlOptimizer(_linear_rate(columns))
    if not isinstance(given, str):
        return _made(given)
    if given not in OPTIMIZER_CLS_NAMES:
        raise ValueError(f"there is no optimizer '{given}'; there are: {', '.join(OPTIMIZER_CLS_NAMES)}")
    return OPTIMIZER_CLS_NAMES[given](learning_rate=_LINEAR_RATE)


def combined_model_fn(features: Any, labels: Any, mode: Any, params: Any, config: Any = None) -> ModelFnOps:
    """A deep model, a linear one, or the sum of both, each with an optimizer of its own.

    Raises:
        ValueError: no columns, columns of a deep part without layers, an optimizer that waits for other workers.
    """
    head, features = params["head"], _by_name(features)
    wide, deep = params.get("linear_feature_columns"), params.get("dnn_feature_columns")
    wide_optimizer = _alone(params.get("linear_optimizer") or "Ftrl")
    deep_optimizer = _alone(params.get("dnn_optimizer") or "Adagrad")
    large = partitioner_of(config, min_slice_size=_LARGE_SLICE)
    parts: list[Any] = []
    trained: list[Any] = []
    is_fixed = params.get("fix_global_step_increment_bug", True)
    common = {
        "clip_gradients": params.get("gradient_clip_norm"), "summaries": [], "increment_global_step": not is_fixed
    }  # fmt: skip
    if deep:
        if not params.get("dnn_hidden_units"):
            raise ValueError("dnn_feature_columns are given, and no dnn_hidden_units")
        with variable_scope(_DEEP, values=_values(features), partitioner=partitioner_of(config)):
            logits, scope = _deep_logits(
                features, deep, params["dnn_hidden_units"], params.get("dnn_activation_fn") or nn_ops.relu,
                params.get("dnn_dropout"), mode == "train", head.logits_dimension,
                params.get("input_layer_partitioner") or large, "/",
            )  # fmt: skip
        parts.append(logits)

        def train_deep(loss: Any) -> Any:
            return optimize_loss(
                loss, get_global_step(), _DEEP_RATE, deep_optimizer, variables=_collected(_DEEP), name=_DEEP,
                gradient_multipliers=_multipliers(params.get("embedding_lr_multipliers"), scope), **common,
            )  # fmt: skip

        trained.append(train_deep)
    if wide:
        with variable_scope(_LINEAR, values=_values(features), partitioner=large) as opened:
            logits = _linear_logits(features, wide, params.get("joint_linear_weights"), head.logits_dimension, opened)
            _summarize(logits, opened.name, "/")
        parts.append(logits)

        def train_wide(loss: Any) -> Any:
            return optimize_loss(
                loss, get_global_step(), _linear_rate(wide), wide_optimizer, variables=_collected(_LINEAR),
                name=_LINEAR, **common,
            )  # fmt: skip

        trained.append(train_wide)
    if not parts:
        raise ValueError("give linear_feature_columns, dnn_feature_columns, or both")

    def train_op_fn(loss: Any) -> Any:
        train_op = group([each(loss) for each in trained])
        if not is_fixed:
            return train_op  # each optimizer has counted the step, as 1.15 does unless it is told not to
        step = get_global_step()
        with control_dependencies([train_op]), colocate_with(step):
            return step.assign_add(1).op

    total = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    return head.create_model_fn_ops(features, mode, labels, train_op_fn, total)


def _collected(key: str) -> list[Any]:
    return context.get_default_graph().get_collection(key)


def _alone(given: Any) -> Any:
    optimizer = _made(given)
    if isinstance(optimizer, SyncReplicasOptimizer):
        raise ValueError("a model of two parts takes no SyncReplicasOptimizer; use a DNN or a Linear estimator with it")
    return optimizer
