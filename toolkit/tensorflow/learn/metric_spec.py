# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Which predictions, labels and weights a metric of an evaluation is given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from toolkit.tensorflow.deprecation import log

#: what metric functions call their arguments
_LABELS = frozenset({"labels", "label", "targets", "target"})
_PREDICTIONS = frozenset({"predictions", "prediction", "logits", "logit"})
_WEIGHTS = frozenset({"weights", "weight"})


class MetricSpec:
    """A metric function with the keys of what it is given.

    Args:
        metric_fn: of predictions, and of any of labels and weights; returns a value, or a value and its update.
        prediction_key: None where there is one prediction alone.
        label_key: None where there is one label alone.
        weight_key: a feature; None: no weights are given.

    Raises:
        ValueError: the function takes two arguments that mean one thing, or not what a key is given for.
    """

    def __init__(self, metric_fn: Any, prediction_key: Any = None, label_key: Any = None, weight_key: Any = None):
        self._name = _name_of(metric_fn)
        self._metric_fn = _adapted(metric_fn, self._name, label_key is not None, weight_key is not None)
        self._prediction_key, self._label_key, self._weight_key = prediction_key, label_key, weight_key

    @property
    def prediction_key(self) -> Any:
        return self._prediction_key

    @property
    def label_key(self) -> Any:
        return self._label_key

    @property
    def weight_key(self) -> Any:
        return self._weight_key

    @property
    def metric_fn(self) -> Callable[..., Any]:
        """The function, of predictions, labels and weights by these names."""
        return self._metric_fn

    def __str__(self) -> str:
        return (
            f"MetricSpec(metric_fn={self._name}, prediction_key={self._prediction_key}, label_key={self._label_key}, "
            f"weight_key={self._weight_key})"
        )

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """What the function returns for the tensors of the keys.

        Raises:
            ValueError: there are several, and no key; or one, and a key.
            KeyError: there is no such key.
        """
        prediction = _chosen("prediction", predictions, self._prediction_key)
        label = _chosen("label", labels, self._label_key)
        weights = inputs[self._weight_key] if self._weight_key else None
        return self._metric_fn(labels=label, predictions=prediction, weights=weights)


def _chosen(what: str, given: Any, key: Any) -> Any:
    if not isinstance(given, dict):
        if key:
            raise ValueError(f"{what}_key is '{key}', and there is one {what} alone; leave the key out")
        return given
    if key:
        if key not in given:
            raise KeyError(f"there is no {what} '{key}'; there are: {', '.join(map(str, given))}")
        return given[key]
    if len(given) != 1:
        raise ValueError(f"there are several {what}s ({', '.join(map(str, given))}); give {what}_key")
    return next(iter(given.values()))


def _name_of(function: Any) -> str:
    inner = getattr(function, "func", function)
    return getattr(function, "__name__", None) or getattr(inner, "__name__", None) or str(function)


def _arguments(function: Any) -> list[str]:
    """The arguments that may be given by place, without those that a partial function has already."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = getattr(function, "keywords", None) or {}
    found = inspect.signature(function).parameters
    return [name for name, each in found.items() if each.kind in kinds and name not in taken]


def _matching(name: str, arguments: list[str], known: frozenset[str], usual: str, is_required: bool) -> str | None:
    found = [each for each in arguments if each in known]
    if len(found) > 1:
        raise ValueError(f"the metric {name} takes {' and '.join(found)}, which mean the same")
    if not found:
        if is_required:
            raise ValueError(f"the metric {name} takes no {usual}; it takes: {', '.join(arguments)}")
        return None
    if found[0] != usual:
        log().warning("the metric %s takes '%s' where most take '%s'", name, found[0], usual)
    return found[0]


def _adapted(function: Any, name: str, needs_labels: bool, needs_weights: bool) -> Callable[..., Any]:
    """The function with arguments of the usual names."""
    arguments = _arguments(function)
    of_labels = _matching(name, arguments, _LABELS, "labels", needs_labels)
    of_predictions = _matching(name, arguments, _PREDICTIONS, "predictions", False)
    of_weights = _matching(name, arguments, _WEIGHTS, "weights", needs_weights)

    def call(_sentinel: Any = None, labels: Any = None, predictions: Any = None, weights: Any = None) -> Any:
        if _sentinel is not None:
            raise ValueError(f"the metric {name} is called by names: labels, predictions, weights")
        by_name = {} if weights is None or of_weights is None else {of_weights: weights}
        if of_predictions is not None:
            by_name[of_predictions] = predictions
            if of_labels is not None:
                by_name[of_labels] = labels
            return function(**by_name)
        if of_labels is not None and arguments[0] == of_labels:
            return function(labels, predictions, **by_name)
        if of_labels is not None:
            by_name[of_labels] = labels
        return function(predictions, **by_name)

    return call


def _order(item: tuple[Any, Any]) -> Any:
    """By name, also where some are names and some are names with keys."""
    return item[0] if isinstance(item[0], tuple) else (item[0],)


def metric_ops(metrics: Any, features: Any, labels: Any, predictions: Any) -> dict[str, Any]:
    """What each metric of an evaluation returns, by name.

    Args:
        metrics: a name to a MetricSpec, or to a function of predictions and labels; or a name and the key of a
            prediction to such a function.

    Raises:
        ValueError: a function without a key, and several predictions.
    """
    found: dict[str, Any] = {}
    alone = next(iter(labels.values())) if isinstance(labels, dict) and len(labels) == 1 else labels
    for name, metric in sorted((metrics or {}).items(), key=_order):
        if isinstance(metric, MetricSpec):
            found[name] = metric.create_metric_ops(features, labels, predictions)
        elif isinstance(name, tuple):
            if len(name) != 2 or not isinstance(predictions, dict):
                raise ValueError(f"the metric {name} must be a name and the key of one of several predictions")
            key = name[1]
            of = labels[key] if isinstance(labels, dict) and key in labels else alone
            found[name[0]] = metric(predictions[key], of)
        elif isinstance(predictions, dict):
            raise ValueError(
                f"the metric '{name}' is a function, and there are several predictions ({', '.join(predictions)}); "
                "give a MetricSpec with a prediction_key"
            )
        else:
            found[name] = metric(predictions, alone)
    return found
