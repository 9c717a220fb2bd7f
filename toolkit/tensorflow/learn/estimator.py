# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""The estimator of tf.contrib.learn: a model function, and its export."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction import context
from toolkit.client.metrics.means import mean
from toolkit.client.mode_keys import ModeKeys
from toolkit.client.train.global_step import create_global_step
from toolkit.tensorflow.estimators.model_functions import arguments_of
from toolkit.tensorflow.families.framework.graph import Graph
from toolkit.tensorflow.learn import exporting, tensor_signature
from toolkit.tensorflow.learn.base_estimator import BaseEstimator
from toolkit.tensorflow.learn.feeding import input_fn_of
from toolkit.tensorflow.learn.keys import MetricKey
from toolkit.tensorflow.learn.metric_spec import metric_ops
from toolkit.tensorflow.learn.model_fn_ops import ModelFnOps


class LearnEstimator(BaseEstimator):
    """A model that is trained, evaluated, asked and exported.

    Args:
        model_fn: a function of features and labels and of any of mode, params, config and model_dir; returns
            ModelFnOps, or predictions, a loss and a training operation.
        params: handed to `model_fn`.
        feature_engineering_fn: of features and labels; what it returns goes to `model_fn`.

    Raises:
        ValueError: there are params, and the function takes none.
    """

    def __init__(
        self, model_fn: Any = None, model_dir: Any = None, config: Any = None, params: Any = None,
        feature_engineering_fn: Any = None,
    ):  # fmt: skip
        super().__init__(model_dir=model_dir, config=config)
        if model_fn is not None and params is not None and "params" not in arguments_of(model_fn):
            raise ValueError(f"params are given ({params}), and model_fn takes none")
        self._model_fn: Any = model_fn
        self.params = params
        self._feature_engineering_fn = feature_engineering_fn or (lambda features, labels: (features, labels))

    def _call_model_fn(
        self, features: Any, labels: Any, mode: str, metrics: Any = None, config: Any = None
    ) -> ModelFnOps:
        features, labels = self._feature_engineering_fn(features, labels)
        takes = arguments_of(self._model_fn)
        offered = {"mode": mode, "params": self.params, "config": config or self.config, "model_dir": self.model_dir}
        found = self._model_fn(features, labels, **{name: each for name, each in offered.items() if name in takes})
        if not isinstance(found, ModelFnOps):
            if not isinstance(found, list | tuple) or len(found) != 3:
                raise ValueError(
                    f"model_fn must return ModelFnOps, or predictions, a loss and a train_op; got {found!r}"
                )
            predictions, loss, train_op = found
            found = ModelFnOps(mode, predictions, loss, train_op)
        if metrics:
            found.eval_metric_ops.update(metric_ops(metrics, features, labels, found.predictions))
        return found

    def _get_train_ops(self, features: Any, labels: Any) -> ModelFnOps:
        return self._call_model_fn(features, labels, ModeKeys.TRAIN)

    def _get_eval_ops(self, features: Any, labels: Any, metrics: Any) -> ModelFnOps:
        ops = self._call_model_fn(features, labels, ModeKeys.EVAL, metrics)
        if MetricKey.LOSS not in ops.eval_metric_ops:
            ops.eval_metric_ops[MetricKey.LOSS] = mean(ops.loss)
        return ops

    def _get_predict_ops(self, features: Any) -> ModelFnOps:
        labels = tensor_signature.create_placeholders_from_signatures(self._labels_info)
        return self._call_model_fn(features, labels, ModeKeys.INFER)

    def export_savedmodel(
        self, export_dir_base: Any, serving_input_fn: Any, default_output_alternative_key: Any = None,
        assets_extra: Any = None, as_text: Any = False, checkpoint_path: Any = None,
        graph_rewrite_specs: Any = exporting.AS_IT_IS, strip_default_attrs: Any = False,
    ) -> bytes:  # fmt: skip
        """Write a SavedModel into a new folder, named by the time; returns its path.

        Args:
            serving_input_fn: returns InputFnOps.
            default_output_alternative_key: the head that is served where none is asked for.
            graph_rewrite_specs: graphs with their tags and transforms; the first has no transforms.

        Raises:
            ValueError: there is no such function, or a graph with transforms.
            NotFittedError: there is no checkpoint.
        """
        if serving_input_fn is None:
            raise ValueError("an export needs serving_input_fn, which makes its inputs; it is missing")
        checkpoint = self._checkpoint(checkpoint_path)
        with Graph().as_default():
            create_global_step(context.get_default_graph())
            inputs = exporting.inputs_of(serving_input_fn())
            ops = self._call_model_fn(inputs.features, None, ModeKeys.INFER)
            return exporting.write(
                ops, inputs, export_dir_base, checkpoint, default_output_alternative_key, assets_extra, as_text,
                graph_rewrite_specs, strip_default_attrs,
            )  # fmt: skip


def infer_real_valued_columns_from_input_fn(input_fn: Any) -> Any:
    """A column of numbers for each feature that a function makes."""
    from toolkit.client.scoped_columns.features import infer_real_valued_columns

    with Graph().as_default():
        features, _ = input_fn()
        return infer_real_valued_columns(features)


def infer_real_valued_columns_from_input(x: Any) -> Any:
    """A column of numbers for each feature of an array, or an iterator of arrays."""
    return infer_real_valued_columns_from_input_fn(input_fn_of(x, None, None, None, None)[0])
