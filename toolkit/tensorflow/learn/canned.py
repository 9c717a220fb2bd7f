# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.learn's canned estimators: deep, linear and combined models of classes, of numbers, of any head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolkit.client.nn import nn_ops
from toolkit.tensorflow.learn.canned_models import dnn_model_fn, linear_model_fn
from toolkit.tensorflow.learn.estimator import LearnEstimator
from toolkit.tensorflow.learn.head_makers import multi_class_head, regression_head
from toolkit.tensorflow.learn.keys import PredictionKey
from toolkit.tensorflow.learn.metric_spec import MetricSpec


def _of_key(predictions: Any, key: str) -> Iterator[Any]:
    for each in predictions:
        yield each[key]


class _Canned(LearnEstimator):
    def _of_one(self, key: str, x: Any, input_fn: Any, batch_size: Any, as_iterable: Any) -> Any:
        """One prediction for each example, or an array of all."""
        found = LearnEstimator.predict(self, x, input_fn, batch_size, [key], as_iterable)
        return _of_key(found, key) if as_iterable else found[key]

    def export(
        self, export_dir: Any, input_fn: Any = None, input_feature_key: Any = None,
        use_deprecated_input_fn: Any = True, signature_fn: Any = None, default_batch_size: Any = 1,
        exports_to_keep: Any = None,
    ) -> Any:  # fmt: skip
        """As `BaseEstimator.export`: nothing reads such files any more."""
        return super().export(export_dir)


class _Classifier(_Canned):
    #: whether an array of all classes is flat
    _is_flat = True

    def predict(
        self, x: Any = None, input_fn: Any = None, batch_size: Any = None, outputs: Any = None, as_iterable: Any = True
    ) -> Any:
        """The class of each example; or `outputs`, predictions by name."""
        if not outputs:
            return self.predict_classes(x, input_fn, batch_size, as_iterable)
        return super().predict(x, input_fn, batch_size, outputs, as_iterable)

    def predict_classes(
        self, x: Any = None, input_fn: Any = None, batch_size: Any = None, as_iterable: Any = True
    ) -> Any:
        """The class of each example: a number, or a word where there are label_keys."""
        found = self._of_one(PredictionKey.CLASSES, x, input_fn, batch_size, as_iterable)
        return found.reshape(-1) if not as_iterable and self._is_flat else found

    def predict_proba(
        self, x: Any = None, input_fn: Any = None, batch_size: Any = None, as_iterable: Any = True
    ) -> Any:
        """How likely each class is, for each example."""
        return self._of_one(PredictionKey.PROBABILITIES, x, input_fn, batch_size, as_iterable)


class _Regressor(_Canned):
    def predict(
        self, x: Any = None, input_fn: Any = None, batch_size: Any = None, outputs: Any = None, as_iterable: Any = True
    ) -> Any:
        """The number of each example; or `outputs`, predictions by name."""
        if not outputs:
            return self.predict_scores(x, input_fn, batch_size, as_iterable)
        return super().predict(x, input_fn, batch_size, outputs, as_iterable)

    def predict_scores(
        self, x: Any = None, input_fn: Any = None, batch_size: Any = None, as_iterable: Any = True
    ) -> Any:
        """The number of each example."""
        return self._of_one(PredictionKey.SCORES, x, input_fn, batch_size, as_iterable)


class _DeepRegressor(_Regressor):
    def evaluate(
        self, x: Any = None, y: Any = None, input_fn: Any = None, feed_fn: Any = None, batch_size: Any = None,
        steps: Any = None, metrics: Any = None, name: Any = None, checkpoint_path: Any = None, hooks: Any = None,
    ) -> Any:  # fmt: skip
        """As `BaseEstimator.evaluate`; a metric without a key is one of the scores."""
        if isinstance(metrics, dict):
            metrics = {
                key if isinstance(each, MetricSpec) or isinstance(key, tuple) else (key, PredictionKey.SCORES): each
                for key, each in metrics.items()
            }
        return super().evaluate(x, y, input_fn, feed_fn, batch_size, steps, metrics, name, checkpoint_path, hooks)


def _some(columns: Any) -> tuple[Any, ...]:
    """Raises ValueError: there are no columns."""
    if not columns:
        raise ValueError("feature_columns is empty; a model has at least one")
    return tuple(columns)


# -- deep -----------------------------------------------------------------------------------------------------------


class LearnDNNClassifier(_Classifier):
    """A deep model of classes.

    Args:
        hidden_units: the sizes of its layers.
        embedding_lr_multipliers: embedding columns to how much faster they learn.
        label_keys: the words that labels are, of more than two classes.
    """

    def __init__(
        self, hidden_units: Any, feature_columns: Any, model_dir: Any = None, n_classes: Any = 2,
        weight_column_name: Any = None, optimizer: Any = None, activation_fn: Any = nn_ops.relu, dropout: Any = None,
        gradient_clip_norm: Any = None, enable_centered_bias: Any = False, config: Any = None,
        feature_engineering_fn: Any = None, embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: Any = None, label_keys: Any = None,
    ):  # fmt: skip
        self._feature_columns = tuple(feature_columns or ())
        params = {
            "head": multi_class_head(
                n_classes, None, weight_column_name, enable_centered_bias, label_keys=label_keys
            ),
            "hidden_units": hidden_units, "feature_columns": self._feature_columns, "optimizer": optimizer,
            "activation_fn": activation_fn, "dropout": dropout, "gradient_clip_norm": gradient_clip_norm,
            "embedding_lr_multipliers": embedding_lr_multipliers,
            "input_layer_min_slice_size": input_layer_min_slice_size,
        }  # fmt: skip
        super().__init__(dnn_model_fn, model_dir, config, params, feature_engineering_fn)


