# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.learn's estimators of a linear and a deep model together, and one whose model a program gives."""

from __future__ import annotations

from typing import Any

from toolkit.client.nn import nn_ops
from toolkit.tensorflow.learn.canned import _Classifier, _DeepRegressor
from toolkit.tensorflow.learn.canned_models import combined_model_fn, partitioner_of
from toolkit.tensorflow.learn.estimator import LearnEstimator
from toolkit.tensorflow.learn.head_makers import multi_class_head, regression_head


def _columns(wide: Any, deep: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Raises ValueError: there are none."""
    if not wide and not deep:
        raise ValueError("give linear_feature_columns, dnn_feature_columns, or both")
    return tuple(wide or ()), tuple(deep or ())


def _input_partitioner(slices: Any, config: Any) -> Any:
    return None if slices is None else partitioner_of(config, min_slice_size=slices)


class LearnDNNLinearCombinedEstimator(LearnEstimator):
    """A linear model, a deep one, or their sum, with any head.

    Args:
        fix_global_step_increment_bug: count a step once; without it each of the two optimizers counts it.

    Raises:
        ValueError: there are no columns.
    """

    def __init__(
        self, head: Any, model_dir: Any = None, linear_feature_columns: Any = None, linear_optimizer: Any = None,
        _joint_linear_weights: Any = False, dnn_feature_columns: Any = None, dnn_optimizer: Any = None,
        dnn_hidden_units: Any = None, dnn_activation_fn: Any = None, dnn_dropout: Any = None,
        gradient_clip_norm: Any = None, config: Any = None, feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None, fix_global_step_increment_bug: Any = False,
        input_layer_partitioner: Any = None,
    ):  # fmt: skip
        wide, deep = _columns(linear_feature_columns, dnn_feature_columns)
        params = {
            "head": head, "linear_feature_columns": wide, "linear_optimizer": linear_optimizer,
            "joint_linear_weights": _joint_linear_weights, "dnn_feature_columns": deep, "dnn_optimizer": dnn_optimizer,
            "dnn_hidden_units": dnn_hidden_units, "dnn_activation_fn": dnn_activation_fn, "dnn_dropout": dnn_dropout,
            "gradient_clip_norm": gradient_clip_norm, "embedding_lr_multipliers": embedding_lr_multipliers,
            "fix_global_step_increment_bug": fix_global_step_increment_bug,
            "input_layer_partitioner": input_layer_partitioner,
        }  # fmt: skip
        super().__init__(combined_model_fn, model_dir, config, params, feature_engineering_fn)


class LearnDNNLinearCombinedClassifier(_Classifier):
    """A linear model of classes, a deep one, or their sum ("wide and deep").

    Raises:
        ValueError: there are no columns.
    """

    def __init__(
        self, model_dir: Any = None, n_classes: Any = 2, weight_column_name: Any = None,
        linear_feature_columns: Any = None, linear_optimizer: Any = None, _joint_linear_weights: Any = False,
        dnn_feature_columns: Any = None, dnn_optimizer: Any = None, dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = nn_ops.relu, dnn_dropout: Any = None, gradient_clip_norm: Any = None,
        enable_centered_bias: Any = False, config: Any = None, feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None, input_layer_min_slice_size: Any = None, label_keys: Any = None,
        fix_global_step_increment_bug: Any = False,
    ):  # fmt: skip
        wide, deep = _columns(linear_feature_columns, dnn_feature_columns)
        self._feature_columns = wide + deep
        params = {
            "head": multi_class_head(
                n_classes, None, weight_column_name, enable_centered_bias, label_keys=label_keys
            ),
            "linear_feature_columns": wide, "linear_optimizer": linear_optimizer,
            "joint_linear_weights": _joint_linear_weights, "dnn_feature_columns": deep, "dnn_optimizer": dnn_optimizer,
            "dnn_hidden_units": dnn_hidden_units, "dnn_activation_fn": dnn_activation_fn, "dnn_dropout": dnn_dropout,
            "gradient_clip_norm": gradient_clip_norm, "embedding_lr_multipliers": embedding_lr_multipliers,
            "input_layer_partitioner": _input_partitioner(input_layer_min_slice_size, config),
            "fix_global_step_increment_bug": fix_global_step_increment_bug,
        }  # fmt: skip
        super().__init__(combined_model_fn, model_dir, config, params, feature_engineering_fn)


class LearnDNNLinearCombinedRegressor(_DeepRegressor):
    """A linear model of numbers, a deep one, or their sum.

    Raises:
        ValueError: there are no columns.
    """

    def __init__(
        self, model_dir: Any = None, weight_column_name: Any = None, linear_feature_columns: Any = None,
        linear_optimizer: Any = None, _joint_linear_weights: Any = False, dnn_feature_columns: Any = None,
        dnn_optimizer: Any = None, dnn_hidden_units: Any = None, dnn_activation_fn: Any = nn_ops.relu,
        dnn_dropout: Any = None, gradient_clip_norm: Any = None, enable_centered_bias: Any = False,
        label_dimension: Any = 1, config: Any = None, feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None, input_layer_min_slice_size: Any = None,
        fix_global_step_increment_bug: Any = False,
    ):  # fmt: skip
        wide, deep = _columns(linear_feature_columns, dnn_feature_columns)
        self._feature_columns = wide + deep
        params = {
            "head": regression_head(None, weight_column_name, label_dimension, enable_centered_bias),
            "linear_feature_columns": wide, "linear_optimizer": linear_optimizer,
            "joint_linear_weights": _joint_linear_weights, "dnn_feature_columns": deep, "dnn_optimizer": dnn_optimizer,
            "dnn_hidden_units": dnn_hidden_units, "dnn_activation_fn": dnn_activation_fn, "dnn_dropout": dnn_dropout,
            "gradient_clip_norm": gradient_clip_norm, "embedding_lr_multipliers": embedding_lr_multipliers,
            "input_layer_partitioner": _input_partitioner(input_layer_min_slice_size, config),
            "fix_global_step_increment_bug": fix_global_step_increment_bug,
        }  # fmt: skip
        super().__init__(combined_model_fn, model_dir, config, params, feature_engineering_fn)
