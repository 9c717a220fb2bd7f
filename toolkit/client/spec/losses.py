"""The sections `loss`, `losses` and `metrics`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.spec.builder import SpecBuilder
from toolkit.client.spec.values import NAME, PLACEMENT
from toolkit.formats.schema.choices import ByTag
from toolkit.formats.schema.containers import Key, MapOf
from toolkit.formats.schema.scalars import Boolean, Integer, Number
from toolkit.formats.settings.tree import Section, YamlItem
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys

_LABELS = Key(NAME, "what is right", required=True)
_LOGITS = Key(NAME, "scores before softmax or sigmoid", required=True)
_PREDICTIONS = Key(NAME, "what was computed", required=True)
_TENSOR = Key(NAME, "the tensor", required=True)

Compute = Callable[[SpecBuilder, Section], Tensor]


def _sparse_softmax(spec: SpecBuilder, section: Section) -> Tensor:
    labels, logits = spec.tensor(section["labels"]), spec.tensor(section["logits"])
    return nn_ops.sparse_softmax_cross_entropy_with_logits(labels, logits, name="xent")


def _softmax(spec: SpecBuilder, section: Section) -> Tensor:
    labels, logits = _like(spec, section, "logits")
    if smoothing := section.number("label_smoothing", 0.0):
        classes = logits.static_shape[-1]
        if classes is None:
            raise section["logits"].error("the number of classes must be known for label_smoothing")
        labels = labels * (1.0 - smoothing) + smoothing / classes
    return nn_ops.softmax_cross_entropy_with_logits_v2(labels, logits, name="xent")


def _sigmoid(spec: SpecBuilder, section: Section) -> Tensor:
    labels, logits = _like(spec, section, "logits")
    if smoothing := section.number("label_smoothing", 0.0):
        labels = labels * (1.0 - smoothing) + smoothing * 0.5
    return nn_ops.sigmoid_cross_entropy_with_logits(labels, logits, name="xent")


def _like(spec: SpecBuilder, section: Section, key: str) -> tuple[Tensor, Tensor]:
    """The labels in the type of what is compared with them, and that."""
    labels, values = spec.tensor(section["labels"]), spec.tensor(section[key])
    return math_ops.cast(labels, values.dtype), values


def _squared(spec: SpecBuilder, section: Section) -> Tensor:
    labels, predictions = _like(spec, section, "predictions")
    return math_ops.square(predictions - labels)


def _absolute(spec: SpecBuilder, section: Section) -> Tensor:
    labels, predictions = _like(spec, section, "predictions")
    return math_ops.abs(predictions - labels)


def _huber(spec: SpecBuilder, section: Section) -> Tensor:
    """Huber (1964): half the square up to delta, beyond it linear."""
    labels, predictions = _like(spec, section, "predictions")
    delta = section.number("delta", 1.0)
    error = math_ops.abs(predictions - labels)
    small = math_ops.minimum(error, delta)
    return math_ops.square(small) * 0.5 + (error - small) * delta


def _hinge(spec: SpecBuilder, section: Section) -> Tensor:
    labels, logits = _like(spec, section, "logits")
    return nn_ops.relu(1.0 - (2.0 * labels - 1.0) * logits)


def _log(spec: SpecBuilder, section: Section) -> Tensor:
    labels, predictions = _like(spec, section, "predictions")
    epsilon = section.number("epsilon", 1e-7)
    return -labels * math_ops.log(predictions + epsilon) - (1.0 - labels) * math_ops.log(1.0 - predictions + epsilon)


def _cosine(spec: SpecBuilder, section: Section) -> Tensor:
    labels, predictions = _like(spec, section, "predictions")
    return 1.0 - math_ops.reduce_sum(labels * predictions, [section.integer("axis", -1)], True)


def _itself(spec: SpecBuilder, section: Section) -> Tensor:
    return spec.tensor(section["tensor"])


_BY_LOGITS = {"labels": _LABELS, "logits": _LOGITS}
_BY_PREDICTIONS = {"labels": _LABELS, "predictions": _PREDICTIONS}
_SMOOTHING = {"label_smoothing": Key(Number(0, 1), "how far labels are moved to the middle", default=0.0)}

#: losses by name: their keys, and what computes a value for each element or example
LOSSES: dict[str, tuple[dict[str, Key], Compute]] = {
    "sparse_softmax_cross_entropy": (_BY_LOGITS, _sparse_softmax),
    "softmax_cross_entropy": (_BY_LOGITS | _SMOOTHING, _softmax),
    "sigmoid_cross_entropy": (_BY_LOGITS | _SMOOTHING, _sigmoid),
    "mean_squared_error": (_BY_PREDICTIONS, _squared),
    "absolute_difference": (_BY_PREDICTIONS, _absolute),
    "huber": (_BY_PREDICTIONS | {"delta": Key(Number(0), "where it turns linear", default=1.0)}, _huber),
    "hinge": (_BY_LOGITS, _hinge),
    "log": (_BY_PREDICTIONS | {"epsilon": Key(Number(0), "added before the logarithm", default=1e-7)}, _log),
    "cosine_distance": (_BY_PREDICTIONS | {"axis": Key(Integer(), "of the vectors", default=-1)}, _cosine),
    "tensor": ({"tensor": _TENSOR}, _itself),
}

#: keys of every loss
LOSS_KEYS: dict[str, Key] = {
    "weight": Key(Number(), "times the mean", default=1.0),
    "weights": Key(NAME, "the name of a weight for each example"),
    "regularization": Key(Boolean(), "add the regularizers of variables"),
    "device": PLACEMENT["device"],
}
_ONE = {name: {"name": Key(NAME, "its name", default="loss")} | keys | LOSS_KEYS for name, (keys, _) in LOSSES.items()}

#: the section `loss`, and one loss of `losses`, which are named by their keys
LOSS = ByTag("type", _ONE, default="tensor")
MANY = MapOf(ByTag("type", {name: keys | LOSS_KEYS for name, (keys, _) in LOSSES.items()}, default="tensor"))


def build_loss(spec: SpecBuilder, found: YamlItem) -> None:
    """Make the one loss of the section `loss`."""
    if spec.mistakes.has(found):
        name = found.section().get("name") if isinstance(found.value, dict) else None
        spec.fail(["loss" if name is None else str(name.value)])
        return
    _build(spec, found.section().text("name", "loss"), found)


def build_losses(spec: SpecBuilder, found: YamlItem) -> None:
    """Make the losses of the section `losses`, each under its key."""
    for name, item in spec.sound(found):
        _build(spec, name, item)


def _build(spec: SpecBuilder, name: str, item: YamlItem) -> None:
    with spec.making(item, [name]) as section, spec.graph.name_scope(name) as scope:
        _, compute = LOSSES[section.text("type", "tensor")]
        values = compute(spec, section)
        if (each := section.get("weights")) is not None:
            values = values * math_ops.cast(spec.tensor(each), values.dtype)
        weight = section.number("weight", 1.0)
        extra = spec.graph.get_collection(GraphKeys.REGULARIZATION_LOSSES)
        extra = extra if section.boolean("regularization", bool(extra)) else []
        plain = weight == 1.0 and not extra
        loss = math_ops.reduce_mean(values, name=scope if plain else None)
        if weight != 1.0:
            loss = math_ops.multiply(loss, weight, name=None if extra else scope)
        if extra:
            total = math_ops.add_n(extra) if len(extra) > 1 else extra[0]
            loss = math_ops.add(loss, total, name=scope)
        spec.declare(name, loss, item)
        spec.losses[name] = loss
        spec.graph.add_to_collection(GraphKeys.LOSSES, loss)


# -- metrics -------------------------------------------------------------------------------------------------


def _accuracy(spec: SpecBuilder, section: Section) -> Tensor:
    labels, predictions = spec.tensor(section["labels"]), spec.tensor(section["predictions"])
    if predictions.static_shape.rank is not None and predictions.static_shape.rank > (labels.static_shape.rank or 1):
        output_type = labels.dtype.base if labels.dtype.base in (dtypes.int32, dtypes.int64) else dtypes.int64
        predictions = math_ops.argmax(predictions, -1, output_type, name="prediction")
    return math_ops.equal(math_ops.cast(labels, predictions.dtype), predictions)


def _top_k(spec: SpecBuilder, section: Section) -> Tensor:
    labels, predictions = spec.tensor(section["labels"]), spec.tensor(section["predictions"])
    return nn_ops.in_top_k(predictions, labels, section.integer("k", 5))


#: metrics by name: their keys, and what computes a value for each example
METRICS: dict[str, tuple[dict[str, Key], Compute]] = {
    "accuracy": (_BY_PREDICTIONS, _accuracy),
    "top_k_accuracy": (_BY_PREDICTIONS | {"k": Key(Integer(1), "how many classes count", default=5)}, _top_k),
    "mean_squared_error": (_BY_PREDICTIONS, _squared),
    "mean_absolute_error": (_BY_PREDICTIONS, _absolute),
    "mean": ({"tensor": _TENSOR}, _itself),
    "tensor": ({"tensor": _TENSOR}, _itself),
}
_METRIC_KEYS = {"device": PLACEMENT["device"]}


METRIC = {name: keys | _METRIC_KEYS for name, (keys, _) in METRICS.items()}
#: the section `metrics`: a metric that is named like a kind is of that kind
METRICS_KIND = MapOf(ByTag("type", METRIC), by_name={name: ByTag("type", METRIC, default=name) for name in METRIC})


def build_metrics(spec: SpecBuilder, found: YamlItem) -> None:
    """Make the metrics, the mean over all examples of each."""
    for name, item in spec.sound(found):
        with spec.making(item, [name]) as section, spec.graph.name_scope(name) as scope:
            _, compute = METRICS[section.text("type", name if name in METRICS else None)]
            values: Any = math_ops.cast(compute(spec, section), dtypes.float32)
            spec.declare(name, math_ops.reduce_mean(values, name=scope), item)