class LearnDNNRegressor(_DeepRegressor):
    """A deep model of numbers, `label_dimension` for each example."""

    def __init__(
        self, hidden_units: Any, feature_columns: Any, model_dir: Any = None, weight_column_name: Any = None,
        optimizer: Any = None, activation_fn: Any = nn_ops.relu, dropout: Any = None, gradient_clip_norm: Any = None,
        enable_centered_bias: Any = False, config: Any = None, feature_engineering_fn: Any = None,
        label_dimension: Any = 1, embedding_lr_multipliers: Any = None, input_layer_min_slice_size: Any = None,
    ):  # fmt: skip
        self._feature_columns = tuple(feature_columns or ())
        params = {
            "head": regression_head(None, weight_column_name, label_dimension, enable_centered_bias),
            "hidden_units": hidden_units, "feature_columns": self._feature_columns, "optimizer": optimizer,
            "activation_fn": activation_fn, "dropout": dropout, "gradient_clip_norm": gradient_clip_norm,
            "embedding_lr_multipliers": embedding_lr_multipliers,
            "input_layer_min_slice_size": input_layer_min_slice_size,
        }  # fmt: skip
        super().__init__(dnn_model_fn, model_dir, config, params, feature_engineering_fn)


class LearnDNNEstimator(LearnEstimator):
    """A deep model with any head."""

    def __init__(
        self, head: Any, hidden_units: Any, feature_columns: Any, model_dir: Any = None, optimizer: Any = None,
        activation_fn: Any = nn_ops.relu, dropout: Any = None, gradient_clip_norm: Any = None, config: Any = None,
        feature_engineering_fn: Any = None, embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: Any = None,
    ):  # fmt: skip
        params = {
            "head": head, "hidden_units": hidden_units, "feature_columns": feature_columns, "optimizer": optimizer,
            "activation_fn": activation_fn, "dropout": dropout, "gradient_clip_norm": gradient_clip_norm,
            "embedding_lr_multipliers": embedding_lr_multipliers,
            "input_layer_min_slice_size": input_layer_min_slice_size,
        }  # fmt: skip
        super().__init__(dnn_model_fn, model_dir, config, params, feature_engineering_fn)


# -- linear ---------------------------------------------------------------------------------------------------------


class LearnLinearClassifier(_Classifier):
    """A linear model of classes.

    Args:
        _joint_weight: one variable for the weights of all columns, which must be of categories.

    Raises:
        ValueError: there are no columns.
    """

    _is_flat = False

    def __init__(
        self, feature_columns: Any, model_dir: Any = None, n_classes: Any = 2, weight_column_name: Any = None,
        optimizer: Any = None, gradient_clip_norm: Any = None, enable_centered_bias: Any = False,
        _joint_weight: Any = False, config: Any = None, feature_engineering_fn: Any = None, label_keys: Any = None,
    ):  # fmt: skip
        self._feature_columns = _some(feature_columns)
        params = {
            "head": multi_class_head(
                n_classes, None, weight_column_name, enable_centered_bias, label_keys=label_keys
            ),
            "feature_columns": feature_columns, "optimizer": optimizer, "gradient_clip_norm": gradient_clip_norm,
            "joint_weights": _joint_weight,
        }  # fmt: skip
        super().__init__(linear_model_fn, model_dir, config, params, feature_engineering_fn)


class LearnLinearRegressor(_Regressor):
    """A linear model of numbers, `label_dimension` for each example.

    Raises:
        ValueError: there are no columns.
    """

    def __init__(
        self, feature_columns: Any, model_dir: Any = None, weight_column_name: Any = None, optimizer: Any = None,
        gradient_clip_norm: Any = None, enable_centered_bias: Any = False, label_dimension: Any = 1,
        _joint_weights: Any = False, config: Any = None, feature_engineering_fn: Any = None,
    ):  # fmt: skip
        self._feature_columns = _some(feature_columns)
        params = {
            "head": regression_head(None, weight_column_name, label_dimension, enable_centered_bias),
            "feature_columns": feature_columns, "optimizer": optimizer, "gradient_clip_norm": gradient_clip_norm,
            "joint_weights": _joint_weights,
        }  # fmt: skip
        super().__init__(linear_model_fn, model_dir, config, params, feature_engineering_fn)


class LearnLinearEstimator(LearnEstimator):
    """A linear model with any head.

    Raises:
        ValueError: there are no columns.
    """

    def __init__(
        self, feature_columns: Any, head: Any, model_dir: Any = None, weight_column_name: Any = None,
        optimizer: Any = None, gradient_clip_norm: Any = None, _joint_weights: Any = False, config: Any = None,
        feature_engineering_fn: Any = None,
    ):  # fmt: skip
        del weight_column_name  # the head has it
        _some(feature_columns)
        params = {
            "head": head, "feature_columns": feature_columns, "optimizer": optimizer,
            "gradient_clip_norm": gradient_clip_norm, "joint_weights": _joint_weights,
        }  # fmt: skip
        super().__init__(linear_model_fn, model_dir, config, params, feature_engineering_fn)
