# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Estimators made of others: with more metrics, with features among the predictions; and what they are made with."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.data.dataset import Dataset
from toolkit.client.math import clip_ops
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.tensorflow.estimators import export_outputs as exports
from toolkit.tensorflow.estimators.estimator import Estimator
from toolkit.tensorflow.estimators.model_functions import arguments_of
from toolkit.tensorflow.estimators.receivers import build_raw_supervised_input_receiver_fn
from toolkit.tensorflow.estimators.run_config import ModeKeys
from toolkit.tensorflow.families.contrib.optimizers import TransformingOptimizer


def add_metrics(estimator: Any, metric_fn: Any) -> Estimator:
    """An estimator that is another one with more metrics.

    Args:
        metric_fn: takes any of features, labels, predictions and config; returns metrics by name.

    Raises:
        ValueError: `metric_fn` takes something else.
    """
    takes = set(arguments_of(metric_fn))
    strange = sorted(takes - {"features", "labels", "predictions", "config"})
    if strange:
        raise ValueError(
            f"metric_fn takes {', '.join(strange)}; expected features, labels, predictions or config, nothing else"
        )

    def model_fn(features: Any, labels: Any, mode: Any, config: Any) -> Any:
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        offered = {"features": features, "labels": labels, "predictions": spec.predictions, "config": config}
        more = metric_fn(**{name: offered[name] for name in takes})
        return spec._replace(eval_metric_ops={**(spec.eval_metric_ops or {}), **more})

    return Estimator(model_fn, estimator.model_dir, estimator.config, warm_start_from=estimator._warm_start)


def forward_features(estimator: Any, keys: Any = None, sparse_default_values: Any = None) -> Estimator:
    """An estimator that is another one, whose predictions hold features, too: an identifier of each example, say.

    Args:
        keys: which features; all by default.
        sparse_default_values: what fills the gaps of sparse features, by name.

    Raises:
        TypeError: `keys` is no text, and no list of texts. When the model is made:
        ValueError: there is no such feature, a prediction is called the same, or a feature is no dense tensor.
    """
    wanted = [keys] if isinstance(keys, str) else keys
    if wanted is not None and not (isinstance(wanted, list | tuple) and all(isinstance(key, str) for key in wanted)):
        raise TypeError(f"keys: expected a name, or names, of features; got {keys!r}")

    def model_fn(features: Any, labels: Any, mode: Any, config: Any) -> Any:
        spec = estimator.model_fn(features, labels, mode, config)
        if spec.predictions is None:
            return spec
        chosen = list(features) if wanted is None else wanted
        if not isinstance(spec.predictions, dict):
            raise ValueError("features can only be added to predictions that are a dict")
        added = {key: _feature(key, features, spec.predictions, sparse_default_values or {}) for key in chosen}
        outputs = dict(spec.export_outputs or {})
        for name in ("predict", "serving_default"):
            if isinstance(found := outputs.get(name), exports.PredictOutput):
                outputs[name] = exports.PredictOutput({**found.outputs, **added})
        changed = {"export_outputs": outputs} if outputs else {}
        return spec._replace(predictions={**spec.predictions, **added}, **changed)

    return Estimator(model_fn, estimator.model_dir, estimator.config)


def _feature(key: str, features: Any, predictions: Any, fills: Any) -> Tensor:
    if key not in features:
        raise ValueError(f"keys: there is no feature '{key}'; there are: {', '.join(sorted(features))}")
    if key in predictions:
        raise ValueError(f"keys: a prediction is called '{key}' already, so the feature cannot be added")
    found = features[key]
    found = found if isinstance(found, SparseTensor) else convert_to_tensor(found)
    if key in fills:
        if not isinstance(found, SparseTensor):
            raise ValueError(f"sparse_default_values: the feature '{key}' is dense")
        return sparse_ops.to_dense(found, fills[key])
    if isinstance(found, SparseTensor):
        raise ValueError(f"the feature '{key}' is sparse; give what fills its gaps in sparse_default_values")
    return found


def clip_gradients_by_norm(optimizer: Any, clip_norm: Any) -> TransformingOptimizer:
    """An optimizer that is another one, with gradients scaled so that their norm together is at most `clip_norm`."""

    def clip(grads_and_vars: Any) -> list[Any]:
        gradients, variables = zip(*grads_and_vars, strict=True)
        return list(zip(clip_ops.clip_by_global_norm(gradients, clip_norm)[0], variables, strict=True))

    return TransformingOptimizer(optimizer, clip, "ClipByNorm" + optimizer.get_name())


def call_logit_fn(logit_fn: Any, features: Any, mode: Any, params: Any, config: Any) -> Any:
    """The logits that a function of features, and of any of mode, params and config, makes.

    Raises:
        ValueError: it returns neither a tensor nor tensors by name.
    """
    offered = {"mode": mode, "params": params, "config": config}
    takes = arguments_of(logit_fn)
    found = logit_fn(features=features, **{name: value for name, value in offered.items() if name in takes})
    by_name = isinstance(found, dict) and all(
        isinstance(key, str) and isinstance(value, Tensor) for key, value in found.items()
    )
    if not by_name and not isinstance(found, Tensor):
        raise ValueError(f"logit_fn: expected a tensor, or a dict of tensors; it returns {found!r}")
    return found


def export_saved_model_for_mode(
    estimator: Any, export_dir_base: Any, input_receiver_fn: Any, assets_extra: Any = None, as_text: bool = False,
    checkpoint_path: Any = None, mode: Any = ModeKeys.PREDICT,
) -> bytes:  # fmt: skip
    """`Estimator.export_saved_model`, of a mode."""
    return estimator.export_saved_model(
        export_dir_base, input_receiver_fn, assets_extra, as_text, checkpoint_path, experimental_mode=mode
    )


def export_all_saved_models(
    estimator: Any, export_dir_base: Any, input_receiver_fn_map: Any, assets_extra: Any = None, as_text: bool = False,
    checkpoint_path: Any = None,
) -> bytes:  # fmt: skip
    """`Estimator.experimental_export_all_saved_models`."""
    return estimator.experimental_export_all_saved_models(
        export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
    )


def build_supervised_input_receiver_fn_from_input_fn(input_fn: Any, **input_fn_args: Any) -> Any:
    """A function that makes placeholders like the features and labels of an input function."""
    from toolkit.client.construction.graph import Graph

    with Graph().as_default():
        found = input_fn(**input_fn_args)
        if isinstance(found, Dataset):
            found = found.make_one_shot_iterator().get_next()
        features, labels = found
        return build_raw_supervised_input_receiver_fn(features, labels)
